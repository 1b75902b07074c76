//! Wrong use: the kind and the sentence that every language shows, and that nothing has changed.

use nexthop::raw::{
    self, Asked, Call, Decision, Document, Error, Head, HostChange, Misuse, Options, Outcome, clock,
    document_kind, host_op, kind,
};
use nexthop::{Choice, Clock, Engine, RequestHead, Time};

const MESH: &str =
    "clusters: {web: {hosts: [10.0.0.1:80], retry: {on: [5xx], times: 1}}, eds: {hosts: [10.0.0.2:80]}}";

fn mesh() -> u64 {
    let options = Options { workers: 1, seed: 7, clock: clock::MANUAL, ..Options::default() };
    let document = Document { kind: document_kind::TEXT, dialect: "", name: "", text: MESH.as_bytes() };
    raw::engine_new(&options, &[document]).unwrap()
}

fn live(mesh: u64) -> u64 {
    raw::engine_info(mesh).unwrap().live_requests
}

fn begin(mesh: u64) -> Decision {
    let head = Head { target: raw::resolve(mesh, "web").unwrap(), ..Head::default() };
    let mut out = Decision::default();
    raw::with_local(|local| raw::begin(local, mesh, &head, 0, &mut out)).unwrap();
    out
}

fn pick(mesh: u64, number: u32) -> Result<Decision, Misuse> {
    let target = raw::resolve(mesh, "web").unwrap();
    let mut out = Decision::default();
    raw::with_local(|local| raw::pick(local, mesh, target, number, None, 0, &mut out)).map(|()| out)
}

#[test]
fn attempt_numbers_count_from_1_to_their_end() {
    let mesh = mesh();
    for number in [1 << 31, u32::MAX] {
        assert_eq!(pick(mesh, number).unwrap_err(), Misuse::Invalid);
        assert_eq!(
            raw::sentence_of(&Asked::pick(mesh, 1, number), Misuse::Invalid),
            format!("the attempt number is {number}; attempts count from 1 to 2147483647")
        );
    }
    let head = Head { target: 1, number: 1 << 31, ..Head::default() };
    let begun = raw::with_local(|local| raw::begin(local, mesh, &head, 0, &mut Decision::default()));
    assert_eq!(begun.unwrap_err(), Misuse::Invalid);
    assert!(raw::sentence_of_head(&head, Misuse::Invalid).contains("the attempt number is 2147483648;"));
    assert_eq!(live(mesh), 0);
    assert_eq!(pick(mesh, raw::LAST_NUMBER).unwrap().number, raw::LAST_NUMBER);
    assert_eq!(pick(mesh, 1).unwrap().kind, kind::GO);
}

#[test]
fn handles_of_the_wrong_kind_do_nothing() {
    let mesh = mesh();
    let open = begin(mesh);
    let ok = Outcome::status(200);
    let invalid = Misuse::Invalid as i8;
    raw::with_local(|local| {
        assert_eq!(raw::choose(local, open.attempt, 0, &mut Decision::default()), Err(Misuse::Invalid));
        assert_eq!(raw::finish(local, open.attempt, 1, 0).code, invalid);
        assert_eq!(raw::cancel(local, open.request, 0).code, invalid);
        assert_eq!(raw::complete(local, open.request, &ok, 0).code, invalid);
        assert_eq!(raw::complete_status(local, open.request, 200, 0).code, invalid);
        assert_eq!(raw::headers(local, open.request, &ok, 0).code, invalid);
        assert_eq!(raw::fail(local, open.request, 1, 0).code, invalid);
        assert_eq!(raw::end(local, open.request, None, 0).code, invalid);
        assert_eq!(raw::answered_already(local, open.request), Err(Misuse::Invalid));
    });
    for (call, id, words) in [
        (Call::Finish, open.attempt, "is the handle of an attempt; give that of the request"),
        (Call::Cancel, open.request, "is the handle of a request; give that of the attempt"),
        (Call::End, 0, "the attempt handle is zero"),
        (Call::Choose, 0, "the request handle is zero"),
        (Call::End, 7, "7 is no attempt handle"),
    ] {
        let sentence = raw::sentence_of(&Asked::about(call, id), Misuse::Invalid);
        assert!(sentence.contains(words), "{sentence}");
    }
    assert_eq!(live(mesh), 1);
}

#[test]
fn waiting_for_what_is_over_says_so() {
    let mesh = mesh();
    let open = begin(mesh);
    let wrong = |request| match raw::wait_for(request, 1) {
        Err(Error::Misuse(why, sentence)) => (why, sentence),
        other => panic!("{other:?}"),
    };
    raw::wait_for(open.request, 1).unwrap();
    assert_eq!(wrong(0).0, Misuse::Invalid);
    assert_eq!(wrong(open.attempt).0, Misuse::Invalid);
    raw::with_local(|local| raw::complete_status(local, open.attempt, 200, 0));
    assert_eq!(wrong(open.request), (Misuse::Ended, "the request has ended; begin a new one".into()));
    raw::engine_free(mesh).unwrap();
    assert_eq!(wrong(open.request).0, Misuse::Closed);
}

#[test]
fn bodies_are_handed_over_after_the_headers() {
    let mesh = mesh();
    let open = begin(mesh);
    let can = || raw::with_local(|local| raw::answered_already(local, open.attempt));
    assert_eq!(can(), Err(Misuse::State));
    raw::with_local(|local| raw::headers(local, open.attempt, &Outcome::status(200), 0));
    assert_eq!(can(), Ok(()));
    raw::with_local(|local| raw::end(local, open.attempt, None, 0));
    assert_eq!(can(), Err(Misuse::Ended));
}

#[test]
fn names_that_nothing_has() {
    let mesh = mesh();
    let Err(Error::Misuse(why, sentence)) = raw::text(mesh, 10, "wbe") else { panic!("listed") };
    assert_eq!((why, &*sentence), (Misuse::NotFound, "no cluster \"wbe\"; did you mean \"web\"?"));
    assert!(raw::text(mesh, 10, "web").unwrap().contains("10.0.0.1:80"));
    raw::apply(
        mesh,
        "eds",
        &[HostChange { op: host_op::REMOVE, address: "10.0.0.2:80", ..HostChange::default() }],
    )
    .unwrap();
    assert_eq!(raw::text(mesh, 10, "eds").unwrap(), "[]");
}

#[test]
fn endpoints_stand_alone() {
    let mesh = mesh();
    let endpoints =
        HostChange { op: host_op::ENDPOINTS, metadata: "{cluster_name: web}", ..HostChange::default() };
    let host = HostChange { op: host_op::ADD, address: "10.0.0.3:80", ..HostChange::default() };
    for batch in [[endpoints.clone(), host.clone()], [host, endpoints]] {
        let Err(Error::Misuse(Misuse::Invalid, sentence)) = raw::apply(mesh, "web", &batch) else {
            panic!("applied")
        };
        assert!(sentence.contains("stand alone in their call, and there are 2 changes"), "{sentence}");
    }
}

#[test]
fn runtime_values_that_are_no_object_are_a_refused_document() {
    let mesh = mesh();
    for (text, line, column, found) in
        [("[1]", 1, 1, "a list"), ("\n 7", 2, 2, "7"), ("", 1, 1, ""), ("{\"a\": }", 1, 7, "")]
    {
        let document =
            Document { kind: document_kind::RUNTIME, dialect: "", name: "keys", text: text.as_bytes() };
        let Err(Error::Config(error)) = raw::update(mesh, &[document]) else { panic!("{text:?} was taken") };
        assert_eq!((&*error.file, error.line, error.column), ("keys", line, column), "{error}");
        assert_eq!(error.found, found, "{error}");
    }
}

#[test]
fn what_was_found_has_no_marks() {
    for (text, found) in [
        ("clusters: 7", "7"),
        ("clusters: {a: {hosts: [10.0.0.1:80], limits: {connections: many}}}", "many"),
        ("clusters: {a: {hots: []}}", "hots"),
        ("clusters: {a: {hosts: [10.0.0.1:80], limits: {connections: \"many\"}}}", "\"many\""),
    ] {
        let Err(Error::Config(error)) = Engine::from_text(text) else { panic!("{text} was taken") };
        assert_eq!(error.found, found, "{error}");
    }
}

#[test]
fn the_rust_face_keeps_the_sentence() {
    let mesh = Engine::builder().named("mine", MESH).clock(Clock::Manual).build().unwrap();
    let refused = Engine::builder().named("mine", "clusters: 7").build().unwrap_err();
    assert!(refused.to_string().starts_with("mine:1:"), "{refused}");
    let target = mesh.resolve("web").unwrap();
    assert_eq!(mesh.pick(target, 1 << 31, None, Time(0)).unwrap_err(), Misuse::Invalid);
    assert!(nexthop::last_error().contains("the attempt number is 2147483648;"), "{}", nexthop::last_error());
    let head = RequestHead { target, ..RequestHead::default() };
    assert_eq!(mesh.pick_for(&head, Time(0)).unwrap_err(), Misuse::Invalid);
    assert!(nexthop::last_error().contains("the attempt number is 0;"), "{}", nexthop::last_error());
    let mut call = mesh.request(&head, Time(0));
    let Choice::Attempt(mut attempt) = call.choose_host(Time(0)).unwrap() else { panic!("no attempt") };
    assert_eq!(call.choose_host(Time(0)).unwrap_err(), Misuse::State);
    assert!(nexthop::last_error().contains("attempt 1 is open"), "{}", nexthop::last_error());
    assert_eq!(attempt.on_headers(&Outcome::status(42), Time(0)).unwrap_err(), Misuse::Invalid);
    assert_eq!(nexthop::last_error(), "the status is 42; it is 100 to 999, or 0 for a success without one");
    let interim = raw::sentence_of(&Asked::with(Call::Complete, attempt.id(), 103), Misuse::Invalid);
    assert!(interim.contains("the status is 103, of an interim response"), "{interim}");
    assert_eq!(attempt.complete(&Outcome::status(1000), Time(0)).unwrap_err(), Misuse::Invalid);
    assert!(nexthop::last_error().contains("the status is 1000;"), "{}", nexthop::last_error());
}

#[test]
fn fifty_megabytes() {
    let text = format!("{MESH}\n{}", "# padding that nobody reads, line by line\n".repeat(1_200_000));
    assert!(text.len() > 50_000_000);
    let mesh = Engine::from_text(&text).unwrap();
    drop(mesh);
    let broken = "# padding that nobody reads, line by line\n".repeat(1_200_000) + "clusters: 7\n";
    let Err(Error::Config(error)) = Engine::from_text(&broken) else { panic!("taken") };
    assert_eq!(error.line, 1_200_001);
}
