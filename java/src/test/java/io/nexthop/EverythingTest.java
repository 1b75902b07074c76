package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Everything at once ({@code tests/stress}), with threads and futures that wait for their turn. */
@Timeout(120)
class EverythingTest {
  private static final Path FOLDER = Path.of("..", "tests", "stress");
  private static final Path[] DOCUMENTS = {FOLDER.resolve("first.yaml"), FOLDER.resolve("second.yaml")};
  private static final String[] CLUSTERS = {"web", "narrow"};
  private static final List<String> GAUGES = List.of("upstream_rq_active", "upstream_rq_pending_active", "rq_open",
      "rq_pending_open", "rq_retry_open");
  /** Of both clusters in both documents. */
  private static final int REQUESTS = 6;
  private static final int THREADS = 6;
  private static final int EACH = 400;

  private final AtomicIntegerArray open = new AtomicIntegerArray(2);

  /** Ends an attempt somehow; whether a retry follows. */
  private boolean report(int which, Attempt attempt, Random random) {
    assertTrue(open.getAndIncrement(which) < REQUESTS, "over the limit");
    Thread.yield();
    open.getAndDecrement(which);
    switch (random.nextInt(8)) {
      case 0, 1 -> {
        return attempt.complete(503).retry();
      }
      case 2 -> {
        return attempt.fail(Failure.CONNECT_FAILURE).retry();
      }
      case 3 -> {
        attempt.onHeaders(200, name -> List.of());
        attempt.end();
      }
      case 4 -> attempt.close();
      default -> attempt.complete(200);
    }
    return false;
  }

  /** One request, whatever becomes of it. */
  private void request(Engine mesh, Random random) throws Exception {
    int which = random.nextInt(2);
    try (Request call = mesh.request(CLUSTERS[which])) {
      boolean retry = true;
      while (retry) {
        CompletableFuture<Attempt> turn = call.chooseHostAsync();
        if (random.nextInt(5) == 0 && turn.cancel(true)) {
          return; // gone while it waits
        }
        retry = report(which, turn.get(60, TimeUnit.SECONDS), random);
      }
    } catch (java.util.concurrent.ExecutionException ended) {
      RefusedException refused = assertInstanceOf(RefusedException.class, ended.getCause());
      assertEquals("overflow", refused.refusal().refusal());
    }
  }

  private void blocking(Engine mesh, Random random) throws Exception {
    int which = random.nextInt(2);
    try (Request call = mesh.request(CLUSTERS[which])) {
      boolean retry = true;
      while (retry) {
        retry = report(which, call.chooseHost(), random);
      }
    } catch (RefusedException refused) {
      assertEquals("overflow", refused.refusal().refusal());
    }
  }

  @Test
  void everythingAtOnce() throws Exception {
    try (Engine mesh = Engine.fromFile(DOCUMENTS[0])) {
      AtomicBoolean over = new AtomicBoolean();
      AtomicInteger answered = new AtomicInteger();
      ExecutorService pool = Executors.newFixedThreadPool(THREADS + 1);
      List<Future<?>> all = new ArrayList<>();
      for (int t = 0; t < THREADS; t++) {
        Random random = new Random(t);
        all.add(pool.submit(() -> {
          for (int i = 0; i < EACH; i++) {
            if (i % 2 == 0) {
              request(mesh, random);
            } else {
              blocking(mesh, random);
            }
            answered.incrementAndGet();
          }
          return null;
        }));
      }
      Future<?> updates = pool.submit(() -> {
        for (int at = 1; !over.get(); at++) {
          mesh.updateFile(DOCUMENTS[at % 2]);
          Thread.yield();
        }
      });
      for (Future<?> each : all) {
        each.get();
      }
      over.set(true);
      updates.get();
      pool.shutdown();
      ((java.util.concurrent.ForkJoinPool) mesh.executor).awaitQuiescence(10, TimeUnit.SECONDS);
      assertEquals(THREADS * EACH, answered.get());
      for (String cluster : CLUSTERS) {
        Meshes.quiet(mesh, cluster);
      }
      long gauges = mesh.stats().entrySet().stream().filter(entry -> {
        String name = entry.getKey();
        boolean used = GAUGES.contains(name.substring(name.lastIndexOf('.') + 1));
        assertTrue(!used || ((Number) entry.getValue()).longValue() == 0, name);
        return used;
      }).count();
      assertTrue(gauges >= 10, gauges + " gauges");
      for (String cluster : CLUSTERS) {
        Meshes.go(mesh.request(cluster).tryChooseHost()).complete(200);
      }
    }
  }
}
