package io.nexthop;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/** The ready-made loop without a thread: attempts in flight by their futures, and at most one turn for the next. */
final class AsyncRun<T> {
  private final Request request;
  private final Function<Attempt, CompletableFuture<T>> send;
  private final CompletableFuture<T> result = new CompletableFuture<>();
  private final Map<Attempt, CompletableFuture<T>> flights = new LinkedHashMap<>();
  private Turn turn;
  private boolean over;

  AsyncRun(Request request, Function<Attempt, CompletableFuture<T>> send) {
    this.request = request;
    this.send = send;
  }

  CompletableFuture<T> start() {
    request.onAbort(this::abortOthers);
    result.whenComplete((value, failure) -> {
      if (result.isCancelled()) {
        stop();
        request.close();
      }
    });
    next();
    return result;
  }

  private void next() {
    Turn mine;
    synchronized (this) {
      if (over || turn != null) {
        return;
      }
      mine = new Turn(request, this::chosen, this::broken);
      turn = mine;
    }
    mine.go();
  }

  private void chosen(Choice choice) {
    boolean late;
    synchronized (this) {
      turn = null;
      late = over;
      if (!late && choice instanceof Attempt attempt) {
        flights.put(attempt, new CompletableFuture<>());
      }
    }
    if (!(choice instanceof Attempt attempt)) {
      broken(new RefusedException((Refusal) choice));
    } else if (late) {
      attempt.close();
    } else {
      fly(attempt);
    }
  }

  private void fly(Attempt attempt) {
    CompletableFuture<T> flight;
    try {
      flight = Objects.requireNonNull(send.apply(attempt), "the future that send gave");
    } catch (Throwable thrown) {
      flight = CompletableFuture.failedFuture(thrown);
    }
    boolean lost;
    synchronized (this) {
      lost = flights.replace(attempt, flight) == null;
    }
    if (lost) {
      flight.cancel(true);
    }
    flight.whenComplete((value, thrown) -> landed(attempt, value, thrown));
    long hedge = attempt.hedgeNanos();
    if (hedge != Durations.NEVER && hedge >= 0) {
      CompletableFuture.delayedExecutor(hedge, TimeUnit.NANOSECONDS, request.executor()).execute(this::next);
    }
  }

  private void landed(Attempt attempt, T value, Throwable thrown) {
    synchronized (this) {
      if (flights.remove(attempt) == null) {
        Sending.discard(value); // it lost, or the whole request is over
        return;
      }
    }
    try {
      Throwable cause = thrown == null ? null : Failures.cause(thrown);
      Verdict verdict = cause == null ? Sending.returned(attempt) : Sending.threw(attempt, cause);
      if (verdict == null || verdict.action() == Verdict.Action.FORWARD) {
        if (cause != null) {
          broken(cause);
        } else {
          succeeded(value);
        }
        return;
      }
      Sending.discard(value);
      if (verdict.retry()) {
        next();
      }
    } catch (Throwable misuse) {
      broken(misuse);
    }
  }

  private void succeeded(T value) {
    stop();
    if (!result.complete(value)) {
      Sending.discard(value);
      request.close();
    }
  }

  private void broken(Throwable failure) {
    stop();
    request.close();
    result.completeExceptionally(failure);
  }

  /** Nothing starts or counts any more; what is in flight is given up. */
  private void stop() {
    Turn waiting;
    synchronized (this) {
      over = true;
      waiting = turn;
      turn = null;
    }
    if (waiting != null) {
      waiting.stop();
    }
    abortOthers(null);
  }

  private void abortOthers(Attempt winner) {
    Map<Attempt, CompletableFuture<T>> lost;
    synchronized (this) {
      lost = new LinkedHashMap<>(flights);
      lost.remove(winner);
      flights.keySet().removeAll(lost.keySet());
    }
    lost.forEach((attempt, flight) -> {
      attempt.close();
      flight.cancel(true);
    });
  }
}
