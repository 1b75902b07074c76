//! Several attempts under way, and what ends them.

use super::*;
use crate::outcome::{Misuse, NEVER, bits};

fn hedging(hosts: &[&str], per_try: u64, retries: u32, limits: Thresholds) -> Mesh {
    let policy = RetrySpec { per_try_timeout: ms(per_try), ..retry("5xx", retries) };
    let mut spec = cluster("c", hosts);
    spec.breakers.thresholds[0] = limits;
    let route = ForwardSpec { hedge: Some(true), ..forward("c", 1_000, Some(policy)) };
    Mesh::new(spec, route)
}

const TWO: [&str; 2] = ["127.0.0.1:1", "127.0.0.1:2"];

#[test]
fn the_engine_says_when_who_wins_and_whom_to_drop() {
    let mut mesh = hedging(&TWO, 150, 1, Thresholds::default());
    let first = mesh.begin(&Head::default());
    assert_eq!((first.kind, first.wait, first.try_timeout), (kind::GO, 150 * MILLI, 1_000 * MILLI));
    mesh.pass(100);
    let early = mesh.choose(first.request);
    assert_eq!((early.kind, early.refusal, early.wait), (kind::WAIT, wait::ATTEMPTS, 50 * MILLI));
    mesh.pass(50);
    let mut second = mesh.choose(first.request);
    if second.kind == kind::WAIT {
        assert_eq!(second.refusal, wait::HEDGE);
        second = mesh.next(first.request);
    }
    assert_eq!((second.kind, second.number), (kind::GO, 2));
    assert_ne!(second.bits & bits::HEDGE, 0);
    assert_ne!(second.host, first.host);
    let verdict = mesh.complete(second.attempt, 200);
    assert_eq!(verdict.action, action::FORWARD);
    assert_ne!(u16::from(verdict.bits) & bits::ABORT_OTHERS, 0);
    assert_eq!(mesh.complete(first.attempt, 200).code, Misuse::Ended as i8, "too late");
    assert_eq!(mesh.stats().get("upstream_rq_active"), None);
    assert_eq!(mesh.stats().get("upstream_rq_retry_success"), Some(&1));
}

#[test]
fn a_bad_answer_waits_for_the_others() {
    let mut mesh = hedging(&TWO, 150, 1, Thresholds::default());
    let first = mesh.begin(&Head::default());
    mesh.pass(150);
    let second = mesh.next(first.request);
    let verdict = mesh.complete(second.attempt, 503);
    assert_eq!((verdict.action, verdict.reason), (action::DISCARD, reason::OTHERS_IN_FLIGHT));
    let wait = mesh.choose(first.request);
    assert_eq!((wait.kind, wait.refusal), (kind::WAIT, wait::ATTEMPTS));
    let verdict = mesh.complete(first.attempt, 500);
    assert_eq!((verdict.action, verdict.status), (action::FORWARD, 500), "the last one is the answer");
    assert_eq!(flags::text(verdict.flags), "URX");
}

#[test]
fn a_failure_waits_for_the_others() {
    let mut mesh = hedging(&TWO, 150, 1, Thresholds::default());
    let first = mesh.begin(&Head::default());
    mesh.pass(150);
    let second = mesh.next(first.request);
    let verdict = mesh.fail(first.attempt, failure::CONNECTION_TERMINATION);
    assert_eq!((verdict.action, verdict.reason), (action::DISCARD, reason::OTHERS_IN_FLIGHT));
    let verdict = mesh.fail(second.attempt, failure::REMOTE_RESET);
    assert_eq!((verdict.action, verdict.status), (action::FORWARD, 503));
}

#[test]
fn no_host_for_a_hedge_ends_everything() {
    let mut spec = cluster("c", &[]);
    spec.kind = crate::spec::ClusterKind::Composite(vec!["one".into()]);
    spec.policy = PolicySpec::ClusterProvided;
    let policy = RetrySpec { per_try_timeout: ms(150), ..retry("5xx", 1) };
    spec.defaults = Some(ForwardSpec { hedge: Some(true), ..forward("c", 1_000, Some(policy)) });
    let specs = Specs { clusters: vec![spec, cluster("one", &["127.0.0.1:1"])], ..Specs::default() };
    let core = Core::new(&specs, Settings::default(), Time(0)).unwrap();
    let worker = core.worker(Time(0));
    let mut mesh = Mesh { core, worker, now: Time(MILLI) };
    let first = mesh.begin(&Head::default());
    mesh.pass(150);
    let none = mesh.next(first.request);
    assert_eq!((none.kind, none.refusal), (kind::REFUSED, refusal::NO_HEALTHY_UPSTREAM));
    assert_ne!(none.bits & bits::ABORT_OTHERS, 0);
    assert_eq!(mesh.complete(first.attempt, 200).code, Misuse::Ended as i8);
}

#[test]
fn a_full_pool_for_a_hedge_leaves_the_first_alone() {
    let limits = Thresholds { max_requests: 1, ..Thresholds::default() };
    let mut mesh = hedging(&TWO, 150, 1, limits);
    let first = mesh.begin(&Head::default());
    mesh.pass(150);
    let mut answer = mesh.choose(first.request);
    while answer.kind == kind::WAIT && answer.wait != NEVER && answer.refusal != wait::ATTEMPTS {
        mesh.now = mesh.now.plus(answer.wait);
        answer = mesh.choose(first.request);
    }
    assert_eq!((answer.kind, answer.refusal), (kind::WAIT, wait::ATTEMPTS));
    let verdict = mesh.complete(first.attempt, 200);
    assert_eq!((verdict.action, verdict.status), (action::FORWARD, 200));
}

#[test]
fn the_global_limit_ends_all_of_them() {
    let mut mesh = hedging(&TWO, 150, 1, Thresholds::default());
    let first = mesh.begin(&Head::default());
    mesh.pass(150);
    let second = mesh.next(first.request);
    mesh.now = mesh.now.plus(second.remaining);
    let over = mesh.choose(first.request);
    assert_eq!((over.kind, over.refusal, over.status), (kind::REFUSED, refusal::TIMEOUT, 504));
    assert_ne!(over.bits & bits::ABORT_OTHERS, 0);
    let stats = mesh.stats();
    assert_eq!(stats.get("upstream_rq_timeout"), Some(&2));
    assert_eq!(stats.get("upstream_rq_504"), Some(&2), "each of them is charged");
}

#[test]
fn dropping_one_leaves_the_other() {
    let mut mesh = hedging(&TWO, 150, 1, Thresholds::default());
    let first = mesh.begin(&Head::default());
    mesh.pass(150);
    let second = mesh.next(first.request);
    mesh.core.cancel(&mut mesh.worker, first.attempt, mesh.now);
    assert_eq!(mesh.complete(second.attempt, 200).action, action::FORWARD);
    assert_eq!(mesh.stats().get("upstream_rq_active"), None);
}
