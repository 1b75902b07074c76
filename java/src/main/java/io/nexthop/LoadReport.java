package io.nexthop;

import java.util.Map;

/**
 * What became of the documents: what was read, and which known fields mean nothing here.
 *
 * @param values the report as the library tells it; plain maps, lists, strings, numbers
 */
public record LoadReport(Map<String, Object> values) {
  /** The report as JSON. */
  @Override
  public String toString() {
    return Json.text(values);
  }
}
