package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Many threads over few permits: at the end nothing is in flight and everybody was answered. */
@Timeout(120)
class StressTest {
  private static final String TIGHT = """
      circuit_breakers:
        thresholds: [{max_connections: 3, max_pending_requests: 1024, max_requests: 1024, max_retries: 1024}]
      """;
  private static final String QUICK = Meshes.RETRY.replace("0.025s", "0.001s").replace("0.25s", "0.004s");
  private static final int THREADS = 8;
  private static final int EACH = 1500;

  private static Engine tight() {
    return Engine.builder().text(Meshes.cluster("api", 2, TIGHT), Meshes.routes("api", QUICK)).build();
  }

  /** One request with its fate drawn: success, failure, retry, two phases, dropped attempt, dropped request. */
  private static void fate(Engine mesh, Random random) throws InterruptedException {
    try (Request request = mesh.request("api")) {
      for (Attempt attempt : request) {
        switch (random.nextInt(8)) {
          case 0 -> attempt.fail(Failure.CONNECT_FAILURE);
          case 1 -> attempt.complete(503);
          case 2 -> {
            if (attempt.onHeaders(200, name -> List.of()).retry()) {
              continue;
            }
            Thread.yield();
            attempt.end();
          }
          case 3 -> attempt.close();
          case 4 -> {
            return;
          }
          default -> attempt.complete(200);
        }
      }
    }
  }

  @Test
  void blockedThreads() throws Exception {
    try (Engine mesh = tight()) {
      ExecutorService pool = Executors.newFixedThreadPool(THREADS);
      List<Future<?>> all = new ArrayList<>();
      for (int t = 0; t < THREADS; t++) {
        Random random = new Random(t);
        all.add(pool.submit(() -> {
          for (int i = 0; i < EACH; i++) {
            fate(mesh, random);
          }
          return null;
        }));
      }
      for (Future<?> each : all) {
        each.get();
      }
      pool.shutdown();
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void interruptedThreads() throws Exception {
    try (Engine mesh = tight()) {
      AtomicInteger interrupted = new AtomicInteger();
      List<Thread> threads = new ArrayList<>();
      for (int t = 0; t < THREADS; t++) {
        Random random = new Random(t);
        Thread thread = new Thread(() -> {
          for (int i = 0; i < EACH / 2; i++) {
            try {
              fate(mesh, random);
            } catch (InterruptedException | CancellationException torn) {
              Thread.interrupted();
              interrupted.incrementAndGet();
            }
          }
        });
        threads.add(thread);
        thread.start();
      }
      while (threads.stream().anyMatch(Thread::isAlive)) {
        threads.forEach(Thread::interrupt);
        Thread.onSpinWait();
      }
      for (Thread thread : threads) {
        thread.join();
      }
      assertTrue(interrupted.get() > 0);
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void futuresSomeOfThemCancelled() throws Exception {
    try (Engine mesh = tight()) {
      Random random = new Random(1);
      List<CompletableFuture<?>> all = new ArrayList<>();
      AtomicInteger answered = new AtomicInteger();
      for (int i = 0; i < 4000; i++) {
        int fate = random.nextInt(6);
        CompletableFuture<Integer> run = mesh.request("api").runAsync(attempt -> CompletableFuture.supplyAsync(() -> {
          if (fate == 0) {
            throw new CompletionException(new java.net.ConnectException("refused"));
          }
          attempt.complete(fate == 1 ? 503 : 200);
          return attempt.number();
        }));
        all.add(run.whenComplete((value, failure) -> answered.incrementAndGet()));
        if (fate == 2) {
          run.cancel(true);
        }
        if (i % 256 == 255) {
          settle(all);
        }
      }
      settle(all);
      assertEquals(4000, answered.get());
      // The last report of a cancelled run may still be on its way through the pool.
      ((java.util.concurrent.ForkJoinPool) mesh.executor).awaitQuiescence(10, TimeUnit.SECONDS);
      Meshes.quiet(mesh, "api");
    }
  }

  private static void settle(List<CompletableFuture<?>> all) throws Exception {
    for (CompletableFuture<?> each : all) {
      try {
        each.get(60, TimeUnit.SECONDS);
      } catch (java.util.concurrent.ExecutionException | CancellationException fate) {
        assertTrue(each.isDone());
      }
    }
    all.clear();
  }

  @Test
  void updatesWhileChoosing() throws Exception {
    try (Engine mesh = tight()) {
      ExecutorService pool = Executors.newFixedThreadPool(3);
      List<Future<?>> all = new ArrayList<>();
      for (int t = 0; t < 3; t++) {
        Random random = new Random(t);
        all.add(pool.submit(() -> {
          for (int i = 0; i < EACH; i++) {
            fate(mesh, random);
          }
          return null;
        }));
      }
      for (int i = 0; i < 300; i++) {
        mesh.setHosts("api", "10.0.0.1:80", "10.0.1." + i % 250 + ":80");
      }
      for (Future<?> each : all) {
        each.get();
      }
      pool.shutdown();
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void virtualThreads() throws Exception {
    ExecutorService each;
    try {
      each = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    } catch (NoSuchMethodException beforeTwentyOne) {
      each = Executors.newCachedThreadPool();
    }
    try (Engine mesh = tight()) {
      List<Future<?>> all = new ArrayList<>();
      for (int i = 0; i < 500; i++) {
        Random random = new Random(i);
        all.add(each.submit(() -> {
          for (int round = 0; round < 4; round++) {
            fate(mesh, random);
          }
          return null;
        }));
      }
      for (Future<?> one : all) {
        one.get();
      }
      Meshes.quiet(mesh, "api");
    } finally {
      each.shutdown();
    }
  }
}
