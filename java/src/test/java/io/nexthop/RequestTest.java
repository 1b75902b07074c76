package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.ConnectException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class RequestTest {
  @Test
  void retriesAfterBackOff() {
    try (Engine mesh = Meshes.retrying(); Request request = mesh.request(Head.of("api").path("/pay"))) {
      Meshes.usage("state", request::timeout);
      assertEquals("api", request.cluster());
      assertTrue(request.route().isEmpty());
      Attempt first = Meshes.go(request.tryChooseHost());
      Meshes.usage("state", request::tryChooseHost);
      Verdict verdict = first.complete(503);
      assertTrue(verdict.retry());
      assertTrue(verdict.after().toMillis() < 25, verdict.toString());
      if (!verdict.after().isZero()) {
        Meshes.waits(request.tryChooseHost(), "backoff");
      }
      mesh.advance(Duration.ofMillis(25));
      Attempt second = Meshes.go(request.tryChooseHost());
      assertEquals(2, second.number());
      assertEquals("success", second.complete(200).reason());
      Meshes.usage("ended", request::tryChooseHost);
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void theLastFailureLeavesALocalReply() {
    try (Engine mesh = Meshes.retrying(); Request request = mesh.request("api")) {
      assertTrue(request.reply().isEmpty());
      for (int number = 1; number <= 3; number++) {
        Verdict verdict = Meshes.go(request.tryChooseHost()).fail(Failure.CONNECT_FAILURE);
        assertEquals(number < 3, verdict.retry(), verdict.toString());
        mesh.advance(Duration.ofMillis(250));
      }
      LocalReply reply = request.reply().orElseThrow();
      assertEquals(503, reply.status());
      assertTrue(reply.flags().contains("UF") && reply.flags().contains("URX"), reply.flags());
      assertFalse(reply.body().isEmpty());
    }
  }

  @Test
  void refusalsAreValuesOrThrown() throws InterruptedException {
    try (Engine mesh = Meshes.hosts(0)) {
      Refusal refusal = Meshes.refused(mesh.request("api").tryChooseHost(), "no_healthy_upstream");
      assertEquals(503, refusal.reply().status());
      assertEquals("UH", refusal.reply().flags());
      assertEquals("no_healthy_upstream", refusal.reply().details());
      assertEquals("no healthy upstream", refusal.reply().body());
      Request request = mesh.request("api");
      RefusedException thrown = assertThrows(RefusedException.class, request::chooseHost);
      assertEquals("refused", thrown.code());
      assertEquals(0, thrown.getStackTrace().length);
      assertEquals(refusal, thrown.refusal());
      assertSame(thrown.reply(), request.reply().orElseThrow());
      Meshes.usage("ended", request::tryChooseHost);
      assertThrows(RefusedException.class, () -> mesh.chooseHost("api", 1));
      CompletionException later = assertThrows(CompletionException.class, () -> mesh.request("api").chooseHostAsync().join());
      assertEquals(RefusedException.class, later.getCause().getClass());
      Refusal unknown = Meshes.refused(mesh.request("nobody").tryChooseHost(), "no_cluster");
      assertEquals(503, unknown.reply().status());
      assertEquals("NC", unknown.reply().flags());
      assertEquals("no_cluster", assertThrows(RefusedException.class, () -> mesh.chooseHost("nobody", 1)).refusal().refusal());
      Refusal nowhere = Meshes.refused(mesh.request(Head.matching("x", "/")).tryChooseHost(), "no_route");
      assertEquals(404, nowhere.reply().status());
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void fullQueuesRefuse() {
    try (Engine mesh = Meshes.exact(Meshes.cluster("api", 1, Meshes.NOT_EVEN_ONE))) {
      Attempt holder = Meshes.go(mesh.request("api").tryChooseHost());
      Refusal refusal = Meshes.refused(mesh.request("api").tryChooseHost(), "overflow");
      assertEquals("pending", refusal.resource());
      assertEquals("UO", refusal.reply().flags());
      assertEquals("true", refusal.reply().headers().get("x-envoy-overloaded"));
      holder.complete(200);
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void statelessAttemptsCarryNumberAndTried() {
    String composite = """
        clusters:
        - {name: one, type: STATIC, load_assignment: {cluster_name: one, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.1.1, port_value: 80}}}}]}]}}
        - {name: two, type: STATIC, load_assignment: {cluster_name: two, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.2.1, port_value: 80}}}}]}]}}
        - name: providers
          lb_policy: CLUSTER_PROVIDED
          cluster_type:
            name: envoy.clusters.composite
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig
              clusters: [{name: one}, {name: two}]
        """;
    try (Engine mesh = Meshes.exact(composite)) {
      try (Attempt second = mesh.chooseHost("providers", 2)) {
        assertEquals(2, second.number());
        assertEquals("10.0.2.1:80", second.host().address());
        assertEquals("two", second.cluster());
        assertFalse(second.complete(200).retry());
      }
      Refusal past = Meshes.refused(mesh.tryChooseHost(Head.of("providers"), 3, List.of()), "no_healthy_upstream");
      assertEquals("past_last_sub_cluster", past.resource());
      assertEquals(0, mesh.liveRequests());
    }
    String previous = """
        retry_policy:
          retry_on: 5xx
          num_retries: 3
          host_selection_retry_max_attempts: 50
          retry_host_predicate:
          - name: envoy.retry_host_predicates.previous_hosts
            typed_config: {"@type": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate}
        """;
    try (Engine mesh = Meshes.exact(Meshes.cluster("api", 2, ""), Meshes.routes("api", previous))) {
      for (int i = 0; i < 20; i++) {
        Attempt attempt = Meshes.go(mesh.tryChooseHost(Head.of("api"), 2, List.of("10.0.0.1:80")));
        assertEquals("10.0.0.2:80", attempt.host().address());
        attempt.complete(200);
      }
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void statelessChoicesNeverWait() {
    String queue = Meshes.NARROW + "nexthop: {connections: queue}\n";
    try (Engine mesh = Meshes.exact(Meshes.cluster("api", 1, queue))) {
      Attempt holder = mesh.chooseHost("api", 1);
      WouldWaitException thrown = assertThrows(WouldWaitException.class, () -> mesh.chooseHost("api", 1));
      assertEquals("queue", thrown.waiting().reason());
      Meshes.waits(mesh.tryChooseHost(Head.of("api"), 1, List.of()), "queue");
      assertEquals(1, mesh.liveRequests());
      holder.complete(200);
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void iterationGoesOnWhileVerdictsSayRetry() {
    try (Engine mesh = Engine.builder().text(Meshes.cluster("api", 3, ""), Meshes.routes("api", Meshes.RETRY)).build()) {
      List<Integer> numbers = new ArrayList<>();
      for (Attempt attempt : mesh.request("api")) {
        numbers.add(attempt.number());
        attempt.complete(attempt.number() < 3 ? 503 : 200);
      }
      assertEquals(List.of(1, 2, 3), numbers);
      int rounds = 0;
      for (Attempt unreported : mesh.request("api")) {
        assertEquals(1, unreported.number());
        rounds++;
      }
      assertEquals(1, rounds);
      Meshes.quiet(mesh, "api");
    }
    try (Engine mesh = Meshes.hosts(0)) {
      Iterator<Attempt> none = mesh.request("api").iterator();
      assertThrows(RefusedException.class, none::next);
      assertFalse(none.hasNext());
      assertThrows(NoSuchElementException.class, none::next);
    }
  }

  @Test
  void runRetriesReportsAndThrows() throws Exception {
    try (Engine mesh = Engine.builder().text(Meshes.cluster("api", 3, ""), Meshes.routes("api", Meshes.RETRY)).build()) {
      AtomicInteger closed = new AtomicInteger();
      AutoCloseable dropped = closed::incrementAndGet;
      try (Request request = mesh.request("api")) {
        AutoCloseable last = request.run(attempt -> {
          attempt.complete(attempt.number() < 3 ? 503 : 200);
          return dropped;
        });
        assertSame(dropped, last);
        assertEquals(2, closed.get(), "responses of retried attempts are let go");
      }
      assertEquals("x", mesh.request("api").run(attempt -> "x"), "unreported is a success");
      assertEquals("y", mesh.request("api").run(attempt -> {
        attempt.onHeaders(200, name -> List.of());
        return "y";
      }));
      Request failing = mesh.request("api");
      AtomicInteger calls = new AtomicInteger();
      assertThrows(ConnectException.class, () -> failing.run(attempt -> {
        calls.incrementAndGet();
        throw new ConnectException("refused");
      }));
      assertEquals(3, calls.get());
      assertEquals("UF,URX", failing.reply().orElseThrow().flags());
      IllegalStateException ours = new IllegalStateException();
      assertSame(ours, assertThrows(IllegalStateException.class, () -> mesh.request("api").run(attempt -> {
        throw ours;
      })));
      IOException after = new IOException("after the report");
      assertSame(after, assertThrows(IOException.class, () -> mesh.request("api").run(attempt -> {
        attempt.complete(503);
        throw after;
      })));
      Meshes.named("send", () -> mesh.request("api").runAsync(null));
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void runAsyncRetriesReportsAndThrows() {
    try (Engine mesh = Engine.builder().text(Meshes.cluster("api", 3, ""), Meshes.routes("api", Meshes.RETRY)).build()) {
      int number = mesh.request("api").runAsync(attempt -> CompletableFuture.supplyAsync(() -> {
        attempt.complete(attempt.number() < 3 ? 503 : 200);
        return attempt.number();
      })).join();
      assertEquals(3, number);
      assertEquals("x", mesh.request("api").runAsync(attempt -> CompletableFuture.completedFuture("x")).join());
      Request failing = mesh.request("api");
      CompletionException thrown = assertThrows(CompletionException.class, () -> failing
          .runAsync(attempt -> CompletableFuture.failedFuture(new ConnectException("refused"))).join());
      assertEquals(ConnectException.class, thrown.getCause().getClass());
      assertEquals("UF,URX", failing.reply().orElseThrow().flags());
      assertThrows(CompletionException.class, () -> mesh.request("api").runAsync(attempt -> null).join());
      assertThrows(CompletionException.class, () -> mesh.request("api").runAsync(attempt -> {
        throw new IllegalStateException();
      }).join());
      CompletableFuture<String> never = new CompletableFuture<>();
      CompletableFuture<String> running = mesh.request("api").runAsync(attempt -> never);
      assertEquals(1, mesh.liveRequests());
      running.cancel(true);
      assertTrue(never.isCancelled());
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void streamingUploadsStartTheClockLater() {
    try (Engine mesh = Meshes.exact(Meshes.cluster("api", 1, ""), Meshes.routes("api", "timeout: 1s"));
        Request request = mesh.request(Head.of("api").body(Head.Body.STREAMING))) {
      Attempt attempt = Meshes.go(request.tryChooseHost());
      mesh.advance(Duration.ofSeconds(5));
      request.bodyComplete();
      assertEquals("FORWARD", attempt.complete(200).action().name());
      request.bodyComplete();
    }
  }

  @Test
  void uploadsThatAreOverBeforeTheFirstChoice() {
    try (Engine mesh = Meshes.exact(Meshes.cluster("api", 1, ""), Meshes.routes("api", "timeout: 1s"));
        Request running = mesh.request(Head.matching("x", "/").body(Head.Body.STREAMING));
        Request over = mesh.request(Head.matching("x", "/").body(Head.Body.STREAMING))) {
      assertNull(Meshes.go(running.tryChooseHost()).remaining());
      over.bodyComplete();
      assertEquals(Duration.ofSeconds(1), Meshes.go(over.tryChooseHost()).remaining());
    }
  }

  @Test
  void theLastAttemptOfALoopEndsWithIt() {
    try (Engine mesh = Meshes.retrying(); Request request = mesh.request("api")) {
      Attempt last = null;
      for (Attempt attempt : request) {
        attempt.onHeaders(200, name -> null);
        last = attempt;
      }
      assertFalse(last.answered());
      assertEquals(0, mesh.liveRequests());
    }
  }

  @Test
  void aWrongStateSaysWhatHelps() {
    try (Engine mesh = Meshes.retrying()) {
      Request request = mesh.request("api");
      Attempt attempt = Meshes.go(request.tryChooseHost());
      says("attempt 1 is open; report or cancel it", request::tryChooseHost);
      says("no response headers were reported; report them first", attempt::end);
      says("the status is 42; it is 100 to 999", () -> attempt.complete(42));
      says("the status is -1; it is 100 to 999", () -> attempt.complete(-1));
      attempt.onHeaders(200, name -> null);
      says("the attempt was answered; use end", () -> attempt.complete(200));
      says("the response of attempt 1 was forwarded", request::tryChooseHost);
      attempt.end();
      says("the attempt has ended", () -> attempt.complete(200));
      says("the request has ended", request::tryChooseHost);
      for (int number : new int[] {0, -1, Integer.MIN_VALUE}) {
        if (number != 0) says("attempts count from 1 to 2147483647", () -> mesh.chooseHost("api", number));
        says("attempts count from 1 to 2147483647", () -> mesh.tryChooseHost(Head.of("api"), number, List.of()));
      }
    }
  }

  private static void says(String part, org.junit.jupiter.api.function.Executable call) {
    String found = assertThrows(UsageException.class, call).getMessage();
    assertTrue(found.contains(part), found);
  }

  @Test
  void namesThatNothingHas() {
    try (Engine mesh = Meshes.retrying(); Request request = mesh.request("apo")) {
      String sentence = "no attempt: no_cluster; no cluster or route \"apo\"; did you mean \"api\"?; "
          + "the local reply is 503 NC, cluster_not_found";
      assertEquals(sentence, assertThrows(RefusedException.class, () -> mesh.chooseHost("apo", 1)).getMessage());
      assertEquals(sentence, assertThrows(RefusedException.class, request::chooseHost).getMessage());
      says("no cluster \"apo\"; did you mean \"api\"?", () -> mesh.hosts("apo"));
    }
  }

  @Test
  void aRefusalBehindTheChoiceNamesTheHost() {
    try (Engine mesh = Meshes.exact(Meshes.cluster("api", 1,
        "circuit_breakers: {thresholds: [{max_requests: 1}]}"), Meshes.routes("api", ""))) {
      Attempt open = Meshes.go(mesh.request("api").tryChooseHost());
      Refusal refusal = Meshes.refused(mesh.request("api").tryChooseHost(), "overflow");
      assertEquals("requests", refusal.resource());
      assertEquals(open.host().address(), refusal.host().address());
      open.complete(200);
    }
  }

  @Test
  void closingEndsItFromAnyState() {
    try (Engine mesh = Meshes.retrying()) {
      Request untouched = mesh.request("api");
      untouched.close();
      untouched.close();
      Meshes.usage("ended", untouched::tryChooseHost);
      Request open = mesh.request("api");
      Attempt attempt = Meshes.go(open.tryChooseHost());
      open.close();
      Meshes.usage("ended", () -> attempt.complete(200));
      Request backing = mesh.request("api");
      Meshes.go(backing.tryChooseHost()).complete(503);
      backing.close();
      Meshes.usage("ended", backing::tryChooseHost);
      Meshes.quiet(mesh, "api");
    }
  }
}
