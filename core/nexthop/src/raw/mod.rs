//! The id-level functions that every face calls, under the C ABI's names (without `nexthop_`).
//!
//! Engines, requests and attempts are 64-bit numbers; a stale, foreign or doubly used one is an error code.
//! Everything here is thread-safe, catches panics, and never calls back. `now` is nanoseconds of a monotonic
//! clock of the caller's choice, or 0 for the engine's own clock.
//!
//! Hot calls take the calling thread's [`Local`] block. [`with_local`] hands out the one kept in a
//! thread-local; an embedder whose threads are unloaded without running destructors keeps its own.

mod error;
mod json;
mod types;

pub use error::{Error, last_error, set_last_error};
pub use json::metadata_json;
pub use types::{Document, EngineInfo, HostChange, Options, clock, document_kind, host_fields, host_op};

pub use nexthop_engine::engine::RequestInfo;
pub use nexthop_engine::hosts::HostInfo;
pub use nexthop_engine::outcome::{
    Decision, Head, LocalReply, Misuse, NEVER, Outcome, Ready, Verdict, action, bits, failure, finish, flags,
    head_bits, kind, note, outcome_bits, reason, refusal, resource, wait,
};

use std::cell::UnsafeCell;
use std::sync::Arc;

/// `now` argument: read the engine's clock.
pub const NOW: u64 = 0;

/// Version of this interface; faces compare it with what they were built for.
pub const ABI: u32 = 1;

/// What one thread keeps: engine pointers, snapshots, its workers. Not tied to the thread that made it, but
/// used by one thread at a time.
#[derive(Default)]
pub struct Local {
    _private: (),
}

thread_local! {
    static LOCAL: UnsafeCell<Local> = const { UnsafeCell::new(Local { _private: () }) };
}

/// Runs `f` with this thread's block. `f` must not call [`with_local`] again: nothing here calls back.
#[inline]
pub fn with_local<R>(f: impl FnOnce(&mut Local) -> R) -> R {
    // SAFETY: the cell is only reached here, and no function of this module calls user code.
    LOCAL.with(|local| f(unsafe { &mut *local.get() }))
}

// Cold: engines and documents -----------------------------------------------------------------------------

/// Makes an engine from documents. Its id is never 0.
pub fn engine_new(options: &Options, documents: &[Document<'_>]) -> Result<u64, Error> {
    let _ = (options, documents);
    Err(Error::from(Misuse::NotFound))
}

/// Closes an engine: every handle of it is dead, its memory outlives running calls.
pub fn engine_free(engine: u64) -> Result<(), Error> {
    let _ = engine;
    Err(Error::from(Misuse::Closed))
}

/// Replaces all documents; whole or not at all. Returns the new epoch.
pub fn update(engine: u64, documents: &[Document<'_>]) -> Result<u64, Error> {
    let _ = (engine, documents);
    Err(Error::from(Misuse::Closed))
}

/// Re-reads the files of the engine that changed. Returns whether it swapped, and the epoch. Bad content is no
/// error: the old documents go on serving and an event tells.
pub fn reload(engine: u64) -> Result<(bool, u64), Error> {
    let _ = engine;
    Err(Error::from(Misuse::Closed))
}

/// Changes hosts of one cluster, whole or not at all. Returns the new epoch.
pub fn apply(engine: u64, cluster: &str, changes: &[HostChange<'_>]) -> Result<u64, Error> {
    let _ = (engine, cluster, changes);
    Err(Error::from(Misuse::Closed))
}

/// The number of a cluster (`"name"`) or route (`"route:NAME"`, `"route:VHOST/NAME"`); valid for the engine's
/// life, also across removal and return of the name.
pub fn resolve(engine: u64, name: &str) -> Result<u32, Error> {
    let _ = (engine, name);
    Err(Error::from(Misuse::Closed))
}

/// A text: 1 stats JSON, 2 Prometheus, 3 effective(name), 4 load report, 8 explain(head JSON),
/// 9 explain(attempt id in decimal), 10 hosts JSON (of the cluster `arg`, or all), 11 host(address) JSON.
pub fn text(engine: u64, what: u32, arg: &str) -> Result<String, Error> {
    let _ = (engine, what, arg);
    Err(Error::from(Misuse::Closed))
}

/// The next event as one JSON line, oldest first.
pub fn poll_event(engine: u64) -> Result<Option<String>, Error> {
    let _ = engine;
    Err(Error::from(Misuse::Closed))
}

/// What faces show of the host in this slot, with its version. `version` 0 takes any.
pub fn host(engine: u64, slot: u32, version: u32) -> Result<(u32, Arc<HostInfo>), Error> {
    let _ = (engine, slot, version);
    Err(Error::from(Misuse::Closed))
}

/// A numbered set of wanted header names (lower case); 0 asks for the present request set. Returns its number.
pub fn want(engine: u64, set: u32) -> Result<(u32, Arc<[Box<str>]>), Error> {
    let _ = (engine, set);
    Err(Error::from(Misuse::Closed))
}

/// Headers to add to an attempt (its id) or to the answer for the client (the request's id); `None` = remove.
/// `:path` and `:authority` among them rewrite the URL.
pub fn extra_headers(id: u64) -> Result<Vec<(String, Option<String>)>, Error> {
    let _ = id;
    Err(Error::from(Misuse::Ended))
}

/// What a request became: cluster, route, limits. Answers for a done request too, until its slot is reused.
pub fn request_info(request: u64) -> Result<RequestInfo, Error> {
    let _ = request;
    Err(Error::from(Misuse::Ended))
}

/// The local reply of a request that was refused or whose last attempt failed for good; `None` while there is
/// none. Answers for a done request too, until its slot is reused: ask right after the refusal or verdict.
pub fn reply(request: u64) -> Result<Option<LocalReply>, Error> {
    let _ = request;
    Err(Error::from(Misuse::Ended))
}

/// When maintenance is due, nanoseconds from `now`; [`NEVER`] when nothing is.
pub fn poll_deadline(engine: u64, now: u64) -> Result<u64, Error> {
    let _ = (engine, now);
    Err(Error::from(Misuse::Closed))
}

/// Runs due maintenance (sweeps, un-ejection, leases). Returns bits.
pub fn maintain(engine: u64, now: u64) -> Result<u16, Error> {
    let _ = (engine, now);
    Err(Error::from(Misuse::Closed))
}

/// Moves a manual clock by `ns`.
pub fn advance(engine: u64, ns: u64) -> Result<(), Error> {
    let _ = (engine, ns);
    Err(Error::from(Misuse::Closed))
}

/// The engine's clock; 0 for a dead engine.
pub fn now(engine: u64) -> u64 {
    let _ = engine;
    0
}

/// What an engine is right now.
pub fn engine_info(engine: u64) -> Result<EngineInfo, Error> {
    let _ = engine;
    Err(Error::from(Misuse::Closed))
}

/// Blocks this thread until asking `choose` again makes sense, at most `max_ns` and at most a second.
/// A request that is being waited for here is not listed by [`poll_ready`].
pub fn wait_for(request: u64, max_ns: u64) -> Result<(), Error> {
    let _ = (request, max_ns);
    Err(Error::from(Misuse::Ended))
}

/// Static names. Tables: 1 flag by bit, 2 failure, 3 refusal, 4 a refusal's details, 5 a refusal's body,
/// 6 reason, 7 status code, 8 details by failure, 9 wait reason, 10 resource. Empty for unknown values.
pub fn name(table: u32, value: u32) -> &'static str {
    let _ = (table, value);
    ""
}

// Hot: requests and attempts ------------------------------------------------------------------------------

/// A stateless attempt: `number` is its attempt number, `key` replaces the hash policies.
pub fn pick(
    local: &mut Local,
    engine: u64,
    target: u32,
    number: u32,
    key: Option<&[u8]>,
    now: u64,
    out: &mut Decision,
) -> Result<(), Misuse> {
    let _ = (local, engine, target, number, key, now, out);
    Err(Misuse::Closed)
}

/// A new request and its first choice. With `head.number` set it is a stateless pick with a whole head.
pub fn begin(
    local: &mut Local,
    engine: u64,
    head: &Head<'_>,
    now: u64,
    out: &mut Decision,
) -> Result<(), Misuse> {
    let _ = (local, engine, head, now, out);
    Err(Misuse::Closed)
}

/// The next attempt, or: is it my turn?
pub fn choose(local: &mut Local, request: u64, now: u64, out: &mut Decision) -> Result<(), Misuse> {
    let _ = (local, request, now, out);
    Err(Misuse::Ended)
}

/// Response headers are there: retry or forward?
pub fn headers(local: &mut Local, attempt: u64, outcome: &Outcome<'_>, now: u64) -> Verdict {
    let _ = (local, attempt, outcome, now);
    Misuse::Ended.into()
}

/// The whole report: headers and end at once, or a failure.
pub fn complete(local: &mut Local, attempt: u64, outcome: &Outcome<'_>, now: u64) -> Verdict {
    let _ = (local, attempt, outcome, now);
    Misuse::Ended.into()
}

/// [`complete`] with nothing but a status.
pub fn complete_status(local: &mut Local, attempt: u64, status: u32, now: u64) -> Verdict {
    let _ = (local, attempt, status, now);
    Misuse::Ended.into()
}

/// [`complete`], and when a retry is due at once, the next choice in the same call (`next.kind` is 0 otherwise).
pub fn complete_next(
    local: &mut Local,
    attempt: u64,
    outcome: &Outcome<'_>,
    now: u64,
    next: &mut Decision,
) -> Verdict {
    let _ = (local, attempt, outcome, now, next);
    Misuse::Ended.into()
}

/// The attempt failed, see [`failure`]. In ANSWERED: the body broke.
pub fn fail(local: &mut Local, attempt: u64, failure: u32, now: u64) -> Verdict {
    let _ = (local, attempt, failure, now);
    Misuse::Ended.into()
}

/// The stream of an answered attempt is over; `None` = cleanly.
pub fn end(local: &mut Local, attempt: u64, outcome: Option<&Outcome<'_>>, now: u64) -> Verdict {
    let _ = (local, attempt, outcome, now);
    Misuse::Ended.into()
}

/// Drops an attempt: no outlier report, no retry. Harmless when it has ended.
pub fn cancel(local: &mut Local, attempt: u64, now: u64) -> Verdict {
    let _ = (local, attempt, now);
    Verdict::default()
}

/// Ends a request from outside, see [`finish`](mod@finish). Harmless when it is done.
pub fn finish(local: &mut Local, request: u64, reason: u32, now: u64) -> Verdict {
    let _ = (local, request, reason, now);
    Verdict::default()
}

/// A fact about a request or attempt, see [`note`](mod@note).
pub fn note(local: &mut Local, id: u64, what: u32, now: u64) -> Result<u16, Misuse> {
    let _ = (local, id, what, now);
    Ok(0)
}

/// Requests whose wait is over, each handed out once. Returns how many were written; fewer than `out` holds =
/// no more.
pub fn poll_ready(local: &mut Local, engine: u64, out: &mut [Ready]) -> Result<usize, Misuse> {
    let _ = (local, engine, out);
    Err(Misuse::Closed)
}

// Fork ----------------------------------------------------------------------------------------------------

/// Before `fork`: takes the update and event locks of every engine.
pub fn before_fork() {}

/// In the parent, after `fork`: gives them back.
pub fn after_fork_in_parent() {}

/// In the child, after `fork`: keeps documents, hosts and ejections; drops requests, permits, waiters, events;
/// new random words.
pub fn after_fork_in_child() {}
