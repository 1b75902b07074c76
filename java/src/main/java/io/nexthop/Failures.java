package io.nexthop;

import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.ProtocolException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpTimeoutException;
import java.nio.channels.AsynchronousCloseException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLHandshakeException;

/** Which failure an exception of an HTTP client is; null when it is not the upstream's fault. */
final class Failures {
  private Failures() {}

  static Failure of(Throwable thrown) {
    Throwable t = cause(thrown);
    if (t instanceof TimeoutException) {
      return Failure.TIMEOUT;
    }
    if (!(t instanceof IOException)) {
      return null;
    }
    if (t instanceof HttpConnectTimeoutException) {
      return Failure.CONNECT_TIMEOUT;
    }
    if (t instanceof HttpTimeoutException || t instanceof SocketTimeoutException) {
      return Failure.TIMEOUT;
    }
    if (t instanceof InterruptedIOException || t instanceof AsynchronousCloseException) {
      return null; // this side's doing
    }
    if (t instanceof BindException) {
      return Failure.LOCAL_CONNECT_FAILURE;
    }
    if (t instanceof ConnectException || t instanceof NoRouteToHostException || t instanceof UnknownHostException
        || t instanceof SSLHandshakeException) {
      return Failure.CONNECT_FAILURE;
    }
    if (t instanceof ProtocolException) {
      return Failure.PROTOCOL_ERROR;
    }
    return byText(t);
  }

  /** What to keep of an exception: short, and text whatever it was made of. */
  static String detail(Throwable failure) {
    String text = failure.toString();
    // 80 characters are at most 240 bytes; half of a surrogate pair becomes a question mark.
    byte[] bytes = text.substring(0, Math.min(text.length(), 80)).getBytes(StandardCharsets.UTF_8);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  /** What a wrapper of the concurrency library carries. */
  static Throwable cause(Throwable thrown) {
    Throwable t = thrown;
    while ((t instanceof CompletionException || t instanceof ExecutionException || t instanceof UncheckedIOException)
        && t.getCause() != null) {
      t = t.getCause();
    }
    return t;
  }

  /** The JDK's client says the rest in words only, and wraps a reset in a sentence about missing bytes. */
  private static Failure byText(Throwable thrown) {
    Failure found = Failure.REMOTE_RESET;
    int depth = 0;
    for (Throwable t = thrown; t != null && depth < 8; t = t.getCause(), depth++) {
      String text = t.getMessage() == null ? "" : t.getMessage().toLowerCase(Locale.ROOT);
      if (text.contains("refused_stream") || text.contains("refused stream")) {
        return Failure.REFUSED_STREAM;
      }
      if (text.contains("connection reset") || text.contains("broken pipe")) {
        return Failure.REMOTE_RESET;
      }
      if (t instanceof EOFException || text.contains("eof") || text.contains("received no bytes")
          || text.contains("unexpected end")) {
        found = Failure.CONNECTION_TERMINATION;
      }
    }
    return found;
  }
}
