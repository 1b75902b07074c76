//! `tests/vectors/breakers`: bursts of requests against the accounting of connections, on a whole engine with strict
//! accounting. A connection is up 1 ms after it was begun, an answer takes as long as the case says.

use crate::clock::Time;
use crate::engine::{Core, Settings};
use crate::inspect::Stat;
use crate::outcome::{
    Decision, Head, LocalReply, Outcome, Ready, Verdict, failure, kind, note, refusal, resource,
};
use crate::request::Report;
use crate::spec::*;
use crate::sync::atomic::Ordering::Relaxed;
use crate::worker::Worker;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const MILLI: u64 = 1_000_000;

/// What happens at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The connection that this request began, or waits for, is up.
    Connected(usize),
    Answer(usize),
    Send(usize),
}

struct Burst {
    core: Core,
    worker: Worker,
    now: u64,
    delay: u64,
    /// Instant, order, what.
    calendar: BTreeSet<(u64, u64, Event)>,
    order: u64,
    requests: Vec<Decision>,
    finished: Vec<u64>,
    refused: Vec<u8>,
    reply: Option<LocalReply>,
    high: bool,
}

fn thresholds(given: &Json) -> Thresholds {
    let default = Thresholds::default();
    let number = |name: &str, default: u32| given[name].as_u64().map_or(default, |n| n as u32);
    Thresholds {
        max_connections: number("max_connections", default.max_connections),
        max_pending_requests: number("max_pending_requests", default.max_pending_requests),
        max_requests: number("max_requests", default.max_requests),
        max_retries: number("max_retries", default.max_retries),
        max_connection_pools: given["max_connection_pools"].as_u64(),
        track_remaining: given["track_remaining"].as_bool() == Some(true),
        ..default
    }
}

fn specs(given: &Json) -> Specs {
    let hosts = given["hosts"].as_u64().unwrap_or(1);
    let host = |at| EndpointSpec { address: format!("10.0.0.{at}:80"), port: 80, ..EndpointSpec::default() };
    let group = LocalityEndpoints {
        endpoints: (1..=hosts).map(host).map(Endpoint::from).collect(),
        ..LocalityEndpoints::default()
    };
    let own = thresholds(&given["thresholds"]);
    let mut breakers = Breakers::default();
    let high = given["thresholds"]["priority"] == "HIGH";
    breakers.thresholds[usize::from(high)] = own;
    breakers.per_host_max_connections[0] =
        given["per_host_thresholds"]["max_connections"].as_u64().map(|n| n as u32);
    let state = given["state"].as_str().unwrap_or("");
    let after = |words: &str| -> Option<u32> {
        let rest = state.split_once(words)?.1.trim();
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let http2 = given["upstream_protocol"] == "http/2";
    let cluster = ClusterSpec {
        name: "c".into(),
        endpoints: Endpoints { localities: vec![group], ..Endpoints::default() },
        breakers,
        panic_threshold: 0,
        protocol: if http2 { Protocol::Http2 } else { Protocol::Http1 },
        // A limit of the peer's is told as the cluster's own: its connections, and what peers say on them, are the
        // caller's.
        max_concurrent_streams: after("max_concurrent_streams")
            .or_else(|| after("peer SETTINGS max concurrent streams"))
            .unwrap_or(1024),
        max_requests_per_connection: after("max_requests_per_connection").unwrap_or(0),
        connections: Some(ConnectionStyle::Strict),
        ..ClusterSpec::default()
    };
    let guard = "envoy.reloadable_features.skip_pending_overflow_count_on_active_rq";
    let runtime = if state.contains("skip_pending_overflow_count_on_active_rq false") {
        vec![(guard.to_owned(), Value::Bool(false))]
    } else {
        Vec::new()
    };
    Specs { clusters: vec![cluster], runtime, ..Specs::default() }
}

impl Burst {
    fn new(given: &Json) -> Self {
        let core = Core::new(&specs(given), Settings::default(), Time(1)).unwrap();
        let worker = core.worker(Time(1));
        Self {
            core,
            worker,
            now: 1,
            delay: given["backend_delay_ms"].as_u64().unwrap_or(600) * MILLI,
            calendar: BTreeSet::new(),
            order: 0,
            requests: Vec::new(),
            finished: Vec::new(),
            refused: Vec::new(),
            reply: None,
            high: given["route_priority"] == "HIGH",
        }
    }

    fn at(&mut self, after: u64, event: Event) {
        self.order += 1;
        self.calendar.insert((self.now + after, self.order, event));
    }

    fn took(&mut self, at: usize, was_waiting: bool) {
        let out = &self.requests[at];
        match out.kind {
            kind::GO => self.at(self.delay, Event::Answer(at)),
            kind::WAIT if !was_waiting => self.at(MILLI, Event::Connected(at)),
            kind::WAIT => {}
            _ => {
                let why = if out.refusal == refusal::OVERFLOW { out.resource } else { 0 };
                self.refused.push(why);
                self.reply = self.core.reply(self.requests[at].request).unwrap();
            }
        }
    }

    fn send(&mut self) {
        let head = Head {
            target: self.core.resolve("c").unwrap(),
            priority: if self.high { 1 } else { -1 },
            ..Head::default()
        };
        let mut out = Decision::default();
        self.core.begin(&mut self.worker, &head, None, Time(self.now), &mut out).unwrap();
        self.requests.push(out);
        self.took(self.requests.len() - 1, false);
    }

    fn look(&mut self) {
        let mut ready = [Ready::default(); 64];
        let n = self.core.take_ready(&mut ready);
        for ready in &ready[..n] {
            let at = self.requests.iter().position(|out| out.request == ready.request).unwrap();
            let mut out = Decision::default();
            self.core.choose(&mut self.worker, ready.request, Time(self.now), &mut out).unwrap();
            self.requests[at] = out;
            self.took(at, true);
        }
    }

    /// Plays so many requests, one each `gap`, until nothing is left to happen.
    fn play(&mut self, requests: u64, gap: u64) {
        self.schedule(requests, gap);
        self.drain();
    }

    fn schedule(&mut self, requests: u64, gap: u64) {
        for at in 0..requests {
            self.at(at * gap, Event::Send(0));
        }
    }

    fn drain(&mut self) {
        while let Some((at, _, event)) = self.calendar.pop_first() {
            self.now = at;
            match event {
                Event::Send(_) => self.send(),
                Event::Connected(request) if self.requests[request].kind == kind::WAIT => {
                    let id = self.requests[request].request;
                    self.core.note(&mut self.worker, id, note::CONNECTED, Time(self.now)).unwrap();
                }
                Event::Connected(_) => {}
                Event::Answer(request) => {
                    let attempt = self.requests[request].attempt;
                    let report = Outcome::status(200);
                    self.core.report(&mut self.worker, attempt, &report, Report::Whole, Time(self.now));
                    self.finished.push(self.now);
                }
            }
            self.look();
        }
    }

    /// Connections of each host, over both priorities.
    fn connections(&self) -> Vec<u64> {
        let states = self.core.host_states("c");
        let of = |slot: u32| {
            let pools = &self.core.hosts.load(slot).pools;
            pools.iter().map(|pool| super::pool::connections(pool.load(Relaxed))).sum()
        };
        states.iter().map(|state| of(state.slot)).collect()
    }

    fn stats(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        self.core.stats(&mut |name, stat| {
            let (Stat::Counter(value) | Stat::Gauge(value)) = stat;
            all.insert(name.trim_start_matches("cluster.c.").to_owned(), value);
        });
        all
    }
}

/// The cases of a file, but for those that another reading of the folder names.
fn cases(file: &str, number: usize, left_out: &[&str]) -> Vec<(String, Json)> {
    nexthop_vectors::chosen(file, number, |id| !left_out.contains(&id))
}

/// One case of a file.
fn one(file: &str, name: &str) -> Json {
    let list = nexthop_vectors::chosen(file, 1, |id| id == name);
    list.into_iter().next().unwrap_or_else(|| panic!("{file} has no case {name}")).1
}

/// Plays a case of a pool and compares counters, answers and their times.
fn pool(id: &str, case: &Json) {
    let (given, expect) = (&case["given"], &case["expect"]);
    let state = given["state"].as_str().unwrap_or("");
    let mut burst = Burst::new(given);
    let warm = match () {
        () if state.starts_with("2 idle") => 2,
        () if state.starts_with("1 idle") || state.starts_with("1 connection ready") => 1,
        () => 0,
    };
    if warm > 0 {
        // Warm connections are those of requests that are over. HTTP/2 needs one request for one.
        burst.play(warm, 0);
        (burst.finished, burst.refused, burst.requests) = Default::default();
    }
    let before = burst.stats();
    let began = burst.now;
    let number = given["simultaneous_requests"].as_u64().unwrap();
    // Arrivals on separate connections leave time for connections to come up.
    let spread = !state.contains("one event-loop pass");
    if id == "max-requests-3-conn-4-pending-2" {
        // The recorded run had taken 17 of its requests when the new connections were up: of four active overflows one
        // waited for its connection, three found one.
        burst.schedule(17, 0);
        for _ in 17..number {
            burst.at(2 * MILLI, Event::Send(0));
        }
        burst.drain();
    } else {
        burst.play(number, if spread { 2 * MILLI } else { 0 });
    }
    let after = burst.stats();
    let grew = |name: &str| after[name] - before.get(name).copied().unwrap_or(0);
    for (name, wanted) in expect.as_object().unwrap() {
        let whole = || wanted.as_u64().unwrap_or_else(|| panic!("{id}: {name} is {wanted}"));
        match name.as_str() {
            "ok" => assert_eq!(burst.finished.len() as u64, whole(), "{id}: ok"),
            "rejected" => assert_eq!(burst.refused.len() as u64, whole(), "{id}: rejected"),
            "upstream_cx_new" => assert_eq!(grew("upstream_cx_total"), whole(), "{id}: {name}"),
            "connections" => assert_eq!(after["upstream_cx_total"], whole(), "{id}: {name}"),
            "ok_finish_ms" => {
                let rounded = |at: &u64| (at - began) / (100 * MILLI) * 100;
                let found: Vec<u64> = burst.finished.iter().map(rounded).collect();
                assert_eq!(serde_json::json!(found), *wanted, "{id}: {name}");
            }
            "connections_per_host" | "connections_per_host_sorted" => {
                let mut found: Vec<u64> = burst.connections();
                if name.ends_with("sorted") {
                    found.sort_unstable();
                }
                assert_eq!(serde_json::json!(found), *wanted, "{id}: {name}");
            }
            // At once: nobody who was refused had waited.
            "rejected_at_once" => assert!(burst.refused.iter().all(|why| *why == resource::PENDING), "{id}"),
            "status" => assert_eq!(whole(), 503),
            "body" => assert_eq!(wanted, burst.reply.as_ref().unwrap().body.as_str(), "{id}"),
            "x_envoy_overloaded_header" => {
                let headers = &burst.reply.as_ref().unwrap().headers;
                let has = headers.iter().any(|(name, _)| name == "x-envoy-overloaded");
                assert_eq!(has, wanted.as_bool().unwrap(), "{id}");
            }
            "note" | "order" => {}
            counter if counter.starts_with("upstream_") => {
                assert_eq!(grew(counter), whole(), "{id}: {counter}")
            }
            other => panic!("{id}: no test of {other}"),
        }
    }
    for gauge in ["upstream_rq_active", "upstream_rq_pending_active"] {
        assert_eq!(after[gauge], 0, "{id}: {gauge} at the end");
    }
}

#[test]
fn pool_http1() {
    let file = "breakers/pool_http1.json";
    let others = [
        "seed-experiment-two-workers",
        "max-pending-1-unit",
        "max-connections-1-unit",
        "connect-failure-fails-the-queue-5",
        "connect-failure-fails-the-queue-4",
    ];
    for (id, case) in cases(file, 9, &others) {
        pool(&id, &case);
    }
}

#[test]
fn pool_http1_by_steps() {
    let file = "breakers/pool_http1.json";
    for (_, case) in nexthop_vectors::chosen(file, 2, |id| id.ends_with("-unit")) {
        let (given, expect) = (&case["given"], &case["expect"]);
        let mut burst = Burst::new(given);
        burst.send();
        burst.send();
        let waiting = burst.requests.iter().filter(|out| out.kind == kind::WAIT).count() as u64;
        assert_eq!(waiting, expect["queued"].as_u64().unwrap(), "{case}");
        assert_eq!(burst.refused.len() as u64, expect["rejected"].as_u64().unwrap_or(0), "{case}");
        let stats = burst.stats();
        for (name, stat) in [
            ("upstream_rq_pending_overflow", "upstream_rq_pending_overflow"),
            ("rq_pending_open_while_queued", "circuit_breakers.default.rq_pending_open"),
            ("upstream_cx_overflow", "upstream_cx_overflow"),
            ("cx_open", "circuit_breakers.default.cx_open"),
        ] {
            if let Some(wanted) = expect[name].as_u64() {
                assert_eq!(stats[stat], wanted, "{name} of {case}");
            }
        }
        burst.play(0, 0);
        assert_eq!(burst.finished.len() as u64, waiting, "everybody who waited is served");
        if expect.get("order").is_some() {
            // The first one has the connection when it is up, the second one after it.
            assert_eq!(burst.finished, [1 + 601 * MILLI, 1 + 1201 * MILLI]);
        }
    }
}

#[test]
fn pool_http2() {
    let file = "breakers/pool_http2.json";
    for (id, case) in cases(file, 9, &["peer-limit-3-conn-2-pending-4", "pending-streams-request-overflow"]) {
        pool(&id, &case);
    }
}

/// One place is left under `max_requests` when three that waited get their connection.
#[test]
fn pool_http2_one_place_left() {
    let file = "breakers/pool_http2.json";
    let case = one(file, "pending-streams-request-overflow");
    let mut given = case["given"].clone();
    given["thresholds"] = serde_json::json!({"max_requests": 1});
    let mut burst = Burst::new(&given);
    burst.play(given["simultaneous_requests"].as_u64().unwrap(), 0);
    assert_eq!(burst.finished.len() as u64, case["expect"]["connected"].as_u64().unwrap());
    assert_eq!(burst.refused, vec![resource::REQUESTS; case["expect"]["reset"].as_u64().unwrap() as usize]);
}

#[test]
fn per_host_and_priority() {
    let file = "breakers/per_host_and_priority.json";
    for (id, case) in cases(file, 9, &[]) {
        pool(&id, &case);
    }
}

#[test]
fn responses_and_stats() {
    let file = "breakers/responses_and_stats.json";
    for (id, case) in cases(file, 2, &["per-try-timer-starts-with-the-connection"]) {
        let expect = &case["expect"];
        if id == "stat-names" {
            for tracks in [false, true] {
                let given = serde_json::json!({"thresholds": {"track_remaining": tracks}});
                let stats = Burst::new(&given).stats();
                let prefix = "circuit_breakers.default.";
                let found: BTreeSet<&str> =
                    stats.keys().filter_map(|name| name.strip_prefix(prefix)).collect();
                let list = if tracks { "gauges_default" } else { "gauges_without_track_remaining" };
                let wanted: BTreeSet<&str> =
                    expect[list].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
                assert_eq!(found, wanted, "tracks: {tracks}");
            }
            continue;
        }
        for limits in [serde_json::json!({"max_pending_requests": 0}), serde_json::json!({"max_requests": 0})]
        {
            let mut burst = Burst::new(&serde_json::json!({"thresholds": limits}));
            burst.play(1, 0);
            let reply = burst.reply.as_ref().unwrap();
            assert_eq!(u64::from(reply.status), expect["status"].as_u64().unwrap());
            assert_eq!(reply.body, expect["body"].as_str().unwrap());
            assert_eq!(reply.body.len().to_string(), expect["headers"]["content-length"].as_str().unwrap());
            for (name, value) in &reply.headers {
                assert_eq!(expect["headers"][name], value.as_str());
            }
            assert_eq!(reply.headers.len(), 2, "content-length is that of the body");
            assert_eq!(crate::outcome::flags::text(reply.flags), expect["response_flag"].as_str().unwrap());
            assert_eq!((&expect["retried"], &expect["outlier_report"]), (&false.into(), &false.into()));
            assert_eq!(burst.core.host_states("c")[0].rq_error, 0, "the host is not to blame");
        }
    }
}

/// The limit of a try begins with its stream: 200 ms + 1000 ms of waiting, then 500 ms.
#[test]
fn per_try_limit_after_the_queue() {
    let file = "breakers/responses_and_stats.json";
    let case = one(file, "per-try-timer-starts-with-the-connection");
    let (given, expect) = (&case["given"], &case["expect"]);
    let ms = |name: &str| given[name].as_u64().unwrap();
    let mut specs = specs(&serde_json::json!({"thresholds": {"max_connections": ms("max_connections")}}));
    specs.clusters[0].connections = None;
    specs.clusters[0].defaults = Some(ForwardSpec {
        timeout: Duration::from_millis(ms("route_timeout_ms")),
        retry: Some(RetrySpec {
            per_try_timeout: Duration::from_millis(ms("per_try_timeout_ms")),
            ..RetrySpec::default()
        }),
        ..ForwardSpec::default()
    });
    let core = Core::new(&specs, Settings::default(), Time(0)).unwrap();
    let mut worker = core.worker(Time(0));
    let head = Head { target: core.resolve("c").unwrap(), ..Head::default() };
    let (mut first, mut second) = (Decision::default(), Decision::default());
    core.begin(&mut worker, &head, None, Time(0), &mut first).unwrap();
    let sent = ms("second_request_sent_after_ms") * MILLI;
    core.begin(&mut worker, &head, None, Time(sent), &mut second).unwrap();
    assert_eq!((first.kind, second.kind), (kind::GO, kind::WAIT));
    let freed = ms("first_request_holds_the_connection_ms") * MILLI;
    core.report(&mut worker, first.attempt, &Outcome::status(200), Report::Whole, Time(freed));
    let request = second.request;
    core.choose(&mut worker, request, Time(freed), &mut second).unwrap();
    assert_eq!(second.kind, kind::GO);
    let late = freed + second.try_timeout;
    assert_eq!(late - sent, expect["after_ms"].as_u64().unwrap() * MILLI);
    let report = Outcome::failed(failure::TIMEOUT);
    let verdict: Verdict = core.report(&mut worker, second.attempt, &report, Report::Fail, Time(late)).into();
    assert_eq!(u64::from(verdict.status), expect["second_request_status"].as_u64().unwrap());
}

/// The counts along takes and releases, and limits under runtime values.
#[test]
fn resource_manager() {
    let file = "breakers/resource_manager.json";
    for (id, case) in cases(file, 4, &[]) {
        let (given, expect) = (&case["given"], &case["expect"]);
        match &*id {
            "remaining-gauges" => remaining(given, expect),
            "runtime-overrides" | "runtime-retry-budget-overrides-max-retries" => {
                let mut values: Vec<(String, Value)> = Vec::new();
                for (leaf, value) in given["runtime"].as_object().unwrap() {
                    let value = value.as_f64().unwrap_or(20.0);
                    values.push((format!("circuit_breakers.c.default.{leaf}"), Value::Number(value)));
                }
                let mut specs = specs(&serde_json::json!({"thresholds": given["thresholds"]}));
                specs.clusters[0].breakers.thresholds[0].max_connection_pools =
                    given["thresholds"]["max_connection_pools"].as_u64();
                let core = Core::new(&specs, Settings::default(), Time(1)).unwrap();
                // By runtime alone, and by documents that bring it.
                for whole in [false, true] {
                    if whole {
                        specs.runtime.clone_from(&values);
                        core.set_runtime(&[], Time(1));
                        core.update(&specs, Time(1)).unwrap();
                    } else {
                        core.set_runtime(&values, Time(1));
                    }
                    let snapshot = core.current.lock().clone();
                    let limits = &snapshot.clusters[0].view.as_ref().unwrap().limits;
                    for (resource, wanted) in expect["max"].as_object().unwrap() {
                        let wanted = wanted.as_u64().unwrap();
                        let found = match resource.as_str() {
                            "connections" => limits[0].max_connections.into(),
                            "pending" => limits[0].max_pending_requests.into(),
                            "requests" => limits[0].max_requests.into(),
                            "connection_pools" => limits[0].max_connection_pools.unwrap(),
                            "retries" => match limits[0].retry_budget {
                                // What the budget leaves without any request.
                                Some(budget) => budget.min_retry_concurrency.into(),
                                None => limits[0].max_retries.into(),
                            },
                            other => panic!("no {other}"),
                        };
                        assert_eq!(found, wanted, "{id}: {resource}");
                        let can = found > 0;
                        assert_eq!(can, expect["can_create"][resource].as_bool().unwrap_or(can), "{id}");
                    }
                    assert_eq!(limits[1], Thresholds::default(), "the other priority has its own");
                }
            }
            "open-gauges" => {
                assert!(expect["cx_open"].as_str().unwrap().starts_with("1 while"));
                let mut burst = Burst::new(&serde_json::json!({"thresholds": given}));
                let open =
                    |burst: &Burst, leaf: &str| burst.stats()[&format!("circuit_breakers.default.{leaf}")];
                assert_eq!((open(&burst, "cx_open"), open(&burst, "rq_pending_open")), (0, 0));
                burst.send();
                assert_eq!(open(&burst, "rq_pending_open"), 1, "it waits for its connection");
                burst.play(0, 0);
                assert_eq!((open(&burst, "cx_open"), open(&burst, "rq_pending_open")), (1, 0));
            }
            other => panic!("no test for {other}"),
        }
    }
}

/// Every resource is taken and given back by requests; the gauges follow.
fn remaining(given: &Json, expect: &Json) {
    let names = |resource: &str| match resource {
        "connections" => "remaining_cx",
        "pending" => "remaining_pending",
        "requests" => "remaining_rq",
        "retries" => "remaining_retries",
        "connection_pools" => "remaining_cx_pools",
        other => panic!("no {other}"),
    };
    let burst = Burst::new(given);
    let ledger = {
        let snapshot = burst.core.current.lock().clone();
        std::sync::Arc::clone(&snapshot.clusters[0].shared)
    };
    let gauge = |resource: &str| burst.stats()[&format!("circuit_breakers.default.{}", names(resource))];
    for (resource, left) in expect["remaining_before"].as_object().unwrap() {
        assert_eq!(gauge(resource), left.as_u64().unwrap(), "{resource} before");
    }
    let slot = burst.core.host_states("c")[0].slot;
    let pool = &burst.core.hosts.load(slot).pools[0];
    let steps = given["steps"].as_array().unwrap();
    for (step, wanted) in steps.iter().zip(expect["remaining_after_each_step"].as_array().unwrap()) {
        let (resource, more) = (step[0].as_str().unwrap(), step[1] == "inc");
        let count = |count| if more { super::ledger::take_anyway(count) } else { super::ledger::give(count) };
        let ledger = &ledger.ledgers[0];
        match resource {
            "connections" => count(&ledger.connections),
            "pending" => count(&ledger.pending),
            "retries" => count(&ledger.retries),
            "requests" if more => ledger.take_request_anyway(),
            "requests" => ledger.give_request(),
            // A pool is a host with connections.
            _ if more => assert!(super::pool::connect(pool)),
            _ => assert_eq!(super::pool::close_idle(pool, 1), 1),
        }
        assert_eq!(gauge(resource), wanted.as_u64().unwrap(), "{step}");
    }
}
