//! Whatever comes in, an answer comes out.

use nexthop_config::{Dialect, Source, load, load_assignment, parse_metadata_json};
use proptest::prelude::*;

fn feed(text: &[u8]) {
    let source = Source { name: "any", text, dialect: Dialect::Auto };
    for result in [load(&[source]).map(|_| ()), load_assignment(&source).map(|_| ())] {
        if let Err(error) = result {
            assert!(error.line >= 1 && error.column >= 1, "{error:?}");
            assert!(!error.message.is_empty());
        }
    }
    if let Ok(text) = std::str::from_utf8(text) {
        let _ = parse_metadata_json(text);
    }
}

/// A document that touches most readers, to be damaged.
const SEED: &str = r#"static_resources:
  clusters:
  - name: web
    type: EDS
    lb_policy: RING_HASH
    ring_hash_lb_config: {minimum_ring_size: 0x10, hash_function: XX_HASH}
    common_lb_config: {healthy_panic_threshold: {value: 50.5}, locality_weighted_lb_config: {}}
    circuit_breakers: {thresholds: [{priority: HIGH, max_requests: 010, retry_budget: {budget_percent: {value: 20}}}]}
    outlier_detection: &o {interval: 1.5s, consecutive_5xx: "3"}
    load_assignment: {cluster_name: web, endpoints: [{locality: {zone: a}, lb_endpoints: [{endpoint: {address: {socket_address: {address: "::1", port_value: 80}}}, metadata: {filter_metadata: {envoy.lb: {a: [1, {b: ~}]}}}}]}]}
  - {name: d, outlier_detection: *o, cluster_type: {name: x, typed_config: {"@type": a/envoy.extensions.clusters.composite.v3.ClusterConfig, clusters: [{name: web}]}}, lb_policy: 6}
---
virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {safe_regex: {regex: "a+"}}, route: {weighted_clusters: {clusters: [{name: web, weight: 1}]}, timeout: 2s, retry_policy: {retry_on: 5xx, retry_back_off: {base_interval: 0.1s}}, hash_policy: [{header: {header_name: x}}]}}]}]
---
clusters: {s: {hosts: [1.2.3.4:80, {address: "[::1]:1", zone: b}], retry: {on: [5xx], backoff: {base: 25ms}}, hash: [source_ip]}}
routes: [{path: /, cluster: {s: 1}}]
"#;

#[test]
fn the_seed_is_sound() {
    let source = Source { name: "seed", text: SEED.as_bytes(), dialect: Dialect::Auto };
    load(&[source]).unwrap();
}

proptest! {
    #[test]
    fn bytes(text in prop::collection::vec(any::<u8>(), 0..200)) {
        feed(&text);
    }

    #[test]
    fn strings(text in "\\PC{0,200}") {
        feed(text.as_bytes());
    }

    #[test]
    fn signs_of_yaml(text in "[-?:,\\[\\]{}#&*!|>'\"%@` \n\ta0~<=.]{0,120}") {
        feed(text.as_bytes());
    }

    #[test]
    fn signs_of_json(text in "[\\[{]([\\[\\]{}:,\"\\\\ud8c0e.+-]|true|null| |\n){0,80}") {
        feed(text.as_bytes());
    }

    #[test]
    fn damaged_documents(cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "[-?:,\\[\\]{}&*!|>'\"%@ \n\ta0~.]{0,4}"), 1..6)) {
        let mut text: Vec<char> = SEED.chars().collect();
        for (at, length, with) in cuts {
            let at = at.index(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, with.chars());
        }
        feed(text.into_iter().collect::<String>().as_bytes());
    }

    #[test]
    fn replaced_values(at in any::<prop::sample::Index>(), with in "(null|\\[\\]|\\{\\}|-1|1e999|\"\"|yes|\\[\\[\\]\\]|\\{a: b\\}|0x|'x'|99999999999999999999)") {
        // Whatever follows a colon, up to the next end of a value.
        let colons: Vec<usize> = SEED.match_indices(": ").map(|(at, _)| at + 2).collect();
        let start = colons[at.index(colons.len())];
        let end = SEED[start..].find([',', '}', ']', '\n']).map_or(SEED.len(), |n| start + n);
        feed(format!("{}{with}{}", &SEED[..start], &SEED[end..]).as_bytes());
    }
}
