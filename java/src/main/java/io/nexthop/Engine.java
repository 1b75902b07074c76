package io.nexthop;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Clusters and routes as documents describe them, with what they have learned. Any thread may call anything;
 * nothing here waits, and no thread is started but by {@link #startChecks()} and {@code logEvents}. Closing it ends
 * everything that came from it.
 */
public final class Engine implements AutoCloseable {
  private static final int STATS = 1;
  private static final int PROMETHEUS = 2;
  private static final int METRICS = 12;
  private static final int EFFECTIVE = 3;
  private static final int LOAD_REPORT = 4;
  private static final int LINT = 6;
  private static final int EXPLAIN = 8;
  private static final int HOSTS = 10;
  private static final int WANT_CHANGED = 8;
  private static final int CLIENT_GONE = 1;
  /** As an unsigned number larger than any target. */
  private static final int UNKNOWN = -1;

  /** A name and its number, which stays valid for the engine's life. */
  private record Target(String name, int number) {}

  /** One thread of the JDK, and only when something is made that nothing but the collector may end. */
  private static final class Collected {
    static final Cleaner CLEANER = Cleaner.create();
  }

  final long id;
  final Wants wants;
  final HostMirror hosts;
  final Executor executor;
  private final Cleaner.Cleanable cleanable;
  private final AtomicBoolean closed = new AtomicBoolean();
  private final Map<String, Target> targets = new ConcurrentHashMap<>();
  private final Map<Long, Request> waiting = new ConcurrentHashMap<>();
  private final Set<EventLog> logs = ConcurrentHashMap.newKeySet();
  private Target lastTarget = new Target("", 0);

  Engine(long id, Executor executor) {
    this.id = id;
    this.executor = executor;
    wants = new Wants(id);
    hosts = new HostMirror(id);
    cleanable = Collected.CLEANER.register(this, () -> Native.engineFree(id));
  }

  /**
   * An engine made from these files.
   *
   * @throws ConfigException a document was refused, or a file could not be read; nothing has changed
   * @throws UsageException {@code invalid}: no files; {@code limit}: 1,023 engines are there
   */
  public static Engine fromFile(Path... files) {
    return builder().file(files).build();
  }

  /**
   * An engine made from the text of these documents.
   *
   * @throws ConfigException a document was refused, or a file could not be read; nothing has changed
   * @throws UsageException {@code invalid}: no documents; {@code limit}: 1,023 engines are there
   */
  public static Engine fromString(String... documents) {
    return builder().text(documents).build();
  }

  /** An engine with options. */
  public static EngineBuilder builder() {
    return new EngineBuilder();
  }

  /** Version of the native library. */
  public static String version() {
    return new String(Native.version(), StandardCharsets.UTF_8);
  }

  /**
   * Replaces all documents by these files, whole or not at all.
   *
   * @throws ConfigException a document was refused, or a file could not be read; nothing has changed
   * @throws UsageException {@code invalid}: no files; {@code closed}
   */
  public LoadReport updateFile(Path... files) {
    return update(new Documents().files(files));
  }

  /**
   * Replaces all documents by these texts, whole or not at all.
   *
   * @throws ConfigException a document was refused, or a file could not be read; nothing has changed
   * @throws UsageException {@code invalid}: no documents; {@code closed}
   */
  public LoadReport updateString(String... documents) {
    return update(new Documents().texts(documents));
  }

  private LoadReport update(Documents documents) {
    check(Native.update(id, documents.done()));
    wants.changed();
    drain(); // a limit may have been raised
    return loadReport();
  }

  /**
   * Re-reads the files that changed and says whether it swapped. Bad content is no error: an event tells.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public boolean reload() {
    boolean swapped = check(Native.reload(id)) == 1;
    if (swapped) {
      wants.changed();
      drain();
    }
    return swapped;
  }

  /**
   * Makes these the hosts of a cluster.
   *
   * @throws UsageException {@code not_found}: no such cluster; {@code invalid}: a change is wrong; {@code closed}
   */
  public long setHosts(String cluster, String... addresses) {
    if (Objects.requireNonNull(addresses, "addresses").length == 0) {
      // A batch of no changes changes nothing; an assignment without endpoints takes every host away.
      Map<String, String> nothing = Map.of("cluster_name", Objects.requireNonNull(cluster, "cluster"));
      return applyEndpoints(cluster, Json.text(nothing));
    }
    List<HostChange> changes = new ArrayList<>(addresses.length);
    for (String address : addresses) {
      changes.add(HostChange.set(address));
    }
    return apply(cluster, changes);
  }

  /**
   * Changes hosts of a cluster, whole or not at all; gives the new epoch.
   *
   * @throws UsageException {@code not_found}: no such cluster; {@code invalid}: a change is wrong; {@code closed}
   */
  public long apply(String cluster, Collection<HostChange> changes) {
    Objects.requireNonNull(cluster, "cluster");
    Objects.requireNonNull(changes, "changes");
    Packer ops = new Packer(64 + 64 * changes.size()).intValue(changes.size());
    for (HostChange change : changes) {
      Objects.requireNonNull(change, "change").pack(ops);
    }
    long[] epoch = new long[1];
    try {
      check(Native.apply(id, Packer.utf8("cluster", cluster), ops.roomy(), epoch));
      drain(); // who waited for a host that is gone chooses anew
      return epoch[0];
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Makes a {@code ClusterLoadAssignment} the endpoints of a cluster, as Envoy's EDS would, or an instance list of Nacos,
   * Spring, Consul, Eureka or Kubernetes (JSON or YAML).
   * The {@code cluster_name} of an assignment must be the cluster's name, or that of its EDS service.
   *
   * @throws ConfigException the endpoints were refused
   * @throws UsageException {@code not_found}: no such cluster; {@code invalid}: a change is wrong; {@code closed}
   */
  public long applyEndpoints(String cluster, String assignment) {
    return apply(cluster, List.of(HostChange.endpoints(Objects.requireNonNull(assignment, "assignment"))));
  }

  /** A request to this cluster. */
  public Request request(String cluster) {
    return request(Head.of(cluster));
  }

  /** A request. Nothing is asked of the engine before its first choice. */
  public Request request(Head head) {
    Objects.requireNonNull(head, "head");
    int target = target(head.target());
    byte[] packed = head.pack(target, 0, wants, List.of());
    Executor own = head.executor() != null ? head.executor() : executor;
    return new Request(this, packed, head.path(), head.target(), own);
  }

  /**
   * A stateless attempt with this attempt number, from 1; a loop elsewhere decides about the next one.
   *
   * @throws RefusedException there will be no attempt
   * @throws WouldWaitException there is none now, and a stateless choice does not wait
   * @throws UsageException {@code invalid}: the number is not 1 or more; {@code closed}; {@code limit}
   */
  public Attempt chooseHost(String cluster, int attempt) {
    Objects.requireNonNull(cluster, "cluster");
    int target = target(cluster);
    DecisionBuffer d = DecisionBuffer.take();
    try {
      int kind = Native.pick(id, target, Checks.number(attempt), d.address);
      return kind == DecisionBuffer.GO ? attempt(null, d) : granted(stateless(kind, cluster, d));
    } finally {
      d.give();
    }
  }

  /**
   * As {@link #chooseHost(String, int)} with a key in place of the hash policies.
   *
   * @throws RefusedException there will be no attempt
   * @throws WouldWaitException there is none now, and a stateless choice does not wait
   * @throws UsageException {@code invalid}: the number is not 1 or more; {@code closed}; {@code limit}
   */
  public Attempt chooseHost(String cluster, int attempt, byte[] key) {
    Objects.requireNonNull(cluster, "cluster");
    Objects.requireNonNull(key, "key");
    int target = target(cluster);
    DecisionBuffer d = DecisionBuffer.take();
    try {
      int kind = Native.pickKey(id, target, Checks.number(attempt), key, d.address);
      return kind == DecisionBuffer.GO ? attempt(null, d) : granted(stateless(kind, cluster, d));
    } finally {
      d.give();
    }
  }

  /**
   * A stateless choice with a whole head and the addresses that were tried before; never waits or throws one.
   *
   * @throws UsageException {@code invalid}: the head is wrong; {@code limit}: its texts have more than 60 KiB; {@code
   *     closed}
   */
  public Choice tryChooseHost(Head head, int attempt, Collection<String> tried) {
    Objects.requireNonNull(head, "head");
    Objects.requireNonNull(tried, "tried");
    int target = target(head.target());
    byte[] packed = head.pack(target, Checks.known(attempt), wants, tried);
    DecisionBuffer d = DecisionBuffer.take();
    try {
      return stateless(Native.begin(id, packed, d.address), head.target(), d);
    } finally {
      d.give();
    }
  }

  /**
   * Runs what is due; null = nothing is scheduled, else when it is due again. Servers with traffic need no call.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public Duration maintain() {
    try {
      signals(check(Native.maintain(id)));
      return Durations.of(Native.pollDeadline(id));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Moves a manual clock; who waits asks again.
   *
   * @throws UsageException {@code state}: the clock is not manual; {@code invalid}: negative, or past 292 years;
   *     {@code closed}
   */
  public void advance(Duration by) {
    long nanos = Durations.nanos("by", Objects.requireNonNull(by, "by"));
    int status = Native.advance(id, nanos);
    if (status == Errors.STATE) {
      throw new UsageException("state",
          "only a manual clock can be moved; make the engine with Engine.builder().clock(Clock.MANUAL)");
    }
    if (status == Errors.INVALID) {
      throw Errors.invalid("by is " + by + ", which would take the clock past its end, 292 years after its start");
    }
    check(status);
    drain();
    List.copyOf(waiting.values()).forEach(Request::wake);
  }

  /**
   * The active checks that are due, each handed out once. The first call begins active checking: before it hosts count as if no
   * cluster had {@code health_checks}; those that serve at that moment go on until their first result.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public List<Check> checks() {
    List<Check> all = new ArrayList<>();
    try {
      for (Check check = Check.poll(this); check != null; check = Check.poll(this)) {
        all.add(check);
      }
      return all;
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * How long until checks are due; null = nothing is checked, or nobody has asked yet. Updates of documents and hosts may bring
   * some that are due at once: look at least every second.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public Duration checksDeadline() {
    try {
      info(); // says that it is closed
      return Durations.of(Native.checksDeadline(id));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Performs active checks in daemon threads until the loop or the engine is closed: HTTP, HTTP/2 with prior knowledge or over
   * TLS, gRPC and TCP, a connection each.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public CheckLoop startChecks() {
    return startChecks(CheckOptions.defaults());
  }

  /**
   * The same with options.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public CheckLoop startChecks(CheckOptions options) {
    info(); // says that it is closed
    return new CheckLoop(this, Objects.requireNonNull(options, "options"));
  }

  /**
   * What happened since the last call, oldest first.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public List<Map<String, Object>> events() {
    List<Map<String, Object>> all = new ArrayList<>();
    for (String line = pollEvent(); line != null; line = pollEvent()) {
      all.add(Json.object(line));
    }
    return all;
  }

  /** The oldest event as a line of JSON; null when there is none. */
  String pollEvent() {
    try {
      byte[] line = Native.pollEvent(id);
      if (line != null) {
        return new String(line, StandardCharsets.UTF_8);
      }
      int status = Native.lastStatus();
      if (status == Errors.EMPTY) {
        return null;
      }
      throw Errors.of(status);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Starts a daemon thread that runs due maintenance every so often and hands each event to a sink, as a line of JSON, until
   * the log or the engine is closed. A line whose sink throws is kept for the next round.
   *
   * @throws UsageException {@code invalid}: {@code every} is not above 0; {@code closed}
   */
  public EventLog logEvents(EventLog.Sink sink, Duration every) {
    EventLog log = new EventLog(this, sink, every);
    logs.add(log);
    log.start();
    return log;
  }

  /** The same every second. */
  public EventLog logEvents(EventLog.Sink sink) {
    return logEvents(sink, Duration.ofSeconds(1));
  }

  /** Appends each event to a file, every second; it is opened for each line, so that it may be moved away at any time. */
  public EventLog logEvents(Path file) {
    return logEvents(EventLog.to(file));
  }

  /** Appends each event to a file. */
  public EventLog logEvents(Path file, Duration every) {
    return logEvents(EventLog.to(file), every);
  }

  /** Gives each event to a logger at level INFO, every second. */
  public EventLog logEvents(System.Logger logger) {
    return logEvents(EventLog.to(logger));
  }

  /** Gives each event to a logger at level INFO. */
  public EventLog logEvents(System.Logger logger, Duration every) {
    return logEvents(EventLog.to(logger), every);
  }

  void forget(EventLog log) {
    logs.remove(log);
  }

  /**
   * Counters and gauges under Envoy's names.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public Map<String, Object> stats() {
    return Json.object(text(STATS, ""));
  }

  /** The same with kinds and attributes, as OpenTelemetry and others want them. */
  public List<Metric> metrics() {
    return Json.objects(text(METRICS, "")).stream().map(Metric::of).toList();
  }

  /**
   * The same in Prometheus' text format.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public String prometheus() {
    return text(PROMETHEUS, "");
  }

  /** What would be decided for this request; decides nothing and counts nothing. */
  public Explanation explain(Head head) {
    return new Explanation(Json.object(text(EXPLAIN, Objects.requireNonNull(head, "head").json(wants))));
  }

  /** Every number in force for a cluster ({@code name}) or route ({@code route:NAME}), and where it came from. */
  public Map<String, Object> effective(String cluster) {
    return Json.object(text(EFFECTIVE, Objects.requireNonNull(cluster, "cluster")));
  }

  /**
   * What became of the documents.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public LoadReport loadReport() {
    return new LoadReport(Json.object(text(LOAD_REPORT, "")));
  }

  /** Every field of the documents when {@code whole}: used, absent and whose default acts, not used here and why. */
  public LoadReport loadReport(boolean whole) {
    return new LoadReport(Json.object(text(LOAD_REPORT, whole ? "all" : "")));
  }

  /**
   * What deserves a second look in the documents: {@code findings}, each with place, code, severity, effect and advice.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public Map<String, Object> lint() {
    return Json.object(text(LINT, ""));
  }

  /**
   * The hosts of one cluster, or all when it is empty, with health and counters.
   *
   * @throws UsageException {@code not_found}: no such cluster; {@code closed}
   */
  public List<Map<String, Object>> hosts(String cluster) {
    return Json.objects(text(HOSTS, Objects.requireNonNull(cluster, "cluster")));
  }

  /**
   * Counts applied updates.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public long epoch() {
    return info()[0];
  }

  /**
   * Requests that are not done.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public long liveRequests() {
    return info()[1];
  }

  /**
   * Seed in use.
   *
   * @throws UsageException {@code closed}: the engine was closed
   */
  public long seed() {
    return info()[2];
  }

  /** Everything that came from the engine ends; who waits is answered. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      List.copyOf(logs).forEach(EventLog::close);
      cleanable.clean();
      List.copyOf(waiting.values()).forEach(Request::wake);
    }
  }

  private long[] info() {
    long[] words = new long[3];
    try {
      check(Native.engineInfo(id, words));
      return words;
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  String text(int what, String argument) {
    try {
      byte[] text = Native.text(id, what, Packer.utf8("argument", argument));
      if (text == null) {
        throw Errors.of(Native.lastStatus());
      }
      return new String(text, StandardCharsets.UTF_8);
    } finally {
      Reference.reachabilityFence(this); // the collector frees the engine of a temporary object otherwise
    }
  }

  /** The number of a cluster or route; 0 = match. What nothing is called gets one that the engine refuses. */
  private int target(String name) {
    if (name == null) {
      return 0;
    }
    Target last = lastTarget; // racy on purpose: any target that is read is whole
    if (last.name == name) {
      return last.number;
    }
    Target known = targets.get(name);
    if (known == null) {
      long number = Native.resolve(id, Packer.utf8("name", name));
      if (number == Errors.NOT_FOUND) {
        return UNKNOWN;
      }
      if (number < 0) {
        throw Errors.of((int) number);
      }
      known = new Target(name, (int) number);
      targets.put(name, known);
    }
    lastTarget = known.name == name ? known : new Target(name, known.number);
    return known.number;
  }

  /** Why nothing is called so, with the nearest name; empty when something is. */
  String missing(String name) {
    if (Native.resolve(id, Packer.utf8("name", name)) != Errors.NOT_FOUND) {
      return "";
    }
    byte[] sentence = Native.lastError();
    return sentence == null ? "" : new String(sentence, StandardCharsets.UTF_8);
  }

  /** The attempt that was granted; when its host cannot be told, it is given back. */
  Attempt attempt(Request request, DecisionBuffer d) {
    Attempt attempt;
    try {
      attempt = new Attempt(this, request, d);
    } catch (RuntimeException | Error broken) {
      Native.cancel(d.attempt());
      throw broken;
    }
    if (request == null) {
      if (d.remaining() == Durations.NEVER) {
        endWhenDropped(attempt, d.request()); // nothing else would ever do it
      }
      signals(d.bits());
    }
    return attempt;
  }

  /** A fact about a request or attempt. */
  void note(long about, Note what) {
    signals(check(Native.note(about, what.number)));
  }

  private Choice stateless(int kind, String name, DecisionBuffer d) {
    if (kind < 0) {
      throw Errors.of(kind);
    }
    if (kind == DecisionBuffer.GO) {
      return attempt(null, d);
    }
    int bits = d.bits();
    Choice choice;
    if (kind == DecisionBuffer.WAIT) {
      choice = new Wait(Durations.of(d.waiting()), Names.of(Names.WAIT, d.refusal()));
      long word = Native.finish(d.request(), CLIENT_GONE); // nobody could ask for it again
      bits |= word < 0 ? 0 : Verdict.bits(word);
    } else {
      choice = Replies.refusal(this, name, d);
    }
    signals(bits);
    return choice;
  }

  private static Attempt granted(Choice choice) {
    if (choice instanceof Wait wait) {
      throw new WouldWaitException(wait);
    }
    return Waiting.attempt(choice);
  }

  /** Has the collector end a request when the object that stands for it is gone. */
  Cleaner.Cleanable endWhenDropped(Object handle, long request) {
    return Collected.CLEANER.register(handle, () -> {
      long word = Native.finish(request, CLIENT_GONE);
      signals(word < 0 ? 0 : Verdict.bits(word));
    });
  }

  /** Does what the bits on a return ask for. */
  void signals(int bits) {
    if ((bits & Verdict.WAKE) != 0) {
      drain();
    }
    if ((bits & WANT_CHANGED) != 0) {
      wants.changed();
    }
  }

  /** Wakes whose wait is over; a request that is not enlisted yet asks again when it is. */
  private void drain() {
    long[] ready = new long[64];
    int found;
    do {
      found = Native.pollReady(id, ready);
      for (int i = 0; i < found; i++) {
        Request request = waiting.get(ready[i]);
        if (request != null) {
          request.wake();
        }
      }
    } while (found == ready.length);
  }

  boolean hasWaiters() {
    return !waiting.isEmpty();
  }

  void enlist(long request, Request waiter) {
    waiting.put(request, waiter);
  }

  void delist(long request, Request waiter) {
    waiting.remove(request, waiter);
  }

  private static int check(int status) {
    if (status < 0) {
      throw Errors.of(status);
    }
    return status;
  }
}
