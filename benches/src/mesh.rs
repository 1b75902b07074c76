//! The engine of every benchmark: LEAST_REQUEST, circuit breaker, retry budget, outlier detection.

use nexthop::raw::{self, Document, Options, document_kind};
use std::fmt::Write;

/// The document with `hosts` hosts, as text; the faces' benchmarks read the same.
pub fn document(hosts: usize) -> String {
    document_with(hosts, "outlier_detection: {consecutive_5xx: 5, interval: 10s}\n")
}

/// Every detector of outlier detection at work.
pub const ALL_DETECTORS: &str = "outlier_detection: {interval: 10s, split_external_local_origin_errors: true, \
    detect_degraded_hosts: true, enforcing_failure_percentage: 100, enforcing_failure_percentage_local_origin: 100, \
    enforcing_consecutive_gateway_failure: 100, success_rate_request_volume: 1, failure_percentage_request_volume: 1}\n";

/// The same with other outlier detection.
pub fn document_with(hosts: usize, outlier: &str) -> String {
    let mut text = String::from(
        "name: web\nconnect_timeout: 1s\nlb_policy: LEAST_REQUEST\n\
         circuit_breakers: {thresholds: [{max_connections: 100000, max_pending_requests: 100000, max_requests: 100000, \
         retry_budget: {budget_percent: {value: 20}, min_retry_concurrency: 3}}]}\n\
         load_assignment:\n  cluster_name: web\n  endpoints:\n  - lb_endpoints:\n",
    );
    let at = text.find("load_assignment").unwrap_or(text.len());
    text.insert_str(at, outlier);
    for i in 0..hosts {
        let (a, b) = (i / 250, i % 250 + 1);
        let _ = writeln!(
            text,
            "    - endpoint: {{address: {{socket_address: {{address: 10.1.{a}.{b}, port_value: 8080}}}}}}"
        );
    }
    text
}

/// An engine over it, and its target.
pub fn engine(hosts: usize) -> (u64, u32) {
    engine_of(&document(hosts), &Options { seed: 1, ..Options::default() })
}

/// An engine over a document, and the target of its cluster.
pub fn engine_of(text: &str, options: &Options) -> (u64, u32) {
    let document = Document { kind: document_kind::TEXT, dialect: "", name: "bench", text: text.as_bytes() };
    let engine = raw::engine_new(options, &[document]).expect("the document of the benchmark is good");
    (engine, raw::resolve(engine, "web").expect("its cluster is there"))
}
