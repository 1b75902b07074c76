package io.nexthop;

import java.time.Duration;

/** Durations at the boundary: unsigned nanoseconds, all bits set for never. */
final class Durations {
  static final long NEVER = -1L;
  private static final long SECOND = 1_000_000_000L;

  private Durations() {}

  /** null for never. */
  static Duration of(long nanos) {
    if (nanos == NEVER) {
      return null;
    }
    return nanos >= 0 ? Duration.ofNanos(nanos)
        : Duration.ofSeconds(Long.divideUnsigned(nanos, SECOND), Long.remainderUnsigned(nanos, SECOND));
  }

  /** Nanoseconds of a duration that must not be negative; longer than 292 years is never. */
  static long nanos(String name, Duration duration) {
    if (duration.isNegative()) {
      throw Errors.invalid(name + " is negative: " + duration);
    }
    return duration.getSeconds() >= Long.MAX_VALUE / SECOND ? NEVER : duration.toNanos();
  }
}
