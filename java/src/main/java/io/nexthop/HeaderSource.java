package io.nexthop;

import java.util.List;

/**
 * Where the values of a header come from: only those that a decision needs are asked for, by lower-case name.
 * {@code response.headers()::allValues} of {@code java.net.http} is one.
 */
@FunctionalInterface
public interface HeaderSource {
  /** All values of this header in order; empty or null = absent. */
  List<String> values(String lowerCaseName);
}
