package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Mechanisms beyond Envoy, as this face shows them. */
class BeyondTest {
  private static final String MODELS = """
      clusters:
        first: {hosts: [10.0.0.1:80], nexthop: {cool_down: {}}}
        second: {hosts: [10.0.0.2:80], nexthop: {cool_down: {}}}
        models:
          composite: [first, second]
          retry:
            on: 5xx
            times: 3
            backoff: {base: 1ms}
            nexthop: {classes: [{when: {status: 429, body_code: quota}, class: quota, next: cluster}]}
      """;

  @Test
  void aClassByTheDetailAndARefusalThatSaysWhen() {
    try (Engine mesh = Meshes.exact(MODELS); Request request = mesh.request("models")) {
      Attempt first = Meshes.go(request.tryChooseHost());
      Outcome limited = Outcome.status(429).headers(Map.of("retry-after", List.of("9"))::get).detail("quota");
      assertTrue(first.complete(limited).retry());
      mesh.advance(Duration.ofMillis(1));
      Attempt second = Meshes.go(request.tryChooseHost());
      assertEquals("10.0.0.1:80", first.host().address());
      assertEquals("10.0.0.2:80", second.host().address());
      // Without its code it is an answer like any other.
      assertFalse(second.complete(429, Map.of("retry-after", List.of("4.5"))::get).retry());
      try (Request next = mesh.request("models")) {
        Refusal refusal = Meshes.refused(next.tryChooseHost(), "cooling");
        assertEquals(Duration.ofMillis(4500), refusal.retryAfter());
        assertEquals("5", refusal.reply().headers().get("retry-after"));
      }
    }
  }
}
