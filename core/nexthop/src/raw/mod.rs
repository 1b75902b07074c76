//! The id-level functions that every face calls, under the C ABI's names (without `nexthop_`).
//!
//! Engines, requests and attempts are 64-bit numbers; a stale, foreign or doubly used one is an error code.
//! Everything here is thread-safe, catches panics, and never calls back. `now` is nanoseconds of a monotonic
//! clock of the caller's choice, or 0 for the engine's own clock.
//!
//! Hot calls take the calling thread's [`Local`] block. [`with_local`] hands out the one kept in a
//! thread-local; an embedder whose threads are unloaded without running destructors keeps its own.

mod changes;
mod checks;
mod documents;
mod effective;
mod error;
mod explain;
mod fork;
mod hot;
mod local;
mod metrics;
mod names;
mod registry;
mod sentence;
mod text;
mod time;
mod types;
mod waiting;

#[cfg(feature = "checks")]
pub(crate) use checks::check_not_performed;
pub use checks::{
    bits_of, check_bits, check_protocol, check_result, check_results, checks_deadline, extension_of,
    poll_check, protocol_of, put_back_check,
};
pub use error::{Error, LastError, keep_error, last_error, set_last_error};
pub use fork::{after_fork_in_child, after_fork_in_parent, before_fork};
pub use hot::{
    NO_SUCH_TARGET, answered_already, begin, cancel, choose, complete, complete_next, complete_status, end,
    fail, fail_with, finish, headers, note, pick, poll_ready,
};
pub use local::{Local, with_local};
pub use metrics::Metric;
pub use names::name;
pub use sentence::{Asked, Call, sentence, sentence_of, sentence_of_head};
pub use text::metadata_json;
pub use types::{Document, EngineInfo, HostChange, Options, clock, document_kind, host_fields, host_op};
pub use waiting::wait_for;

pub use nexthop_engine::health::Check;
pub use nexthop_engine::hosts::HostInfo;
pub use nexthop_engine::outcome::{
    Decision, Head, LocalReply, Misuse, NEVER, Outcome, Packed, Ready, Verdict, action, bits, failure,
    finish, flags, head_bits, kind, note, outcome_bits, reason, refusal, resource, wait,
};
pub use nexthop_engine::{RequestInfo, Stat};

use nexthop_engine::ids::engine_of;
use registry::Engine;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// `now` argument: read the engine's clock.
pub const NOW: u64 = 0;

/// The last attempt number of a stateless pick: what is larger was a negative number somewhere.
pub const LAST_NUMBER: u32 = i32::MAX.cast_unsigned();

/// How many timers run at their own instants in one [`advance`].
const TIMERS_OF_A_LEAP: usize = 100_000;

/// Version of this interface; faces compare it with what they were built for.
pub const ABI: u32 = 1;

/// Runs a cold call: a bug inside is contained and leaves the old snapshot serving; a sentence is kept.
fn cold<R>(f: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    let result = catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| {
        Err(Error::misuse(Misuse::Panic, "a bug in nexthop, contained; the engine serves as before"))
    });
    if let Err(error) = &result {
        keep_error(error);
    }
    result
}

fn with_engine<R>(engine: u64, f: impl FnOnce(&Engine) -> Result<R, Error>) -> Result<R, Error> {
    cold(|| f(&*registry::find(engine)?))
}

fn of_request(id: u64) -> Result<Arc<Engine>, Error> {
    match engine_of(id) {
        0 => Err(Error::misuse(Misuse::Invalid, "the handle is zero; take one from a decision")),
        index => registry::at_index(index)
            .ok_or_else(|| Error::misuse(Misuse::Closed, "the engine of this request was closed")),
    }
}

/// Makes an engine from documents, at least one. Its id is never 0.
pub fn engine_new(options: &Options, documents: &[Document<'_>]) -> Result<u64, Error> {
    cold(|| Ok(registry::create(options, documents)?.id))
}

/// Closes an engine: every handle of it is dead, its memory outlives running calls.
pub fn engine_free(engine: u64) -> Result<(), Error> {
    cold(|| registry::close(engine))
}

/// Replaces all documents; whole or not at all. No documents are [`Misuse::Invalid`]. A single document of kind RUNTIME replaces the runtime values
/// alone. Returns the new epoch.
pub fn update(engine: u64, documents: &[Document<'_>]) -> Result<u64, Error> {
    with_engine(engine, |engine| {
        let mut kept = engine.documents.lock();
        if let [only @ Document { kind: document_kind::RUNTIME, .. }] = documents {
            let values = kept.set_runtime(only)?;
            let epoch = engine.core.set_runtime(&values, engine.at(0));
            engine.refresh_shared();
            return Ok(epoch);
        }
        let loaded = match kept.read(documents) {
            Ok(loaded) => loaded,
            Err(error) => {
                engine.core.push_event(rejected(&error));
                return Err(error);
            }
        };
        take_over(engine, &loaded)
    })
}

fn take_over(engine: &Engine, loaded: &nexthop_config::Loaded) -> Result<u64, Error> {
    let epoch = engine.core.update(&loaded.specs, engine.at(0)).map_err(Error::from_spec)?;
    if engine.core.measures_latency() {
        engine.clock.sharpen();
    }
    *engine.report.lock() = loaded.report.clone();
    *engine.findings.lock() = loaded.findings.clone();
    engine.refresh_shared();
    engine.waiters.wake();
    Ok(epoch)
}

fn rejected(error: &Error) -> String {
    serde_json::json!({ "type": "nexthop.config_rejected", "message": error.to_string() }).to_string()
}

/// Re-reads the files of the engine that changed. Returns whether it swapped, and the epoch. Bad content is no
/// error: the old documents go on serving and an event tells.
pub fn reload(engine: u64) -> Result<(bool, u64), Error> {
    with_engine(engine, |engine| {
        let mut kept = engine.documents.lock();
        let swapped = match kept.reload() {
            Ok(None) => return Ok((false, engine.core.epoch())),
            Ok(Some(loaded)) => take_over(engine, &loaded),
            Err(error) => Err(error),
        };
        match swapped {
            Ok(epoch) => Ok((true, epoch)),
            Err(error) => {
                engine.core.push_event(rejected(&error));
                Ok((false, engine.core.epoch()))
            }
        }
    })
}

/// Changes hosts of one cluster, whole or not at all. Returns the new epoch.
pub fn apply(engine: u64, cluster: &str, changes: &[HostChange<'_>]) -> Result<u64, Error> {
    with_engine(engine, |engine| {
        // What is there now is read, changed and written back: one batch after the other.
        let _one = engine.documents.lock();
        let epoch = changes::apply(engine, cluster, changes)?;
        engine.refresh_shared();
        engine.waiters.wake();
        Ok(epoch)
    })
}

/// The number of a cluster (`"name"`) or route (`"route:NAME"`, `"route:VHOST/NAME"`); valid for the engine's
/// life, also across removal and return of the name.
pub fn resolve(engine: u64, name: &str) -> Result<u32, Error> {
    with_engine(engine, |engine| {
        engine.core.resolve(name).ok_or_else(|| {
            let hint = changes::nearest(name, &engine.core.target_names());
            Error::misuse(Misuse::NotFound, format!("no cluster or route {name:?}{hint}"))
        })
    })
}

/// A text: 1 stats JSON, 2 Prometheus, 4 load report JSON, 9 explain(attempt id in decimal) JSON, 10 hosts JSON
/// (of the cluster `arg`, or all), 11 host(address) JSON. A name that nothing has is [`Misuse::NotFound`].
pub fn text(engine: u64, what: u32, arg: &str) -> Result<String, Error> {
    with_engine(engine, |engine| text::render(engine, what, arg))
}

/// What would be decided for a head, and why, as JSON (`docs/schemas/explain.json`); decides and counts nothing.
pub fn explain_head(engine: u64, head: &Head<'_>) -> Result<String, Error> {
    with_engine(engine, |engine| explain::borrowed(engine, head))
}

/// Visits every number of the clusters under Envoy's name. `visit` runs outside every lock.
pub fn stats(engine: u64, visit: &mut dyn FnMut(&str, Stat)) -> Result<(), Error> {
    registry::find(engine)?.core.stats(visit);
    Ok(())
}

/// Visits every number with its kind and attributes. `visit` runs outside every lock.
pub fn metrics(engine: u64, visit: &mut dyn FnMut(&Metric<'_>)) -> Result<(), Error> {
    metrics::visit(&*registry::find(engine)?, visit);
    Ok(())
}

/// The next event as one JSON line, oldest first.
pub fn poll_event(engine: u64) -> Result<Option<String>, Error> {
    with_engine(engine, |engine| Ok(engine.core.poll_event()))
}

/// What faces show of the host in this slot, with its version. `version` 0 takes any.
pub fn host(engine: u64, slot: u32, version: u32) -> Result<(u32, Arc<HostInfo>), Error> {
    with_engine(engine, |engine| {
        engine.core.host(slot, version).map_err(|_| {
            Error::misuse(
                Misuse::NotFound,
                format!("no host with version {version} is in slot {slot} any more"),
            )
        })
    })
}

/// Names of wanted headers, in lower case.
pub type WantedNames = Arc<[Box<str>]>;

/// A numbered set of wanted header names (lower case); 0 asks for the present request set. Returns its number.
pub fn want(engine: u64, set: u32) -> Result<(u32, WantedNames), Error> {
    with_engine(engine, |engine| {
        engine.core.want(set).ok_or_else(|| {
            Error::misuse(
                Misuse::NotFound,
                format!("there is no set {set} of wanted headers; take it from a decision"),
            )
        })
    })
}

/// Headers to add to an attempt (its id) or to the answer for the client (the request's id); `None` = remove.
/// `:path` and `:authority` among them rewrite the URL.
pub fn extra_headers(id: u64) -> Result<Vec<(String, Option<String>)>, Error> {
    cold(|| of_request(id)?.core.extra_headers(id).map_err(Error::from))
}

/// What a request became: cluster, route, limits. Answers for a done request too, until its slot is reused.
pub fn request_info(request: u64) -> Result<RequestInfo, Error> {
    cold(|| of_request(request)?.core.request_info(request).map_err(Error::from))
}

/// The local reply of a request that was refused or whose last attempt failed for good; `None` while there is
/// none. Answers for a done request too, until its slot is reused: ask right after the refusal or verdict.
pub fn reply(request: u64) -> Result<Option<LocalReply>, Error> {
    cold(|| of_request(request)?.core.reply(request).map_err(Error::from))
}

/// When maintenance is due, nanoseconds from `now`; [`NEVER`] when nothing is.
pub fn poll_deadline(engine: u64, now: u64) -> Result<u64, Error> {
    with_engine(engine, |engine| {
        let due = engine.core.deadline();
        let now = engine.at(now);
        Ok(if due == nexthop_engine::Time::NEVER { NEVER } else { due.since(now) })
    })
}

/// Runs due maintenance (sweeps, un-ejection, leases). Returns bits.
pub fn maintain(engine: u64, now: u64) -> Result<u16, Error> {
    cold(|| {
        let found = registry::find(engine)?;
        let at = found.at(now);
        let signals = with_local(|local| {
            let seat = local.seat(registry::index_of(engine)).map_err(Error::from)?;
            Ok::<u16, Error>(seat.run(|core, worker| core.maintain(worker, at)))
        })?;
        if signals & bits::WAKE != 0 {
            found.waiters.wake();
        }
        Ok(signals)
    })
}

/// Ends every live request whose user data has this number in its upper half: its caller, a thread of the embedder's,
/// is gone and can report nothing any more. Stateless attempts have no user data. Returns bits.
pub fn abandon_all(local: &mut Local, engine: u64, owner: u32) -> Result<u16, Error> {
    cold(|| {
        let found = registry::find(engine)?;
        let now = found.at(0);
        let seat = local.seat(registry::index_of(engine)).map_err(Error::from)?;
        let of_owner = |user_data: u64| user_data >> 32 == u64::from(owner);
        let signals = seat.run(|core, worker| core.abandon_all(worker, of_owner, now));
        if signals & bits::WAKE != 0 {
            found.waiters.wake();
        }
        Ok(signals)
    })
}

/// Moves a manual clock by `ns`, up to 292 years in all. Timers that fall due on the way run at their instants, as if
/// somebody had called then.
pub fn advance(engine: u64, ns: u64) -> Result<(), Error> {
    with_engine(engine, |engine| engine.clock.check_advance(ns))?;
    let mut left = ns;
    // A leap over very many timers skips the rest of them, so that no leap takes for ever.
    for _ in 0..TIMERS_OF_A_LEAP {
        let step = with_engine(engine, |engine| {
            let until = engine.core.deadline().0.saturating_sub(engine.clock.now());
            if until <= left {
                engine.clock.advance(until)?;
            }
            Ok(until)
        })?;
        if step > left {
            break;
        }
        left -= step;
        maintain(engine, NOW)?;
    }
    with_engine(engine, |engine| {
        engine.clock.advance(left)?;
        engine.waiters.wake();
        Ok(())
    })
}

/// The engine's clock; 0 for a dead engine.
pub fn now(engine: u64) -> u64 {
    registry::find(engine).map_or(0, |engine| engine.clock.now())
}

/// What an engine is right now.
pub fn engine_info(engine: u64) -> Result<EngineInfo, Error> {
    with_engine(engine, |engine| {
        Ok(EngineInfo {
            epoch: engine.core.epoch(),
            live_requests: engine.core.live_requests(),
            seed: engine.seed,
            panics: u64::from(engine.panics.load(Relaxed)),
            manual: engine.clock.is_manual(),
        })
    })
}
