//! `ClusterLoadAssignment`: the hosts of a cluster.

use super::address::{HostKey, Names, address};
use crate::error::Result;
use crate::read::{At, Fields, Seen};
use crate::report::What;
use nexthop_engine::spec::{
    EndpointChecks, EndpointSpec, Endpoints, HealthStatus, Locality, LocalityEndpoints, PolicySpec,
};
use std::collections::{BTreeMap, BTreeSet};

const ASSIGNMENT: Fields = Fields::of("ClusterLoadAssignment", &["cluster_name", "endpoints", "policy"])
    .not_available(&["named_endpoints"]);
const POLICY: Fields = Fields::of(
    "ClusterLoadAssignment.Policy",
    &["overprovisioning_factor", "weighted_priority_health", "drop_overloads"],
)
.not_available(&["endpoint_stale_after"]);
const DROP: Fields = Fields::of("DropOverload", &["category", "drop_percentage"]);
const LOCALITY_ENDPOINTS: Fields =
    Fields::of("LocalityLbEndpoints", &["locality", "lb_endpoints", "load_balancing_weight", "priority"])
        .not_available(&["metadata", "load_balancer_endpoints", "leds_cluster_locality_config", "proximity"])
        .one_of(&[&["load_balancer_endpoints", "leds_cluster_locality_config"]]);
const LOCALITY: Fields = Fields::of("Locality", &["region", "zone", "sub_zone"]);
const LB_ENDPOINT: Fields =
    Fields::of("LbEndpoint", &["endpoint", "health_status", "metadata", "load_balancing_weight"])
        .refused(&["endpoint_name"])
        .one_of(&[&["endpoint", "endpoint_name"]]);
const ENDPOINT: Fields = Fields::of("Endpoint", &["address", "hostname", "health_check_config"])
    .not_used(&["additional_addresses", "observability_name"]);
const CHECKS: Fields = Fields::of(
    "Endpoint.HealthCheckConfig",
    &["port_value", "hostname", "address", "disable_active_health_check"],
);

const HEALTH: &[(&str, i32)] =
    &[("UNKNOWN", 0), ("HEALTHY", 1), ("UNHEALTHY", 2), ("DRAINING", 3), ("TIMEOUT", 4), ("DEGRADED", 5)];

/// Which rules apply to the hosts, by the kind of cluster they are for.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) names: Names,
    /// An address counts once, the first time (EDS); a static cluster keeps all.
    pub(crate) distinct: bool,
}

/// Reads a `ClusterLoadAssignment`: its cluster's name and the hosts.
pub(crate) fn assignment(at: &At<'_>, rules: Rules) -> Result<(String, Endpoints)> {
    let msg = at.message(&ASSIGNMENT)?;
    let name = msg.need("cluster_name")?.filled()?;
    let mut endpoints = Endpoints::default();
    if let Some(policy) = msg.get("policy") {
        let policy = policy.message(&POLICY)?;
        endpoints.overprovisioning_factor =
            policy.or("overprovisioning_factor", 140, |f| f.u32_in(1, u32::MAX))?;
        endpoints.weighted_priority_health = policy.or("weighted_priority_health", false, |f| f.bool())?;
        endpoints.drop_ratio = policy.or("drop_overloads", 0.0, drop_overloads)?;
    }
    let mut seen = BTreeSet::new();
    endpoints.localities = msg.repeated("endpoints", |item| locality_endpoints(&item, rules, &mut seen))?;
    Ok((name, endpoints))
}

fn locality_endpoints(at: &At<'_>, rules: Rules, seen: &mut BTreeSet<String>) -> Result<LocalityEndpoints> {
    let msg = at.message(&LOCALITY_ENDPOINTS)?;
    let locality = msg.map("locality", locality)?;
    let weight = msg.map("load_balancing_weight", |w| w.u32_in(1, u32::MAX))?;
    let mut endpoints = Vec::new();
    if let Some(list) = msg.get("lb_endpoints") {
        for item in list.repeated() {
            let host = lb_endpoint(&item, rules.names)?;
            if rules.distinct && !seen.insert(host.address.clone()) {
                item.note(What::NotUsed, format!("{} is listed twice; the first entry counts", host.address));
                continue;
            }
            endpoints.push(host.into());
        }
    }
    Ok(LocalityEndpoints {
        priority: msg.or("priority", 0, |p| p.u32_in(0, 128))?,
        weight: weight.filter(|_| locality.is_some()),
        locality,
        endpoints,
    })
}

/// Reads a `Locality`.
pub(super) fn locality(at: &At<'_>) -> Result<Locality> {
    let msg = at.message(&LOCALITY)?;
    let part = |name| msg.or(name, String::new(), |p| p.text());
    Ok(Locality { region: part("region")?, zone: part("zone")?, sub_zone: part("sub_zone")? })
}

fn lb_endpoint(at: &At<'_>, names: Names) -> Result<EndpointSpec> {
    let msg = at.message(&LB_ENDPOINT)?;
    let endpoint = msg.need("endpoint")?.message(&ENDPOINT)?;
    // Borrow of the temporary message: the address is read while it lives.
    let HostKey { key, port, name } = address(&endpoint.need("address")?, names)?;
    let hostname = endpoint.or("hostname", String::new(), |h| h.text())?;
    let health = msg.or("health_status", HealthStatus::Unknown, health_status)?;
    Ok(EndpointSpec {
        address: key,
        port,
        hostname: if hostname.is_empty() { name.unwrap_or_default() } else { hostname },
        weight: msg.or("load_balancing_weight", 1, |w| w.u32_in(1, u32::MAX))?,
        health,
        metadata: msg.map("metadata", |m| m.metadata())?.unwrap_or_default(),
        checks: endpoint.map("health_check_config", endpoint_checks)?.unwrap_or_default(),
    })
}

/// Reads a `HealthStatus`. Envoy takes any number; one without a name says nothing.
pub(super) fn health_status(at: &At<'_>) -> Result<HealthStatus> {
    Ok(HealthStatus::from_number(at.open_enumeration(HEALTH)?).unwrap_or_default())
}

fn endpoint_checks(at: &At<'_>) -> Result<EndpointChecks> {
    let msg = at.message(&CHECKS)?;
    let own = msg.map("address", |address_at| address(address_at, Names::Refused))?;
    let port = u16::try_from(msg.or("port_value", 0, |p| p.u32_in(0, 65_535))?).unwrap_or(0);
    let (address, own_port) = match own {
        Some(HostKey { key, port: 0, .. }) => (key, 0),
        Some(HostKey { key, port, .. }) => {
            (key.rsplit_once(':').map_or("", |(name, _)| name).to_owned(), port)
        }
        None => (String::new(), 0),
    };
    Ok(EndpointChecks {
        disabled: msg.or("disable_active_health_check", false, |flag| flag.bool())?,
        port: if port == 0 { own_port } else { port },
        hostname: msg.or("hostname", String::new(), |h| h.text())?,
        address,
    })
}

/// Reads `drop_overloads`: the share to drop, in single precision as Envoy divides.
fn drop_overloads(at: &At<'_>) -> Result<f32> {
    let items = at.repeated();
    if items.len() > 1 {
        let count = items.len();
        return Err(
            at.fail(format!("Cluster drop_overloads config has {count} categories. Envoy only support one."))
        );
    }
    let Some(item) = items.first() else { return Ok(0.0) };
    let msg = item.message(&DROP)?;
    msg.need("category")?.filled()?;
    let Some(percent) = msg.get("drop_percentage") else { return Ok(0.0) };
    let (numerator, denominator) = super::route::fraction(&percent)?;
    let ratio = numerator as f32 / denominator as f32;
    if ratio > 1.0 {
        return Err(percent.fail(format!(
            "Cluster drop_overloads config is invalid. drop_ratio={ratio}(Numerator {numerator} / Denominator \
             {denominator}). The valid range is 0~1."
        )));
    }
    Ok(ratio)
}

/// Hash policies turn weights into shares of their sum, which must fit 32 bits.
pub(crate) fn check_sums(seen: &Seen, policy: &PolicySpec, endpoints: &Endpoints) -> Result<()> {
    if !matches!(policy.chooser(), PolicySpec::RingHash { .. } | PolicySpec::Maglev { .. }) {
        return Ok(());
    }
    let max = u64::from(u32::MAX);
    let (mut hosts, mut localities) = (BTreeMap::<u32, u64>::new(), BTreeMap::<u32, u64>::new());
    for group in &endpoints.localities {
        let sum: u64 = group.endpoints.iter().map(|host| u64::from(host.weight)).sum();
        *hosts.entry(group.priority).or_default() += sum;
        *localities.entry(group.priority).or_default() += u64::from(group.weight.unwrap_or(0));
    }
    for (sums, what) in [(hosts, "hosts"), (localities, "localities")] {
        if sums.values().any(|&sum| sum > max) {
            let text = format!(
                "the weights of the {what} of one priority add up to more than {max}, too much for a hash policy"
            );
            return Err(seen.fail(text));
        }
    }
    Ok(())
}
