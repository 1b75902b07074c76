//! Requests that are turned away before any host is chosen: `drop_overloads` and maintenance mode.

use nexthop::raw::{self, Decision, Document, Head, HostChange, Options, Outcome, action};
use nexthop::raw::{clock, document_kind, flags, host_op, kind, refusal};
use serde_json::Value;

struct Mesh(u64);

const TEXT: u8 = document_kind::TEXT;
const HALF: u64 = 1 << 63;

fn document(kind: u8, text: &str) -> Document<'_> {
    Document { kind, dialect: "", name: "", text: text.as_bytes() }
}

fn assignment(policy: &str) -> String {
    let host = "{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}";
    format!("{{cluster_name: c, {policy} endpoints: [{{lb_endpoints: [{host}]}}]}}")
}

fn dropping(numerator: u32) -> String {
    format!("policy: {{drop_overloads: [{{category: x, drop_percentage: {{numerator: {numerator}}}}}]}},")
}

impl Mesh {
    /// A cluster `c` with one host, random choice and one retry, and a composite `both` of it.
    fn new(policy: &str, runtime: &str, draws: &[u64]) -> Self {
        let retry = "{retry_on: 5xx, num_retries: 1, retry_back_off: {base_interval: 0.001s}}";
        let mesh = format!(
            "- {{name: c, lb_policy: RANDOM, load_assignment: {}}}\n\
             - {{name: both, lb_policy: CLUSTER_PROVIDED, cluster_type: {{name: x, typed_config: {{\"@type\": \
             type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig, clusters: [{{name: c}}]}}}}}}\n\
             - {{virtual_hosts: [{{name: v, domains: ['*'], routes: [{{match: {{prefix: /}}, route: {{cluster: c, \
             retry_policy: {retry}}}}}]}}]}}",
            assignment(policy)
        );
        let options =
            Options { workers: 1, clock: clock::MANUAL, draws: Some(draws.to_vec()), ..Options::default() };
        let mut documents = vec![document(TEXT, &mesh)];
        if !runtime.is_empty() {
            documents.push(document(document_kind::RUNTIME, runtime));
        }
        Self(raw::engine_new(&options, &documents).unwrap_or_else(|error| panic!("{error}")))
    }

    fn begin(&self, head: &Head<'_>) -> Decision {
        let mut out = Decision::default();
        raw::with_local(|local| raw::begin(local, self.0, head, 0, &mut out)).unwrap();
        out
    }

    fn to(&self, cluster: &str) -> Decision {
        self.begin(&Head { target: raw::resolve(self.0, cluster).unwrap(), ..Head::default() })
    }

    /// How a request to the cluster ends before it began; 0 = it has a host.
    fn refusal(&self) -> u8 {
        let out = self.to("c");
        if out.kind == kind::GO {
            raw::with_local(|local| raw::complete_status(local, out.attempt, 200, 0));
        }
        out.refusal
    }

    fn stat(&self, name: &str) -> u64 {
        let mut found = 0;
        raw::stats(self.0, &mut |stat, value| {
            let (raw::Stat::Counter(value) | raw::Stat::Gauge(value)) = value;
            if stat == name {
                found = value;
            }
        })
        .unwrap();
        found
    }

    fn apply(&self, change: HostChange<'_>) {
        raw::apply(self.0, "c", &[change]).unwrap_or_else(|error| panic!("{error}"));
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        raw::engine_free(self.0).unwrap();
    }
}

#[test]
fn everything_is_dropped_without_a_draw() {
    let mesh = Mesh::new(&dropping(100), "", &[HALF]);
    let out = mesh.to("c");
    assert_eq!(
        (out.kind, out.refusal, out.status, out.number),
        (kind::REFUSED, refusal::UNCONDITIONAL_DROP_OVERLOAD, 503, 0)
    );
    assert_eq!(flags::text(out.flags), "UDO");
    let reply = raw::reply(out.request).unwrap().unwrap();
    assert_eq!(
        (reply.status, reply.details.as_str(), reply.body.as_str()),
        (503, "unconditional_drop_overload", "unconditional drop overload")
    );
    let header = ("x-envoy-unconditional-drop-overload".to_owned(), "true".to_owned());
    assert!(reply.headers.contains(&header), "{:?}", reply.headers);
    assert_eq!(mesh.stat("cluster.c.upstream_rq_503"), 1);
    assert_eq!(mesh.stat("cluster.c.upstream_rq_total"), 0);
    // The cluster that leads there has no assignment of its own.
    assert_eq!(
        mesh.begin(&Head { target: raw::resolve(mesh.0, "both").unwrap(), ..Head::default() }).kind,
        kind::GO
    );
}

#[test]
fn one_draw_decides_before_the_host() {
    let mesh = Mesh::new(&dropping(50), "", &[HALF - 1, HALF, 0, HALF - 1]);
    let out = mesh.to("c");
    assert_eq!((out.kind, out.refusal), (kind::REFUSED, refusal::DROP_OVERLOAD));
    assert_eq!(flags::text(out.flags), "DO");
    let reply = raw::reply(out.request).unwrap().unwrap();
    assert_eq!((reply.details.as_str(), reply.body.as_str()), ("drop_overload", "drop overload"));
    assert!(reply.headers.contains(&("x-envoy-drop-overload".to_owned(), "true".to_owned())));
    // The second word lets a request pass, the third one chooses its host.
    assert_eq!((mesh.refusal(), mesh.refusal()), (0, refusal::DROP_OVERLOAD));
}

#[test]
fn retries_are_not_asked() {
    // A word to pass, one for the host; the retry draws its back-off and its host.
    let mesh = Mesh::new(&dropping(50), "", &[HALF, 0]);
    let first = mesh.begin(&Head { path: "/", ..Head::default() });
    assert_eq!(first.kind, kind::GO);
    let verdict = raw::with_local(|local| raw::complete(local, first.attempt, &Outcome::status(503), 0));
    assert_eq!(verdict.action, action::RETRY);
    raw::advance(mesh.0, 1_000_000_000).unwrap();
    let mut second = Decision::default();
    raw::with_local(|local| raw::choose(local, first.request, 0, &mut second)).unwrap();
    assert_eq!((second.kind, second.number), (kind::GO, 2));
    // A caller's own retry is one, too; its first attempts are dropped by the words of zero that follow.
    let mut out = Decision::default();
    let target = raw::resolve(mesh.0, "c").unwrap();
    for (number, kind) in [(1, kind::REFUSED), (2, kind::GO)] {
        raw::with_local(|local| raw::pick(local, mesh.0, target, number, None, 0, &mut out)).unwrap();
        assert_eq!(out.kind, kind, "attempt {number}");
    }
}

#[test]
fn endpoints_bring_their_own_share() {
    let mesh = Mesh::new("", "", &[]);
    assert_eq!(mesh.refusal(), 0);
    let endpoints = |policy: &str| {
        let text = assignment(policy);
        mesh.apply(HostChange { op: host_op::ENDPOINTS, metadata: &text, ..HostChange::default() });
    };
    endpoints(&dropping(100));
    assert_eq!(mesh.refusal(), refusal::UNCONDITIONAL_DROP_OVERLOAD);
    // Hosts from code leave the assignment's policy as it is.
    mesh.apply(HostChange { op: host_op::ADD, address: "10.0.0.2:80", ..HostChange::default() });
    assert_eq!(mesh.refusal(), refusal::UNCONDITIONAL_DROP_OVERLOAD);
    endpoints("");
    assert_eq!(mesh.refusal(), 0);
}

#[test]
fn the_runtime_lowers_the_share() {
    let limit = |percent: u32| format!("{{\"load_balancing_policy.drop_overload_limit\": {percent}}}");
    // A fifth of the words, then above it.
    let fifth = (0.2_f32 * u64::MAX as f32) as u64;
    let mesh = Mesh::new(&dropping(100), &limit(20), &[fifth - 1, fifth]);
    assert_eq!((mesh.refusal(), mesh.refusal()), (refusal::DROP_OVERLOAD, 0));
    let none = Mesh::new(&dropping(100), &limit(0), &[]);
    assert_eq!(none.refusal(), 0);
    // It is read with each assignment, as Envoy reads it.
    let later = Mesh::new(&dropping(100), "", &[]);
    raw::update(later.0, &[document(document_kind::RUNTIME, &limit(0))]).unwrap();
    assert_eq!(later.refusal(), refusal::UNCONDITIONAL_DROP_OVERLOAD);
    let text = assignment(&dropping(100));
    later.apply(HostChange { op: host_op::ENDPOINTS, metadata: &text, ..HostChange::default() });
    assert_eq!(later.refusal(), 0);
}

#[test]
fn a_limit_above_all_is_refused() {
    let (limit, mesh) = ("{\"load_balancing_policy.drop_overload_limit\": 120}", assignment(&dropping(1)));
    let mesh = format!("[{{name: c, load_assignment: {mesh}}}]");
    let documents = [document(TEXT, &mesh), document(document_kind::RUNTIME, limit)];
    let error = raw::engine_new(&Options::default(), &documents).unwrap_err().to_string();
    // Envoy's sentence.
    let sentence = "load_balancing_policy.drop_overload_limit runtime key config 120 is invalid. The valid range is 0~100";
    assert!(error.contains(sentence), "{error}");
    // Nobody reads it without drop_overloads.
    drop(Mesh::new("", limit, &[]));
}

#[test]
fn maintenance_comes_first() {
    let mesh = Mesh::new(&dropping(100), "{\"upstream.maintenance_mode.c\": 100}", &[]);
    assert_eq!(mesh.refusal(), refusal::MAINTENANCE);
}

#[test]
fn it_is_explained_and_in_force() {
    let told = |policy: &str, runtime: &str| {
        let mesh = Mesh::new(policy, runtime, &[]);
        let why: Value =
            serde_json::from_str(&raw::text(mesh.0, 8, "{\"cluster\": \"c\"}").unwrap()).unwrap();
        let effective: Value = serde_json::from_str(&raw::text(mesh.0, 3, "c").unwrap()).unwrap();
        let rows = effective["values"].as_array().unwrap().iter();
        let row = rows.clone().find(|row| row["field"] == "drop_overloads").unwrap().clone();
        (why["refusal"].clone(), why["clusters"][0]["why"].as_str().unwrap().to_owned(), row)
    };
    let (refusal, why, row) = told(&dropping(100), "");
    assert_eq!(refusal, "unconditional_drop_overload");
    assert!(why.ends_with("drop_overloads turns 100 % of its first attempts away"), "{why}");
    assert_eq!((&row["value"], &row["from"]), (&1.0.into(), &"document".into()));
    let limit = "{\"load_balancing_policy.drop_overload_limit\": 25}";
    let (refusal, why, row) = told(&dropping(50), limit);
    assert_eq!(refusal, Value::Null);
    assert!(why.ends_with("drop_overloads turns 25 % of its first attempts away"), "{why}");
    assert_eq!((&row["value"], &row["from"]), (&0.25.into(), &"runtime".into()));
    let (_, why, row) = told("", limit);
    assert!(!why.contains("drop"), "{why}");
    assert_eq!((&row["value"], &row["from"]), (&0.0.into(), &"default".into()));
}
