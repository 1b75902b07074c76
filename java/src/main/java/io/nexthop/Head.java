package io.nexthop;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Executor;

/** What a request is made from. A builder: each method changes this head and gives it back. */
public final class Head {
  /** Whether the request body can be sent again. */
  public enum Body {
    /** There is none. */
    NONE,
    /** It can be sent again. */
    REPLAYABLE,
    /** Once only: no retry after anything that may have sent bytes of it. */
    ONCE,
    /** The upload still runs; time-outs begin with {@link Request#bodyComplete}. */
    STREAMING
  }

  /** Routing priority: which circuit breaker thresholds count. */
  public enum Priority {
    DEFAULT, HIGH
  }

  private static final int INTERNAL = 1;
  private static final int EXPLAIN = 2;
  private static final int REPLAY = 4;
  private static final int HASH = 8;
  /** Where {@link #pack} puts the body: behind four numbers and the priority. */
  private static final int BODY_AT = 17;
  /** Of a packed head with a short path and no headers. */
  private static final int ROOM = 128;

  private final String cluster;
  private final String route;
  private final Map<String, List<String>> headers = new LinkedHashMap<>();
  private HeaderSource source = headers::get;
  private int bits;
  private Priority priority;
  private Body body = Body.NONE;
  private String method;
  private String scheme;
  private String authority;
  private String path;
  private String client;
  private String local;
  private byte[] key;
  private String overrideHost;
  private String metadata;
  private String filterMetadata;
  private long hash;
  private long timeout;
  private Executor executor;

  private Head(String cluster, String route) {
    this.cluster = cluster;
    this.route = route;
  }

  /** Goes to this cluster. */
  public static Head of(String cluster) {
    return new Head(Objects.requireNonNull(cluster, "cluster"), null);
  }

  /** Goes by this route: {@code NAME} or {@code VHOST/NAME}. */
  public static Head ofRoute(String route) {
    return new Head(null, Objects.requireNonNull(route, "route"));
  }

  /** Goes where the route tables say, by authority, path, method and headers. */
  public static Head matching(String authority, String path) {
    return new Head(null, null).authority(authority).path(path);
  }

  /** GET when not given. */
  public Head method(String value) {
    method = Objects.requireNonNull(value, "method");
    return this;
  }

  /** http when not given. */
  public Head scheme(String value) {
    scheme = Objects.requireNonNull(value, "scheme");
    return this;
  }

  /** The host that the client asked for. */
  public Head authority(String value) {
    authority = Objects.requireNonNull(value, "authority");
    return this;
  }

  /** With its query; {@code /} when not given. */
  public Head path(String value) {
    path = Objects.requireNonNull(value, "path");
    return this;
  }

  /** Adds one value of a header. */
  public Head header(String name, String value) {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(value, "value");
    headers.computeIfAbsent(name.toLowerCase(Locale.ROOT), n -> new ArrayList<>(1)).add(value);
    return this;
  }

  /** Headers by name, in place of those that {@link #header} added; asked for the wanted ones only. */
  public Head headers(HeaderSource values) {
    source = Objects.requireNonNull(values, "values");
    return this;
  }

  /** Headers by name in any case, in place of those that {@link #header} added. */
  public Head headers(Map<String, List<String>> values) {
    Objects.requireNonNull(values, "values");
    Map<String, List<String>> lower = new LinkedHashMap<>();
    values.forEach((name, list) -> {
      if (name != null) { // the status line of an HttpURLConnection has no name
        lower.computeIfAbsent(name.toLowerCase(Locale.ROOT), n -> new ArrayList<>()).addAll(list);
      }
    });
    source = lower::get;
    return this;
  }

  /** Whether {@code x-envoy-*} request headers count, as those of an internal request do. */
  public Head internal(boolean value) {
    return bit(INTERNAL, value);
  }

  /** Whether the whole reason trail of each decision is kept for {@link Attempt#explain}. */
  public Head explain(boolean value) {
    return bit(EXPLAIN, value);
  }

  /** Whether a streamed body is buffered by the caller and can be sent again. */
  public Head replay(boolean value) {
    return bit(REPLAY, value);
  }

  /** The client's {@code ip} or {@code ip:port}. */
  public Head source(String address) {
    client = Objects.requireNonNull(address, "address");
    return this;
  }

  /** The local {@code ip:port}. */
  public Head local(String address) {
    local = Objects.requireNonNull(address, "address");
    return this;
  }

  /** Replaces every hash policy. */
  public Head key(byte[] value) {
    key = Objects.requireNonNull(value, "key").clone();
    return this;
  }

  /** Replaces every hash policy. */
  public Head key(String value) {
    key = Packer.utf8("key", Objects.requireNonNull(value, "key"));
    return this;
  }

  /** The hash itself. */
  public Head hash(long value) {
    hash = value;
    return bit(HASH, true);
  }

  /** {@code envoy.lb} criteria and gray context; types are kept. */
  public Head metadata(Map<String, ?> values) {
    metadata = Json.text(Objects.requireNonNull(values, "metadata"));
    return this;
  }

  /** Metadata of other namespaces. */
  public Head filterMetadata(Map<String, ?> values) {
    filterMetadata = Json.text(Objects.requireNonNull(values, "filterMetadata"));
    return this;
  }

  /** {@code ip:port} asked for by a stateful session; {@code !} before it: that one or none. */
  public Head overrideHost(String address) {
    overrideHost = Objects.requireNonNull(address, "address");
    return this;
  }

  /**
   * The caller's own limit; the global limit is the smaller of it and the route's. Zero, as when not given, is none.
   *
   * @throws UsageException {@code invalid}: it is negative
   */
  public Head timeout(Duration limit) {
    timeout = Durations.nanos("timeout", Objects.requireNonNull(limit, "limit"));
    return this;
  }

  /** In place of the route's. */
  public Head priority(Priority value) {
    priority = Objects.requireNonNull(value, "priority");
    return this;
  }

  /** Whether the request body can be sent again. */
  public Head body(Body value) {
    body = Objects.requireNonNull(value, "body");
    return this;
  }

  /** Where the asynchronous calls of the request go on; the engine's when not given. */
  public Head executor(Executor value) {
    executor = Objects.requireNonNull(value, "executor");
    return this;
  }

  private Head bit(int bit, boolean on) {
    bits = on ? bits | bit : bits & ~bit;
    return this;
  }

  /** What the target number stands for, as {@code resolve} takes it; null = match. */
  String target() {
    return cluster != null ? cluster : route != null ? "route:" + route : null;
  }

  String path() {
    return path == null || path.isEmpty() ? "/" : path;
  }

  Executor executor() {
    return executor;
  }

  /** A packed head whose streamed upload is over. */
  static byte[] uploaded(byte[] packed) {
    if (packed[BODY_AT] != Body.STREAMING.ordinal()) {
      return packed;
    }
    byte[] whole = packed.clone();
    int bits = ByteBuffer.wrap(packed).order(ByteOrder.nativeOrder()).getInt(0);
    whole[BODY_AT] = (byte) ((bits & REPLAY) == 0 ? Body.ONCE : Body.REPLAYABLE).ordinal();
    return whole;
  }

  byte[] pack(int target, int number, Wants wants, Collection<String> tried) {
    int want = wants.requestSet();
    byte[] block = wants.block(want, source);
    Packer out = new Packer(ROOM);
    out.intValue(bits).intValue(target).intValue(number).intValue(want)
        .byteValue(priority == null ? -1 : priority.ordinal()).byteValue(body.ordinal())
        .longValue(hash).longValue(timeout).longValue(0)
        .text("method", method).text("scheme", scheme).text("authority", authority).text("path", path)
        .bytes(block).text("source", client).text("local", local).bytes(key)
        .text("tried", tried.isEmpty() ? null : String.join(",", tried)).text("overrideHost", overrideHost)
        .text("metadata", metadata).text("filterMetadata", filterMetadata);
    return out.roomy();
  }

  /** As {@code explain} takes it. */
  String json(Wants wants) {
    Map<String, Object> all = new LinkedHashMap<>();
    put(all, "cluster", cluster);
    put(all, "route", route);
    put(all, "method", method);
    put(all, "scheme", scheme);
    put(all, "authority", authority);
    put(all, "path", path);
    Map<String, Object> named = new LinkedHashMap<>();
    for (String name : wants.names(wants.requestSet())) {
      List<String> values = source.values(name);
      if (values != null && !values.isEmpty()) {
        named.put(name, values.size() == 1 ? values.get(0) : values);
      }
    }
    put(all, "headers", named.isEmpty() ? null : named);
    put(all, "source", client);
    put(all, "local", local);
    put(all, "key", key == null ? null : new String(key, StandardCharsets.UTF_8));
    put(all, "hash", (bits & HASH) == 0 ? null : Long.toUnsignedString(hash));
    put(all, "metadata", metadata == null ? null : Json.parse(metadata));
    put(all, "filter_metadata", filterMetadata == null ? null : Json.parse(filterMetadata));
    put(all, "override_host", overrideHost);
    put(all, "timeout", timeout == 0 ? null : timeout / 1e9);
    put(all, "priority", priority == null ? null : priority.name().toLowerCase(Locale.ROOT));
    put(all, "body", body == Body.NONE ? null : body.name().toLowerCase(Locale.ROOT));
    put(all, "internal", (bits & INTERNAL) == 0 ? null : Boolean.TRUE);
    return Json.text(all);
  }

  private static void put(Map<String, Object> all, String name, Object value) {
    if (value != null) {
      all.put(name, value);
    }
  }
}
