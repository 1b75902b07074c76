package io.nexthop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Headers (and trailers) of a check's answer. */
final class AnswerHeaders {
  private final Map<String, List<String>> all = new HashMap<>();

  void add(String name, String value) {
    all.computeIfAbsent(name.toLowerCase(Locale.ROOT), key -> new ArrayList<>()).add(value);
  }

  List<String> values(String name) {
    return all.getOrDefault(name, List.of());
  }

  /** The first value, or the empty text. */
  String first(String name) {
    List<String> values = values(name);
    return values.isEmpty() ? "" : values.get(0);
  }
}
