package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.util.Map;

/** Documents and engines that the tests share. */
final class Meshes {
  private Meshes() {}

  /** A cluster of hosts 10.0.0.1:80 and on; {@code more} are further fields, indented by two. */
  static String cluster(String name, int hosts, String more) {
    StringBuilder text = new StringBuilder("clusters:\n");
    text.append("- name: ").append(name).append("\n  type: STATIC\n  connect_timeout: 1s\n");
    text.append(more.indent(2));
    text.append("  load_assignment:\n    cluster_name: ").append(name).append("\n    endpoints:\n    - lb_endpoints:\n");
    for (int i = 1; i <= hosts; i++) {
      text.append("      - endpoint: {address: {socket_address: {address: 10.").append(i >> 16).append('.')
          .append(i >> 8 & 255).append('.').append(i & 255).append(", port_value: 80}}}\n");
    }
    return text.toString();
  }

  /** A cluster at these loopback ports. */
  static String local(String name, String more, int... ports) {
    StringBuilder text = new StringBuilder("clusters:\n");
    text.append("- name: ").append(name).append("\n  type: STATIC\n  connect_timeout: 1s\n");
    text.append(more.indent(2));
    text.append("  load_assignment:\n    cluster_name: ").append(name).append("\n    endpoints:\n    - lb_endpoints:\n");
    for (int port : ports) {
      text.append("      - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: ").append(port)
          .append("}}}\n");
    }
    return text.toString();
  }

  /** A route of everything to a cluster; {@code more} are further fields of the route action. */
  static String routes(String cluster, String more) {
    return """
        name: routes
        virtual_hosts:
        - name: all
          domains: ["*"]
          routes:
          - name: main
            match: {prefix: "/"}
            route:
              cluster: CLUSTER
        """.replace("CLUSTER", cluster) + more.indent(6);
  }

  static final String RETRY = """
      retry_policy:
        retry_on: 5xx,connect-failure,reset
        num_retries: 2
        retry_back_off: {base_interval: 0.025s, max_interval: 0.25s}
      """;

  /** One connection, so that a second request queues. */
  static final String NARROW = """
      circuit_breakers:
        thresholds: [{max_connections: 1, max_pending_requests: 1024, max_requests: 1024, max_retries: 3}]
      """;

  static final String NOT_EVEN_ONE = """
      circuit_breakers:
        thresholds: [{max_connections: 1, max_pending_requests: 0, max_requests: 1024, max_retries: 3}]
      """;

  /** Everything decided by the documents and the seed: one worker, a clock that only {@code advance} moves. */
  static Engine exact(String... documents) {
    return Engine.builder().text(documents).clock(EngineBuilder.Clock.MANUAL).workers(1).seed(7).build();
  }

  static Engine hosts(int count) {
    return exact(cluster("api", count, ""));
  }

  static Engine retrying() {
    return exact(cluster("api", 3, ""), routes("api", RETRY));
  }

  static Attempt go(Choice choice) {
    return assertInstanceOf(Attempt.class, choice);
  }

  static Wait waits(Choice choice, String reason) {
    Wait wait = assertInstanceOf(Wait.class, choice);
    assertEquals(reason, wait.reason());
    return wait;
  }

  static Refusal refused(Choice choice, String word) {
    Refusal refusal = assertInstanceOf(Refusal.class, choice);
    assertEquals(word, refusal.refusal());
    return refusal;
  }

  static long stat(Engine engine, String cluster, String name) {
    Object value = engine.stats().get("cluster." + cluster + "." + name);
    return value instanceof Map<?, ?> ? -1 : ((Number) value).longValue();
  }

  /** Nothing is in flight, nothing queues. */
  static void quiet(Engine engine, String cluster) {
    assertEquals(0, engine.liveRequests(), "live requests");
    for (String gauge : new String[] {"upstream_rq_active", "upstream_rq_pending_active"}) {
      assertEquals(0, stat(engine, cluster, gauge), gauge);
    }
  }

  static void usage(String code, Runnable call) {
    UsageException thrown = org.junit.jupiter.api.Assertions.assertThrows(UsageException.class, call::run);
    assertEquals(code, thrown.code(), thrown.getMessage());
  }

  static void named(String argument, Runnable call) {
    NullPointerException thrown = org.junit.jupiter.api.Assertions.assertThrows(NullPointerException.class, call::run);
    assertEquals(argument, thrown.getMessage());
  }
}
