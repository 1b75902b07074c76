package io.nexthop;

import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;

/** A response stream that reports its attempt: at its end, its error, or when the reader gives up. */
final class BodyPublisher<T> implements Flow.Publisher<T> {
  private final Attempt attempt;
  private final Flow.Publisher<T> chunks;

  BodyPublisher(Attempt attempt, Flow.Publisher<T> chunks) {
    this.attempt = attempt;
    this.chunks = chunks;
  }

  @Override
  public void subscribe(Flow.Subscriber<? super T> reader) {
    chunks.subscribe(new Reporting<>(attempt, reader));
  }

  private static final class Reporting<T> implements Flow.Subscriber<T> {
    private final Attempt attempt;
    private final Flow.Subscriber<? super T> reader;
    private final AtomicBoolean over = new AtomicBoolean();

    Reporting(Attempt attempt, Flow.Subscriber<? super T> reader) {
      this.attempt = attempt;
      this.reader = reader;
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
      reader.onSubscribe(new Flow.Subscription() {
        @Override
        public void request(long n) {
          subscription.request(n);
        }

        @Override
        public void cancel() {
          if (over.compareAndSet(false, true)) {
            quietly(attempt::cancel);
          }
          subscription.cancel();
        }
      });
    }

    @Override
    public void onNext(T chunk) {
      reader.onNext(chunk);
    }

    @Override
    public void onError(Throwable failure) {
      if (over.compareAndSet(false, true)) {
        quietly(() -> attempt.fail(failure));
      }
      reader.onError(failure);
    }

    @Override
    public void onComplete() {
      if (over.compareAndSet(false, true)) {
        quietly(attempt::end);
      }
      reader.onComplete();
    }

    /** A stream that outlives its lease or its engine still belongs to its reader. */
    private static void quietly(Runnable report) {
      try {
        report.run();
      } catch (UsageException late) {
        assert late.code().equals("ended") || late.code().equals("closed") : late;
      }
    }
  }
}
