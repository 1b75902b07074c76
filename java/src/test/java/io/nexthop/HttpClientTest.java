package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.http.HttpClient;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The exception map and the loops against the JDK's own client, on loopback. */
@Timeout(60)
class HttpClientTest {
  private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private final AtomicInteger served = new AtomicInteger();
  private final CountDownLatch release = new CountDownLatch(1);
  private ExecutorService threads;
  private HttpServer server;

  @BeforeEach
  void serve() throws IOException {
    threads = Executors.newCachedThreadPool();
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setExecutor(threads);
    server.createContext("/", exchange -> {
      int number = served.incrementAndGet();
      String path = exchange.getRequestURI().getPath();
      if (path.equals("/stuck")) {
        try {
          release.await();
        } catch (InterruptedException over) {
          Thread.currentThread().interrupt();
        }
      }
      byte[] body = ("hello " + number).getBytes(StandardCharsets.UTF_8);
      int status = path.equals("/flaky") && number < 3 ? 503 : 200;
      exchange.sendResponseHeaders(status, body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    });
    server.start();
  }

  @AfterEach
  void stop() {
    release.countDown();
    server.stop(0);
    threads.shutdownNow();
  }

  private Engine mesh(String more, int... ports) {
    return Engine.fromString(Meshes.local("api", "", ports), Meshes.routes("api", more));
  }

  private int port() {
    return server.getAddress().getPort();
  }

  private String get(Request request, String path) throws Exception {
    return request.run(attempt -> {
      HttpResponse<String> reply = client.send(attempt.newRequest(path).build(), BodyHandlers.ofString());
      attempt.complete(reply.statusCode(), reply.headers()::allValues);
      return reply.body();
    });
  }

  @Test
  void retriesUntilItIsAnswered() throws Exception {
    try (Engine mesh = mesh(Meshes.RETRY, port()); Request request = mesh.request(Head.of("api").path("/flaky"))) {
      assertEquals("hello 3", get(request, null));
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void aRefusedConnection() throws Exception {
    int closed;
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      closed = taken.getLocalPort();
    }
    failsWith(mesh("", closed), "/", "UF", 503);
  }

  @Test
  void noResponseInTime() throws Exception {
    failsWith(mesh("timeout: 0.2s", port()), "/stuck", "UT", 504);
  }

  @Test
  void whatIsNotHttp() throws Exception {
    failsWith(answering("this is not HTTP\r\n\r\n"), "/", "UPE", 502);
  }

  @Test
  void aConnectionThatEndsWithoutAnAnswer() throws Exception {
    failsWith(answering(""), "/", "UC", 503);
  }

  @Test
  void aConnectionThatIsReset() throws Exception {
    failsWith(answering(null), "/", "UR", 503);
  }

  private void failsWith(Engine mesh, String path, String flag, int status) {
    try (mesh; Request request = mesh.request(Head.of("api").path(path))) {
      assertThrows(IOException.class, () -> get(request, null));
      LocalReply reply = request.reply().orElseThrow();
      assertEquals(flag, reply.flags(), reply.toString());
      assertEquals(status, reply.status());
      Meshes.quiet(mesh, "api");
    }
  }

  /** A server whose connections read a request, answer this text, and end; null = by a reset. */
  private Engine answering(String text) throws IOException {
    ServerSocket raw = new ServerSocket(0, 8, InetAddress.getLoopbackAddress());
    threads.submit(() -> {
      try (raw) {
        for (int i = 0; i < 8; i++) {
          try (Socket socket = raw.accept()) {
            InputStream in = socket.getInputStream();
            int line = 0;
            for (int seen = 0; seen != '\n' || line > 1; line = seen == '\n' ? 0 : line + 1) {
              seen = in.read();
              if (seen < 0) {
                break;
              }
              if (seen == '\r') {
                line--;
              }
            }
            if (text == null) {
              socket.setSoLinger(true, 0);
            } else {
              socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
            }
          }
        }
      }
      return null;
    });
    return mesh("", raw.getLocalPort());
  }

  @Test
  void asynchronousWithTheBodyHandedOver() throws Exception {
    try (Engine mesh = mesh(Meshes.RETRY, port())) {
      Request request = mesh.request(Head.of("api").path("/flaky"));
      Flow.Publisher<List<ByteBuffer>> body = request.runAsync(attempt -> client
          .sendAsync(attempt.newRequest(null).build(), BodyHandlers.ofPublisher())
          .thenApply(reply -> {
            boolean again = attempt.onHeaders(reply.statusCode(), reply.headers()::allValues).retry();
            return again ? reply.body() : attempt.body(reply.body());
          })).get();
      request.close();
      assertEquals(1, mesh.liveRequests(), "closing leaves a handed-over body alone");
      assertEquals("hello 3", read(body, false));
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void aReaderThatGivesUpCancels() throws Exception {
    try (Engine mesh = mesh("", port())) {
      Request request = mesh.request(Head.of("api").path("/"));
      Attempt attempt = request.chooseHost();
      HttpResponse<Flow.Publisher<List<ByteBuffer>>> reply =
          client.send(attempt.newRequest(null).build(), BodyHandlers.ofPublisher());
      Meshes.usage("state", () -> attempt.body(reply.body()));
      assertFalse(attempt.onHeaders(reply.statusCode(), reply.headers()::allValues).retry());
      Flow.Publisher<List<ByteBuffer>> body = attempt.body(reply.body());
      Meshes.usage("ended", () -> attempt.body(reply.body()));
      attempt.close();
      assertEquals(1, mesh.liveRequests());
      assertEquals("", read(body, true));
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void aBodyThatBreaksFails() throws Exception {
    try (Engine mesh = answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")) {
      Attempt attempt = mesh.request("api").chooseHost();
      HttpResponse<Flow.Publisher<List<ByteBuffer>>> reply =
          client.send(attempt.newRequest(null).build(), BodyHandlers.ofPublisher());
      attempt.onHeaders(reply.statusCode(), reply.headers()::allValues);
      Flow.Publisher<List<ByteBuffer>> body = attempt.body(reply.body());
      assertTrue(assertThrows(java.util.concurrent.ExecutionException.class, () -> read(body, false)).getCause()
          instanceof IOException);
      Meshes.quiet(mesh, "api");
    }
  }

  private static String read(Flow.Publisher<List<ByteBuffer>> body, boolean cancel) throws Exception {
    CompletableFuture<String> all = new CompletableFuture<>();
    body.subscribe(new Flow.Subscriber<>() {
      private final StringBuilder text = new StringBuilder();

      @Override
      public void onSubscribe(Flow.Subscription subscription) {
        if (cancel) {
          subscription.cancel();
          all.complete("");
        } else {
          subscription.request(Long.MAX_VALUE);
        }
      }

      @Override
      public void onNext(List<ByteBuffer> chunks) {
        chunks.forEach(chunk -> text.append(StandardCharsets.UTF_8.decode(chunk)));
      }

      @Override
      public void onError(Throwable failure) {
        all.completeExceptionally(failure);
      }

      @Override
      public void onComplete() {
        all.complete(text.toString());
      }
    });
    return all.get();
  }
}
