package io.nexthop;

import java.time.Duration;
import java.util.Objects;

/** Facts about an attempt, for reports that say more than a status. Immutable: each method gives a new one. */
public final class Outcome {
  private static final Outcome NOTHING = new Outcome(0, null, -1, 0, 0, 0, null, null);

  final int status;
  final Failure failure;
  final int grpcStatus;
  final int bits;
  final long latency;
  final long bytes;
  final HeaderSource headers;
  final String detail;

  private Outcome(int status, Failure failure, int grpcStatus, int bits, long latency, long bytes,
      HeaderSource headers, String detail) {
    this.status = status;
    this.failure = failure;
    this.grpcStatus = grpcStatus;
    this.bits = bits;
    this.latency = latency;
    this.bytes = bytes;
    this.headers = headers;
    this.detail = detail;
  }

  /** Success without a status; also what an {@code end} without trailers is. */
  public static Outcome success() {
    return NOTHING;
  }

  /**
   * An answer with this status, 100 to 999.
   *
   * @throws UsageException {@code invalid}: it is not 0 or 100 to 999
   */
  public static Outcome status(int status) {
    return new Outcome(Checks.status(status), null, -1, 0, 0, 0, null, null);
  }

  /** A failure. */
  public static Outcome failed(Failure failure) {
    return new Outcome(0, Objects.requireNonNull(failure, "failure"), -1, 0, 0, 0, null, null);
  }

  /** Response headers, or trailers in {@code end}. */
  public Outcome headers(HeaderSource source) {
    return new Outcome(status, failure, grpcStatus, bits, latency, bytes, Objects.requireNonNull(source, "source"),
        detail);
  }

  /**
   * gRPC status when it is known without looking at headers; -1 = none.
   *
   * @throws UsageException {@code invalid}: it is below -1 or above 127
   */
  public Outcome grpcStatus(int number) {
    if (number < -1 || number > 127) {
      throw Errors.invalid("grpcStatus is " + number + ", not -1 or 0 to 127");
    }
    return new Outcome(status, failure, number, bits, latency, bytes, headers, detail);
  }

  /**
   * From sent to headers, in place of the engine's measurement.
   *
   * @throws UsageException {@code invalid}: it is negative
   */
  public Outcome latency(Duration measured) {
    long nanos = Durations.nanos("latency", Objects.requireNonNull(measured, "measured"));
    return new Outcome(status, failure, grpcStatus, bits, nanos, bytes, headers, detail);
  }

  /**
   * Body bytes, for statistics.
   *
   * @throws UsageException {@code invalid}: it is negative
   */
  public Outcome bytes(long count) {
    if (count < 0) {
      throw Errors.invalid("bytes is negative: " + count);
    }
    return new Outcome(status, failure, grpcStatus, bits, latency, count, headers, detail);
  }

  /** Free text for explanations and events, up to 256 bytes of UTF-8. */
  public Outcome detail(String text) {
    return new Outcome(status, failure, grpcStatus, bits, latency, bytes, headers,
        Objects.requireNonNull(text, "text"));
  }

  /** The connection had been made before it failed. */
  public Outcome connected() {
    return with(1);
  }

  /** Nothing of the request had been sent. */
  public Outcome notSent() {
    return with(2);
  }

  /** The stream was cut short. */
  public Outcome cut() {
    return with(4);
  }

  /** The response has no body. */
  public Outcome noBody() {
    return with(8);
  }

  /** The connection is not kept. */
  public Outcome connectionClosed() {
    return with(16);
  }

  private Outcome with(int bit) {
    return new Outcome(status, failure, grpcStatus, bits | bit, latency, bytes, headers, detail);
  }

  int failureNumber() {
    return failure == null ? 0 : failure.number;
  }
}
