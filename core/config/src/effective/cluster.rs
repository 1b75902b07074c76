//! Numbers of a cluster in Envoy's words.

use super::{Rows, limit, seconds};
use crate::report::{ReportEntry, What};
use nexthop_engine::spec::{ClusterKind, ClusterSpec, OutlierSpec, Thresholds};
use serde_json::{Value, json};

impl<'a> Rows<'a> {
    pub(super) fn cluster(&mut self, spec: &ClusterSpec) {
        match &spec.kind {
            ClusterKind::Hosts => {
                let hosts: usize = spec.endpoints.localities.iter().map(|group| group.endpoints.len()).sum();
                let given = self.given(&["load_assignment", "hosts"]);
                let given = given.or_else(|| self.elsewhere().filter(|_| hosts > 0)).cloned();
                self.row("hosts", json!(hosts), given.as_ref());
            }
            ClusterKind::Aggregate(subs) => self.put("aggregate", json!(subs), &["aggregate", "clusters"]),
            ClusterKind::Composite(subs) => self.put("composite", json!(subs), &["composite", "clusters"]),
        }
        match &spec.kind {
            // Priorities laid end to end, then the policy of the cluster that one leads to.
            ClusterKind::Aggregate(_) => self.put("policy", json!("aggregate"), &["aggregate", "clusters"]),
            ClusterKind::Composite(_) => self.put("policy", json!("composite"), &["composite", "clusters"]),
            ClusterKind::Hosts => self.policy(&spec.policy),
        }
        const PANIC: &str = "upstream.healthy_panic_threshold";
        match self.runtime_number(PANIC) {
            Some(number) => self.put_runtime("panic_threshold", json!(number), PANIC),
            None => self.put(
                "panic_threshold",
                json!(spec.panic_threshold),
                &["healthy_panic_threshold.value", "healthy_panic_threshold", ".panic"],
            ),
        }
        self.put(
            "overprovisioning_factor",
            json!(spec.endpoints.overprovisioning_factor),
            &["overprovisioning_factor"],
        );
        self.drops(spec);
        self.put("update_merge_window", seconds(spec.update_merge_window), &["update_merge_window"]);
        self.put("connect_timeout", seconds(spec.connect_timeout), &["connect_timeout"]);
        self.put("max_stream_duration", limit(spec.max_stream_duration), &["max_stream_duration"]);
        self.put("idle_timeout", limit(spec.idle_timeout), &["idle_timeout"]);
        self.put("max_concurrent_streams", json!(spec.max_concurrent_streams), &["max_concurrent_streams"]);
        let most = json!((spec.max_requests_per_connection > 0).then_some(spec.max_requests_per_connection));
        self.put("max_requests_per_connection", most, &["max_requests_per_connection"]);
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
        self.health_checks(spec);
        self.block(spec);
    }

    /// Hosts of an object or assignment that stands elsewhere.
    fn elsewhere(&self) -> Option<&'a ReportEntry> {
        let used = || self.loaded.report.entries.iter().filter(|entry| entry.what == What::Used);
        let named = format!("used: {}", self.origin.name);
        let mut entries = used().filter(|entry| self.origin.made && entry.path.ends_with("spec.endpoints"));
        // Of several ServiceEntries only the assignment that is made of them is known for sure.
        if let Some(entry) = entries.next().filter(|_| entries.next().is_none()) {
            return Some(entry);
        }
        let assignment = used().find(|entry| entry.path.ends_with("cluster_name") && entry.text == named);
        assignment.or_else(|| self.given(&["type"]))
    }

    /// The share of first attempts that the assignment drops, as far as runtime lets it.
    fn drops(&mut self, spec: &ClusterSpec) {
        const LIMIT: &str = "load_balancing_policy.drop_overload_limit";
        let limit = self.runtime_number(LIMIT).map(|percent| percent / 100.0);
        // What single precision adds to the shares of documents is nobody's wish.
        let given = (f64::from(spec.endpoints.drop_ratio) * 1e6).round() / 1e6;
        match limit.filter(|limit| *limit < given) {
            Some(limit) => self.put_runtime("drop_overloads", json!(limit), LIMIT),
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
        let base = self.path("circuit_breakers.thresholds[");
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
            ("track_remaining", "limits.none", json!(limits.track_remaining)),
            ("max_connection_pools", "limits.none", json!(limits.max_connection_pools)),
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
            let interval = find("retry_budget.budget_interval").cloned();
            self.row(&format!("{field}.budget_interval"), limit(budget.interval), interval.as_ref());
        }
    }

    fn health_checks(&mut self, spec: &ClusterSpec) {
        self.put("health_checks", json!(spec.health_checks.len()), &["health_checks"]);
        for (at, check) in spec.health_checks.iter().enumerate() {
            let least = check.unhealthy_interval.unwrap_or(check.interval);
            let rows = [
                ("timeout", seconds(check.timeout)),
                ("interval", seconds(check.interval)),
                ("initial_jitter", limit(check.initial_jitter)),
                ("interval_jitter", limit(check.interval_jitter)),
                ("interval_jitter_percent", json!(check.interval_jitter_percent)),
                ("unhealthy_threshold", json!(check.unhealthy_threshold)),
                ("healthy_threshold", json!(check.healthy_threshold)),
                ("no_traffic_interval", seconds(check.no_traffic_interval)),
                (
                    "no_traffic_healthy_interval",
                    seconds(check.no_traffic_healthy_interval.unwrap_or(check.no_traffic_interval)),
                ),
                ("unhealthy_interval", seconds(least)),
                ("unhealthy_edge_interval", seconds(check.unhealthy_edge_interval.unwrap_or(least))),
                ("healthy_edge_interval", seconds(check.healthy_edge_interval.unwrap_or(check.interval))),
            ];
            for (name, value) in rows {
                let path = self.path(&format!("health_checks[{at}].{name}"));
                let given = self.at(&path).cloned();
                self.row(&format!("health_checks[{at}].{name}"), value, given.as_ref());
            }
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
            ("split_external_local_origin_errors", json!(spec.split_external_local_origin_errors)),
            (
                "enforcing_consecutive_local_origin_failure",
                json!(spec.enforcing_consecutive_local_origin_failure),
            ),
            ("success_rate_minimum_hosts", json!(spec.success_rate_minimum_hosts)),
            ("success_rate_request_volume", json!(spec.success_rate_request_volume)),
            ("success_rate_stdev_factor", json!(spec.success_rate_stdev_factor)),
            ("enforcing_success_rate", json!(spec.enforcing_success_rate)),
            ("enforcing_local_origin_success_rate", json!(spec.enforcing_local_origin_success_rate)),
            ("failure_percentage_threshold", json!(spec.failure_percentage_threshold)),
            ("enforcing_failure_percentage", json!(spec.enforcing_failure_percentage)),
            (
                "enforcing_failure_percentage_local_origin",
                json!(spec.enforcing_failure_percentage_local_origin),
            ),
            ("failure_percentage_minimum_hosts", json!(spec.failure_percentage_minimum_hosts)),
            ("failure_percentage_request_volume", json!(spec.failure_percentage_request_volume)),
            ("always_eject_one_host", json!(spec.always_eject_one_host)),
            (
                "successful_active_health_check_uneject_host",
                json!(spec.successful_active_health_check_uneject_host),
            ),
            ("detect_degraded_hosts", json!(spec.detect_degraded_hosts)),
        ];
        for (name, value) in rows {
            self.put(
                &format!("outlier_detection.{name}"),
                value,
                &[&format!("outlier_detection.{name}"), short(name)],
            );
        }
    }
}
