package io.nexthop;

import java.time.Duration;

/** What a request became. */
record Facts(Duration timeout, Duration idleTimeout, String cluster, String route) {
  static Facts of(long request) {
    byte[] packed = Native.requestInfo(request);
    if (packed == null) {
      throw Errors.of(Native.lastStatus());
    }
    Unpacker in = new Unpacker(packed);
    return new Facts(Durations.of(in.longValue()), Durations.of(in.longValue()), in.text(), in.text());
  }
}
