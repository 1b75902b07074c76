package io.nexthop;

import java.io.Closeable;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/** Active checks that daemon threads perform, until it or the engine is closed. Hosts keep the health that they have then. */
public final class CheckLoop implements AutoCloseable {
  // Updates bring checks unannounced; a coarse clock may lag behind its deadline.
  private static final long LOOK = TimeUnit.SECONDS.toNanos(1);
  private static final long TICK = TimeUnit.MILLISECONDS.toNanos(1);

  private final Engine engine;
  private final CheckOptions options;
  private final Semaphore free;
  private final ScheduledExecutorService timer;
  private final ExecutorService workers;
  private final Set<String> told = new HashSet<>();
  private final Set<Connection> open = ConcurrentHashMap.newKeySet();
  private ScheduledFuture<?> next;
  private volatile boolean closed;

  CheckLoop(Engine engine, CheckOptions options) {
    this.engine = engine;
    this.options = options;
    free = new Semaphore(options.threads);
    ThreadFactory daemons = task -> {
      Thread thread = new Thread(task, "nexthop-checks");
      thread.setDaemon(true);
      return thread;
    };
    timer = Executors.newSingleThreadScheduledExecutor(daemons);
    workers = Executors.newCachedThreadPool(daemons);
    timer.execute(this::round);
  }

  /** In the timer's thread: hands out what is due while there are threads for it. */
  private void round() {
    long pause = LOOK;
    try {
      while (free.tryAcquire()) {
        Check check = Check.poll(engine);
        if (check == null) {
          free.release();
          Duration due = engine.checksDeadline();
          pause = due == null ? LOOK : Math.min(Math.max(due.toNanos(), TICK), LOOK);
          break;
        }
        workers.execute(() -> perform(check));
      }
    } catch (UsageException gone) {
      close();
      return;
    }
    if (next != null) {
      next.cancel(false);
    }
    next = timer.schedule(this::round, pause, TimeUnit.NANOSECONDS);
  }

  private void perform(Check check) {
    try {
      ask(check);
    } catch (UsageException over) {
      // Out of time, its host has left, or the engine is closed: nothing is to be reported.
    } finally {
      free.release();
      try {
        timer.execute(this::round); // the result has set when this host is due again
      } catch (RejectedExecutionException gone) {
        // nobody looks again
      }
    }
  }

  private void ask(Check check) {
    if (check.protocol() == Check.Protocol.CUSTOM) {
      other(check);
      return;
    }
    try (Connection connection = new Connection(check, options.tls)) {
      open.add(connection);
      ScheduledFuture<?> late = timer.schedule(() -> quietly(connection), check.timeout().toNanos(), TimeUnit.NANOSECONDS);
      try {
        connection.ask();
      } catch (IOException | RuntimeException failed) {
        if (failed instanceof UsageException over) {
          throw over;
        }
        if (closed) {
          return; // this side's doing
        }
        check.fail(late.isDone() ? new SocketTimeoutException("the check took too long") : failed);
      } finally {
        late.cancel(false);
        open.remove(connection);
      }
    } catch (RejectedExecutionException gone) {
      open.clear(); // given up with the loop: the time of what is under way runs out
    } catch (IOException broken) {
      // closing it is all that was left to do
    }
  }

  private void other(Check check) {
    if (options.others != null) {
      try {
        options.others.accept(check);
      } catch (UsageException over) {
        throw over;
      } catch (RuntimeException broken) {
        check.fail(broken);
      }
      return;
    }
    boolean first;
    synchronized (told) {
      first = told.add(check.cluster() + '\0' + check.name());
    }
    if (first) {
      System.getLogger("io.nexthop").log(System.Logger.Level.WARNING, "the health check \"" + check.name() + "\" of cluster \""
          + check.cluster() + "\" is custom (" + check.extension() + "): name a function that performs it with"
          + " CheckOptions.others; until then its hosts count as unreachable");
    }
    check.fail(Failure.LOCAL_CONNECT_FAILURE);
  }

  private static void quietly(Closeable connection) {
    try {
      connection.close();
    } catch (IOException broken) {
      // that is what was wanted
    }
  }

  /** Ends the threads; what is under way counts as timed out when its time is over. */
  @Override
  public void close() {
    closed = true;
    timer.shutdownNow();
    workers.shutdownNow();
    open.forEach(CheckLoop::quietly);
  }
}
