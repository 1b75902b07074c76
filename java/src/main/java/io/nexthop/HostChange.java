package io.nexthop;

import java.util.Map;
import java.util.Objects;

/** One change of a cluster's hosts. Immutable: each method gives a new one. */
public final class HostChange {
  /** Health as the control plane sees it, Envoy's words. */
  public enum Health {
    UNKNOWN, HEALTHY, UNHEALTHY, DRAINING, TIMEOUT, DEGRADED
  }

  private static final int SET = 0;
  private static final int ADD = 1;
  private static final int REMOVE = 2;
  private static final int CHANGE = 3;
  private static final int ENDPOINTS = 4;

  private final int op;
  private final int fields;
  private final String address;
  private final long weight;
  private final int priority;
  private final Health health;
  private final String hostname;
  private final String region;
  private final String zone;
  private final String subZone;
  private final String metadata;

  private HostChange(int op, int fields, String address, long weight, int priority, Health health, String hostname,
      String region, String zone, String subZone, String metadata) {
    this.op = op;
    this.fields = fields;
    this.address = address;
    this.weight = weight;
    this.priority = priority;
    this.health = health;
    this.hostname = hostname;
    this.region = region;
    this.zone = zone;
    this.subZone = subZone;
    this.metadata = metadata;
  }

  private static HostChange of(int op, String address) {
    return new HostChange(op, 0, Objects.requireNonNull(address, "address"), 0, 0, Health.UNKNOWN, null, null, null,
        null, null);
  }

  /** All of one call together replace the cluster's hosts. */
  public static HostChange set(String address) {
    return of(SET, address);
  }

  /** Adds a host, or replaces that of this address. */
  public static HostChange add(String address) {
    return of(ADD, address);
  }

  /** Removes a host. */
  public static HostChange remove(String address) {
    return of(REMOVE, address);
  }

  /** Changes only what is given afterwards. */
  public static HostChange change(String address) {
    return of(CHANGE, address);
  }

  /** Endpoints: a {@code ClusterLoadAssignment} or a registry's instance list, JSON or YAML, alone in its call. */
  static HostChange endpoints(String assignment) {
    return new HostChange(ENDPOINTS, 0, "", 0, 0, Health.UNKNOWN, null, null, null, null, assignment);
  }

  /** 1 to 2^32-1. */
  public HostChange weight(long value) {
    if (value < 1 || value > 0xffff_ffffL) {
      throw Errors.invalid("weight is " + value + ", not 1 to 4294967295");
    }
    return new HostChange(op, fields | 1, address, value, priority, health, hostname, region, zone, subZone, metadata);
  }

  /** 0 to 128; 0 is used first. */
  public HostChange priority(int value) {
    if (value < 0 || value > 128) {
      throw Errors.invalid("priority is " + value + ", not 0 to 128");
    }
    return new HostChange(op, fields | 2, address, weight, value, health, hostname, region, zone, subZone, metadata);
  }

  /** Health as the control plane sees it. */
  public HostChange health(Health value) {
    return new HostChange(op, fields | 4, address, weight, priority, Objects.requireNonNull(value, "health"), hostname,
        region, zone, subZone, metadata);
  }

  /** Where it is; parts may be empty. */
  public HostChange locality(String ofRegion, String ofZone, String ofSubZone) {
    return new HostChange(op, fields | 8, address, weight, priority, health, hostname,
        Objects.requireNonNull(ofRegion, "region"), Objects.requireNonNull(ofZone, "zone"),
        Objects.requireNonNull(ofSubZone, "subZone"), metadata);
  }

  /** {@code envoy.lb} metadata; maps, lists, strings, numbers, booleans. */
  public HostChange metadata(Map<String, ?> values) {
    return new HostChange(op, fields | 16, address, weight, priority, health, hostname, region, zone, subZone,
        Json.text(Objects.requireNonNull(values, "metadata")));
  }

  /** Name beside the address. */
  public HostChange hostname(String value) {
    return new HostChange(op, fields | 32, address, weight, priority, health, Objects.requireNonNull(value, "hostname"),
        region, zone, subZone, metadata);
  }

  void pack(Packer out) {
    out.byteValue(op).byteValue(health.ordinal()).intValue(fields).intValue((int) weight).intValue(priority)
        .text("address", address).text("hostname", hostname).text("region", region).text("zone", zone)
        .text("subZone", subZone).text("metadata", metadata);
  }
}
