package io.nexthop;

import java.time.Duration;

/**
 * The answer to a report.
 *
 * @param action what to do with this attempt's result
 * @param reason why, such as {@code success} or {@code limit_exceeded}
 * @param after back-off before the next attempt; {@code chooseHost} waits for it by itself
 * @param status the upstream's status, or that of the local reply
 * @param flags Envoy's response flags of the request so far, {@code -} for none
 */
public record Verdict(Action action, String reason, Duration after, int status, String flags) {
  /** What to do with an attempt's result. */
  public enum Action {
    /** Hand it to the client. */
    FORWARD,
    /** Drop it and choose the next host. */
    RETRY,
    /** Drop it: another attempt of the request is in flight. */
    DISCARD
  }

  /** Whether another attempt follows. */
  public boolean retry() {
    return action == Action.RETRY;
  }

  private static final String[] REASONS = {
    "", "success", "not_retriable", "no_policy", "limit_exceeded", "retry_overflow", "runtime_disabled",
    "response_started", "already_hedged", "abandoned", "body_not_replayable", "backoff", "backoff_ratelimited",
    "immediate", "others_in_flight", "client_gone", "stream_ended", "deadline", "retry_after_too_long",
    "not_idempotent", "outer_layer_retries"
  };
  private static final long PLAIN_MASK = 0x3ffL;
  private static final long PLAIN_SUCCESS = 1 | 1L << 2;
  private static final Verdict[] SUCCESSES = new Verdict[1000];

  /** Bits of {@link Word}: somebody's wait may be over; abort the request's other attempts. */
  static final int WAKE = 1;
  static final int ABORT_OTHERS = 2;

  static int bits(long word) {
    return (int) (word >>> 10) & 7;
  }

  /**
   * The verdict in a word as {@code nexthop_jni.c} packs it: action 2 bits, reason 8, signal bits 3, status 16,
   * after 32, and bit 62 when there are flags. A forwarded success without flags is a shared object by status.
   */
  static Verdict of(long word) {
    int status = (int) (word >>> 13) & 0xffff;
    long after = word >>> 29 & 0xffff_ffffL;
    boolean flagged = (word & 1L << 62) != 0;
    if (!flagged && (word & PLAIN_MASK) == PLAIN_SUCCESS && after == 0 && status < SUCCESSES.length) {
      Verdict shared = SUCCESSES[status];
      if (shared == null) {
        shared = new Verdict(Action.FORWARD, REASONS[1], Duration.ZERO, status, "-");
        SUCCESSES[status] = shared;
      }
      return shared;
    }
    Action action = switch ((int) word & 3) {
      case 2 -> Action.RETRY;
      case 3 -> Action.DISCARD;
      default -> Action.FORWARD;
    };
    int reason = (int) (word >>> 2) & 0xff;
    String name = reason < REASONS.length ? REASONS[reason] : Names.of(Names.REASON, reason);
    String flags = flagged ? Names.flags(Native.lastFlags()) : "-";
    return new Verdict(action, name, Duration.ofMillis(after), status, flags);
  }
}
