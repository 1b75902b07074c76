package io.nexthop;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Reads what {@code nexthop_jni.c} packed. */
final class Unpacker {
  private final ByteBuffer in;

  Unpacker(byte[] packed) {
    in = ByteBuffer.wrap(packed).order(ByteOrder.nativeOrder());
  }

  int intValue() {
    return in.getInt();
  }

  long longValue() {
    return in.getLong();
  }

  byte[] bytes() {
    byte[] bytes = new byte[in.getInt()];
    in.get(bytes);
    return bytes;
  }

  String text() {
    return new String(bytes(), StandardCharsets.UTF_8);
  }
}
