//! Checks that begin with the first question for them, and what is out while hosts and clusters change.

use super::mesh::{Mesh, http};
use crate::clock::Time;
use crate::engine::Settings;
use crate::health::*;
use crate::hosts::flag;
use crate::outcome::{Decision, Head, Misuse};
use crate::spec::*;
use std::time::Duration;

const FIRST: &str = "10.0.0.1:80";
const SECOND: &str = "10.0.0.2:80";
const FAILED: CheckReport<'static> = CheckReport::Result(CheckResult::Failed { retriable: false });
const PASSED: CheckReport<'static> = CheckReport::Result(CheckResult::Success { degraded: false });

fn lazy(hosts: usize) -> Mesh {
    Mesh::with(Settings::default(), hosts, vec![http()], |_| {})
}

fn wanted(mesh: &mut Mesh) -> usize {
    let now = mesh.time();
    let head = Head { target: mesh.core.resolve("c").unwrap(), ..Head::default() };
    let mut out = Decision::default();
    mesh.core.begin(&mut mesh.worker, &head, None, now, &mut out).unwrap();
    mesh.core.cancel(&mut mesh.worker, out.attempt, now);
    mesh.core.want(u32::from(out.want_ok)).unwrap().1.len()
}

fn result(mesh: &mut Mesh, id: u64, report: CheckReport<'_>) -> Result<bool, Misuse> {
    let now = mesh.time();
    mesh.core.check_result(&mut mesh.worker, id, report, now)
}

#[test]
fn nobody_performs_checks_until_somebody_asks_for_them() {
    let mut mesh = lazy(2);
    assert_eq!(mesh.core.checks_deadline(), Time::NEVER);
    assert_eq!(mesh.flags(FIRST), Some(0));
    assert!(mesh.request(200).is_some());
    assert_eq!(wanted(&mut mesh), 0, "a plain answer crosses as a number");
    assert!(!mesh.stats().contains_key("health_check.attempt"));
    mesh.now += 3_600_000;
    let now = mesh.time();
    mesh.core.maintain(&mut mesh.worker, now);
    assert_eq!(mesh.flags(FIRST), Some(0));
}

#[test]
fn hosts_serve_until_their_first_result() {
    let mut mesh = lazy(2);
    let due = mesh.due();
    assert_eq!(due.len(), 2);
    assert_eq!(wanted(&mut mesh), 1, "x-envoy-immediate-health-check-fail");
    assert_eq!((mesh.flags(FIRST), mesh.flags(SECOND)), (Some(0), Some(0)));
    assert!(mesh.request(200).is_some());
    let of = |address: &str| due.iter().find(|check| check.address == address).unwrap().id;
    // A first failure of any kind takes a host out, as it leaves Envoy's out; a first success changes nothing.
    assert_eq!(result(&mut mesh, of(FIRST), CheckReport::Result(CheckResult::Network)), Ok(true));
    assert_eq!(result(&mut mesh, of(SECOND), PASSED), Ok(true));
    assert_eq!((mesh.flags(FIRST), mesh.flags(SECOND)), (Some(flag::FAILED_ACTIVE_HC), Some(0)));
    assert!((0..4).all(|_| mesh.request(200).as_deref() == Some(SECOND)));
    let events = mesh.events();
    assert_eq!(events.len(), 2);
    assert!(
        events[0].contains(r#""health_check_failure_event":{"failure_type":"NETWORK","first_check":true"#)
    );
    assert!(events[1].contains(r#""add_healthy_event":{"first_check":true}"#), "{}", events[1]);
    let stats = mesh.stats();
    assert_eq!((stats["health_check.healthy"], stats["membership_healthy"]), (1, 1));
    // From here on it is Envoy's state machine: two successes bring a failed host back.
    for flags in [flag::FAILED_ACTIVE_HC, 0] {
        mesh.now += 1000;
        mesh.round(|_| 200);
        assert_eq!(mesh.flags(FIRST), Some(flags));
    }
    assert_eq!(mesh.core.endpoints("c").unwrap(), mesh.endpoints);
}

#[test]
fn several_checkers_judge_a_serving_host_together() {
    let named = |name: &str| HealthCheckSpec { name: name.into(), ..http() };
    let mut mesh = Mesh::with(Settings::default(), 1, vec![named("a"), named("b")], |_| {});
    let due = mesh.due();
    assert_eq!(result(&mut mesh, due[0].id, FAILED), Ok(true));
    assert_eq!(mesh.flags(FIRST), Some(0), "not before both have answered");
    assert_eq!(result(&mut mesh, due[1].id, PASSED), Ok(true));
    assert_eq!(mesh.flags(FIRST), Some(flag::FAILED_ACTIVE_HC));
    assert_eq!(mesh.request(200), None);
}

#[test]
fn hosts_that_join_a_checked_cluster_wait_for_their_first_result() {
    let mut mesh = lazy(1);
    mesh.round(|_| 200);
    let mut second = mesh.endpoints.localities[0].endpoints[0].clone();
    second.address = SECOND.into();
    mesh.endpoints.localities[0].endpoints.push(second);
    mesh.apply();
    assert_eq!(mesh.flags(SECOND), Some(flag::FAILED_ACTIVE_HC));
    assert_eq!(mesh.round(|_| 200), 1);
    assert_eq!(mesh.flags(SECOND), Some(0));
    // The first hosts of a cluster serve at once.
    let mut specs = mesh.specs.clone();
    specs.clusters.push(ClusterSpec { name: "d".into(), ..specs.clusters[0].clone() });
    mesh.core.update(&specs, mesh.time()).unwrap();
    assert_eq!(mesh.core.host_states("d")[0].flags, 0);
    assert_eq!(mesh.due().len(), 1);
}

#[test]
fn a_cluster_comes_under_checks_with_its_hosts_and_goes_again() {
    let mut mesh = Mesh::with(Settings::default(), 1, Vec::new(), |_| {});
    assert!(mesh.due().is_empty());
    let mut specs = mesh.specs.clone();
    specs.clusters[0].health_checks = vec![http()];
    mesh.core.update(&specs, mesh.time()).unwrap();
    let due = mesh.due();
    assert_eq!((due.len(), mesh.flags(FIRST)), (1, Some(0)));
    assert_eq!(result(&mut mesh, due[0].id, FAILED), Ok(true));
    assert_eq!((mesh.flags(FIRST), mesh.request(200)), (Some(flag::FAILED_ACTIVE_HC), None));
    mesh.now += 1000;
    let out = mesh.due();
    mesh.core.update(&mesh.specs, mesh.time()).unwrap();
    assert_eq!((mesh.flags(FIRST), mesh.core.checks_deadline()), (Some(0), Time::NEVER));
    assert!(mesh.request(200).is_some());
    assert_eq!(result(&mut mesh, out[0].id, FAILED), Err(Misuse::Ended));
}

#[test]
fn other_checkers_find_hosts_as_they_were() {
    let mut mesh = lazy(2);
    mesh.round(|address| if address == FIRST { 503 } else { 200 });
    mesh.now += 1000;
    let out = mesh.due();
    assert_eq!(out.len(), 2);
    let mut specs = mesh.specs.clone();
    specs.clusters[0].health_checks[0].interval = Duration::from_secs(7);
    mesh.core.update(&specs, mesh.time()).unwrap();
    assert_eq!((mesh.flags(FIRST), mesh.flags(SECOND)), (Some(flag::FAILED_ACTIVE_HC), Some(0)));
    for check in &out {
        assert_eq!(
            result(&mut mesh, check.id, PASSED),
            Err(Misuse::Ended),
            "the old checkers' results are nothing"
        );
    }
    assert_eq!(mesh.round(|_| 200), 2);
    assert_eq!((mesh.flags(FIRST), mesh.flags(SECOND)), (Some(0), Some(0)));
}

#[test]
fn a_host_that_leaves_takes_its_check_along() {
    let mut mesh = lazy(2);
    let due = mesh.due();
    let first = due.iter().find(|check| check.address == FIRST).unwrap().id;
    // Without a result nothing vouches for it: it goes at once.
    mesh.remove_first();
    assert_eq!(mesh.flags(FIRST), None);
    assert_eq!(result(&mut mesh, first, PASSED), Err(Misuse::Ended));
    let second = due.iter().find(|check| check.address == SECOND).unwrap().id;
    assert_eq!(result(&mut mesh, second, PASSED), Ok(true));
    assert_eq!(result(&mut mesh, second, PASSED), Err(Misuse::Ended), "reported once");
    // A host that passes is kept until its check fails.
    mesh.now += 1000;
    let due = mesh.due();
    mesh.remove_first();
    assert_eq!(mesh.flags(SECOND), Some(flag::PENDING_DYNAMIC_REMOVAL));
    assert_eq!(result(&mut mesh, due[0].id, FAILED), Ok(true));
    assert_eq!((mesh.flags(SECOND), mesh.core.checks_deadline()), (None, Time::NEVER));
}

#[test]
fn one_after_the_other_put_back_and_told_by_traffic() {
    let mut mesh = lazy(2);
    let now = mesh.time();
    let first = mesh.core.poll_check(&mut mesh.worker, now).unwrap();
    mesh.core.put_back(&first, now);
    assert_eq!(result(&mut mesh, first.id, PASSED), Err(Misuse::Ended));
    let mut ids = Vec::new();
    while let Some(check) = mesh.core.poll_check(&mut mesh.worker, now) {
        ids.push(check.id);
    }
    assert_eq!((ids.len(), mesh.stats()["health_check.attempt"]), (2, 2));
    assert_eq!(result(&mut mesh, ids[0], PASSED), Ok(true));
    assert_eq!(
        result(&mut mesh, ids[1], CheckReport::Result(CheckResult::Passive)),
        Ok(false),
        "it is still out"
    );
    let failed = flag::FAILED_ACTIVE_HC | flag::EXCLUDED_VIA_IMMEDIATE_HC_FAIL;
    assert!([mesh.flags(FIRST), mesh.flags(SECOND)].contains(&Some(failed)));
    assert_eq!(result(&mut mesh, ids[1], PASSED), Ok(true));
    for id in [0, 77] {
        assert_eq!(result(&mut mesh, id, PASSED), Err(Misuse::Invalid), "never handed out");
    }
}

#[test]
fn what_a_check_sends() {
    let probe = HttpProbe {
        headers_to_add: vec![("x-a".into(), "1".into()), ("x-b".into(), "2".into())],
        headers_to_remove: vec!["x-a".into()],
        ..HttpProbe::get("/h?x")
    };
    let grpc = Probe::Grpc { service: "s".into(), authority: "a".into() };
    for (probe, asks, headers) in [
        (
            Probe::Http(Box::new(probe)),
            ("GET", "/h?x", false),
            vec![("user-agent", "Envoy/HC"), ("x-b", "2")],
        ),
        (
            grpc,
            ("POST", "/grpc.health.v1.Health/Check", true),
            vec![("content-type", "application/grpc"), ("te", "trailers"), ("user-agent", "Envoy/HC")],
        ),
        (Probe::Custom { name: "x".into() }, ("", "", false), vec![]),
    ] {
        let mut mesh = Mesh::with(Settings::default(), 1, vec![HealthCheckSpec { probe, ..http() }], |_| {});
        let due = mesh.due();
        assert_eq!((due[0].method(), due[0].path(), due[0].is_http2()), asks);
        assert_eq!(due[0].headers(), headers);
        assert_eq!((&*due[0].cluster, due[0].secure), ("c", false));
        let names = mesh.core.want(due[0].want.into()).unwrap().1;
        assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), WANTED);
    }
}
