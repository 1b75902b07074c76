//! Whatever comes in, an answer comes out.

use nexthop_config::{
    Dialect, ListOptions, Source, load, load_assignment, load_hosts, parse_metadata_json, translate,
};
use proptest::prelude::*;

fn feed(text: &[u8]) {
    let source = Source { name: "any", text, dialect: Dialect::Auto };
    let loaded = load(&[source]);
    if let Ok(loaded) = &loaded {
        let told = loaded.findings.to_json()["findings"].as_array().unwrap().len();
        assert_eq!(loaded.findings.to_human().lines().count(), 2 * told + 1);
        assert!(loaded.findings.to_sarif().is_object());
    }
    let hosts = load_hosts(&source, &ListOptions::default(), "orders");
    for result in [
        loaded.map(|_| ()),
        load_assignment(&source).map(|_| ()),
        hosts.map(|_| ()),
        translate(&[source]).map(|_| ()),
    ] {
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

/// The same for Istio's objects.
const ISTIO: &str = r#"apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: r, namespace: shop, creationTimestamp: "2024"}
spec:
  host: a.b
  trafficPolicy:
    connectionPool: {tcp: {maxConnections: 3, connectTimeout: 250ms, tcpKeepalive: {time: 1500ms}}, http: {http2MaxRequests: 9, idleTimeout: 1h, h2UpgradePolicy: UPGRADE, http2KeepAlive: {interval: 1s, timeout: 1s}}}
    loadBalancer: {consistentHash: {httpCookie: {name: c, ttl: 0s, attributes: [{name: x}]}, maglev: {tableSize: 11}}, localityLbSetting: {distribute: [{from: "north/*", to: {"north/*": 70, "south/*": 30}}]}}
    outlierDetection: {consecutive5xxErrors: 3, interval: 1s, maxEjectionPercent: 50, outlierDetectionHttpErrorCodes: [429]}
    retryBudget: {percent: 35.5}
    portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: ROUND_ROBIN, warmup: {duration: 90s, aggression: 0.5}}}]
  subsets: [{name: s, labels: {v: "1"}, trafficPolicy: {loadBalancer: {zoneAwareLbSetting: {failover: [{from: north, to: south}]}}}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
spec:
  hosts: [a.b]
  http: [{match: [{uri: {prefix: /x}, headers: {y: {regex: "z+"}}, sourceLabels: {app: web}}], timeout: 2s, retries: {attempts: 3, perTryTimeout: 1s, retryOn: "5xx,503", retryRemoteLocalities: true, backoff: 40ms}, route: [{destination: {host: a.b, subset: s, port: {number: 80}}, weight: 3}, {destination: {host: short}, weight: 1}]}, {redirect: {uri: /n, redirectCode: 302}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
spec: {hosts: [a.b, c.d], ports: [{number: 80, name: h, protocol: HTTP}, {number: 90, name: g, protocol: GRPC}], resolution: STATIC, workloadSelector: {labels: {app: w}}, endpoints: [{address: 1.2.3.4, ports: {h: 8080}, locality: north/z, labels: {v: "1"}, weight: 3}]}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
spec: {address: "::1", labels: {app: w}, locality: s/z/q}
---
kind: ClientContext
spec: {proxy: {locality: north/z, labels: {app: web}}, mesh: {connectTimeout: 5s, defaultTrafficPolicy: {connectionPool: {tcp: {maxConnections: 1}}}, defaultHttpRetryPolicy: {attempts: 1}, localityLbSetting: {failoverPriority: [rack, "tier=gold"]}}}
"#;

/// The same for instance lists.
const LISTS: &str = r#"{"name": "g@@orders", "reachProtectionThreshold": true, "hosts": [{"instanceId": "a", "ip": "10.0.0.1", "port": 80, "weight": 0.5, "healthy": false, "metadata": {"zone": "z", "nacos.weight": "1e3"}}]}
---
- {host: h.example, port: 80, secure: true, serviceId: spring, metadata: {weight: "2", zone: z}}
---
[{"Node": {"Address": "10.0.0.9"}, "Service": {"ID": "c", "Service": "consul", "Port": 1, "Meta": null, "Weights": {"Passing": 500}}, "Checks": [{"Status": "warning"}]}]
---
{"applications": {"application": [{"name": "EUREKA", "instance": {"hostName": "h", "port": {"$": 1, "@enabled": "true"}, "dataCenterInfo": {"metadata": {"availability-zone": "q"}}, "status": "UP"}}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {labels: {kubernetes.io/service-name: k8s}}, ports: [{name: http, port: 8080}, {name: m, port: 9}], endpoints: [{addresses: ["::1"], conditions: {ready: false, terminating: true}, zone: z, targetRef: {kind: Pod, name: p}}]}
"#;

const SEEDS: [&str; 3] = [SEED, ISTIO, LISTS];

#[test]
fn the_seeds_are_sound() {
    for text in SEEDS {
        let source = Source { name: "seed", text: text.as_bytes(), dialect: Dialect::Auto };
        load(&[source]).unwrap();
    }
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
    fn damaged_documents(seed in 0usize..3, cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "[-?:,\\[\\]{}&*!|>'\"%@ \n\ta0~.]{0,4}"), 1..6)) {
        let mut text: Vec<char> = SEEDS[seed].chars().collect();
        for (at, length, with) in cuts {
            let at = at.index(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, with.chars());
        }
        feed(text.into_iter().collect::<String>().as_bytes());
    }

    #[test]
    fn replaced_values(seed in 0usize..3, at in any::<prop::sample::Index>(), with in "(null|\\[\\]|\\{\\}|-1|1e999|\"\"|yes|\\[\\[\\]\\]|\\{a: b\\}|0x|'x'|99999999999999999999)") {
        let seed = SEEDS[seed];
        // Whatever follows a colon, up to the next end of a value.
        let colons: Vec<usize> = seed.match_indices(": ").map(|(at, _)| at + 2).collect();
        let start = colons[at.index(colons.len())];
        let end = seed[start..].find([',', '}', ']', '\n']).map_or(seed.len(), |n| start + n);
        feed(format!("{}{with}{}", &seed[..start], &seed[end..]).as_bytes());
    }
}
