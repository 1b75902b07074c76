//! What SECURITY.md promises about clients, upstreams and documents that mean harm: each bound, tried.

use nexthop::raw::{
    self, Decision, Document, Head, Misuse, Options, Outcome, action, clock, document_kind, failure,
    head_bits, kind,
};

const DOCUMENT: &str = r#"
static_resources:
  clusters:
  - name: web
    outlier_detection: {consecutive_5xx: 1, enforcing_consecutive_5xx: 0, interval: 300s, max_ejection_percent: 100}
    load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [
      {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}
---
name: routes
virtual_hosts:
- name: all
  domains: ["*"]
  retry_policy:
    retry_on: 5xx
    num_retries: 1
    rate_limited_retry_back_off: {reset_headers: [{name: retry-after}, {name: x-reset, format: UNIX_TIMESTAMP}], max_interval: 20s}
  routes:
  - match: {safe_regex: {regex: "/(a+)+c"}}
    route: {cluster: web}
  - match: {prefix: /named}
    route: {cluster_header: x-to}
  - match: {prefix: /}
    route: {cluster: web}
"#;

struct Mesh {
    engine: u64,
    want: u32,
    names: Vec<String>,
}

impl Mesh {
    fn new() -> Self {
        let document =
            Document { kind: document_kind::TEXT, dialect: "", name: "", text: DOCUMENT.as_bytes() };
        let options = Options { workers: 1, seed: 7, clock: clock::MANUAL, ..Options::default() };
        let engine = raw::engine_new(&options, &[document]).unwrap_or_else(|error| panic!("{error}"));
        let (want, names) = raw::want(engine, 0).unwrap();
        Self { engine, want, names: names.iter().map(|name| name.to_string()).collect() }
    }

    fn begin(&self, bits: u32, path: &str, headers: &[(&str, &str)]) -> Result<Decision, Misuse> {
        let block = block(&self.names, headers);
        let head = Head { bits, path, authority: "a", headers: &block, want: self.want, ..Head::default() };
        let mut out = Decision::default();
        raw::with_local(|local| raw::begin(local, self.engine, &head, 0, &mut out)).map(|()| out)
    }

    fn close(&self, request: u64) {
        raw::with_local(|local| raw::finish(local, request, raw::finish::CLIENT_GONE, 0));
    }

    fn text(&self, what: u32) -> String {
        raw::text(self.engine, what, "").unwrap()
    }
}

fn block(names: &[String], headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        let index =
            names.iter().position(|known| known == name).unwrap_or_else(|| panic!("{name} is not read"));
        block.extend((index as u16).to_le_bytes());
        block.extend([0, 0]);
        block.extend((value.len() as u32).to_le_bytes());
        block.extend(value.as_bytes());
    }
    block
}

/// A head of more than 60 KiB is refused, whatever fills it; the engine goes on.
#[test]
fn a_head_has_a_largest_size() {
    let mesh = Mesh::new();
    let long = format!("/{}", "x".repeat(61 * 1024));
    assert_eq!(mesh.begin(0, &long, &[]), Err(Misuse::Limit));
    assert_eq!(mesh.begin(0, "/", &[("content-type", &long)]), Err(Misuse::Limit));
    let many = vec![("content-type", "x"); 8000];
    assert_eq!(mesh.begin(0, "/", &many), Err(Misuse::Limit));
    let decision = mesh.begin(0, "/", &[]).unwrap();
    assert_eq!(decision.kind, kind::GO);
    mesh.close(decision.request);
    assert_eq!(raw::engine_info(mesh.engine).unwrap().live_requests, 0);
}

/// Expressions take time in proportion to the text: one that backtracks would not come back from this.
#[test]
fn regular_expressions_are_linear() {
    let mesh = Mesh::new();
    let path = format!("/{}b", "a".repeat(50 * 1024));
    let decision = mesh.begin(0, &path, &[]).unwrap();
    mesh.close(decision.request);
}

/// Expressions that would compile into very much are refused with their document.
#[test]
fn regular_expressions_have_a_largest_size() {
    for regex in ["(a{1000}){1000}", "((a{100}){100}){100}", "x{1001}", "(?:(?:[a-z]{900}){900}|b)*"] {
        let text = DOCUMENT.replace("/(a+)+c", regex);
        let document = Document { kind: document_kind::TEXT, dialect: "", name: "", text: text.as_bytes() };
        assert!(raw::engine_new(&Options::default(), &[document]).is_err(), "{regex}");
    }
}

/// An upstream cannot make a client wait longer than `max_interval` and half of it for jitter.
#[test]
fn a_poisoned_retry_after_has_no_effect() {
    let mesh = Mesh::new();
    let digits = "9".repeat(4000);
    for value in [
        "999999999",
        "-1",
        "1e9",
        "NaN",
        "0x7fffffff",
        " 5 ",
        "18446744073709551616",
        "",
        &digits,
        "5;6",
        "\u{0}",
    ] {
        for name in ["retry-after", "x-reset"] {
            let decision = mesh.begin(0, "/", &[]).unwrap();
            let (_, names) = raw::want(mesh.engine, decision.want_err.into()).unwrap();
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            let headers = block(&names, &[(name, value)]);
            let outcome = Outcome { status: 503, headers: &headers, ..Outcome::default() };
            let verdict = raw::with_local(|local| raw::complete(local, decision.attempt, &outcome, 0));
            assert_eq!((verdict.code, verdict.action), (0, action::RETRY), "{name}: {value}");
            assert!(verdict.after_ms <= 30_000, "{name}: {value} is {} ms", verdict.after_ms);
            mesh.close(decision.request);
        }
    }
}

/// Lists of header names that internal clients ask for are kept; there are at most so many of them.
#[test]
fn lists_of_names_do_not_grow_without_end() {
    let mesh = Mesh::new();
    for number in 0..6000 {
        let names = format!("x-a{number}");
        let headers = [("x-envoy-retry-on", "retriable-headers"), ("x-envoy-retriable-header-names", &names)];
        let decision = mesh.begin(head_bits::INTERNAL, "/", &headers).unwrap();
        assert_eq!(decision.kind, kind::GO);
        assert!(decision.want_ok < 4200 && decision.want_err < 4200, "set {}", decision.want_err);
        mesh.close(decision.request);
    }
}

/// Names of clusters and statuses that others choose make no counters.
#[test]
fn names_from_outside_are_not_kept() {
    let mesh = Mesh::new();
    for (status, target) in [(100, "x"), (999, "y")] {
        // Every status there is, and one unknown cluster: from here on the texts keep their size.
        for status in [status, 200, 404] {
            let decision = mesh.begin(0, "/", &[]).unwrap();
            raw::with_local(|local| raw::complete_status(local, decision.attempt, status, 0));
            mesh.close(decision.request);
        }
        mesh.close(mesh.begin(0, "/named", &[("x-to", target)]).unwrap().request);
    }
    let before = (mesh.text(1).len(), mesh.text(2).len());
    for number in 0..5000 {
        let name = format!("nowhere-{number}");
        let decision = mesh.begin(0, "/named", &[("x-to", &name)]).unwrap();
        assert_eq!(decision.kind, kind::REFUSED);
        mesh.close(decision.request);
    }
    let grown = (mesh.text(1).len() - before.0, mesh.text(2).len() - before.1);
    assert!(grown.0 < 64 && grown.1 < 64, "texts grew by {grown:?} bytes");
}

/// Events nobody reads are overwritten, and counted.
#[test]
fn events_do_not_pile_up() {
    let mesh = Mesh::new();
    for _ in 0..5000 {
        let decision = mesh.begin(0, "/", &[]).unwrap();
        raw::with_local(|local| raw::fail(local, decision.attempt, failure::CONNECT_FAILURE.into(), 0));
        mesh.close(decision.request);
    }
    let mut kept = 0;
    while raw::poll_event(mesh.engine).unwrap().is_some() {
        kept += 1;
        assert!(kept <= 1100, "more than the ring holds");
    }
    assert!(kept >= 1000, "{kept} events");
}
