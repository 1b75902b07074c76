package io.nexthop;

import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * One downstream request. Ask {@code chooseHost} for an attempt, send and report it, and ask again while verdicts
 * say retry; or let {@code run} do that. Closing it ends it: what was not reported by then is cancelled.
 */
public final class Request implements AutoCloseable, Iterable<Attempt> {
  private static final int CLIENT_GONE = 1;
  private static final String ROUTE = "route:";

  final Engine engine;
  private final byte[] head;
  private final String path;
  private final String named;
  private final Executor executor;
  /** Held for a few instructions or one engine call, never while waiting. */
  private final Object lock = new Object();
  private Set<Waiter> waiters = Set.of();
  private volatile long id;
  private volatile boolean closed;
  private volatile boolean handed;
  private volatile LocalReply reply;
  private volatile Consumer<Attempt> aborter;
  private boolean bodyDone;
  private Cleaner.Cleanable cleanable;

  /** Something that waits for this request's turn. */
  interface Waiter {
    void wake();
  }

  /** Sends one attempt; what it throws becomes the matching failure. */
  public interface SendFunction<T> {
    /** Sends it, and reports it unless a success without a status is meant. */
    T send(Attempt attempt) throws Exception;
  }

  Request(Engine engine, byte[] head, String path, String named, Executor executor) {
    this.engine = engine;
    this.head = head;
    this.path = path;
    this.named = named;
    this.executor = executor;
  }

  /**
   * The next attempt; waits in this thread for back-off, queue and hedge delay. Interrupting keeps the place.
   *
   * @throws RefusedException there will be no attempt
   * @throws UsageException {@code state}: an attempt is open, or its response goes on; {@code ended}; {@code
   *     invalid}, {@code limit}: the head is wrong; {@code closed}
   * @throws InterruptedException while waiting; the request keeps its place
   */
  public Attempt chooseHost() throws InterruptedException {
    return Waiting.attempt(Waiting.block(this));
  }

  /** The next attempt, when it is there. Cancelling the future ends the request. */
  public CompletableFuture<Attempt> chooseHostAsync() {
    return Waiting.later(this);
  }

  /**
   * The next attempt, a wait or a refusal; never waits.
   *
   * @throws UsageException {@code state}: an attempt is open, or its response goes on; {@code ended}; {@code
   *     invalid}, {@code limit}: the head is wrong; {@code closed}
   */
  public Choice tryChooseHost() {
    return step();
  }

  /**
   * Sends attempts until one is final: retries, waits, reports what the function leaves unreported. Its own
   * exception goes on when it is final; {@link #reply} then has what to answer. Never has two attempts in flight.
   *
   * @throws RefusedException there will be no attempt
   * @throws Exception what the function threw for the last attempt
   */
  public <T> T run(SendFunction<T> send) throws Exception {
    Objects.requireNonNull(send, "send");
    return BlockingRun.run(this, send);
  }

  /** As {@link #run}, and hedges; cancels what lost. Cancelling the future ends the request. */
  public <T> CompletableFuture<T> runAsync(Function<Attempt, CompletableFuture<T>> send) {
    Objects.requireNonNull(send, "send");
    return new AsyncRun<>(this, send).start();
  }

  /** What to answer the client after a refusal, or when the last attempt failed for good. */
  public Optional<LocalReply> reply() {
    return Optional.ofNullable(reply);
  }

  /** Headers to add to the client's response. */
  public Map<String, String> responseHeaders() {
    Map<String, String> all = new LinkedHashMap<>();
    if (id != 0) {
      Replies.extra(id).forEach((name, value) -> value.ifPresent(text -> all.put(name, text)));
    }
    return Collections.unmodifiableMap(all);
  }

  /** The upload of a streaming body is complete: time-outs begin, before the first choice with it. */
  public void bodyComplete() {
    synchronized (lock) {
      bodyDone = true;
      if (id != 0) {
        engine.note(id, Note.BODY_COMPLETE);
      }
    }
  }

  /**
   * A fact between choices and reports. Nothing happens when the request has ended.
   *
   * @throws UsageException {@code state}: before the first choice; {@code closed}
   */
  public void note(Note what) {
    Objects.requireNonNull(what, "what");
    if (id == 0) {
      throw new UsageException("state", "no attempt has begun yet; choose a host first");
    }
    engine.note(id, what);
  }

  /** The cluster that the caller or the route named. Known after the first choice, or when it was named. */
  public String cluster() {
    return id == 0 && named != null && !named.startsWith(ROUTE) ? named : facts().cluster();
  }

  /** The matched or named route. Known after the first choice. */
  public Optional<String> route() {
    if (id == 0 && named != null) {
      return named.startsWith(ROUTE) ? Optional.of(named.substring(ROUTE.length())) : Optional.empty();
    }
    String route = facts().route();
    return route.isEmpty() ? Optional.empty() : Optional.of(route);
  }

  /**
   * The global limit; null = none. Known after the first choice.
   *
   * @throws UsageException {@code state}: before the first choice
   */
  public Duration timeout() {
    return facts().timeout();
  }

  /**
   * Attempts until one is final. Coming round with the last attempt unreported cancels it and stops; one whose headers
   * were reported and whose body was not handed over ends. An
   * interruption while waiting ends the request and is thrown as {@link CancellationException}.
   */
  @Override
  public Iterator<Attempt> iterator() {
    return new Rounds();
  }

  /** Ends the request: open attempts are cancelled, its place in a queue is given up. Harmless when it is done. */
  @Override
  public void close() {
    long known;
    Cleaner.Cleanable dropped;
    synchronized (lock) {
      closed = true;
      known = id;
      dropped = handed ? null : cleanable;
    }
    if (known != 0 && !handed) {
      long word = Native.finish(known, CLIENT_GONE);
      if (word < 0 && word != Errors.CLOSED) {
        throw Errors.of((int) word);
      }
      engine.signals(word < 0 ? 0 : Verdict.bits(word));
    }
    if (dropped != null) {
      dropped.clean(); // it has nothing left to do, and need not be remembered
    }
    wake();
  }

  /** One question to the engine; the first one makes the request. */
  Choice step() {
    DecisionBuffer d = DecisionBuffer.take();
    try {
      int kind = id == 0 ? first(d) : Native.choose(id, d.address);
      return decided(kind, d);
    } finally {
      d.give();
    }
  }

  private int first(DecisionBuffer d) {
    synchronized (lock) {
      if (closed) {
        return Errors.ENDED;
      }
      if (id != 0) {
        return Native.choose(id, d.address);
      }
      int kind = Native.begin(engine.id, bodyDone ? Head.uploaded(head) : head, d.address);
      if (kind > 0) {
        id = d.request();
        if (d.remaining() == Durations.NEVER) {
          cleanable = engine.endWhenDropped(this, id); // nothing else would ever do it
        }
      }
      return kind;
    }
  }

  private Choice decided(int kind, DecisionBuffer d) {
    if (kind < 0) {
      throw kind == Errors.ENDED ? Errors.of(kind, "the request has ended; begin a new one") : Errors.of(kind);
    }
    int bits = d.bits();
    Choice choice = switch (kind) {
      case DecisionBuffer.GO -> engine.attempt(this, d);
      case DecisionBuffer.WAIT -> new Wait(Durations.of(d.waiting()), Names.of(Names.WAIT, d.refusal()));
      default -> Replies.refusal(engine, named, d);
    };
    if (choice instanceof Refusal refusal) {
      reply = refusal.reply();
      if ((bits & Verdict.ABORT_OTHERS) != 0) {
        abortOthers(null);
      }
    }
    engine.signals(bits);
    return choice;
  }

  private Facts facts() {
    if (id == 0) {
      throw new UsageException("state", "no attempt has begun yet; choose a host first");
    }
    return Facts.of(id);
  }

  String path() {
    return path;
  }

  Executor executor() {
    return executor;
  }

  /** The body of the response reports from now on. */
  void handedOver() {
    handed = true;
  }

  /** A failure was final: what to answer is there now and not much longer. */
  void failedForGood(long request) {
    LocalReply found = Replies.local(request);
    if (found != null) {
      reply = found;
    }
  }

  void onAbort(Consumer<Attempt> listener) {
    aborter = listener;
  }

  void abortOthers(Attempt winner) {
    Consumer<Attempt> listener = aborter;
    if (listener != null) {
      listener.accept(winner);
    }
  }

  /** Somebody waits for a report of the attempts in flight, perhaps. */
  void reported() {
    if (engine.hasWaiters()) {
      wake();
    }
  }

  void enlist(Waiter waiter) {
    synchronized (lock) {
      Set<Waiter> more = new LinkedHashSet<>(waiters);
      more.add(waiter);
      waiters = more;
      engine.enlist(id, this);
    }
  }

  void delist(Waiter waiter) {
    synchronized (lock) {
      Set<Waiter> less = new LinkedHashSet<>(waiters);
      less.remove(waiter);
      waiters = less;
      if (less.isEmpty()) {
        engine.delist(id, this);
      }
    }
  }

  void wake() {
    Set<Waiter> all; // never changed once it is there
    synchronized (lock) {
      all = waiters;
    }
    all.forEach(Waiter::wake);
  }

  private final class Rounds implements Iterator<Attempt> {
    private Attempt last;
    private boolean over;

    @Override
    public boolean hasNext() {
      if (!over && last != null && (last.verdict() == null || !last.verdict().retry())) {
        over = true;
        if (last.verdict() == null) {
          last.close();
          Request.this.close();
        } else if (last.answered()) {
          last.end(); // its body was the loop's; one that was handed over ends by itself
        }
      }
      return !over;
    }

    @Override
    public Attempt next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      over = true;
      try {
        last = chooseHost();
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        Request.this.close();
        throw new CancellationException("interrupted while waiting for a host");
      }
      over = false;
      return last;
    }
  }
}
