package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.ProtocolException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpTimeoutException;
import java.nio.channels.ClosedByInterruptException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

class FailuresTest {
  @Test
  void exceptionsAreTold() {
    assertEquals(Failure.CONNECT_FAILURE, Failures.of(new ConnectException()));
    assertEquals(Failure.CONNECT_FAILURE, Failures.of(new NoRouteToHostException()));
    assertEquals(Failure.CONNECT_FAILURE, Failures.of(new UnknownHostException("x")));
    assertEquals(Failure.CONNECT_TIMEOUT, Failures.of(new HttpConnectTimeoutException("x")));
    assertEquals(Failure.TIMEOUT, Failures.of(new HttpTimeoutException("x")));
    assertEquals(Failure.TIMEOUT, Failures.of(new SocketTimeoutException()));
    assertEquals(Failure.TIMEOUT, Failures.of(new TimeoutException()));
    assertEquals(Failure.LOCAL_CONNECT_FAILURE, Failures.of(new BindException()));
    assertEquals(Failure.PROTOCOL_ERROR, Failures.of(new ProtocolException()));
    assertEquals(Failure.CONNECTION_TERMINATION, Failures.of(new EOFException()));
    assertEquals(Failure.CONNECTION_TERMINATION, Failures.of(new IOException("HTTP/1.1 header parser received no bytes")));
    assertEquals(Failure.REMOTE_RESET, Failures.of(new SocketException("Connection reset")));
    assertEquals(Failure.REMOTE_RESET, Failures.of(new IOException()));
    assertEquals(Failure.REMOTE_RESET, Failures.of(new IOException("header parser received no bytes",
        new SocketException("Connection reset"))));
    assertEquals(Failure.REFUSED_STREAM, Failures.of(new IOException("Received RST_STREAM: Refused stream")));
  }

  @Test
  void wrappersAreOpened() {
    assertEquals(Failure.CONNECT_FAILURE, Failures.of(new CompletionException(new ConnectException())));
    assertEquals(Failure.CONNECT_FAILURE, Failures.of(new ExecutionException(new ConnectException())));
    assertEquals(Failure.REMOTE_RESET, Failures.of(new UncheckedIOException(new IOException())));
    assertEquals(Failure.CONNECTION_TERMINATION, Failures.of(new IOException(new EOFException())));
  }

  @Test
  void whatIsNotTheUpstreamsFaultIsNone() {
    assertNull(Failures.of(new IllegalStateException()));
    assertNull(Failures.of(new InterruptedException()));
    assertNull(Failures.of(new InterruptedIOException()));
    assertNull(Failures.of(new ClosedByInterruptException()));
    assertNull(Failures.of(new CancellationException()));
    assertNull(Failures.of(new OutOfMemoryError()));
  }
}
