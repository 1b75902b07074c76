package io.nexthop;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.ProtocolException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** An answer over HTTP/1.1, read whole; of its body so much is kept as the check looks at. */
final class Http1Answer {
  private static final int LONGEST_HEAD = 1 << 17;

  final int status;
  final AnswerHeaders headers = new AnswerHeaders();
  final ByteArrayOutputStream body = new ByteArrayOutputStream();
  private final InputStream in;
  private final long limit;
  private int read;

  Http1Answer(InputStream in, Check check) throws IOException {
    this.in = in;
    limit = Math.min(check.bodyLimit(), Connection.KEPT);
    int found = head();
    while (found >= 100 && found < 200 && found != 101) {
      found = head();
    }
    status = found;
    if (!check.method().equals("HEAD") && status != 101 && status != 204 && status != 304) {
      body();
    }
  }

  private int head() throws IOException {
    String[] words = line().split(" ", 3);
    if (words.length < 2 || !words[0].startsWith("HTTP/1.") || !words[1].matches("[1-9]\\d\\d")) {
      throw new ProtocolException("no head of a response");
    }
    boolean interim = words[1].startsWith("1") && !words[1].equals("101");
    fields(interim);
    return Integer.parseInt(words[1]);
  }

  private void fields(boolean dropped) throws IOException {
    for (String line = line(); !line.isEmpty(); line = line()) {
      int colon = line.indexOf(':');
      if (colon > 0 && !dropped) {
        headers.add(line.substring(0, colon).trim(), line.substring(colon + 1).trim());
      }
    }
  }

  private String line() throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    for (int next = in.read(); next != '\n'; next = in.read()) {
      if (next < 0) {
        throw new EOFException("the connection ended within the head");
      }
      if (++read > LONGEST_HEAD) {
        throw new ProtocolException("the head is too long");
      }
      line.write(next);
    }
    return line.toString(StandardCharsets.ISO_8859_1).stripTrailing();
  }

  private void body() throws IOException {
    String length = headers.first("content-length");
    if (headers.first("transfer-encoding").toLowerCase(Locale.ROOT).contains("chunked")) {
      for (long size = chunk(); size > 0; size = chunk()) {
        exactly(size);
        line();
      }
      fields(false);
    } else if (length.matches("\\d{1,18}")) {
      exactly(Long.parseLong(length));
    } else {
      while (some(Long.MAX_VALUE) > 0) {
        // to the end of the connection
      }
    }
  }

  private long chunk() throws IOException {
    read = 0;
    String size = line().split(";", 2)[0].trim();
    if (!size.matches("[0-9a-fA-F]{1,15}")) {
      throw new ProtocolException("a malformed chunk");
    }
    return Long.parseLong(size, 16);
  }

  private void exactly(long left) throws IOException {
    while (left > 0) {
      int n = some(left);
      if (n == 0) {
        throw new EOFException("the body was cut short");
      }
      left -= n;
    }
  }

  private int some(long most) throws IOException {
    byte[] chunk = new byte[(int) Math.min(most, 4096)];
    int n = Math.max(in.read(chunk), 0);
    body.write(chunk, 0, (int) Math.min(n, limit - body.size()));
    return n;
  }
}
