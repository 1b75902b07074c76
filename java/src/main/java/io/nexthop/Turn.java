package io.nexthop;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** Asks a request again and again, without a thread of its own, until the answer is not a wait. */
final class Turn implements Request.Waiter {
  private final Request request;
  private final Consumer<Choice> answer;
  private final Consumer<Throwable> failure;
  private CompletableFuture<Void> signal;
  private boolean enlisted;
  private boolean woken;
  private boolean stopped;

  Turn(Request request, Consumer<Choice> answer, Consumer<Throwable> failure) {
    this.request = request;
    this.answer = answer;
    this.failure = failure;
  }

  /** Asks; called once from outside, then by itself at the request's executor. */
  void go() {
    Choice choice;
    try {
      synchronized (this) {
        signal = null;
        if (stopped) {
          return;
        }
      }
      choice = request.step();
      if (choice instanceof Wait && enlist()) {
        choice = request.step(); // what happened before enlisting is seen here
      }
      if (choice instanceof Wait wait) {
        arm(wait);
        return;
      }
    } catch (Throwable broken) {
      stop();
      failure.accept(broken);
      return;
    }
    stop();
    answer.accept(choice);
  }

  private boolean enlist() {
    synchronized (this) {
      if (enlisted || stopped) {
        return false;
      }
      enlisted = true;
    }
    request.enlist(this);
    return true;
  }

  private void arm(Wait wait) {
    CompletableFuture<Void> next = new CompletableFuture<>();
    boolean now;
    synchronized (this) {
      if (stopped) {
        return;
      }
      now = woken;
      woken = false;
      signal = now ? null : next;
    }
    next.thenRunAsync(this::go, request.executor()).whenComplete((done, rejected) -> {
      if (rejected != null) { // the executor takes nothing any more
        stop();
        failure.accept(Failures.cause(rejected));
      }
    });
    if (now) {
      next.complete(null);
    } else if (wait.duration() != null) {
      next.completeOnTimeout(null, Durations.nanos("wait", wait.duration()) & Long.MAX_VALUE, TimeUnit.NANOSECONDS);
    }
  }

  @Override
  public void wake() {
    CompletableFuture<Void> waiting;
    synchronized (this) {
      waiting = signal;
      signal = null;
      woken = waiting == null;
    }
    if (waiting != null) {
      waiting.complete(null); // goes on at the executor, never in the thread that woke
    }
  }

  void stop() {
    boolean listed;
    synchronized (this) {
      stopped = true;
      listed = enlisted;
      enlisted = false;
    }
    if (listed) {
      request.delist(this);
    }
  }
}
