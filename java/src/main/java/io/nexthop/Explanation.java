package io.nexthop;

import java.util.Map;

/**
 * Why a decision is what it is.
 *
 * @param values the reason trail as the library tells it; plain maps, lists, strings, numbers
 */
public record Explanation(Map<String, Object> values) {
  /** The trail as JSON. */
  @Override
  public String toString() {
    return Json.text(values);
  }
}
