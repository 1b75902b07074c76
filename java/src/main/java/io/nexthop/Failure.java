package io.nexthop;

/** How an attempt can fail without a response; Envoy's reset reasons. */
public enum Failure {
  /** The connection could not be made. */
  CONNECT_FAILURE(1),
  /** The connection was not made in time. */
  CONNECT_TIMEOUT(2),
  /** The connection ended before a response. */
  CONNECTION_TERMINATION(3),
  /** The other side reset the stream. */
  REMOTE_RESET(4),
  /** The other side refused the stream before work was done. */
  REFUSED_STREAM(5),
  /** What came was not HTTP. */
  PROTOCOL_ERROR(6),
  /** The connection failed for a reason on this machine. */
  LOCAL_CONNECT_FAILURE(7),
  /** No response in time; the engine tells whether the global or the per-try limit was hit. */
  TIMEOUT(8),
  /** The per-try limit was hit. */
  PER_TRY_TIMEOUT(9),
  /** The per-try idle limit was hit. */
  PER_TRY_IDLE_TIMEOUT(10),
  /** The global limit was hit. */
  GLOBAL_TIMEOUT(11),
  /** The stream lasted too long. */
  MAX_STREAM_DURATION(12),
  /** This side reset the stream. */
  LOCAL_RESET(13),
  /** The caller's own connection pool was full. */
  OVERFLOW(14),
  /** The connection failed with an error of its own. */
  CONNECT_ERROR(15),
  /** An HTTP/1 peer closed its half too early. */
  PREMATURE_CLOSE(16),
  /** The overload manager reset the stream. */
  OVERLOAD_MANAGER(17),
  /** The other side reset the stream without an error. */
  NO_ERROR_RESET(18);

  final int number;

  Failure(int number) {
    this.number = number;
  }
}
