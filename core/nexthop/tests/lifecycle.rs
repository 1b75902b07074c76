//! Requests from begin to end through the id-level functions, on a clock moved by hand.

use nexthop::raw::{
    self, Decision, Document, Head, NEVER, Options, Outcome, Verdict, action, bits, flags, kind, reason,
};
use nexthop::raw::{clock, document_kind, failure, refusal, resource, wait};

const MS: u64 = 1_000_000;

struct Mesh(u64);

impl Mesh {
    fn new(yaml: &str) -> Self {
        Self::drawn(yaml, None)
    }

    fn drawn(yaml: &str, draws: Option<Vec<u64>>) -> Self {
        let options = Options { workers: 1, seed: 7, clock: clock::MANUAL, draws, ..Options::default() };
        let document = Document { kind: document_kind::TEXT, dialect: "", name: "", text: yaml.as_bytes() };
        Self(raw::engine_new(&options, &[document]).unwrap_or_else(|error| panic!("{error}")))
    }

    fn target(&self, name: &str) -> u32 {
        raw::resolve(self.0, name).unwrap()
    }

    fn begin(&self, cluster: &str) -> Decision {
        let head = Head { target: self.target(cluster), ..Head::default() };
        self.begin_head(&head)
    }

    fn begin_head(&self, head: &Head<'_>) -> Decision {
        let mut out = Decision::default();
        raw::with_local(|local| raw::begin(local, self.0, head, 0, &mut out)).unwrap();
        out
    }

    fn choose(&self, request: u64) -> Decision {
        let mut out = Decision::default();
        raw::with_local(|local| raw::choose(local, request, 0, &mut out)).unwrap();
        out
    }

    fn complete(&self, attempt: u64, status: u16) -> Verdict {
        raw::with_local(|local| raw::complete(local, attempt, &Outcome::status(status), 0))
    }

    fn fail(&self, attempt: u64, failure: u8) -> Verdict {
        raw::with_local(|local| raw::fail(local, attempt, failure.into(), 0))
    }

    fn advance(&self, ns: u64) {
        raw::advance(self.0, ns).unwrap();
    }

    fn address(&self, decision: &Decision) -> String {
        raw::host(self.0, decision.host, decision.host_version).unwrap().1.address.clone()
    }

    fn stat(&self, name: &str) -> u64 {
        let stats: serde_json::Value = serde_json::from_str(&raw::text(self.0, 1, "").unwrap()).unwrap();
        stats[name].as_u64().unwrap_or_else(|| panic!("no stat {name}"))
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        raw::engine_free(self.0).unwrap();
    }
}

const RETRY: &str = "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80], \
    retry: {on: [5xx, connect-failure, reset], times: 1, avoid_tried: true}}}";

#[test]
fn a_failed_try_is_retried_elsewhere_after_its_back_off() {
    let mesh = Mesh::new(RETRY);
    let first = mesh.begin("web");
    assert_eq!((first.kind, first.number), (kind::GO, 1));
    let verdict = mesh.complete(first.attempt, 503);
    assert_eq!((verdict.action, verdict.reason), (action::RETRY, reason::BACKOFF));
    assert!(verdict.after_ms < 25);
    if verdict.after_ms > 0 {
        let early = mesh.choose(first.request);
        assert_eq!(
            (early.kind, early.refusal, early.wait),
            (kind::WAIT, wait::BACKOFF, u64::from(verdict.after_ms) * MS)
        );
        mesh.advance(early.wait);
    }
    let second = mesh.choose(first.request);
    assert_eq!((second.kind, second.number, second.bits & bits::RETRY), (kind::GO, 2, bits::RETRY));
    assert_ne!(mesh.address(&first), mesh.address(&second));
    let verdict = mesh.complete(second.attempt, 503);
    assert_eq!(
        (verdict.action, verdict.reason, verdict.flags),
        (action::FORWARD, reason::LIMIT_EXCEEDED, flags::URX)
    );
    assert_eq!(mesh.stat("cluster.web.upstream_rq_retry"), 1);
    assert_eq!(mesh.stat("cluster.web.upstream_rq_retry_limit_exceeded"), 1);
    assert_eq!(mesh.stat("cluster.web.retry.upstream_rq_503"), 1);
    assert_eq!(mesh.stat("cluster.web.upstream_rq_503"), 1);
    assert_eq!(mesh.stat("cluster.web.upstream_rq_total"), 2);
    assert_eq!(mesh.stat("cluster.web.upstream_rq_active"), 0);
    let mut out = Decision::default();
    let stale = raw::with_local(|local| raw::choose(local, first.request, 0, &mut out));
    assert_eq!(stale, Err(raw::Misuse::Ended));
}

#[test]
fn wrong_calls_change_nothing() {
    let mesh = Mesh::new(RETRY);
    let first = mesh.begin("web");
    let mut out = Decision::default();
    let again = raw::with_local(|local| raw::choose(local, first.request, 0, &mut out));
    assert_eq!(again, Err(raw::Misuse::State));
    assert_eq!(mesh.complete(first.attempt, 200).code, 0);
    assert_eq!(mesh.complete(first.attempt, 200).code, raw::Misuse::Ended as i8);
    assert_eq!(raw::with_local(|local| raw::cancel(local, first.attempt, 0)).code, 0);
    assert_eq!(mesh.complete(0, 200).code, raw::Misuse::Invalid as i8);
    assert_eq!(mesh.complete(u64::MAX, 200).code, raw::Misuse::Closed as i8);
    let open = mesh.begin("web");
    assert_eq!(mesh.complete(open.attempt, 99).code, raw::Misuse::Invalid as i8);
    assert_eq!(mesh.complete(open.attempt, 1000).code, raw::Misuse::Invalid as i8);
    assert_eq!(mesh.complete(open.attempt, 200).action, action::FORWARD);
}

#[test]
fn two_connections_two_places_and_sixteen_refusals() {
    let mesh =
        Mesh::new("clusters: {b: {hosts: [10.0.0.1:80], limits: {connections: 2, pending: 2}, timeout: 0s}}");
    let decisions: Vec<Decision> = (0..20).map(|_| mesh.begin("b")).collect();
    let kinds: Vec<u16> = decisions.iter().map(|d| d.kind).collect();
    assert_eq!(kinds[..4], [kind::GO, kind::GO, kind::WAIT, kind::WAIT]);
    for refused in &decisions[4..] {
        assert_eq!(
            (refused.kind, refused.refusal, refused.resource),
            (kind::REFUSED, refusal::OVERFLOW, resource::PENDING)
        );
        assert_eq!((refused.status, refused.flags), (503, flags::UO));
    }
    assert_eq!(mesh.stat("cluster.b.upstream_rq_pending_overflow"), 16);
    assert_eq!(mesh.stat("cluster.b.upstream_rq_pending_active"), 2);
    let verdict = mesh.complete(decisions[0].attempt, 200);
    assert_eq!(u16::from(verdict.bits) & bits::WAKE, bits::WAKE);
    let mut ready = [raw::Ready::default(); 4];
    let n = raw::with_local(|local| raw::poll_ready(local, mesh.0, &mut ready)).unwrap();
    assert_eq!((n, ready[0].request), (1, decisions[2].request));
    let third = mesh.choose(decisions[2].request);
    assert_eq!(third.kind, kind::GO);
    // The last waiter's client goes; then the permit of a granted but untaken place is passed on.
    assert_eq!(raw::with_local(|local| raw::finish(local, decisions[3].request, 1, 0)).code, 0);
    assert_eq!(mesh.stat("cluster.b.upstream_rq_cancelled"), 1);
    mesh.complete(third.attempt, 200);
    mesh.complete(decisions[1].attempt, 200);
    assert_eq!(mesh.stat("cluster.b.upstream_rq_active"), 0);
    assert_eq!(mesh.stat("cluster.b.upstream_rq_pending_active"), 0);
    assert_eq!(mesh.stat("cluster.b.upstream_rq_200"), 4 - 1);
}

#[test]
fn a_deadline_ends_the_wait() {
    let mesh = Mesh::new(
        "clusters: {b: {hosts: [10.0.0.1:80], limits: {connections: 1, pending: 1}, timeout: 0.3s}}",
    );
    let first = mesh.begin("b");
    let second = mesh.begin("b");
    assert_eq!((second.kind, second.wait), (kind::WAIT, 300 * MS));
    mesh.advance(300 * MS);
    let late = mesh.choose(second.request);
    assert_eq!((late.kind, late.refusal, late.status), (kind::REFUSED, refusal::TIMEOUT, 504));
    let reply = raw::reply(second.request).unwrap().unwrap();
    assert_eq!(
        (reply.status, reply.details.as_str(), reply.body.as_str()),
        (504, "response_timeout", "upstream request timeout")
    );
    let verdict = mesh.fail(first.attempt, failure::TIMEOUT);
    assert_eq!((verdict.action, verdict.status, verdict.flags), (action::FORWARD, 504, flags::UT));
    assert_eq!(mesh.stat("cluster.b.upstream_rq_timeout"), 2);
    assert_eq!(mesh.stat("cluster.b.upstream_rq_pending_active"), 0);
}

#[test]
fn a_composite_goes_by_attempt_number() {
    let mesh = Mesh::new(
        "clusters: {a: {hosts: [10.0.0.1:80]}, none: {hosts: []}, c: {hosts: [10.0.0.3:80]}, \
         x: {composite: [a, none, c], retry: {on: [5xx], times: 5, backoff: {base: 1ms, max: 1ms}}}}",
    );
    let first = mesh.begin("x");
    assert_eq!(mesh.address(&first), "10.0.0.1:80");
    assert_eq!(mesh.complete(first.attempt, 500).action, action::RETRY);
    let second = mesh.choose(first.request);
    assert_eq!(
        (mesh.address(&second).as_str(), second.bits & bits::FALLBACK),
        ("10.0.0.3:80", bits::FALLBACK)
    );
    assert_eq!(mesh.complete(second.attempt, 500).action, action::RETRY);
    let third = mesh.choose(first.request);
    assert_eq!((mesh.address(&third).as_str(), third.number), ("10.0.0.3:80", 3));
    assert_eq!(mesh.complete(third.attempt, 500).action, action::RETRY);
    let over = mesh.choose(first.request);
    assert_eq!((over.kind, over.number, over.status, over.flags), (kind::REFUSED, 4, 503, flags::UH));
    assert_eq!(over.resource, resource::PAST_LAST_SUB_CLUSTER);
    assert_eq!(mesh.stat("cluster.x.upstream_rq_retry"), 3);
    assert_eq!(mesh.stat("cluster.x.retry.upstream_rq_500"), 3);
    assert_eq!(mesh.stat("cluster.x.upstream_rq_total"), 0);
    assert_eq!(mesh.stat("cluster.c.upstream_rq_total"), 2);
    assert_eq!(mesh.stat("cluster.x.upstream_cx_none_healthy"), 1);
    assert_eq!(mesh.stat("cluster.x.circuit_breakers.default.rq_retry_open"), 0);
    let stateless = |number| {
        let mut out = Decision::default();
        raw::with_local(|local| raw::pick(local, mesh.0, mesh.target("x"), number, None, 0, &mut out))
            .unwrap();
        out
    };
    assert_eq!((stateless(0).kind, stateless(0).resource), (kind::REFUSED, resource::NO_ATTEMPT_NUMBER));
    assert_eq!(mesh.address(&stateless(3)), "10.0.0.3:80");
}

#[test]
fn failures_in_a_row_eject_and_time_brings_back() {
    let mesh = Mesh::new(
        "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80], \
         outlier: {consecutive_5xx: 3, interval: 10s, eject: 30s, max_percent: 50}, panic: 0}}",
    );
    let bad = "10.0.0.1:80";
    let mut sent = 0;
    for _ in 0..30 {
        let d = mesh.begin("web");
        let to_bad = mesh.address(&d) == bad;
        sent += u32::from(to_bad);
        mesh.complete(d.attempt, if to_bad { 500 } else { 200 });
    }
    assert_eq!(sent, 3);
    assert_eq!(mesh.stat("cluster.web.outlier_detection.ejections_active"), 1);
    assert_eq!(mesh.stat("cluster.web.membership_healthy"), 2);
    let event = raw::poll_event(mesh.0).unwrap().unwrap();
    assert!(event.contains("\"action\":\"EJECT\"") && event.contains(bad), "{event}");
    mesh.advance(29_000 * MS);
    assert_eq!(raw::maintain(mesh.0, 0).unwrap() & bits::EVENTS, 0);
    mesh.advance(11_000 * MS);
    assert_eq!(raw::maintain(mesh.0, 0).unwrap() & bits::EVENTS, bits::EVENTS);
    assert_eq!(mesh.stat("cluster.web.membership_healthy"), 3);
    let seen: std::collections::BTreeSet<String> = (0..3)
        .map(|_| {
            let d = mesh.begin("web");
            mesh.complete(d.attempt, 200);
            mesh.address(&d)
        })
        .collect();
    assert!(seen.contains(bad));
}

#[test]
fn streaming_ends_in_two_phases() {
    let mesh = Mesh::new(RETRY);
    let d = mesh.begin("web");
    let verdict = raw::with_local(|local| raw::headers(local, d.attempt, &Outcome::status(200), 0));
    assert_eq!((verdict.action, verdict.reason), (action::FORWARD, reason::SUCCESS));
    assert_eq!(mesh.stat("cluster.web.upstream_rq_active"), 1);
    assert_eq!(mesh.complete(d.attempt, 200).code, raw::Misuse::State as i8);
    let verdict = raw::with_local(|local| raw::end(local, d.attempt, None, 0));
    assert_eq!((verdict.code, verdict.reason), (0, reason::STREAM_ENDED));
    assert_eq!(mesh.stat("cluster.web.upstream_rq_active"), 0);
    let early = mesh.begin("web");
    let verdict = raw::with_local(|local| raw::end(local, early.attempt, None, 0));
    assert_eq!(verdict.code, raw::Misuse::State as i8);
    raw::with_local(|local| raw::finish(local, early.request, 1, 0));
    assert_eq!(mesh.stat("cluster.web.upstream_rq_active"), 0);
}

#[test]
fn an_attempt_nobody_reports_is_lost_after_its_lease() {
    let mesh = Mesh::new("clusters: {web: {hosts: [10.0.0.1:80], timeout: 1s}}");
    let d = mesh.begin("web");
    assert_eq!(d.remaining, 1000 * MS);
    mesh.advance(300_000 * MS);
    raw::maintain(mesh.0, 0).unwrap();
    assert_eq!(mesh.stat("cluster.web.upstream_rq_active"), 1);
    mesh.advance(12_000 * MS);
    raw::maintain(mesh.0, 0).unwrap();
    assert_eq!(mesh.stat("cluster.web.upstream_rq_active"), 0);
    assert_eq!(mesh.stat("cluster.web.nexthop.attempts_lost"), 1);
    assert!(raw::poll_event(mesh.0).unwrap().unwrap().contains("nexthop.attempt_lost"));
    assert_eq!(mesh.complete(d.attempt, 200).code, raw::Misuse::Ended as i8);
}

#[test]
fn unknown_names_are_refused_with_a_hint() {
    let mesh = Mesh::new(RETRY);
    let error = raw::resolve(mesh.0, "wep").unwrap_err();
    assert_eq!(error.to_string(), "no cluster or route \"wep\"; did you mean \"web\"?");
    let d = mesh.begin_head(&Head { target: raw::NO_SUCH_TARGET, ..Head::default() });
    assert_eq!((d.kind, d.refusal, d.status, d.flags), (kind::REFUSED, refusal::NO_CLUSTER, 503, flags::NC));
    let d = mesh.begin_head(&Head::default());
    assert_eq!((d.kind, d.refusal, d.status, d.wait), (kind::REFUSED, refusal::NO_ROUTE, 404, NEVER));
}

#[test]
fn updates_keep_hosts_and_answer_old_requests() {
    let mesh = Mesh::new(RETRY);
    let d = mesh.begin("web");
    let address = mesh.address(&d);
    let gone = "clusters: {other: {hosts: [10.0.0.9:80]}}";
    let document = |text: &'static str| Document {
        kind: document_kind::TEXT,
        dialect: "",
        name: "",
        text: text.as_bytes(),
    };
    raw::update(mesh.0, &[document(gone)]).unwrap();
    assert_eq!(mesh.address(&d), address, "an open attempt keeps its host");
    assert_eq!(mesh.complete(d.attempt, 503).action, action::RETRY, "by the policy it was made with");
    mesh.advance(25 * MS);
    let refused = mesh.choose(d.request);
    assert_eq!((refused.kind, refused.refusal), (kind::REFUSED, refusal::NO_CLUSTER));
    assert!(raw::update(mesh.0, &[document("clusters: {web: {hosts: 3}}")]).is_err());
    assert!(raw::resolve(mesh.0, "other").is_ok(), "a bad document leaves the old one serving");
    raw::update(mesh.0, &[document(RETRY)]).unwrap();
    let d = mesh.begin("web");
    assert_eq!(d.kind, kind::GO);
    mesh.complete(d.attempt, 200);
}

#[test]
fn strict_connections_are_up_only_when_told() {
    let mesh = Mesh::new(
        "clusters: {b: {hosts: [10.0.0.1:80], limits: {connections: 2, pending: 2}, timeout: 0s, \
         nexthop: {connections: strict}}}",
    );
    let cold: Vec<Decision> = (0..20).map(|_| mesh.begin("b")).collect();
    let waiting = cold.iter().filter(|d| d.kind == kind::WAIT).count();
    let refused = cold.iter().filter(|d| d.kind == kind::REFUSED).count();
    assert_eq!((waiting, refused), (2, 18));
    assert_eq!(mesh.stat("cluster.b.upstream_cx_total"), 2);
    for waiter in &cold[..2] {
        raw::with_local(|local| raw::note(local, waiter.request, 1, 0)).unwrap();
        let go = mesh.choose(waiter.request);
        assert_eq!(go.kind, kind::GO);
        mesh.complete(go.attempt, 200);
    }
    // Both connections are warm now.
    let warm: Vec<Decision> = (0..20).map(|_| mesh.begin("b")).collect();
    let kinds = |wanted: u16| warm.iter().filter(|d| d.kind == wanted).count();
    assert_eq!((kinds(kind::GO), kinds(kind::WAIT), kinds(kind::REFUSED)), (2, 2, 16));
    for d in &warm {
        raw::with_local(|local| raw::finish(local, d.request, 1, 0));
    }
    assert_eq!(mesh.stat("cluster.b.upstream_rq_active"), 0);
    assert_eq!(mesh.stat("cluster.b.upstream_rq_pending_active"), 0);
}

#[test]
fn a_retried_answer_is_an_error_of_its_host() {
    // As recorded of Envoy: whatever the status, only an answer that reached the client is a success.
    let retry = "retry: {on: [retriable-4xx, 5xx], times: 1}";
    for (first, second, errors, successes) in
        [(409, 200, 1, 1), (409, 409, 1, 1), (503, 200, 1, 1), (503, 503, 2, 0), (429, 200, 0, 1)]
    {
        let mesh = Mesh::new(&format!("clusters: {{web: {{hosts: [10.0.0.1:80], {retry}}}}}"));
        let mut at = mesh.begin("web");
        if mesh.complete(at.attempt, first).action == action::RETRY {
            mesh.advance(25 * MS);
            at = mesh.choose(at.request);
            mesh.complete(at.attempt, second);
        }
        let hosts: serde_json::Value = serde_json::from_str(&raw::text(mesh.0, 10, "web").unwrap()).unwrap();
        let host = &hosts[0];
        assert_eq!(
            (&host["rq_error"], &host["rq_success"]),
            (&errors.into(), &successes.into()),
            "{first} {second}"
        );
    }
}

#[test]
fn the_runtime_says_how_long_a_retry_waits_at_first() {
    let mesh = |block: &str, runtime: &str| {
        let retry = format!("retry: {{on: 5xx, times: 3{block}}}");
        let yaml = format!(
            "clusters: {{web: {{hosts: [10.0.0.1:80], {retry}}}}}\nnexthop: {{runtime: {{{runtime}}}}}"
        );
        Mesh::drawn(&yaml, Some(vec![999_999; 16]))
    };
    let waits = |mesh: &Mesh| {
        let mut at = mesh.begin("web");
        let mut waits = Vec::new();
        loop {
            let verdict = mesh.complete(at.attempt, 503);
            if verdict.action != action::RETRY {
                return waits;
            }
            waits.push(verdict.after_ms);
            mesh.advance(u64::from(verdict.after_ms) * MS);
            at = mesh.choose(at.request);
        }
    };
    let key = "upstream.base_retry_backoff_ms";
    let below = |bounds: [u32; 3]| bounds.map(|bound| 999_999 % bound).to_vec();
    assert_eq!(waits(&mesh("", "")), below([25, 50, 100]));
    assert_eq!(waits(&mesh("", &format!("{key}: 700"))), below([700, 1400, 2800]));
    assert_eq!(waits(&mesh("", &format!("{key}: 0.5"))), below([25, 50, 100]), "a fraction is no number");
    assert_eq!(waits(&mesh(", backoff: {base: 25ms}", &format!("{key}: 700"))), below([25, 50, 100]));
    let told: serde_json::Value =
        serde_json::from_str(&raw::text(mesh("", &format!("{key}: 700")).0, 3, "web").unwrap()).unwrap();
    let row =
        |field: &str| told["values"].as_array().unwrap().iter().find(|row| row["field"] == field).cloned();
    let base = row("retry.back_off.base").unwrap();
    assert_eq!((&base["value"], &base["from"]), (&0.7.into(), &"runtime".into()), "{base}");
}
