package io.nexthop;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * One number of an engine.
 *
 * @param name such as {@code cluster.upstream_rq}
 * @param counter it only grows; else it is a gauge
 * @param value now; what does not fit is the largest
 * @param attributes such as {@code envoy.cluster_name}
 */
public record Metric(String name, boolean counter, long value, Map<String, String> attributes) {
  static Metric of(Map<String, Object> json) {
    Map<String, String> attributes = new LinkedHashMap<>();
    if (json.get("attributes") instanceof Map<?, ?> all) {
      all.forEach((tag, value) -> attributes.put(tag.toString(), value.toString()));
    }
    long value = json.get("value") instanceof Long whole ? whole : Long.MAX_VALUE;
    boolean counter = "counter".equals(json.get("type"));
    return new Metric(json.get("name").toString(), counter, value, Collections.unmodifiableMap(attributes));
  }
}
