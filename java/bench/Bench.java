package io.nexthop;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * What an attempt costs next to the cheapest native call there is. Every round runs every case, so that a slow phase
 * of the machine hits all alike; ratios are of minima of one run. Arguments: rounds (60), calls a round (50,000).
 */
public final class Bench {
  /** The round trip of one case, in nanoseconds a call. */
  interface Case {
    void run(int calls);
  }

  record Named(String name, int hosts, Case run) {}

  static volatile Object sink;

  private Bench() {}

  static String document(int hosts) {
    StringBuilder text = new StringBuilder("""
        clusters:
        - name: api
          type: STATIC
          connect_timeout: 1s
          lb_policy: LEAST_REQUEST
          circuit_breakers:
            thresholds:
            - {max_connections: 100000, max_pending_requests: 100000, max_requests: 100000,
               retry_budget: {budget_percent: {value: 20}, min_retry_concurrency: 3}}
          outlier_detection: {consecutive_5xx: 5, interval: 10s}
          load_assignment:
            cluster_name: api
            endpoints:
            - lb_endpoints:
        """);
    for (int i = 0; i < hosts; i++) {
      text.append("      - endpoint: {address: {socket_address: {address: 10.").append(i >> 16).append('.')
          .append(i >> 8 & 255).append('.').append(i & 255).append(", port_value: 8080}}}\n");
    }
    return text.toString();
  }

  public static void main(String[] args) {
    int rounds = args.length > 0 ? Integer.parseInt(args[0]) : 60;
    int calls = args.length > 1 ? Integer.parseInt(args[1]) : 50_000;
    Map<String, Named> cases = new LinkedHashMap<>();
    add(cases, "empty", 0, n -> {
      for (int i = 0; i < n; i++) {
        Native.nothing();
      }
    });
    byte[] key = "user-7f3a91c2-session-key".getBytes(StandardCharsets.UTF_8);
    for (int hosts : new int[] {3, 100, 1000}) {
      Engine engine = Engine.builder().text(document(hosts)).seed(1).build();
      add(cases, "choose+complete", hosts, n -> {
        for (int i = 0; i < n; i++) {
          engine.chooseHost("api", 1).complete(200);
        }
      });
      if (hosts != 100) {
        continue;
      }
      add(cases, "choose + complete, attempt, host and verdict kept", hosts, n -> {
        for (int i = 0; i < n; i++) {
          Attempt attempt = engine.chooseHost("api", 1);
          sink = attempt;
          sink = attempt.host().address();
          sink = attempt.complete(200);
        }
      });
      add(cases, "choose with a byte[] key + complete", hosts, n -> {
        for (int i = 0; i < n; i++) {
          engine.chooseHost("api", 1, key).complete(200);
        }
      });
      add(cases, "request, choose, complete", hosts, n -> {
        Head head = Head.of("api").path("/pay");
        for (int i = 0; i < n; i++) {
          Request request = engine.request(head);
          ((Attempt) request.tryChooseHost()).complete(200);
        }
      });
      int target = (int) Native.resolve(engine.id, "api".getBytes(StandardCharsets.UTF_8));
      add(cases, "the two native calls alone", hosts, n -> {
        DecisionBuffer d = DecisionBuffer.take();
        for (int i = 0; i < n; i++) {
          Native.pick(engine.id, target, 1, d.address);
          Native.complete(d.attempt(), 200);
        }
        d.give();
      });
    }
    report(cases, rounds, calls);
  }

  private static void add(Map<String, Named> cases, String name, int hosts, Case run) {
    cases.put(name + " " + hosts, new Named(name, hosts, run));
  }

  private static void report(Map<String, Named> all, int rounds, int calls) {
    Named[] cases = all.values().toArray(new Named[0]);
    for (int warm = 0; warm < 20; warm++) {
      for (Named one : cases) {
        one.run.run(calls);
      }
    }
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    double[][] times = new double[cases.length][rounds];
    long[] bytes = new long[cases.length];
    for (int round = 0; round < rounds; round++) {
      for (int i = 0; i < cases.length; i++) {
        long before = threads.getCurrentThreadAllocatedBytes();
        long from = System.nanoTime();
        cases[i].run.run(calls);
        times[i][round] = (System.nanoTime() - from) / (double) calls;
        bytes[i] = threads.getCurrentThreadAllocatedBytes() - before;
      }
    }
    double reference = Arrays.stream(times[0]).min().orElseThrow();
    for (int i = 0; i < cases.length; i++) {
      double[] sorted = times[i].clone();
      Arrays.sort(sorted);
      System.out.printf(Locale.ROOT, "{\"face\":\"java\",\"case\":\"%s\",\"hosts\":%d,\"min_ns\":%.2f,\"med_ns\":%.2f,"
          + "\"min_ratio\":%.2f,\"heap_bytes\":%.1f,\"rounds\":%d}%n", cases[i].name, cases[i].hosts, sorted[0],
          sorted[rounds / 2], sorted[0] / reference, bytes[i] / (double) calls, rounds);
    }
  }
}
