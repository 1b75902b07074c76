//! Documents and hosts that change under an engine: what is refused, and what it does to those who wait.

use nexthop::raw::{self, Decision, Document, Error, Head, HostChange, Misuse, Options, host_op, kind};
use nexthop::raw::{clock, document_kind};

struct Mesh(u64);

fn document(text: &str) -> Document<'_> {
    Document { kind: document_kind::TEXT, dialect: "", name: "", text: text.as_bytes() }
}

fn options() -> Options {
    Options { workers: 1, seed: 7, clock: clock::MANUAL, ..Options::default() }
}

impl Mesh {
    fn new(text: &str) -> Self {
        Self(raw::engine_new(&options(), &[document(text)]).unwrap_or_else(|error| panic!("{error}")))
    }

    fn update(&self, text: &str) {
        raw::update(self.0, &[document(text)]).unwrap();
    }

    fn begin(&self, cluster: &str) -> Decision {
        let head = Head { target: raw::resolve(self.0, cluster).unwrap(), ..Head::default() };
        let mut out = Decision::default();
        raw::with_local(|local| raw::begin(local, self.0, &head, 0, &mut out)).unwrap();
        out
    }

    fn choose(&self, request: u64) -> Decision {
        let mut out = Decision::default();
        raw::with_local(|local| raw::choose(local, request, 0, &mut out)).unwrap();
        out
    }

    fn complete(&self, attempt: u64) {
        assert_eq!(raw::with_local(|local| raw::complete_status(local, attempt, 200, 0)).code, 0);
    }

    fn ready(&self) -> Vec<u64> {
        let mut room = [raw::Ready::default(); 16];
        let n = raw::with_local(|local| raw::poll_ready(local, self.0, &mut room)).unwrap();
        room[..n].iter().map(|ready| ready.request).collect()
    }

    fn stat(&self, name: &str) -> u64 {
        let mut found = None;
        raw::stats(self.0, &mut |stat, value| {
            let (raw::Stat::Counter(value) | raw::Stat::Gauge(value)) = value;
            if stat == name {
                found = Some(value);
            }
        })
        .unwrap();
        found.unwrap_or_else(|| panic!("no {name}"))
    }

    fn endpoints(&self, cluster: &str, assignment: &str) -> Result<u64, Error> {
        let change = HostChange { op: host_op::ENDPOINTS, metadata: assignment, ..HostChange::default() };
        raw::apply(self.0, cluster, &[change])
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        raw::engine_free(self.0).unwrap();
    }
}

fn misuse<T: std::fmt::Debug>(result: Result<T, Error>) -> (Misuse, String) {
    match result {
        Err(Error::Misuse(misuse, sentence)) => (misuse, sentence),
        other => panic!("{other:?}"),
    }
}

fn limits(hosts: &str, connections: u32, requests: u32) -> String {
    format!(
        "clusters: {{b: {{hosts: [{hosts}], limits: {{connections: {connections}, pending: 20, requests: {requests}}}, \
         timeout: 0s}}}}"
    )
}

#[test]
fn a_raised_limit_serves_the_queue_oldest_first() {
    // Two hosts, hence two queues: the oldest goes first over both.
    let hosts = "10.0.0.1:80, 10.0.0.2:80";
    let mesh = Mesh::new(&limits(hosts, 2, 100));
    let all: Vec<Decision> = (0..8).map(|_| mesh.begin("b")).collect();
    let kinds: Vec<u16> = all.iter().map(|d| d.kind).collect();
    assert_eq!(kinds[..2], [kind::GO; 2]);
    assert_eq!(kinds[2..], [kind::WAIT; 6]);
    mesh.update(&limits(hosts, 5, 100));
    assert_eq!(mesh.ready(), [all[2].request, all[3].request, all[4].request]);
    for (at, waiter) in all.iter().enumerate().skip(2) {
        let expected = if at < 5 { kind::GO } else { kind::WAIT };
        assert_eq!(mesh.choose(waiter.request).kind, expected, "{at}");
    }
    assert_eq!(mesh.stat("cluster.b.upstream_cx_active"), 5);
    assert_eq!(mesh.stat("cluster.b.upstream_rq_active"), 5);
    assert_eq!(mesh.stat("cluster.b.upstream_rq_pending_active"), 3);
    // An update that raises nothing hands out nothing.
    mesh.update(&limits(hosts, 5, 200));
    assert!(mesh.ready().is_empty());
    mesh.update(&limits(hosts, 100, 200));
    assert_eq!(mesh.ready(), [all[5].request, all[6].request, all[7].request]);
    for waiter in &all[5..] {
        mesh.complete(mesh.choose(waiter.request).attempt);
    }
    assert_eq!(mesh.stat("cluster.b.upstream_rq_active"), 5);
    assert_eq!(mesh.stat("cluster.b.upstream_rq_pending_active"), 0);
}

#[test]
fn a_raised_limit_goes_as_far_as_the_other_limits_and_refuses_nobody() {
    let mesh = Mesh::new(&limits("10.0.0.1:80", 2, 3));
    let all: Vec<Decision> = (0..6).map(|_| mesh.begin("b")).collect();
    mesh.update(&limits("10.0.0.1:80", 50, 3));
    assert_eq!(mesh.ready(), [all[2].request]);
    assert_eq!(mesh.choose(all[2].request).kind, kind::GO);
    assert_eq!(mesh.choose(all[3].request).kind, kind::WAIT);
    // The other limit is raised too.
    mesh.update(&limits("10.0.0.1:80", 50, 5));
    assert_eq!(mesh.ready(), [all[3].request, all[4].request]);
    assert_eq!(mesh.stat("cluster.b.upstream_rq_pending_active"), 1);
}

#[test]
fn a_thread_that_waits_is_woken_by_a_raised_limit() {
    let mesh = Mesh::new(&limits("10.0.0.1:80", 1, 10));
    let (_open, waiter) = (mesh.begin("b"), mesh.begin("b"));
    assert_eq!(waiter.kind, kind::WAIT);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            // Each wait ends after a second at the latest; a raised limit ends it for good.
            while mesh.choose(waiter.request).kind == kind::WAIT {
                raw::wait_for(waiter.request, raw::NEVER).unwrap();
            }
        });
        mesh.update(&limits("10.0.0.1:80", 2, 10));
        waits.join().unwrap();
    });
    assert_eq!(mesh.stat("cluster.b.upstream_rq_active"), 2);
}

#[test]
fn no_documents_are_refused_and_change_nothing() {
    let mesh = Mesh::new("clusters: {a: {hosts: [10.0.0.1:80]}}");
    let runtime = || Document {
        kind: document_kind::RUNTIME,
        dialect: "",
        name: "",
        text: b"{\"upstream.use_retry\": 1}",
    };
    for documents in [vec![], vec![runtime(), runtime()]] {
        for result in [raw::engine_new(&options(), &documents), raw::update(mesh.0, &documents)] {
            let (why, sentence) = misuse(result);
            assert_eq!(why, Misuse::Invalid);
            assert!(sentence.contains("no documents were given"), "{sentence}");
        }
    }
    for empty in ["", "# nothing", "[]", "---\n"] {
        assert!(matches!(raw::update(mesh.0, &[document(empty)]), Err(Error::Config(_))), "{empty:?}");
    }
    assert_eq!(mesh.begin("a").kind, kind::GO);
    // Runtime values alone are no documents, and replace none.
    raw::update(mesh.0, &[runtime()]).unwrap();
    assert_eq!(mesh.begin("a").kind, kind::GO);
    mesh.update("clusters: []");
    assert!(raw::resolve(mesh.0, "a").is_err());
}

#[test]
fn an_assignment_names_its_cluster() {
    let mesh = Mesh::new(
        "[{name: a, type: EDS, eds_cluster_config: {service_name: svc, eds_config: {ads: {}}}}, \
         {name: b, type: STATIC}, {name: x, lb_policy: CLUSTER_PROVIDED, cluster_type: {name: c, typed_config: \
         {\"@type\": type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig, clusters: [{name: a}]}}}]",
    );
    for (cluster, named) in [("a", "a"), ("a", "svc"), ("b", "b")] {
        mesh.endpoints(cluster, &format!("{{cluster_name: {named}, endpoints: []}}")).unwrap();
    }
    let epoch = raw::engine_info(mesh.0).unwrap().epoch;
    for (cluster, named) in [("a", "b"), ("b", "svc"), ("b", "B")] {
        let (why, sentence) = misuse(mesh.endpoints(cluster, &format!("{{cluster_name: {named}}}")));
        assert_eq!(why, Misuse::Invalid);
        assert!(
            sentence.contains(&format!("{cluster:?}")) && sentence.contains(&format!("{named:?}")),
            "{sentence}"
        );
    }
    // Envoy requires the name.
    for text in ["{endpoints: []}", "{cluster_name: ''}", ""] {
        assert!(matches!(mesh.endpoints("a", text), Err(Error::Config(_))), "{text:?}");
    }
    let (why, sentence) = misuse(mesh.endpoints("c", "{cluster_name: c}"));
    assert_eq!(why, Misuse::NotFound);
    assert_eq!(sentence, "no cluster \"c\"; did you mean \"a\"?");
    for change in [
        HostChange { op: host_op::SET, address: "10.0.0.1:80", ..HostChange::default() },
        HostChange { op: host_op::ENDPOINTS, metadata: "{cluster_name: x}", ..HostChange::default() },
    ] {
        let (why, sentence) = misuse(raw::apply(mesh.0, "x", &[change]));
        assert_eq!(why, Misuse::Invalid);
        assert!(sentence.contains("composite") && sentence.contains("[\"a\"]"), "{sentence}");
        assert!(!sentence.contains("did you mean"), "{sentence}");
    }
    assert_eq!(raw::engine_info(mesh.0).unwrap().epoch, epoch);
}

#[test]
fn the_last_error_comes_in_parts() {
    let mesh = Mesh::new("clusters: {a: {hosts: [10.0.0.1:80]}}");
    raw::update(mesh.0, &[document("clusters:\n  a: {hots: []}")]).unwrap_err();
    let parts = raw::LastError::of_thread().parts();
    assert_eq!((parts.file.as_str(), parts.line, parts.column), ("<text 1>", 2, 7));
    assert_eq!((parts.path.as_str(), parts.found.as_str()), ("clusters.a.hots", "hots"));
    assert_eq!(parts.nearest.as_deref(), Some("hosts"));
    assert!(parts.allowed.contains("composite"), "{}", parts.allowed);
    assert_eq!(raw::last_error(), parts.to_string());
    let missing = Document { kind: document_kind::PATH, dialect: "", name: "", text: b"/does/not/exist" };
    raw::update(mesh.0, std::slice::from_ref(&missing)).unwrap_err();
    let parts = raw::LastError::of_thread().parts();
    assert_eq!((parts.file.as_str(), parts.line), ("/does/not/exist", 0));
    assert!(raw::last_error().starts_with("/does/not/exist: "));
    raw::update(mesh.0, &[Document { text: b"", ..missing }]).unwrap_err();
    assert_eq!(raw::last_error(), "the path of document 1 is empty; name a file");
    raw::update(mesh.0, &[]).unwrap_err();
    let parts = raw::LastError::of_thread().parts();
    assert_eq!((parts.file.as_str(), parts.line, parts.message), ("", 0, raw::last_error()));
}

#[test]
fn the_manual_clock_ends() {
    let mesh = Mesh::new("clusters: {a: {hosts: [10.0.0.1:80]}}");
    let before = raw::now(mesh.0);
    assert_eq!(misuse(raw::advance(mesh.0, u64::MAX)).0, Misuse::Invalid);
    assert_eq!(raw::now(mesh.0), before);
    raw::advance(mesh.0, 1_000).unwrap();
    let real = raw::engine_new(&Options::default(), &[document("clusters: []")]).unwrap();
    let (why, sentence) = misuse(raw::advance(real, 1));
    assert_eq!(why, Misuse::State);
    assert!(sentence.contains("manual clock") && !sentence.contains('2'), "{sentence}");
    raw::engine_free(real).unwrap();
}

#[test]
fn a_refused_head_is_told_by_its_field() {
    let mesh = Mesh::new("clusters: {a: {hosts: [10.0.0.1:80]}}");
    let long = "x".repeat(Head::TEXT_LIMIT);
    let target = raw::resolve(mesh.0, "a").unwrap();
    for (head, words) in [
        (Head { override_host: "!", ..Head::default() }, "override_host is \"!\""),
        (Head { metadata: "[1]", ..Head::default() }, "metadata is \"[1]\""),
        (Head { priority: 7, ..Head::default() }, "priority is 7"),
        (Head { body: 9, ..Head::default() }, "body is 9"),
        (Head { want: 60_000, headers: &[0; 8], ..Head::default() }, "set 60000"),
        (Head { path: &long, authority: "x", ..Head::default() }, "61441 bytes together; 61440"),
        (Head { target: 4_000, ..Head::default() }, "no target 4000"),
    ] {
        let head = Head { target: head.target.max(target), ..head };
        let mut out = Decision::default();
        let error = raw::with_local(|local| raw::begin(local, mesh.0, &head, 0, &mut out)).unwrap_err();
        let sentence = raw::sentence_of_head(&head, error);
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn hosts_are_checked_as_those_of_documents() {
    let mesh = Mesh::new(
        "clusters: {a: {hosts: [10.0.0.1:80]}, h: {hosts: [10.0.0.1:80], policy: ring_hash, hash: [header: x]}}",
    );
    let host = |op, address, weight| HostChange { op, address, weight, ..HostChange::default() };
    let twice = [host(host_op::SET, "10.0.0.1:80", 1), host(host_op::SET, "10.0.0.1:80", 2)];
    let (why, sentence) = misuse(raw::apply(mesh.0, "a", &twice));
    assert_eq!((why, sentence.contains("given twice")), (Misuse::Invalid, true), "{sentence}");
    let heavy = |op| [host(op, "10.0.0.2:80", u32::MAX), host(op, "10.0.0.3:80", u32::MAX)];
    for op in [host_op::SET, host_op::ADD] {
        let (why, sentence) = misuse(raw::apply(mesh.0, "h", &heavy(op)));
        assert_eq!((why, sentence.contains("add up to")), (Misuse::Invalid, true), "{sentence}");
    }
    raw::apply(mesh.0, "a", &heavy(host_op::SET)).unwrap();
    let endpoint = |address: &str| {
        format!(
            "{{load_balancing_weight: 4294967295, endpoint: {{address: {{socket_address: \
             {{address: {address}, port_value: 80}}}}}}}}"
        )
    };
    let assignment = format!(
        "{{cluster_name: h, endpoints: [{{lb_endpoints: [{}, {}]}}]}}",
        endpoint("10.0.0.2"),
        endpoint("10.0.0.3")
    );
    assert_eq!(misuse(mesh.endpoints("h", &assignment)).0, Misuse::Invalid);
    assert_eq!(mesh.begin("h").kind, kind::GO);
}

#[test]
fn batches_of_many_threads_lose_nothing() {
    let mesh = Mesh::new("clusters: {a: {hosts: []}}");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let mesh = &mesh;
            scope.spawn(move || {
                for n in 0..50 {
                    let address = &*format!("10.0.{thread}.{n}:80");
                    let change = HostChange { op: host_op::ADD, address, ..HostChange::default() };
                    raw::apply(mesh.0, "a", &[change]).unwrap();
                }
            });
        }
    });
    assert_eq!(mesh.stat("cluster.a.membership_total"), 200);
}

#[test]
fn what_a_caller_that_is_gone_held_goes_to_the_others() {
    let mesh = Mesh::new(&limits("10.0.0.1:80", 2, 10));
    let target = raw::resolve(mesh.0, "b").unwrap();
    let begin = |owner: u64| {
        let head = Head { target, user_data: owner << 32 | 5, ..Head::default() };
        let mut out = Decision::default();
        raw::with_local(|local| raw::begin(local, mesh.0, &head, 0, &mut out)).unwrap();
        out
    };
    // The stateless attempt gets the place of a request of the owner, and is nobody's.
    mesh.complete(begin(3).attempt);
    let mut stateless = Decision::default();
    raw::with_local(|local| raw::pick(local, mesh.0, target, 1, None, 0, &mut stateless)).unwrap();
    let (open, granted, waits, other) = (begin(3), begin(3), begin(3), begin(4));
    assert_eq!(
        [open.kind, granted.kind, waits.kind, other.kind],
        [kind::GO, kind::WAIT, kind::WAIT, kind::WAIT]
    );
    mesh.complete(stateless.attempt);
    raw::with_local(|local| raw::pick(local, mesh.0, target, 1, None, 0, &mut stateless)).unwrap();
    let signals = raw::abandon_all(&mut raw::Local::default(), mesh.0, 3).unwrap();
    assert_eq!(signals & raw::bits::WAKE, raw::bits::WAKE);
    assert_eq!(mesh.ready(), [other.request]);
    mesh.complete(mesh.choose(other.request).attempt);
    mesh.complete(stateless.attempt);
    assert_eq!(raw::engine_info(mesh.0).unwrap().live_requests, 0);
    for gauge in ["upstream_rq_active", "upstream_rq_pending_active"] {
        assert_eq!(mesh.stat(&format!("cluster.b.{gauge}")), 0, "{gauge}");
    }
    assert_eq!(
        raw::with_local(|local| raw::complete_status(local, open.attempt, 200, 0)).code,
        Misuse::Ended as i8
    );
}
