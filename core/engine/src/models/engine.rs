//! A whole engine: documents change as requests go through it.

use super::{both, explore, thread};
use crate::clock::Time;
use crate::engine::{Core, Settings};
use crate::inspect::Stat;
use crate::outcome::{Decision, Head, Outcome, Ready, finish, kind};
use crate::request::Report;
use crate::spec::*;
use crate::worker::Worker;
use std::sync::Arc;

const NOW: Time = Time(1);

fn endpoints(addresses: &[&str]) -> Endpoints {
    let host =
        |address: &&str| EndpointSpec { address: (*address).into(), port: 80, ..EndpointSpec::default() };
    let group = LocalityEndpoints {
        endpoints: addresses.iter().map(host).map(Endpoint::from).collect(),
        ..LocalityEndpoints::default()
    };
    Endpoints { localities: vec![group], ..Endpoints::default() }
}

fn specs() -> Specs {
    let limits = Thresholds { max_connections: 1, max_pending_requests: 4, ..Thresholds::default() };
    let outlier = OutlierSpec { consecutive_5xx: 1, max_ejection_percent: 100, ..OutlierSpec::default() };
    let cluster = ClusterSpec {
        name: "c".into(),
        endpoints: endpoints(&["10.0.0.1:80"]),
        breakers: Breakers { thresholds: [limits, Thresholds::default()], ..Breakers::default() },
        outlier: Some(outlier),
        ..ClusterSpec::default()
    };
    Specs { clusters: vec![cluster], ..Specs::default() }
}

/// One request with an attempt under way, one that queues behind it, and a worker for each thread.
struct Busy {
    core: Arc<Core>,
    workers: [Worker; 2],
    sent: Decision,
    queued: Decision,
}

fn busy() -> Busy {
    let core = Arc::new(Core::new(&specs(), Settings::default(), NOW).unwrap());
    let mut workers = [core.worker(NOW), core.worker(NOW)];
    let head = Head { target: core.resolve("c").unwrap(), ..Head::default() };
    let begin = |worker: &mut Worker| {
        let mut out = Decision::default();
        core.begin(worker, &head, None, NOW, &mut out).unwrap();
        out
    };
    let (sent, queued) = (begin(&mut workers[0]), begin(&mut workers[1]));
    assert_eq!((sent.kind, queued.kind), (kind::GO, kind::WAIT));
    Busy { core, workers, sent, queued }
}

/// The waiter was woken and is answered; then nothing is left.
fn ends(core: &Core, worker: &mut Worker, queued: u64) {
    let mut ready = [Ready::default(); 4];
    assert_eq!(core.take_ready(&mut ready), 1, "the waiter was woken");
    assert_eq!(ready[0].request, queued);
    let mut out = Decision::default();
    core.choose(worker, queued, NOW, &mut out).unwrap();
    assert_ne!(out.kind, kind::WAIT, "there is nothing to wait for");
    if out.kind == kind::GO {
        core.report(worker, out.attempt, &Outcome::status(200), Report::Whole, NOW);
    }
    is_empty(core);
}

fn is_empty(core: &Core) {
    assert_eq!(core.live_requests(), 0);
    core.stats(&mut |name, stat| {
        let gauge = matches!(stat, Stat::Gauge(value) if value != 0);
        let used = name.ends_with("upstream_rq_active") || name.ends_with("upstream_rq_pending_active");
        assert!(!gauge || !used, "{name} is not 0");
    });
}

fn in_a_thread(model: impl Fn() + Copy + Send + Sync + 'static) {
    // The first thread of a model has a small stack.
    explore(move || thread(model).join().unwrap());
}

#[test]
fn a_failure_ejects_as_the_host_is_replaced() {
    in_a_thread(|| {
        let Busy { core, workers: [mut one, mut other], sent, queued } = busy();
        let (reports, replaces) = (Arc::clone(&core), Arc::clone(&core));
        let reporter = move || {
            reports.report(&mut one, sent.attempt, &Outcome::status(500), Report::Whole, NOW);
        };
        let updater = move || drop(replaces.set_endpoints("c", &endpoints(&["10.0.0.2:80"]), NOW));
        both(reporter, updater);
        ends(&core, &mut other, queued.request);
    });
}

#[test]
fn the_cluster_is_removed_as_an_attempt_ends() {
    in_a_thread(|| {
        let Busy { core, workers: [mut one, mut other], sent, queued } = busy();
        let (reports, removes) = (Arc::clone(&core), Arc::clone(&core));
        let reporter = move || {
            reports.report(&mut one, sent.attempt, &Outcome::status(200), Report::Whole, NOW);
        };
        let updater = move || drop(removes.update(&Specs::default(), NOW));
        both(reporter, updater);
        ends(&core, &mut other, queued.request);
    });
}

#[test]
fn a_waiter_goes_as_its_turn_comes() {
    in_a_thread(|| {
        let Busy { core, workers: [mut one, mut other], sent, queued } = busy();
        let (reports, leaves) = (Arc::clone(&core), Arc::clone(&core));
        let reporter = move || {
            reports.report(&mut one, sent.attempt, &Outcome::status(200), Report::Whole, NOW);
        };
        let leaver = move || {
            leaves.finish(&mut other, queued.request, finish::CLIENT_GONE, NOW);
        };
        both(reporter, leaver);
        is_empty(&core);
        let mut again = core.worker(NOW);
        let head = Head { target: core.resolve("c").unwrap(), ..Head::default() };
        let mut out = Decision::default();
        core.begin(&mut again, &head, None, NOW, &mut out).unwrap();
        assert_eq!(out.kind, kind::GO, "the connection is free");
    });
}
