//! Threads that use one engine in every way at once, with each other's ids, stale ones among them, while its
//! documents and hosts change: no bug is hit, no limit is passed, and in the end nothing is held.

use nexthop::raw::{
    self, Decision, Document, Head, HostChange, Options, Outcome, Stat, document_kind, failure,
};
use nexthop::raw::{finish, host_op, kind, note};
use nexthop_vectors::Dice;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const THREADS: u64 = 4;
const STEPS: usize = 200_000;

fn document(max_requests: u32, policy: &str) -> String {
    format!(
        "
static_resources:
  clusters:
  - name: web
    lb_policy: {policy}
    circuit_breakers: {{thresholds: [{{max_requests: {max_requests}, max_connections: 30, max_pending_requests: 8,
      retry_budget: {{budget_percent: {{value: 30}}, min_retry_concurrency: 2}}}}]}}
    outlier_detection: {{consecutive_5xx: 3, base_ejection_time: 0.01s, interval: 0.01s, max_ejection_percent: 50}}
    load_assignment: {{cluster_name: web, endpoints: [{{lb_endpoints: [
      {{endpoint: {{address: {{socket_address: {{address: 10.0.0.1, port_value: 80}}}}}}}},
      {{endpoint: {{address: {{socket_address: {{address: 10.0.0.2, port_value: 80}}}}}}}},
      {{endpoint: {{address: {{socket_address: {{address: 10.0.0.3, port_value: 80}}}}}}}}]}}]}}
  - name: spare
    load_assignment: {{cluster_name: spare, endpoints: [{{lb_endpoints: [
      {{endpoint: {{address: {{socket_address: {{address: 10.0.1.1, port_value: 80}}}}}}}}]}}]}}
  - name: both
    lb_policy: CLUSTER_PROVIDED
    cluster_type: {{name: envoy.clusters.composite, typed_config: {{
      \"@type\": type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig,
      clusters: [{{name: web}}, {{name: spare}}]}}}}
  listeners: []
---
name: routes
virtual_hosts:
- name: all
  domains: [\"*\"]
  retry_policy: {{retry_on: \"5xx,reset,connect-failure\", num_retries: 3,
    retry_back_off: {{base_interval: 0.001s, max_interval: 0.002s}}}}
  routes:
  - match: {{prefix: /both}}
    route: {{cluster: both, timeout: 1s}}
  - match: {{prefix: /}}
    route: {{cluster: web, timeout: 1s}}
"
    )
}

fn close(id: u64) {
    raw::with_local(|local| finish(local, request_of(id), finish::CLIENT_GONE, 0));
}

/// Ids that any thread may use, most of them stale.
struct Ids(Mutex<Vec<u64>>);

impl Ids {
    fn put(&self, dice: &mut Dice, id: u64) {
        let mut ids = self.0.lock().unwrap();
        if ids.len() < 256 {
            ids.push(id);
            return;
        }
        let at = dice.roll(256);
        let old = std::mem::replace(&mut ids[at], id);
        drop(ids);
        // Whatever falls out of the list is closed, so that nothing stays open unknown.
        close(old);
    }

    fn any(&self, dice: &mut Dice) -> u64 {
        let ids = self.0.lock().unwrap();
        if ids.is_empty() { 0 } else { ids[dice.roll(ids.len())] }
    }
}

fn report(dice: &mut Dice, attempt: u64) {
    raw::with_local(|local| match dice.roll(12) {
        0..=4 => raw::complete_status(local, attempt, 200, 0),
        5 => raw::complete_status(local, attempt, 503, 0),
        6 => raw::fail(local, attempt, failure::REMOTE_RESET.into(), 0),
        7 => raw::headers(local, attempt, &Outcome::status(200), 0),
        8 => raw::end(local, attempt, None, 0),
        9 => raw::cancel(local, attempt, 0),
        10 => finish(local, request_of(attempt), finish::SHUTDOWN, 0),
        _ => raw::fail(local, attempt, failure::CONNECT_FAILURE.into(), 0),
    });
}

/// The request of an attempt: its id without the attempt's part.
fn request_of(attempt: u64) -> u64 {
    attempt & !0x7ff
}

fn step(engine: u64, dice: &mut Dice, ids: &Ids, target: u32) {
    let mut out = Decision::default();
    let id = ids.any(dice);
    match dice.roll(10) {
        0..=3 => {
            let _ = raw::with_local(|local| raw::pick(local, engine, target, 1, None, 0, &mut out));
            assert!(out.kind <= kind::REFUSED);
            if out.kind == kind::GO {
                if dice.roll(4) == 0 {
                    ids.put(dice, out.attempt);
                } else {
                    raw::with_local(|local| raw::complete_status(local, out.attempt, 200, 0));
                    ids.put(dice, out.attempt);
                }
            }
        }
        4 | 5 => {
            let path = if dice.roll(3) == 0 { "/both" } else { "/" };
            let head = Head { path, authority: "a", ..Head::default() };
            raw::with_local(|local| raw::begin(local, engine, &head, 0, &mut out)).unwrap();
            ids.put(dice, if out.kind == kind::GO { out.attempt } else { out.request });
        }
        6 | 7 => report(dice, id),
        8 => {
            let _ = raw::with_local(|local| raw::choose(local, request_of(id), 0, &mut out));
            if out.kind == kind::GO {
                ids.put(dice, out.attempt);
            }
        }
        _ => {
            let request = request_of(id);
            match dice.roll(5) {
                0 => drop(raw::request_info(request)),
                1 => drop(raw::reply(request)),
                2 => drop(raw::extra_headers(id)),
                3 => drop(raw::text(engine, 9, &id.to_string())),
                _ => drop(raw::with_local(|local| note(local, id, note::SENT, 0))),
            }
        }
    }
}

fn gauge(engine: u64, name: &str) -> u64 {
    let mut found = None;
    raw::stats(engine, &mut |known, stat| {
        if known == name
            && let Stat::Gauge(value) = stat
        {
            found = Some(value);
        }
    })
    .unwrap();
    found.unwrap_or_else(|| panic!("no gauge {name}"))
}

fn stress(workers: u32) {
    let text = document(20, "LEAST_REQUEST");
    let first = Document { kind: document_kind::TEXT, dialect: "", name: "", text: text.as_bytes() };
    let options = Options { seed: 3, workers, ..Options::default() };
    let engine = raw::engine_new(&options, &[first]).unwrap_or_else(|error| panic!("{error}"));
    let target = raw::resolve(engine, "web").unwrap();
    let ids = Ids(Mutex::default());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let ids = &ids;
                scope.spawn(move || {
                    let mut dice = Dice(0x9E37_79B9 + thread);
                    for _ in 0..STEPS {
                        step(engine, &mut dice, ids, target);
                    }
                })
            })
            .collect();
        let over = &over;
        scope.spawn(move || {
            let mut dice = Dice(77);
            while !over.load(Relaxed) {
                if dice.roll(3) == 0 {
                    let policy = ["LEAST_REQUEST", "ROUND_ROBIN", "RING_HASH"][dice.roll(3)];
                    let text = document([5, 20, 1000][dice.roll(3)], policy);
                    let next =
                        Document { kind: document_kind::TEXT, dialect: "", name: "", text: text.as_bytes() };
                    raw::update(engine, &[next]).unwrap();
                } else {
                    let op = if dice.roll(2) == 0 { host_op::ADD } else { host_op::REMOVE };
                    let address = ["10.0.0.2:80", "10.0.0.4:80"][dice.roll(2)];
                    let _ = raw::apply(engine, "web", &[HostChange { op, address, ..HostChange::default() }]);
                }
                std::thread::yield_now();
            }
        });
        for thread in threads {
            thread.join().unwrap();
        }
        over.store(true, Relaxed);
    });
    for id in ids.0.lock().unwrap().iter() {
        close(*id);
    }
    let info = raw::engine_info(engine).unwrap();
    assert_eq!((info.panics, info.live_requests), (0, 0));
    for cluster in ["web", "spare"] {
        for leaf in [
            "upstream_rq_active",
            "upstream_rq_pending_active",
            "circuit_breakers.default.rq_open",
            "circuit_breakers.default.rq_retry_open",
        ] {
            assert_eq!(gauge(engine, &format!("cluster.{cluster}.{leaf}")), 0, "{cluster} {leaf}");
        }
    }
    raw::engine_free(engine).unwrap();
}

#[test]
fn threads_with_workers_of_their_own() {
    stress(0);
}

#[test]
fn threads_that_share_workers() {
    stress(2);
}
