//! Values of request and response headers, paths and addresses: nothing of a client or an upstream breaks a decision.

use crate::bytes::Bytes;
use nexthop::raw::{self, Decision, Document, Head, Options, Outcome, action, clock, document_kind, kind};
use std::cell::OnceCell;

const DOCUMENT: &str = r#"
static_resources:
  clusters:
  - name: web
    lb_policy: RING_HASH
    lb_subset_config: {fallback_policy: ANY_ENDPOINT, subset_selectors: [{keys: [v]}]}
    outlier_detection: {consecutive_5xx: 5, split_external_local_origin_errors: true}
    load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [
      {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}, metadata: {filter_metadata: {envoy.lb: {v: 1}}}},
      {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}]}]}
---
name: routes
virtual_hosts:
- name: some
  domains: ["a.example", "*.b.example", "c.*"]
  routes:
  - match: {safe_regex: {regex: "/r/([a-z]+)/.*"}, headers: [{name: x-n, range_match: {start: -5, end: 99}}]}
    route: {cluster: web, regex_rewrite: {pattern: {regex: "^/r/([a-z]+)"}, substitution: "/\\1"}}
  - match: {prefix: /q, query_parameters: [{name: k, string_match: {safe_regex: {regex: "v[0-9]*"}}}]}
    redirect: {path_redirect: "/else", strip_query: true}
  - match: {prefix: /p, case_sensitive: false}
    route: {cluster: web, prefix_rewrite: "/new"}
- name: all
  domains: ["*"]
  include_request_attempt_count: true
  retry_policy:
    retry_on: "5xx,reset,retriable-headers,retriable-status-codes,retriable-4xx,unavailable"
    num_retries: 3
    retriable_headers: [{name: x-retry, string_match: {safe_regex: {regex: "(y|ye|yes)+"}}}]
    retriable_request_headers: [{name: x-may, present_match: true}]
    rate_limited_retry_back_off: {reset_headers: [{name: retry-after, format: SECONDS}, {name: x-reset, format: UNIX_TIMESTAMP}], max_interval: 20s}
  routes:
  - match: {prefix: /}
    route:
      cluster: web
      max_stream_duration: {grpc_timeout_header_max: 3s}
      hash_policy:
      - {header: {header_name: x-key, regex_rewrite: {pattern: {regex: "a(.*)b"}, substitution: "\\1"}}, terminal: true}
      - {cookie: {name: sid, ttl: 60s, path: /}}
      - {query_parameter: {name: q}}
      - {connection_properties: {source_ip: true}}
"#;

/// Longest wait that the document allows: `max_interval` and half of it for jitter.
const LONGEST_MS: u32 = 30_001;

struct Mesh {
    engine: u64,
}

fn mesh() -> u64 {
    thread_local!(static MESH: OnceCell<Mesh> = const { OnceCell::new() });
    MESH.with(|mesh| {
        mesh.get_or_init(|| {
            let without = DOCUMENT.replace("      max_stream_duration: {grpc_timeout_header_max: 3s}\n", "");
            let document =
                Document { kind: document_kind::TEXT, dialect: "", name: "", text: without.as_bytes() };
            let options = Options { workers: 1, seed: 5, clock: clock::MANUAL, ..Options::default() };
            let engine = raw::engine_new(&options, &[document]).unwrap_or_else(|error| panic!("{error}"));
            Mesh { engine }
        })
        .engine
    })
}

/// A header block: index into a wanted set and value, several times. Now and then not a whole one.
fn block(bytes: &mut Bytes<'_>, out: &mut Vec<u8>) {
    out.clear();
    for _ in 0..bytes.below(9) {
        let index = u16::from(bytes.byte()) % 40;
        let value = bytes.piece();
        out.extend(index.to_le_bytes());
        out.extend(0u16.to_le_bytes());
        out.extend((value.len() as u32).to_le_bytes());
        out.extend(value);
    }
    if bytes.byte() == 255 {
        out.truncate(out.len() * 2 / 3);
    }
}

/// One request with arbitrary words, and attempts with arbitrary answers.
pub fn headers(data: &[u8]) {
    let engine = mesh();
    let mut bytes = Bytes(data);
    let mut packed = Vec::new();
    block(&mut bytes, &mut packed);
    let want = raw::want(engine, 0).expect("the request's set").0;
    let head = Head {
        bits: u32::from(bytes.byte() & 15),
        want,
        priority: bytes.pick(&[0, 1, -1]),
        body: bytes.below(4) as u8,
        method: bytes.pick(&["", "GET", "POST"]),
        authority: bytes.text(),
        path: bytes.text(),
        source: bytes.text(),
        local: bytes.text(),
        metadata: bytes.text(),
        override_host: bytes.text(),
        headers: &packed,
        ..Head::default()
    };
    let mut decision = Decision::default();
    let Ok(()) = raw::with_local(|local| raw::begin(local, engine, &head, 0, &mut decision)) else {
        return idle(engine);
    };
    let request = decision.request;
    let mut answer = Vec::new();
    for _ in 0..8 {
        match decision.kind {
            kind::REFUSED => break,
            kind::WAIT => {
                raw::advance(engine, decision.wait.min(60_000_000_000)).expect("the manual clock moves");
            }
            _ => {
                block(&mut bytes, &mut answer);
                let outcome = Outcome {
                    status: bytes.pick(&[200, 503, 429, 404, 100, 101, 0, 999]),
                    failure: bytes.pick(&[0, 0, 0, 1, 3, 4, 8, 200]),
                    grpc_status: bytes.byte() as i8,
                    bits: u32::from(bytes.byte()),
                    headers: &answer,
                    detail: bytes.text(),
                    ..Outcome::default()
                };
                let _ = raw::extra_headers(decision.attempt);
                let told = raw::with_local(|local| raw::complete(local, decision.attempt, &outcome, 0));
                if told.code != 0 {
                    raw::with_local(|local| raw::cancel(local, decision.attempt, 0));
                    break;
                }
                assert!(told.after_ms <= LONGEST_MS, "a header made a wait of {} ms", told.after_ms);
                if told.action != action::RETRY {
                    break;
                }
            }
        }
        if raw::with_local(|local| raw::choose(local, request, 0, &mut decision)).is_err() {
            break;
        }
    }
    let _ = (raw::reply(request), raw::extra_headers(request));
    raw::with_local(|local| raw::finish(local, request, raw::finish::CLIENT_GONE, 0));
    idle(engine);
}

fn idle(engine: u64) {
    let info = raw::engine_info(engine).expect("the engine is open");
    assert_eq!((info.panics, info.live_requests), (0, 0));
}
