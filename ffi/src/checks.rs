//! Active checks: handed out, and what came of them.

use crate::ask::joined;
use crate::consts::nexthop_status;
use crate::fault::{Fault, or, status};
use crate::hot::outcome;
use crate::sized::{self, Out};
use crate::text::Buffer;
use crate::types::{nexthop_check, nexthop_engine, nexthop_outcome, nexthop_str};
use nexthop::raw::{self, Outcome};
use std::ffi::c_char;

/// The next active check that is due; ask until NEXTHOP_EMPTY. Each is handed out once: perform it within its
/// `timeout` and tell nexthop_check_result, or it counts as timed out. The first call begins active checking: before it,
/// hosts count as if no cluster had `health_checks`; those that serve at that moment go on until their first result.
/// Errors: NEXTHOP_EMPTY (nothing is due), NEXTHOP_SHORT (it is kept), NEXTHOP_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_poll_check(
    engine: nexthop_engine,
    now: u64,
    out: *mut nexthop_check,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
) -> nexthop_status {
    status(|| {
        let buffer = Buffer::new(buf, cap, len)?;
        // SAFETY: the caller's promise about its struct.
        let out = unsafe { Out::new(out)? };
        let check = raw::with_local(|local| raw::poll_check(local, engine.id, now))?.ok_or_else(no_check)?;
        let headers = joined(check.headers().into_iter());
        let texts = [
            check.method().as_bytes(),
            check.path().as_bytes(),
            check.authority.as_bytes(),
            &check.payload,
            check.address.as_bytes(),
            &headers,
            check.cluster.as_bytes(),
            check.spec.name.as_bytes(),
            raw::extension_of(&check).as_bytes(),
        ];
        // SAFETY: the caller's promise about its buffer.
        let placed = unsafe { buffer.put_all(texts) };
        let [method, path, authority, send, address, headers, cluster, name, extension] =
            placed.inspect_err(|_| raw::put_back_check(engine.id, &check, now))?;
        let facts = nexthop_check {
            struct_size: 0,
            protocol: raw::protocol_of(&check),
            bits: raw::bits_of(&check),
            want: check.want,
            id: check.id,
            timeout: check.timeout,
            host: check.host,
            host_version: check.host_version,
            method,
            path,
            authority,
            send,
            address,
            headers,
            cluster,
            name,
            extension,
            body_limit: check.body_limit,
        };
        // SAFETY: checked above.
        unsafe { out.put(&facts) };
        Ok(())
    })
}

#[cold]
fn no_check() -> Fault {
    Fault::empty("no check is due; ask again after nexthop_checks_deadline")
}

/// Nanoseconds from `now` until nexthop_poll_check has something to do, NEXTHOP_NEVER when nothing is checked, nobody has
/// asked yet, or the engine is closed. Updates of documents and hosts may bring checks that are due at once: look again
/// at least every second.
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_checks_deadline(engine: nexthop_engine, now: u64) -> u64 {
    or(u64::MAX, || raw::checks_deadline(engine.id, now).unwrap_or(u64::MAX))
}

/// What came of a check: NEXTHOP_CHECK_SUCCESS and so on, or NEXTHOP_CHECK_JUDGE with what came back, which is judged
/// here by the rules of the check's protocol. `outcome` (may be NULL) holds status, failure, gRPC status (or the header
/// or trailer of that name) and headers over the check's set `want`; `body` the body, or everything that a TCP
/// connection has brought so far: absent once it is up. As nexthop_apply does, it may leave requests ready.
/// Errors: NEXTHOP_EMPTY (still out: read on; always after NEXTHOP_CHECK_PASSIVE), NEXTHOP_ENDED (reported before, out of
/// time, or its host has left: nothing has changed), NEXTHOP_CLOSED, NEXTHOP_INVALID (no such check or result, or an
/// answer that cannot be judged).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_check_result(
    engine: nexthop_engine,
    check: u64,
    result: u32,
    outcome: *const nexthop_outcome,
    body: nexthop_str,
    now: u64,
) -> nexthop_status {
    status(|| {
        let mut spare = None;
        let given = if outcome.is_null() {
            Outcome::default()
        } else {
            // SAFETY: the caller's promise about its struct and text.
            unsafe { self::outcome(sized::read(outcome, &mut spare)?)? }
        };
        // SAFETY: likewise.
        let body = unsafe { body.bytes("the body")? }.unwrap_or_default();
        let told =
            raw::with_local(|local| raw::check_result(local, engine.id, check, result, &given, body, now))?;
        match told {
            true => Ok(()),
            false => Err(Fault::empty("the check is still out; read on, and report it within its time")),
        }
    })
}
