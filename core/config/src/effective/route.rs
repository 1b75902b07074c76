//! How a request on a route is treated.

use super::{Rows, Way, limit};
use nexthop_engine::spec::{ForwardSpec, HashPolicySpec, HashSource, RetrySpec, RoutingPriority};
use serde_json::{Value, json};

fn millis(span: u64) -> Value {
    json!(span as f64 / 1000.0)
}

/// What is hashed, in the words of the short form.
fn hashed(policy: &HashPolicySpec) -> String {
    let source = match &policy.source {
        HashSource::Header { name, .. } => format!("header {name}"),
        HashSource::Cookie { name, .. } => format!("cookie {name}"),
        HashSource::SourceIp => "source_ip".into(),
        HashSource::QueryParameter { name } => format!("query {name}"),
        HashSource::FilterState { key } => format!("filter_state {key}"),
    };
    if policy.terminal { source + ", terminal" } else { source }
}

impl Rows<'_> {
    pub(super) fn forward(&mut self, forward: &ForwardSpec, way: Option<&Way<'_>>) {
        self.put("route.timeout", limit(forward.timeout), &["route.timeout", ".timeout"]);
        let duration = forward.max_stream_duration.map(limit);
        self.put("route.max_stream_duration", json!(duration), &["max_stream_duration.max_stream_duration"]);
        if let Some((most, offset)) = forward.grpc_timeout_header {
            let of = "max_stream_duration.grpc_timeout_header_max";
            self.put("route.grpc_timeout_header_max", limit(most), &[of]);
            let of = "max_stream_duration.grpc_timeout_header_offset";
            self.put("route.grpc_timeout_header_offset", limit(offset), &[of]);
        }
        if let Some(most) = forward.max_grpc_timeout {
            self.put("route.max_grpc_timeout", limit(most), &["max_grpc_timeout"]);
            self.put(
                "route.grpc_timeout_offset",
                limit(forward.grpc_timeout_offset),
                &["grpc_timeout_offset"],
            );
        }
        let priority = if forward.priority == RoutingPriority::High { "HIGH" } else { "DEFAULT" };
        self.put("route.priority", json!(priority), &["route.priority"]);
        let of_host = way.and_then(|way| way.host.hedge).filter(|_| forward.hedge.is_none());
        let hedge = of_host.or(forward.hedge).unwrap_or_default();
        self.around(of_host.is_some(), |rows| {
            rows.put(
                "route.hedge_on_per_try_timeout",
                json!(hedge),
                &["hedge_policy.hedge_on_per_try_timeout"],
            );
        });
        let keys: Vec<String> = forward.hash_policy.iter().map(hashed).collect();
        self.put("route.hash_policy", json!(keys), &["route.hash_policy", ".hash"]);
    }

    /// The retry policy: the route's, its virtual host's, or else the cluster's.
    pub(super) fn retries(&mut self, forward: &ForwardSpec, way: Option<&Way<'_>>, own: Option<&RetrySpec>) {
        let of_host = way.and_then(|way| way.host.retry.as_ref()).filter(|_| forward.retry.is_none());
        match of_host.or(forward.retry.as_ref()).or(own) {
            Some(retry) => self.around(of_host.is_some(), |rows| rows.retry(retry)),
            None => self.put("retry.on", json!([]), &["retry_policy", "retry"]),
        }
    }

    /// Fills rows with what stands in the route's virtual host, if `outside`.
    fn around(&mut self, outside: bool, fill: impl FnOnce(&mut Self)) {
        let route = self.base;
        if let Some(end) = self.base.rfind(".routes[").filter(|_| outside) {
            self.base = &self.base[..end];
        }
        fill(self);
        self.base = route;
    }

    fn back_off(&mut self, retry: &RetrySpec) {
        const BASE: &str = "upstream.base_retry_backoff_ms";
        match self.runtime_number(BASE).filter(|_| retry.back_off.is_none()) {
            Some(base) => {
                self.put_runtime("retry.back_off.base", json!(base / 1000.0), BASE);
                self.put_runtime("retry.back_off.max", json!(base / 100.0), BASE);
            }
            None => {
                let spec = retry.back_off.unwrap_or_default();
                let base = ["retry_back_off.base_interval", "backoff.base"];
                self.put("retry.back_off.base", millis(spec.base_ms), &base);
                self.put(
                    "retry.back_off.max",
                    millis(spec.max_ms),
                    &["retry_back_off.max_interval", "backoff.max"],
                );
            }
        }
    }

    pub(super) fn retry(&mut self, retry: &RetrySpec) {
        let names = |matches: &[nexthop_engine::spec::HeaderMatch]| -> Value {
            matches.iter().map(|header| header.name.as_str()).collect()
        };
        let redraws = retry.host_selection_retry_max_attempts.max(1);
        let rows: [(&str, Value, &[&str]); 11] = [
            ("on", json!(retry.on.names()), &["retry_policy.retry_on", "retry.on"]),
            ("num_retries", json!(retry.num_retries), &["retry_policy.num_retries", "retry.times"]),
            ("per_try_timeout", limit(retry.per_try_timeout), &["per_try_timeout", "retry.per_try"]),
            ("per_try_idle_timeout", limit(retry.per_try_idle_timeout), &["per_try_idle_timeout"]),
            ("previous_hosts", json!(retry.previous_hosts), &["retry_host_predicate", "retry.avoid_tried"]),
            ("omit_canary_hosts", json!(retry.omit_canary_hosts), &["retry_host_predicate"]),
            ("host_selection_retry_max_attempts", json!(redraws), &["host_selection_retry_max_attempts"]),
            ("previous_priorities", json!(retry.previous_priorities), &["retry_priority"]),
            ("retriable_status_codes", json!(retry.retriable_status_codes), &["retriable_status_codes"]),
            ("retriable_headers", names(&retry.retriable_headers), &["retriable_headers"]),
            (
                "retriable_request_headers",
                names(&retry.retriable_request_headers),
                &["retriable_request_headers"],
            ),
        ];
        for (name, value, ends) in rows {
            self.put(&format!("retry.{name}"), value, ends);
        }
        self.back_off(retry);
        if let Some(limited) = &retry.rate_limited {
            let below = "rate_limited_retry_back_off";
            let names: Vec<&str> = limited.reset_headers.iter().map(|(name, _)| name.as_str()).collect();
            self.put("retry.rate_limited.reset_headers", json!(names), &[&format!("{below}.reset_headers")]);
            let max = [&*format!("{below}.max_interval")];
            self.put("retry.rate_limited.max", millis(limited.max_ms), &max);
        }
        self.options(&retry.options);
    }
}
