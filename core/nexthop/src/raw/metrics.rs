//! Numbers as metric systems want them: a name without what differs from owner to owner, which are attributes with
//! Envoy's names of tags.

use super::registry::Engine;
use nexthop_engine::Stat;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

/// One number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric<'n> {
    /// Such as `cluster.upstream_rq`.
    pub name: String,
    /// It only grows; else it is a gauge.
    pub counter: bool,
    /// Now.
    pub value: u64,
    /// Such as `envoy.response_code` and `envoy.cluster_name`.
    pub attributes: Vec<(&'static str, &'n str)>,
}

impl<'n> Metric<'n> {
    /// A number under its full name.
    fn new(name: &'n str, counter: bool, value: u64) -> Self {
        let mut metric = Self { name: name.to_owned(), counter, value, attributes: Vec::new() };
        let Some(Parts { family, tag, owner, leaf }) = parts(name) else { return metric };
        let (leaf, code) = without_code(leaf);
        metric.attributes.extend(code);
        metric.attributes.push((tag, owner));
        metric.name = format!("{family}.{leaf}");
        metric
    }
}

/// Every number of an engine.
pub(super) fn visit(engine: &Engine, visit: &mut dyn FnMut(&Metric<'_>)) {
    engine.core.stats(&mut |name, stat| {
        let (counter, value) = match stat {
            Stat::Counter(value) => (true, value),
            Stat::Gauge(value) => (false, value),
        };
        visit(&Metric::new(name, counter, value));
    });
    visit(&Metric::new("nexthop.panics", true, engine.panics.load(Relaxed).into()));
    visit(&Metric::new("nexthop.live_requests", false, engine.core.live_requests()));
}

/// A JSON array of all numbers.
pub(super) fn to_json(engine: &Engine) -> String {
    let mut all = Vec::new();
    visit(engine, &mut |metric| {
        let attributes = metric.attributes.iter().map(|(tag, value)| ((*tag).to_owned(), (*value).into()));
        all.push(json!({
            "name": metric.name,
            "type": if metric.counter { "counter" } else { "gauge" },
            "value": metric.value,
            "attributes": attributes.collect::<Map<String, Json>>(),
        }));
    });
    Json::Array(all).to_string()
}

/// Prometheus' text exposition as Envoy writes it: `envoy_cluster_upstream_rq{envoy_response_code="200",
/// envoy_cluster_name="..."}`.
pub(super) fn to_prometheus(engine: &Engine) -> String {
    let mut families: BTreeMap<String, (bool, Vec<(String, u64)>)> = BTreeMap::new();
    visit(engine, &mut |metric| {
        let own = metric.name.starts_with("nexthop.");
        let family = format!("{}{}", if own { "" } else { "envoy_" }, plain(&metric.name));
        let label = |(tag, value): &(&str, &str)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{}=\"{value}\"", plain(tag))
        };
        let labels: Vec<String> = metric.attributes.iter().map(label).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        families.entry(family).or_insert((metric.counter, Vec::new())).1.push((labels, metric.value));
    });
    let mut text = String::new();
    for (family, (counter, samples)) in families {
        let _ = writeln!(text, "# TYPE {family} {}", if counter { "counter" } else { "gauge" });
        for (labels, value) in samples {
            let _ = writeln!(text, "{family}{labels} {value}");
        }
    }
    text
}

fn plain(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// A name of Envoy's taken apart.
struct Parts<'n> {
    family: &'static str,
    tag: &'static str,
    owner: &'n str,
    leaf: &'n str,
}

/// `cluster.NAME.LEAF` or `http.PREFIX.LEAF`; names may hold dots, leaves begin with one of Envoy's words.
fn parts(name: &str) -> Option<Parts<'_>> {
    const CLUSTER: [&str; 12] = [
        ".upstream_",
        ".retry.",
        ".retry_or_",
        ".lb_",
        ".membership_",
        ".outlier_detection.",
        ".circuit_breakers.",
        ".nexthop.",
        ".ring_hash_lb.",
        ".health_check.",
        ".admission_control.",
        ".adaptive_concurrency.",
    ];
    const HTTP: [&str; 2] = [".admission_control.", ".adaptive_concurrency."];
    let (rest, words, family, tag) = match name.strip_prefix("cluster.") {
        Some(rest) => (rest, &CLUSTER[..], "cluster", "envoy.cluster_name"),
        None => (name.strip_prefix("http.")?, &HTTP[..], "http", "envoy.http_conn_manager_prefix"),
    };
    let at = words.iter().filter_map(|word| rest.rfind(word)).min()?;
    Some(Parts { family, tag, owner: &rest[..at], leaf: &rest[at + 1..] })
}

/// `upstream_rq_200` and `upstream_rq_2xx` differ in their code alone.
fn without_code(leaf: &str) -> (String, Option<(&'static str, &str)>) {
    if let Some((head, code)) = leaf.rsplit_once("upstream_rq_") {
        let digit = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if code.len() == 3 && digit(code) {
            return (format!("{head}upstream_rq"), Some(("envoy.response_code", code)));
        }
        if let Some(class) = code.strip_suffix("xx").filter(|class| class.len() == 1 && digit(class)) {
            return (format!("{head}upstream_rq_xx"), Some(("envoy.response_code_class", class)));
        }
    }
    (leaf.to_owned(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let apart = |name| {
            let metric = Metric::new(name, true, 1);
            let attributes: Vec<String> =
                metric.attributes.iter().map(|(tag, value)| format!("{tag}={value}")).collect();
            format!("{} {}", metric.name, attributes.join(" "))
        };
        for (name, wanted) in [
            ("cluster.a.b.upstream_rq_total", "cluster.upstream_rq_total envoy.cluster_name=a.b"),
            ("cluster.a.upstream_rq_503", "cluster.upstream_rq envoy.response_code=503 envoy.cluster_name=a"),
            (
                "cluster.a.retry.upstream_rq_5xx",
                "cluster.retry.upstream_rq_xx envoy.response_code_class=5 envoy.cluster_name=a",
            ),
            ("cluster.a.upstream_rq_retry", "cluster.upstream_rq_retry envoy.cluster_name=a"),
            (
                "cluster.a.circuit_breakers.high.cx_open",
                "cluster.circuit_breakers.high.cx_open envoy.cluster_name=a",
            ),
            (
                "http.in.admission_control.rq_rejected",
                "http.admission_control.rq_rejected envoy.http_conn_manager_prefix=in",
            ),
            (
                "cluster.a.health_check.name.n.attempt",
                "cluster.health_check.name.n.attempt envoy.cluster_name=a",
            ),
            ("nexthop.panics", "nexthop.panics "),
        ] {
            assert_eq!(apart(name), wanted);
        }
    }
}
