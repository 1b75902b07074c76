package io.nexthop;

/** What both run loops do with what a send function gave back. */
final class Sending {
  private Sending() {}

  /** The verdict of an attempt whose function returned: unreported counts as a success without a status. */
  static Verdict returned(Attempt attempt) {
    if (attempt.open()) {
      return attempt.complete(0);
    }
    if (attempt.answered()) {
      attempt.end();
    }
    Verdict verdict = attempt.verdict();
    return verdict != null ? verdict : Verdict.of(0); // cancelled by the function itself
  }

  /** The verdict of an attempt whose function threw; null = the exception goes on whatever the engine thinks. */
  static Verdict threw(Attempt attempt, Throwable thrown) {
    if (!attempt.open() && !attempt.answered()) {
      return null; // reported before it threw
    }
    try {
      if (Failures.of(thrown) == null) {
        attempt.close();
        return null;
      }
      return attempt.fail(thrown);
    } catch (UsageException late) {
      thrown.addSuppressed(late);
      return null;
    }
  }

  /** Lets go of a response that nobody will see. */
  static void discard(Object value) {
    if (value instanceof AutoCloseable open) {
      try {
        open.close();
      } catch (Exception unimportant) {
        // It was to be thrown away, and the request goes on.
        assert unimportant != null;
      }
    }
  }
}
