package io.nexthop;

/** A stateless choice met a queue and has no request to wait with. Carries no stack trace. */
public final class WouldWaitException extends NexthopException {
  private static final long serialVersionUID = 1L;

  private final transient Wait wait;

  WouldWaitException(Wait wait) {
    super("would_wait", "would wait: " + wait.reason(), false);
    this.wait = wait;
  }

  /** What it would have waited for. */
  public Wait waiting() {
    return wait;
  }
}
