package io.nexthop;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Map;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/** One connection of one check. Closing it from another thread ends whatever it waits for. */
final class Connection implements Closeable {
  /** Bytes of an answer that are kept when nothing else limits them; more are read and dropped. */
  static final int KEPT = 1 << 20;

  private final Check check;
  private final SSLContext tls;
  private Closeable socket;
  private boolean closed;
  InputStream in;
  OutputStream out;

  Connection(Check check, SSLContext tls) {
    this.check = check;
    this.tls = tls;
  }

  /** Asks, and reports the answer. */
  void ask() throws IOException {
    open();
    if (check.protocol() == Check.Protocol.TCP) {
      bytes();
    } else if (check.http2()) {
      Http2Call call = new Http2Call(check, in, out);
      call.run();
      check.answer(call.status, call.headers::values, call.body.toByteArray());
    } else {
      request();
    }
  }

  private void open() throws IOException {
    String address = check.address();
    if (address.startsWith("/")) {
      SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
      own(channel);
      channel.connect(UnixDomainSocketAddress.of(address));
      in = new BufferedInputStream(Channels.newInputStream(channel));
      out = new BufferedOutputStream(Channels.newOutputStream(channel));
      return;
    }
    int colon = address.lastIndexOf(':');
    String host = address.substring(0, colon).replaceAll("^\\[|\\]$", "");
    Socket plain = new Socket();
    own(plain);
    plain.setTcpNoDelay(true);
    plain.connect(new InetSocketAddress(host, Integer.parseInt(address.substring(colon + 1))));
    Socket used = check.secure() ? secured(plain) : plain;
    in = new BufferedInputStream(used.getInputStream());
    out = new BufferedOutputStream(used.getOutputStream());
  }

  private Socket secured(Socket plain) throws IOException {
    String name = check.authority().isEmpty() ? check.host().hostname() : check.authority();
    name = name.replaceFirst(":\\d+$", "");
    if (name.isEmpty()) {
      name = plain.getInetAddress().getHostAddress();
    }
    try {
      SSLContext context = tls == null ? SSLContext.getDefault() : tls;
      SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(plain, name, plain.getPort(), true);
      own(socket);
      SSLParameters parameters = socket.getSSLParameters();
      parameters.setEndpointIdentificationAlgorithm("HTTPS");
      if (check.protocol() != Check.Protocol.TCP) {
        parameters.setApplicationProtocols(new String[] {check.http2() ? "h2" : "http/1.1"});
      }
      socket.setSSLParameters(parameters);
      socket.startHandshake();
      return socket;
    } catch (GeneralSecurityException none) {
      throw new IOException(none);
    }
  }

  private synchronized void own(Closeable opened) throws IOException {
    socket = opened;
    if (closed) {
      opened.close();
    }
  }

  @Override
  public synchronized void close() throws IOException {
    closed = true;
    if (socket != null) {
      socket.close();
    }
  }

  private void bytes() throws IOException {
    out.write(check.payload());
    out.flush();
    ByteArrayOutputStream received = new ByteArrayOutputStream();
    byte[] chunk = new byte[4096];
    while (!check.data(received.toByteArray())) {
      int n = in.read(chunk);
      if (n < 0) {
        throw new EOFException("closed before the expected bytes came");
      }
      received.write(chunk, 0, Math.min(n, KEPT - received.size()));
    }
  }

  /** One request over HTTP/1.1. */
  private void request() throws IOException {
    byte[] payload = check.payload();
    StringBuilder head = new StringBuilder(check.method() + ' ' + check.path() + " HTTP/1.1\r\nhost: " + check.authority()
        + "\r\nconnection: close\r\n");
    if (payload.length > 0) {
      head.append("content-length: ").append(payload.length).append("\r\n");
    }
    for (Map.Entry<String, String> header : check.headers()) {
      head.append(header.getKey()).append(": ").append(header.getValue()).append("\r\n");
    }
    out.write(head.append("\r\n").toString().getBytes(StandardCharsets.ISO_8859_1));
    out.write(payload);
    out.flush();
    Http1Answer answer = new Http1Answer(in, check);
    check.answer(answer.status, answer.headers::values, answer.body.toByteArray());
  }
}
