import io.nexthop.Attempt;
import io.nexthop.Choice;
import io.nexthop.ConfigException;
import io.nexthop.Engine;
import io.nexthop.EngineBuilder;
import io.nexthop.Failure;
import io.nexthop.Head;
import io.nexthop.HeaderSource;
import io.nexthop.LocalReply;
import io.nexthop.Note;
import io.nexthop.Outcome;
import io.nexthop.Refusal;
import io.nexthop.Request;
import io.nexthop.UsageException;
import io.nexthop.Verdict;
import io.nexthop.Wait;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.TreeMap;
import java.util.function.Consumer;

/** The player over the Java face: script on standard input, trace on standard output. */
public final class Runner {
  private static final class Rule {
    String host, prefix;
    int attempt, used;
    boolean cycle;
    List<String> plans;
  }

  private static final class Batch {
    int open;
    long gap;
    boolean clients;
    final ArrayDeque<Call> waiting = new ArrayDeque<>();
  }

  private static final class Call {
    String index, path = "/";
    Request request;
    Batch batch;
    final List<Try> tries = new ArrayList<>();
    long asking;
    boolean queued, done, refused;
  }

  private static final class Try {
    Call call;
    Attempt attempt;
    boolean open = true, answered;
    long sent, last;
    Long idle;
    boolean hedges;
  }

  private record Act(long after, List<String> words) {}
  private enum Kind { BEGIN, ASK, CONNECTED, ACT, LIMIT, IDLE }
  private record Event(long time, long sequence, Kind kind, Object on, Object detail) implements Comparable<Event> {
    @Override
    public int compareTo(Event other) {
      return time != other.time ? Long.compare(time, other.time) : Long.compare(sequence, other.sequence);
    }
  }

  private final PrintStream out;
  private Engine engine;
  private long now, sequence;
  private Long connect;
  private List<String> docs = new ArrayList<>();
  private List<List<String>> heads = new ArrayList<>();
  private final Map<String, List<Act>> plans = new HashMap<>();
  private List<Act> plan;
  private final List<Rule> rules = new ArrayList<>();
  private int calls;
  private final List<Call> queue = new ArrayList<>();
  private final PriorityQueue<Event> events = new PriorityQueue<>();

  private Runner(PrintStream out) {
    this.out = out;
  }

  public static void main(String[] args) throws Exception {
    try (var out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        var in = new BufferedReader(
            new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8))) {
      var buffered = new PrintStream(new java.io.BufferedOutputStream(out, 1 << 16), false, StandardCharsets.UTF_8);
      var runner = new Runner(buffered);
      for (String line; (line = in.readLine()) != null;) {
        runner.command(words(line));
      }
      buffered.flush();
    }
    System.exit(0);
  }

  /** Reads a JSON list of strings. */
  private static List<String> words(String line) {
    List<String> words = new ArrayList<>();
    for (int i = 1; i < line.length() && line.charAt(i) != ']'; i++) {
      if (line.charAt(i) == ',') {
        continue;
      }
      StringBuilder word = new StringBuilder();
      for (i++; line.charAt(i) != '"'; i++) {
        char c = line.charAt(i);
        if (c == '\\') {
          c = line.charAt(++i);
          switch (c) {
            case 'n' -> c = '\n';
            case 'r' -> c = '\r';
            case 't' -> c = '\t';
            case 'u' -> {
              c = (char) Integer.parseInt(line.substring(i + 1, i + 5), 16);
              i += 4;
            }
            default -> { }
          }
        }
        word.append(c);
      }
      words.add(word.toString());
    }
    return words;
  }

  private void say(Object... words) {
    StringBuilder line = new StringBuilder("[");
    for (Object each : words) {
      for (Object word : each instanceof List<?> list ? list : List.of(each)) {
        line.append(line.length() > 1 ? ",\"" : "\"");
        String text = word.toString();
        for (int i = 0; i < text.length(); i++) {
          char c = text.charAt(i);
          switch (c) {
            case '"', '\\' -> line.append('\\').append(c);
            case '\n' -> line.append("\\n");
            case '\r' -> line.append("\\r");
            case '\t' -> line.append("\\t");
            default -> {
              if (c < 0x20) {
                line.append(String.format("\\u%04x", (int) c));
              } else {
                line.append(c);
              }
            }
          }
        }
        line.append('"');
      }
    }
    out.print(line.append("]\n"));
  }

  private static String dash(Long limit) {
    return limit == null ? "-" : limit.toString();
  }

  private static Long nanos(Duration limit) {
    return limit == null ? null : limit.toNanos();
  }

  private static List<String> flat(Map<String, String> headers) {
    List<String> words = new ArrayList<>();
    new TreeMap<>(headers).forEach((name, value) -> words.addAll(List.of(name, value)));
    return words;
  }

  private static List<String> added(Map<String, Optional<String>> headers) {
    Map<String, String> all = new HashMap<>();
    headers.forEach((name, value) -> value.filter(text -> !name.equals("host")).ifPresent(text -> all.put(name, text)));
    return flat(all);
  }

  private static List<String> local(LocalReply reply) {
    List<String> words = new ArrayList<>(
        List.of(String.valueOf(reply.status()), reply.flags(), reply.details(), reply.body()));
    words.addAll(flat(reply.headers()));
    return words;
  }

  private static HeaderSource source(List<String> pairs) {
    return name -> {
      List<String> values = new ArrayList<>();
      for (int i = 0; i + 1 < pairs.size(); i += 2) {
        if (pairs.get(i).toLowerCase(Locale.ROOT).equals(name)) {
          values.add(pairs.get(i + 1));
        }
      }
      return values;
    };
  }

  private void command(List<String> words) {
    String name = words.get(0);
    List<String> args = words.subList(1, words.size());
    if (name.equals("case")) {
      reset();
      say("case", args.get(0));
      out.flush();
    } else if (name.equals("doc")) {
      docs.add(args.get(0));
    } else if (name.equals("open")) {
      EngineBuilder builder = Engine.builder().seed(Long.parseUnsignedLong(args.get(0))).workers(1)
          .clock(EngineBuilder.Clock.MANUAL).text(docs.toArray(String[]::new));
      if (!args.get(1).isEmpty()) {
        builder.draws(Arrays.stream(args.get(1).split(",")).mapToLong(Long::parseUnsignedLong).toArray());
      }
      load(name, given -> engine = builder.build());
    } else if (engine == null) {
      return;
    } else {
      play(name, args);
    }
  }

  private void reset() {
    if (engine != null) {
      engine.close();
    }
    engine = null;
    docs.clear();
    heads.clear();
    plans.clear();
    rules.clear();
    queue.clear();
    events.clear();
    now = sequence = calls = 0;
    connect = null;
  }

  private void play(String name, List<String> args) {
    switch (name) {
      case "plan" -> plans.put(args.get(0), plan = new ArrayList<>());
      case "act" -> plan.add(new Act(Long.parseLong(args.get(0)), args.subList(1, args.size())));
      case "drop" -> rules.removeIf(rule -> rule.host.equals(args.get(0)));
      case "rule" -> {
        Rule rule = new Rule();
        rule.host = args.get(0);
        rule.attempt = Integer.parseInt(args.get(1));
        rule.prefix = args.get(2);
        rule.cycle = args.get(3).equals("cycle");
        rule.plans = args.subList(4, args.size());
        rules.add(rule);
      }
      case "connect" -> connect = Long.parseLong(args.get(0));
      case "request" -> heads.add(args);
      case "run" -> run(Integer.parseInt(args.get(0)), Long.parseLong(args.get(1)), Long.parseLong(args.get(2)),
          args.get(3).equals("wait"));
      case "sleep" -> {
        long until = now + Long.parseLong(args.get(0));
        while (!events.isEmpty() && events.peek().time() <= until) {
          step();
        }
        advance(until);
      }
      case "endpoints" -> {
        load(name, given -> engine.applyEndpoints(args.get(0), args.get(1)));
        pump();
      }
      case "update" -> {
        load(name, given -> engine.updateString(given));
        pump();
      }
      case "stats" -> new TreeMap<>(engine.stats()).forEach((key, value) -> {
        if (value instanceof Number number) {
          say("stat", args.get(0), key, number instanceof Double d && d == Math.rint(d) ? String.valueOf(d.longValue()) : number);
        }
      });
      case "events" -> engine.events().forEach(event -> {
        if (event.containsKey("action")) {
          List<String> line = new ArrayList<>();
          for (String key : List.of("cluster_name", "upstream_url", "action", "type", "num_ejections", "enforced")) {
            Object value = event.getOrDefault(key, "");
            line.add(value instanceof Double d && d == Math.rint(d) ? String.valueOf(d.longValue()) : String.valueOf(value));
          }
          say("event", args.get(0), line);
        }
      });
      default -> throw new IllegalArgumentException(name);
    }
  }

  private void load(String name, Consumer<String[]> action) {
    String[] given = docs.toArray(String[]::new);
    if (!name.equals("endpoints")) {
      docs = new ArrayList<>();
    }
    try {
      action.accept(given);
      say(name, "ok");
    } catch (ConfigException error) {
      System.err.println(error.getMessage());
      say(name, "refused");
    }
  }

  private void at(long time, Kind kind, Object on, Object detail) {
    events.add(new Event(time, ++sequence, kind, on, detail));
  }

  private void advance(long time) {
    if (time > now) {
      engine.advance(Duration.ofNanos(time - now));
      now = time;
    }
  }

  private void run(int clients, long gap, long stagger, boolean wait) {
    Batch batch = new Batch();
    batch.open = heads.size();
    batch.gap = gap;
    batch.clients = clients > 0;
    for (int i = 0; i < heads.size(); i++) {
      List<String> head = heads.get(i);
      Call call = new Call();
      call.index = String.valueOf(calls++);
      call.batch = batch;
      call.request = engine.request(head(head, call));
      batch.waiting.add(call);
      if (clients == 0) {
        at(now + i * stagger, Kind.BEGIN, call, null);
      }
    }
    heads = new ArrayList<>();
    for (int i = 0; i < clients; i++) {
      next(batch, 0);
    }
    while (wait && batch.open > 0 && !events.isEmpty()) {
      step();
    }
  }

  private static Head head(List<String> words, Call call) {
    Head head = null;
    List<String> headers = new ArrayList<>();
    for (int i = 0; i + 1 < words.size(); i += 2) {
      if (words.get(i).equals("cluster")) {
        head = Head.of(words.get(i + 1));
      }
    }
    head = head != null ? head : Head.matching("", "/");
    for (int i = 0; i + 1 < words.size(); i += 2) {
      String key = words.get(i);
      String value = words.get(i + 1);
      switch (key) {
        case "cluster" -> { }
        case "method" -> head.method(value);
        case "authority" -> head.authority(value);
        case "path" -> head.path(call.path = value);
        case "source" -> head.source(value);
        case "local" -> head.local(value);
        case "key" -> head.key(value);
        case "timeout" -> head.timeout(Duration.ofNanos(Long.parseLong(value)));
        case "internal" -> head.internal(true);
        case "override_host" -> head.overrideHost(value);
        default -> {
          if (!key.startsWith("h:")) {
            throw new IllegalArgumentException(key);
          }
          headers.addAll(List.of(key.substring(2), value));
        }
      }
    }
    return head.headers(source(headers));
  }

  private void next(Batch batch, long gap) {
    if (batch.clients && !batch.waiting.isEmpty()) {
      at(now + gap, Kind.BEGIN, batch.waiting.poll(), null);
    }
  }

  private void step() {
    Event event = events.poll();
    Call call = event.on() instanceof Call c ? c : null;
    Try on = event.on() instanceof Try t ? t : null;
    if (event.kind() == Kind.CONNECTED && !call.queued
        || event.kind() == Kind.ASK && (call.done || call.asking != (Long) event.detail())
        || on != null && !on.open) {
      return;
    }
    advance(event.time());
    switch (event.kind()) {
      case BEGIN, ASK -> ask(call);
      case CONNECTED -> call.request.note(Note.CONNECTED);
      case ACT -> {
        on.last = now;
        @SuppressWarnings("unchecked") List<String> words = (List<String>) event.detail();
        act(on, words);
        if (on.open && on.idle != null) {
          at(now + on.idle, Kind.IDLE, on, null);
        }
      }
      case LIMIT -> {
        if ((Boolean) event.detail() || !on.answered) {
          act(on, List.of("fail", "timeout"));
        }
      }
      case IDLE -> {
        // Whoever hedges gives no attempt up before its headers.
        if ((on.answered || !on.hedges) && now - on.last >= on.idle) {
          act(on, List.of("fail", "per_try_idle_timeout"));
        }
      }
    }
    pump();
  }

  private void pump() {
    for (Call call : List.copyOf(queue)) {
      if (call.queued) {
        ask(call);
      }
    }
  }

  private void unqueue(Call call) {
    if (call.queued) {
      call.queued = false;
      queue.remove(call);
    }
  }

  private void misuse(Call call) {
    say("misuse", call.index, now);
    done(call);
  }

  private void ask(Call call) {
    call.asking++;
    Choice choice;
    try {
      choice = call.request.tryChooseHost();
    } catch (UsageException error) {
      misuse(call);
      return;
    }
    if (choice instanceof Attempt attempt) {
      unqueue(call);
      Long[] limits = {nanos(attempt.timeout()), nanos(attempt.remaining()), nanos(attempt.idleTimeout()),
          nanos(attempt.hedgeAfter())};
      say("go", call.index, attempt.number(), attempt.host().address(), attempt.host().cluster(), now,
          Arrays.stream(limits).map(Runner::dash).toList(), added(attempt.headers()));
      send(call, attempt, limits);
    } else if (choice instanceof Wait wait) {
      Long span = nanos(wait.duration());
      boolean inQueue = wait.reason().equals("queue");
      if (!inQueue) {
        unqueue(call);
      }
      if (!call.queued) {
        say("wait", call.index, wait.reason(), inQueue ? "-" : dash(span), now);
      }
      if (inQueue && !call.queued) {
        call.queued = true;
        queue.add(call);
        if (connect != null) {
          at(now + connect, Kind.CONNECTED, call, null);
        }
      }
      if (span != null) {
        at(now + span, Kind.ASK, call, call.asking);
      }
    } else if (choice instanceof Refusal refusal) {
      unqueue(call);
      call.refused = true;
      say("refused", call.index, refusal.refusal(), refusal.resource() == null ? "" : refusal.resource(), now,
          local(refusal.reply()));
      done(call);
    }
  }

  private void send(Call call, Attempt attempt, Long[] limits) {
    Try on = new Try();
    on.call = call;
    on.attempt = attempt;
    on.sent = on.last = now;
    on.idle = limits[2];
    on.hedges = limits[3] != null;
    call.tries.add(on);
    if (limits[0] != null) {
      at(now + limits[0], Kind.LIMIT, on, false);
    }
    if (limits[1] != null) {
      at(now + limits[1], Kind.LIMIT, on, true);
    }
    if (on.idle != null) {
      at(now + on.idle, Kind.IDLE, on, null);
    }
    if (limits[3] != null) {
      at(now + limits[3], Kind.ASK, call, call.asking);
    }
    for (Rule rule : rules) {
      if ((rule.host.isEmpty() || rule.host.equals(attempt.host().address()))
          && (rule.attempt == 0 || rule.attempt == attempt.number()) && call.path.startsWith(rule.prefix)) {
        int count = rule.plans.size();
        int turn = rule.cycle ? rule.used % count : Math.min(rule.used, count - 1);
        rule.used++;
        long time = now;
        for (Act act : plans.get(rule.plans.get(turn))) {
          time += act.after();
          at(time, Kind.ACT, on, act.words());
        }
        return;
      }
    }
  }

  private void act(Try on, List<String> words) {
    Call call = on.call;
    Attempt attempt = on.attempt;
    String kind = words.get(0);
    List<String> args = words.subList(1, words.size());
    Verdict verdict;
    boolean headers = kind.equals("headers");
    try {
      switch (kind) {
        case "headers", "complete" -> {
          int status = Integer.parseInt(args.get(0));
          HeaderSource source = source(args.subList(2, args.size()));
          if (headers) {
            verdict = attempt.onHeaders(status, source);
          } else if (args.get(1).isEmpty()) {
            verdict = attempt.complete(status, source);
          } else {
            verdict = attempt.complete(
                Outcome.status(status).headers(source).grpcStatus(Integer.parseInt(args.get(1))));
          }
        }
        case "fail" -> verdict = attempt.fail(Failure.valueOf(args.get(0).toUpperCase(Locale.ROOT)));
        case "end" -> {
          Outcome trailers = Outcome.success().headers(source(args.subList(1, args.size())));
          attempt.end(args.get(0).isEmpty() ? trailers : trailers.grpcStatus(Integer.parseInt(args.get(0))));
          on.open = false;
          say("end", call.index, attempt.number(), now);
          done(call);
          return;
        }
        case "note" -> {
          attempt.note(Note.valueOf(args.get(0).toUpperCase(Locale.ROOT)));
          return;
        }
        default -> {
          call.request.close();
          say("gone", call.index, now);
          done(call);
          return;
        }
      }
    } catch (UsageException error) {
      misuse(call);
      return;
    }
    String action = verdict.action().name().toLowerCase(Locale.ROOT);
    say("verdict", call.index, attempt.number(), args.get(0) + (headers ? "+" : ""), action, verdict.reason(),
        verdict.after().toMillis(), verdict.status(), verdict.flags(), now, now - on.sent);
    if (action.equals("forward") && headers && !on.answered) {
      on.answered = true;
      for (Try other : call.tries) {
        other.open = other == on;
      }
      return;
    }
    on.open = false;
    if (action.equals("retry")) {
      ask(call);
    } else if (!action.equals("discard")) {
      done(call);
    }
  }

  private void done(Call call) {
    if (!call.refused) {
      call.request.reply().ifPresent(reply -> say("reply", call.index, local(reply)));
    }
    say("done", call.index, now, flat(call.request.responseHeaders()));
    unqueue(call);
    call.done = true;
    for (Try on : call.tries) {
      on.open = false;
    }
    call.batch.open--;
    next(call.batch, call.batch.gap);
  }
}
