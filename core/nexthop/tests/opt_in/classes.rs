//! `classes`.

use crate::{Answer, Mesh, S, status, with};
use nexthop::raw::{action, kind, reason, refusal};

const PROVIDERS: &str = "
clusters:
  first: {hosts: [10.0.0.1:80, 10.0.0.2:80]}
  second: {hosts: [10.0.1.1:80]}
  third: {hosts: [10.0.2.1:80]}
  models:
    composite: [first, second, third]
    retry:
      on: [5xx]
      times: 4
      backoff: {base: 1ms}
      nexthop:
        classes:
          - {when: {status: 429, body_code: [insufficient_quota, billing]}, class: quota, next: cluster, cool_down: 60s}
          - {when: {status: 429}, class: rate_limited, next: host}
          - {when: {status: [401, 403]}, class: auth, next: stop}
          - {when: {status: 400, header: {x-error: context_length}}, class: too_long, next: stop}
          - {when: {status: 529}, class: overloaded, next: host, same_host: true}
          - {when: {status: 5xx, header: x-should-not-retry}, class: other, next: stop}
";

fn detail(status: u16, detail: &str) -> Answer<'_> {
    Answer { status, detail, ..Answer::default() }
}

#[test]
fn a_rate_limit_stays_in_the_cluster_and_leaves_the_host() {
    let mesh = Mesh::new(PROVIDERS);
    let first = mesh.begin("models");
    assert_eq!(mesh.complete(&first, detail(429, "rate_limit_exceeded")).action, action::RETRY);
    let second = mesh.next(first.request);
    assert_eq!(second.number, 2);
    assert!(mesh.address(&second).starts_with("10.0.0."), "another host of the same provider");
    assert_ne!(mesh.address(&second), mesh.address(&first));
    assert_eq!(mesh.complete(&second, status(500)).action, action::RETRY);
    assert_eq!(mesh.address(&mesh.next(first.request)), "10.0.1.1:80", "then on to the next step");
    assert_eq!(mesh.stat("cluster.first.nexthop.classes.rate_limited"), 1);
}

#[test]
fn the_same_host_may_be_asked_again() {
    let mesh = Mesh::new(
        "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80], retry: {on: 5xx, times: 9, backoff: {base: 1ms}, nexthop: \
         {classes: [{when: {status: 529}, class: overloaded, next: host, same_host: true}, \
         {when: {status: 503}, class: overloaded}]}}}}",
    );
    let mut at = mesh.begin("web");
    let first = mesh.address(&at);
    mesh.complete(&at, status(529));
    at = mesh.next(at.request);
    assert_ne!(mesh.address(&at), first, "its turn in round robin");
    mesh.complete(&at, status(529));
    at = mesh.next(at.request);
    assert_eq!(mesh.address(&at), first);
    // From here on nobody goes there: `same_host` is false unless said otherwise.
    for _ in 0..4 {
        assert_eq!(mesh.complete(&at, status(503)).action, action::RETRY);
        at = mesh.next(at.request);
        if mesh.address(&at) != first {
            break;
        }
    }
    assert_ne!(mesh.address(&at), first);
}

#[test]
fn a_used_up_quota_moves_on_and_sets_aside() {
    let mesh = Mesh::new(PROVIDERS);
    let first = mesh.begin("models");
    mesh.complete(&first, detail(429, "insufficient_quota"));
    let second = mesh.next(first.request);
    assert_eq!(mesh.address(&second), "10.0.1.1:80");
    assert_eq!(mesh.complete(&second, detail(429, "billing")).action, action::RETRY);
    let third = mesh.next(first.request);
    assert_eq!(mesh.address(&third), "10.0.2.1:80");
    // The last provider's answer is better than none.
    let verdict = mesh.complete(&third, detail(429, "billing"));
    assert_eq!(
        (verdict.action, verdict.reason, verdict.status),
        (action::FORWARD, reason::NOT_RETRIABLE, 429)
    );
    let next = mesh.begin("models");
    assert_ne!(mesh.address(&next), mesh.address(&first), "that host's minute has begun");
    mesh.complete(&next, detail(429, "billing"));
    let refused = mesh.next(next.request);
    assert_eq!((refused.kind, refused.refusal), (kind::REFUSED, refusal::COOLING));
    mesh.advance(60 * S);
    assert_eq!(mesh.begin("models").kind, kind::GO);
}

#[test]
fn a_retry_skips_a_cluster_only_once_told_to() {
    let mesh = Mesh::new(PROVIDERS);
    // The first provider cools down whole, so the walk begins at the second: its quota moves on to the third.
    for _ in 0..2 {
        let at = mesh.begin("models");
        mesh.complete(&at, detail(429, "billing"));
        mesh.cancel(&mesh.next(at.request));
    }
    let at = mesh.begin("models");
    assert_eq!(mesh.address(&at), "10.0.1.1:80");
    mesh.complete(&at, detail(429, "billing"));
    assert_eq!(mesh.address(&mesh.next(at.request)), "10.0.2.1:80");
}

#[test]
fn some_answers_are_final() {
    let mesh = Mesh::new(PROVIDERS);
    for (answer, class) in [
        (status(401), "auth"),
        (with(400, &[("x-error", "context_length")]), "too_long"),
        (with(503, &[("x-should-not-retry", "1")]), "other"),
    ] {
        let at = mesh.begin("models");
        let verdict = mesh.complete(&at, answer);
        assert_eq!((verdict.action, verdict.reason), (action::FORWARD, reason::NOT_RETRIABLE), "{class}");
        assert_eq!(mesh.stat(&format!("cluster.first.nexthop.classes.{class}")), 1);
    }
    let at = mesh.begin("models");
    assert_eq!(mesh.complete(&at, status(503)).action, action::RETRY, "no class: as the conditions say");
}

#[test]
fn a_dry_run_counts_the_class_and_decides_as_without() {
    let mesh = Mesh::new(
        "clusters: {web: {hosts: [10.0.0.1:80], retry: {on: 5xx, times: 1, nexthop: {classes: \
         [{when: {status: 500}, class: filtered, next: stop, dry_run: true}]}}}}",
    );
    let at = mesh.begin("web");
    assert_eq!(mesh.complete(&at, status(500)).action, action::RETRY);
    assert_eq!(mesh.stat("cluster.web.nexthop.classes.filtered"), 1);
    assert_eq!(mesh.stat("cluster.web.nexthop.classes.dry_run"), 1);
}

#[test]
fn classes_alone_make_retries() {
    let mesh = Mesh::new(
        "static_resources: {clusters: [{name: web, connect_timeout: 1s, load_assignment: {cluster_name: web, endpoints: \
         [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}, \
         typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {\
         '@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: \
         {http_protocol_options: {}}, retry_policy: {num_retries: 2, nexthop: \
         {classes: [{when: {status: 418}, class: other, next: host}]}}}}}]}",
    );
    let at = mesh.begin("web");
    assert_eq!(mesh.complete(&at, status(500)).action, action::FORWARD);
    let at = mesh.begin("web");
    assert_eq!(mesh.complete(&at, status(418)).action, action::RETRY);
    assert_eq!(mesh.next(at.request).number, 2);
}
