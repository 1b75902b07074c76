package io.nexthop;

import java.nio.ByteOrder;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Which headers the engine reads, by the number of the set; a set never changes, so it is read once. */
final class Wants {
  /** The set without names. */
  static final int EMPTY = 1;

  private final long engine;
  private final Map<Integer, String[]> sets = new ConcurrentHashMap<>();
  private volatile int request;

  Wants(long engine) {
    this.engine = engine;
    sets.put(EMPTY, new String[0]);
  }

  /** The number of the present request set. */
  int requestSet() {
    int number = request;
    return number != 0 ? number : read(0);
  }

  /** The engine said that the request set grew. */
  void changed() {
    request = 0;
  }

  String[] names(int set) {
    String[] names = sets.get(set);
    if (names != null) {
      return names;
    }
    read(set);
    names = sets.get(set);
    return names == null ? new String[0] : names;
  }

  private int read(int set) {
    byte[] packed = Native.want(engine, set);
    if (packed == null) {
      throw Errors.of(Native.lastStatus());
    }
    Unpacker in = new Unpacker(packed);
    int number = in.intValue();
    String names = in.text();
    sets.putIfAbsent(number, names.isEmpty() ? new String[0] : names.split("\0"));
    if (set == 0) {
      request = number;
    }
    return number;
  }

  /** The wanted ones among these headers as a block, or null when there are none. */
  byte[] block(int set, HeaderSource headers) {
    if (set == EMPTY || headers == null) {
      return null;
    }
    String[] names = names(set);
    Packer out = null;
    for (int i = 0; i < names.length; i++) {
      List<String> values = headers.values(names[i]);
      if (values == null) {
        continue;
      }
      for (String value : values) {
        if (out == null) {
          out = new Packer(256);
        }
        if (value == null) {
          throw new NullPointerException("a value of header " + names[i]);
        }
        byte[] bytes = Packer.headerValue("a value of header " + names[i], value);
        // Little-endian by contract, whatever the host is.
        out.intValue(little(i)).intValue(little(bytes.length)).raw(bytes);
      }
    }
    return out == null ? null : out.done();
  }

  private static int little(int value) {
    return ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? value : Integer.reverseBytes(value);
  }
}
