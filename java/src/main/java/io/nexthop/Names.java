package io.nexthop;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentHashMap;

/** Static names of numbers, from the library's own tables. */
final class Names {
  static final int FLAG = 1;
  static final int FAILURE = 2;
  static final int REFUSAL = 3;
  static final int DETAILS = 4;
  static final int BODY = 5;
  static final int REASON = 6;
  static final int WAIT = 9;
  static final int RESOURCE = 10;

  private static final ConcurrentHashMap<Long, String> SEEN = new ConcurrentHashMap<>();

  private Names() {}

  /** The name, or {@code unknown(N)} for a number that this library does not know. */
  static String of(int table, int value) {
    String name = raw(table, value);
    return name.isEmpty() ? "unknown(" + value + ")" : name;
  }

  /** The text of an entry, empty when there is none. */
  static String raw(int table, int value) {
    return SEEN.computeIfAbsent((long) table << 32 | value & 0xffff_ffffL, key -> {
      byte[] name = Native.name(table, value);
      return name == null ? "" : new String(name, StandardCharsets.UTF_8);
    });
  }

  /** Envoy's short names, comma-joined in bit order. */
  static String flags(int flags) {
    if (flags == 0) {
      return "-";
    }
    StringBuilder text = new StringBuilder();
    for (int bit = 0; bit < 32; bit++) {
      if ((flags & 1 << bit) != 0) {
        text.append(text.isEmpty() ? "" : ",").append(of(FLAG, bit));
      }
    }
    return text.toString();
  }
}
