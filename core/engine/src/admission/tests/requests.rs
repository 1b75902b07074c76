//! What requests tell their gates.

use crate::clock::Time;
use crate::engine::{Core, Settings};
use crate::headers::pack;
use crate::inspect::Stat;
use crate::outcome::{Decision, Head, Outcome, Verdict, action, failure, finish, kind, refusal};
use crate::request::{Report, Stateless};
use crate::spec::*;
use crate::worker::Worker;
use std::collections::BTreeMap;
use std::time::Duration;

const MILLI: u64 = 1_000_000;

struct Mesh {
    core: Core,
    worker: Worker,
    specs: Specs,
    now: Time,
}

fn admission() -> AdmissionSpec {
    AdmissionSpec::default()
}

fn concurrency() -> ConcurrencySpec {
    ConcurrencySpec::new(Duration::from_millis(100), MinRtt::Measured(Duration::from_secs(30)))
}

impl Mesh {
    /// A cluster `c` behind route `/`; `/direct` answers by itself, `/none` leads nowhere.
    fn new(gates: Vec<GateSpec>, change: impl FnOnce(&mut ClusterSpec)) -> Self {
        let host = EndpointSpec { address: "10.0.0.1:80".into(), port: 80, ..EndpointSpec::default() };
        let group = LocalityEndpoints { endpoints: vec![host.into()], ..LocalityEndpoints::default() };
        let mut cluster = ClusterSpec {
            name: "c".into(),
            endpoints: Endpoints { localities: vec![group], ..Endpoints::default() },
            ..ClusterSpec::default()
        };
        change(&mut cluster);
        let route = |path: &str, action| RouteSpec {
            matcher: MatchSpec { path: PathMatch::Prefix(path.into()), ..MatchSpec::default() },
            action,
            ..RouteSpec::default()
        };
        let to = |name: &str| {
            RouteAction::Forward(Box::new(ForwardSpec {
                cluster: ClusterSource::Name(name.into()),
                retry: Some(RetrySpec { on: RetryOn::FIVE_XX, num_retries: 1, ..RetrySpec::default() }),
                ..ForwardSpec::default()
            }))
        };
        let direct = RouteAction::Direct { status: 204, body: String::new() };
        let host = VirtualHostSpec {
            domains: vec!["*".into()],
            routes: vec![route("/direct", direct), route("/none", to("none")), route("/", to("c"))],
            ..VirtualHostSpec::default()
        };
        let table = RouteTableSpec {
            virtual_hosts: vec![host],
            stat_prefix: "in".into(),
            gates,
            ..RouteTableSpec::default()
        };
        let specs = Specs { clusters: vec![cluster], route_tables: vec![table], ..Specs::default() };
        let core = Core::new(&specs, Settings::default(), Time(1)).unwrap();
        let worker = core.worker(Time(1));
        Self { core, worker, specs, now: Time(1) }
    }

    fn pass(&mut self, ms: u64) {
        self.now = self.now.plus(ms * MILLI);
    }

    fn begin(&mut self, path: &str) -> Decision {
        let head = Head { method: "GET", authority: "a", path, ..Head::default() };
        let mut out = Decision::default();
        self.core.begin(&mut self.worker, &head, None, self.now, &mut out).unwrap();
        out
    }

    fn report(&mut self, out: &Decision, outcome: &Outcome<'_>, kind: Report) -> u8 {
        Verdict::from(self.core.report(&mut self.worker, out.attempt, outcome, kind, self.now)).action
    }

    fn answer(&mut self, out: &Decision, status: u16) -> u8 {
        self.report(out, &Outcome::status(status), Report::Whole)
    }

    fn again(&mut self, out: &mut Decision) {
        self.pass(60);
        self.core.choose(&mut self.worker, out.request, self.now, out).unwrap();
    }

    fn stats(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        self.core.stats(&mut |name, stat| {
            let (Stat::Counter(value) | Stat::Gauge(value)) = stat;
            all.insert(name.to_owned(), value);
        });
        all
    }

    fn admitted(&self, prefix: &str) -> [u64; 3] {
        let stats = self.stats();
        ["rejected", "success", "failure"].map(|leaf| stats[&format!("{prefix}.admission_control.rq_{leaf}")])
    }

    fn gradient(&self, leaf: &str) -> u64 {
        self.stats()[&format!("http.in.adaptive_concurrency.gradient_controller.{leaf}")]
    }
}

#[test]
fn the_final_answer_counts_once() {
    let never = AdmissionSpec { rps_threshold: Tunable::of(1e9), ..admission() };
    let mut mesh = Mesh::new(vec![GateSpec::Admission(never)], |_| {});
    let mut out = mesh.begin("/x");
    assert_eq!(mesh.answer(&out, 503), action::RETRY);
    assert_eq!(mesh.admitted("http.in"), [0, 0, 0], "it is tried again");
    mesh.again(&mut out);
    assert_eq!(mesh.answer(&out, 200), action::FORWARD);
    assert_eq!(mesh.admitted("http.in"), [0, 1, 0]);
    // A failure that is ours to answer: 503.
    let mut out = mesh.begin("/x");
    mesh.report(&out, &Outcome::failed(failure::CONNECT_FAILURE), Report::Fail);
    mesh.again(&mut out);
    mesh.report(&out, &Outcome::failed(failure::CONNECT_FAILURE), Report::Fail);
    assert_eq!(mesh.admitted("http.in"), [0, 1, 1]);
    assert_eq!(mesh.begin("/direct").refusal, refusal::DIRECT_RESPONSE);
    assert_eq!(mesh.admitted("http.in"), [0, 2, 1]);
    assert_eq!(mesh.begin("/none").refusal, refusal::NO_CLUSTER);
    assert_eq!(mesh.admitted("http.in"), [0, 2, 2]);
    // What is given up is not known to have failed.
    let out = mesh.begin("/x");
    mesh.core.finish(&mut mesh.worker, out.request, finish::CLIENT_GONE, mesh.now);
    let out = mesh.begin("/x");
    mesh.core.cancel(&mut mesh.worker, out.attempt, mesh.now);
    assert_eq!(mesh.admitted("http.in"), [0, 2, 2]);
    let out = mesh.begin("/x");
    mesh.core.finish(&mut mesh.worker, out.request, finish::GLOBAL_TIMEOUT, mesh.now);
    assert_eq!(mesh.admitted("http.in"), [0, 2, 3], "504");
}

#[test]
fn a_grpc_answer_is_judged_by_its_status_alone() {
    let never = AdmissionSpec { rps_threshold: Tunable::of(1e9), ..admission() };
    let mut mesh = Mesh::new(vec![GateSpec::Admission(never)], |_| {});
    let outcome = |grpc| Outcome { grpc_status: grpc, ..Outcome::status(200) };
    let out = mesh.begin("/x");
    mesh.report(&out, &outcome(14), Report::Whole);
    assert_eq!(mesh.admitted("http.in"), [0, 0, 1]);
    // The content type is wanted, and tells that the status is yet to come.
    let mut grpc_stream = |trailers: Option<i8>| {
        let out = mesh.begin("/x");
        let (_, names) = mesh.core.want(u32::from(out.want_ok)).unwrap();
        let at = names.iter().position(|name| &**name == "content-type").unwrap();
        let mut block = Vec::new();
        pack(&mut block, at as u16, b"application/grpc+proto");
        let headers = Outcome { headers: &block, ..Outcome::status(200) };
        let before = mesh.admitted("http.in");
        assert_eq!(mesh.report(&out, &headers, Report::Headers), action::FORWARD);
        assert_eq!(mesh.admitted("http.in"), before, "not before the trailers");
        let end = trailers
            .map_or_else(Outcome::default, |grpc_status| Outcome { grpc_status, ..Outcome::default() });
        mesh.core.end(&mut mesh.worker, out.attempt, &end, mesh.now);
        mesh.admitted("http.in")
    };
    assert_eq!(grpc_stream(Some(0)), [0, 1, 1]);
    assert_eq!(grpc_stream(Some(13)), [0, 1, 2]);
    assert_eq!(grpc_stream(None), [0, 1, 3], "no status at all is a failure");
}

#[test]
fn rejected() {
    let mut mesh = Mesh::new(vec![GateSpec::Admission(admission())], |_| {});
    for _ in 0..50 {
        let mut out = mesh.begin("/x");
        if out.kind == kind::GO {
            mesh.answer(&out, 500);
            mesh.again(&mut out);
            mesh.answer(&out, 500);
        }
    }
    let [rejected, good, bad] = mesh.admitted("http.in");
    assert!(rejected > 20 && good == 0, "{rejected}");
    assert_eq!(rejected + bad, 50);
    let before = mesh.stats()["cluster.c.upstream_rq_total"];
    let out = std::iter::from_fn(|| Some(mesh.begin("/x"))).find(|out| out.kind == kind::REFUSED).unwrap();
    assert_eq!((out.status, out.refusal, out.flags), (503, refusal::ADMISSION, 0));
    let reply = mesh.core.reply(out.request).unwrap().unwrap();
    assert_eq!((reply.status, &*reply.details, &*reply.body), (503, "denied_by_admission_control", ""));
    assert!(reply.headers.is_empty(), "no x-envoy-overloaded");
    assert!(mesh.stats()["cluster.c.upstream_rq_total"] <= before + 50);
}

#[test]
fn requests_under_way_are_limited() {
    let spec = ConcurrencySpec { exceeded_status: 429, request_count: 4, ..concurrency() };
    let mut mesh = Mesh::new(vec![GateSpec::Concurrency(spec)], |_| {});
    let open: Vec<Decision> = (0..3).map(|_| mesh.begin("/x")).collect();
    let out = mesh.begin("/x");
    assert_eq!((out.kind, out.status, out.refusal), (kind::REFUSED, 429, refusal::CONCURRENCY));
    let reply = mesh.core.reply(out.request).unwrap().unwrap();
    assert_eq!((&*reply.details, &*reply.body), ("reached_concurrency_limit", "reached concurrency limit"));
    assert_eq!((mesh.gradient("rq_blocked"), mesh.gradient("nexthop_rq_active")), (1, 3));
    mesh.pass(20);
    // Headers alone free nothing; the end of the stream does.
    mesh.report(&open[0], &Outcome::status(200), Report::Headers);
    assert_eq!(mesh.begin("/x").kind, kind::REFUSED);
    mesh.core.end(&mut mesh.worker, open[0].attempt, &Outcome::default(), mesh.now);
    mesh.answer(&open[1], 200);
    mesh.core.cancel(&mut mesh.worker, open[2].attempt, mesh.now);
    assert_eq!((mesh.gradient("nexthop_rq_active"), mesh.gradient("min_rtt_calculation_active")), (0, 1));
    for _ in 0..2 {
        assert_eq!(mesh.gradient("min_rtt_calculation_active"), 1, "the cancelled one was no sample");
        let out = mesh.begin("/x");
        mesh.pass(20);
        mesh.answer(&out, 200);
    }
    assert_eq!((mesh.gradient("min_rtt_calculation_active"), mesh.gradient("min_rtt_msecs")), (0, 20));
    // Answers as quick as ever raise the limit: 3 * 1.22 + 1.9.
    let out = mesh.begin("/x");
    mesh.pass(20);
    mesh.answer(&out, 200);
    mesh.pass(100);
    mesh.core.maintain(&mut mesh.worker, mesh.now);
    assert_eq!(mesh.gradient("concurrency_limit"), 5);
    assert_eq!(mesh.gradient("sample_rtt_msecs"), 20);
    assert!(mesh.core.deadline() <= mesh.now.plus(100 * MILLI), "the next update is on the calendar");
    // A broken stream is no sample and frees its place.
    let out = mesh.begin("/x");
    mesh.report(&out, &Outcome::status(200), Report::Headers);
    mesh.core.end(&mut mesh.worker, out.attempt, &Outcome::failed(failure::REMOTE_RESET), mesh.now);
    assert_eq!(mesh.gradient("nexthop_rq_active"), 0);
}

#[test]
fn a_clusters_own_gates_replace_the_tables() {
    let own = AdmissionSpec { rps_threshold: Tunable::of(1e9), ..admission() };
    let gates = vec![GateSpec::Concurrency(concurrency()), GateSpec::Admission(admission())];
    let mut mesh = Mesh::new(gates, |cluster| cluster.admission = Some(own));
    for _ in 0..5 {
        let out = mesh.begin("/x");
        mesh.answer(&out, 404);
    }
    assert_eq!((mesh.admitted("cluster.c"), mesh.admitted("http.in")), ([0, 5, 0], [0, 0, 0]));
    assert_eq!(mesh.begin("/direct").status, 204);
    assert_eq!(mesh.admitted("http.in"), [0, 1, 0], "it leads to no cluster");
    // A cluster that is named directly is treated as by the route that leads there.
    let head = Head { target: mesh.core.resolve("c").unwrap(), ..Head::default() };
    let mut out = Decision::default();
    mesh.core.begin(&mut mesh.worker, &head, None, mesh.now, &mut out).unwrap();
    assert_eq!(mesh.gradient("nexthop_rq_active"), 1);
    mesh.answer(&out, 200);
    // So is a stateless attempt, by a head or without one; each is a request of its own.
    for by_head in [true, false] {
        if by_head {
            let stateless = Some(Stateless { number: 2 });
            mesh.core.begin(&mut mesh.worker, &head, stateless, mesh.now, &mut out).unwrap();
        } else {
            mesh.core.pick(&mut mesh.worker, head.target, 1, None, mesh.now, &mut out).unwrap();
        }
        assert_eq!((out.kind, mesh.gradient("nexthop_rq_active")), (kind::GO, 1));
        mesh.report(&out, &Outcome::status(500), Report::Whole);
        assert_eq!(mesh.gradient("nexthop_rq_active"), 0);
    }
    assert_eq!(mesh.admitted("cluster.c"), [0, 6, 2]);
}

/// A dry run decides and tells; whoever would have been refused passes, and counts as under way.
#[test]
fn dry_runs_refuse_nobody() {
    let would = |mesh: &Mesh, mechanism: &str| {
        let name = format!("cluster.c.nexthop.{mechanism}.dry_run");
        let events: Vec<String> = std::iter::from_fn(|| mesh.core.poll_event()).collect();
        let told = format!(r#"{{"type":"nexthop.would","mechanism":"{mechanism}","cluster_name":"c"}}"#);
        assert!(events.iter().all(|event| *event == told), "{events:?}");
        let counted = mesh.stats().get(&name).copied().unwrap_or(0);
        (counted, events.len())
    };
    let spec = ConcurrencySpec { min_concurrency: 2, dry_run: true, ..concurrency() };
    let mut mesh = Mesh::new(Vec::new(), |cluster| cluster.concurrency = Some(spec));
    let active = "cluster.c.adaptive_concurrency.gradient_controller.nexthop_rq_active";
    let open: Vec<Decision> = (0..5).map(|_| mesh.begin("/x")).collect();
    assert!(open.iter().all(|out| out.kind == kind::GO));
    assert_eq!((would(&mesh, "concurrency"), mesh.stats()[active]), ((3, 3), 5));
    for out in &open {
        mesh.answer(out, 200);
    }
    let blocked = "cluster.c.adaptive_concurrency.gradient_controller.rq_blocked";
    assert_eq!((mesh.stats()[active], mesh.stats()[blocked]), (0, 0));

    let spec = AdmissionSpec { dry_run: true, ..admission() };
    let mut mesh = Mesh::new(Vec::new(), |cluster| cluster.admission = Some(spec));
    for _ in 0..100 {
        let out = mesh.begin("/x");
        assert_eq!(mesh.answer(&out, 404), action::FORWARD);
    }
    assert_eq!(would(&mesh, "admission"), (0, 0), "all is well");
    for _ in 0..400 {
        let mut out = mesh.begin("/x");
        assert_eq!(out.kind, kind::GO);
        if mesh.answer(&out, 500) == action::RETRY {
            mesh.again(&mut out);
            assert_eq!(mesh.answer(&out, 500), action::FORWARD);
        }
    }
    let (counted, told) = would(&mesh, "admission");
    assert!(counted > 100, "{counted}");
    assert!(told > 0, "as many as the ring holds");
    let [rejected, good, bad] = mesh.admitted("cluster.c");
    assert_eq!((rejected, good, bad), (0, 100, 400), "who would have been rejected counts by its answer");
}

#[test]
fn what_was_learned_survives_updates_that_leave_the_gate_alone() {
    let mut mesh = Mesh::new(vec![GateSpec::Admission(admission())], |_| {});
    let out = mesh.begin("/x");
    mesh.specs.clusters[0].panic_threshold = 1;
    mesh.core.update(&mesh.specs.clone(), mesh.now).unwrap();
    mesh.answer(&out, 200);
    assert_eq!(mesh.admitted("http.in"), [0, 1, 0]);
    let out = mesh.begin("/x");
    mesh.specs.route_tables[0].gates = vec![GateSpec::Admission(AdmissionSpec {
        sampling_window: Duration::from_secs(1),
        enabled: Switch { on: true, key: "on".into() },
        ..admission()
    })];
    mesh.core.update(&mesh.specs.clone(), mesh.now).unwrap();
    mesh.answer(&out, 200);
    assert_eq!(mesh.admitted("http.in"), [0, 0, 0], "the old one has heard it");
    mesh.core.set_runtime(&[("on".into(), Value::Bool(false))], mesh.now);
    let out = mesh.begin("/x");
    mesh.answer(&out, 200);
    assert_eq!(mesh.admitted("http.in"), [0, 0, 0], "off");
}
