package io.nexthop;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.net.URI;
import java.net.http.HttpRequest;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Flow;

/**
 * One upstream try: send it to {@link #host}, then report it once, by {@code complete}, by {@code onHeaders} and
 * later {@code end}, or by {@code fail}. What is closed without a report is cancelled.
 */
public final class Attempt implements AutoCloseable, Choice {
  private static final int OPEN = 0;
  private static final int ANSWERED = 1;
  private static final int HANDED = 2;
  private static final int ENDED = 3;

  private static final int BIT_HEADERS = 16;
  private static final int BIT_REWRITE = 4096;
  private static final int EXPLAIN_ATTEMPT = 9;

  private static final VarHandle STATE;
  private static final VarHandle VERDICT;

  static {
    try {
      MethodHandles.Lookup here = MethodHandles.lookup();
      STATE = here.findVarHandle(Attempt.class, "state", int.class);
      VERDICT = here.findVarHandle(Attempt.class, "verdict", Verdict.class);
    } catch (ReflectiveOperationException impossible) {
      throw new ExceptionInInitializerError(impossible);
    }
  }

  final Engine engine;
  /** null for a stateless attempt. */
  final Request request;
  final long id;
  private final long requestId;
  private final Host host;
  private final int number;
  private final int bits;
  private final int wants;
  private final long tryTimeout;
  private final long remaining;
  private final long wait;
  // Written with release and read with acquire: the engine decides who wins, these are what this side remembers.
  private int state;
  private Verdict verdict;

  Attempt(Engine engine, Request request, DecisionBuffer d) {
    this.engine = engine;
    this.request = request;
    id = d.attempt();
    requestId = d.request();
    number = d.number();
    bits = d.bits();
    wants = d.wants();
    tryTimeout = d.tryTimeout();
    remaining = d.remaining();
    wait = d.waiting();
    host = engine.hosts.get(d.host(), d.hostVersion());
  }

  /** Attempt number, counted from 1. */
  public int number() {
    return number;
  }

  /** Where to send it. */
  public Host host() {
    return host;
  }

  /** The cluster that owns the host. */
  public String cluster() {
    return host.cluster();
  }

  /** The answer to the report; null before it. */
  public Verdict verdict() {
    return (Verdict) VERDICT.getAcquire(this);
  }

  /** Headers to add to the upstream request; empty = remove. */
  public Map<String, Optional<String>> headers() {
    if ((bits & BIT_HEADERS) == 0) {
      return Map.of();
    }
    Map<String, Optional<String>> all = new LinkedHashMap<>();
    Replies.extra(id).forEach((name, value) -> {
      if (name.equals(":authority")) {
        all.put("host", value);
      } else if (!name.startsWith(":")) {
        all.put(name, value);
      }
    });
    return all;
  }

  /** To response headers; null = no limit. */
  public Duration timeout() {
    return Durations.of(tryTimeout);
  }

  /** To the end of the body; null = no limit. */
  public Duration remaining() {
    return Durations.of(remaining);
  }

  /**
   * Between two pieces of the body; null = no limit.
   *
   * @throws UsageException {@code ended}: it is too long ago; {@code closed}
   */
  public Duration idleTimeout() {
    return Facts.of(requestId).idleTimeout();
  }

  /** When to choose again although this attempt is in flight; null = not before a verdict says retry. */
  public Duration hedgeAfter() {
    return Durations.of(wait);
  }

  long hedgeNanos() {
    return wait;
  }

  /** Where to send it; null = the request's own path. */
  public URI uri(String path) {
    String to = path != null ? path : request == null ? "/" : request.path();
    if (path == null && (bits & BIT_REWRITE) != 0) {
      to = Replies.extra(id).getOrDefault(":path", Optional.empty()).orElse(to);
    }
    return Uris.of(host, to);
  }

  /** A request with URI, time-out if there is one, and the headers to add; null = the request's own path. */
  public HttpRequest.Builder newRequest(String path) {
    HttpRequest.Builder builder = HttpRequest.newBuilder(uri(path));
    Duration limit = timeout();
    if (limit != null) {
      builder.timeout(limit.isZero() ? Duration.ofNanos(1) : limit);
    }
    headers().forEach((name, value) -> value.ifPresent(text -> {
      try {
        builder.setHeader(name, text);
      } catch (IllegalArgumentException reserved) {
        // java.net.http writes this header itself unless a system property allows it.
        assert name.equals("host") : reserved;
      }
    }));
    return builder;
  }

  /**
   * The whole report: this status, and nothing that needs a header.
   *
   * @throws UsageException {@code invalid}: the status is not 0 or 100 to 999; {@code ended}: it was reported before;
   *     {@code state}: it was answered, use {@code end}; {@code closed}
   */
  public Verdict complete(int status) {
    return reported(Native.complete(id, status));
  }

  /**
   * The whole report.
   *
   * @throws UsageException {@code invalid}: the status is not 0 or 100 to 999; {@code ended}: it was reported before;
   *     {@code state}: it was answered, use {@code end}; {@code closed}
   */
  public Verdict complete(int status, HeaderSource headers) {
    Objects.requireNonNull(headers, "headers");
    byte[] block = engine.wants.block(wanted(status), headers);
    return block == null ? complete(status)
        : reported(Native.report(0, id, Checks.status(status), 0, -1, 0, 0, 0, block, null));
  }

  /**
   * The whole report.
   *
   * @throws UsageException {@code invalid}: the status is not 0 or 100 to 999; {@code ended}: it was reported before;
   *     {@code state}: it was answered, use {@code end}; {@code closed}
   */
  public Verdict complete(Outcome outcome) {
    Objects.requireNonNull(outcome, "outcome");
    return reported(report(0, outcome));
  }

  /**
   * Response headers are there: retry or forward? After forward, {@code end} is due.
   *
   * @throws UsageException {@code invalid}: the status is not 0 or 100 to 999; {@code ended}: it was reported before;
   *     {@code state}: it was answered, use {@code end}; {@code closed}
   */
  public Verdict onHeaders(int status, HeaderSource headers) {
    Objects.requireNonNull(headers, "headers");
    byte[] block = engine.wants.block(wanted(status), headers);
    long word = Native.report(1, id, Checks.status(status), 0, -1, 0, 0, 0, block, null);
    if (word >= 0 && (word & 3) <= 1) {
      STATE.setRelease(this, (word & 3) == 1 ? ANSWERED : OPEN);
      return remember(word);
    }
    return reported(word);
  }

  /**
   * The stream is over.
   *
   * @throws UsageException {@code state}: no headers were reported; {@code closed}
   */
  public void end() {
    released(Native.end(id));
  }

  /**
   * The stream is over, with trailers.
   *
   * @throws UsageException {@code state}: no headers were reported; {@code closed}
   */
  public void end(Outcome trailers) {
    Objects.requireNonNull(trailers, "trailers");
    released(report(2, trailers));
  }

  /**
   * It failed; after {@code onHeaders}: the body broke.
   *
   * @throws UsageException {@code ended}: it was reported before; {@code closed}
   */
  public Verdict fail(Failure failure) {
    Objects.requireNonNull(failure, "failure");
    return failed(Native.fail(id, failure.number));
  }

  /**
   * It failed with this exception of an HTTP client. An exception that is not the upstream's fault cancels the
   * attempt; the verdict then never says retry.
   *
   * @throws UsageException {@code ended}: it was reported before; {@code closed}
   */
  public Verdict fail(Throwable failure) {
    Objects.requireNonNull(failure, "failure");
    Failure kind = Failures.of(failure);
    if (kind == null) {
      long word = Native.cancel(id);
      released(word);
      return Verdict.of(Math.max(0, word));
    }
    int phase = (int) STATE.getAcquire(this) == OPEN ? 0 : 2;
    return failed(report(phase, Outcome.failed(kind).detail(Failures.detail(failure))));
  }

  /**
   * A fact before the report. Nothing happens when the attempt has ended.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public void note(Note what) {
    Objects.requireNonNull(what, "what");
    engine.note(id, what);
  }

  /**
   * Hands the attempt over to this response stream: its end, error or early cancel reports. From then on leaving a
   * scope and {@link Request#close} leave the attempt alone.
   *
   * @throws UsageException {@code state}: no headers were reported; {@code ended}: it has ended, or its body was
   *     handed over before
   */
  public <T> Flow.Publisher<T> body(Flow.Publisher<T> chunks) {
    Objects.requireNonNull(chunks, "chunks");
    if (!STATE.compareAndSet(this, ANSWERED, HANDED)) {
      int now = (int) STATE.getAcquire(this);
      throw now == OPEN ? new UsageException("state", "the attempt has no response yet; report its headers before handing over the body")
          : new UsageException("ended", "attempt " + number + " has ended or its body was handed over already");
    }
    if (request != null) {
      request.handedOver();
    }
    return new BodyPublisher<>(this, chunks);
  }

  /**
   * Why this host: the whole trail when the head asked for it, else one line.
   *
   * @throws UsageException {@code not_found}: it is too long ago; {@code closed}
   */
  public Explanation explain() {
    return new Explanation(Json.object(engine.text(EXPLAIN_ATTEMPT, Long.toUnsignedString(id))));
  }

  /**
   * Drops the attempt: no outlier report, no retry. Harmless when it has ended.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public void cancel() {
    released(Native.cancel(id));
  }

  /** As {@link #cancel}, but leaves alone what was reported or handed over, and a closed engine is no error. */
  @Override
  public void close() {
    int now = (int) STATE.getAcquire(this);
    if (now == OPEN || now == ANSWERED) {
      long word = Native.cancel(id);
      released(word == Errors.CLOSED ? 0 : word);
    }
  }

  boolean open() {
    return (int) STATE.getAcquire(this) == OPEN;
  }

  boolean answered() {
    return (int) STATE.getAcquire(this) == ANSWERED;
  }

  private int wanted(int status) {
    return status < 400 ? wants & 0xffff : wants >>> 16;
  }

  private long report(int phase, Outcome o) {
    int set = o.failure != null || o.status >= 400 ? wants >>> 16 : wants & 0xffff;
    byte[] block = engine.wants.block(set, o.headers);
    byte[] detail = o.detail == null ? null : Packer.utf8("detail", o.detail);
    return Native.report(phase, id, o.status, o.failureNumber(), o.grpcStatus, o.bits, o.latency, o.bytes, block,
        detail);
  }

  private Verdict reported(long word) {
    if (word < 0) {
      throw Errors.of((int) word);
    }
    STATE.setRelease(this, ENDED);
    return remember(word);
  }

  private Verdict failed(long word) {
    Verdict answer = reported(word);
    if (request != null && !answer.retry()) {
      request.failedForGood(requestId);
    }
    return answer;
  }

  private Verdict remember(long word) {
    Verdict answer = Verdict.of(word);
    VERDICT.setRelease(this, answer);
    int signals = Verdict.bits(word);
    if (signals != 0) {
      signal(signals);
    }
    if (request != null) {
      request.reported();
    }
    return answer;
  }

  private void released(long word) {
    if (word < 0) {
      throw Errors.of((int) word);
    }
    STATE.setRelease(this, ENDED);
    int signals = Verdict.bits(word);
    if (signals != 0) {
      signal(signals);
    }
    if (request != null) {
      request.reported();
    }
  }

  private void signal(int signals) {
    if ((signals & Verdict.ABORT_OTHERS) != 0 && request != null) {
      request.abortOthers(this);
    }
    engine.signals(signals);
  }

  @Override
  public String toString() {
    return "attempt " + number + " to " + host;
  }
}
