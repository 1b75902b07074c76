package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class HeadTest {
  private static final String HASHED = """
      hash_policy:
      - header: {header_name: X-User}
      """;

  private static Engine hashing() {
    return Meshes.exact(Meshes.cluster("api", 20, "lb_policy: RING_HASH"), Meshes.routes("api", HASHED));
  }

  private static String host(Engine mesh, Head head) {
    try (Request request = mesh.request(head); Attempt attempt = Meshes.go(request.tryChooseHost())) {
      return attempt.host().address();
    }
  }

  @Test
  void wantedHeadersDecide() {
    try (Engine mesh = hashing()) {
      Set<String> hosts = new HashSet<>();
      for (int user = 0; user < 40; user++) {
        String name = "user-" + user;
        String first = host(mesh, Head.of("api").header("X-USER", name));
        assertEquals(first, host(mesh, Head.matching("x", "/").header("x-user", name)));
        assertEquals(first, host(mesh, Head.of("api").headers(Map.of("X-User", List.of(name)))));
        assertEquals(first, host(mesh, Head.of("api").headers(wanted -> wanted.equals("x-user") ? List.of(name) : null)));
        hosts.add(first);
      }
      assertTrue(hosts.size() > 5, hosts.toString());
      assertEquals(host(mesh, Head.of("api").key("same")), host(mesh, Head.of("api").key("same".getBytes())));
      assertEquals(host(mesh, Head.of("api").hash(77)), host(mesh, Head.of("api").hash(77)));
    }
  }

  @Test
  void aWantThatAnUpdateBringsIsRead() {
    try (Engine mesh = Meshes.exact(Meshes.cluster("api", 20, "lb_policy: RING_HASH"), Meshes.routes("api", ""))) {
      host(mesh, Head.of("api").header("x-user", "1"));
      mesh.updateString(Meshes.cluster("api", 20, "lb_policy: RING_HASH"), Meshes.routes("api", HASHED));
      Set<String> hosts = new HashSet<>();
      for (int i = 0; i < 20; i++) {
        hosts.add(host(mesh, Head.of("api").header("x-user", "1")));
      }
      assertEquals(1, hosts.size());
    }
  }

  @Test
  void aHostAskedForByNoAddressIsRefused() {
    try (Engine mesh = Meshes.retrying(); Request request = mesh.request(Head.of("api").overrideHost("!"))) {
      assertThrows(UsageException.class, request::tryChooseHost);
    }
  }

  @Test
  void everyFieldArrives() {
    try (Engine mesh = Meshes.retrying()) {
      Head head = Head.ofRoute("main").method("POST").scheme("https").authority("shop.example").path("/pay?x=1")
          .header("x-a", "1").header("x-a", "2").internal(true).explain(true).replay(true).source("192.0.2.1:99")
          .local("192.0.2.2:80").metadata(Map.of("v", 1)).filterMetadata(Map.of("f", Map.of()))
          .timeout(Duration.ofMillis(700)).priority(Head.Priority.HIGH).body(Head.Body.ONCE);
      try (Request request = mesh.request(head); Attempt attempt = Meshes.go(request.tryChooseHost())) {
        assertEquals(Duration.ofMillis(700), attempt.remaining());
        assertEquals(Duration.ofMillis(700), request.timeout());
        assertTrue(request.route().orElseThrow().endsWith("main"));
        assertEquals("api", request.cluster());
        assertEquals("/pay?x=1", attempt.uri(null).getRawPath() + "?" + attempt.uri(null).getRawQuery());
      }
    }
  }

  @Test
  void headerValuesAreBytes() {
    try (Engine mesh = hashing()) {
      // Latin-1 fits one byte a character, everything else is UTF-8: both are legal values and different keys.
      for (String value : List.of("", "\0", "\u00ff", "\u0100", "caf\u00e9", "\ud83d\ude00", "a".repeat(20_000))) {
        String first = host(mesh, Head.of("api").header("x-user", value));
        assertEquals(first, host(mesh, Head.of("api").header("x-user", value)));
      }
      Meshes.usage("invalid", () -> mesh.request(Head.of("api").header("x-user", "\ud800")));
      List<String> hole = new ArrayList<>();
      hole.add(null);
      Meshes.named("a value of header x-user", () -> mesh.request(Head.of("api").headers(name -> "x-user".equals(name) ? hole : List.of())));
    }
  }

  @Test
  void tooMuchTextIsRefusedNotCut() {
    try (Engine mesh = Meshes.hosts(1)) {
      Request request = mesh.request(Head.of("api").path("/" + "x".repeat(70_000)));
      Meshes.usage("limit", request::tryChooseHost);
      assertEquals(0, mesh.liveRequests());
      Meshes.usage("invalid", () -> mesh.request(Head.of("api").path("\udfff")));
      Meshes.usage("invalid", () -> mesh.request("\ud800"));
    }
  }

  @Test
  void explanationsAreAskedForAsJson() {
    try (Engine mesh = hashing()) {
      Head head = Head.of("api").method("PUT").path("/x").header("X-User", "1").header("x-unwanted", "2").key("k")
          .hash(-1).timeout(Duration.ofMillis(1500)).priority(Head.Priority.HIGH).body(Head.Body.ONCE).internal(true)
          .metadata(Map.of("v", 1)).overrideHost("!10.0.0.1:80");
      Map<String, Object> json = Json.object(head.json(mesh.wants));
      assertEquals("api", json.get("cluster"));
      assertEquals(Map.of("x-user", "1"), json.get("headers"));
      assertEquals("18446744073709551615", json.get("hash"));
      assertEquals(1.5, json.get("timeout"));
      assertEquals("high", json.get("priority"));
      assertEquals("once", json.get("body"));
      assertEquals(true, json.get("internal"));
      assertEquals(Map.of("v", 1L), json.get("metadata"));
      assertEquals("!10.0.0.1:80", json.get("override_host"));
    }
  }

  @Test
  void nullsAndBadNumbersAreNamed() {
    Meshes.named("cluster", () -> Head.of(null));
    Meshes.named("route", () -> Head.ofRoute(null));
    Meshes.named("authority", () -> Head.matching(null, "/"));
    Meshes.named("path", () -> Head.matching("a", null));
    Head head = Head.of("api");
    Meshes.named("method", () -> head.method(null));
    Meshes.named("scheme", () -> head.scheme(null));
    Meshes.named("name", () -> head.header(null, "v"));
    Meshes.named("value", () -> head.header("n", null));
    Meshes.named("values", () -> head.headers((HeaderSource) null));
    Meshes.named("values", () -> head.headers((Map<String, List<String>>) null));
    Meshes.named("address", () -> head.source(null));
    Meshes.named("address", () -> head.local(null));
    Meshes.named("address", () -> head.overrideHost(null));
    Meshes.named("key", () -> head.key((String) null));
    Meshes.named("key", () -> head.key((byte[]) null));
    Meshes.named("metadata", () -> head.metadata(null));
    Meshes.named("filterMetadata", () -> head.filterMetadata(null));
    Meshes.named("limit", () -> head.timeout(null));
    Meshes.named("priority", () -> head.priority(null));
    Meshes.named("body", () -> head.body(null));
    Meshes.named("executor", () -> head.executor(null));
    Meshes.usage("invalid", () -> head.timeout(Duration.ofNanos(-1)));
    head.timeout(Duration.ZERO); // none, as when it was not given
    Map<String, Object> loop = new HashMap<>();
    loop.put("self", loop);
    Meshes.usage("invalid", () -> head.metadata(loop));
  }
}
