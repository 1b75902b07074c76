//! `Cluster`.

use super::address::Names;
use super::breakers::breakers;
use super::composite::{Custom, cluster_type};
use super::endpoints::{Rules, assignment, check_sums, health_status};
use super::health_check::health_checks;
use super::outlier::outlier;
use super::policy::{load_balancing_policy, panic_percent, percent};
use super::policy_legacy::legacy_policy;
use super::protocol::protocol;
use super::subset::{legacy, wants_locality_weights};
use crate::error::Result;
use crate::read::{At, Fields, Msg, nearest};
use crate::report::What;
use nexthop_engine::spec::{ClusterKind, ClusterSpec, Endpoints, PolicySpec};

const CLUSTER: Fields = Fields::of(
    "Cluster",
    &[
        "name",
        "type",
        "cluster_type",
        "eds_cluster_config",
        "connect_timeout",
        "lb_policy",
        "load_assignment",
        "health_checks",
        "circuit_breakers",
        "common_http_protocol_options",
        "max_requests_per_connection",
        "http_protocol_options",
        "http2_protocol_options",
        "typed_extension_protocol_options",
        "outlier_detection",
        "lb_subset_config",
        "ring_hash_lb_config",
        "maglev_lb_config",
        "original_dst_lb_config",
        "least_request_lb_config",
        "round_robin_lb_config",
        "common_lb_config",
        "ignore_health_on_host_removal",
        "transport_socket",
        "protocol_selection",
        "load_balancing_policy",
        "nexthop",
    ],
)
.not_used(&[
    "transport_socket_matches",
    "transport_socket_matcher",
    "alt_stat_name",
    "stats_matcher",
    "per_connection_buffer_limit_bytes",
    "per_connection_buffer_high_watermark_timeout",
    "upstream_http_protocol_options",
    "dns_refresh_rate",
    "dns_jitter",
    "dns_failure_refresh_rate",
    "respect_dns_ttl",
    "dns_lookup_family",
    "dns_resolvers",
    "use_tcp_for_dns_lookups",
    "dns_resolution_config",
    "typed_dns_resolver_config",
    "wait_for_warm_on_init",
    "cleanup_interval",
    "upstream_bind_config",
    "metadata",
    "upstream_connection_options",
    "close_connections_on_host_health_failure",
    "filters",
    "lrs_server",
    "lrs_report_endpoint_metrics",
    "upstream_config",
    "preconnect_policy",
    "connection_pool_per_downstream_connection",
])
.not_available(&["track_timeout_budgets", "track_cluster_stats", "queuing_policies"])
.one_of(&[
    &["type", "cluster_type"],
    &[
        "ring_hash_lb_config",
        "maglev_lb_config",
        "original_dst_lb_config",
        "least_request_lb_config",
        "round_robin_lb_config",
    ],
]);
const EDS: Fields = Fields::of("EdsClusterConfig", &["service_name"]).not_used(&["eds_config"]);
const COMMON: Fields = Fields::of(
    "CommonLbConfig",
    &[
        "healthy_panic_threshold",
        "zone_aware_lb_config",
        "locality_weighted_lb_config",
        "update_merge_window",
        "consistent_hashing_lb_config",
        "ignore_new_hosts_until_first_hc",
        "override_host_status",
    ],
)
.not_used(&["close_connections_on_host_set_change"])
.one_of(&[&["zone_aware_lb_config", "locality_weighted_lb_config"]]);

const STATUSES: Fields = Fields::of("HealthStatusSet", &["statuses"]);

const TYPES: &[(&str, i32)] =
    &[("STATIC", 0), ("STRICT_DNS", 1), ("LOGICAL_DNS", 2), ("EDS", 3), ("ORIGINAL_DST", 4)];

/// Keys of the short form that are no fields of Envoy's cluster.
pub(crate) const SHORT_KEYS: &[&str] =
    &["hosts", "policy", "hash", "retry", "timeout", "limits", "outlier", "panic", "composite", "aggregate"];

/// Whether a key is a field of Envoy's cluster.
pub(crate) fn is_cluster_field(key: &str) -> bool {
    CLUSTER.lookup(key).is_some()
}

/// The field of Envoy's cluster that a key means or nearly means.
pub(crate) fn like_cluster_field(key: &str) -> bool {
    is_cluster_field(key) || nearest(key, CLUSTER.names().map(|(name, _)| name)).is_some()
}

/// How a cluster comes by its hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Discovery {
    Static,
    StrictDns,
    LogicalDns,
    Eds,
}

/// Reads a `Cluster`. With it comes the name under which a separate assignment may bring its hosts, if it waits for
/// one.
pub(crate) fn cluster(at: &At<'_>) -> Result<(ClusterSpec, Option<String>)> {
    refuse_mixed_styles(at)?;
    let msg = at.message(&CLUSTER)?;
    let mut spec = ClusterSpec { name: msg.need("name")?.filled()?, ..ClusterSpec::default() };
    let discovery = discovery(&msg, &mut spec)?;
    if let Some(eds) = msg.get("eds_cluster_config") {
        spec.service_name = eds.message(&EDS)?.or("service_name", String::new(), |name| name.text())?;
    }
    spec.policy = policy(&msg, &mut spec)?;
    hosts(&msg, discovery, &mut spec)?;
    spec.connect_timeout = msg.or("connect_timeout", spec.connect_timeout, |d| d.positive_millis())?;
    spec.breakers = msg.or("circuit_breakers", spec.breakers, breakers)?;
    spec.outlier = msg.map("outlier_detection", outlier)?;
    protocol(&msg, &mut spec)?;
    if let Some(checks) = msg.get("health_checks") {
        spec.health_checks = health_checks(&checks, spec.protocol)?;
    }
    spec.ignore_health_on_host_removal =
        msg.or("ignore_health_on_host_removal", false, |flag| flag.bool())?;
    if let Some(socket) = msg.get("transport_socket") {
        spec.secure = is_tls(&socket)?;
    }
    let waits = discovery == Discovery::Eds && spec.kind == ClusterKind::Hosts && !msg.has("load_assignment");
    let service = if spec.service_name.is_empty() { &spec.name } else { &spec.service_name };
    let waits = waits.then(|| service.clone());
    Ok((spec, waits))
}

fn refuse_mixed_styles(at: &At<'_>) -> Result<()> {
    for entry in at.node.entries().unwrap_or_default() {
        if SHORT_KEYS.contains(&&*entry.key) {
            let text = format!(
                "`{}` belongs to the short form, this cluster is written in Envoy's form; one cluster has one style",
                entry.key
            );
            return Err(at.key(&entry.key, &entry.value).fail(text));
        }
    }
    Ok(())
}

fn discovery(msg: &Msg<'_>, spec: &mut ClusterSpec) -> Result<Discovery> {
    if let Some(custom) = msg.get("cluster_type") {
        return Ok(match cluster_type(&custom)? {
            Custom::Kind(kind) => {
                spec.kind = kind;
                Discovery::Static
            }
            Custom::Dns(true) => Discovery::LogicalDns,
            Custom::Dns(false) => Discovery::StrictDns,
        });
    }
    let Some(at) = msg.get("type") else { return Ok(Discovery::Static) };
    match at.enumeration(TYPES)? {
        1 => Ok(Discovery::StrictDns),
        2 => Ok(Discovery::LogicalDns),
        3 => Ok(Discovery::Eds),
        4 => Err(at.unavailable("the cluster type ORIGINAL_DST")),
        _ => Ok(Discovery::Static),
    }
}

/// The policy, and whether the cluster's kind agrees with it.
fn policy(msg: &Msg<'_>, spec: &mut ClusterSpec) -> Result<PolicySpec> {
    let common_at = msg.get("common_lb_config");
    let common = common_at.map(|at| at.message(&COMMON)).transpose()?;
    if let Some(common) = &common {
        spec.panic_threshold =
            common.or("healthy_panic_threshold", 50, |p| percent(p, 100.0).map(panic_percent))?;
        spec.update_merge_window =
            common.or("update_merge_window", spec.update_merge_window, |d| d.millis())?;
        spec.ignore_new_hosts_until_first_hc =
            common.or("ignore_new_hosts_until_first_hc", false, |flag| flag.bool())?;
        if let Some(set) = common.get("override_host_status") {
            spec.override_host_status =
                set.message(&STATUSES)?.repeated("statuses", |item| health_status(&item))?;
        }
    }
    let typed = msg.get("load_balancing_policy");
    // Read in any case: its ranges hold even when a typed policy replaces it.
    let legacy = match typed.is_some() {
        true => None,
        false => Some(legacy_policy(msg, common.as_ref())?),
    };
    let policy = match (&typed, legacy) {
        (Some(typed), _) => {
            refuse_partial(msg, common.as_ref())?;
            load_balancing_policy(typed)?
        }
        (None, legacy) => legacy.unwrap_or_default(),
    };
    let policy = subset(msg, common.as_ref(), spec, policy)?;
    let named = typed.or_else(|| msg.get("lb_policy"));
    let at = named.as_ref().unwrap_or(&msg.at);
    match (&spec.kind, policy == PolicySpec::ClusterProvided) {
        (kind @ (ClusterKind::Composite(_) | ClusterKind::Aggregate(_)), false) => {
            let text = format!(
                "{} cluster brings its own balancing; lb_policy must be CLUSTER_PROVIDED",
                kind.article()
            );
            let mut error = at.fail(text);
            error.allowed = "CLUSTER_PROVIDED".into();
            Err(error)
        }
        (ClusterKind::Hosts, true) => {
            Err(at.fail("the policy CLUSTER_PROVIDED needs a cluster type that brings its own balancing"))
        }
        _ => Ok(policy),
    }
}

/// What a typed policy makes meaningless may not stand beside it.
fn refuse_partial(msg: &Msg<'_>, common: Option<&Msg<'_>>) -> Result<()> {
    let partial = ["zone_aware_lb_config", "locality_weighted_lb_config", "consistent_hashing_lb_config"];
    let in_common = common.and_then(|common| partial.iter().find_map(|name| common.get(name)));
    match msg.get("lb_subset_config").or(in_common) {
        Some(at) => Err(at.fail("excluded by `load_balancing_policy`")),
        None => Ok(()),
    }
}

/// The policy over the subsets of `lb_subset_config`; without selectors that does nothing.
fn subset(
    msg: &Msg<'_>,
    common: Option<&Msg<'_>>,
    spec: &ClusterSpec,
    policy: PolicySpec,
) -> Result<PolicySpec> {
    let Some(at) = msg.get("lb_subset_config") else { return Ok(policy) };
    if spec.kind != ClusterKind::Hosts {
        at.note(What::NotUsed, no_hosts(&spec.kind));
        return Ok(policy);
    }
    let weighted = common.is_some_and(|common| common.has("locality_weighted_lb_config"));
    if wants_locality_weights(&at)? && !weighted {
        let text = "locality_weight_aware needs `locality_weighted_lb_config` in common_lb_config";
        return Err(at.fail(text));
    }
    if policy == PolicySpec::ClusterProvided {
        return Err(at.fail("the policy CLUSTER_PROVIDED cannot be combined with lb_subset_config"));
    }
    if let Some(subset) = legacy(&at, policy.clone())? {
        return Ok(subset);
    }
    at.note(What::NotUsed, "not used: it has no selectors");
    Ok(policy)
}

fn no_hosts(kind: &ClusterKind) -> String {
    format!("not used: {} cluster has no hosts of its own", kind.article())
}

fn hosts(msg: &Msg<'_>, discovery: Discovery, spec: &mut ClusterSpec) -> Result<()> {
    let is_dns = matches!(discovery, Discovery::StrictDns | Discovery::LogicalDns);
    let rules = Rules {
        names: if is_dns { Names::Allowed } else { Names::Refused },
        distinct: discovery == Discovery::Eds,
    };
    let hosts = msg.map("load_assignment", |at| assignment(at, rules))?.map(|(_, hosts)| hosts);
    if spec.kind != ClusterKind::Hosts {
        if let Some(at) = msg.get("load_assignment") {
            at.note(What::NotUsed, no_hosts(&spec.kind));
        }
        return Ok(());
    }
    spec.endpoints = hosts.unwrap_or_default();
    let at = msg.get("load_assignment");
    let at = at.as_ref().unwrap_or(&msg.at);
    if discovery == Discovery::LogicalDns && !is_single(&spec.endpoints) {
        return Err(at.fail("a LOGICAL_DNS cluster has exactly one host in one locality"));
    }
    check_sums(&at.seen(), &spec.policy, &spec.endpoints)
}

fn is_single(endpoints: &Endpoints) -> bool {
    matches!(endpoints.localities.as_slice(), [only] if only.endpoints.len() == 1)
}

/// Whether a transport socket encrypts, seen through sockets that wrap others.
fn is_tls(at: &At<'_>) -> Result<bool> {
    if !at.is_map() {
        return Err(at.expected("a mapping with the fields of TransportSocket"));
    }
    at.note(What::NotUsed, "not used here beyond URLs: the caller opens the connections");
    let mut node = at.node;
    let field = |node: &crate::front::Node<'_>, names: &[&str]| -> Option<usize> {
        node.entries()?.iter().rposition(|entry| names.contains(&&*entry.key))
    };
    while let Some(config) = field(node, &["typed_config", "typedConfig"]) {
        let Some(config) = node.entries().and_then(|entries| entries.get(config)).map(|entry| &entry.value)
        else {
            break;
        };
        let url = field(config, &["@type"]).and_then(|i| config.entries()?.get(i)?.value.text());
        if url.is_some_and(|url| {
            url.ends_with(".UpstreamTlsContext") || url.ends_with(".QuicUpstreamTransport")
        }) {
            return Ok(true);
        }
        match field(config, &["transport_socket", "transportSocket"]).and_then(|i| config.entries()?.get(i)) {
            Some(inner) => node = &inner.value,
            None => break,
        }
    }
    Ok(false)
}
