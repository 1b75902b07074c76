package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.ResourceBundle;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Events on their way to a log, on a clock moved by hand: rounds are made by {@code flush}. */
class EventLogTest {
  private static final Duration NEVER = Duration.ofHours(1);
  private static final List<String> BOTH = List.of("EJECT", "EJECT");
  private static final List<String> BACK = List.of("UNEJECT", "UNEJECT");
  private static final String DETECTION = """
      outlier_detection: {consecutive_5xx: 2, base_ejection_time: 30s, interval: 10s, max_ejection_percent: 100}
      """;

  private static Engine failing() {
    return Meshes.exact(Meshes.cluster("web", 2, DETECTION));
  }

  private static void ejectAll(Engine mesh) {
    for (int i = 0; i < 4; i++) {
      mesh.chooseHost("web", 1).complete(500);
    }
  }

  private static List<String> actions(List<String> lines) {
    return lines.stream().map(Json::object).map(event -> {
      assertEquals("web", event.get("cluster_name"));
      return (String) event.get("action");
    }).toList();
  }

  @Test
  void aFileThatIsMovedAwayAndTheEnginesEnd(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("events.jsonl");
    Path old = folder.resolve("events.jsonl.1");
    EventLog log;
    try (Engine mesh = failing()) {
      log = mesh.logEvents(file, NEVER);
      log.flush();
      ejectAll(mesh);
      assertEquals(2, log.flush());
      Files.move(file, old);
      mesh.advance(Duration.ofSeconds(31)); // nobody calls but the log: their time is over
    }
    assertEquals(BOTH, actions(Files.readAllLines(old)));
    assertEquals(BACK, actions(Files.readAllLines(file)));
    log.close();
    assertTrue(log.error().isEmpty());
  }

  @Test
  void loggers() {
    List<String> lines = new ArrayList<>();
    System.Logger logger = new System.Logger() {
      @Override
      public String getName() {
        return "events";
      }

      @Override
      public boolean isLoggable(Level level) {
        return true;
      }

      @Override
      public void log(Level level, ResourceBundle bundle, String message, Throwable thrown) {
        throw new AssertionError("not by this way");
      }

      @Override
      public void log(Level level, ResourceBundle bundle, String format, Object... values) {
        assertEquals(Level.INFO, level);
        lines.add(format);
      }
    };
    try (Engine mesh = failing(); EventLog log = mesh.logEvents(logger, NEVER)) {
      ejectAll(mesh);
    }
    assertEquals(BOTH, actions(lines));
  }

  @Test
  void aLineThatCouldNotBeWrittenComesFirst() throws IOException {
    List<String> lines = new ArrayList<>();
    AtomicBoolean full = new AtomicBoolean();
    try (Engine mesh = failing()) {
      EventLog log = mesh.logEvents(line -> {
        if (full.get()) {
          throw new IOException("no space left");
        }
        lines.add(line);
      }, NEVER);
      log.flush();
      full.set(true);
      ejectAll(mesh);
      assertThrows(IOException.class, log::flush);
      assertInstanceOf(IOException.class, log.error().orElseThrow());
      full.set(false);
      assertEquals(2, log.flush());
      assertTrue(log.error().isEmpty());
    }
    assertEquals(BOTH, actions(lines));
  }

  @Test
  void theThreadWritesByItself() throws Exception {
    List<String> lines = Collections.synchronizedList(new ArrayList<>());
    CountDownLatch came = new CountDownLatch(2);
    try (Engine mesh = failing()) {
      EventLog log = mesh.logEvents(line -> {
        lines.add(line);
        came.countDown();
      }, Duration.ofMillis(1));
      ejectAll(mesh);
      assertTrue(came.await(30, TimeUnit.SECONDS));
      log.close();
      mesh.advance(Duration.ofSeconds(31));
      assertEquals(BOTH, actions(lines));
      assertEquals(2, log.flush(), "a closed log can still be flushed");
    }
  }

  @Test
  void wrongUse() {
    Engine mesh = failing();
    Meshes.usage("invalid", () -> mesh.logEvents(line -> {}, Duration.ZERO));
    Meshes.usage("invalid", () -> mesh.logEvents(line -> {}, Duration.ofSeconds(-1)));
    Meshes.named("file", () -> mesh.logEvents((Path) null));
    Meshes.named("logger", () -> mesh.logEvents((System.Logger) null));
    Meshes.named("sink", () -> mesh.logEvents((EventLog.Sink) null));
    Meshes.named("every", () -> mesh.logEvents(line -> {}, null));
    mesh.close();
    Meshes.usage("closed", () -> mesh.logEvents(line -> {}));
  }
}
