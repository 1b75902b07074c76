//! The short form.

use crate::{complaint, read};
use nexthop_engine::spec::{
    ClusterKind, ClusterSource, ClusterSpec, ConnectionStyle, HashSource, PathMatch, PeakEwma, PolicySpec,
    RetryOn, RouteAction, RouteSpec, StringMatch, Value,
};
use std::time::Duration;

const WHOLE: &str = r#"
clusters:
  web:
    hosts: [10.0.0.1:80, {address: 10.0.0.2:80, weight: 3, zone: b, metadata: {version: v2}}]
    policy: least_request
    hash: [header: x-user, cookie: sid, query: u, source_ip]
    retry: {on: [5xx, connect-failure], times: 2, avoid_tried: true, per_try: 200ms, backoff: {base: 25ms, max: 250ms}}
    timeout: 2s
    limits: {connections: 100, pending: 50, requests: 1000, retries: 3}
    outlier: {consecutive_5xx: 5, interval: 10s, eject: 30s, max_percent: 50}
    panic: 50
  backup: {hosts: ["[::1]:80"]}
  cheap: {hosts: ["cheap.local:80"], policy: {ring_hash: {minimum_ring_size: 7}}}
  chain: {composite: [web, backup, cheap], retry: {on: 5xx, times: 3}}
routes:
  - {host: "api.example.com", path: /pay, cluster: web}
  - {host: "api.example.com", match: {exact: /x, header: {X-A: "1"}}, cluster: chain, timeout: 1s}
  - {cluster: {web: 90, backup: 10}}
nexthop: {version: 1, runtime: {a: {b: 1}}, defaults: {connections: count}}
"#;

fn one(fields: &str) -> Result<ClusterSpec, nexthop_config::ConfigError> {
    read(&format!("clusters: {{web: {{{fields}}}}}"))
        .map(|loaded| loaded.specs.clusters.into_iter().next().unwrap())
}

#[test]
fn clusters() {
    let loaded = read(WHOLE).unwrap();
    let [web, backup, cheap, chain] = loaded.specs.clusters.as_slice() else { panic!() };
    assert!(matches!(web.policy, PolicySpec::LeastRequest { choice_count: 2, .. }));
    let [first, second] = web.endpoints.localities.as_slice() else { panic!() };
    assert_eq!(first.endpoints[0].address, "10.0.0.1:80");
    assert_eq!(first.locality, None);
    assert_eq!((second.endpoints[0].weight, second.locality.as_ref().unwrap().zone.as_str()), (3, "b"));
    assert_eq!(second.endpoints[0].metadata.lb("version"), Some(&Value::String("v2".into())));
    assert_eq!(web.hash_policy[0].source, HashSource::Header { name: "x-user".into(), rewrite: None });
    assert_eq!(web.hash_policy[3].source, HashSource::SourceIp);
    let retry = web.retry.as_ref().unwrap();
    assert_eq!((retry.on, retry.num_retries), (RetryOn::FIVE_XX | RetryOn::CONNECT_FAILURE, 2));
    assert_eq!((retry.per_try_timeout, retry.previous_hosts), (Duration::from_millis(200), true));
    let back_off = retry.back_off.unwrap();
    assert_eq!((back_off.base_ms, back_off.max_ms), (25, 250));
    let limits = &web.breakers.thresholds[0];
    assert_eq!((limits.max_connections, limits.max_pending_requests), (100, 50));
    assert_eq!(web.outlier.as_ref().unwrap().max_ejection_percent, 50);
    let defaults = web.defaults.as_ref().unwrap();
    assert_eq!(defaults.timeout, Duration::from_secs(2));
    assert_eq!(defaults.retry.as_ref().unwrap().per_try_timeout, Duration::from_millis(200));
    assert_eq!(backup.endpoints.localities[0].endpoints[0].address, "[::1]:80");
    assert_eq!(cheap.endpoints.localities[0].endpoints[0].hostname, "cheap.local");
    assert!(matches!(cheap.policy, PolicySpec::RingHash { minimum_ring_size: 7, .. }));
    assert_eq!(chain.kind, ClusterKind::Composite(vec!["web".into(), "backup".into(), "cheap".into()]));
    assert_eq!(chain.policy, PolicySpec::ClusterProvided);
    assert!(loaded.specs.clusters.iter().all(|cluster| cluster.connections == Some(ConnectionStyle::Count)));
    assert_eq!(loaded.specs.runtime, [("a.b".to_owned(), Value::Number(1.0))]);
}

fn target(route: &RouteSpec) -> (&ClusterSource, Duration) {
    match &route.action {
        RouteAction::Forward(forward) => (&forward.cluster, forward.timeout),
        _ => panic!(),
    }
}

#[test]
fn routes() {
    let loaded = read(WHOLE).unwrap();
    let [api, any] = loaded.specs.route_tables[0].virtual_hosts.as_slice() else { panic!() };
    assert_eq!((&api.domains, &any.domains), (&vec!["api.example.com".to_owned()], &vec!["*".to_owned()]));
    assert_eq!(api.routes[0].matcher.path, PathMatch::Prefix("/pay".into()));
    assert_eq!(target(&api.routes[0]), (&ClusterSource::Name("web".into()), Duration::from_secs(2)));
    assert_eq!(api.routes[1].matcher.path, PathMatch::Exact("/x".into()));
    assert_eq!(api.routes[1].matcher.headers[0].name, "x-a");
    assert_eq!(api.routes[1].matcher.headers[0].value, StringMatch::Exact("1".into(), false));
    assert_eq!(target(&api.routes[1]).1, Duration::from_secs(1));
    let (ClusterSource::Weighted(entries), timeout) = target(&any.routes[0]) else { panic!() };
    assert_eq!(
        (entries[0].weight, entries[1].name.as_str(), timeout),
        (90, "backup", Duration::from_secs(2))
    );
}

#[test]
fn complaints() {
    assert!(complaint("clusters: {a: {hosts: [], lb_policy: RANDOM}}").contains("one cluster has one style"));
    assert!(complaint("clusters: [{name: a, hosts: []}]").contains("one cluster has one style"));
    assert!(complaint("clusters: {a: {aggregate: []}}").contains("at least one cluster"));
    assert!(complaint("clusters: {a: {aggregate: [b], policy: random}}").contains("set this on them"));
    assert!(complaint("clusters: {a: {}}").contains("needs `hosts`, `composite` or `aggregate`"));
    assert!(complaint("clusters: {a: {hosts: [1.2.3.4]}}").contains("expected an address such as"));
    assert!(complaint("clusters: {a: {composite: []}}").contains("at least one cluster"));
    assert!(complaint("clusters: {a: {composite: [a]}}").contains("a -> a"));
    assert!(complaint("clusters: {a: {hosts: [], composite: [b]}}").contains("exclude each other"));
    assert!(complaint("clusters: {\"\": {hosts: []}}").contains("not empty"));
    assert!(complaint("clusters: {a: {hosts: []}}\nroutes: [{cluster: b}]").contains("unknown cluster `b`"));
    assert!(
        complaint("clusters: {a: {hosts: []}}\nroutes: [{cluster: {b: 1}}]")
            .contains("routes[0].cluster.b: unknown cluster")
    );
    assert!(complaint("clusters: {a: {hosts: []}}\nroutes: [{cluster: {a: 0}}]").contains("add up to 0"));
    assert!(complaint("clusters: web").contains("expected a mapping of clusters by name"));
    assert!(complaint("nexthop: {version: 2}").contains("from 1 to 1"));
}

#[test]
fn fields() {
    for bad in [
        "hosts: [], policy: round-robin",
        "hosts: [], policy: {peak_ewma: {choices: 0}}",
        "hosts: [], policy: {peak_ewma: {decay: 0s}}",
        "hosts: [], policy: deterministic_aperture",
        "hosts: [], policy: {deterministic_aperture: {id: 3, peers: 3}}",
        "hosts: [], policy: {rendezvous_hash: {seed: 1}}",
        "hosts: [], nexthop: {policy: round_robin}",
        "hosts: [], nexthop: {subset_size: 0}",
        "composite: [a], nexthop: {exclude_tried: true}",
        "hosts: [], policy: {random: {}, maglev: {}}",
        "hosts: [], retry: {times: 2}",
        "hosts: [], retry: {on: 5XX}",
        "hosts: [], retry: {on: 5xx, backoff: {base: 0s}}",
        "hosts: [], retry: {on: 5xx, backoff: {base: 2s, max: 1s}}",
        "hosts: [], limits: {conections: 1}",
        "hosts: [], panic: 101",
        "hosts: [], hash: [ip]",
        "hosts: [], hash: [{header: a, cookie: b}]",
        "hosts: [], hash: [{header: a, ttl: 1s}]",
        "hosts: [], outlier: {interval: 0s}",
        "hosts: {a: b}",
        "hosts: [{weight: 1}]",
        "hosts: [{address: 1.2.3.4:1, weight: 0}]",
        "hosts: [{address: 1.2.3.4:1, metadata: 5}]",
        "hosts: [], timeout: 5",
        "hosts: [], timeout: -1s",
        "hosts: [], timeout: 1.5ms",
        "composite: [a], policy: random",
        "hosts: [], nexthop: {zone: x}",
    ] {
        assert!(one(bad).is_err(), "{bad}");
    }
    assert!(matches!(
        one("hosts: [], policy: maglev").unwrap().policy,
        PolicySpec::Maglev { table_size: 65_537, .. }
    ));
    let ewma = one("hosts: [], policy: {peak_ewma: {decay: 250ms, choices: 3}}").unwrap().policy;
    let expect = PeakEwma { decay: Duration::from_millis(250), choices: 3, ..PeakEwma::default() };
    assert_eq!(ewma, PolicySpec::PeakEwma(expect));
    assert_eq!(one("hosts: [], policy: rendezvous_hash").unwrap().policy, PolicySpec::RendezvousHash);
    assert_eq!(one("hosts: [], panic: 29").unwrap().panic_threshold, 28);
    assert_eq!(
        one("hosts: [], nexthop: {connections: strict}").unwrap().connections,
        Some(ConnectionStyle::Strict)
    );
    assert_eq!(
        one("hosts: [], retry: {on: \"5xx,reset\"}").unwrap().retry.unwrap().on,
        RetryOn::FIVE_XX | RetryOn::RESET
    );
}

#[test]
fn envoy_clusters_in_a_list() {
    let loaded =
        read("clusters: [{name: web, connect_timeout: 1s}]\nroutes: [{path: /, cluster: web}]").unwrap();
    assert_eq!(loaded.specs.clusters[0].connect_timeout, Duration::from_secs(1));
    assert_eq!(loaded.specs.route_tables[0].virtual_hosts[0].routes.len(), 1);
}
