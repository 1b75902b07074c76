package io.nexthop;

import java.util.Objects;
import java.util.function.Consumer;
import javax.net.ssl.SSLContext;

/** How {@link Engine#startChecks(CheckOptions)} performs checks. Immutable: each method gives new options. */
public final class CheckOptions {
  private static final CheckOptions DEFAULTS = new CheckOptions(null, null, 64);

  final Consumer<Check> others;
  final SSLContext tls;
  final int threads;

  private CheckOptions(Consumer<Check> others, SSLContext tls, int threads) {
    this.others = others;
    this.tls = tls;
    this.threads = threads;
  }

  /** The default context for TLS, 64 threads, nobody for custom checks. */
  public static CheckOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Who performs and reports custom checks, in a thread of the loop. Without it their hosts count as unreachable, and the system
   * logger {@code io.nexthop} is told once per checker.
   */
  public CheckOptions others(Consumer<Check> perform) {
    return new CheckOptions(Objects.requireNonNull(perform, "perform"), tls, threads);
  }

  /** For hosts that speak TLS. */
  public CheckOptions tls(SSLContext context) {
    return new CheckOptions(others, Objects.requireNonNull(context, "context"), threads);
  }

  /**
   * How many checks are performed at a time, each in a thread; the others are due until one is free.
   *
   * @throws UsageException {@code invalid}: it is not 1 or more
   */
  public CheckOptions threads(int most) {
    if (most < 1) {
      throw Errors.invalid("threads is " + most + "; there must be 1 or more");
    }
    return new CheckOptions(others, tls, most);
  }
}
