//! Hosts and settings at the edge of sense: refused with their place, or used as the specification says, never a panic.

use nexthop::{Choice, Clock, Engine, Outcome, RefusalKind, RequestHead};
use std::collections::BTreeMap;

fn built(text: &str) -> Result<Engine, String> {
    let built = Engine::builder().text(text).workers(1).seed(7).clock(Clock::Manual).build();
    built.map_err(|error| error.to_string())
}

/// A cluster `c` with these fields and groups of hosts.
fn cluster(fields: &str, groups: &str) -> String {
    format!(
        "static_resources: {{clusters: [{{name: c, {fields}{comma}load_assignment: {{cluster_name: c, endpoints: [{groups}]}}}}]}}",
        comma = if fields.is_empty() { "" } else { ", " }
    )
}

fn host(at: u32, more: &str) -> String {
    format!("{{endpoint: {{address: {{socket_address: {{address: 10.0.0.{at}, port_value: 80}}}}}}{more}}}")
}

fn group(hosts: &str, more: &str) -> String {
    format!("{{lb_endpoints: [{hosts}]{more}}}")
}

/// Where `count` requests go, by last number of the address; 0 = nowhere.
fn picks(mesh: &Engine, count: u32) -> BTreeMap<u32, u32> {
    let mut picks = BTreeMap::new();
    let head = RequestHead { target: mesh.resolve("c").unwrap(), ..RequestHead::default() };
    for _ in 0..count {
        let mut call = mesh.request(&head, mesh.now());
        let at = match call.choose_host(mesh.now()).unwrap() {
            Choice::Attempt(attempt) => {
                let address = attempt.host().address.clone();
                attempt.complete(&Outcome::status(200), mesh.now()).unwrap();
                address.trim_end_matches(":80").rsplit('.').next().unwrap().parse().unwrap()
            }
            Choice::Refused(refusal) => {
                assert_eq!(refusal.kind, RefusalKind::NO_HEALTHY_UPSTREAM);
                0
            }
            Choice::Wait(wait) => panic!("{wait:?}"),
        };
        *picks.entry(at).or_default() += 1;
    }
    picks
}

fn policy(name: &str) -> String {
    match name {
        "peak_ewma" | "rendezvous_hash" => format!("nexthop: {{policy: {name}}}"),
        "deterministic_aperture" => {
            "nexthop: {policy: {deterministic_aperture: {size: 2, id: 0, peers: 2}}}".to_owned()
        }
        legacy => format!("lb_policy: {legacy}"),
    }
}

const POLICIES: [&str; 8] = [
    "ROUND_ROBIN",
    "LEAST_REQUEST",
    "RANDOM",
    "RING_HASH",
    "MAGLEV",
    "peak_ewma",
    "rendezvous_hash",
    "deterministic_aperture",
];

#[test]
fn numbers_out_of_range_are_refused_with_their_place() {
    let hosts = group(&host(1, ""), "");
    let typed = |x: &str, message: &str, fields: &str| {
        let policy = format!(
            "{{\"@type\": type.googleapis.com/envoy.extensions.load_balancing_policies.{x}.v3.{message}, {fields}}}"
        );
        cluster(
            &format!(
                "load_balancing_policy: {{policies: [{{typed_extension_config: {{name: p, typed_config: {policy}}}}}]}}"
            ),
            &hosts,
        )
    };
    let heavy = |at| host(at, ", load_balancing_weight: 4294967295");
    for (text, place) in [
        (cluster("", &group(&host(1, ", load_balancing_weight: 0"), "")), "load_balancing_weight"),
        (cluster("", &group(&host(1, ", load_balancing_weight: 4294967296"), "")), "load_balancing_weight"),
        (cluster("", &group(&host(1, ""), ", priority: 129")), "priority"),
        (
            cluster("", &group(&host(1, ""), ", locality: {zone: a}, load_balancing_weight: 0")),
            "load_balancing_weight",
        ),
        (cluster("lb_policy: RING_HASH", &group(&[heavy(1), heavy(2)].join(", "), "")), "load_assignment"),
        (cluster("lb_policy: MAGLEV, maglev_lb_config: {table_size: 100}", &hosts), "table_size"),
        (cluster("lb_policy: MAGLEV, maglev_lb_config: {table_size: 1}", &hosts), "table_size"),
        (
            cluster(
                "lb_policy: RING_HASH, ring_hash_lb_config: {minimum_ring_size: 20, maximum_ring_size: 10}",
                &hosts,
            ),
            "maximum_ring_size",
        ),
        (
            cluster("lb_policy: RING_HASH, ring_hash_lb_config: {maximum_ring_size: 8388609}", &hosts),
            "maximum_ring_size",
        ),
        (typed("maglev", "Maglev", "table_size: 4"), "table_size"),
        (
            typed(
                "ring_hash",
                "RingHash",
                "consistent_hashing_lb_config: {hash_policy: [{header: {header_name: x, regex_rewrite: {pattern: {regex: \"(\"}, substitution: a}}}]}",
            ),
            "regex",
        ),
        (cluster("nexthop: {subset_size: 0}", &hosts), "subset_size"),
    ] {
        let error = built(&text).map(|_| ()).unwrap_err();
        assert!(error.contains(place), "{place}: {error}");
    }
}

#[test]
fn no_host_and_no_healthy_host() {
    let down = [host(1, ", health_status: UNHEALTHY"), host(2, ", health_status: UNHEALTHY")].join(", ");
    for name in POLICIES {
        let none = built(&cluster(&policy(name), "")).unwrap();
        assert_eq!(picks(&none, 20), BTreeMap::from([(0, 20)]), "{name}");
        // Panic uses them all; without panic there is none.
        let all = built(&cluster(&policy(name), &group(&down, ""))).unwrap();
        let seen = picks(&all, 200);
        assert!(
            !seen.contains_key(&0) && seen.len() == 2 || name == "deterministic_aperture",
            "{name}: {seen:?}"
        );
        let calm = format!("{}, common_lb_config: {{healthy_panic_threshold: {{value: 0}}}}", policy(name));
        let refused = built(&cluster(&calm, &group(&down, ""))).unwrap();
        assert_eq!(picks(&refused, 20), BTreeMap::from([(0, 20)]), "{name}");
    }
}

#[test]
fn gaps_between_priorities_and_heavy_hosts() {
    let heavy = host(1, ", load_balancing_weight: 4294967295, health_status: UNHEALTHY");
    let groups = [group(&heavy, ", priority: 0"), group(&host(2, ""), ", priority: 7")].join(", ");
    for name in POLICIES {
        let mesh = built(&cluster(&policy(name), &groups)).unwrap();
        assert_eq!(picks(&mesh, 50), BTreeMap::from([(2, 50)]), "{name}");
    }
}

#[test]
fn localities_without_weights() {
    let zone = |zone: &str, at: u32, more: &str| {
        group(&host(at, ""), &format!(", locality: {{zone: {zone}}}{more}"))
    };
    let weighted = "common_lb_config: {locality_weighted_lb_config: {}}";
    let some = [zone("a", 1, ", load_balancing_weight: 1"), zone("b", 2, "")].join(", ");
    let none = [zone("a", 1, ""), zone("b", 2, "")].join(", ");
    let some = built(&cluster(weighted, &some)).unwrap();
    assert_eq!(picks(&some, 50), BTreeMap::from([(1, 50)]), "a missing weight is none");
    let all = built(&cluster(weighted, &none)).unwrap();
    assert_eq!(picks(&all, 50), BTreeMap::from([(1, 25), (2, 25)]), "all missing: as without");
    let ring = built(&cluster(
        &format!("lb_policy: RING_HASH, {weighted}"),
        &[zone("a", 1, ""), zone("b", 2, "")].join(", "),
    ))
    .unwrap();
    assert_eq!(picks(&ring, 50), BTreeMap::from([(0, 50)]), "a ring has no one then");
}

#[test]
fn metadata_that_is_no_number() {
    let subsets = "lb_subset_config: {fallback_policy: ANY_ENDPOINT, subset_selectors: [{keys: [v]}]}";
    let odd =
        |at, value: &str| host(at, &format!(", metadata: {{filter_metadata: {{envoy.lb: {{v: {value}}}}}}}"));
    let hosts = [odd(1, ".nan"), odd(2, ".inf"), odd(3, "[]"), odd(4, "{}"), odd(5, "null")].join(", ");
    let text = cluster(subsets, &group(&hosts, ""));
    match built(&text) {
        Ok(mesh) => assert_eq!(picks(&mesh, 50).len(), 5),
        Err(error) => assert!(error.contains("metadata"), "{error}"),
    }
}
