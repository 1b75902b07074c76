//! The engine of every benchmark: LEAST_REQUEST, circuit breaker, retry budget, outlier detection.

use nexthop::raw::{self, Document, Options, document_kind};
use std::fmt::Write;

/// The document with `hosts` hosts, as text; the faces' benchmarks read the same.
pub fn document(hosts: usize) -> String {
    let mut text = String::from(
        "name: web\nconnect_timeout: 1s\nlb_policy: LEAST_REQUEST\n\
         circuit_breakers: {thresholds: [{max_connections: 100000, max_pending_requests: 100000, max_requests: 100000, \
         retry_budget: {budget_percent: {value: 20}, min_retry_concurrency: 3}}]}\n\
         outlier_detection: {consecutive_5xx: 5, interval: 10s}\n\
         load_assignment:\n  cluster_name: web\n  endpoints:\n  - lb_endpoints:\n",
    );
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
    let text = document(hosts);
    let document = Document { kind: document_kind::TEXT, dialect: "", name: "bench", text: text.as_bytes() };
    let options = Options { seed: 1, ..Options::default() };
    let engine = raw::engine_new(&options, &[document]).expect("the document of the benchmark is good");
    (engine, raw::resolve(engine, "web").expect("its cluster is there"))
}
