//! `deadline_first`, `retry_after`, `idempotency`, `layers`.

use crate::{MS, Mesh, S, status, with};
use nexthop::raw::{Head, action, failure, kind, reason, refusal};

fn mesh(timeout: &str, times: u32, block: &str) -> Mesh {
    Mesh::new(&format!(
        "clusters: {{web: {{hosts: [10.0.0.1:80, 10.0.0.2:80], timeout: {timeout}, \
         retry: {{on: [5xx, connect-failure, reset], times: {times}, backoff: {{base: 100ms}}, nexthop: {{{block}}}}}}}}}"
    ))
}

#[test]
fn no_wait_that_ends_after_the_deadline() {
    let mesh = mesh("1s", 5, "deadline_first: true");
    let mut retries = 0;
    for _ in 0..50 {
        let first = mesh.begin("web");
        mesh.advance(980 * MS);
        let verdict = mesh.complete(&first, status(503));
        match verdict.action {
            action::RETRY => {
                assert!(verdict.after_ms < 20);
                let second = mesh.next(first.request);
                assert_eq!(second.kind, kind::GO, "a wait that was begun ends in time");
                mesh.cancel(&second);
                retries += 1;
            }
            _ => assert_eq!((verdict.action, verdict.reason), (action::FORWARD, reason::DEADLINE)),
        }
    }
    assert!((1..50).contains(&retries), "{retries} back-offs of up to 100 ms fit into 20 ms");
    assert_eq!(mesh.stat("cluster.web.nexthop.deadline_first.gave_up"), 50 - retries);
    // The retry slot of each that was given up came back.
    assert_eq!(mesh.stat("cluster.web.upstream_rq_retry_overflow"), 0);
}

#[test]
fn no_attempt_that_cannot_end() {
    let mesh = mesh("1s", 5, "deadline_first: {least: 200ms}");
    let first = mesh.begin("web");
    mesh.advance(801 * MS);
    assert_eq!(mesh.complete(&first, status(503)).reason, reason::DEADLINE);
    let target = nexthop::raw::resolve(mesh.0, "web").unwrap();
    let short = mesh.begin_head(&Head { target, timeout: 199 * MS, ..Head::default() });
    assert_eq!((short.kind, short.refusal, short.status), (kind::REFUSED, refusal::DEADLINE, 504));
    let enough = mesh.begin_head(&Head { target, timeout: 200 * MS, ..Head::default() });
    assert_eq!(enough.kind, kind::GO);
    mesh.complete(&enough, status(200));
    // Early enough when it was decided, too late when it is asked for.
    let slow = mesh.begin("web");
    assert_eq!(mesh.complete(&slow, status(503)).action, action::RETRY);
    mesh.advance(900 * MS);
    let refused = mesh.choose(slow.request);
    assert_eq!((refused.kind, refused.refusal), (kind::REFUSED, refusal::DEADLINE));
    assert_eq!(mesh.stat("nexthop.live_requests"), 0);
}

#[test]
fn a_stateless_attempt_with_too_little_time() {
    let mesh = mesh("100ms", 5, "deadline_first: {least: 200ms}");
    let mut out = nexthop::raw::Decision::default();
    let target = nexthop::raw::resolve(mesh.0, "web").unwrap();
    nexthop::raw::with_local(|local| nexthop::raw::pick(local, mesh.0, target, 1, None, 0, &mut out))
        .unwrap();
    assert_eq!((out.kind, out.refusal), (kind::REFUSED, refusal::DEADLINE));
}

#[test]
fn what_retry_after_says_is_waited_for() {
    let mesh = mesh("60s", 5, "retry_after: honour");
    for (value, least) in [("2", 2 * S), ("0", 0), ("1.5", 1500 * MS), ("soon", 0)] {
        let first = mesh.begin("web");
        let verdict = mesh.complete(&first, with(503, &[("retry-after", value)]));
        assert_eq!(verdict.action, action::RETRY, "{value}");
        let after = u64::from(verdict.after_ms) * MS;
        assert!((least..least + 100 * MS).contains(&after), "{value}: {after}");
        let named = if least > 0 { reason::BACKOFF_RATELIMITED } else { reason::BACKOFF };
        assert_eq!(verdict.reason, named, "{value}");
        let second = mesh.next(first.request);
        mesh.complete(&second, status(200));
    }
    assert_eq!(mesh.stat("cluster.web.nexthop.retry_after.waited"), 2);
    assert_eq!(mesh.stat("cluster.web.upstream_rq_retry_backoff_ratelimited"), 2);
}

#[test]
fn or_the_retry_is_given_up_never_early() {
    let mesh = mesh("10s", 5, "retry_after: {max: 8s}");
    for (value, why) in [
        ("9", reason::RETRY_AFTER_TOO_LONG),
        ("8", reason::BACKOFF_RATELIMITED),
        ("86400", reason::RETRY_AFTER_TOO_LONG),
    ] {
        let first = mesh.begin("web");
        let verdict = mesh.complete(&first, with(503, &[("retry-after", value)]));
        assert_eq!(verdict.reason, why, "{value}");
        if verdict.action == action::RETRY {
            mesh.cancel(&mesh.next(first.request));
        }
    }
    // As long as the header says, but not longer than the request may take.
    let first = mesh.begin("web");
    mesh.advance(2_050 * MS);
    let verdict = mesh.complete(&first, with(503, &[("retry-after-ms", "7940"), ("retry-after", "8")]));
    assert_eq!(
        (verdict.action, verdict.after_ms / 10),
        (action::RETRY, 794),
        "what was drawn on top is left out"
    );
    mesh.cancel(&mesh.next(first.request));
    let late = mesh.begin("web");
    mesh.advance(2_060 * MS);
    let verdict = mesh.complete(&late, with(503, &[("retry-after-ms", "7940")]));
    assert_eq!(verdict.reason, reason::RETRY_AFTER_TOO_LONG, "it would be over at the deadline");
    assert_eq!(mesh.stat("cluster.web.nexthop.retry_after.gave_up"), 3);
}

#[test]
fn another_cluster_did_not_ask_for_a_wait() {
    let mesh = Mesh::new(
        "clusters: {a: {hosts: [10.0.0.1:80]}, b: {hosts: [10.0.0.2:80]}, both: {composite: [a, b], \
         retry: {on: 5xx, times: 3, nexthop: {retry_after: honour}}}}",
    );
    let first = mesh.begin("both");
    let verdict = mesh.complete(&first, with(503, &[("retry-after", "7")]));
    assert!(verdict.action == action::RETRY && verdict.after_ms < 25, "{verdict:?}");
    assert_eq!(mesh.address(&mesh.next(first.request)), "10.0.0.2:80");
}

#[test]
fn what_cannot_be_repeated_is_not() {
    let mesh = mesh("15s", 5, "idempotency: guard");
    for (method, headers, again) in [
        ("GET", &[][..], true),
        ("", &[], true),
        ("PUT", &[], true),
        ("POST", &[], false),
        ("PATCH", &[], false),
        ("get", &[], false),
        ("POST", &[("idempotency-key", "k1")], true),
        ("POST", &[("idempotency-key", "")], false),
    ] {
        let first = mesh.request("web", method, headers);
        let verdict = mesh.complete(&first, status(503));
        assert_eq!(verdict.action == action::RETRY, again, "{method} {headers:?}");
        if again {
            mesh.cancel(&mesh.next(first.request));
        } else {
            assert_eq!(verdict.reason, reason::NOT_IDEMPOTENT);
        }
    }
    for (kind, again) in [
        (failure::CONNECT_FAILURE, true),
        (failure::CONNECT_TIMEOUT, true),
        (failure::REFUSED_STREAM, true),
        (failure::REMOTE_RESET, false),
        (failure::PER_TRY_TIMEOUT, false),
    ] {
        let first = mesh.request("web", "POST", &[]);
        let verdict = mesh.fail(&first, kind);
        assert_eq!(verdict.action == action::RETRY, again, "{}", failure::NAMES[usize::from(kind)]);
        if again {
            mesh.cancel(&mesh.next(first.request));
        }
    }
    assert_eq!(mesh.stat("cluster.web.nexthop.idempotency.gave_up"), 6);
}

/// Attempts of a request that always fails.
fn attempts(mesh: &Mesh, outer: &[(&str, &str)]) -> (u32, u8) {
    let mut at = mesh.request("web", "GET", outer);
    loop {
        let verdict = mesh.complete(&at, status(503));
        if verdict.action != action::RETRY {
            return (at.number, verdict.reason);
        }
        at = mesh.next(at.request);
    }
}

#[test]
fn an_outer_layers_attempts_count() {
    let mesh = mesh("60s", 5, "layers: {max_product: 6}");
    let count = "x-envoy-attempt-count";
    for (outer, most) in
        [("1", 6), ("2", 3), ("3", 2), ("4", 1), ("7", 1), ("99999999999", 6), ("x", 6), ("0", 6)]
    {
        let why = if most == 6 { reason::LIMIT_EXCEEDED } else { reason::OUTER_LAYER_RETRIES };
        assert_eq!(attempts(&mesh, &[(count, outer)]), (most, why), "outer attempt {outer}");
    }
    assert_eq!(attempts(&mesh, &[]), (6, reason::LIMIT_EXCEEDED));
    let own = self::mesh("60s", 5, "layers: {header: X-Try, max_product: 4}");
    assert_eq!(attempts(&own, &[("x-try", "2")]), (2, reason::OUTER_LAYER_RETRIES));
    assert_eq!(
        attempts(&own, &[]),
        (4, reason::OUTER_LAYER_RETRIES),
        "the product of one layer is bounded, too"
    );
}

#[test]
fn dry_runs_decide_and_do_nothing() {
    let mesh = mesh(
        "10s",
        5,
        "deadline_first: {least: 6s, dry_run: true}, retry_after: {dry_run: true}, \
         idempotency: {dry_run: true}, layers: {max_product: 1, dry_run: true}",
    );
    let first = mesh.request("web", "POST", &[]);
    mesh.advance(5 * S);
    let verdict = mesh.complete(&first, with(503, &[("retry-after", "7")]));
    assert!(verdict.action == action::RETRY && verdict.after_ms < 100, "{verdict:?}");
    assert_eq!(mesh.next(first.request).kind, kind::GO);
    let mut names: Vec<String> =
        mesh.events("nexthop.would").iter().map(|e| e["mechanism"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names, ["deadline_first", "idempotency", "layers", "retry_after"]);
    for name in names {
        assert!(mesh.stat(&format!("cluster.web.nexthop.{name}.dry_run")) > 0, "{name}");
        assert_eq!(mesh.stat(&format!("cluster.web.nexthop.{name}.gave_up")), 0, "{name}");
    }
}
