package io.nexthop;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A {@code nexthop_decision} in memory outside the heap: the library writes it, Java reads it, and nothing is
 * copied or allocated. A few are shared by all threads, picked by thread and taken with one compare-and-set, so
 * that a million virtual threads need no more of them than there are cores.
 */
final class DecisionBuffer {
  static final int GO = 1;
  static final int WAIT = 2;

  private static final VarHandle BUSY;
  private static final DecisionBuffer[] SHARED;

  static {
    try {
      BUSY = MethodHandles.lookup().findVarHandle(DecisionBuffer.class, "busy", int.class);
    } catch (ReflectiveOperationException impossible) {
      throw new ExceptionInInitializerError(impossible);
    }
    int cores = Runtime.getRuntime().availableProcessors();
    SHARED = new DecisionBuffer[Math.max(16, Integer.highestOneBit(cores) * 8)];
    for (int i = 0; i < SHARED.length; i++) {
      SHARED[i] = new DecisionBuffer();
    }
  }

  private final ByteBuffer memory;
  /** Where the decision lies. */
  final long address;
  private volatile int busy;

  private DecisionBuffer() {
    // Two cache lines each and a neighbour's distance, so that threads do not share one.
    memory = ByteBuffer.allocateDirect(256).order(ByteOrder.nativeOrder());
    address = Native.address(memory) + 64;
  }

  /** One that nobody else uses until {@link #give}. */
  static DecisionBuffer take() {
    int mask = SHARED.length - 1;
    int first = (int) Thread.currentThread().getId();
    DecisionBuffer mine = SHARED[first & mask];
    return BUSY.compareAndSet(mine, 0, 1) ? mine : other(first, mask);
  }

  private static DecisionBuffer other(int first, int mask) {
    for (int i = 1; i <= 4; i++) {
      DecisionBuffer next = SHARED[first + i * 5 & mask];
      if (BUSY.compareAndSet(next, 0, 1)) {
        return next;
      }
    }
    return new DecisionBuffer();
  }

  void give() {
    BUSY.setRelease(this, 0);
  }

  int bits() {
    return memory.getShort(64 + 6) & 0xffff;
  }

  long request() {
    return memory.getLong(64 + 8);
  }

  long attempt() {
    return memory.getLong(64 + 16);
  }

  int host() {
    return memory.getInt(64 + 24);
  }

  int hostVersion() {
    return memory.getInt(64 + 28);
  }

  int number() {
    return memory.getInt(64 + 32);
  }

  /** The set for answers below 400 in the low half, that for the rest in the high half. */
  int wants() {
    return (memory.getShort(64 + 36) & 0xffff) | memory.getShort(64 + 38) << 16;
  }

  long tryTimeout() {
    return memory.getLong(64 + 40);
  }

  long remaining() {
    return memory.getLong(64 + 48);
  }

  long waiting() {
    return memory.getLong(64 + 56);
  }

  int status() {
    return memory.getShort(64 + 64) & 0xffff;
  }

  int refusal() {
    return memory.get(64 + 66) & 0xff;
  }

  int resource() {
    return memory.get(64 + 67) & 0xff;
  }

  int flags() {
    return memory.getInt(64 + 68);
  }
}
