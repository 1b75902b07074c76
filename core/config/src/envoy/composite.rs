//! Cluster types that are extensions: `envoy.clusters.composite` and its neighbours.

use crate::error::Result;
use crate::read::{At, Fields, Reference};
use nexthop_engine::spec::ClusterKind;

const CUSTOM: Fields = Fields::of("CustomClusterType", &["name", "typed_config"]);
const COMPOSITE: Fields = Fields::of("composite ClusterConfig", &["clusters"]);
const AGGREGATE: Fields = Fields::of("aggregate ClusterConfig", &["clusters"]);
const ENTRY: Fields = Fields::of("composite ClusterEntry", &["name"]);
const DNS: Fields = Fields::of("DnsCluster", &["all_addresses_in_single_endpoint"]).not_used(&[
    "dns_refresh_rate",
    "dns_failure_refresh_rate",
    "respect_dns_ttl",
    "dns_jitter",
    "typed_dns_resolver_config",
    "dns_lookup_family",
    "dns_min_refresh_rate",
]);

const PREFIX: &str = "envoy.extensions.clusters.";

/// What a cluster of an extension type is.
pub(super) enum Custom {
    Kind(ClusterKind),
    /// Names that a resolver turns into hosts; `true` = one name for all of them.
    Dns(bool),
}

/// Reads `cluster_type`. As in Envoy the type of its configuration decides, not its name.
pub(super) fn cluster_type(at: &At<'_>) -> Result<Custom> {
    let msg = at.message(&CUSTOM)?;
    msg.need("name")?.filled()?;
    let Some(config) = msg.get("typed_config") else {
        return Err(at.fail("the field `typed_config` is required"));
    };
    config.any(|type_name, at| match type_name.strip_prefix(PREFIX) {
        Some("composite.v3.ClusterConfig") => composite(&at).map(Custom::Kind),
        Some("aggregate.v3.ClusterConfig") => aggregate(&at).map(Custom::Kind),
        Some("dns.v3.DnsCluster") => {
            let msg = at.message(&DNS)?;
            Ok(Custom::Dns(msg.or("all_addresses_in_single_endpoint", false, |flag| flag.bool())?))
        }
        Some(rest) if is_known(rest) => {
            let kind = rest.split('.').next().unwrap_or(rest);
            Err(at.unavailable(&format!("the cluster type {kind}")))
        }
        _ => {
            let known = ["aggregate.v3.ClusterConfig", "composite.v3.ClusterConfig", "dns.v3.DnsCluster"]
                .map(|t| format!("{PREFIX}{t}"));
            Err(at.unknown_name("cluster type", type_name, known.iter().map(String::as_str)))
        }
    })
}

fn is_known(rest: &str) -> bool {
    matches!(
        rest,
        "dynamic_forward_proxy.v3.ClusterConfig"
            | "dynamic_modules.v3.ClusterConfig"
            | "mcp_multicluster.v3.ClusterConfig"
            | "original_dst.v3.OriginalDstCluster"
            | "redis.v3.RedisClusterConfig"
            | "reverse_connection.v3.ReverseConnectionClusterConfig"
    )
}

fn composite(at: &At<'_>) -> Result<ClusterKind> {
    let msg = at.message(&COMPOSITE)?;
    let names = msg.repeated("clusters", |item| sub_cluster(&item.message(&ENTRY)?.need("name")?))?;
    if names.is_empty() {
        let list = msg.get("clusters");
        return Err(list.as_ref().unwrap_or(at).fail("a composite cluster needs at least one cluster"));
    }
    Ok(ClusterKind::Composite(names))
}

/// Names are not looked at: an empty one is a cluster that does not exist (`spec/composite-and-aggregate.md` B1).
fn aggregate(at: &At<'_>) -> Result<ClusterKind> {
    let msg = at.message(&AGGREGATE)?;
    let names = msg.repeated("clusters", |item| {
        let cluster = item.text()?;
        item.sink().borrow_mut().subs.push(Reference { cluster: cluster.clone(), seen: item.seen() });
        Ok(cluster)
    })?;
    if names.is_empty() {
        let list = msg.get("clusters");
        return Err(list.as_ref().unwrap_or(at).fail("an aggregate cluster needs at least one cluster"));
    }
    Ok(ClusterKind::Aggregate(names))
}

/// The name of a sub-cluster. It need not exist; whether it does is known when all documents are read.
pub(crate) fn sub_cluster(at: &At<'_>) -> Result<String> {
    let cluster = at.filled()?;
    at.sink().borrow_mut().subs.push(Reference { cluster: cluster.clone(), seen: at.seen() });
    Ok(cluster)
}
