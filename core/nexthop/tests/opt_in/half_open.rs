//! `half_open` and `outcome_at`.

use crate::{Answer, MS, Mesh, S, is_probe, status};
use nexthop::raw::{self, Outcome, action, failure, kind, outcome_bits};

/// One of three hosts is ejected by its first 500, for 10 s; the sweep runs each second.
fn mesh(block: &str) -> Mesh {
    Mesh::new(&format!(
        "clusters: {{web: {{hosts: [10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80], \
         outlier: {{consecutive_5xx: 1, interval: 1s, eject: 10s, max_percent: 40}}, nexthop: {{{block}}}}}}}"
    ))
}

fn eject(mesh: &Mesh) -> String {
    let bad = mesh.visit("web", status(500));
    assert_eq!(mesh.stat("cluster.web.outlier_detection.ejections_active"), 1);
    bad
}

/// Requests until one is a probe, the others are answered well.
fn probe(mesh: &Mesh) -> Option<raw::Decision> {
    for _ in 0..6 {
        let decision = mesh.begin("web");
        if is_probe(&decision) {
            return Some(decision);
        }
        mesh.complete(&decision, status(200));
    }
    None
}

#[test]
fn an_ejected_host_comes_back_through_one_probe() {
    let mesh = mesh("half_open: {}");
    let bad = eject(&mesh);
    mesh.advance(9 * S);
    assert!(probe(&mesh).is_none(), "the ejection lasts as long as it does");
    mesh.advance(2 * S);
    let first = probe(&mesh).expect("a probe");
    assert_eq!((mesh.address(&first), &mesh.host(&bad)["half_open"]), (bad.clone(), &true.into()));
    for _ in 0..9 {
        assert_ne!(mesh.visit("web", status(200)), bad, "one at a time");
    }
    mesh.complete(&first, status(200));
    let all: Vec<String> = (0..9).map(|_| mesh.visit("web", status(200))).collect();
    assert_eq!(all.iter().filter(|at| **at == bad).count(), 3, "it is as good as any again");
    assert_eq!(mesh.host(&bad)["half_open"], false);
    assert_eq!(mesh.events("nexthop.half_open")[0]["state"], "closed");
    assert_eq!(mesh.stat("cluster.web.nexthop.half_open.probes"), 1);
}

#[test]
fn failed_probes_wait_twice_as_long_each_time() {
    let mesh = Mesh::new(
        "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80], \
         outlier: {consecutive_5xx: 3, interval: 1s, eject: 2s, max_percent: 40}, \
         nexthop: {half_open: {probes: 2, interval: 5s, max_interval: 12s}}}}",
    );
    for _ in 0..9 {
        let at = mesh.begin("web");
        let bad = mesh.address(&at) == "10.0.0.1:80";
        mesh.complete(&at, status(if bad { 500 } else { 200 }));
    }
    assert_eq!(mesh.stat("cluster.web.outlier_detection.ejections_active"), 1);
    mesh.advance(3 * S);
    mesh.visit("web", status(200));
    for wait in [5, 10] {
        let at = probe(&mesh).expect("a probe");
        mesh.complete(&at, status(500));
        let told = mesh.events("nexthop.half_open");
        assert_eq!(
            (&told[0]["state"], &told[0]["next_probe_ms"]),
            (&"half_open".into(), &(wait * 1000).into())
        );
        mesh.advance(wait * S - MS);
        assert!(probe(&mesh).is_none(), "not before {wait} s");
        mesh.advance(MS);
    }
    mesh.complete(&probe(&mesh).expect("a probe"), status(200));
    mesh.complete(&probe(&mesh).expect("the second of two"), status(204));
    assert_eq!(mesh.stat("cluster.web.nexthop.half_open.closed"), 1);
    assert_eq!(mesh.stat("cluster.web.nexthop.half_open.failed"), 2);
    assert!(probe(&mesh).is_none());
}

#[test]
fn a_probe_that_says_nothing_gives_its_place_back() {
    let mesh = mesh("half_open: {}");
    let bad = eject(&mesh);
    mesh.advance(11 * S);
    for end in 0..4 {
        let at = probe(&mesh).unwrap_or_else(|| panic!("place {end} is free"));
        assert_eq!(mesh.address(&at), bad);
        match end {
            0 => mesh.cancel(&at),
            1 => drop(mesh.fail(&at, failure::OVERFLOW)),
            2 => drop(raw::with_local(|local| raw::finish(local, at.request, raw::finish::CLIENT_GONE, 0))),
            _ => {
                // Nobody reports it: its lease ends.
                mesh.advance(400 * S);
            }
        }
    }
    assert!(probe(&mesh).is_some());
}

#[test]
fn a_retry_is_no_probe_and_a_lone_host_is_no_dead_end() {
    let mesh = Mesh::new(
        "clusters: {web: {hosts: [10.0.0.1:80], outlier: {consecutive_5xx: 1, interval: 1s, eject: 1s, \
         max_percent: 100}, retry: {on: 5xx, times: 1, backoff: {base: 1ms}}, nexthop: {half_open: {}}}}",
    );
    mesh.cancel(&{
        let first = mesh.begin("web");
        mesh.complete(&first, status(500));
        mesh.next(first.request)
    });
    mesh.advance(3 * S);
    let first = mesh.begin("web");
    assert!(is_probe(&first));
    let beside = mesh.begin("web");
    assert!(beside.kind == kind::GO && !is_probe(&beside), "for want of a better one");
    assert_eq!(mesh.complete(&first, status(500)).action, action::RETRY);
    let again = mesh.next(first.request);
    assert!(again.kind == kind::GO && !is_probe(&again));
    mesh.complete(&again, status(200));
    mesh.complete(&beside, status(200));
    assert_eq!(mesh.stat("cluster.web.upstream_rq_active"), 0);
}

#[test]
fn a_dry_run_sends_whom_it_would_have_held_back() {
    let mesh = mesh("half_open: {dry_run: true}");
    let bad = eject(&mesh);
    mesh.advance(11 * S);
    let held = probe(&mesh).expect("a probe");
    let all: Vec<String> = (0..9).map(|_| mesh.visit("web", status(200))).collect();
    assert_eq!(all.iter().filter(|at| **at == bad).count(), 3);
    assert_eq!(mesh.stat("cluster.web.nexthop.half_open.dry_run"), 3);
    mesh.complete(&held, status(200));
    assert!(probe(&mesh).is_none());
}

#[test]
fn bodies_that_are_cut_short_eject_a_host() {
    for (at, ejected) in [("headers", 0), ("end", 1)] {
        let mesh = Mesh::new(&format!(
            "clusters: {{web: {{hosts: [10.0.0.1:80, 10.0.0.2:80], outlier: {{consecutive_5xx: 3, max_percent: 50}}, \
             nexthop: {{outcome_at: {at}}}}}}}"
        ));
        for round in 0..6 {
            let decision = mesh.begin("web");
            let bad = mesh.address(&decision) == "10.0.0.1:80";
            assert_eq!(mesh.headers(&decision, status(200)).action, action::FORWARD);
            let cut = if bad { outcome_bits::CUT } else { 0 };
            match round {
                4 if bad => drop(mesh.fail(&decision, failure::REMOTE_RESET)),
                _ => drop(mesh.end(&decision, &Outcome { bits: cut, ..Outcome::default() })),
            }
        }
        assert_eq!(mesh.stat("cluster.web.outlier_detection.ejections_active"), ejected, "{at}");
        assert_eq!(mesh.stat("cluster.web.nexthop.outcome_at.cut"), 3 * ejected, "{at}");
        assert_eq!(mesh.stat("cluster.web.upstream_rq_200"), 6, "{at}: the client got an answer");
    }
}

#[test]
fn whole_reports_and_trailers_are_judged_at_the_end_too() {
    let yaml = "clusters: {web: {hosts: [10.0.0.1:80], outlier: {consecutive_5xx: 2, max_percent: 100}, \
                nexthop: {outcome_at: end}}}";
    let mesh = Mesh::new(yaml);
    for _ in 0..2 {
        let decision = mesh.begin("web");
        let cut = Outcome { bits: outcome_bits::CUT, ..Outcome::status(200) };
        let verdict = raw::with_local(|local| raw::complete(local, decision.attempt, &cut, 0));
        assert_eq!((verdict.action, verdict.status), (action::FORWARD, 200));
    }
    assert_eq!(mesh.stat("cluster.web.outlier_detection.ejections_active"), 1);
    let mesh = Mesh::new(yaml);
    for status in [14, 0, 14, 5, 13, 14] {
        let decision = mesh.begin("web");
        mesh.headers(&decision, Answer { status: 200, ..Answer::default() });
        mesh.end(&decision, &Outcome { grpc_status: status, ..Outcome::default() });
    }
    assert_eq!(mesh.stat("cluster.web.outlier_detection.ejections_active"), 1, "only the last two in a row");
    let hosts: serde_json::Value = serde_json::from_str(&raw::text(mesh.0, 10, "web").unwrap()).unwrap();
    assert_eq!((&hosts[0]["rq_success"], &hosts[0]["rq_error"]), (&2.into(), &4.into()));
    assert_eq!(mesh.stat("nexthop.live_requests"), 0);
}
