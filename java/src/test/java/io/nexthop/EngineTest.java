package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EngineTest {
  @TempDir Path folder;

  private Path file(String name, String text) throws IOException {
    return Files.writeString(folder.resolve(name), text);
  }

  @Test
  void filesAndTextsGiveTheSameEngine() throws IOException {
    Path envoy = file("envoy.yaml", Meshes.cluster("api", 3, ""));
    try (Engine mesh = Engine.fromFile(envoy); Attempt attempt = mesh.chooseHost("api", 1)) {
      assertTrue(attempt.host().address().matches("10\\.0\\.0\\.[123]:80"), attempt.host().address());
      assertFalse(attempt.complete(200).retry());
    }
    try (Engine mesh = Engine.fromString(Meshes.cluster("api", 3, ""))) {
      assertEquals("api", mesh.chooseHost("api", 1).cluster());
    }
    EngineBuilder wrong = Engine.builder().dialect(EngineBuilder.Dialect.ENVOY).named("short", "api: {hosts: [10.0.0.1:80]}");
    assertTrue(assertThrows(ConfigException.class, wrong::build).getMessage().startsWith("short:"));
  }

  @Test
  void whatCannotBeReadIsSaidByName() throws IOException {
    for (Path path : List.of(folder.resolve("missing.yaml"), folder)) {
      ConfigException thrown = assertThrows(ConfigException.class, () -> Engine.fromFile(path));
      assertEquals("config", thrown.code());
      assertEquals(path.toString(), thrown.file());
      assertEquals(0, thrown.line());
    }
    Path empty = file("empty.yaml", "");
    assertThrows(ConfigException.class, () -> Engine.fromFile(empty));
  }

  @Test
  void aBadDocumentIsRefusedWithItsPlace() throws IOException {
    Path bad = file("bad.yaml", Meshes.cluster("api", 1, "lb_policy: LEAST_REQEST"));
    ConfigException thrown = assertThrows(ConfigException.class, () -> Engine.fromFile(bad));
    assertEquals(bad.toString(), thrown.file());
    assertEquals(5, thrown.line());
    assertTrue(thrown.column() > 1, thrown.getMessage());
    assertEquals("clusters[0].lb_policy", thrown.path());
    assertTrue(thrown.getMessage().contains("LEAST_REQUEST"), thrown.getMessage());
  }

  @Test
  void anUpdateSwapsWholeOrNotAtAll() throws IOException {
    try (Engine mesh = Meshes.hosts(1)) {
      long epoch = mesh.epoch();
      assertThrows(ConfigException.class, () -> mesh.updateString("clusters: 7"));
      assertEquals(epoch, mesh.epoch());
      assertEquals("10.0.0.1:80", Meshes.go(mesh.request("api").tryChooseHost()).host().address());
      LoadReport report = mesh.updateString(Meshes.cluster("other", 2, ""));
      assertNotNull(report.values());
      assertEquals(report, mesh.loadReport());
      assertTrue(mesh.lint().get("findings") instanceof List<?>);
      assertTrue(mesh.epoch() > epoch);
      assertEquals("other", mesh.chooseHost("other", 1).cluster());
      assertEquals("no_cluster", Meshes.refused(mesh.request("api").tryChooseHost(), "no_cluster").refusal());
      mesh.updateFile(file("third.yaml", Meshes.cluster("third", 1, "")));
      assertEquals("third", mesh.chooseHost("third", 1).cluster());
    }
  }

  @Test
  void reloadReadsWhatChangedAndKeepsServingOnBadContent() throws IOException {
    Path envoy = file("envoy.yaml", Meshes.cluster("api", 1, ""));
    try (Engine mesh = Engine.fromFile(envoy)) {
      assertFalse(mesh.reload());
      Files.writeString(envoy, Meshes.cluster("api", 2, ""));
      assertTrue(mesh.reload());
      Files.writeString(envoy, "clusters: 7\n");
      mesh.events();
      assertFalse(mesh.reload());
      assertTrue(mesh.events().stream().anyMatch(e -> "nexthop.config_rejected".equals(e.get("type"))));
      assertEquals("api", mesh.chooseHost("api", 1).cluster());
    }
  }

  @Test
  void hostsComeFromCode() {
    try (Engine mesh = Meshes.hosts(1)) {
      long epoch = mesh.epoch();
      assertTrue(mesh.setHosts("api", "10.1.0.1:80", "10.1.0.2:80") > epoch);
      assertEquals(Set.of("10.1.0.1:80", "10.1.0.2:80"), seen(mesh, 50));
      mesh.apply("api", List.of(HostChange.remove("10.1.0.1:80"),
          HostChange.add("10.1.0.3:80").weight(2).locality("r", "z", "s").hostname("three")
              .metadata(Map.of("canary", true, "stage", "é\"\\\n")).health(HostChange.Health.HEALTHY)));
      assertEquals(Set.of("10.1.0.2:80", "10.1.0.3:80"), seen(mesh, 50));
      mesh.apply("api", List.of(HostChange.remove("10.1.0.2:80")));
      Host host = mesh.chooseHost("api", 1).host();
      assertEquals(80, host.port());
      assertEquals("three", host.hostname());
      assertEquals(2, host.weight());
      assertEquals(List.of("r", "z", "s"), List.of(host.region(), host.zone(), host.subZone()));
      assertEquals(Map.of("canary", true, "stage", "é\"\\\n"), host.metadata());
      assertFalse(host.secure());
      assertEquals(0, host.priority());
      assertEquals(Duration.ofSeconds(1), host.connectTimeout());
      assertSame(host, mesh.chooseHost("api", 1).host());
      mesh.apply("api", List.of(HostChange.change("10.1.0.3:80").weight(9)));
      Host changed = mesh.chooseHost("api", 1).host();
      assertNotSame(host, changed);
      assertEquals(9, changed.weight());
      assertEquals("three", changed.hostname());
    }
  }

  @Test
  void endpointsComeAsEnvoySendsThem() {
    try (Engine mesh = Meshes.hosts(1)) {
      mesh.applyEndpoints("api", """
          cluster_name: api
          endpoints:
          - lb_endpoints:
            - endpoint: {address: {socket_address: {address: 10.9.9.9, port_value: 81}}}
          """);
      assertEquals(Set.of("10.9.9.9:81"), seen(mesh, 5));
      assertThrows(NexthopException.class, () -> mesh.applyEndpoints("api", "endpoints: 3"));
      assertEquals(Set.of("10.9.9.9:81"), seen(mesh, 5));
    }
  }

  private static Set<String> seen(Engine mesh, int times) {
    Set<String> all = new HashSet<>();
    for (int i = 0; i < times; i++) {
      try (Attempt attempt = mesh.chooseHost("api", 1)) {
        all.add(attempt.host().address());
      }
    }
    return all;
  }

  @Test
  void badHostChangesChangeNothing() {
    try (Engine mesh = Meshes.hosts(1)) {
      long epoch = mesh.epoch();
      Meshes.usage("not_found", () -> mesh.setHosts("nobody", "10.0.0.1:80"));
      Meshes.usage("invalid", () -> mesh.setHosts("api", "10.0.0.9:80", "not an address"));
      Meshes.usage("invalid", () -> HostChange.add("a:1").weight(0));
      Meshes.usage("invalid", () -> HostChange.add("a:1").weight(1L << 32));
      Meshes.usage("invalid", () -> HostChange.add("a:1").priority(129));
      Meshes.usage("invalid", () -> HostChange.add("a:1").metadata(Map.of("x", Double.NaN)));
      Meshes.usage("invalid", () -> HostChange.add("a:1").metadata(Map.of("x", new Object())));
      assertEquals(epoch, mesh.epoch());
      assertEquals(Set.of("10.0.0.1:80"), seen(mesh, 5));
    }
  }

  @Test
  void aHundredThousandHosts() {
    try (Engine mesh = Meshes.hosts(1)) {
      List<HostChange> all = new ArrayList<>();
      for (int i = 0; i < 100_000; i++) {
        all.add(HostChange.set("10." + (i >> 16) + "." + (i >> 8 & 255) + "." + (i & 255) + ":80"));
      }
      mesh.apply("api", all);
      Set<Host> seen = new HashSet<>();
      for (int i = 0; i < 20_000; i++) {
        try (Attempt attempt = mesh.chooseHost("api", 1)) {
          seen.add(attempt.host());
        }
      }
      assertTrue(seen.size() > 10_000, "only " + seen.size());
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void aDocumentOfFiftyMegabytes() {
    String comment = "# " + "x".repeat(1022) + "\n";
    String text = Meshes.cluster("api", 1, "") + comment.repeat(50 * 1024);
    try (Engine mesh = Engine.fromString(text)) {
      assertEquals("10.0.0.1:80", mesh.chooseHost("api", 1).host().address());
    }
    String broken = comment.repeat(50 * 1024) + "clusters: 7\n";
    ConfigException thrown = assertThrows(ConfigException.class, () -> Engine.fromString(broken));
    assertEquals(50 * 1024 + 1, thrown.line());
  }

  @Test
  void numbersAndTexts() {
    try (Engine mesh = Meshes.retrying()) {
      mesh.chooseHost("api", 1).complete(200);
      assertEquals(1, Meshes.stat(mesh, "api", "upstream_rq_total"));
      assertTrue(mesh.prometheus().contains("upstream_rq_total"), mesh.prometheus());
      Map<String, String> attributes = Map.of("envoy.response_code", "200", "envoy.cluster_name", "api");
      Metric answers = new Metric("cluster.upstream_rq", true, 1, attributes);
      assertEquals(List.of(answers), mesh.metrics().stream().filter(m -> m.name().equals(answers.name())).toList());
      List<Map<String, Object>> hosts = mesh.hosts("api");
      assertEquals(List.of("10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"), hosts.stream().map(h -> h.get("address")).toList());
      assertEquals("healthy", hosts.get(0).get("health"));
      Meshes.usage("not_found", () -> mesh.effective("nobody"));
      assertEquals(7, mesh.seed());
      assertTrue(Engine.version().matches("\\d+\\.\\d+\\.\\d+.*"));
    }
  }

  @Test
  void maintenanceAndEvents() {
    String outlier = "outlier_detection: {consecutive_5xx: 1, interval: 10s, base_ejection_time: 30s, max_ejection_percent: 100}";
    try (Engine mesh = Meshes.exact(Meshes.cluster("api", 2, outlier))) {
      Duration due = mesh.maintain();
      assertNotNull(due);
      assertFalse(due.isNegative());
      assertTrue(mesh.events().isEmpty());
      mesh.chooseHost("api", 1).complete(500);
      List<Map<String, Object>> events = mesh.events();
      assertEquals(1, events.size(), events.toString());
      assertTrue(mesh.events().isEmpty());
      mesh.advance(Duration.ofSeconds(60));
      mesh.maintain();
      assertEquals(1, mesh.events().size());
    }
    try (Engine mesh = Engine.fromString(Meshes.cluster("api", 1, ""))) {
      UsageException thrown = assertThrows(UsageException.class, () -> mesh.advance(Duration.ofSeconds(1)));
      assertTrue(thrown.getMessage().contains("manual"), thrown.getMessage());
      assertNull(Durations.of(Durations.NEVER));
    }
  }

  @Test
  void aClosedEngineSaysSo() {
    Engine mesh = Meshes.hosts(1);
    Attempt open = mesh.chooseHost("api", 1);
    Request request = mesh.request("api");
    Attempt asked = Meshes.go(request.tryChooseHost());
    mesh.close();
    mesh.close();
    Meshes.usage("closed", () -> mesh.chooseHost("api", 1));
    Meshes.usage("closed", () -> mesh.request("other"));
    Meshes.usage("closed", () -> open.complete(200));
    Meshes.usage("closed", () -> asked.complete(200));
    Meshes.usage("closed", request::tryChooseHost);
    Meshes.usage("closed", mesh::stats);
    Meshes.usage("closed", mesh::events);
    Meshes.usage("closed", mesh::maintain);
    Meshes.usage("closed", mesh::reload);
    Meshes.usage("closed", () -> mesh.updateString("clusters: []"));
    Meshes.usage("closed", () -> mesh.setHosts("api", "10.0.0.1:80"));
    Meshes.usage("closed", mesh::epoch);
    open.close();
    request.close();
  }

  @Test
  void nullsAndBadNumbersAreNamed() {
    Meshes.named("files", () -> Engine.fromFile((Path[]) null));
    Meshes.named("file", () -> Engine.fromFile((Path) null));
    Meshes.named("documents", () -> Engine.fromString((String[]) null));
    Meshes.named("document", () -> Engine.fromString((String) null));
    Meshes.usage("invalid", () -> Engine.builder().workers(-1));
    Meshes.usage("invalid", () -> Engine.builder().events(-1));
    Meshes.usage("invalid", () -> Engine.builder().lease(Duration.ofSeconds(-1)));
    Meshes.usage("invalid", () -> Engine.fromString("clusters: \ud800"));
    Meshes.named("dialect", () -> Engine.builder().dialect(null));
    Meshes.named("clock", () -> Engine.builder().clock(null));
    Meshes.named("words", () -> Engine.builder().draws((long[]) null));
    Meshes.named("executor", () -> Engine.builder().executor(null));
    try (Engine mesh = Meshes.hosts(1)) {
      Meshes.named("cluster", () -> mesh.chooseHost(null, 1));
      Meshes.named("cluster", () -> mesh.chooseHost(null, 1, new byte[0]));
      Meshes.named("key", () -> mesh.chooseHost("api", 1, null));
      Meshes.named("head", () -> mesh.request((Head) null));
      Meshes.named("cluster", () -> mesh.request((String) null));
      Meshes.named("head", () -> mesh.tryChooseHost(null, 1, List.of()));
      Meshes.named("tried", () -> mesh.tryChooseHost(Head.of("api"), 1, null));
      Meshes.named("cluster", () -> mesh.apply(null, List.of()));
      Meshes.named("changes", () -> mesh.apply("api", null));
      Meshes.named("address", () -> mesh.setHosts("api", (String) null));
      Meshes.named("addresses", () -> mesh.setHosts("api", (String[]) null));
      Meshes.named("cluster", () -> mesh.effective(null));
      Meshes.named("head", () -> mesh.explain(null));
      Meshes.named("by", () -> mesh.advance(null));
      Meshes.named("assignment", () -> mesh.applyEndpoints("api", null));
      Meshes.usage("invalid", () -> mesh.advance(Duration.ofSeconds(-1)));
      Meshes.usage("invalid", () -> mesh.tryChooseHost(Head.of("api"), 0, List.of()));
    }
  }

  @Test
  void negativeAttemptNumbersAreRefused() {
    try (Engine mesh = Meshes.hosts(1)) {
      for (int number : new int[] {-1, Integer.MIN_VALUE}) {
        Meshes.usage("invalid", () -> mesh.chooseHost("api", number));
        Meshes.usage("invalid", () -> mesh.chooseHost("api", number, new byte[] {1}));
        Meshes.usage("invalid", () -> mesh.tryChooseHost(Head.of("api"), number, List.of()));
      }
      UsageException thrown = assertThrows(UsageException.class, () -> mesh.chooseHost("api", -1));
      assertTrue(thrown.getMessage().contains("attempt number is -1"), thrown.getMessage());
      assertEquals(0, mesh.liveRequests());
    }
  }

  @Test
  void theClockSaysWhyItDoesNotMove() {
    try (Engine manual = Meshes.hosts(1); Engine real = Engine.fromString(Meshes.cluster("api", 1, ""))) {
      UsageException far =
          assertThrows(UsageException.class, () -> manual.advance(Duration.ofSeconds(Long.MAX_VALUE)));
      assertTrue(far.getMessage().contains("292 years"), far.getMessage());
      UsageException state = assertThrows(UsageException.class, () -> real.advance(Duration.ofSeconds(1)));
      assertEquals("state", state.code());
      assertTrue(state.getMessage().contains("Clock.MANUAL"), state.getMessage());
    }
  }
}
