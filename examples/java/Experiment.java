import io.nexthop.Attempt;
import io.nexthop.Choice;
import io.nexthop.Engine;
import io.nexthop.Head;
import io.nexthop.Request;
import io.nexthop.Verdict;
import io.nexthop.Wait;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What retries do to half-failing hosts: without, elsewhere, anywhere, and along a chain of providers. */
public class Experiment {
  private static final URI LAB = URI.create("http://127.0.0.1:18101/__lab/");
  private static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  private long attempts;
  private long spent;
  /** Number of the answering attempt, then the address that answered, then how often. */
  private final Map<Integer, Map<String, Integer>> answers = new TreeMap<>();

  public static void main(String[] args) throws Exception {
    int requests = Integer.parseInt(System.getenv().getOrDefault("REQUESTS", "400"));
    String config = System.getenv().getOrDefault("CONFIG", "examples/envoy.yaml");
    warmUp(Path.of(config));
    try (Engine mesh = Engine.fromFile(Path.of(config))) {
      for (String name : new String[] {"a", "b", "c", "chain"}) {
        new Experiment().measure(mesh, name, name.equals("chain") ? 60 : requests);
      }
    }
  }

  /** Lets the compiler see the calls before they are timed; on an engine of its own, so that nothing is learned. */
  private static void warmUp(Path config) {
    try (Engine other = Engine.fromFile(config)) {
      for (int i = 0; i < 20_000; i++) {
        try (Request call = other.request(Head.matching("lab.example", "/a"))) {
          ((Attempt) call.tryChooseHost()).complete(200, name -> List.of());
        }
      }
    }
  }

  private void measure(Engine mesh, String name, int requests) throws Exception {
    lab("reset", HttpRequest.newBuilder().POST(BodyPublishers.noBody()));
    int good = 0;
    for (int i = 0; i < requests; i++) {
      // No cluster is named: path and authority choose the route, and that the cluster and its policy.
      Head head = Head.matching("lab.example", "/" + name);
      good += send(mesh, head, name.equals("chain") ? String.valueOf(i % 3) : null) < 500 ? 1 : 0;
      System.err.printf("\rjava  %-5s  %d/%d ", name, i + 1, requests);
    }
    System.err.println();
    int received = 0;
    Matcher count = Pattern.compile("\"\\d+\"\\s*:\\s*(\\d+)").matcher(lab("counts", HttpRequest.newBuilder()));
    while (count.find()) {
      received += Integer.parseInt(count.group(1));
    }
    System.out.printf(Locale.ROOT, "{\"lang\":\"java\",\"experiment\":\"%s\",\"requests\":%d,\"success\":%d,"
        + "\"attempts\":%d,\"retries\":%d,\"backend_requests\":%d,\"us_per_attempt\":%.3f,\"answered_by\":%s}%n",
        name, requests, good, attempts, attempts - requests, received, spent / 1e3 / attempts, json());
  }

  /**
   * One request with all its attempts; the status for the client. Without the stop watch, {@code call.run(...)}
   * is this loop, and {@code for (Attempt attempt : call)} its head.
   */
  private int send(Engine mesh, Head head, String fail) throws IOException, InterruptedException {
    try (Request call = mesh.request(head)) {
      for (;;) {
        long from = System.nanoTime();
        Choice choice = call.tryChooseHost();
        spent += System.nanoTime() - from;
        if (choice instanceof Wait wait) { // back-off; asking again too early is harmless
          LockSupport.parkNanos(wait.duration().toNanos());
          continue;
        }
        if (!(choice instanceof Attempt attempt)) {
          return call.reply().orElseThrow().status(); // refused: what Envoy would answer
        }
        Verdict verdict = attempt(attempt, fail);
        if (!verdict.retry()) {
          answers.computeIfAbsent(attempt.number(), n -> new TreeMap<>())
              .merge(attempt.host().address(), 1, Integer::sum);
          return verdict.status();
        }
      }
    }
  }

  private Verdict attempt(Attempt attempt, String fail) throws InterruptedException {
    attempts++;
    HttpRequest.Builder request = attempt.newRequest(null); // URI, time-out and headers that the route adds
    if (fail != null) {
      request.header("x-fail", fail);
    }
    HttpResponse<String> reply = null;
    IOException failure = null;
    try {
      reply = CLIENT.send(request.build(), BodyHandlers.ofString());
    } catch (IOException e) {
      failure = e;
    }
    long from = System.nanoTime();
    Verdict verdict = failure != null ? attempt.fail(failure)
        : attempt.complete(reply.statusCode(), reply.headers()::allValues);
    spent += System.nanoTime() - from;
    return verdict;
  }

  private static String lab(String what, HttpRequest.Builder request) throws IOException, InterruptedException {
    return CLIENT.send(request.uri(LAB.resolve(what)).build(), BodyHandlers.ofString()).body();
  }

  private String json() {
    StringBuilder text = new StringBuilder("{");
    answers.forEach((number, hosts) -> {
      text.append(text.length() > 1 ? "," : "").append('"').append(number).append("\":{");
      String[] comma = {""};
      hosts.forEach((address, times) -> {
        text.append(comma[0]).append('"').append(address).append("\":").append(times);
        comma[0] = ",";
      });
      text.append('}');
    });
    return text.append('}').toString();
  }
}
