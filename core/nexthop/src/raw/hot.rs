//! The calls of every attempt: one look-up of the thread's seat, one of the request, no allocation.

use super::local::{Local, Seat};
use super::registry::{Engine, index_of};
use super::{LAST_NUMBER, NOW};
use nexthop_engine::Time;
use nexthop_engine::engine::{Core, Report, Stateless, UNKNOWN_TARGET};
use nexthop_engine::ids::{engine_of, is_attempt};
use nexthop_engine::outcome::{Decision, Head, Misuse, Outcome, Packed, Ready, Verdict, action, bits, kind};
use nexthop_engine::worker::Worker;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;

/// `target` of a head or pick: a name that no document has. Answers REFUSED(no_cluster).
pub const NO_SUCH_TARGET: u32 = UNKNOWN_TARGET;

/// Runs `f` with the worker; a bug inside costs the request only.
#[inline]
fn guarded<R>(
    seat: &mut Seat,
    id: u64,
    now: u64,
    f: impl FnOnce(&Core, &mut Worker, Time) -> Result<R, Misuse>,
) -> Result<R, Misuse> {
    let at = seat.engine.at(now);
    match catch_unwind(AssertUnwindSafe(|| seat.run(|core, worker| f(core, worker, at)))) {
        Ok(result) => result,
        Err(_) => {
            contain(seat, id, at);
            Err(Misuse::Panic)
        }
    }
}

#[cold]
fn contain(seat: &mut Seat, id: u64, at: Time) {
    seat.engine.panics.fetch_add(1, Relaxed);
    seat.engine.core.push_event("{\"type\":\"nexthop.panic\"}".into());
    if id != 0 {
        let _ = catch_unwind(AssertUnwindSafe(|| seat.run(|core, worker| core.abandon(worker, id, at))));
    }
}

/// Index of the engine that gave out an id.
#[inline]
fn engine_index(id: u64) -> Result<u32, Misuse> {
    match engine_of(id) {
        0 => Err(Misuse::Invalid),
        index => Ok(index),
    }
}

/// The same for a call that is about a request.
#[inline]
fn engine_of_request(id: u64) -> Result<u32, Misuse> {
    if is_attempt(id) { Err(Misuse::Invalid) } else { engine_index(id) }
}

/// The same for a call that is about an attempt.
#[inline]
fn engine_of_attempt(id: u64) -> Result<u32, Misuse> {
    if is_attempt(id) { engine_index(id) } else { Err(Misuse::Invalid) }
}

/// This thread's seat at an engine.
#[inline]
fn seated(local: &mut Local, engine: u64) -> Result<&mut Seat, Misuse> {
    if engine == 0 {
        return Err(Misuse::Invalid);
    }
    let seat = local.seat(index_of(engine))?;
    if seat.engine.id != engine {
        return Err(Misuse::Closed);
    }
    Ok(seat)
}

#[inline]
fn after(engine: &Engine, signals: u16) {
    if signals & bits::WAKE != 0 {
        engine.waiters.wake();
    }
}

/// A stateless attempt: `number` is its attempt number, 1 to [`LAST_NUMBER`], or 0 when it is not known, which
/// a composite refuses; `key` replaces the hash policies.
#[inline]
pub fn pick(
    local: &mut Local,
    engine: u64,
    target: u32,
    number: u32,
    key: Option<&[u8]>,
    now: u64,
    out: &mut Decision,
) -> Result<(), Misuse> {
    if target == 0 || number > LAST_NUMBER {
        return Err(Misuse::Invalid);
    }
    let seat = seated(local, engine)?;
    guarded(seat, 0, now, |core, worker, at| core.pick(worker, target, number, key, at, out))
}

/// A new request and its first choice. With `head.number` set it is a stateless pick with a whole head.
#[inline]
pub fn begin(
    local: &mut Local,
    engine: u64,
    head: &Head<'_>,
    now: u64,
    out: &mut Decision,
) -> Result<(), Misuse> {
    if head.number > LAST_NUMBER {
        return Err(Misuse::Invalid);
    }
    let seat = seated(local, engine)?;
    let stateless = (head.number != 0).then_some(Stateless { number: head.number });
    guarded(seat, 0, now, |core, worker, at| core.begin(worker, head, stateless, at, out))
}

/// The next attempt, or: is it my turn?
#[inline]
pub fn choose(local: &mut Local, request: u64, now: u64, out: &mut Decision) -> Result<(), Misuse> {
    let seat = local.seat(engine_of_request(request)?)?;
    guarded(seat, request, now, |core, worker, at| core.choose(worker, request, at, out))?;
    after(&seat.engine, out.bits);
    Ok(())
}

#[inline]
fn answered(
    local: &mut Local,
    attempt: u64,
    now: u64,
    f: impl FnOnce(&Core, &mut Worker, Time) -> Packed,
) -> Verdict {
    answered_by(local, engine_of_attempt(attempt), attempt, now, f)
}

#[inline]
fn answered_by(
    local: &mut Local,
    index: Result<u32, Misuse>,
    id: u64,
    now: u64,
    f: impl FnOnce(&Core, &mut Worker, Time) -> Packed,
) -> Verdict {
    let seat = match index.and_then(|index| local.seat(index)) {
        Ok(seat) => seat,
        Err(misuse) => return misuse.into(),
    };
    match guarded(seat, id, now, |core, worker, at| Ok(f(core, worker, at))) {
        Ok(packed) => {
            after(&seat.engine, packed.bits());
            packed.into()
        }
        Err(misuse) => misuse.into(),
    }
}

/// Response headers are there: retry or forward?
pub fn headers(local: &mut Local, attempt: u64, outcome: &Outcome<'_>, now: u64) -> Verdict {
    answered(local, attempt, now, |core, worker, at| {
        core.report(worker, attempt, outcome, Report::Headers, at)
    })
}

/// The whole report: headers and end at once, or a failure.
#[inline]
pub fn complete(local: &mut Local, attempt: u64, outcome: &Outcome<'_>, now: u64) -> Verdict {
    answered(local, attempt, now, |core, worker, at| core.report(worker, attempt, outcome, Report::Whole, at))
}

/// [`complete`] with nothing but a status.
#[inline]
pub fn complete_status(local: &mut Local, attempt: u64, status: u32, now: u64) -> Verdict {
    let Ok(status) = u16::try_from(status) else { return Misuse::Invalid.into() };
    if now == NOW
        && let Some(verdict) = complete_plain(local, attempt, status)
    {
        return verdict;
    }
    complete(local, attempt, &Outcome::status(status), now)
}

/// A plain success needs no clock: maintenance waits for the next call that reads it. A clock moved by hand costs
/// nothing to read, and there every call counts.
#[inline]
fn complete_plain(local: &mut Local, attempt: u64, status: u16) -> Option<Verdict> {
    let seat = local.seat(engine_of(attempt)).ok()?;
    if seat.engine.clock.is_manual() {
        return None;
    }
    let plain = AssertUnwindSafe(|| seat.run(|core, worker| core.report_plain(worker, attempt, status)));
    match catch_unwind(plain) {
        Ok(packed) => {
            let packed = packed?;
            after(&seat.engine, packed.bits());
            Some(packed.into())
        }
        Err(_) => {
            contain(seat, attempt, seat.engine.at(NOW));
            Some(Misuse::Panic.into())
        }
    }
}

/// [`complete`], and when a retry is due at once, the next choice in the same call (`next.kind` is 0 otherwise).
pub fn complete_next(
    local: &mut Local,
    attempt: u64,
    outcome: &Outcome<'_>,
    now: u64,
    next: &mut Decision,
) -> Verdict {
    *next = Decision { struct_size: next.struct_size, ..Decision::default() };
    let verdict = complete(local, attempt, outcome, now);
    if verdict.code == 0 && verdict.action == action::RETRY && verdict.after_ms == 0 {
        let request = nexthop_engine::ids::request_of(attempt);
        if choose(local, request, now, next).is_err() {
            next.kind = 0;
        }
    }
    debug_assert!(next.kind <= kind::REFUSED);
    verdict
}

/// The attempt failed, see [`failure`](nexthop_engine::outcome::failure). In ANSWERED: the body broke.
pub fn fail(local: &mut Local, attempt: u64, failure: u32, now: u64) -> Verdict {
    let Ok(failure) = u8::try_from(failure) else { return Misuse::Invalid.into() };
    fail_with(local, attempt, &Outcome::failed(failure), now)
}

/// [`fail`] with all that is known (`outcome.failure` must be set).
pub fn fail_with(local: &mut Local, attempt: u64, outcome: &Outcome<'_>, now: u64) -> Verdict {
    answered(local, attempt, now, |core, worker, at| core.report(worker, attempt, outcome, Report::Fail, at))
}

/// The stream of an answered attempt is over; `None` = cleanly.
pub fn end(local: &mut Local, attempt: u64, outcome: Option<&Outcome<'_>>, now: u64) -> Verdict {
    let clean = Outcome::default();
    let outcome = outcome.unwrap_or(&clean);
    answered(local, attempt, now, |core, worker, at| core.end(worker, attempt, outcome, at))
}

/// Drops an attempt: no outlier report, no retry. Harmless when it has ended.
pub fn cancel(local: &mut Local, attempt: u64, now: u64) -> Verdict {
    released(answered(local, attempt, now, |core, worker, at| core.cancel(worker, attempt, at)))
}

/// Ends a request from outside, see [`finish`](mod@nexthop_engine::outcome::finish). Harmless when it is done.
pub fn finish(local: &mut Local, request: u64, reason: u32, now: u64) -> Verdict {
    if !(1..=5).contains(&reason) {
        return Misuse::Invalid.into();
    }
    let index = engine_of_request(request);
    released(answered_by(local, index, request, now, |core, worker, at| {
        core.finish(worker, request, reason, at)
    }))
}

/// Releases are idempotent, also once the engine is gone.
fn released(verdict: Verdict) -> Verdict {
    if verdict.code == Misuse::Closed as i8 { Verdict::default() } else { verdict }
}

/// Whether an attempt can be handed over to its response's body: it was answered and has not ended. Else
/// [`Misuse::State`] or [`Misuse::Ended`].
pub fn answered_already(local: &mut Local, attempt: u64) -> Result<(), Misuse> {
    let seat = local.seat(engine_of_attempt(attempt)?)?;
    if seat.engine.core.is_answered(attempt)? { Ok(()) } else { Err(Misuse::State) }
}

/// A fact about a request or attempt, see [`note`](mod@nexthop_engine::outcome::note). Returns bits.
pub fn note(local: &mut Local, id: u64, what: u32, now: u64) -> Result<u16, Misuse> {
    let seat = local.seat(engine_index(id)?)?;
    let signals = guarded(seat, id, now, |core, worker, at| core.note(worker, id, what, at))?;
    after(&seat.engine, signals);
    Ok(signals)
}

/// Requests whose wait is over, each handed out once. Returns how many were written; fewer than `out` holds =
/// no more.
pub fn poll_ready(local: &mut Local, engine: u64, out: &mut [Ready]) -> Result<usize, Misuse> {
    Ok(seated(local, engine)?.engine.core.take_ready(out))
}
