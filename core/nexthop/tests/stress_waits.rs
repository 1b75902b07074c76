//! Everything at once (`tests/stress`), with threads that wait for their turn.

use nexthop::{
    Action, Choice, Document, Engine, Outcome, RefusalKind, RequestHead, Stat, document_kind, failure,
};
use nexthop_vectors::Dice;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

const CLUSTERS: [&str; 2] = ["web", "narrow"];
/// `requests` of both clusters in both documents.
const REQUESTS: u32 = 6;
const THREADS: u64 = 6;
const EACH: usize = 500;

fn document(name: &str) -> String {
    let path = format!("{}/../../tests/stress/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn as_document(text: &str) -> Document<'_> {
    Document { kind: document_kind::TEXT, dialect: "", name: "", text: text.as_bytes() }
}

/// One request, whatever becomes of it.
fn request(mesh: &Engine, dice: &mut Dice, open: &[AtomicU32; 2]) {
    let which = dice.roll(2);
    let head = RequestHead { target: mesh.resolve(CLUSTERS[which]).unwrap(), ..RequestHead::default() };
    let mut call = mesh.request(&head, mesh.now());
    loop {
        match call.choose_host(mesh.now()).unwrap() {
            Choice::Attempt(mut attempt) => {
                assert!(open[which].fetch_add(1, SeqCst) < REQUESTS, "over the limit");
                std::thread::yield_now();
                open[which].fetch_sub(1, SeqCst);
                let now = mesh.now();
                let verdict = match dice.roll(8) {
                    0 | 1 => attempt.complete(&Outcome::status(503), now),
                    2 => attempt.fail(failure::CONNECT_FAILURE, now),
                    3 => {
                        let verdict = attempt.on_headers(&Outcome::status(200), now);
                        attempt.end(&Outcome::default(), now).unwrap();
                        verdict
                    }
                    4 => return, // dropped
                    _ => attempt.complete(&Outcome::status(200), now),
                };
                if verdict.unwrap().action != Action::Retry {
                    return;
                }
            }
            Choice::Wait(_) if dice.roll(5) == 0 => return, // gone while it waits
            Choice::Wait(wait) => wait.sleep(),
            Choice::Refused(refusal) => {
                assert_eq!(refusal.kind, RefusalKind::OVERFLOW);
                return;
            }
        }
    }
}

#[test]
fn everything_at_once() {
    let documents = ["first", "second"].map(document);
    let mesh = Engine::from_text(&documents[0]).unwrap();
    let (open, over) = ([const { AtomicU32::new(0) }; 2], AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (mesh, open, over) = (&mesh, &open, &over);
        let work = |thread: u64| {
            scope.spawn(move || {
                let mut dice = Dice(thread * 7919 + 1);
                (0..EACH).for_each(|_| request(mesh, &mut dice, open));
            })
        };
        let threads: Vec<_> = (0..THREADS).map(work).collect();
        scope.spawn(|| {
            for at in 1.. {
                if over.load(SeqCst) {
                    return;
                }
                mesh.update(&[as_document(&documents[at % 2])]).unwrap();
                std::thread::yield_now();
            }
        });
        for thread in threads {
            thread.join().unwrap();
        }
        over.store(true, SeqCst);
    });
    let mut gauges = 0;
    mesh.stats(&mut |name, stat| {
        let used = ["rq_active", "rq_pending_active", "rq_open", "rq_pending_open", "rq_retry_open"];
        if let Stat::Gauge(value) = stat
            && used.iter().any(|leaf| name.ends_with(leaf))
        {
            assert_eq!(value, 0, "{name}");
            gauges += 1;
        }
    });
    assert!(gauges >= 10, "{gauges}");
    for cluster in CLUSTERS {
        let head = RequestHead { target: mesh.resolve(cluster).unwrap(), ..RequestHead::default() };
        let mut call = mesh.request(&head, mesh.now());
        let Ok(Choice::Attempt(attempt)) = call.choose_host(mesh.now()) else { panic!("{cluster} is stuck") };
        attempt.complete(&Outcome::status(200), mesh.now()).unwrap();
    }
}
