//! Filters, protection and life-cycle events, from documents to decisions.

use nexthop::raw::{
    self, Decision, Document, HostChange, Options, Outcome, clock, document_kind, host_fields, host_op, kind,
};
use serde_json::Value;

const TIME: u64 = 2_000_000_000;

fn engine(text: &str) -> u64 {
    let document = Document { kind: document_kind::TEXT, dialect: "", name: "", text: text.as_bytes() };
    let options = Options { workers: 1, clock: clock::MANUAL, ..Options::default() };
    raw::engine_new(&options, &[document]).unwrap()
}

/// The host of one request with these headers, or why there is none; the attempt ends with `status`.
fn ask(engine: u64, headers: &[(&str, &str)], status: u16) -> String {
    let (want, names) = raw::want(engine, 0).unwrap();
    let mut block = Vec::new();
    for (name, value) in headers {
        let at = names.iter().position(|known| **known == **name).expect("a wanted header");
        nexthop_engine::headers::pack(&mut block, at as u16, value.as_bytes());
    }
    let target = raw::resolve(engine, "web").unwrap();
    let head = raw::Head { target, want, headers: &block, ..raw::Head::default() };
    let mut decision = Decision::default();
    raw::with_local(|local| raw::begin(local, engine, &head, TIME, &mut decision)).unwrap();
    if decision.kind != kind::GO {
        return raw::resource::name(decision.resource).to_owned();
    }
    let address = raw::host(engine, decision.host, decision.host_version).unwrap().1.address.clone();
    let outcome = Outcome { status, ..Outcome::default() };
    let _ = raw::with_local(|local| raw::complete(local, decision.attempt, &outcome, TIME));
    address
}

fn events(engine: u64) -> Vec<Value> {
    std::iter::from_fn(|| raw::poll_event(engine).unwrap())
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect()
}

fn stat(engine: u64, name: &str) -> u64 {
    let stats: Value = serde_json::from_str(&raw::text(engine, 1, "").unwrap()).unwrap();
    stats[format!("cluster.web.nexthop.{name}")].as_u64().unwrap_or_else(|| panic!("no {name}"))
}

const GRAY: &str = "clusters: {web: {hosts: [\
    {address: 10.0.0.1:80, metadata: {version: '1'}}, \
    {address: 10.0.0.2:80, metadata: {version: '2'}}, \
    {address: 10.0.0.3:80, metadata: {version: '2', tag: ann}}], nexthop: {";

#[test]
fn the_preset_gray() {
    let mesh =
        engine(&format!("{GRAY} filters: [{{preset: gray, hostname: ann}}], lifecycle_events: true}}}}}}"));
    let untagged = ask(mesh, &[], 200);
    assert!(["10.0.0.1:80", "10.0.0.2:80"].contains(&&*untagged), "{untagged}");
    assert_eq!(ask(mesh, &[("version", "2")], 500), "10.0.0.2:80");
    assert_eq!(ask(mesh, &[("version", "2"), ("tag", "${HOSTNAME}")], 200), "10.0.0.3:80");
    assert!(events(mesh).iter().all(|event| event["type"] == "nexthop.lifecycle"));
    // Nobody fits either stage: anybody is drawn.
    ask(mesh, &[("version", "9"), ("tag", "bob")], 200);
    assert_eq!([stat(mesh, "filters.version.fallback"), stat(mesh, "filters.tag.fallback")], [1, 1]);
    // The same again within a second is counted, not told.
    ask(mesh, &[("version", "9"), ("tag", "bob")], 200);
    assert_eq!(stat(mesh, "filters.version.fallback"), 2);
    let told = events(mesh);
    let codes: Vec<&Value> =
        told.iter().filter(|event| event["type"] == "nexthop.filter").map(|event| &event["code"]).collect();
    assert_eq!(codes, ["W-VERSION-FALLBACK", "W-TAG-FALLBACK"]);
    let life: Vec<String> = told
        .iter()
        .filter(|event| event["type"] == "nexthop.lifecycle")
        .map(|event| {
            format!("{} {}", event["phase"].as_str().unwrap(), event["status"].as_str().unwrap_or("-"))
        })
        .collect();
    assert_eq!(life, ["start -", "start_request -", "complete SUCCESS"].repeat(2));
    raw::engine_free(mesh).unwrap();
}

#[test]
fn a_stage_that_refuses_and_a_match_that_is_unhealthy() {
    let mesh = engine(&format!(
        "{GRAY} filters: [{{preset: gray, when_empty: fail}}], lifecycle_events: true}}}}}}"
    ));
    assert_eq!(ask(mesh, &[("version", "9")], 200), "filtered");
    assert_eq!(stat(mesh, "filters.version.refused"), 1);
    let told = events(mesh);
    assert!(told.iter().any(|event| event["status"] == "DISCARD"));
    let codes = told.iter().filter(|event| event["type"] == "nexthop.filter").map(|event| &event["code"]);
    assert_eq!(codes.collect::<Vec<_>>(), ["W-VERSION-REFUSED"], "nobody went on");
    let unhealthy = HostChange {
        op: host_op::CHANGE,
        address: "10.0.0.1:80",
        health: 2,
        fields: host_fields::HEALTH,
        ..HostChange::default()
    };
    raw::apply(mesh, "web", &[unhealthy]).unwrap();
    assert_eq!(ask(mesh, &[("version", "1")], 200), "", "no fallback, no panic");
    assert_eq!(ask(mesh, &[("version", "2")], 200), "10.0.0.2:80");
    raw::engine_free(mesh).unwrap();
}

#[test]
fn protection_and_what_lists_tell() {
    let list = |healthy: [bool; 3], time: u64, told: bool| {
        let hosts: Vec<Value> = (1..)
            .zip(healthy)
            .map(|(n, healthy)| serde_json::json!({"ip": format!("10.0.0.{n}"), "port": 80, "healthy": healthy}))
            .collect();
        serde_json::json!({"name": "g@@web", "hosts": hosts, "lastRefTime": time, "reachProtectionThreshold": told})
            .to_string()
    };
    let mesh = engine("clusters: {web: {hosts: [], panic: 0, nexthop: {protect_threshold: 0.5}}}");
    let apply = |text: &str| {
        let change = HostChange { op: host_op::ENDPOINTS, metadata: text, ..HostChange::default() };
        raw::apply(mesh, "web", &[change])
    };
    let hosts = |count: usize| {
        let mut found: Vec<String> = (0..count).map(|_| ask(mesh, &[], 200)).collect();
        found.sort();
        found.dedup();
        found.len()
    };
    apply(&list([true, true, false], 5, false)).unwrap();
    assert_eq!((hosts(6), stat(mesh, "protection_active")), (2, 0));
    apply(&list([true, false, false], 6, false)).unwrap();
    assert_eq!((hosts(6), stat(mesh, "protection_active")), (3, 1), "a third is at most a half");
    let older = apply(&list([true, true, true], 5, false)).unwrap_err().to_string();
    assert!(older.contains("older (lastRefTime 5)"), "{older}");
    apply(&list([true, true, true], 6, true)).unwrap();
    assert_eq!(stat(mesh, "protection_active"), 1, "the registry's own");
    apply(&list([true, true, true], 7, false)).unwrap();
    assert_eq!(stat(mesh, "protection_active"), 0);
    raw::engine_free(mesh).unwrap();
}

#[test]
fn retries_avoid_the_last_host_and_hosts_are_shown_by_their_ipv6() {
    let text = "clusters: {web: {hosts: [{address: 10.0.0.1:80, metadata: {IPv6: '[fd00::1]'}}, 10.0.0.2:80], \
        nexthop: {filters: [{preset: nacos, ipv6: true, ipv6_rewrite: true}]}}}";
    let mesh = engine(text);
    assert_eq!(ask(mesh, &[], 200), "[fd00::1]:80");
    raw::engine_free(mesh).unwrap();

    let text = "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80], retry: {on: [5xx], times: 2, backoff: {base: 1ms}}, \
        nexthop: {filters: [{preset: spring-retry}]}}}";
    let mesh = engine(text);
    let target = raw::resolve(mesh, "web").unwrap();
    let mut decision = Decision::default();
    let head = raw::Head { target, ..raw::Head::default() };
    raw::with_local(|local| raw::begin(local, mesh, &head, TIME, &mut decision)).unwrap();
    let mut hosts = vec![decision.host];
    for wait in 1..3 {
        let at = TIME + wait * 1_000_000_000;
        let outcome = Outcome { status: 503, ..Outcome::default() };
        let request = decision.request;
        let verdict = raw::with_local(|local| raw::complete(local, decision.attempt, &outcome, at));
        assert_eq!(verdict.action, raw::action::RETRY);
        raw::with_local(|local| raw::choose(local, request, at + 500_000_000, &mut decision)).unwrap();
        assert_eq!(decision.kind, kind::GO);
        hosts.push(decision.host);
    }
    assert!(hosts.windows(2).all(|pair| pair[0] != pair[1]), "{hosts:?}");
    raw::engine_free(mesh).unwrap();
}
