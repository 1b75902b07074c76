//! The bound functions: hot ones take no argument and return nothing, all is in the words.

use crate::Callback;
use crate::bound::Bound;
use crate::values;
use napi_sys as sys;
use nexthop::raw::{self, Asked, Call, Head, Misuse, NOW, Outcome, Ready, Verdict};
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// All of them, by name.
pub(crate) const FUNCTIONS: &[(&CStr, Callback)] = &[
    (c"pick", pick),
    (c"begin", begin),
    (c"beginTarget", begin_target),
    (c"choose", choose),
    (c"completeStatus", complete_status),
    (c"report", report),
    (c"cancel", cancel),
    (c"finish", finish),
    (c"note", note),
    (c"pollReady", poll_ready),
    (c"release", release),
];

/// A callback that answers with a result code in its word.
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident, $call:expr, |$bound:ident| $body:expr) => {
        $(#[$doc])*
        unsafe extern "C" fn $name(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
            // SAFETY: made by `bind` only.
            let $bound = unsafe { Bound::of(env, info) };
            let result: Result<i32, Misuse> =
                catch_unwind(AssertUnwindSafe(|| $body)).unwrap_or(Err(Misuse::Panic));
            $bound.code(result.unwrap_or_else(|misuse| told(&Asked::with($call, $bound.id(), $bound.word(2)), misuse)));
            null_mut()
        }
    };
}

/// A callback that answers with a verdict.
macro_rules! judged {
    ($(#[$doc:meta])* $name:ident, $call:expr, |$bound:ident| $body:expr) => {
        $(#[$doc])*
        unsafe extern "C" fn $name(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
            // SAFETY: made by `bind` only.
            let $bound = unsafe { Bound::of(env, info) };
            let verdict: Verdict =
                catch_unwind(AssertUnwindSafe(|| $body)).unwrap_or_else(|_| Misuse::Panic.into());
            if verdict.code != 0 {
                told(&Asked::with($call, $bound.id(), $bound.word(2)), Misuse::from_code(verdict.code));
            }
            $bound.answer(verdict);
            null_mut()
        }
    };
}

/// Keeps the sentence of an error, and gives its code.
#[cold]
fn told(asked: &Asked, misuse: Misuse) -> i32 {
    raw::set_last_error(&raw::sentence_of(asked, misuse));
    misuse as i32
}

/// Words: target, attempt number, length of the key in the text array or 0xffff_ffff. Like [`complete_status`]
/// without a guard of its own: `raw` contains the engine's panics, and what is left here only moves words.
unsafe extern "C" fn pick(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: made by `bind` only.
    let bound = unsafe { Bound::of(env, info) };
    let key = match bound.word(2) {
        u32::MAX => Ok(None),
        length => bound.text(0, length as usize).map(Some).ok_or(Misuse::Limit),
    };
    let (target, number) = (bound.word(0), bound.word(1));
    let result = key
        .and_then(|key| raw::pick(bound.local(), bound.engine, target, number, key, NOW, bound.decision()));
    bound.code(result.map_or_else(|misuse| told(&Asked::pick(bound.engine, target, number), misuse), |()| 0));
    null_mut()
}

/// Words: attempt (2), status.
unsafe extern "C" fn complete_status(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: made by `bind` only.
    let bound = unsafe { Bound::of(env, info) };
    let verdict = raw::complete_status(bound.local(), bound.id(), bound.word(2), NOW);
    if verdict.code != 0 {
        told(&Asked::with(Call::Complete, bound.id(), bound.word(2)), Misuse::from_code(verdict.code));
    }
    bound.answer(verdict);
    null_mut()
}

coded! {
    /// A request for a cluster named alone. Words: target, user data (2).
    begin_target, Call::Choose, |bound| {
        let user_data = u64::from(bound.word(1)) | u64::from(bound.word(2)) << 32;
        let head = Head { target: bound.word(0), user_data, ..Head::default() };
        raw::begin(bound.local(), bound.engine, &head, NOW, bound.decision())?;
        Ok(0)
    }
}

coded! {
    /// Everything is in the text array: bits, target, number, want, priority, body, hash (2), timeout (2),
    /// user data (2), then the lengths of twelve texts (0xffff_ffff: no key).
    begin, Call::Choose, |bound| {
        let head = head(bound)?;
        match raw::begin(bound.local(), bound.engine, &head, NOW, bound.decision()) {
            Ok(()) => Ok(0),
            Err(misuse) => {
                raw::set_last_error(&raw::sentence_of_head(&head, misuse));
                Ok(misuse as i32)
            }
        }
    }
}

/// UTF-8, or the caller wrote nonsense.
fn text(bytes: &[u8]) -> Result<&str, Misuse> {
    if bytes.is_empty() { Ok("") } else { std::str::from_utf8(bytes).map_err(|_| Misuse::Invalid) }
}

/// A head as laid out by the package's `head.cjs`.
fn head(bound: &Bound) -> Result<Head<'_>, Misuse> {
    let (mut at, mut field) = (0, 12);
    let mut bytes = || {
        let length = bound.text_word(field) as usize;
        field += 1;
        if length == 0 {
            return Ok::<_, Misuse>(&[] as &[u8]);
        }
        let bytes = bound.text(at, length).ok_or(Misuse::Limit)?;
        at += length;
        Ok(bytes)
    };
    Ok(Head {
        bits: bound.text_word(0),
        target: bound.text_word(1),
        number: bound.text_word(2),
        want: bound.text_word(3),
        priority: bound.text_word(4).cast_signed() as i8,
        body: bound.text_word(5) as u8,
        hash: bound.text_u64(6),
        timeout: bound.text_u64(8),
        user_data: bound.text_u64(10),
        method: text(bytes()?)?,
        scheme: text(bytes()?)?,
        authority: text(bytes()?)?,
        path: text(bytes()?)?,
        source: text(bytes()?)?,
        local: text(bytes()?)?,
        tried: text(bytes()?)?,
        override_host: text(bytes()?)?,
        metadata: text(bytes()?)?,
        filter_metadata: text(bytes()?)?,
        headers: bytes()?,
        key: match bound.text_word(23) {
            u32::MAX => None,
            length => Some(bound.text(at, length as usize).ok_or(Misuse::Limit)?),
        },
    })
}

coded! {
    /// Words: request (2).
    choose, Call::Choose, |bound| {
        raw::choose(bound.local(), bound.id(), NOW, bound.decision())?;
        Ok(0)
    }
}

/// Words: attempt (2), what (0 headers, 1 complete, 2 end, 3 fail), status | failure << 16 | grpc status << 24, bits,
/// length of the header block, length of the detail, whether the block is the argument instead. Text array: latency
/// (2), bytes (2), then both texts.
unsafe extern "C" fn report(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: made by `bind` only.
    let bound = unsafe { Bound::of(env, info) };
    let verdict = catch_unwind(AssertUnwindSafe(|| reported(bound, env, info)));
    bound.answer(verdict.unwrap_or_else(|_| Misuse::Panic.into()));
    null_mut()
}

fn reported(bound: &Bound, env: sys::napi_env, info: sys::napi_callback_info) -> Verdict {
    let large = match bound.word(7) {
        0 => Vec::new(),
        _ => {
            let given = values::arguments(env, info).and_then(|[block]| values::get_bytes(env, block));
            let Ok(block) = given else { return Misuse::Invalid.into() };
            block
        }
    };
    let mut outcome = match outcome(bound) {
        Ok(outcome) => outcome,
        Err(misuse) => {
            raw::set_last_error(raw::sentence(misuse));
            return misuse.into();
        }
    };
    if !large.is_empty() {
        outcome.headers = &large;
    }
    let (local, id) = (bound.local(), bound.id());
    let (call, verdict) = match bound.word(2) {
        0 => (Call::Headers, raw::headers(local, id, &outcome, NOW)),
        1 => (Call::Complete, raw::complete(local, id, &outcome, NOW)),
        2 => (Call::End, raw::end(local, id, Some(&outcome), NOW)),
        _ => (Call::Fail, raw::fail_with(local, id, &outcome, NOW)),
    };
    if verdict.code != 0 {
        told(&Asked::report(call, id, &outcome), Misuse::from_code(verdict.code));
    }
    verdict
}

fn outcome(bound: &Bound) -> Result<Outcome<'_>, Misuse> {
    let (packed, headers) = (bound.word(3), bound.word(5) as usize);
    let detail = bound.text(headers, bound.word(6) as usize).ok_or(Misuse::Limit)?;
    Ok(Outcome {
        status: packed as u16,
        failure: (packed >> 16) as u8,
        grpc_status: ((packed >> 24) as u8).cast_signed(),
        bits: bound.word(4),
        headers: bound.text(0, headers).ok_or(Misuse::Limit)?,
        detail: std::str::from_utf8(detail).map_err(|_| Misuse::Invalid)?,
        latency: bound.text_u64(0),
        bytes: bound.text_u64(2),
    })
}

judged! {
    /// Words: attempt (2).
    cancel, Call::Cancel, |bound| raw::cancel(bound.local(), bound.id(), NOW)
}

judged! {
    /// Words: request (2), reason.
    finish, Call::Finish, |bound| raw::finish(bound.local(), bound.id(), bound.word(2), NOW)
}

coded! {
    /// Words: request or attempt (2), what. The code is the call's bits.
    note, Call::Note, |bound| raw::note(bound.local(), bound.id(), bound.word(2), NOW).map(i32::from)
}

coded! {
    /// Fills the text array with (request, user data) pairs of 16 bytes; the code is their number.
    poll_ready, Call::Note, |bound| {
        let room = bound.room::<Ready>();
        let most = room.len().min(1024);
        let room = &mut room[..most];
        raw::poll_ready(bound.local(), bound.engine, room).map(|count| count as i32)
    }
}

coded! {
    /// Not hot: this environment uses the engine no more.
    release, Call::Note, |bound| {
        bound.release();
        Ok(0)
    }
}
