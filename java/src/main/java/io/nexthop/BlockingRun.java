package io.nexthop;

/** The ready-made loop of one thread. */
final class BlockingRun {
  private BlockingRun() {}

  static <T> T run(Request request, Request.SendFunction<T> send) throws Exception {
    boolean done = false;
    try {
      for (;;) {
        Attempt attempt = request.chooseHost();
        T value;
        try {
          value = send.send(attempt);
        } catch (Throwable thrown) {
          Verdict verdict = Sending.threw(attempt, thrown);
          if (verdict != null && verdict.retry()) {
            continue;
          }
          throw thrown;
        }
        if (!Sending.returned(attempt).retry()) {
          done = true;
          return value;
        }
        Sending.discard(value);
      }
    } finally {
      if (!done) {
        request.close();
      }
    }
  }
}
