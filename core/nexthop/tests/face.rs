//! The Rust face: drops, waits, documents, numbers; on a clock moved by hand.

use nexthop::{
    Action, Choice, Clock, Engine, Error, Finish, HostChange, Misuse, Outcome, Reason, RefusalKind,
    RequestHead, Resource, ResponseFlags, Stat, Text, Time, WaitReason, failure, host_op,
};
use std::sync::Arc;
use std::time::Duration;

const NARROW: &str =
    "clusters: {b: {hosts: [10.0.0.1:80], limits: {connections: 1, pending: 1}, timeout: 30s}}";
const RETRY: &str = "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80], \
    retry: {on: [5xx, connect-failure, reset], times: 1, avoid_tried: true}}}";

fn mesh(text: &str) -> Engine {
    let built = Engine::builder().text(text).workers(1).seed(7).clock(Clock::Manual).build();
    built.unwrap_or_else(|error| panic!("{error}"))
}

fn to<'a>(mesh: &Engine, cluster: &str) -> RequestHead<'a> {
    RequestHead { target: mesh.resolve(cluster).unwrap(), ..RequestHead::default() }
}

fn stat(mesh: &Engine, name: &str) -> u64 {
    let mut found = None;
    mesh.stats(&mut |at, value| {
        let (Stat::Counter(value) | Stat::Gauge(value)) = value;
        if at == name {
            found = Some(value);
        }
    });
    found.unwrap_or_else(|| panic!("no stat {name}"))
}

macro_rules! expect {
    ($choice:expr, $variant:ident) => {
        match $choice {
            Ok(Choice::$variant(it)) => it,
            other => panic!("expected {}, got {other:?}", stringify!($variant)),
        }
    };
}

#[test]
fn a_dropped_attempt_gives_everything_back() {
    let mesh = mesh(NARROW);
    let now = mesh.now();
    let mut call = mesh.request(&to(&mesh, "b"), now);
    let attempt = expect!(call.choose_host(now), Attempt);
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_active"), 1);
    assert_eq!(call.choose_host(now).unwrap_err(), Misuse::State, "one attempt at a time");
    drop(attempt);
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_active"), 0);
    assert_eq!(call.choose_host(now).unwrap_err(), Misuse::Ended, "the request ended with its only attempt");
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_completed"), 0, "nobody answered");
}

#[test]
fn a_dropped_request_says_that_the_client_is_gone() {
    let mesh = mesh(NARROW);
    let now = mesh.now();
    let mut first = mesh.request(&to(&mesh, "b"), now);
    let attempt = expect!(first.choose_host(now), Attempt);
    let mut second = mesh.request(&to(&mesh, "b"), now);
    assert_eq!(expect!(second.choose_host(now), Wait).reason, WaitReason::QUEUE);
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_pending_active"), 1);
    drop(second);
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_pending_active"), 0);
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_cancelled"), 1);
    drop(first);
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_active"), 0, "its open attempt is cancelled");
    assert_eq!(attempt.complete(&Outcome::status(200), now), Err(Misuse::Ended));
}

#[test]
fn an_answered_attempt_outlives_its_request_when_handed_over() {
    let mesh = Arc::new(mesh(NARROW));
    let now = mesh.now();
    let mut call = mesh.request_arc(&to(&mesh, "b"), now);
    let mut attempt = expect!(call.choose_host(now), Attempt);
    let verdict = attempt.on_headers(&Outcome::status(200), now).unwrap();
    assert_eq!((verdict.action, verdict.reason), (Action::Forward, Reason::SUCCESS));
    call.hand_over();
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_active"), 1);
    assert_eq!(attempt.end(&Outcome::default(), now).unwrap().reason, Reason::STREAM_ENDED);
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_active"), 0);
}

#[test]
fn a_report_that_is_refused_cancels() {
    let mesh = mesh(NARROW);
    let now = mesh.now();
    let attempt = expect!(mesh.request(&to(&mesh, "b"), now).choose_host(now), Attempt);
    // The request was a temporary: it is gone, and its attempt with it.
    assert_eq!(attempt.fail(failure::REMOTE_RESET, now), Err(Misuse::Ended));
    let mut call = mesh.request(&to(&mesh, "b"), now);
    let attempt = expect!(call.choose_host(now), Attempt);
    assert_eq!(attempt.complete(&Outcome::status(99), now), Err(Misuse::Invalid));
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_active"), 0);
}

#[test]
fn waits_and_verdicts_of_a_retry() {
    let mesh = mesh(RETRY);
    let mut call = mesh.request(&to(&mesh, "web"), mesh.now());
    assert_eq!(call.info().unwrap().cluster, "web");
    let attempt = expect!(call.choose_host(mesh.now()), Attempt);
    let first = attempt.host().address.clone();
    assert_eq!(attempt.url("/x"), format!("http://{}/x", first.strip_suffix(":80").unwrap()));
    let line = attempt.explain().unwrap();
    assert!(line.starts_with(&format!("cluster web: attempt 1 went to {first}")), "{line}");
    let verdict = attempt.complete(&Outcome::failed(failure::CONNECT_FAILURE), mesh.now()).unwrap();
    assert!(
        verdict.retry() && verdict.reason == Reason::BACKOFF && verdict.after < Duration::from_millis(25)
    );
    if !verdict.after.is_zero() {
        let wait = expect!(call.choose_host(mesh.now()), Wait);
        assert_eq!((wait.reason, wait.after), (WaitReason::BACKOFF, Some(verdict.after)));
        mesh.advance(verdict.after).unwrap();
    }
    let attempt = expect!(call.choose_host(mesh.now()), Attempt);
    assert!(attempt.plan().number == 2 && attempt.plan().is_retry() && attempt.host().address != first);
    let verdict = attempt.fail(failure::CONNECT_FAILURE, mesh.now()).unwrap();
    assert_eq!((verdict.action, verdict.status), (Action::Forward, 503));
    assert!(verdict.flags.contains(ResponseFlags::UF) && verdict.flags.contains(ResponseFlags::URX));
    let reply = call.local_reply().unwrap();
    assert_eq!(reply.status, 503);
    assert!(reply.body.contains("reset reason: remote connection failure"), "{}", reply.body);
}

#[test]
fn a_blocked_thread_is_woken_by_whoever_completes() {
    let mesh = Arc::new(mesh(NARROW));
    let mut call = mesh.request_arc(&to(&mesh, "b"), mesh.now());
    let attempt = expect!(call.choose_host(mesh.now()), Attempt);
    let (queued, is_queued) = std::sync::mpsc::channel();
    let waiter = {
        let mesh = Arc::clone(&mesh);
        std::thread::spawn(move || {
            let mut call = mesh.request(&to(&mesh, "b"), mesh.now());
            loop {
                match call.choose_host(mesh.now()) {
                    Ok(Choice::Wait(wait)) => {
                        queued.send(wait.reason).unwrap();
                        wait.sleep();
                    }
                    Ok(Choice::Attempt(attempt)) => {
                        return attempt.complete(&Outcome::status(200), mesh.now()).unwrap().status;
                    }
                    other => panic!("{other:?}"),
                }
            }
        })
    };
    assert_eq!(is_queued.recv().unwrap(), WaitReason::QUEUE);
    assert!(attempt.complete(&Outcome::status(200), mesh.now()).unwrap().signals.wake());
    assert_eq!(waiter.join().unwrap(), 200);
}

#[test]
fn ready_requests_are_handed_out_once() {
    let mesh = mesh(NARROW);
    let now = mesh.now();
    let mut call = mesh.request(&to(&mesh, "b"), now);
    let attempt = expect!(call.choose_host(now), Attempt);
    let head = RequestHead { user_data: 42, ..to(&mesh, "b") };
    let mut queued = mesh.request(&head, now);
    expect!(queued.choose_host(now), Wait);
    attempt.complete(&Outcome::status(200), now).unwrap();
    let mut ready = Vec::new();
    mesh.take_ready(&mut ready);
    assert_eq!(ready.iter().map(|r| (r.request, r.user_data)).collect::<Vec<_>>(), [(queued.id(), 42)]);
    mesh.take_ready(&mut ready);
    assert_eq!(ready.len(), 1);
    expect!(queued.choose_host(now), Attempt).complete(&Outcome::status(200), now).unwrap();
}

#[test]
fn refusals_name_the_limit_and_the_reply() {
    let mesh = mesh(NARROW);
    let now = mesh.now();
    let mut calls: Vec<_> = (0..3).map(|_| mesh.request(&to(&mesh, "b"), now)).collect();
    let attempt = expect!(calls[0].choose_host(now), Attempt);
    let refusal = expect!(calls[2].choose_host(now), Refused);
    assert_eq!(
        (refusal.kind, refusal.resource, refusal.status),
        (RefusalKind::OVERFLOW, Resource::PENDING, 503)
    );
    assert_eq!(
        refusal.to_string(),
        "no attempt: overflow (pending); the local reply is 503 UO, upstream_reset_before_response_started{overflow}"
    );
    let reply = refusal.local_reply();
    assert_eq!(reply.details, "upstream_reset_before_response_started{overflow}");
    assert!(reply.headers.contains(&("x-envoy-overloaded".into(), "true".into())));
    attempt.cancel(now);
    let unknown = RequestHead { target: nexthop::NO_SUCH_TARGET, ..RequestHead::default() };
    let refusal = expect!(mesh.request(&unknown, now).choose_host(now), Refused);
    assert_eq!((refusal.kind, refusal.flags), (RefusalKind::NO_CLUSTER, ResponseFlags::NC));
}

#[test]
fn stateless_attempts_keep_no_place() {
    let mesh = mesh(
        "clusters: {b: {hosts: [10.0.0.1:80], limits: {connections: 1, pending: 1}, \
        nexthop: {connections: queue}}}",
    );
    let now = mesh.now();
    let target = mesh.resolve("b").unwrap();
    let attempt = expect!(mesh.pick(target, 1, None, now), Attempt);
    expect!(mesh.pick(target, 1, None, now), Wait);
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_pending_active"), 0);
    attempt.complete(&Outcome::status(200), now).unwrap();
    assert_eq!(mesh.pick(0, 1, None, now).unwrap_err(), Misuse::Invalid);
    assert_eq!(mesh.pick_for(&to(&mesh, "b"), now).unwrap_err(), Misuse::Invalid, "a number is needed");
}

#[test]
fn documents_and_hosts_change_whole_or_not_at_all() {
    let mesh = mesh(RETRY);
    let error = mesh.resolve("wep").unwrap_err();
    assert_eq!(error.to_string(), "no cluster or route \"wep\"; did you mean \"web\"?");
    let change = HostChange { op: host_op::SET, address: "10.0.0.9:80", ..HostChange::default() };
    mesh.apply("web", &[change]).unwrap();
    assert!(mesh.text(Text::Hosts("web")).unwrap().contains("10.0.0.9:80"));
    let bad = HostChange { op: host_op::REMOVE, address: "10.0.0.1:80", ..HostChange::default() };
    assert!(matches!(mesh.apply("web", &[bad]), Err(Error::Misuse(Misuse::Invalid, _))));
    let Err(Error::Config(error)) = Engine::from_text("clusters: {web: {hots: []}}") else {
        panic!("a misspelt field is refused");
    };
    assert_eq!((error.line, error.nearest.as_deref()), (1, Some("hosts")));
    assert!(matches!(Engine::from_file("/no/such/file.yaml"), Err(Error::Io { .. })));
}

/// What is known by an address ends up in URLs: nothing but an address may stand there, and one host has one spelling.
#[test]
fn addresses_of_hosts_from_code() {
    let mesh = mesh(RETRY);
    let set = |list: &[&str]| {
        let change = |address| HostChange { op: host_op::SET, address, ..HostChange::default() };
        mesh.apply("web", &list.iter().copied().map(change).collect::<Vec<_>>())
    };
    let before = mesh.text(Text::Hosts("web")).unwrap();
    for bad in [
        "",
        ":80",
        "a",
        "a:",
        "a:x",
        "a:65536",
        "a b:80",
        "a\r\nb:80",
        "a\0b:80",
        "x/y@:80",
        "u@h:80",
        "a?b:80",
        "a#b:80",
        "[::zz]:80",
        "[a]:80",
        "[::1:80",
        "::1:80",
        "http://a:80",
        " a:80",
        "a:+80",
        "a%0d:80",
    ] {
        assert!(matches!(set(&[bad]), Err(Error::Misuse(Misuse::Invalid, _))), "{bad:?}");
        assert_eq!(mesh.text(Text::Hosts("web")).unwrap(), before, "{bad:?}");
    }
    assert!(
        matches!(set(&["[::1]:80", "[0::01]:80"]), Err(Error::Misuse(Misuse::Invalid, _))),
        "one host twice"
    );
    set(&["[2001:DB8::0:1]:80", "10.0.0.1:0", "web_1.local:80"]).unwrap();
    let hosts = mesh.text(Text::Hosts("web")).unwrap();
    assert!(hosts.contains("[2001:db8::1]:80") && hosts.contains("web_1.local:80"), "{hosts}");
    let remove = HostChange { op: host_op::REMOVE, address: "[2001:db8:0::1]:80", ..HostChange::default() };
    mesh.apply("web", &[remove]).unwrap();
}

/// Nothing is over with an interim answer: it comes with headers alone.
#[test]
fn an_interim_status_completes_nothing() {
    let mesh = mesh(NARROW);
    let now = mesh.now();
    let target = mesh.resolve("b").unwrap();
    for status in [100, 102, 103, 199] {
        let attempt = expect!(mesh.pick(target, 1, None, now), Attempt);
        assert_eq!(attempt.complete(&Outcome::status(status), now), Err(Misuse::Invalid), "{status}");
        assert_eq!(
            stat(&mesh, "cluster.b.upstream_rq_active"),
            0,
            "{status}: it was dropped, and so cancelled"
        );
    }
    let attempt = expect!(mesh.pick(target, 1, None, now), Attempt);
    attempt.complete(&Outcome::status(101), now).unwrap();
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_active"), 0);
}

#[test]
fn finishing_and_the_clock() {
    let mesh = mesh(NARROW);
    let call = mesh.request(&to(&mesh, "b"), mesh.now());
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_active"), 1, "its first choice is made");
    assert_eq!(call.finish(Finish::ClientGone, mesh.now()).reason, Reason::CLIENT_GONE);
    assert_eq!(stat(&mesh, "cluster.b.upstream_rq_active"), 0);
    let before = mesh.now();
    mesh.advance(Duration::from_secs(1)).unwrap();
    assert_eq!(mesh.now(), Time(before.0 + 1_000_000_000));
    let own = Engine::from_text(NARROW).unwrap();
    assert!(own.advance(Duration::from_secs(1)).is_err(), "a clock that moves by itself");
}

#[test]
fn a_refused_head_says_which_field() {
    let mesh = mesh(NARROW);
    let now = mesh.now();
    let head = RequestHead { override_host: "!", ..to(&mesh, "b") };
    let mut call = mesh.request(&head, now);
    assert_eq!(call.choose_host(now).unwrap_err(), Misuse::Invalid);
    assert!(call.head_error().is_some_and(|why| why.starts_with("override_host is \"!\"")));
    assert_eq!(mesh.request(&to(&mesh, "b"), now).head_error(), None);
    assert!(matches!(Engine::builder().build(), Err(Error::Misuse(Misuse::Invalid, _))));
    assert!(matches!(mesh.update(&[]), Err(Error::Misuse(Misuse::Invalid, _))));
}

#[test]
fn a_refusal_says_when_it_could_work() {
    let mesh = mesh("clusters: {web: {hosts: [10.0.0.1:80], nexthop: {cool_down: {default: 2s}}}}");
    let head = to(&mesh, "web");
    let mut call = mesh.request(&head, mesh.now());
    let attempt = expect!(call.choose_host(mesh.now()), Attempt);
    attempt.complete(&Outcome::status(429), mesh.now()).unwrap();
    let refusal = expect!(mesh.request(&head, mesh.now()).choose_host(mesh.now()), Refused);
    assert_eq!((refusal.kind, refusal.retry_after), (RefusalKind::COOLING, Some(Duration::from_secs(2))));
    assert!(refusal.local_reply().headers.contains(&("retry-after".to_owned(), "2".to_owned())));
}
