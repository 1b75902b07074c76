//! What a real Envoy 1.40 tells upstreams and clients about attempts, and counts of them (`spec/retry-and-timeouts.md`
//! sections 2, 8, 15 and 19).

use nexthop::raw::{
    self, Decision, Document, Head, Options, Outcome, Verdict, action, clock, document_kind, failure, flags,
    kind, reason,
};

const MS: u64 = 1_000_000;

struct Mesh(u64);

impl Mesh {
    /// A route `/` with these fields to cluster `c` of one host.
    fn new(host: &str, route: &str, runtime: &str) -> Self {
        let yaml = format!(
            "nexthop: {{runtime: {{{runtime}}}}}\nstatic_resources: {{clusters: [{{name: c, load_assignment: {{cluster_name: c, endpoints: \
             [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 10.0.0.1, port_value: 80}}}}}}}}]}}]}}}}, {{name: empty}}]}}\n---\n\
             virtual_hosts: [{{name: v, domains: ['*'], {host}, routes: [{{match: {{prefix: /empty}}, route: {{cluster: empty, timeout: 1s}}}}, \
             {{match: {{prefix: /}}, route: {{cluster: c, {route}}}}}]}}]\n"
        );
        let options = Options { workers: 1, seed: 7, clock: clock::MANUAL, ..Options::default() };
        let document = Document { kind: document_kind::TEXT, dialect: "", name: "", text: yaml.as_bytes() };
        Self(raw::engine_new(&options, &[document]).unwrap_or_else(|error| panic!("{error}")))
    }

    fn begin(&self, path: &str) -> Decision {
        let mut out = Decision::default();
        let head = Head { path, authority: "x", ..Head::default() };
        raw::with_local(|local| raw::begin(local, self.0, &head, 0, &mut out)).unwrap();
        out
    }

    /// The next attempt, after its back-off.
    fn next(&self, request: u64) -> Decision {
        let mut out = Decision::default();
        loop {
            raw::with_local(|local| raw::choose(local, request, 0, &mut out)).unwrap();
            if out.kind != kind::WAIT {
                return out;
            }
            raw::advance(self.0, out.wait).unwrap();
        }
    }

    fn complete(&self, attempt: u64, status: u16) -> Verdict {
        raw::with_local(|local| raw::complete(local, attempt, &Outcome::status(status), 0))
    }

    fn fail(&self, attempt: u64, failure: u8) -> Verdict {
        raw::with_local(|local| raw::fail(local, attempt, failure.into(), 0))
    }

    fn header(&self, id: u64, name: &str) -> Option<String> {
        raw::extra_headers(id).unwrap().into_iter().find(|(key, _)| key == name)?.1
    }

    fn stat(&self, name: &str) -> u64 {
        let stats: serde_json::Value = serde_json::from_str(&raw::text(self.0, 1, "").unwrap()).unwrap();
        stats[format!("cluster.c.{name}")].as_u64().unwrap_or_else(|| panic!("no {name}"))
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        raw::engine_free(self.0).unwrap();
    }
}

const COUNTED: &str = "include_request_attempt_count: true, include_attempt_count_in_response: true, \
    include_is_timeout_retry_header: true";
const RETRY: &str = "timeout: 5s, retry_policy: {retry_on: '5xx,reset,connect-failure', num_retries: 3, per_try_timeout: 0.1s, \
    per_try_idle_timeout: 0.05s, retry_back_off: {base_interval: 0.001s}}";

#[test]
fn only_retries_say_whether_a_limit_caused_them() {
    let (count, timed) = ("x-envoy-attempt-count", "x-envoy-is-timeout-retry");
    for (what, caused) in [
        (0, "false"),
        (failure::REMOTE_RESET, "false"),
        (failure::CONNECT_FAILURE, "false"),
        (failure::MAX_STREAM_DURATION, "false"),
        (failure::PER_TRY_TIMEOUT, "true"),
        (failure::PER_TRY_IDLE_TIMEOUT, "true"),
    ] {
        let mesh = Mesh::new(COUNTED, RETRY, "");
        let first = mesh.begin("/");
        assert_eq!(
            (mesh.header(first.attempt, count).as_deref(), mesh.header(first.attempt, timed)),
            (Some("1"), None)
        );
        let verdict =
            if what == 0 { mesh.complete(first.attempt, 503) } else { mesh.fail(first.attempt, what) };
        assert_eq!(verdict.action, action::RETRY, "{what}");
        let second = mesh.next(first.request);
        assert_eq!(mesh.header(second.attempt, count).as_deref(), Some("2"), "{what}");
        assert_eq!(mesh.header(second.attempt, timed).as_deref(), Some(caused), "{what}");
        // The next one is caused by an answer.
        assert_eq!(mesh.complete(second.attempt, 500).action, action::RETRY);
        let third = mesh.next(first.request);
        assert_eq!(mesh.header(third.attempt, timed).as_deref(), Some("false"), "{what}");
        mesh.complete(third.attempt, 200);
        assert_eq!(mesh.header(third.request, count).as_deref(), Some("3"), "{what}");
    }
    // Without the flags nothing is added.
    let mesh = Mesh::new("retry_policy: {}", RETRY, "");
    let first = mesh.begin("/");
    assert_eq!((mesh.header(first.attempt, count), mesh.header(first.request, count)), (None, None));
}

#[test]
fn local_replies_tell_the_attempts_that_were_begun() {
    let mesh = Mesh::new(COUNTED, RETRY, "");
    let told = |request: u64| {
        let reply = raw::reply(request).unwrap().unwrap();
        reply.headers.into_iter().find(|(name, _)| name == "x-envoy-attempt-count").map(|(_, value)| value)
    };
    // Attempt 1 finds no host, which counts.
    let refused = mesh.begin("/empty");
    assert_eq!(
        (refused.kind, refused.number, told(refused.request).as_deref()),
        (kind::REFUSED, 1, Some("1"))
    );
    let mut at = mesh.begin("/");
    while mesh.fail(at.attempt, failure::CONNECT_FAILURE).action == action::RETRY {
        at = mesh.next(at.request);
    }
    assert_eq!((at.number, told(at.request).as_deref()), (4, Some("4")));
    // The whole request's duration is over: the connection manager answers, which knows of no attempt.
    let mesh = Mesh::new(COUNTED, "max_stream_duration: {max_stream_duration: 0.2s}", "");
    let at = mesh.begin("/");
    raw::advance(mesh.0, 200 * MS).unwrap();
    let verdict = mesh.fail(at.attempt, failure::TIMEOUT);
    let reply = raw::reply(at.request).unwrap().unwrap();
    assert_eq!(
        (verdict.status, reply.details.as_str(), told(at.request)),
        (504, "max_duration_timeout", None)
    );
}

#[test]
fn the_runtime_switches_retries_off() {
    let mesh = Mesh::new("retry_policy: {}", RETRY, "upstream.use_retry: 0");
    let at = mesh.begin("/");
    let verdict = mesh.complete(at.attempt, 503);
    assert_eq!(
        (verdict.action, verdict.reason, verdict.status, verdict.flags),
        (action::FORWARD, reason::RUNTIME_DISABLED, 503, 0)
    );
    for name in [
        "upstream_rq_retry",
        "upstream_rq_retry_success",
        "upstream_rq_retry_limit_exceeded",
        "upstream_rq_retry_overflow",
    ] {
        assert_eq!(mesh.stat(name), 0, "{name}");
    }
    assert_eq!(mesh.stat("upstream_rq_503"), 1);
}

#[test]
fn a_hedged_attempt_is_never_retried_again() {
    let hedging = format!("{RETRY}, hedge_policy: {{hedge_on_per_try_timeout: true}}")
        .replace("num_retries: 3", "num_retries: 1");
    let mesh = Mesh::new(COUNTED, &hedging, "");
    let first = mesh.begin("/");
    raw::advance(mesh.0, 100 * MS).unwrap();
    let second = mesh.next(first.request);
    assert_eq!((second.kind, second.number), (kind::GO, 2));
    assert_eq!(mesh.header(second.attempt, "x-envoy-is-timeout-retry").as_deref(), Some("true"));
    // It is bad, and the other one may do better; that one is bad, too, and the last word.
    let verdict = mesh.complete(first.attempt, 500);
    assert_eq!((verdict.action, verdict.reason), (action::DISCARD, reason::OTHERS_IN_FLIGHT));
    let verdict = mesh.complete(second.attempt, 503);
    assert_eq!(
        (verdict.action, verdict.reason, verdict.status),
        (action::FORWARD, reason::LIMIT_EXCEEDED, 503)
    );
    assert_eq!(verdict.flags, flags::URX);
    // Alone, what was hedged is forwarded although its policy would try it again.
    let first = mesh.begin("/");
    raw::advance(mesh.0, 100 * MS).unwrap();
    let second = mesh.next(first.request);
    assert_eq!(mesh.fail(second.attempt, failure::REMOTE_RESET).action, action::DISCARD);
    let verdict = mesh.complete(first.attempt, 500);
    assert_eq!(
        (verdict.action, verdict.reason, verdict.status),
        (action::FORWARD, reason::ALREADY_HEDGED, 500)
    );
    assert_eq!(mesh.stat("upstream_rq_retry"), 2);
}
