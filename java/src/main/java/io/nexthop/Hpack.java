package io.nexthop;

import java.io.ByteArrayOutputStream;
import java.net.ProtocolException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;

/** Header compression of HTTP/2 (RFC 7541): writes literals only, reads everything. */
final class Hpack {
  /** Appendix A: names, with their value behind a blank where there is one. */
  private static final String[] STATIC = (":authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|"
      + ":scheme https|:status 200|:status 204|:status 206|:status 304|:status 400|:status 404|:status 500|accept-charset|"
      + "accept-encoding gzip, deflate|accept-language|accept-ranges|accept|access-control-allow-origin|age|allow|authorization|"
      + "cache-control|content-disposition|content-encoding|content-language|content-length|content-location|content-range|"
      + "content-type|cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|"
      + "if-unmodified-since|last-modified|link|location|max-forwards|proxy-authenticate|proxy-authorization|range|referer|"
      + "refresh|retry-after|server|set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate")
      .split("\\|");

  /** Appendix B: the length of each symbol's code, as letters from {@code A} = 5 on; the code is canonical. */
  private static final String LENGTHS = "ISXXXXXXXTZXXZXXXXXXXXZXXXXXXXXX" + "BFFHIBDGFFDGDBBBAAABBBBBBBCDKBHF"
      + "IBCCCCCCCCCCCCCCCCCCCCCCDCDIOIJB" + "KABABABBBACCBBBABCBAABCCCCCKGJIX"
      + "PRPPRRRSRSSSSSTSTTRSTSSSSQRSRSST" + "RQPRRSSQSRRTQRSSQQRQSRSSPRRRSRRS"
      + "VVPORSRUVVVWWVTUOQVWWVWTQQVVXWWW" + "PTPQRQQSRRUUTTVSVWVVWWWWWXWWWWWV";
  private static final int SHORTEST = 5;
  private static final int LONGEST = 30;
  /** By length: the first code, how many there are, and where their symbols begin. */
  private static final int[] FIRST = new int[LONGEST + 1];
  private static final int[] COUNT = new int[LONGEST + 1];
  private static final int[] START = new int[LONGEST + 1];
  private static final byte[] SYMBOLS = new byte[256];

  static {
    int code = 0;
    int at = 0;
    for (int length = SHORTEST; length <= LONGEST; length++) {
      FIRST[length] = code;
      START[length] = at;
      for (int symbol = 0; symbol < 256; symbol++) {
        if (LENGTHS.charAt(symbol) - 'A' + SHORTEST == length) {
          SYMBOLS[at++] = (byte) symbol;
          COUNT[length]++;
        }
      }
      code = code + COUNT[length] << 1;
    }
  }

  private static final int LARGEST_TABLE = 4096;

  private record Field(String name, String value) {
    int size() {
      return name.length() + value.length() + 32;
    }
  }

  private final List<Field> dynamic = new ArrayList<>();
  private int size;
  private int most = LARGEST_TABLE;

  /** A literal that nobody remembers. */
  static void write(ByteArrayOutputStream out, String name, String value) {
    out.write(0);
    text(out, name);
    text(out, value);
  }

  private static void text(ByteArrayOutputStream out, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
    int left = bytes.length;
    if (left < 127) {
      out.write(left);
    } else {
      out.write(127);
      for (left -= 127; left >= 128; left >>>= 7) {
        out.write(left & 127 | 128);
      }
      out.write(left);
    }
    out.writeBytes(bytes);
  }

  void read(ByteBuffer in, BiConsumer<String, String> take) throws ProtocolException {
    try {
      while (in.hasRemaining()) {
        field(in, take);
      }
    } catch (BufferUnderflowException torn) {
      throw new ProtocolException("a torn header block");
    }
  }

  private void field(ByteBuffer in, BiConsumer<String, String> take) throws ProtocolException {
    int first = in.get() & 0xff;
    if ((first & 0x80) != 0) {
      Field known = known(number(in, first, 7));
      take.accept(known.name, known.value);
      return;
    }
    if ((first & 0xe0) == 0x20) {
      most = Math.min(number(in, first, 5), LARGEST_TABLE);
      evict(0);
      return;
    }
    boolean kept = (first & 0xc0) == 0x40;
    int index = number(in, first, kept ? 6 : 4);
    String name = index == 0 ? text(in) : known(index).name;
    Field field = new Field(name, text(in));
    if (kept) {
      evict(field.size());
      if (field.size() <= most) {
        dynamic.add(0, field);
        size += field.size();
      }
    }
    take.accept(field.name, field.value);
  }

  private void evict(int room) {
    while (!dynamic.isEmpty() && size + room > most) {
      size -= dynamic.remove(dynamic.size() - 1).size();
    }
  }

  private Field known(int index) throws ProtocolException {
    if (index >= 1 && index <= STATIC.length) {
      String[] words = STATIC[index - 1].split(" ", 2);
      return new Field(words[0], words.length == 2 ? words[1] : "");
    }
    int at = index - STATIC.length - 1;
    if (at < 0 || at >= dynamic.size()) {
      throw new ProtocolException("an unknown header index");
    }
    return dynamic.get(at);
  }

  private static int number(ByteBuffer in, int first, int bits) throws ProtocolException {
    int mask = (1 << bits) - 1;
    int value = first & mask;
    if (value < mask) {
      return value;
    }
    for (int shift = 0; shift <= 21; shift += 7) {
      int next = in.get() & 0xff;
      value += (next & 127) << shift;
      if (next < 128) {
        return value;
      }
    }
    throw new ProtocolException("a header number that is too large");
  }

  private static String text(ByteBuffer in) throws ProtocolException {
    int first = in.get() & 0xff;
    int length = number(in, first, 7);
    if (length > in.remaining()) {
      throw new ProtocolException("a torn header block");
    }
    byte[] bytes = new byte[length];
    in.get(bytes);
    return new String((first & 0x80) != 0 ? plain(bytes) : bytes, StandardCharsets.ISO_8859_1);
  }

  static byte[] plain(byte[] coded) throws ProtocolException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    int code = 0;
    int length = 0;
    for (byte each : coded) {
      for (int bit = 7; bit >= 0; bit--) {
        code = code << 1 | each >> bit & 1;
        if (++length > LONGEST) {
          throw new ProtocolException("a malformed header text");
        }
        if (length >= SHORTEST && code - FIRST[length] < COUNT[length]) {
          out.write(SYMBOLS[START[length] + code - FIRST[length]]);
          code = 0;
          length = 0;
        }
      }
    }
    // What is left are at most seven ones.
    if (length > 7 || code != (1 << length) - 1) {
      throw new ProtocolException("a malformed header text");
    }
    return out.toByteArray();
  }
}
