package io.nexthop;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * One request over HTTP/2 (RFC 9113) with prior knowledge, which the JDK's client does not speak over plain connections: one
 * stream, small payloads, an answer with trailers.
 */
final class Http2Call {
  private static final byte[] PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
  private static final int DATA = 0;
  private static final int HEADERS = 1;
  private static final int RST_STREAM = 3;
  private static final int SETTINGS = 4;
  private static final int PING = 6;
  private static final int GOAWAY = 7;
  private static final int WINDOW_UPDATE = 8;
  private static final int CONTINUATION = 9;
  private static final int ACK = 1;
  private static final int END_STREAM = 1;
  private static final int END_HEADERS = 4;
  private static final int PADDED = 8;
  private static final int PRIORITY = 32;
  private static final int STREAM = 1;
  /** What a peer takes of a frame, and of a stream, before it says otherwise. */
  private static final int FRAME = 16_384;
  private static final int WINDOW = 65_535;
  private static final int LONGEST_BLOCK = 1 << 17;

  int status;
  final AnswerHeaders headers = new AnswerHeaders();
  final ByteArrayOutputStream body = new ByteArrayOutputStream();
  private final Check check;
  private final DataInputStream in;
  private final OutputStream out;
  private final long limit;
  private final Hpack hpack = new Hpack();
  private final ByteArrayOutputStream block = new ByteArrayOutputStream();
  /** The headers being read are the last. */
  private boolean last;
  private boolean over;

  Http2Call(Check check, InputStream in, OutputStream out) {
    this.check = check;
    this.in = new DataInputStream(in);
    this.out = out;
    limit = Math.min(check.bodyLimit(), Connection.KEPT);
  }

  void run() throws IOException {
    byte[] payload = check.payload();
    if (payload.length > WINDOW) {
      throw new ProtocolException("a payload of more than 65,535 bytes");
    }
    out.write(PREFACE);
    frame(SETTINGS, 0, 0, new byte[0], 0, 0);
    byte[] head = head();
    frame(HEADERS, END_HEADERS | (payload.length == 0 ? END_STREAM : 0), STREAM, head, 0, head.length);
    for (int at = 0; at < payload.length; at += FRAME) {
      int n = Math.min(FRAME, payload.length - at);
      frame(DATA, at + n == payload.length ? END_STREAM : 0, STREAM, payload, at, n);
    }
    out.flush();
    while (!over) {
      next();
    }
    if (status == 0) {
      throw new ProtocolException("no response");
    }
  }

  private byte[] head() throws IOException {
    ByteArrayOutputStream head = new ByteArrayOutputStream();
    Hpack.write(head, ":method", check.method());
    Hpack.write(head, ":scheme", check.secure() ? "https" : "http");
    Hpack.write(head, ":authority", check.authority());
    Hpack.write(head, ":path", check.path());
    for (Map.Entry<String, String> header : check.headers()) {
      Hpack.write(head, header.getKey(), header.getValue());
    }
    if (head.size() > FRAME) {
      throw new ProtocolException("more headers than a frame takes");
    }
    return head.toByteArray();
  }

  private void frame(int type, int flags, int stream, byte[] payload, int at, int n) throws IOException {
    out.write(ByteBuffer.allocate(9).putInt(n << 8 | type).put((byte) flags).putInt(stream).array());
    out.write(payload, at, n);
  }

  private void next() throws IOException {
    int lengthAndType = in.readInt();
    int flags = in.readUnsignedByte();
    int stream = in.readInt() & Integer.MAX_VALUE;
    int length = lengthAndType >>> 8;
    if (length > FRAME) {
      throw new ProtocolException("a frame of more than 16,384 bytes");
    }
    byte[] payload = in.readNBytes(length);
    if (payload.length < length) {
      throw new EOFException("the connection ended within a frame");
    }
    switch (lengthAndType & 0xff) {
      case DATA -> data(flags, payload);
      case HEADERS -> fields(flags, stripped(flags, payload));
      case CONTINUATION -> fields(flags & ~END_STREAM, ByteBuffer.wrap(payload));
      case RST_STREAM -> {
        int code = ByteBuffer.wrap(payload).getInt();
        // An answer that is whole may be followed by a reset that means nothing.
        throw new IOException(code == 7 ? "refused_stream" : "connection reset: stream error " + code);
      }
      case SETTINGS -> acknowledge(SETTINGS, flags, new byte[0]);
      case PING -> acknowledge(PING, flags, payload);
      case GOAWAY -> {
        int code = ByteBuffer.wrap(payload).getInt(4);
        // Without an error the call may finish.
        if (code != 0 || stream != 0) {
          throw new EOFException("the peer goes away with error " + code);
        }
      }
      default -> { }
    }
  }

  private void acknowledge(int type, int flags, byte[] payload) throws IOException {
    if ((flags & ACK) == 0) {
      frame(type, ACK, 0, payload, 0, payload.length);
      out.flush();
    }
  }

  /** A frame's content without padding and priority. */
  private static ByteBuffer stripped(int flags, byte[] payload) throws ProtocolException {
    ByteBuffer content = ByteBuffer.wrap(payload);
    int padding = (flags & PADDED) != 0 && content.hasRemaining() ? content.get() & 0xff : 0;
    int dropped = (flags & PRIORITY) != 0 ? 5 : 0;
    if (content.remaining() < padding + dropped) {
      throw new ProtocolException("a frame of nothing but padding");
    }
    content.position(content.position() + dropped);
    content.limit(content.limit() - padding);
    return content;
  }

  private void data(int flags, byte[] payload) throws IOException {
    ByteBuffer content = stripped(flags & PADDED, payload);
    body.write(payload, content.position(), (int) Math.min(content.remaining(), limit - body.size()));
    over = (flags & END_STREAM) != 0;
    if (!over && payload.length > 0) {
      byte[] size = ByteBuffer.allocate(4).putInt(payload.length).array();
      frame(WINDOW_UPDATE, 0, 0, size, 0, size.length);
      frame(WINDOW_UPDATE, 0, STREAM, size, 0, size.length);
      out.flush();
    }
  }

  private void fields(int flags, ByteBuffer part) throws IOException {
    last |= (flags & END_STREAM) != 0;
    block.write(part.array(), part.position(), part.remaining());
    if (block.size() > LONGEST_BLOCK) {
      throw new ProtocolException("too many headers");
    }
    if ((flags & END_HEADERS) == 0) {
      return;
    }
    AnswerHeaders found = new AnswerHeaders();
    hpack.read(ByteBuffer.wrap(block.toByteArray()), (name, value) -> {
      found.add(name, value);
      if (!name.startsWith(":")) {
        headers.add(name, value);
      }
    });
    block.reset();
    String told = found.first(":status");
    if (!told.isEmpty() && told.matches("[1-9]\\d\\d")) {
      status = Integer.parseInt(told);
    }
    over = last;
  }
}
