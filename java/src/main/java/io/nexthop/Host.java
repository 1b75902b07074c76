package io.nexthop;

import java.time.Duration;
import java.util.Map;

/** An upstream address as the documents or host changes described it. The same object while nothing changes. */
public final class Host {
  private final String address;
  private final int port;
  private final String hostname;
  private final String cluster;
  private final long weight;
  private final int priority;
  private final String region;
  private final String zone;
  private final String subZone;
  private final String metadataText;
  private final boolean secure;
  private final Duration connectTimeout;
  private volatile Map<String, Object> metadata;
  final int version;

  Host(int version, String address, int port, String hostname, String cluster, long weight, int priority,
      String region, String zone, String subZone, String metadata, boolean secure, Duration connectTimeout) {
    this.version = version;
    this.address = address;
    this.port = port;
    this.hostname = hostname;
    this.cluster = cluster;
    this.weight = weight;
    this.priority = priority;
    this.region = region;
    this.zone = zone;
    this.subZone = subZone;
    this.metadataText = metadata;
    this.secure = secure;
    this.connectTimeout = connectTimeout;
  }

  /** {@code ip:port}, {@code [v6]:port}, {@code name:port}, or a path. */
  public String address() {
    return address;
  }

  /** Port; 0 for paths. */
  public int port() {
    return port;
  }

  /** Name beside the address; may be empty. */
  public String hostname() {
    return hostname;
  }

  /** Name of the cluster that owns the host. */
  public String cluster() {
    return cluster;
  }

  /** 1 to 2^32-1. */
  public long weight() {
    return weight;
  }

  /** 0 is used first. */
  public int priority() {
    return priority;
  }

  /** Locality. */
  public String region() {
    return region;
  }

  /** Locality. */
  public String zone() {
    return zone;
  }

  /** Locality. */
  public String subZone() {
    return subZone;
  }

  /** {@code envoy.lb} metadata. */
  public Map<String, Object> metadata() {
    Map<String, Object> map = metadata;
    if (map == null) {
      map = metadataText.isEmpty() ? Map.of() : Json.object(metadataText);
      metadata = map;
    }
    return map;
  }

  /** Whether TLS is spoken to it. */
  public boolean secure() {
    return secure;
  }

  /** How long connecting may take; null = no limit. */
  public Duration connectTimeout() {
    return connectTimeout;
  }

  @Override
  public String toString() {
    return address + " of " + cluster;
  }
}
