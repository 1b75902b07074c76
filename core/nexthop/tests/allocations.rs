//! In steady state a request allocates nothing: stateless or not, retried, queued, answered in two phases.

use nexthop::raw::{
    self, Decision, Document, Head, Local, Options, Outcome, action, clock, document_kind, kind,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! { static ALLOCATIONS: Cell<u64> = const { Cell::new(0) }; }

// SAFETY: everything is handed to the system's allocator; counting touches a thread-local without destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promised.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of 1,000 rounds after 1,000 rounds of warming up.
fn steady(mut round: impl FnMut(&mut Local)) -> u64 {
    raw::with_local(|local| {
        for _ in 0..1000 {
            round(local);
        }
        let before = ALLOCATIONS.get();
        for _ in 0..1000 {
            round(local);
        }
        ALLOCATIONS.get() - before
    })
}

const POLICIES: [&str; 5] = ["round_robin", "least_request", "random", "ring_hash", "maglev"];

#[test]
fn nothing_is_allocated_per_request() {
    // The counter works at all.
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ALLOCATIONS.get() - before, 1);
    for policy in POLICIES {
        let yaml = format!(
            "clusters: {{web: {{hosts: [10.0.0.1:80, {{address: 10.0.0.2:80, weight: 3}}, 10.0.0.3:80], policy: {policy}, \
             retry: {{on: [5xx], times: 1, avoid_tried: true, backoff: {{base: 1ms, max: 1ms}}}}, \
             outlier: {{consecutive_5xx: 1000000}}, limits: {{connections: 1, requests: 10}}}}}}"
        );
        let document = Document { kind: document_kind::TEXT, dialect: "", name: "", text: yaml.as_bytes() };
        let options = Options { workers: 1, seed: 1, clock: clock::MANUAL, ..Options::default() };
        let engine = raw::engine_new(&options, &[document]).unwrap();
        let target = raw::resolve(engine, "web").unwrap();
        let mut out = Decision::default();

        let stateless = steady(|local| {
            raw::pick(local, engine, target, 1, Some(b"user-42"), 0, &mut out).unwrap();
            assert_eq!(raw::complete_status(local, out.attempt, 200, 0).code, 0);
        });
        assert_eq!(stateless, 0, "{policy}: stateless");

        let head = Head { target, key: Some(b"user-42"), ..Head::default() };
        let retried = steady(|local| {
            raw::begin(local, engine, &head, 0, &mut out).unwrap();
            assert_eq!(raw::complete_status(local, out.attempt, 503, 0).action, action::RETRY);
            raw::choose(local, out.request, 0, &mut out).unwrap();
            assert_eq!((out.kind, out.number), (kind::GO, 2));
            raw::headers(local, out.attempt, &Outcome::status(200), 0);
            assert_eq!(raw::end(local, out.attempt, None, 0).code, 0);
        });
        assert_eq!(retried, 0, "{policy}: retried and streamed");
        raw::engine_free(engine).unwrap();
    }
}
