package io.nexthop;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;

/**
 * Waits for a request's turn. Who waits enlists first and asks again before sleeping, so that nothing that happened
 * in between is missed; who wakes only says "ask again".
 */
final class Waiting {
  private Waiting() {}

  static Attempt attempt(Choice choice) {
    if (choice instanceof Attempt attempt) {
      return attempt;
    }
    throw new RefusedException((Refusal) choice);
  }

  /** Parks this thread, with no thread beside it, until the answer is not a wait. */
  static Choice block(Request request) throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    Choice first = request.step();
    if (!(first instanceof Wait)) {
      return first;
    }
    Parked parked = new Parked(Thread.currentThread());
    request.enlist(parked);
    try {
      for (;;) {
        Choice choice = request.step();
        if (!(choice instanceof Wait wait)) {
          return choice;
        }
        parked.await(nanos(wait));
      }
    } finally {
      request.delist(parked);
    }
  }

  private static long nanos(Wait wait) {
    long nanos = wait.duration() == null ? Durations.NEVER : Durations.nanos("wait", wait.duration());
    return nanos == Durations.NEVER ? Long.MAX_VALUE / 2 : Math.min(nanos, Long.MAX_VALUE / 2);
  }

  private static final class Parked implements Request.Waiter {
    private final Thread thread;
    private volatile boolean woken;

    Parked(Thread thread) {
      this.thread = thread;
    }

    @Override
    public void wake() {
      woken = true;
      LockSupport.unpark(thread);
    }

    void await(long nanos) throws InterruptedException {
      long until = System.nanoTime() + nanos;
      while (!woken) {
        long left = until - System.nanoTime();
        if (left <= 0) {
          break;
        }
        LockSupport.parkNanos(this, left);
        if (Thread.interrupted()) {
          throw new InterruptedException();
        }
      }
      woken = false;
    }
  }

  /** The next attempt as a future, which goes on at the request's executor. */
  static CompletableFuture<Attempt> later(Request request) {
    CompletableFuture<Attempt> result = new CompletableFuture<>();
    Turn turn = new Turn(request, choice -> settle(result, choice), result::completeExceptionally);
    result.whenComplete((attempt, failure) -> {
      if (result.isCancelled()) {
        turn.stop();
        request.close();
      }
    });
    turn.go();
    return result;
  }

  private static void settle(CompletableFuture<Attempt> result, Choice choice) {
    if (!(choice instanceof Attempt attempt)) {
      result.completeExceptionally(new RefusedException((Refusal) choice));
    } else if (!result.complete(attempt)) {
      attempt.close(); // cancelled as it was granted
    }
  }
}
