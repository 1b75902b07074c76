package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class NoteTest {
  private static Engine strict() {
    return Meshes.exact("clusters: {b: {hosts: [\"10.0.0.1:80\"], limits: {connections: 2, pending: 2}, timeout: 0s, nexthop: {connections: strict}}}");
  }

  @Test
  void aConnectionLetsAWaiterGoOn() {
    try (Engine mesh = strict()) {
      List<Request> waits = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        Request request = mesh.request("b");
        Choice choice = request.tryChooseHost();
        if (choice instanceof Wait) {
          waits.add(request);
        } else {
          assertInstanceOf(Refusal.class, choice);
        }
      }
      assertEquals(2, waits.size());
      waits.forEach(request -> request.note(Note.CONNECTED));
      for (Request request : waits) {
        Attempt attempt = Meshes.go(request.tryChooseHost());
        attempt.note(Note.SENT);
        attempt.note(Note.INTERIM);
        assertFalse(attempt.complete(200).retry());
        attempt.note(Note.SENT);
        request.note(Note.CONNECTED);
      }
      Meshes.quiet(mesh, "b");
    }
  }

  @Test
  void aConnectionWakesAFuture() throws Exception {
    try (Engine mesh = strict(); Request first = mesh.request("b"); Request second = mesh.request("b")) {
      List<CompletableFuture<Attempt>> futures = List.of(first.chooseHostAsync(), second.chooseHostAsync());
      first.note(Note.CONNECTED);
      second.note(Note.CONNECTED);
      for (CompletableFuture<Attempt> future : futures) {
        future.get(900, TimeUnit.MILLISECONDS).complete(200);
      }
    }
  }

  @Test
  void theNumbersAreTheLibrarys() {
    for (Note note : Note.values()) {
      assertEquals(note.ordinal() + 1, note.number);
    }
  }

  @Test
  void wrongNotesAreUsageErrors() {
    try (Engine mesh = strict(); Request request = mesh.request("b")) {
      Meshes.usage("state", () -> request.note(Note.CONNECTED));
      Meshes.named("what", () -> request.note(null));
      Meshes.waits(request.tryChooseHost(), "queue");
      request.note(Note.CONNECTED);
      Attempt attempt = Meshes.go(request.tryChooseHost());
      Meshes.named("what", () -> attempt.note(null));
      attempt.complete(200);
    }
  }
}
