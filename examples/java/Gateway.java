import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.nexthop.Attempt;
import io.nexthop.Engine;
import io.nexthop.Head;
import io.nexthop.LocalReply;
import io.nexthop.RefusedException;
import io.nexthop.Request;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executors;

/** A gateway in one file: the JDK's server in front, the JDK's client behind, nexthop in between. */
public class Gateway {
  /** Headers of one connection; those that java.net.http writes itself are among them. */
  private static final Set<String> HOP = Set.of("connection", "content-length", "expect", "host", "keep-alive",
      "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade");

  private final Engine mesh;
  private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  Gateway(Engine mesh) {
    this.mesh = mesh;
  }

  public static void main(String[] args) throws IOException {
    int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
    Engine mesh = Engine.fromFile(Path.of(System.getenv().getOrDefault("CONFIG", "examples/envoy.yaml")));
    mesh.startChecks(); // performs the health checks of the documents, if they have any
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext("/", new Gateway(mesh)::handle);
    server.start();
    System.err.println("gateway on http://127.0.0.1:" + server.getAddress().getPort());
  }

  private void handle(HttpExchange exchange) throws IOException {
    byte[] upload = exchange.getRequestBody().readAllBytes(); // buffered, so it can be sent again
    Head head = Head.matching(exchange.getRequestHeaders().getFirst("Host"), exchange.getRequestURI().toString())
        .method(exchange.getRequestMethod())
        .headers(exchange.getRequestHeaders())
        .source(exchange.getRemoteAddress().getAddress().getHostAddress())
        .body(upload.length == 0 ? Head.Body.NONE : Head.Body.REPLAYABLE);
    try (exchange; Request call = mesh.request(head)) {
      try {
        call.run(attempt -> forward(attempt, call, exchange, upload));
      } catch (RefusedException | IOException failed) {
        LocalReply local = call.reply().orElse(null); // 503 UH, 503 UO, 504 UT, ...
        if (local == null || exchange.getResponseCode() != -1) {
          throw new IOException(failed); // the client itself went away, or the body broke on its way
        }
        local.headers().forEach(exchange.getResponseHeaders()::set);
        byte[] body = local.body().getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(local.status(), body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
      } catch (InterruptedException stopping) {
        Thread.currentThread().interrupt();
      } catch (Exception bug) {
        throw new IllegalStateException(bug);
      }
    }
  }

  private Void forward(Attempt attempt, Request call, HttpExchange exchange, byte[] upload) throws Exception {
    HttpRequest.Builder request = attempt.newRequest(null).method(exchange.getRequestMethod(),
        upload.length == 0 ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(upload));
    exchange.getRequestHeaders().forEach((name, values) -> {
      if (!HOP.contains(name.toLowerCase(java.util.Locale.ROOT))) {
        values.forEach(value -> request.header(name, value));
      }
    });
    HttpResponse<InputStream> reply = client.send(request.build(), BodyHandlers.ofInputStream());
    try (InputStream body = reply.body()) {
      if (attempt.onHeaders(reply.statusCode(), reply.headers()::allValues).retry()) {
        return null; // run chooses the next host; the client has seen nothing
      }
      reply.headers().map().forEach((name, values) -> {
        if (!HOP.contains(name)) {
          exchange.getResponseHeaders().put(name, values);
        }
      });
      for (Map.Entry<String, String> added : call.responseHeaders().entrySet()) {
        exchange.getResponseHeaders().set(added.getKey(), added.getValue());
      }
      exchange.sendResponseHeaders(reply.statusCode(), 0);
      toClient(body, exchange);
      return null; // run ends the attempt
    }
  }

  /** What the client does wrong is not the upstream's fault, so it must not look like an upstream's exception. */
  private static void toClient(InputStream body, HttpExchange exchange) throws IOException {
    byte[] chunk = new byte[16 * 1024];
    for (int n = body.read(chunk); n >= 0; n = body.read(chunk)) {
      try {
        exchange.getResponseBody().write(chunk, 0, n);
      } catch (IOException clientGone) {
        throw new IllegalStateException("the client went away", new UncheckedIOException(clientGone));
      }
    }
  }
}
