package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ChecksTest {
  private static final String HTTP = "http_health_check: {path: /health}";
  private static final String PUT = "http_health_check: {path: /h, method: PUT, send: {text: '6869'}, receive: [{text: 6f6b}], "
      + "response_buffer_size: 4, host: other.example}";
  private static final String GRPC = "grpc_health_check: {service_name: s}";

  private static String checks(String probe) {
    String http2 = probe.contains("grpc") || probe.contains("HTTP2") ? "http2_protocol_options: {}\n" : "";
    return http2 + """
        common_lb_config: {healthy_panic_threshold: {value: 0}}
        health_checks:
        - timeout: 5s
          interval: 0.02s
          no_traffic_interval: 0.02s
          unhealthy_threshold: 2
          healthy_threshold: 1
        """ + "  " + probe + "\n";
  }

  private static Engine manual(String probe, int hosts) {
    return Meshes.exact(Meshes.cluster("web", hosts, checks(probe)));
  }

  private static List<Object> flags(Engine mesh) {
    return mesh.hosts("web").stream().map(host -> host.get("health_flags")).toList();
  }

  private static String code(Runnable wrong) {
    return assertThrows(UsageException.class, wrong::run).code();
  }

  @Test
  void nobodyIsCheckedWithoutAQuestion() {
    try (Engine mesh = manual(HTTP, 1)) {
      mesh.advance(Duration.ofHours(1));
      assertEquals(List.of("healthy"), flags(mesh));
      assertNull(mesh.checksDeadline());
    }
  }

  @Test
  void answersAreJudgedAndResultsTaken() {
    try (Engine mesh = manual(HTTP, 2)) {
      List<Check> due = mesh.checks();
      assertEquals(List.of(), mesh.checks());
      assertEquals(Duration.ofSeconds(5), mesh.checksDeadline());
      Check first = due.get(0);
      assertEquals(List.of(Check.Protocol.HTTP, "GET", "/health", "web", "web", "", ""), List.of(first.protocol(),
          first.method(), first.path(), first.authority(), first.cluster(), first.name(), first.extension()));
      assertEquals(List.of(Duration.ofSeconds(5), 0L, false, false, true), List.of(first.timeout(), first.bodyLimit(),
          first.http2(), first.secure(), first.mayReuse()));
      assertEquals(List.of(Map.entry("user-agent", "Envoy/HC")), first.headers());
      assertEquals(first.host().address(), first.address());
      first.answer(503, name -> name.startsWith("x-envoy-immediate") ? List.of("1") : List.of(), new byte[0]);
      due.get(1).result(Check.Result.DEGRADED);
      assertEquals(List.of("/failed_active_hc/excluded_via_immediate_hc_fail", "/degraded_active_hc"), flags(mesh));
      assertTrue(mesh.events().stream().anyMatch(event -> event.containsKey("health_check_failure_event")));
      assertEquals(1L, ((Number) mesh.stats().get("cluster.web.health_check.success")).longValue());
    }
  }

  @Test
  void bytesAndGrpc() {
    try (Engine mesh = manual("tcp_health_check: {send: {text: '50'}, receive: [{text: 6f}, {text: 6b}]}", 1)) {
      Check check = mesh.checks().get(0);
      assertEquals(Check.Protocol.TCP, check.protocol());
      assertArrayEquals(new byte[] {'P'}, check.payload());
      assertEquals(Long.MAX_VALUE, check.bodyLimit());
      assertFalse(check.data(new byte[0]));
      assertFalse(check.data("xo".getBytes(StandardCharsets.US_ASCII)));
      assertTrue(check.data("xo k".getBytes(StandardCharsets.US_ASCII)));
      assertEquals(List.of("healthy"), flags(mesh));
    }
    try (Engine mesh = manual(GRPC, 1)) {
      for (int serving = 2; serving > 0; serving--) {
        Check check = mesh.checks().get(0);
        assertEquals(Check.Protocol.GRPC, check.protocol());
        assertTrue(check.http2());
        assertArrayEquals(new byte[] {0, 0, 0, 0, 3, 10, 1, 's'}, check.payload());
        byte[] body = {0, 0, 0, 0, 2, 8, (byte) serving};
        check.answer(200, name -> name.equals("grpc-status") ? List.of("0") : null, body);
        assertEquals(List.of(serving == 1 ? "healthy" : "/failed_active_hc"), flags(mesh));
        mesh.advance(Duration.ofMillis(20));
      }
    }
  }

  @Test
  void timeAndWrongUse() {
    Engine mesh = manual(HTTP, 1);
    Check late = mesh.checks().get(0);
    mesh.advance(Duration.ofSeconds(5));
    assertEquals(List.of("/failed_active_hc/active_hc_timeout"), flags(mesh));
    assertEquals("ended", code(() -> late.result(Check.Result.SUCCESS)));
    assertEquals("ended", code(() -> late.answer(200, null, new byte[0])));
    assertEquals("ended", code(() -> late.fail(new ConnectException())));
    assertEquals("invalid", code(() -> late.answer(7, null, new byte[0])));
    assertEquals("invalid", code(() -> CheckOptions.defaults().threads(0)));
    mesh.advance(Duration.ofMillis(20));
    Check check = mesh.checks().get(0);
    UsageException raised = assertThrows(UsageException.class, () -> check.answer(0, null, new byte[0]));
    assertTrue(raised.getMessage().contains("cannot be judged"), raised.getMessage());
    check.result(Check.Result.PASSIVE);
    check.fail(new IllegalStateException("anything"));
    assertEquals(2L, ((Number) mesh.stats().get("cluster.web.health_check.network_failure")).longValue());
    mesh.close();
    assertEquals("closed", code(mesh::checks));
    assertEquals("closed", code(mesh::checksDeadline));
    assertEquals("closed", code(mesh::startChecks));
    assertEquals("closed", code(() -> check.result(Check.Result.SUCCESS)));
  }

  @Test
  void hostsLeaveWhileChecksAreOut() {
    try (Engine mesh = manual(HTTP, 2)) {
      List<Check> due = mesh.checks();
      mesh.setHosts("web", due.get(1).address());
      assertEquals("ended", code(() -> due.get(0).result(Check.Result.SUCCESS)));
      mesh.updateString("clusters: []");
      assertEquals("ended", code(() -> due.get(1).result(Check.Result.SUCCESS)));
      assertEquals(List.of(), mesh.checks());
    }
  }

  /** Tells what was asked, and answers in order, each when it may; the last answer for ever. */
  private static final class Script {
    final LinkedBlockingQueue<String> seen = new LinkedBlockingQueue<>();
    final Semaphore may = new Semaphore(0);
    private final ArrayDeque<String> answers = new ArrayDeque<>();

    Script(String... answers) {
      this.answers.addAll(Arrays.asList(answers));
    }

    String next(String asked) {
      seen.add(asked);
      may.acquireUninterruptibly();
      synchronized (answers) {
        return answers.size() > 1 ? answers.poll() : answers.peek();
      }
    }

    String asked() throws InterruptedException {
      return seen.poll(20, TimeUnit.SECONDS);
    }
  }

  /** The first answer fails the host, the second brings it back. A check begins when the result before it is known. */
  private static void performed(int port, String probe, Script script, String asked) throws Exception {
    try (Engine mesh = Engine.fromString(Meshes.local("web", checks(probe), port)); CheckLoop loop = mesh.startChecks()) {
      assertEquals(asked, script.asked());
      for (String flags : List.of("/failed_active_hc", "healthy")) {
        script.may.release();
        assertEquals(asked, script.asked());
        assertEquals(List.of(flags), flags(mesh));
      }
    } finally {
      script.may.release(1000);
    }
  }

  @Test
  void theLoopPerformsHttp() throws Exception {
    for (boolean chunked : List.of(true, false)) {
      for (boolean put : List.of(true, false)) {
        Script script = put ? new Script("200 12345ok", "200 1ok456") : new Script("503 ", "200 ");
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
          String sent = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.US_ASCII);
          String answer = script.next(exchange.getRequestMethod() + " " + exchange.getRequestURI() + " "
              + exchange.getRequestHeaders().getFirst("host") + " " + exchange.getRequestHeaders().getFirst("user-agent") + " "
              + sent);
          byte[] body = answer.substring(4).getBytes(StandardCharsets.US_ASCII);
          exchange.sendResponseHeaders(Integer.parseInt(answer.substring(0, 3)), chunked ? 0 : body.length == 0 ? -1 : body.length);
          try (OutputStream out = exchange.getResponseBody()) {
            out.write(body);
          }
        });
        server.start();
        String asked = put ? "PUT /h other.example Envoy/HC hi" : "GET /health web Envoy/HC ";
        performed(server.getAddress().getPort(), put ? PUT : HTTP, script, asked);
        server.stop(0);
      }
    }
  }

  private interface Answering {
    void answer(Socket socket) throws IOException;
  }

  private static ServerSocket serving(Answering answering) throws IOException {
    ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    Thread accepting = new Thread(() -> {
      while (!server.isClosed()) {
        try {
          Socket socket = server.accept();
          Thread one = new Thread(() -> {
            try (socket) {
              answering.answer(socket);
            } catch (IOException gone) {
              // the other side gave up
            }
          });
          one.setDaemon(true);
          one.start();
        } catch (IOException closed) {
          return;
        }
      }
    });
    accepting.setDaemon(true);
    accepting.start();
    return server;
  }

  @Test
  void theLoopPerformsTcp() throws Exception {
    Script script = new Script("", "xPO NGx");
    try (ServerSocket server = serving(socket -> {
      String asked = new String(socket.getInputStream().readNBytes(4), StandardCharsets.US_ASCII);
      for (String part : script.next(asked).split(" ")) {
        socket.getOutputStream().write(part.getBytes(StandardCharsets.US_ASCII));
      }
    })) {
      String probe = "tcp_health_check: {send: {text: 50494e47}, receive: [{text: 504f4e47}]}";
      performed(server.getLocalPort(), probe, script, "PING");
    }
  }

  private static void frame(OutputStream out, int type, int flags, int stream, byte[] payload) throws IOException {
    out.write(ByteBuffer.allocate(9).putInt(payload.length << 8 | type).put((byte) flags).putInt(stream).array());
    out.write(payload);
  }

  private static byte[] hex(String digits) {
    return HexFormat.of().parseHex(digits.replace(" ", ""));
  }

  /** What a gRPC server says: padding, an indexed status, a coded name, frames in between, and trailers in two frames. */
  @Test
  void theLoopPerformsGrpc() throws Exception {
    Script script = new Script("2", "1");
    try (ServerSocket server = serving(socket -> {
      DataInputStream in = new DataInputStream(socket.getInputStream());
      OutputStream out = socket.getOutputStream();
      assertEquals("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", new String(in.readNBytes(24), StandardCharsets.US_ASCII));
      StringBuilder asked = new StringBuilder();
      for (int flags = 0, type = 4; (flags & 1) == 0 || type != 0;) {
        int length = in.readInt();
        type = length & 0xff;
        flags = in.readUnsignedByte();
        in.readInt();
        byte[] payload = in.readNBytes(length >>> 8);
        if (type == 1) {
          new Hpack().read(ByteBuffer.wrap(payload), (name, value) -> asked.append(value).append(' '));
        } else if (type == 0) {
          asked.append(HexFormat.of().formatHex(payload));
        }
      }
      String serving = script.next(asked.toString());
      frame(out, 4, 0, 0, hex("0003 00000064"));
      frame(out, 6, 0, 0, new byte[8]);
      frame(out, 1, 4 | 8, 1, hex("02 88 0f0d 01 37 0000")); // padded: status 200, content-length 7 as a literal
      frame(out, 0, 0, 1, hex("0000000002"));
      frame(out, 0, 8, 1, hex("01 080" + serving + " 00"));
      frame(out, 1, 1, 1, hex("40 88"));
      frame(out, 9, 4, 1, hex("9acac8b21234da8f 01 30")); // grpc-status in Huffman's code, 0
      out.flush();
      in.readAllBytes();
    })) {
      performed(server.getLocalPort(), GRPC, script,
          "POST http web /grpc.health.v1.Health/Check application/grpc trailers Envoy/HC 00000000030a0173");
    }
  }

  /** The examples of RFC 7541, C.6: coded texts, and a table that remembers. */
  @Test
  void headersAreDecompressed() throws Exception {
    Hpack hpack = new Hpack();
    StringBuilder found = new StringBuilder();
    hpack.read(ByteBuffer.wrap(hex("4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d "
        + "29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3")), (name, value) -> found.append(name).append('=').append(value).append(';'));
    assertEquals(":status=302;cache-control=private;date=Mon, 21 Oct 2013 20:13:21 GMT;location=https://www.example.com;",
        found.toString());
    found.setLength(0);
    hpack.read(ByteBuffer.wrap(hex("4883 640e ffc1 c0bf")), (name, value) -> found.append(value).append(';'));
    assertEquals("307;private;Mon, 21 Oct 2013 20:13:21 GMT;https://www.example.com;", found.toString());
    for (String torn : List.of("48", "4885aec3", "ff", "ffffffffffff", "fe", "4882ffff", "80")) {
      assertThrows(IOException.class, () -> new Hpack().read(ByteBuffer.wrap(hex(torn)), (name, value) -> { }), torn);
    }
  }

  @Test
  void whatTheLoopCannotDoIsHandedOn() throws Exception {
    String custom = "custom_health_check: {name: envoy.health_checkers.redis}";
    LinkedBlockingQueue<String> seen = new LinkedBlockingQueue<>();
    CheckOptions options = CheckOptions.defaults().threads(1).others(check -> {
      check.result(Check.Result.FAILED);
      seen.add(check.extension());
    });
    try (Engine mesh = Engine.fromString(Meshes.local("web", checks(custom), 1)); CheckLoop loop = mesh.startChecks(options)) {
      assertEquals("envoy.health_checkers.redis", seen.poll(20, TimeUnit.SECONDS));
      assertEquals(List.of("/failed_active_hc"), flags(mesh));
    }
  }
}
