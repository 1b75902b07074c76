package io.nexthop;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * An active check to perform now: connect to {@link #address}, ask, report once. What is not reported within {@link #timeout}
 * counts as timed out. Reports throw {@link UsageException} with the code {@code ended} when it was reported before, is out of
 * time, or its host has left: nothing has changed then.
 */
public final class Check {
  /** What a check speaks. */
  public enum Protocol {
    /** One request over HTTP. */
    HTTP,
    /** A connection, and perhaps bytes. */
    TCP,
    /** {@code grpc.health.v1.Health/Check}, over HTTP/2. */
    GRPC,
    /** Something that only the caller knows, see {@link Check#extension}. */
    CUSTOM
  }

  /** How a check ended. */
  public enum Result {
    /** It passed. */
    SUCCESS,
    /** It passed, and the host says that it is degraded. */
    DEGRADED,
    /** The host answered badly, which fails it at once. */
    FAILED,
    /** No connection, reset, disconnect; counts towards the threshold. */
    NETWORK,
    /** No answer in time; counts towards the threshold. */
    TIMEOUT,
    /** The host answered badly in a way that counts towards the threshold. */
    RETRIABLE,
    /** Data traffic says that the host has failed; the check itself is still out. */
    PASSIVE
  }

  private static final int HTTP2 = 1;
  private static final int REUSE = 2;
  private static final int SECURE = 4;
  private static final int JUDGE = 0;

  private final Engine engine;
  private final long id;
  private final int protocol;
  private final int bits;
  private final int want;
  private final long timeout;
  private final int slot;
  private final int version;
  private final long bodyLimit;
  private final String method;
  private final String path;
  private final String authority;
  private final byte[] payload;
  private final String address;
  private final List<Map.Entry<String, String>> headers;
  private final String cluster;
  private final String name;
  private final String extension;

  private Check(Engine engine, Unpacker in) {
    this.engine = engine;
    id = in.longValue();
    protocol = in.intValue();
    bits = in.intValue();
    want = in.intValue();
    timeout = in.longValue();
    slot = in.intValue();
    version = in.intValue();
    bodyLimit = in.longValue();
    method = in.text();
    path = in.text();
    authority = in.text();
    payload = in.bytes();
    address = in.text();
    headers = pairs(in.text());
    cluster = in.text();
    name = in.text();
    extension = in.text();
  }

  /** The next one that is due; null when none is. */
  static Check poll(Engine engine) {
    byte[] packed = Native.pollCheck(engine.id);
    if (packed != null) {
      return new Check(engine, new Unpacker(packed));
    }
    int status = Native.lastStatus();
    if (status == Errors.EMPTY) {
      return null;
    }
    throw Errors.of(status);
  }

  private static List<Map.Entry<String, String>> pairs(String text) {
    String[] words = text.isEmpty() ? new String[0] : text.split("\0", -1);
    List<Map.Entry<String, String>> all = new ArrayList<>();
    for (int i = 0; i + 1 < words.length; i += 2) {
      all.add(Map.entry(words[i], words[i + 1]));
    }
    return List.copyOf(all);
  }

  /** Its number. */
  public long id() {
    return id;
  }

  /** Whom it is about. */
  public Host host() {
    return engine.hosts.get(slot, version);
  }

  /** Name of the host's cluster. */
  public String cluster() {
    return cluster;
  }

  /** Name of the checker; empty when its cluster has one. */
  public String name() {
    return name;
  }

  /** What to speak. */
  public Protocol protocol() {
    Protocol[] all = Protocol.values();
    return protocol >= 1 && protocol <= all.length ? all[protocol - 1] : Protocol.CUSTOM;
  }

  /** Whether it is asked over HTTP/2. */
  public boolean http2() {
    return (bits & HTTP2) != 0;
  }

  /** Whether one connection may carry many checks. */
  public boolean mayReuse() {
    return (bits & REUSE) != 0;
  }

  /** Whether TLS is spoken to the host. */
  public boolean secure() {
    return (bits & SECURE) != 0;
  }

  /** Name of a custom check's extension; empty for others. */
  public String extension() {
    return extension;
  }

  /** {@code ip:port} to connect to: the host's, unless the documents name another to check. */
  public String address() {
    return address;
  }

  /** Method of the request; empty unless HTTP or gRPC. */
  public String method() {
    return method;
  }

  /** Path of the request with its query; empty unless HTTP or gRPC. */
  public String path() {
    return path;
  }

  /** Host header or {@code :authority}; empty unless HTTP or gRPC. */
  public String authority() {
    return authority;
  }

  /** Other headers of the request, names in lower case. */
  public List<Map.Entry<String, String>> headers() {
    return headers;
  }

  /** A body, a framed gRPC message, or plain bytes to send. */
  public byte[] payload() {
    return payload.clone();
  }

  /** How long it may take in all. */
  public Duration timeout() {
    return Duration.ofNanos(timeout);
  }

  /** Bytes of a response's body that are looked at. */
  public long bodyLimit() {
    return bodyLimit < 0 ? Long.MAX_VALUE : bodyLimit;
  }

  /**
   * A result that the caller judged.
   *
   * @throws UsageException {@code ended}, {@code closed}
   */
  public void result(Result result) {
    report(Objects.requireNonNull(result, "result").ordinal() + 1, 0, 0, null, null);
  }

  /**
   * An answer over HTTP or gRPC, which the engine judges; {@code headers} (may be null) finds trailers, too.
   *
   * @throws UsageException {@code invalid}: the status is not 100 to 999; {@code ended}; {@code closed}
   */
  public void answer(int status, HeaderSource headers, byte[] body) {
    report(JUDGE, Checks.status(status), 0, engine.wants.block(want, headers), Objects.requireNonNull(body, "body"));
  }

  /**
   * Everything that a TCP connection has brought so far, nothing once it is up; whether that decides the check, otherwise read on.
   *
   * @throws UsageException {@code ended}, {@code closed}
   */
  public boolean data(byte[] received) {
    return report(JUDGE, 0, 0, null, Objects.requireNonNull(received, "received"));
  }

  /**
   * No (whole) answer. Time-outs count as such, everything else as a matter of the network.
   *
   * @throws UsageException {@code ended}, {@code closed}
   */
  public void fail(Failure failure) {
    report(JUDGE, 0, Objects.requireNonNull(failure, "failure").number, null, null);
  }

  /** The same by what a client threw. */
  public void fail(Throwable thrown) {
    Failure failure = Failures.of(Objects.requireNonNull(thrown, "thrown"));
    // What says nothing about the upstream says that there was no answer.
    fail(failure == null ? Failure.REMOTE_RESET : failure);
  }

  private boolean report(int result, int status, int failure, byte[] headers, byte[] body) {
    try {
      int told = Native.checkResult(engine.id, id, result, status, failure, headers, body);
      RuntimeException wrong = told < 0 && told != Errors.EMPTY ? Errors.of(told) : null;
      engine.signals(Verdict.WAKE);
      if (wrong != null) {
        throw wrong;
      }
      return told == 0;
    } finally {
      Reference.reachabilityFence(engine);
    }
  }

  @Override
  public String toString() {
    return "check " + id + " of " + address + " in " + cluster;
  }
}
