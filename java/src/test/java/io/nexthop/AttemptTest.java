package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.ConnectException;
import java.net.http.HttpRequest;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class AttemptTest {
  private static final HeaderSource NONE = name -> List.of();

  @Test
  void aWholeReport() {
    try (Engine mesh = Meshes.hosts(2)) {
      Attempt attempt = mesh.chooseHost("api", 1);
      assertEquals(1, attempt.number());
      assertNull(attempt.verdict());
      Verdict verdict = attempt.complete(200);
      assertEquals(new Verdict(Verdict.Action.FORWARD, "success", Duration.ZERO, 200, "-"), verdict);
      assertSame(verdict, attempt.verdict());
      assertSame(verdict, mesh.chooseHost("api", 1).complete(200), "plain successes are shared");
      assertEquals(204, mesh.chooseHost("api", 1).complete(204, NONE).status());
      assertEquals(0, mesh.chooseHost("api", 1).complete(Outcome.success()).flags().indexOf('-'));
      Outcome all = Outcome.status(404).headers(NONE).grpcStatus(5).latency(Duration.ofMillis(3)).bytes(10)
          .detail("not there").noBody().connectionClosed().connected();
      assertEquals(404, mesh.chooseHost("api", 1).complete(all).status());
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void failuresHaveStatusAndFlag() {
    try (Engine mesh = Meshes.hosts(2)) {
      Verdict verdict = mesh.chooseHost("api", 1).fail(Failure.CONNECT_FAILURE);
      assertEquals(503, verdict.status());
      assertEquals("UF", verdict.flags());
      for (Failure failure : Failure.values()) {
        Verdict each = mesh.chooseHost("api", 1).fail(failure);
        assertFalse(each.retry());
        assertTrue(each.status() >= 400, failure + " " + each);
        assertEquals(failure.name().toLowerCase(java.util.Locale.ROOT), Names.of(Names.FAILURE, failure.number));
      }
      assertEquals("UF", mesh.chooseHost("api", 1).fail(new ConnectException("refused")).flags());
      assertEquals("UR", mesh.chooseHost("api", 1).fail(new IOException("Connection reset")).flags());
      assertEquals("UC", mesh.chooseHost("api", 1).complete(Outcome.failed(Failure.CONNECTION_TERMINATION).notSent().cut()).flags());
      for (String odd : List.of("\ud800", "x\udc00", "\ud83d\ude00".repeat(200), "\u20ac".repeat(200), "\0", "")) {
        assertEquals("UR", mesh.chooseHost("api", 1).fail(new IOException(odd)).flags());
      }
      Attempt ours = mesh.chooseHost("api", 1);
      assertFalse(ours.fail(new IllegalStateException("a bug of this side")).retry());
      Meshes.usage("ended", () -> ours.complete(200));
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void twoPhases() {
    try (Engine mesh = Meshes.hosts(2)) {
      Attempt attempt = mesh.chooseHost("api", 1);
      Meshes.usage("state", attempt::end);
      assertEquals(Verdict.Action.FORWARD, attempt.onHeaders(200, NONE).action());
      assertEquals(1, mesh.liveRequests());
      Meshes.usage("state", () -> attempt.complete(200));
      attempt.end();
      attempt.end();
      Attempt broken = mesh.chooseHost("api", 1);
      broken.onHeaders(200, NONE);
      assertFalse(broken.fail(Failure.REMOTE_RESET).retry());
      Attempt thrown = mesh.chooseHost("api", 1);
      thrown.onHeaders(200, NONE);
      assertFalse(thrown.fail(new IOException("Connection reset")).retry());
      Attempt trailers = mesh.chooseHost("api", 1);
      trailers.onHeaders(200, NONE);
      trailers.end(Outcome.success().grpcStatus(14).bytes(7));
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void wantedResponseHeadersDecide() {
    String policy = """
        retry_policy:
          retry_on: retriable-headers
          num_retries: 1
          retriable_headers: [{name: X-Again, present_match: true}]
        """;
    try (Engine mesh = Meshes.exact(Meshes.cluster("api", 2, ""), Meshes.routes("api", policy));
        Request request = mesh.request("api")) {
      Attempt attempt = Meshes.go(request.tryChooseHost());
      Verdict verdict = attempt.complete(200, name -> name.equals("x-again") ? List.of("yes", "yes") : List.of());
      assertTrue(verdict.retry(), verdict.toString());
    }
  }

  @Test
  void wrongUseSaysSoAndChangesNothing() {
    try (Engine mesh = Meshes.hosts(2)) {
      Attempt twice = mesh.chooseHost("api", 1);
      twice.complete(200);
      Meshes.usage("ended", () -> twice.complete(200));
      Meshes.usage("ended", () -> twice.fail(Failure.TIMEOUT));
      Meshes.usage("ended", () -> twice.onHeaders(200, NONE));
      twice.end();
      twice.cancel();
      twice.close();
      Attempt attempt = mesh.chooseHost("api", 1);
      for (int status : new int[] {-1, 1, 99, 1000, 65736, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
        Meshes.usage("invalid", () -> attempt.complete(status));
        Meshes.usage("invalid", () -> attempt.onHeaders(status, NONE));
        Meshes.usage("invalid", () -> Outcome.status(status));
      }
      Meshes.named("headers", () -> attempt.complete(200, null));
      Meshes.named("headers", () -> attempt.onHeaders(200, null));
      Meshes.named("outcome", () -> attempt.complete((Outcome) null));
      Meshes.named("failure", () -> attempt.fail((Failure) null));
      Meshes.named("failure", () -> attempt.fail((Throwable) null));
      Meshes.named("trailers", () -> attempt.end(null));
      Meshes.named("chunks", () -> attempt.body(null));
      Meshes.usage("invalid", () -> Outcome.success().bytes(-1));
      Meshes.usage("invalid", () -> Outcome.success().latency(Duration.ofNanos(-1)));
      Meshes.usage("invalid", () -> Outcome.success().grpcStatus(-2));
      Meshes.usage("invalid", () -> attempt.complete(Outcome.success().detail("\ud800")));
      assertEquals(1, mesh.liveRequests());
      attempt.complete(200);
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void whatIsDroppedIsCancelled() {
    try (Engine mesh = Meshes.hosts(2)) {
      try (Attempt attempt = mesh.chooseHost("api", 1)) {
        assertEquals(1, mesh.liveRequests());
        assertNotNull(attempt.toString());
      }
      assertThrows(IllegalStateException.class, () -> {
        try (Attempt attempt = mesh.chooseHost("api", 1)) {
          throw new IllegalStateException("on the way");
        }
      });
      try (Attempt attempt = mesh.chooseHost("api", 1)) {
        attempt.onHeaders(200, NONE);
      }
      try (Request request = mesh.request("api")) {
        Meshes.go(request.tryChooseHost());
      }
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void theCollectorEndsWhatHasNoDeadline() throws InterruptedException {
    try (Engine mesh = Meshes.exact(Meshes.cluster("api", 2, ""), Meshes.routes("api", "timeout: 0s"))) {
      for (int i = 0; i < 20; i++) {
        assertNull(mesh.chooseHost("api", 1).remaining());
        Meshes.go(mesh.request("api").tryChooseHost());
      }
      // The collector decides when; it is asked until it did, for a bounded time.
      for (int i = 0; i < 400 && mesh.liveRequests() > 0; i++) {
        System.gc();
        Thread.sleep(5);
      }
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void exactlyOneOfTwoReportsWins() throws InterruptedException {
    try (Engine mesh = Meshes.hosts(2)) {
      for (int round = 0; round < 200; round++) {
        Attempt attempt = mesh.chooseHost("api", 1);
        CountDownLatch start = new CountDownLatch(1);
        AtomicInteger won = new AtomicInteger();
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
          threads[i] = new Thread(() -> {
            try {
              start.await();
              attempt.complete(200);
              won.incrementAndGet();
            } catch (UsageException lost) {
              assertEquals("ended", lost.code());
            } catch (InterruptedException impossible) {
              throw new AssertionError(impossible);
            }
          });
          threads[i].start();
        }
        start.countDown();
        for (Thread thread : threads) {
          thread.join();
        }
        assertEquals(1, won.get());
      }
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void timeoutsAndTheReadyMadeRequest() {
    String limits = """
        timeout: 3s
        retry_policy: {retry_on: 5xx, num_retries: 1, per_try_timeout: 0.5s, per_try_idle_timeout: 0.2s}
        """;
    try (Engine mesh = Meshes.exact(Meshes.cluster("api", 1, ""), Meshes.routes("api", limits));
        Request request = mesh.request(Head.of("api").path("/a b|c%20%zz?q={x}&é"))) {
      Attempt attempt = Meshes.go(request.tryChooseHost());
      assertEquals(Duration.ofMillis(500), attempt.timeout());
      assertEquals(Duration.ofSeconds(3), attempt.remaining());
      assertEquals(Duration.ofMillis(200), attempt.idleTimeout());
      assertNull(attempt.hedgeAfter());
      assertEquals("http://10.0.0.1/a%20b%7cc%20%25zz?q=%7bx%7d&%c3%a9", attempt.uri(null).toString());
      assertEquals("http://10.0.0.1/other", attempt.uri("other").toString());
      HttpRequest made = attempt.newRequest("/pay").build();
      assertEquals("http://10.0.0.1/pay", made.uri().toString());
      assertEquals(Duration.ofMillis(500), made.timeout().orElseThrow());
      attempt.headers().forEach((name, value) ->
          assertEquals(value, made.headers().firstValue(name), "header " + name));
      assertFalse(attempt.explain().values().isEmpty());
      String cluster = attempt.cluster();
      assertEquals(cluster, mesh.effective(cluster).get("name"));
      assertTrue(mesh.explain(Head.of(cluster)).values().containsKey("hosts"));
      assertFalse(mesh.loadReport(true).values().isEmpty());
      attempt.complete(200);
      assertNotNull(request.responseHeaders());
    }
  }

  @Test
  void urisOfUnusualHosts() {
    try (Engine mesh = Meshes.hosts(1)) {
      mesh.setHosts("api", "[2001:db8::1]:8080");
      assertEquals("http://[2001:db8::1]:8080/x", mesh.chooseHost("api", 1).uri("/x").toString());
      assertEquals("http://[2001:db8::1]:8080/", mesh.chooseHost("api", 1).uri(null).toString());
    }
  }
}
