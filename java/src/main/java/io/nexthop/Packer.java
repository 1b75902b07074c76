package io.nexthop;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Packs arguments into one byte array as {@code nexthop_jni.c} reads them: host byte order, no padding. */
final class Packer {
  private static final int LARGEST = Integer.MAX_VALUE - 16;
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.nativeOrder());
  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());

  private byte[] out;
  private int at;

  Packer(int room) {
    out = new byte[room];
  }

  private void room(int more) {
    if (out.length - at < more) {
      if (more > LARGEST - at) {
        throw new UsageException("limit", "the arguments of one call take more than 2 GiB");
      }
      out = Arrays.copyOf(out, Math.max((int) Math.min(out.length * 2L, LARGEST), at + more));
    }
  }

  Packer byteValue(int value) {
    room(1);
    out[at++] = (byte) value;
    return this;
  }

  Packer intValue(int value) {
    room(Integer.BYTES);
    INTS.set(out, at, value);
    at += Integer.BYTES;
    return this;
  }

  Packer longValue(long value) {
    room(Long.BYTES);
    LONGS.set(out, at, value);
    at += Long.BYTES;
    return this;
  }

  /** Bytes with their length; null = absent. */
  Packer bytes(byte[] bytes) {
    return bytes == null ? intValue(-1) : intValue(bytes.length).raw(bytes);
  }

  /** Bytes without their length. */
  Packer raw(byte[] bytes) {
    room(bytes.length);
    System.arraycopy(bytes, 0, out, at, bytes.length);
    at += bytes.length;
    return this;
  }

  /** Text as UTF-8 with its length; null = absent. */
  @SuppressWarnings("deprecation") // it copies the low byte of each character, which is all that ASCII has
  Packer text(String name, String text) {
    if (text == null) {
      return intValue(-1);
    }
    int length = text.length();
    if (!plain(text)) {
      return bytes(utf8(name, text));
    }
    intValue(length);
    room(length);
    text.getBytes(0, length, out, at);
    at += length;
    return this;
  }

  /** A number at a place that was packed before. */
  void patch(int place, int value) {
    INTS.set(out, place, value);
  }

  /** What was packed, with room behind it that nobody reads. */
  byte[] roomy() {
    return out;
  }

  /** What was packed. */
  byte[] done() {
    return at == out.length ? out : Arrays.copyOf(out, at);
  }

  /** UTF-8 of a text; half of a surrogate pair is refused, as the other side would. */
  static byte[] utf8(String name, String text) {
    if (text.isEmpty() || plain(text)) {
      return text.getBytes(StandardCharsets.ISO_8859_1);
    }
    CharsetEncoder encoder = StandardCharsets.UTF_8.newEncoder();
    try {
      ByteBuffer encoded = encoder.encode(CharBuffer.wrap(text));
      return Arrays.copyOf(encoded.array(), encoded.limit());
    } catch (CharacterCodingException half) {
      throw Errors.invalid(name + " has half of a surrogate pair, which is no text");
    }
  }

  private static boolean plain(String text) {
    for (int i = 0; i < text.length(); i++) {
      if (text.charAt(i) >= 0x80) {
        return false;
      }
    }
    return true;
  }

  /** A header value: Latin-1 when every character fits, else UTF-8. */
  static byte[] headerValue(String name, String value) {
    for (int i = 0; i < value.length(); i++) {
      if (value.charAt(i) > 0xff) {
        return utf8(name, value);
      }
    }
    return value.getBytes(StandardCharsets.ISO_8859_1);
  }
}
