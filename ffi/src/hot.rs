//! Requests and attempts.

use crate::cold::{optional, place, store};
use crate::consts::nexthop_status;
use crate::fault::{Fault, explain, misused, status, verdict};
use crate::sized::{self, Out};
use crate::types::{
    nexthop_attempt, nexthop_decision, nexthop_engine, nexthop_head, nexthop_outcome, nexthop_ready,
    nexthop_request, nexthop_str, nexthop_verdict,
};
use nexthop::raw::{self, Asked, Call, Decision, Head, Local, Misuse, Outcome, Packed, Ready, Verdict};
use std::mem::offset_of;

/// A stateless attempt: one request of exactly one attempt with this number (1 to 2147483647; retry predicates act from
/// 2 on, a composite takes sub-cluster number - 1). `key` (may be absent) replaces the hash policies. It never says
/// NEXTHOP_WAIT unless the cluster queues. Errors: NEXTHOP_CLOSED, NEXTHOP_INVALID, NEXTHOP_LIMIT, NEXTHOP_NOT_FOUND (a
/// target that no name has).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_pick(
    engine: nexthop_engine,
    target: u32,
    number: u32,
    key: nexthop_str,
    now: u64,
    out: *mut nexthop_decision,
) -> nexthop_status {
    status(|| {
        // SAFETY: the caller's promise about its text and struct.
        let (key, out) = unsafe { (key.bytes("the key")?, Out::new(out)?) };
        // SAFETY: checked above.
        unsafe { decide(&out, |local, out| raw::pick(local, engine.id, target, number, key, now, out)) }
            .map_err(|misuse| misused(&Asked::pick(engine.id, target, number), misuse))
    })
}

/// A new request and its first choice. End it by reports, or nexthop_finish.
/// Errors: NEXTHOP_CLOSED, NEXTHOP_INVALID, NEXTHOP_LIMIT, NEXTHOP_NOT_FOUND (a target that no name has). An unknown
/// cluster, NEXTHOP_NO_SUCH_TARGET, is no error but NEXTHOP_REFUSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_begin(
    engine: nexthop_engine,
    head: *const nexthop_head,
    now: u64,
    out: *mut nexthop_decision,
) -> nexthop_status {
    status(|| {
        let mut spare = None;
        // SAFETY: the caller's promise about its structs.
        let (head, out) = unsafe { (sized::read(head, &mut spare)?, Out::new(out)?) };
        // SAFETY: the caller's promise about its text.
        let head = unsafe { self::head(head)? };
        // SAFETY: checked above.
        unsafe { decide(&out, |local, out| raw::begin(local, engine.id, &head, now, out)) }.map_err(
            |misuse| {
                let fault = Fault::from(misuse);
                raw::set_last_error(&raw::sentence_of_head(&head, misuse));
                fault
            },
        )
    })
}

/// The next attempt of a request, or: is it my turn? Asking too early or too often is harmless.
/// Errors: NEXTHOP_STATE (an attempt is open, or its response is being streamed), NEXTHOP_ENDED, NEXTHOP_CLOSED,
/// NEXTHOP_INVALID (zero, or an attempt's handle).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_choose(
    request: nexthop_request,
    now: u64,
    out: *mut nexthop_decision,
) -> nexthop_status {
    status(|| {
        // SAFETY: the caller's promise about its struct.
        let out = unsafe { Out::new(out)? };
        // SAFETY: checked above.
        unsafe { decide(&out, |local, out| raw::choose(local, request.id, now, out)) }
            .map_err(|misuse| misused(&Asked::about(Call::Choose, request.id), misuse))
    })
}

/// Response headers are there: retry or forward? After NEXTHOP_FORWARD the body is the caller's; nexthop_end or
/// nexthop_fail closes the attempt. Verdict codes: NEXTHOP_ENDED, NEXTHOP_STATE, NEXTHOP_CLOSED, NEXTHOP_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_headers(
    attempt: nexthop_attempt,
    outcome: *const nexthop_outcome,
    now: u64,
) -> nexthop_verdict {
    // SAFETY: the caller's promise about its struct.
    unsafe {
        report(Call::Headers, attempt, outcome, |local, outcome| {
            raw::headers(local, attempt.id, outcome, now)
        })
    }
}

/// The whole report: headers and end at once, or a failure. Verdict codes: as nexthop_headers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_complete(
    attempt: nexthop_attempt,
    outcome: *const nexthop_outcome,
    now: u64,
) -> nexthop_verdict {
    // SAFETY: the caller's promise about its struct.
    unsafe {
        report(Call::Complete, attempt, outcome, |local, outcome| {
            raw::complete(local, attempt.id, outcome, now)
        })
    }
}

/// nexthop_complete with nothing but a status: 0 (success without status) or 100 to 999.
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_complete_status(
    attempt: nexthop_attempt,
    status: u32,
    now: u64,
) -> nexthop_verdict {
    verdict(|| {
        let found = raw::with_local(|local| raw::complete_status(local, attempt.id, status, now));
        Ok(told(found, || Asked::with(Call::Complete, attempt.id, status)))
    })
}

/// nexthop_complete, and when a retry is due at once, the next choice in the same call. Else `next->kind` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_complete_next(
    attempt: nexthop_attempt,
    outcome: *const nexthop_outcome,
    now: u64,
    next: *mut nexthop_decision,
) -> nexthop_verdict {
    verdict(|| {
        let mut spare = None;
        // SAFETY: the caller's promise about its structs.
        let (given, next) = unsafe { (sized::read(outcome, &mut spare)?, Out::new(next)?) };
        // SAFETY: the caller's promise about its text.
        let outcome = unsafe { self::outcome(given)? };
        let mut found = Verdict::default();
        // SAFETY: checked above.
        unsafe {
            decide(&next, |local, next| {
                next.kind = 0;
                found = raw::complete_next(local, attempt.id, &outcome, now, next);
                Ok(())
            })
            .map_err(Fault::from)?;
        }
        Ok(told(found, || Asked::report(Call::Complete, attempt.id, &outcome)))
    })
}

/// The attempt failed: NEXTHOP_CONNECT_FAILURE, .... After nexthop_headers: the body broke.
/// Verdict codes: as nexthop_headers; NEXTHOP_INVALID for unknown failures.
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_fail(attempt: nexthop_attempt, failure: u32, now: u64) -> nexthop_verdict {
    verdict(|| {
        let found = raw::with_local(|local| raw::fail(local, attempt.id, failure, now));
        Ok(told(found, || Asked::with(Call::Fail, attempt.id, failure)))
    })
}

/// The response of an attempt is over. `outcome` (trailers, gRPC status, bytes) may be NULL: a clean end. Nothing
/// happens when the attempt has ended. Verdict codes: NEXTHOP_STATE before nexthop_headers, NEXTHOP_CLOSED,
/// NEXTHOP_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_end(
    attempt: nexthop_attempt,
    outcome: *const nexthop_outcome,
    now: u64,
) -> nexthop_verdict {
    if outcome.is_null() {
        return verdict(|| {
            let found = raw::with_local(|local| raw::end(local, attempt.id, None, now));
            Ok(told(found, || Asked::about(Call::End, attempt.id)))
        });
    }
    // SAFETY: the caller's promise about its struct.
    unsafe {
        report(Call::End, attempt, outcome, |local, outcome| raw::end(local, attempt.id, Some(outcome), now))
    }
}

/// Drops an attempt: no outlier report, no retry. Nothing happens when it has ended, or its engine is closed. Verdict
/// codes: NEXTHOP_INVALID (zero, or a request's handle).
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_cancel(attempt: nexthop_attempt, now: u64) -> nexthop_verdict {
    verdict(|| {
        let found = raw::with_local(|local| raw::cancel(local, attempt.id, now));
        Ok(told(found, || Asked::about(Call::Cancel, attempt.id)))
    })
}

/// Ends a request from any state, see NEXTHOP_FINISH_...; its attempts are cancelled. Nothing happens when it is
/// done, or its engine is closed. Verdict codes: NEXTHOP_INVALID (zero, an attempt's handle, no such reason).
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_finish(request: nexthop_request, reason: u32, now: u64) -> nexthop_verdict {
    verdict(|| {
        let found = raw::with_local(|local| raw::finish(local, request.id, reason, now));
        Ok(told(found, || Asked::with(Call::Finish, request.id, reason)))
    })
}

/// Whether the attempt can be handed over to whatever reads its response's body: NEXTHOP_OK when it was answered and has
/// not ended. Errors: NEXTHOP_STATE before nexthop_headers, NEXTHOP_ENDED, NEXTHOP_CLOSED, NEXTHOP_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_answered(attempt: nexthop_attempt) -> nexthop_status {
    status(|| {
        raw::with_local(|local| raw::answered_already(local, attempt.id))
            .map_err(|misuse| misused(&Asked::about(Call::Body, attempt.id), misuse))
    })
}

/// A fact about a request or attempt (its id), see NEXTHOP_NOTE_.... `*bits` (may be NULL) gets NEXTHOP_WAKE,
/// NEXTHOP_EVENTS. Nothing happens when it has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_note(
    request_or_attempt: u64,
    what: u32,
    now: u64,
    bits: *mut u32,
) -> nexthop_status {
    status(|| {
        let bits = optional(bits, "the bits")?;
        let found = raw::with_local(|local| raw::note(local, request_or_attempt, what, now))
            .map_err(|misuse| misused(&Asked::with(Call::Note, request_or_attempt, what), misuse))?;
        // SAFETY: checked above.
        unsafe { store(bits, u32::from(found)) };
        Ok(())
    })
}

/// Requests whose wait is over, each handed out once: up to `cap`, `*n` gets how many. Fewer than `cap`: no more.
/// Call it whenever a call returned NEXTHOP_WAKE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_poll_ready(
    engine: nexthop_engine,
    ready: *mut nexthop_ready,
    cap: usize,
    n: *mut usize,
) -> nexthop_status {
    status(|| {
        let n = place(n, "the count")?;
        let room: &mut [Ready] = if cap == 0 {
            &mut []
        } else {
            let ready = place(ready, "the requests")?;
            // More than that is never there.
            let cap = cap.min(isize::MAX.cast_unsigned() / size_of::<Ready>());
            // SAFETY: not null, aligned, same layout as `Ready`; the caller's promise about the room.
            unsafe { std::slice::from_raw_parts_mut(ready.cast(), cap) }
        };
        let found = raw::with_local(|local| raw::poll_ready(local, engine.id, room))?;
        // SAFETY: checked above.
        unsafe { n.write(found) };
        Ok(())
    })
}

/// Blocks this thread until asking nexthop_choose again makes sense: at most `max_ns` (a decision's `wait`), and at
/// most a second. A request that is waited for here is not listed by nexthop_poll_ready. Errors: NEXTHOP_ENDED (the
/// request is over), NEXTHOP_CLOSED, NEXTHOP_INVALID (zero, or an attempt's handle).
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_wait(request: nexthop_request, max_ns: u64) -> nexthop_status {
    status(|| Ok(raw::wait_for(request.id, max_ns)?))
}

/// Lets the engine fill a decision of the caller, in place when it is large enough.
///
/// # Safety
/// The struct behind `out` must still be there.
#[inline(always)]
unsafe fn decide(
    out: &Out<nexthop_decision>,
    call: impl FnOnce(&mut Local, &mut Decision) -> Result<(), Misuse>,
) -> Result<(), Misuse> {
    if let Some(whole) = out.whole() {
        // SAFETY: same layout, see the assertions below; whole, aligned, the caller's alone during the call.
        let done = raw::with_local(|local| call(local, unsafe { &mut *whole.cast::<Decision>() }));
        // SAFETY: handed on.
        unsafe { out.seal() };
        return done;
    }
    let mut decision = Decision::default();
    raw::with_local(|local| call(local, &mut decision))?;
    // SAFETY: same layout.
    let decision = unsafe { &*std::ptr::from_ref(&decision).cast::<nexthop_decision>() };
    // SAFETY: handed on.
    unsafe { out.put(decision) };
    Ok(())
}

/// Reads an outcome and hands it on.
///
/// # Safety
/// The caller's promises about `outcome` and the text in it.
#[inline(always)]
unsafe fn report(
    name: Call,
    attempt: nexthop_attempt,
    outcome: *const nexthop_outcome,
    call: impl FnOnce(&mut Local, &Outcome<'_>) -> Verdict,
) -> nexthop_verdict {
    verdict(|| {
        let mut spare = None;
        // SAFETY: handed on.
        let outcome = unsafe { self::outcome(sized::read(outcome, &mut spare)?)? };
        let found = raw::with_local(|local| call(local, &outcome));
        Ok(told(found, || Asked::report(name, attempt.id, &outcome)))
    })
}

#[inline]
pub(crate) unsafe fn outcome<'a>(given: &nexthop_outcome) -> Result<Outcome<'a>, Fault> {
    // SAFETY: handed on.
    let (headers, detail) = unsafe { (given.headers.bytes("headers")?, given.detail.text("detail")?) };
    Ok(Outcome {
        status: given.status,
        failure: given.failure,
        grpc_status: given.grpc_status,
        bits: given.bits,
        headers: headers.unwrap_or_default(),
        detail,
        latency: given.latency,
        bytes: given.bytes,
    })
}

#[inline]
unsafe fn head<'a>(given: &nexthop_head) -> Result<Head<'a>, Fault> {
    // SAFETY: handed on.
    unsafe {
        Ok(Head {
            bits: given.bits,
            target: given.target,
            number: given.number,
            // Set 0 is a question, not a set; zeroed structs mean the empty one.
            want: given.want.max(1),
            priority: given.priority,
            body: given.body,
            method: given.method.text("method")?,
            scheme: given.scheme.text("scheme")?,
            authority: given.authority.text("authority")?,
            path: given.path.text("path")?,
            headers: given.headers.bytes("headers")?.unwrap_or_default(),
            source: given.source.text("source")?,
            local: given.local.text("local")?,
            key: given.key.bytes("key")?,
            tried: given.tried.text("tried")?,
            override_host: given.override_host.text("override_host")?,
            metadata: given.metadata.text("metadata")?,
            filter_metadata: given.filter_metadata.text("filter_metadata")?,
            hash: given.hash,
            timeout: given.timeout,
            user_data: given.user_data,
        })
    }
}

#[inline]
fn told(found: Verdict, asked: impl FnOnce() -> Asked) -> Packed {
    if found.code != 0 {
        explain(&asked(), found.code);
    }
    found.into()
}

/// Holds two structs of one layout against each other.
macro_rules! same {
    ($ours:ty, $theirs:ty: $($field:ident)*) => {
        const _: () = {
            assert!(size_of::<$ours>() == size_of::<$theirs>() && align_of::<$ours>() == align_of::<$theirs>());
            $(assert!(offset_of!($ours, $field) == offset_of!($theirs, $field));)*
        };
    };
}
same!(nexthop_decision, Decision: struct_size kind bits request attempt host host_version number want_ok want_err
    try_timeout remaining wait status refusal resource flags);
same!(nexthop_verdict, Verdict: code action reason bits flags status reserved after_ms);
same!(nexthop_ready, Ready: request user_data);
