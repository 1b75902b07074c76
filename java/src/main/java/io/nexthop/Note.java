package io.nexthop;

/** Facts between a choice and the report. */
public enum Note {
  /** A connection is there that a queued request of a cluster with strict connections asked for. */
  CONNECTED(1),
  /** The request headers are sent. */
  SENT(2),
  /** A streaming upload is over: time-outs begin. */
  BODY_COMPLETE(3),
  /** The upload outgrew what the caller keeps: no retry any more. */
  RETRY_ABANDONED(4),
  /** An interim response arrived. */
  INTERIM(5);

  final int number;

  Note(int number) {
    this.number = number;
  }
}
