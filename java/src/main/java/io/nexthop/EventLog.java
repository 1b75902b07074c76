package io.nexthop;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A log of an engine's events, made by {@link Engine#logEvents(Sink, Duration)}: a daemon thread that every so often runs due
 * maintenance and hands each event to a sink. It holds the engine until either is closed, which writes what is left.
 *
 * <p>Any thread may use it. Two logs of one engine share its events: each line goes to one of them.
 */
public final class EventLog implements AutoCloseable {
  /** Takes one event: a JSON object without a line end. Called by one thread at a time. */
  @FunctionalInterface
  public interface Sink {
    /** A line whose sink throws is kept and handed over again in the next round. */
    void write(String line) throws IOException;
  }

  private final Engine engine;
  private final Sink sink;
  private final long every;
  private final Thread thread = new Thread(this::run, "nexthop-events");
  private final ReentrantLock rounds = new ReentrantLock();
  private final ReentrantLock state = new ReentrantLock();
  private final Condition closing = state.newCondition();
  private volatile boolean closed;
  private String kept;
  private volatile Throwable error;

  EventLog(Engine engine, Sink sink, Duration every) {
    this.engine = engine;
    this.sink = Objects.requireNonNull(sink, "sink");
    this.every = Durations.nanos("every", Objects.requireNonNull(every, "every"));
    if (this.every == 0) {
      throw Errors.invalid("every is " + every + "; it must be above 0");
    }
    engine.maintain(); // a closed engine has no log
    thread.setDaemon(true);
  }

  void start() {
    thread.start();
  }

  /** Opened for each line, so that whoever rotates logs needs to tell nobody. */
  static Sink to(Path file) {
    Objects.requireNonNull(file, "file");
    return line -> Files.write(file, (line + "\n").getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE,
        StandardOpenOption.APPEND);
  }

  static Sink to(System.Logger logger) {
    Objects.requireNonNull(logger, "logger");
    return line -> logger.log(System.Logger.Level.INFO, line);
  }

  private void run() {
    while (turn()) {
      state.lock();
      try {
        if (!closed) {
          closing.await(every, TimeUnit.NANOSECONDS);
        }
        if (closed) {
          return;
        }
      } catch (InterruptedException asked) {
        return;
      } finally {
        state.unlock();
      }
    }
  }

  /** A round of the thread, unless closing was faster: the last round is that of {@link #close()}, the engine may be gone. */
  private boolean turn() {
    rounds.lock();
    try {
      return !closed && round();
    } finally {
      rounds.unlock();
    }
  }

  /** Whether the engine is open. */
  private boolean round() {
    try {
      flush();
    } catch (UsageException over) {
      return !over.code().equals("closed");
    } catch (IOException | RuntimeException failed) {
      return true; // error() tells
    }
    return true;
  }

  /**
   * Writes now what there is, and gives the number of lines.
   *
   * @throws IOException the sink's; its line is kept
   * @throws UsageException {@code closed}: the engine was closed
   */
  public int flush() throws IOException {
    rounds.lock();
    try {
      // Sweeps and the ends of ejections happen here when no request makes them happen.
      engine.maintain();
      int written = 0;
      for (String line = next(); line != null; line = next()) {
        kept = line;
        sink.write(line);
        kept = null;
        written++;
      }
      error = null;
      return written;
    } catch (IOException | RuntimeException failed) {
      error = failed;
      throw failed;
    } finally {
      rounds.unlock();
    }
  }

  private String next() {
    return kept != null ? kept : engine.pollEvent();
  }

  /** Why the sink failed in the newest round; empty when it did not. */
  public Optional<Throwable> error() {
    return Optional.ofNullable(error);
  }

  /** Ends the thread and writes what is left; what the sink throws then is in {@link #error()}. */
  @Override
  public void close() {
    state.lock();
    try {
      if (closed) {
        return;
      }
      closed = true;
      closing.signalAll();
    } finally {
      state.unlock();
    }
    engine.forget(this);
    round();
  }
}
