package io.nexthop;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;

/** Documents and options of an engine. */
public final class EngineBuilder {
  /** Where the time comes from. */
  public enum Clock {
    /** Monotonic, one scheduler tick. */
    COARSE,
    /** Monotonic, as exact as the machine can. */
    PRECISE,
    /** Moves by {@link Engine#advance} only. */
    MANUAL
  }

  /** What language documents are in. */
  public enum Dialect {
    /** Told by the keys of each document. */
    AUTO,
    /** Envoy's. */
    ENVOY,
    /** The short form. */
    NEXTHOP,
    /** Objects of Istio. */
    ISTIO,
    /** EndpointSlices. */
    KUBERNETES,
    /** Instance lists of Nacos. */
    NACOS,
    /** Health lists of Consul. */
    CONSUL,
    /** Applications of Eureka. */
    EUREKA,
    /** Service instances of Spring. */
    SPRING
  }

  private final Documents documents = new Documents();
  private int workers;
  private long seed;
  private long lease;
  private long events;
  private Clock clock = Clock.COARSE;
  private long[] draws;
  private Executor executor = ForkJoinPool.commonPool();

  EngineBuilder() {}

  /** The language of the documents that are given after this. */
  public EngineBuilder dialect(Dialect value) {
    documents.dialect(Objects.requireNonNull(value, "dialect").ordinal());
    return this;
  }

  /** Documents by path. */
  public EngineBuilder file(Path... files) {
    documents.files(files);
    return this;
  }

  /** Documents by text. */
  public EngineBuilder text(String... texts) {
    documents.texts(texts);
    return this;
  }

  /** A document by text, with a name for messages; for instance lists the cluster's. */
  public EngineBuilder named(String name, String text) {
    documents.text(name, text);
    return this;
  }

  /** Runtime keys as JSON. */
  public EngineBuilder runtime(String json) {
    documents.runtime(json);
    return this;
  }

  /** Same seed and same calls give the same decisions, with one worker. 0 = from the system's randomness. */
  public EngineBuilder seed(long value) {
    seed = value;
    return this;
  }

  /**
   * 0 = one per thread; else this many for all threads.
   *
   * @throws UsageException {@code invalid}: it is negative
   */
  public EngineBuilder workers(int count) {
    if (count < 0) {
      throw Errors.invalid("workers is negative: " + count);
    }
    workers = count;
    return this;
  }

  /** Where the time comes from. */
  public EngineBuilder clock(Clock value) {
    clock = Objects.requireNonNull(value, "clock");
    return this;
  }

  /**
   * How long after its request's deadline an unreported attempt counts as lost; 300 s when not given.
   *
   * @throws UsageException {@code invalid}: it is negative
   */
  public EngineBuilder lease(Duration value) {
    lease = Durations.nanos("lease", Objects.requireNonNull(value, "lease"));
    return this;
  }

  /**
   * How many events are kept; 1,024 when not given.
   *
   * @throws UsageException {@code invalid}: it is negative
   */
  public EngineBuilder events(int count) {
    if (count < 0) {
      throw Errors.invalid("events is negative: " + count);
    }
    events = count;
    return this;
  }

  /** Random words in place of the first worker's, followed by zeros; for tests. */
  public EngineBuilder draws(long... words) {
    draws = Objects.requireNonNull(words, "words").clone();
    return this;
  }

  /** Where asynchronous calls go on; the common pool when not given. */
  public EngineBuilder executor(Executor value) {
    executor = Objects.requireNonNull(value, "executor");
    return this;
  }

  /**
   * The engine.
   *
   * @throws ConfigException a document was refused, or a file could not be read; nothing has changed
   * @throws UsageException {@code invalid}: no documents; {@code limit}: 1,023 engines are there
   */
  public Engine build() {
    long[] id = new long[1];
    int status = Native.engineNew(workers, seed, lease, events, clock.ordinal(), draws, documents.done(), id);
    if (status < 0) {
      throw Errors.of(status);
    }
    return new Engine(id[0], executor);
  }
}
