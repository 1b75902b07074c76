//! Random sequences of calls: against the model where it is exact, against invariants with queues, ejections, updates
//! and composite clusters.

use crate::bytes::Bytes;
use crate::model::{Chosen, Model, Report, Rules, Told, chosen, told};
use nexthop::raw::{
    self, Decision, Document, Head, HostChange, Options, Outcome, Ready, Stat, bits, clock, document_kind,
    failure, host_op, kind,
};
use std::collections::HashMap;

/// First byte: which of both; then the shape of the mesh, then the calls.
pub fn lifecycle(data: &[u8]) {
    let mut bytes = Bytes(data);
    if bytes.flag() {
        exact(&mut bytes);
    } else {
        Free::new(&mut bytes).play(&mut bytes);
    }
}

fn open(text: &str) -> u64 {
    let document = Document { kind: document_kind::TEXT, dialect: "", name: "", text: text.as_bytes() };
    let options = Options { workers: 1, seed: 9, clock: clock::MANUAL, ..Options::default() };
    raw::engine_new(&options, &[document]).unwrap_or_else(|error| panic!("{error}"))
}

fn stat(engine: u64, name: &str) -> u64 {
    let mut found = None;
    raw::stats(engine, &mut |known, stat| {
        if known == name {
            found = Some(match stat {
                Stat::Counter(value) | Stat::Gauge(value) => value,
            });
        }
    })
    .expect("the engine is open");
    found.unwrap_or_default()
}

fn close(engine: u64) {
    let info = raw::engine_info(engine).expect("the engine is open");
    assert_eq!((info.panics, info.live_requests), (0, 0), "something is left");
    raw::engine_free(engine).expect("the engine is open");
}

fn shape(rules: Rules) -> String {
    let hosts: Vec<String> = (0..rules.hosts).map(|i| format!("10.0.0.{}:80", i + 1)).collect();
    format!(
        "clusters: {{web: {{hosts: [{}], limits: {{requests: {}, retries: {}}}, \
         retry: {{on: [5xx, reset, connect-failure], times: {}, backoff: {{base: 1ms, max: 2ms}}}}}}}}",
        hosts.join(", "),
        rules.max_requests,
        rules.max_retries,
        rules.num_retries
    )
}

fn exact(bytes: &mut Bytes<'_>) {
    let rules = Rules {
        hosts: bytes.below(4) + 1,
        max_requests: bytes.below(5) + 1,
        max_retries: bytes.below(4),
        num_retries: bytes.below(4) as u32,
    };
    let engine = open(&shape(rules));
    let target = raw::resolve(engine, "web").expect("the cluster is there");
    let mut model = Model::new(rules);
    // Of each call: its request, its newest attempt, and when its back-off is over.
    let mut ids: Vec<(u64, u64, u64)> = Vec::new();
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut first = None;
    while !bytes.is_empty() && ids.len() < 64 {
        let op = bytes.below(12);
        if op < 4 || ids.is_empty() {
            let mut decision = Decision::default();
            let head = Head { target, ..Head::default() };
            let answer = raw::with_local(|local| raw::begin(local, engine, &head, 0, &mut decision));
            ids.push((decision.request, decision.attempt, 0));
            let wanted = model.begin();
            check(&mut places, &mut first, rules, &wanted, answer, &decision);
            continue;
        }
        let at = bytes.below(ids.len());
        let (request, attempt, due) = ids[at];
        let report = match op {
            4 => Report::Complete { bad: false },
            5 => Report::Complete { bad: true },
            6 => Report::Headers { bad: false },
            7 => Report::Headers { bad: true },
            8 => Report::Fail,
            9 => Report::End,
            10 => {
                let mut decision = Decision::default();
                let answer = raw::with_local(|local| raw::choose(local, request, 0, &mut decision));
                let wanted = model.choose(at, raw::now(engine) >= due);
                check(&mut places, &mut first, rules, &wanted, answer, &decision);
                if decision.kind == kind::GO {
                    ids[at].1 = decision.attempt;
                }
                continue;
            }
            _ => {
                match bytes.below(3) {
                    0 => {
                        raw::with_local(|local| raw::cancel(local, attempt, 0));
                        model.cancel(at);
                    }
                    1 => {
                        raw::with_local(|local| raw::finish(local, request, raw::finish::CLIENT_GONE, 0));
                        model.close(at);
                    }
                    _ => raw::advance(engine, 3_000_000).expect("the manual clock moves"),
                }
                continue;
            }
        };
        let outcome = |bad| Outcome::status(if bad { 503 } else { 200 });
        let verdict = raw::with_local(|local| match report {
            Report::Complete { bad } => raw::complete(local, attempt, &outcome(bad), 0),
            Report::Headers { bad } => raw::headers(local, attempt, &outcome(bad), 0),
            Report::Fail => raw::fail(local, attempt, failure::CONNECT_FAILURE.into(), 0),
            Report::End => raw::end(local, attempt, None, 0),
        });
        // A request that was refused at once has no attempt: zero is no handle.
        let wanted = if attempt == 0 { Told::Misuse(-1) } else { model.report(at, report) };
        assert_eq!(told(verdict), wanted, "{report:?} of call {at}");
        if wanted == Told::Retry {
            ids[at].2 = raw::now(engine) + u64::from(verdict.after_ms) * 1_000_000;
        }
        assert_eq!(stat(engine, "cluster.web.upstream_rq_active") as usize, model.active);
    }
    assert_eq!(raw::engine_info(engine).expect("open").live_requests as usize, model.live());
    assert_eq!(stat(engine, "cluster.web.upstream_rq_total"), model.total);
    for (at, (request, ..)) in ids.iter().enumerate() {
        raw::with_local(|local| raw::finish(local, *request, raw::finish::SHUTDOWN, 0));
        model.close(at);
        assert!(model.is_done(at));
    }
    assert_eq!((model.active, model.retrying), (0, 0));
    assert_eq!(stat(engine, "cluster.web.upstream_rq_active"), 0);
    close(engine);
}

/// Holds an answer against the model's. Hosts are numbered by slot, the first chosen one is place 0.
fn check(
    places: &mut HashMap<u32, usize>,
    first: &mut Option<usize>,
    rules: Rules,
    wanted: &Chosen,
    answer: Result<(), raw::Misuse>,
    decision: &Decision,
) {
    let mut place = 0;
    if let (Ok(()), kind::GO, Chosen::Go(_, expected)) = (&answer, decision.kind, wanted) {
        // Every slot keeps the place where it was first seen; a wrong turn shows as a second place.
        let start = *first.get_or_insert(*expected);
        place = *places.entry(decision.host).or_insert((*expected + rules.hosts - start) % rules.hosts);
        place = (place + start) % rules.hosts;
    }
    assert_eq!(chosen(answer, decision, place), *wanted);
}

const FREE: &str = r#"
static_resources:
  clusters:
  - name: web
    lb_policy: POLICY
    circuit_breakers: {thresholds: [{max_requests: REQUESTS, max_connections: CONNECTIONS, max_pending_requests: PENDING,
      retry_budget: {budget_percent: {value: 30}, min_retry_concurrency: 2}}]}
    outlier_detection: {consecutive_5xx: 2, base_ejection_time: 0.01s, interval: 0.01s, max_ejection_percent: 50}
    load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [
      {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}},
      {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}]}]}
    nexthop: {connections: STYLE}
  - name: spare
    load_assignment: {cluster_name: spare, endpoints: [{lb_endpoints: [
      {endpoint: {address: {socket_address: {address: 10.0.1.1, port_value: 80}}}}]}]}
  - name: both
    lb_policy: CLUSTER_PROVIDED
    cluster_type: {name: envoy.clusters.composite, typed_config: {
      "@type": type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig,
      clusters: [{name: web}, {name: spare}]}}
---
name: routes
virtual_hosts:
- name: all
  domains: ["*"]
  retry_policy: {retry_on: "5xx,reset,connect-failure", num_retries: 2,
    retry_back_off: {base_interval: 0.001s, max_interval: 0.002s}}
  routes:
  - match: {prefix: /both}
    route: {cluster: both, timeout: 1s}
  - match: {prefix: /}
    route: {cluster: web, timeout: 1s}
"#;

/// A mesh with everything in it, and what is known from outside.
struct Free {
    engine: u64,
    requests: usize,
    policy: &'static str,
    style: &'static str,
    /// Requests ever begun, with their newest attempt.
    calls: Vec<(u64, u64)>,
}

impl Free {
    fn new(bytes: &mut Bytes<'_>) -> Self {
        let policy = bytes.pick(&["ROUND_ROBIN", "LEAST_REQUEST", "RANDOM", "RING_HASH", "MAGLEV"]);
        let style = bytes.pick(&["queue", "count", "strict"]);
        let requests = bytes.below(6) + 1;
        let engine = open(&Self::text(policy, style, requests, bytes.below(4) + 1, bytes.below(4)));
        Self { engine, requests, policy, style, calls: Vec::new() }
    }

    fn text(policy: &str, style: &str, requests: usize, connections: usize, pending: usize) -> String {
        FREE.replace("POLICY", policy)
            .replace("STYLE", style)
            .replace("REQUESTS", &requests.to_string())
            .replace("CONNECTIONS", &connections.to_string())
            .replace("PENDING", &pending.to_string())
    }

    fn play(mut self, bytes: &mut Bytes<'_>) {
        let mut steps = 0;
        while !bytes.is_empty() && steps < 400 {
            steps += 1;
            self.step(bytes);
        }
        for (request, _) in &self.calls {
            raw::with_local(|local| raw::finish(local, *request, raw::finish::CLIENT_GONE, 0));
        }
        for cluster in ["web", "spare"] {
            let mut left = Vec::new();
            raw::stats(self.engine, &mut |name, stat| {
                if let (Some(name), Stat::Gauge(1..)) = (name.strip_prefix("cluster."), stat)
                    && let Some(leaf) = name.strip_prefix(cluster)
                    && (leaf.ends_with("_active") || leaf.ends_with("_open"))
                    && leaf.starts_with(".upstream_rq")
                {
                    left.push(leaf.to_owned());
                }
            })
            .expect("the engine is open");
            assert!(left.is_empty(), "gauges of {cluster} that are not 0: {left:?}");
        }
        close(self.engine);
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let engine = self.engine;
        let mut decision = Decision::default();
        let op = bytes.below(16);
        if op < 5 || self.calls.is_empty() {
            let head = Head {
                path: bytes.pick(&["/", "/both"]),
                authority: "a",
                priority: bytes.pick(&[-1, 0, 1]),
                body: bytes.below(4) as u8,
                ..Head::default()
            };
            raw::with_local(|local| raw::begin(local, engine, &head, 0, &mut decision)).expect("a good head");
            self.calls.push((decision.request, decision.attempt));
            return self.chosen(&decision);
        }
        let at = bytes.below(self.calls.len());
        let (request, attempt) = self.calls[at];
        let signals = match op {
            5 | 6 => {
                if raw::with_local(|local| raw::choose(local, request, 0, &mut decision)).is_ok() {
                    if decision.kind == kind::GO {
                        self.calls[at].1 = decision.attempt;
                    }
                    self.chosen(&decision);
                }
                decision.bits
            }
            7..=11 => {
                let status = bytes.pick(&[200, 200, 500, 503, 404, 100]);
                let failure = bytes.pick(&[0, 0, 1, 3, 4, 8, 14]);
                let outcome =
                    Outcome { status, failure, bits: u32::from(bytes.byte() & 31), ..Outcome::default() };
                let verdict = raw::with_local(|local| match op {
                    7 | 8 => raw::complete(local, attempt, &outcome, 0),
                    9 => raw::headers(local, attempt, &outcome, 0),
                    10 => raw::end(local, attempt, Some(&outcome), 0),
                    _ => raw::complete_next(local, attempt, &outcome, 0, &mut decision),
                });
                if op == 11 && verdict.code == 0 && decision.kind == kind::GO {
                    self.calls[at].1 = decision.attempt;
                }
                assert!(verdict.code != -11, "a bug inside");
                u16::from(verdict.bits)
            }
            12 => match bytes.below(3) {
                0 => u16::from(raw::with_local(|local| raw::cancel(local, attempt, 0)).bits),
                1 => u16::from(
                    raw::with_local(|local| raw::finish(local, request, u32::from(bytes.byte()) % 7, 0)).bits,
                ),
                _ => raw::with_local(|local| raw::note(local, attempt, u32::from(bytes.byte()) % 7, 0))
                    .unwrap_or(0),
            },
            13 => {
                raw::advance(engine, u64::from(bytes.byte()) * 2_000_000).expect("the manual clock moves");
                raw::maintain(engine, 0).expect("the engine is open")
            }
            14 => {
                let op = bytes.pick(&[host_op::ADD, host_op::REMOVE, host_op::CHANGE]);
                let address = bytes.pick(&["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"]);
                let fields = u32::from(bytes.byte() & 63);
                let health = bytes.below(7) as u8;
                let change = HostChange { op, address, fields, health, ..HostChange::default() };
                let _ = raw::apply(engine, "web", &[change]);
                bits::WAKE
            }
            _ => {
                self.requests = bytes.below(6) + 1;
                let text =
                    Self::text(self.policy, self.style, self.requests, bytes.below(4) + 1, bytes.below(4));
                let document =
                    Document { kind: document_kind::TEXT, dialect: "", name: "", text: text.as_bytes() };
                raw::update(engine, &[document]).expect("a good document");
                bits::WAKE
            }
        };
        if signals & bits::WAKE != 0 {
            self.serve();
        }
    }

    /// Whoever may go on asks again, once.
    fn serve(&mut self) {
        let mut ready = [Ready::default(); 8];
        let count = raw::with_local(|local| raw::poll_ready(local, self.engine, &mut ready)).expect("open");
        for ready in &ready[..count] {
            let mut decision = Decision::default();
            if raw::with_local(|local| raw::choose(local, ready.request, 0, &mut decision)).is_ok() {
                if let Some(call) = self.calls.iter_mut().find(|call| call.0 == ready.request)
                    && decision.kind == kind::GO
                {
                    call.1 = decision.attempt;
                }
                self.chosen(&decision);
            }
        }
    }

    fn chosen(&self, decision: &Decision) {
        assert!((kind::GO..=kind::REFUSED).contains(&decision.kind));
        assert!(decision.number <= 3, "attempt {} of at most 3", decision.number);
        if decision.kind == kind::WAIT {
            assert!(decision.wait <= 1_000_000_000, "a wait of {} ns", decision.wait);
        }
    }
}
