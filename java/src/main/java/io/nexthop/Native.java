package io.nexthop;

import java.nio.ByteBuffer;

/**
 * The functions of {@code nexthop_jni.c}: longs, ints and byte arrays, nothing else. Negative results are status
 * numbers (see {@link Errors}); a null array means look at {@link #lastStatus}.
 */
final class Native {
  /** The interface that this class was written for. */
  static final int ABI = 1;

  static {
    NativeLoader.load();
    int found = abiVersion();
    if (found != ABI) {
      throw new UnsatisfiedLinkError("libnexthop_jni speaks interface " + found + ", these classes " + ABI
          + ": use the library that came with them");
    }
  }

  private Native() {}

  static native void nothing();

  static native int pick(long engine, int target, int number, long block);

  static native int pickKey(long engine, int target, int number, byte[] key, long block);

  static native int begin(long engine, byte[] head, long block);

  static native int choose(long request, long block);

  static native long complete(long attempt, int status);

  /** Phase: 0 complete, 1 headers, 2 end. */
  static native long report(int phase, long attempt, int status, int failure, int grpcStatus, int bits, long latency,
      long bytes, byte[] headers, byte[] detail);

  static native long end(long attempt);

  static native long fail(long attempt, int failure);

  static native long cancel(long attempt);

  static native long finish(long request, int reason);

  /** Signal bits, or a status. */
  static native int note(long id, int what);

  /** Flags of this thread's last verdict whose word had bit 62. */
  static native int lastFlags();

  /** Writes requests whose wait is over; how many, or a status. */
  static native int pollReady(long engine, long[] out);

  static native int engineNew(int workers, long seed, long lease, long events, int clock, long[] draws,
      byte[] documents, long[] out);

  static native int engineFree(long engine);

  static native int update(long engine, byte[] documents);

  /** 1 when it swapped, 0 when nothing changed, or a status. */
  static native int reload(long engine);

  static native int apply(long engine, byte[] cluster, byte[] ops, long[] epoch);

  /** The number of a name, or a status. */
  static native long resolve(long engine, byte[] name);

  static native byte[] text(long engine, int what, byte[] argument);

  static native byte[] pollEvent(long engine);

  /** See {@link Check}; null with status EMPTY: none is due. */
  static native byte[] pollCheck(long engine);

  /** Nanoseconds, all bits set for never. */
  static native long checksDeadline(long engine);

  /** 0: decided, EMPTY: still out, else a status. */
  static native int checkResult(long engine, long check, int result, int status, int failure, byte[] headers, byte[] body);

  static native byte[] extraHeaders(long id);

  static native byte[] lastError();

  /** Line, column, file, path, found, allowed, nearest. */
  static native byte[] lastErrorParts();

  static native byte[] host(long engine, int slot, int version);

  static native byte[] want(long engine, int set);

  static native byte[] requestInfo(long request);

  static native byte[] reply(long request);

  /** Epoch, live requests, seed. */
  static native int engineInfo(long engine, long[] out);

  /** Nanoseconds, all bits set for never. */
  static native long pollDeadline(long engine);

  /** Signal bits, or a status. */
  static native int maintain(long engine);

  static native int advance(long engine, long nanos);

  static native long now(long engine);

  static native byte[] name(int table, int value);

  static native byte[] version();

  static native int abiVersion();

  static native int lastStatus();

  static native long address(ByteBuffer buffer);
}
