//! Counters and events of `envoy-live` cases.

use super::live::Facts;
use super::same;
use crate::json::Json;
use crate::trace::Trace;
use std::collections::BTreeMap;

impl Facts {
    pub(super) fn stats(
        &self,
        out: &mut Vec<String>,
        label: &str,
        listed: &Json,
        trace: &Trace,
        taken: &str,
    ) {
        let none = BTreeMap::new();
        let stats = trace.stats.get(taken).unwrap_or(&none);
        let clusters = self.value.get("config").get("clusters").items();
        let single = clusters.len() == 1;
        let prefix = |name: &str| {
            let cluster = if single { format!("{}.", clusters[0].get("name").text()) } else { String::new() };
            format!("cluster.{cluster}{name}")
        };
        let breakers = self.value.get("topic").str() == Some("circuit_breaker");
        let dns = clusters.iter().any(|cluster| cluster.get("type").str() == Some("STRICT_DNS"));
        let kept = |name: &str| {
            // Answers of a name server come host by host.
            kept(name, breakers) && !(dns && name == "membership_change")
        };
        for (name, wanted) in listed.entries() {
            if !kept(short(name, clusters)) || !self.exact(&format!("stats.{name}")) {
                continue;
            }
            let Some(wanted) = wanted.f64() else { continue };
            let got = stats.get(&prefix(name)).copied().unwrap_or(0.0);
            same(out, &format!("{label} counter {name}"), &wanted, &got);
        }
        for (name, value) in stats.iter().filter(|(_, value)| **value != 0.0) {
            let Some(name) = name.strip_prefix(&prefix("")) else { continue };
            // The recorder took a cluster of this name for a family of counters.
            if name.starts_with("internal.") {
                continue;
            }
            if !listed.has(name) && kept(short(name, clusters)) && self.exact(&format!("stats.{name}")) {
                out.push(format!("{label} counter {name}: expected 0, got {value}"));
            }
        }
    }

    /// Per host and in order; between hosts the order is no fact.
    pub(super) fn events(&self, out: &mut Vec<String>, trace: &Trace) {
        let recorded = self.value.get("result").get("outlier_events");
        if recorded.is_null() || !self.exact("events") {
            return;
        }
        let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in recorded.items() {
            let words = match event.get("action").str() {
                Some("EJECT") => {
                    ["action", "type", "num_ejections", "enforced"].map(|key| event.get(key).text()).join(" ")
                }
                other => other.unwrap_or("").to_owned(),
            };
            let cluster = event.get("cluster").str().map_or(String::new(), |cluster| format!("{cluster}/"));
            let host = event.get("host").text();
            let host = if host.contains('/') { host } else { format!("{cluster}{host}") };
            wanted.entry(host).or_default().push(words);
        }
        let qualified = wanted.keys().any(|host| host.contains('/'));
        let mut got: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in &trace.events {
            let words = match event.action.as_str() {
                "EJECT" => format!("EJECT {} {} {}", event.kind, event.ejections, event.enforced),
                other => other.to_owned(),
            };
            let host = self.host(&event.host);
            got.entry(if qualified { format!("{}/{host}", event.cluster) } else { host })
                .or_default()
                .push(words);
        }
        same(out, "events", &wanted, &got);
    }
}

/// A counter's name without the cluster's.
fn short<'a>(name: &'a str, clusters: &[Json]) -> &'a str {
    let owner = clusters
        .iter()
        .filter_map(|cluster| name.strip_prefix(&cluster.get("name").text())?.strip_prefix('.'));
    owner.min_by_key(|rest| rest.len()).unwrap_or(name)
}

/// Families that the recordings keep and that do not depend on when a real proxy opens connections.
fn kept(name: &str, breakers: bool) -> bool {
    let code = name
        .rsplit_once('_')
        .is_some_and(|(_, last)| last.len() == 3 && last.bytes().all(|b| b.is_ascii_digit()));
    let connections = ["upstream_cx_total", "upstream_rq_pending_total", "upstream_cx_overflow"];
    // The recordings never show these three, whatever happened.
    let absent = ["upstream_rq_timeout", "upstream_rq_tx_reset", "upstream_rq_cancelled"];
    if code
        || name == "upstream_rq_pending_active"
        || absent.contains(&name)
        || connections.contains(&name) && !breakers
    {
        return false;
    }
    name.starts_with("upstream_rq_")
        || connections.contains(&name)
        || name == "upstream_cx_connect_fail"
        || ["lb_", "retry.", "outlier_detection.", "membership_"]
            .iter()
            .any(|family| name.starts_with(family))
        || name.starts_with("circuit_breakers.") && !name.contains(".remaining_") && breakers
}
