//! `cool_down`.

use crate::{Answer, MS, Mesh, S, status, with};
use nexthop::raw::{self, Head, action, bits, flags, kind, refusal};
use std::collections::BTreeSet;

fn mesh(block: &str) -> Mesh {
    Mesh::new(&format!(
        "clusters: {{web: {{hosts: [10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80], nexthop: {{{block}}}}}}}"
    ))
}

fn visited(mesh: &Mesh, cluster: &str, times: usize) -> BTreeSet<String> {
    (0..times).map(|_| mesh.visit(cluster, status(200))).collect()
}

#[test]
fn a_host_is_left_alone_until_the_time_it_named() {
    let mesh = mesh("cool_down: {}");
    let gone = mesh.visit("web", with(429, &[("retry-after", "7")]));
    let events = mesh.events("nexthop.cool_down");
    assert_eq!((&events[0]["upstream_url"], &events[0]["for_ms"]), (&gone.as_str().into(), &7000.into()));
    assert_eq!(visited(&mesh, "web", 30).len(), 2);
    assert_eq!(
        (&mesh.host(&gone)["set_aside_ms"], &mesh.host(&gone)["health"]),
        (&7000.into(), &"healthy".into())
    );
    mesh.advance(7 * S - 1);
    assert!(!visited(&mesh, "web", 30).contains(&gone));
    mesh.advance(1);
    assert!(visited(&mesh, "web", 3).contains(&gone), "time alone brings it back");
    assert_eq!(mesh.host(&gone)["set_aside_ms"], 0);
    assert_eq!(mesh.stat("cluster.web.nexthop.cool_down.set_aside"), 1);
    assert!(mesh.stat("cluster.web.nexthop.cool_down.passed_over") > 10);
    assert_eq!(mesh.stat("cluster.web.nexthop.cool_down.refused"), 0);
}

#[test]
fn the_time_comes_from_the_first_header_that_is_readable() {
    for (block, headers, ms) in [
        ("cool_down: {}", &[][..], 5000),
        ("cool_down: {default: 250ms}", &[("retry-after", "soon")], 250),
        ("cool_down: {}", &[("retry-after", "soon"), ("x-ratelimit-reset", "1m30s")], 90_000),
        ("cool_down: {}", &[("retry-after-ms", "20")], 20),
        ("cool_down: {}", &[("retry-after", "86400")], 300_000),
        ("cool_down: {max: 2s}", &[("retry-after", "86400")], 2000),
        ("cool_down: {from_headers: [X-Back-In-Ms]}", &[("x-back-in-ms", "30"), ("retry-after", "9")], 30),
    ] {
        let mesh = mesh(block);
        mesh.visit("web", with(429, headers));
        assert_eq!(mesh.events("nexthop.cool_down")[0]["for_ms"], ms, "{block} {headers:?}");
    }
}

#[test]
fn only_what_is_listed_cools_down() {
    let mesh = mesh("cool_down: {on: 529, default: 0s}");
    for answer in [status(429), status(503), status(529), with(529, &[("retry-after", "0")])] {
        mesh.visit("web", answer);
    }
    assert_eq!(visited(&mesh, "web", 3).len(), 3);
    mesh.visit("web", with(529, &[("retry-after", "1")]));
    assert_eq!(visited(&mesh, "web", 9).len(), 2);
}

#[test]
fn when_all_are_set_aside_the_refusal_says_for_how_long() {
    let mesh = mesh("cool_down: {}");
    for seconds in ["9", "3", "6"] {
        mesh.visit("web", with(503, &[("retry-after", seconds)]));
    }
    mesh.advance(500 * MS);
    let refused = mesh.begin("web");
    assert_eq!((refused.kind, refused.refusal, refused.status), (kind::REFUSED, refusal::COOLING, 503));
    assert_eq!((refused.flags, refused.resource, refused.wait), (flags::UH, 0, 2500 * MS));
    let reply = raw::reply(refused.request).unwrap().unwrap();
    assert!(
        reply.headers.contains(&("retry-after".into(), "3".into())),
        "whole seconds, not early: {reply:?}"
    );
    assert_eq!(mesh.stat("cluster.web.nexthop.cool_down.refused"), 1);
    mesh.advance(refused.wait);
    assert_eq!(visited(&mesh, "web", 3).len(), 1);
    assert_eq!(mesh.stat("nexthop.live_requests"), 0);
}

#[test]
fn a_retry_of_the_request_that_was_told_to_wait_goes_elsewhere_or_is_refused() {
    let mesh = Mesh::new(
        "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80], retry: {on: 5xx, times: 3}, nexthop: {cool_down: {}}}}",
    );
    let first = mesh.begin("web");
    assert_eq!(mesh.complete(&first, status(503)).action, action::RETRY);
    let second = mesh.next(first.request);
    assert_ne!(mesh.address(&first), mesh.address(&second));
    assert_eq!(mesh.complete(&second, status(503)).action, action::RETRY);
    let third = mesh.next(first.request);
    assert_eq!((third.kind, third.refusal), (kind::REFUSED, refusal::COOLING));
    assert!((4900 * MS..5 * S).contains(&third.wait), "the first one's five seconds have begun");
}

const CHAIN: &str = "clusters: {a: {hosts: [10.0.0.1:80], nexthop: {cool_down: {}}}, b: {hosts: [10.0.0.2:80], \
    nexthop: {cool_down: {}}}, both: {composite: [a, b], retry: {on: 5xx, times: 3}}}";

#[test]
fn a_composite_walks_past_providers_that_cool_down() {
    let mesh = Mesh::new(CHAIN);
    assert_eq!(mesh.visit("both", with(429, &[("retry-after", "4")])), "10.0.0.1:80");
    let next = mesh.begin("both");
    assert_eq!((mesh.address(&next).as_str(), next.bits & bits::FALLBACK), ("10.0.0.2:80", bits::FALLBACK));
    mesh.complete(&next, with(429, &[("retry-after", "2")]));
    let refused = mesh.begin("both");
    assert_eq!((refused.refusal, refused.wait), (refusal::COOLING, 2 * S));
    mesh.advance(2 * S);
    assert_eq!(mesh.visit("both", status(200)), "10.0.0.2:80");
    mesh.advance(2 * S);
    assert_eq!(mesh.visit("both", status(200)), "10.0.0.1:80");
}

#[test]
fn priorities_fail_over() {
    for policy in ["round_robin", "random", "ring_hash"] {
        let mesh = Mesh::new(&format!(
            "clusters: {{web: {{hosts: [10.0.0.1:80, {{address: 10.0.0.2:80, priority: 1}}, {{address: 10.0.0.3:80, \
             priority: 2}}], policy: {policy}, nexthop: {{cool_down: {{}}}}}}}}"
        ));
        assert_eq!(mesh.visit("web", status(429)), "10.0.0.1:80", "{policy}");
        assert_eq!(visited(&mesh, "web", 5), BTreeSet::from(["10.0.0.2:80".into()]), "{policy}");
        assert_eq!(mesh.visit("web", status(429)), "10.0.0.2:80", "{policy}");
        assert_eq!(mesh.visit("web", status(429)), "10.0.0.3:80", "{policy}");
        assert_eq!(mesh.begin("web").refusal, refusal::COOLING, "{policy}");
    }
}

#[test]
fn every_policy_passes_over() {
    for policy in ["round_robin", "least_request", "random", "maglev", "ring_hash"] {
        let mesh = Mesh::new(&format!(
            "clusters: {{web: {{hosts: [10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80], policy: {policy}, \
             hash: [source_ip], nexthop: {{cool_down: {{}}}}}}}}"
        ));
        let target = raw::resolve(mesh.0, "web").unwrap();
        let mut left = BTreeSet::new();
        for seen in 0..3 {
            let head = Head { target, source: "192.0.2.1", ..Head::default() };
            let decision = mesh.begin_head(&head);
            assert!(left.insert(mesh.address(&decision)), "{policy}: host {seen} was set aside");
            mesh.complete(&decision, status(429));
        }
        assert_eq!(mesh.begin("web").refusal, refusal::COOLING, "{policy}");
    }
}

#[test]
fn a_host_asked_for_by_address_cools_down_too() {
    let mesh = mesh("cool_down: {}");
    let gone = mesh.visit("web", status(429));
    let target = raw::resolve(mesh.0, "web").unwrap();
    let ask = |host: &str| mesh.begin_head(&Head { target, override_host: host, ..Head::default() });
    assert_ne!(mesh.address(&ask(&gone)), gone);
    let strict = ask(&format!("!{gone}"));
    assert_eq!((strict.refusal, strict.wait), (refusal::COOLING, 5 * S));
}

#[test]
fn whoever_queued_for_a_host_that_cools_down_chooses_anew() {
    let mesh = Mesh::new(
        "clusters: {web: {hosts: [10.0.0.1:80], limits: {connections: 1}, nexthop: {cool_down: {}}}}",
    );
    let first = mesh.begin("web");
    let waits = mesh.begin("web");
    assert_eq!(waits.kind, kind::WAIT);
    mesh.complete(&first, status(429));
    let refused = mesh.choose(waits.request);
    assert_eq!((refused.kind, refused.refusal), (kind::REFUSED, refusal::COOLING));
    assert_eq!(mesh.stat("cluster.web.upstream_rq_active"), 0);
    assert_eq!(mesh.stat("cluster.web.upstream_rq_pending_active"), 0);
}

#[test]
fn grpc_says_it_by_its_status() {
    let mesh = mesh("cool_down: {}");
    let decision = mesh.begin("web");
    let outcome = raw::Outcome { grpc_status: 8, ..raw::Outcome::status(200) };
    raw::with_local(|local| raw::complete(local, decision.attempt, &outcome, 0));
    assert_eq!(mesh.events("nexthop.cool_down")[0]["status"], 429, "RESOURCE_EXHAUSTED");
}

#[test]
fn a_dry_run_tells_and_leaves_the_host_in() {
    let mesh = mesh("cool_down: {dry_run: true}");
    let gone = mesh.visit("web", status(429));
    let mut marked = 0;
    for _ in 0..9 {
        let decision = mesh.begin("web");
        let would = mesh.address(&decision) == gone;
        assert_eq!(decision.bits & bits::DRY_RUN != 0, would);
        marked += u64::from(would);
        mesh.complete(&decision, status(200));
    }
    assert_eq!(marked, 3);
    assert_eq!(mesh.stat("cluster.web.nexthop.cool_down.dry_run"), 3);
    assert_eq!(mesh.stat("cluster.web.nexthop.cool_down.set_aside"), 0);
    assert_eq!(
        mesh.events("nexthop.would").len(),
        4,
        "when it was told to wait, and each time it was not let alone"
    );
}

#[test]
fn a_longer_time_wins_over_a_shorter_one() {
    let mesh = Mesh::new("clusters: {web: {hosts: [10.0.0.1:80], nexthop: {cool_down: {}}}}");
    let (a, b) = (mesh.begin("web"), mesh.begin("web"));
    mesh.complete(&a, with(429, &[("retry-after", "9")]));
    mesh.complete(&b, Answer { status: 429, headers: &[("retry-after", "1")], ..Answer::default() });
    assert_eq!(mesh.begin("web").wait, 9 * S);
    assert_eq!(mesh.events("nexthop.cool_down").len(), 1);
}

#[test]
fn an_aggregate_goes_to_the_next_cluster_while_one_cools() {
    let mesh = Mesh::new(
        "clusters:\n  a: {hosts: [10.0.0.1:80, 10.0.0.2:80], nexthop: {cool_down: {}}}\n  \
         b: {hosts: [10.0.1.1:80], nexthop: {cool_down: {}}}\n  c: {hosts: [10.0.2.1:80]}\n  \
         pool: {aggregate: [a, b]}\n  three: {aggregate: [a, b, c]}\n",
    );
    let cool = |cluster: &str, seconds: &str| mesh.visit(cluster, with(429, &[("retry-after", seconds)]));
    cool("pool", "9");
    assert_eq!(visited(&mesh, "pool", 6).len(), 1, "the other host of the first cluster");
    cool("pool", "5");
    let beside = mesh.begin("pool");
    assert_eq!((beside.kind, beside.bits & bits::FALLBACK), (kind::GO, bits::FALLBACK));
    assert_eq!(mesh.address(&beside), "10.0.1.1:80");
    mesh.complete(&beside, with(429, &[("retry-after", "7")]));
    // All of them are set aside: the answer says when the first one is back.
    let refused = mesh.begin("pool");
    assert_eq!((refused.kind, refused.refusal, refused.wait), (kind::REFUSED, refusal::COOLING, 5 * S));
    assert_eq!(visited(&mesh, "three", 9), BTreeSet::from(["10.0.2.1:80".to_owned()]));
    mesh.advance(5 * S);
    assert_eq!(visited(&mesh, "pool", 6).len(), 1);
    mesh.advance(4 * S);
    assert_eq!(
        visited(&mesh, "pool", 6),
        BTreeSet::from(["10.0.0.1:80".to_owned(), "10.0.0.2:80".to_owned()])
    );
    assert_eq!(mesh.stat("nexthop.live_requests"), 0);
}
