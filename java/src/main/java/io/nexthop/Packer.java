package io.nexthop;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Packs arguments into one byte array as {@code nexthop_jni.c} reads them: host byte order, no padding. */
final class Packer {
  private ByteBuffer out;

  Packer(int room) {
    out = ByteBuffer.allocate(room).order(ByteOrder.nativeOrder());
  }

  private ByteBuffer room(int more) {
    if (out.remaining() < more) {
      long size = Math.max(out.capacity() * 2L, (long) out.position() + more);
      if ((long) out.position() + more > Integer.MAX_VALUE - 16) {
        throw new UsageException("limit", "the arguments of one call take more than 2 GiB");
      }
      ByteBuffer larger = ByteBuffer.allocate((int) Math.min(size, Integer.MAX_VALUE - 16)).order(out.order());
      larger.put(out.flip());
      out = larger;
    }
    return out;
  }

  Packer byteValue(int value) {
    room(1).put((byte) value);
    return this;
  }

  Packer intValue(int value) {
    room(Integer.BYTES).putInt(value);
    return this;
  }

  Packer longValue(long value) {
    room(Long.BYTES).putLong(value);
    return this;
  }

  /** Bytes with their length; null = absent. */
  Packer bytes(byte[] bytes) {
    if (bytes == null) {
      return intValue(-1);
    }
    room(Integer.BYTES + bytes.length).putInt(bytes.length).put(bytes);
    return this;
  }

  /** Bytes without their length. */
  Packer raw(byte[] bytes) {
    room(bytes.length).put(bytes);
    return this;
  }

  /** Text as UTF-8 with its length; null = absent. */
  Packer text(String name, String text) {
    return bytes(text == null ? null : utf8(name, text));
  }

  byte[] done() {
    byte[] all = out.array();
    return out.position() == all.length ? all : Arrays.copyOf(all, out.position());
  }

  int size() {
    return out.position();
  }

  /** UTF-8 of a text; half of a surrogate pair is refused, as the other side would. */
  static byte[] utf8(String name, String text) {
    if (text.isEmpty() || plain(text)) {
      return text.getBytes(StandardCharsets.ISO_8859_1);
    }
    CharsetEncoder encoder = StandardCharsets.UTF_8.newEncoder();
    try {
      ByteBuffer encoded = encoder.encode(java.nio.CharBuffer.wrap(text));
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
