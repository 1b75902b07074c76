//! Nacos' protection, and what registries say of their lists (`spec/gray-and-nacos.md` sections 4 and 5).

use super::MasterCluster;
use crate::clock::Time;
use crate::engine::Core;
use crate::events::{Json, timestamp};
use crate::hosts::{Health, HostArena, flag};
use crate::sets::HostSet;
use crate::spec::{ClusterSpec, Endpoint, EndpointSpec, Endpoints, PolicySpec, Value};

/// What a registry said with the list in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Its own protection acts.
    pub(crate) protected: bool,
    /// When it made the list.
    pub(crate) revision: Option<i64>,
}

/// Whether `healthy` of `all` hosts are few enough: in single precision, and equal counts.
pub(super) fn protects(threshold: f32, healthy: usize, all: usize) -> bool {
    all > 0 && healthy as f32 / all as f32 <= threshold.max(0.0)
}

/// Whether a cluster's protection acts now.
pub(super) fn acts(spec: &ClusterSpec, cluster: &MasterCluster, hosts: &HostArena) -> bool {
    let Some(threshold) = spec.protect_threshold else { return false };
    let healthy = |slot: u32| flag::health(hosts.flags(slot)) != Health::Unhealthy;
    let count = cluster.members.iter().filter(|member| healthy(member.entry.slot)).count();
    protects(threshold, count, cluster.members.len())
}

impl HostSet {
    /// All hosts count as healthy.
    pub(super) fn protect(&mut self) {
        self.healthy.clone_from(&self.hosts);
        self.degraded.clear();
        self.excluded = 0;
        for locality in &mut self.localities {
            locality.healthy.clone_from(&locality.hosts);
            locality.degraded.clear();
            locality.excluded = 0;
        }
    }
}

impl Core {
    /// Whether a list is older than the one in force, which then stays: an operator is told.
    pub(super) fn is_outdated(&self, cluster: &MasterCluster, new: &Endpoints, now: Time) -> bool {
        let (Some(held), Some(given)) = (cluster.told.revision, new.revision) else { return false };
        if given < held {
            let json = Json::new()
                .text("type", "nexthop.list_outdated")
                .text("timestamp", &timestamp(self.settings.unix_base.saturating_add(now.0)))
                .text("cluster", &cluster.shared.name)
                .raw("held", held)
                .raw("given", given);
            self.events.push(json.end());
        }
        given < held
    }
}

/// What faces show of a host.
pub(super) fn shown(cluster: &ClusterSpec, host: &Endpoint) -> Endpoint {
    let mut shown = host.clone();
    if let Some(address) = shown_address(cluster, host) {
        shown.address = address;
    }
    shown
}

/// The IPv6 address that a host publishes, where a filter asks for that.
fn shown_address(cluster: &ClusterSpec, host: &EndpointSpec) -> Option<String> {
    let rewrites = matches!(&cluster.policy, PolicySpec::Filtered(spec) if spec.rewrites());
    let published = match host.metadata.lb("IPv6").filter(|_| rewrites) {
        Some(Value::String(address)) => address.trim_start_matches('[').trim_end_matches(']'),
        _ => return None,
    };
    let v4 = host.address.rsplit_once(':').is_some_and(|(ip, _)| ip.parse::<std::net::Ipv4Addr>().is_ok());
    match published.parse::<std::net::Ipv6Addr>() {
        Ok(address) if v4 => Some(format!("[{address}]:{}", host.port)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Json;

    /// `tests/vectors/gray`: what Nacos' server answers.
    #[test]
    fn recorded_answers() {
        let named = |document: &nexthop_vectors::Document| document.text.contains("\"nacos_protect\"");
        for document in nexthop_vectors::documents("gray", "json", 4, named) {
            let name = &document.name;
            let case: Json = serde_json::from_str(&document.text).unwrap();
            let input = &case["input"];
            let only = input["healthyOnly"].as_bool().unwrap_or(false);
            let hosts: Vec<&Json> = input["hosts"].as_array().unwrap().iter().collect();
            // The server filters first.
            let hosts: Vec<&Json> =
                hosts.into_iter().filter(|host| !only || host["healthy"] == true).collect();
            let healthy = hosts.iter().filter(|host| host["healthy"] == true).count();
            let threshold = input["protectThreshold"].as_f64().unwrap() as f32;
            let acts = protects(threshold, healthy, hosts.len());
            assert_eq!(json_bool(&case["expect"]["reachProtectionThreshold"]), acts, "{}", name);
            let told: Vec<Json> = hosts
                .iter()
                .map(|host| serde_json::json!({"ip": host["ip"], "healthy": acts || host["healthy"] == true}))
                .collect();
            assert_eq!(Json::Array(told), case["expect"]["hosts"], "{}", name);
        }
    }

    fn json_bool(value: &Json) -> bool {
        value.as_bool().unwrap()
    }

    #[test]
    fn equal_in_single_precision_counts() {
        assert!(protects(0.6, 3, 5));
        assert!(!protects(0.6, 4, 5));
        assert!(protects(-1.0, 0, 2) && protects(1.0, 2, 2) && !protects(1.0, 0, 0));
    }
}
