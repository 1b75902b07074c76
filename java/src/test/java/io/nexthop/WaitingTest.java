package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class WaitingTest {
  private static Engine narrow() {
    return Meshes.exact(Meshes.cluster("api", 1, Meshes.NARROW));
  }

  /** A thread that blocks in chooseHost, and is known to be parked there when this returns. */
  private static Thread blocked(FutureTask<?> task) throws InterruptedException {
    Thread thread = new Thread(task);
    thread.start();
    while (thread.getState() != Thread.State.TIMED_WAITING && !task.isDone()) {
      Thread.onSpinWait();
    }
    return thread;
  }

  @Test
  void theCompleterWakesABlockedThread() throws Exception {
    try (Engine mesh = narrow(); Request waiter = mesh.request("api")) {
      Attempt holder = Meshes.go(mesh.request("api").tryChooseHost());
      FutureTask<Attempt> task = new FutureTask<>(waiter::chooseHost);
      blocked(task);
      assertFalse(task.isDone());
      long from = System.nanoTime();
      holder.complete(200);
      task.get().complete(200);
      assertTrue(System.nanoTime() - from < TimeUnit.MILLISECONDS.toNanos(900), "woken, not asked back");
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void theCompleterWakesAFutureOnItsOwnExecutor() throws Exception {
    ExecutorService own = Executors.newSingleThreadExecutor(r -> new Thread(r, "own"));
    try (Engine mesh = narrow(); Request waiter = mesh.request(Head.of("api").executor(own))) {
      Attempt holder = Meshes.go(mesh.request("api").tryChooseHost());
      AtomicReference<String> where = new AtomicReference<>();
      CompletableFuture<Attempt> future = waiter.chooseHostAsync();
      CompletableFuture<Void> done = future.thenAccept(attempt -> {
        where.set(Thread.currentThread().getName());
        attempt.complete(200);
      });
      assertFalse(future.isDone());
      holder.complete(200);
      done.get(10, TimeUnit.SECONDS);
      assertEquals("own", where.get());
      Meshes.quiet(mesh, "api");
    } finally {
      own.shutdownNow();
    }
  }

  @Test
  void waitersAreServedInOrder() throws Exception {
    try (Engine mesh = narrow()) {
      Attempt holder = Meshes.go(mesh.request("api").tryChooseHost());
      CompletableFuture<Attempt> first = mesh.request("api").chooseHostAsync();
      CompletableFuture<Attempt> second = mesh.request("api").chooseHostAsync();
      holder.complete(200);
      Attempt next = first.get(10, TimeUnit.SECONDS);
      assertFalse(second.isDone());
      next.complete(200);
      second.get(10, TimeUnit.SECONDS).complete(200);
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void cancellingAFutureGivesUpThePlace() throws Exception {
    try (Engine mesh = narrow()) {
      Attempt holder = Meshes.go(mesh.request("api").tryChooseHost());
      CompletableFuture<Attempt> gone = mesh.request("api").chooseHostAsync();
      CompletableFuture<Attempt> stays = mesh.request("api").chooseHostAsync();
      assertEquals(3, mesh.liveRequests());
      assertTrue(gone.cancel(true));
      assertEquals(2, mesh.liveRequests());
      holder.complete(200);
      stays.get(10, TimeUnit.SECONDS).complete(200);
      assertThrows(CancellationException.class, gone::join);
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void cancellingAsItIsGrantedPassesThePermitOn() throws Exception {
    try (Engine mesh = narrow()) {
      for (int round = 0; round < 300; round++) {
        Attempt holder = Meshes.go(mesh.request("api").tryChooseHost());
        CompletableFuture<Attempt> torn = mesh.request("api").chooseHostAsync();
        CompletableFuture<Attempt> stays = mesh.request("api").chooseHostAsync();
        Thread canceller = new Thread(() -> torn.cancel(true));
        canceller.start();
        holder.complete(200);
        canceller.join();
        try {
          torn.get().complete(200);
        } catch (CancellationException cancelled) {
          assertTrue(torn.isCancelled());
        }
        stays.get(10, TimeUnit.SECONDS).complete(200);
      }
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void interruptingABlockedThread() throws Exception {
    try (Engine mesh = narrow()) {
      Attempt holder = Meshes.go(mesh.request("api").tryChooseHost());
      FutureTask<Attempt> task = new FutureTask<>(() -> {
        try (Request request = mesh.request("api")) {
          return request.chooseHost();
        }
      });
      blocked(task).interrupt();
      assertInstanceOf(InterruptedException.class, assertThrows(ExecutionException.class, task::get).getCause());
      holder.complete(200);
      Meshes.quiet(mesh, "api");

      Thread.currentThread().interrupt();
      assertThrows(InterruptedException.class, () -> mesh.request("api").chooseHost());
      Thread.currentThread().interrupt();
      assertThrows(CancellationException.class, () -> mesh.request("api").iterator().next());
      assertTrue(Thread.interrupted());
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void interruptingAsItIsGranted() throws Exception {
    try (Engine mesh = narrow()) {
      for (int round = 0; round < 200; round++) {
        Attempt holder = Meshes.go(mesh.request("api").tryChooseHost());
        FutureTask<Void> task = new FutureTask<>(() -> {
          try (Request request = mesh.request("api"); Attempt attempt = request.chooseHost()) {
            attempt.complete(200);
          } catch (InterruptedException torn) {
            return null; // the request gave the permit back as it closed
          }
          return null;
        });
        Thread thread = blocked(task);
        Thread interrupter = new Thread(thread::interrupt);
        interrupter.start();
        holder.complete(200);
        interrupter.join();
        task.get(10, TimeUnit.SECONDS);
      }
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void theDeadlineEndsAWait() throws Exception {
    try (Engine mesh = narrow(); Request request = mesh.request(Head.of("api").timeout(Duration.ofSeconds(2)))) {
      Attempt holder = Meshes.go(mesh.request("api").tryChooseHost());
      FutureTask<Attempt> task = new FutureTask<>(request::chooseHost);
      blocked(task);
      mesh.advance(Duration.ofSeconds(3));
      RefusedException refused = assertInstanceOf(RefusedException.class,
          assertThrows(ExecutionException.class, task::get).getCause());
      assertEquals("timeout", refused.refusal().refusal());
      assertEquals("UT", refused.reply().flags());
      holder.complete(200);
      Meshes.quiet(mesh, "api");
    }
  }

  @Test
  void closingAnswersEverybody() throws Exception {
    Engine mesh = narrow();
    Meshes.go(mesh.request("api").tryChooseHost());
    FutureTask<Attempt> task = new FutureTask<>(() -> mesh.request("api").chooseHost());
    blocked(task);
    CompletableFuture<Attempt> future = mesh.request("api").chooseHostAsync();
    Request closing = mesh.request("api");
    CompletableFuture<Attempt> closed = closing.chooseHostAsync();
    closing.close();
    CompletionException ended = assertThrows(CompletionException.class, closed::join);
    assertEquals("ended", ((UsageException) ended.getCause()).code());
    mesh.close();
    assertEquals("closed", ((UsageException) assertThrows(ExecutionException.class, task::get).getCause()).code());
    assertEquals("closed", ((UsageException) assertThrows(CompletionException.class, future::join).getCause()).code());
  }

  @Test
  void aDeadExecutorIsAnAnswerToo() {
    ExecutorService dead = Executors.newSingleThreadExecutor();
    dead.shutdownNow();
    try (Engine mesh = narrow(); Request request = mesh.request(Head.of("api").executor(dead))) {
      Attempt holder = Meshes.go(mesh.request("api").tryChooseHost());
      CompletableFuture<Attempt> future = request.chooseHostAsync();
      holder.complete(200);
      assertThrows(CompletionException.class, future::join);
    }
  }

  @Test
  void backOffIsWaitedForWithoutAClockOfTheTests() throws Exception {
    try (Engine mesh = Engine.builder().text(Meshes.cluster("api", 3, ""), Meshes.routes("api", Meshes.RETRY)).build();
        Request blocking = mesh.request("api"); Request later = mesh.request("api")) {
      assertTrue(blocking.chooseHost().complete(503).retry());
      Attempt second = blocking.chooseHost();
      assertEquals(2, second.number());
      second.complete(200);
      assertTrue(later.chooseHostAsync().get().complete(503).retry());
      Attempt next = later.chooseHostAsync().get(10, TimeUnit.SECONDS);
      assertEquals(2, next.number());
      next.complete(200);
      Meshes.quiet(mesh, "api");
    }
  }
}
