package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Documents and endpoints that are refused, and what an update does to those who wait. */
class DocumentsTest {
  @Test
  void noDocumentsAreRefusedAndChangeNothing() {
    try (Engine mesh = Meshes.hosts(1)) {
      Meshes.usage("invalid", () -> Engine.fromString());
      Meshes.usage("invalid", () -> Engine.fromFile());
      Meshes.usage("invalid", () -> Engine.builder().build());
      Meshes.usage("invalid", () -> mesh.updateString());
      Meshes.usage("invalid", () -> mesh.updateFile());
      for (String empty : List.of("", "# nothing", "[]", "---\n")) {
        assertThrows(ConfigException.class, () -> mesh.updateString(empty), empty);
      }
      ConfigException path = assertThrows(ConfigException.class, () -> mesh.updateFile(Path.of("")));
      assertTrue(path.getMessage().contains("path of document 1 is empty"), path.getMessage());
      mesh.chooseHost("api", 1).complete(200);
      mesh.updateString("clusters: []");
      assertThrows(RefusedException.class, () -> mesh.chooseHost("api", 1));
    }
  }

  @Test
  void aRefusedDocumentIsToldInParts() {
    ConfigException thrown =
        assertThrows(ConfigException.class, () -> Engine.fromString("clusters:\n  a: {hots: []}"));
    assertEquals("<text 1>", thrown.file());
    assertEquals(2, thrown.line());
    assertEquals(7, thrown.column());
    assertEquals("clusters.a.hots", thrown.path());
    assertEquals("hots", thrown.found());
    assertEquals("hosts", thrown.nearest());
    assertTrue(thrown.allowed().contains("composite"), thrown.allowed());
    // What a pattern over the sentence would take for places.
    ConfigException odd = assertThrows(ConfigException.class,
        () -> Engine.builder().named("a:1:2: b: c", "clusters: 7").build());
    assertEquals("a:1:2: b: c", odd.file());
    assertEquals("clusters", odd.path());
    ConfigException missing =
        assertThrows(ConfigException.class, () -> Engine.fromFile(Path.of("/no/such: file.yaml")));
    assertEquals("/no/such: file.yaml", missing.file());
    assertEquals(0, missing.line());
  }

  @Test
  void endpointsNameTheirCluster() {
    try (Engine mesh = Meshes.hosts(1)) {
      long epoch = mesh.epoch();
      UsageException thrown =
          assertThrows(UsageException.class, () -> mesh.applyEndpoints("api", "{cluster_name: web}"));
      assertEquals("invalid", thrown.code());
      assertTrue(thrown.getMessage().contains("\"api\"") && thrown.getMessage().contains("\"web\""));
      assertThrows(ConfigException.class, () -> mesh.applyEndpoints("api", "{endpoints: []}"));
      assertEquals(epoch, mesh.epoch());
      mesh.applyEndpoints("api", "{cluster_name: api}");
      assertTrue(mesh.hosts("api").isEmpty());
    }
    String odd = "o\"d\\ \n\u0085";
    try (Engine mesh = Engine.fromString(Json.text(java.util.Map.of("clusters",
        java.util.Map.of(odd, java.util.Map.of("hosts", List.of("10.0.0.1:80"))))))) {
      mesh.setHosts(odd);
      assertTrue(mesh.hosts(odd).isEmpty());
    }
  }

  @Test
  void aCompositeHasNoHostsOfItsOwn() {
    try (Engine mesh = Meshes.exact("clusters: {a: {hosts: [10.0.0.1:80]}, x: {composite: [a, b]}}")) {
      UsageException thrown = assertThrows(UsageException.class, () -> mesh.setHosts("x", "10.0.0.1:80"));
      assertTrue(thrown.getMessage().contains("composite"), thrown.getMessage());
      assertFalse(thrown.getMessage().contains("did you mean"), thrown.getMessage());
      assertTrue(mesh.loadReport().toString().contains("there is no cluster `b`"), mesh.loadReport().toString());
    }
  }

  @Test
  void reloadTellsWhetherItSwapped(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("mesh.yaml");
    Files.writeString(file, "clusters: {a: {hosts: [10.0.0.1:80]}}");
    try (Engine mesh = Engine.fromFile(file)) {
      assertFalse(mesh.reload());
      mesh.setHosts("a", "10.0.0.2:80");
      assertFalse(mesh.reload());
      Files.writeString(file, "clusters: {a: {hosts: [10.0.0.1:80, 10.0.0.2:80]}}");
      assertTrue(mesh.reload());
      Files.writeString(file, "");
      assertFalse(mesh.reload());
      mesh.chooseHost("a", 1).complete(200);
    }
  }

  @Test
  void aRaisedLimitWakesWhoWaits() throws Exception {
    String text = "clusters: {api: {hosts: [10.0.0.1:80], limits: {connections: LIMIT}, timeout: 0s}}";
    try (Engine mesh = Meshes.exact(text.replace("LIMIT", "1"))) {
      Attempt open = Meshes.go(mesh.request("api").tryChooseHost());
      Request first = mesh.request("api");
      Request second = mesh.request("api");
      CompletableFuture<Attempt> one = first.chooseHostAsync();
      assertInstanceOf(Wait.class, second.tryChooseHost());
      mesh.updateString(text.replace("LIMIT", "2"));
      one.get(30, TimeUnit.SECONDS).complete(200);
      open.complete(200);
      Meshes.go(second.tryChooseHost()).complete(200);
      assertEquals(0, mesh.liveRequests());
    }
  }
}
