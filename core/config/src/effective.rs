//! Every number in force for a cluster or route, and where it came from.

use crate::load::Loaded;
use crate::report::{ReportEntry, What};
use nexthop_engine::explain::policy_name;
use nexthop_engine::spec::{
    ClusterKind, ClusterSource, ClusterSpec, ForwardSpec, OutlierSpec, RetrySpec, RouteAction,
    RoutingPriority, Specs, Thresholds, Value as Plain,
};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Where a cluster or route stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Name of the cluster, or `route:VHOST/NAME`.
    pub name: String,
    /// Name of the source.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Place inside the document.
    pub path: String,
    /// Made from another dialect, by translation.
    pub made: bool,
}

/// Rows of one thing.
struct Rows<'a> {
    loaded: &'a Loaded,
    origin: &'a Origin,
    rows: Vec<Value>,
}

/// What is in force for `name`: a cluster, `route:NAME` or `route:VHOST/NAME`. `overlay`: runtime values given apart
/// from documents. `None` = no such name. `loaded` comes from [`crate::load_in_detail`].
pub fn effective(loaded: &Loaded, name: &str, overlay: &[(String, Plain)]) -> Option<Value> {
    let specs = &loaded.specs;
    if let Some(cluster) = specs.clusters.iter().find(|cluster| cluster.name == name) {
        let origin = loaded.origins.iter().find(|origin| origin.name == name)?;
        let mut rows = Rows { loaded, origin, rows: Vec::new() };
        rows.cluster(cluster, overlay);
        if let Some(forward) = &cluster.defaults {
            rows.forward(forward, None);
        } else if let Some((host_retry, forward, origin)) = first_route(loaded, name) {
            let mut through = Rows { loaded, origin, rows: Vec::new() };
            through.forward(forward, host_retry);
            rows.rows.extend(through.rows);
        } else {
            rows.forward(&ForwardSpec::default(), None);
        }
        return Some(rows.told(name, "cluster"));
    }
    let wanted = name.strip_prefix("route:").unwrap_or(name);
    let (label, action, retry) = routes(specs).find(|(label, ..)| {
        label == wanted
            || label.split_once('/').is_some_and(|(_, route)| route == wanted && !route.is_empty())
    })?;
    let origin = loaded.origins.iter().find(|origin| origin.name == format!("route:{label}"))?;
    let mut rows = Rows { loaded, origin, rows: Vec::new() };
    match action {
        RouteAction::Direct { status, .. } => rows.put("direct_response.status", json!(status), &["status"]),
        RouteAction::Forward(forward) => {
            let to = match &forward.cluster {
                ClusterSource::Name(name) => json!(name),
                ClusterSource::Header(name) => json!(format!("by header {name}")),
                ClusterSource::Weighted(list) => {
                    list.iter().map(|entry| json!({"cluster": entry.name, "weight": entry.weight})).collect()
                }
            };
            rows.put("cluster", to, &["cluster", "weighted_clusters", "cluster_header"]);
            rows.forward(forward, retry);
        }
    }
    Some(rows.told(&format!("route:{label}"), "route"))
}

/// Routes with their labels and the retry policy of their virtual host.
fn routes(specs: &Specs) -> impl Iterator<Item = (String, &RouteAction, Option<&RetrySpec>)> {
    let hosts = specs.route_tables.iter().flat_map(|table| &table.virtual_hosts);
    hosts.flat_map(|host| {
        host.routes
            .iter()
            .map(move |route| (format!("{}/{}", host.name, route.name), &route.action, host.retry.as_ref()))
    })
}

/// The first route that leads to a cluster: it treats requests that name the cluster.
fn first_route<'a>(
    loaded: &'a Loaded,
    cluster: &str,
) -> Option<(Option<&'a RetrySpec>, &'a ForwardSpec, &'a Origin)> {
    let mut number = 0;
    routes(&loaded.specs).find_map(|(_, action, retry)| {
        number += 1;
        let RouteAction::Forward(forward) = action else { return None };
        let leads = match &forward.cluster {
            ClusterSource::Name(name) => name == cluster,
            ClusterSource::Weighted(list) => list.iter().any(|entry| entry.name == cluster),
            ClusterSource::Header(_) => false,
        };
        let routes = || loaded.origins.iter().filter(|origin| origin.name.starts_with("route:"));
        if leads { Some((retry, &**forward, routes().nth(number - 1)?)) } else { None }
    })
}

fn seconds(span: Duration) -> Value {
    span.as_secs_f64().into()
}

/// Seconds, `null` = none.
fn limit(span: Duration) -> Value {
    if span.is_zero() { Value::Null } else { seconds(span) }
}

impl Rows<'_> {
    fn told(self, name: &str, kind: &str) -> Value {
        let origin = self.origin;
        json!({
            "name": name,
            "kind": kind,
            "file": origin.file,
            "line": origin.line,
            "path": origin.path,
            "values": self.rows,
        })
    }

    /// A field of the documents below this thing, by the end of its path without indices.
    fn given(&self, ends: &[&str]) -> Option<&ReportEntry> {
        let below = |entry: &&ReportEntry| {
            entry.what == What::Used
                && entry.file == self.origin.file
                && entry
                    .path
                    .strip_prefix(&*self.origin.path)
                    .is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        let entries: Vec<&ReportEntry> = self.loaded.report.entries.iter().filter(below).collect();
        ends.iter().find_map(|end| {
            entries.iter().copied().find(|entry| {
                let rest: String = without_indices(&entry.path[self.origin.path.len()..]);
                rest == format!(".{end}") || rest.ends_with(&format!(".{end}"))
            })
        })
    }

    fn put(&mut self, field: &str, value: Value, ends: &[&str]) {
        let given = self.given(ends).cloned();
        self.row(field, value, given.as_ref());
    }

    fn row(&mut self, field: &str, value: Value, given: Option<&ReportEntry>) {
        let mut row = Map::new();
        row.insert("field".into(), field.into());
        row.insert("value".into(), value);
        match given {
            Some(entry) => {
                row.insert("from".into(), if self.origin.made { "translation" } else { "document" }.into());
                row.insert("file".into(), entry.file.as_str().into());
                row.insert("line".into(), entry.line.into());
                row.insert("path".into(), entry.path.as_str().into());
            }
            None => {
                row.insert("from".into(), "default".into());
                row.insert(
                    "whose".into(),
                    if field.starts_with("nexthop.") { "nexthop" } else { "Envoy" }.into(),
                );
            }
        }
        self.rows.push(Value::Object(row));
    }

    fn cluster(&mut self, spec: &ClusterSpec, overlay: &[(String, Plain)]) {
        match &spec.kind {
            ClusterKind::Hosts => {
                let hosts: usize = spec.endpoints.localities.iter().map(|group| group.endpoints.len()).sum();
                self.put("hosts", json!(hosts), &["load_assignment", "hosts"]);
            }
            ClusterKind::Aggregate(subs) => self.put("aggregate", json!(subs), &["aggregate", "clusters"]),
            ClusterKind::Composite(subs) => self.put("composite", json!(subs), &["composite", "clusters"]),
        }
        let ends = ["filters.preset", "nexthop.policy", "load_balancing_policy", "lb_policy", "policy"];
        self.put("policy", json!(policy_name(&spec.policy)), &ends);
        let runtime = self.loaded.specs.runtime.iter().chain(overlay).rev();
        let panic = runtime.into_iter().find(|(key, _)| key == "upstream.healthy_panic_threshold");
        match panic.and_then(|(_, value)| match value {
            Plain::Number(number) => Some(*number),
            _ => None,
        }) {
            Some(number) => {
                self.rows.push(json!({"field": "panic_threshold", "value": number, "from": "runtime",
                    "path": "upstream.healthy_panic_threshold"}));
            }
            None => {
                self.put(
                    "panic_threshold",
                    json!(spec.panic_threshold),
                    &["healthy_panic_threshold", "panic"],
                );
            }
        }
        self.drops(spec, overlay);
        self.put("update_merge_window", seconds(spec.update_merge_window), &["update_merge_window"]);
        self.put("connect_timeout", seconds(spec.connect_timeout), &["connect_timeout"]);
        self.put("max_stream_duration", limit(spec.max_stream_duration), &["max_stream_duration"]);
        self.put("idle_timeout", limit(spec.idle_timeout), &["idle_timeout"]);
        self.put("max_concurrent_streams", json!(spec.max_concurrent_streams), &["max_concurrent_streams"]);
        for (at, name) in ["default", "high"].into_iter().enumerate() {
            self.thresholds(name, &spec.breakers.thresholds[at]);
            let per_host = spec.breakers.per_host_max_connections[at];
            let field = format!("circuit_breakers.{name}.per_host_max_connections");
            let given = per_host.and_then(|_| self.given(&["per_host_thresholds.max_connections"]).cloned());
            self.row(&field, json!(per_host), given.as_ref());
        }
        match &spec.outlier {
            Some(outlier) => self.outlier(outlier),
            None => self.put("outlier_detection", Value::Null, &["outlier_detection", "outlier"]),
        }
        self.put("health_checks", json!(spec.health_checks.len()), &["health_checks"]);
        let connections = spec.connections.map(|style| format!("{style:?}").to_lowercase());
        self.put("nexthop.connections", json!(connections), &["nexthop.connections"]);
        let threshold = spec.protect_threshold;
        self.put("nexthop.protect_threshold", json!(threshold), &["nexthop.protect_threshold"]);
        self.put("nexthop.lifecycle_events", json!(spec.lifecycle_events), &["nexthop.lifecycle_events"]);
        if let Some(retry) = &spec.retry {
            self.retry(retry);
        }
    }

    /// The share of first attempts that the assignment drops, as far as runtime lets it.
    fn drops(&mut self, spec: &ClusterSpec, overlay: &[(String, Plain)]) {
        const LIMIT: &str = "load_balancing_policy.drop_overload_limit";
        let mut runtime = self.loaded.specs.runtime.iter().chain(overlay).rev();
        let limit = runtime.find_map(|(key, value)| match value {
            Plain::Number(percent) if key == LIMIT => Some(percent / 100.0),
            _ => None,
        });
        // What single precision adds to the shares of documents is nobody's wish.
        let given = (f64::from(spec.endpoints.drop_ratio) * 1e6).round() / 1e6;
        match limit.filter(|limit| *limit < given) {
            Some(limit) => self
                .rows
                .push(json!({"field": "drop_overloads", "value": limit, "from": "runtime", "path": LIMIT})),
            None => self.put(
                "drop_overloads",
                json!(given),
                &["drop_overloads.drop_percentage", "drop_overloads"],
            ),
        }
    }

    /// Limits of one routing priority: those of the entry that names it.
    fn thresholds(&mut self, name: &str, limits: &Thresholds) {
        let entries = &self.loaded.report.entries;
        let base = format!("{}.circuit_breakers.thresholds[", self.origin.path);
        let high = |at: &str| {
            let path = format!("{base}{at}].priority");
            let entry = entries.iter().find(|entry| entry.path == path && entry.file == self.origin.file);
            entry.is_some_and(|entry| entry.text.contains("HIGH") || entry.text.ends_with(" 1"))
        };
        let find =
            |leaf: &str| {
                entries.iter().find(|entry| {
                    entry.what == What::Used
                        && entry.file == self.origin.file
                        && entry.path.strip_prefix(&base).and_then(|rest| rest.split_once(']')).is_some_and(
                            |(at, rest)| rest == format!(".{leaf}") && high(at) == (name == "high"),
                        )
                })
            };
        let values = [
            ("max_connections", "limits.connections", json!(limits.max_connections)),
            ("max_pending_requests", "limits.pending", json!(limits.max_pending_requests)),
            ("max_requests", "limits.requests", json!(limits.max_requests)),
            ("max_retries", "limits.retries", json!(limits.max_retries)),
        ];
        for (leaf, short, value) in values {
            let short = if name == "default" { self.given(&[short]) } else { None };
            let given = find(leaf).or(short).cloned();
            self.row(&format!("circuit_breakers.{name}.{leaf}"), value, given.as_ref());
        }
        if let Some(budget) = &limits.retry_budget {
            let percent = find("retry_budget.budget_percent").cloned();
            let least = find("retry_budget.min_retry_concurrency").cloned();
            let field = format!("circuit_breakers.{name}.retry_budget");
            self.row(&format!("{field}.budget_percent"), json!(budget.budget_percent), percent.as_ref());
            let value = json!(budget.min_retry_concurrency);
            self.row(&format!("{field}.min_retry_concurrency"), value, least.as_ref());
        }
    }

    fn outlier(&mut self, spec: &OutlierSpec) {
        let short = |name: &str| match name {
            "base_ejection_time" => "outlier.eject",
            "max_ejection_percent" => "outlier.max_percent",
            "interval" => "outlier.interval",
            "consecutive_5xx" => "outlier.consecutive_5xx",
            _ => "outlier.none",
        };
        let rows = [
            ("interval", seconds(spec.interval)),
            ("base_ejection_time", seconds(spec.base_ejection_time)),
            ("max_ejection_time", seconds(spec.max_ejection_time)),
            ("max_ejection_time_jitter", seconds(spec.max_ejection_time_jitter)),
            ("max_ejection_percent", json!(spec.max_ejection_percent)),
            ("consecutive_5xx", json!(spec.consecutive_5xx)),
            ("enforcing_consecutive_5xx", json!(spec.enforcing_consecutive_5xx)),
            ("consecutive_gateway_failure", json!(spec.consecutive_gateway_failure)),
            ("enforcing_consecutive_gateway_failure", json!(spec.enforcing_consecutive_gateway_failure)),
            ("consecutive_local_origin_failure", json!(spec.consecutive_local_origin_failure)),
            ("success_rate_minimum_hosts", json!(spec.success_rate_minimum_hosts)),
            ("success_rate_request_volume", json!(spec.success_rate_request_volume)),
            ("success_rate_stdev_factor", json!(spec.success_rate_stdev_factor)),
            ("enforcing_success_rate", json!(spec.enforcing_success_rate)),
            ("failure_percentage_threshold", json!(spec.failure_percentage_threshold)),
            ("enforcing_failure_percentage", json!(spec.enforcing_failure_percentage)),
            ("failure_percentage_minimum_hosts", json!(spec.failure_percentage_minimum_hosts)),
            ("failure_percentage_request_volume", json!(spec.failure_percentage_request_volume)),
            ("always_eject_one_host", json!(spec.always_eject_one_host)),
        ];
        for (name, value) in rows {
            self.put(
                &format!("outlier_detection.{name}"),
                value,
                &[&format!("outlier_detection.{name}"), short(name)],
            );
        }
    }

    fn forward(&mut self, forward: &ForwardSpec, host: Option<&RetrySpec>) {
        self.put("route.timeout", limit(forward.timeout), &["route.timeout", "timeout"]);
        let priority = if forward.priority == RoutingPriority::High { "HIGH" } else { "DEFAULT" };
        self.put("route.priority", json!(priority), &["route.priority"]);
        match forward.retry.as_ref().or(host) {
            Some(retry) => self.retry(retry),
            None => self.put("retry.on", json!([]), &["retry_policy", "retry"]),
        }
    }

    fn retry(&mut self, retry: &RetrySpec) {
        let back_off = |span: u64| json!(span as f64 / 1000.0);
        let rows: [(&str, Value, &[&str]); 7] = [
            ("on", json!(retry.on.names()), &["retry_policy.retry_on", "retry.on"]),
            ("num_retries", json!(retry.num_retries), &["retry_policy.num_retries", "retry.times"]),
            ("per_try_timeout", limit(retry.per_try_timeout), &["per_try_timeout", "retry.per_try"]),
            ("per_try_idle_timeout", limit(retry.per_try_idle_timeout), &["per_try_idle_timeout"]),
            ("back_off.base", back_off(retry.back_off.base_ms), &["base_interval", "backoff.base"]),
            ("back_off.max", back_off(retry.back_off.max_ms), &["max_interval", "backoff.max"]),
            ("previous_hosts", json!(retry.previous_hosts), &["retry_host_predicate", "retry.avoid_tried"]),
        ];
        for (name, value, ends) in rows {
            self.put(&format!("retry.{name}"), value, ends);
        }
    }
}

/// A path without the numbers of list items.
fn without_indices(path: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}
