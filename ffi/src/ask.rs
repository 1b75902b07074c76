//! Questions that are answered with text.

use crate::cold::{optional, store};
use crate::consts::nexthop_status;
use crate::fault::{Fault, status};
use crate::given::NEXTHOP_HOST_SECURE;
use crate::sized::Out;
use crate::text::Buffer;
use crate::types::{
    nexthop_engine, nexthop_host_info, nexthop_local_reply, nexthop_request, nexthop_request_facts,
    nexthop_str,
};
use nexthop::engine::sync::{Mutex, MutexGuard};
use nexthop::raw;
use std::cell::RefCell;
use std::ffi::c_char;

/// A text, see NEXTHOP_TEXT_...; `arg` as told there, else absent. Errors: NEXTHOP_SHORT, NEXTHOP_NOT_FOUND (no such
/// text, name, host or attempt), NEXTHOP_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_text(
    engine: nexthop_engine,
    what: u32,
    arg: nexthop_str,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
) -> nexthop_status {
    status(|| {
        let buffer = Buffer::new(buf, cap, len)?;
        // SAFETY: the caller's promise about its text.
        let arg = unsafe { arg.text("the argument")? };
        let text = raw::text(engine.id, what, arg)?;
        // SAFETY: the caller's promise about its buffer.
        unsafe { buffer.put(text.as_bytes()) }
    })
}

type Parked = Vec<(u64, String)>;

/// Events taken from an engine for a buffer that was too small: (engine, line). The next call gets them.
static PARKED: Mutex<Parked> = Mutex::new(Vec::new());

/// The next event, oldest first, as one line of JSON. Errors: NEXTHOP_EMPTY (none), NEXTHOP_SHORT (it is kept).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_poll_event(
    engine: nexthop_engine,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
) -> nexthop_status {
    status(|| {
        let buffer = Buffer::new(buf, cap, len)?;
        let mut parked = PARKED.lock();
        let line = match parked.iter().position(|(of, _)| *of == engine.id) {
            // Gone with its engine: the call below says so.
            Some(at) if raw::engine_info(engine.id).is_ok() => parked.remove(at).1,
            Some(at) => {
                parked.remove(at);
                raw::poll_event(engine.id)?.ok_or_else(no_event)?
            }
            None => raw::poll_event(engine.id)?.ok_or_else(no_event)?,
        };
        // SAFETY: the caller's promise about its buffer.
        let done = unsafe { buffer.put(line.as_bytes()) };
        if done.is_err() {
            parked.push((engine.id, line));
        }
        done
    })
}

#[cold]
fn no_event() -> Fault {
    Fault::empty("there is no event; ask again when a call returns NEXTHOP_EVENTS")
}

thread_local! {
    /// Held by the thread that forks, from before until after.
    static HELD: RefCell<Option<MutexGuard<'static, Parked>>> = const { RefCell::new(None) };
}

/// Before `fork`.
pub(crate) fn hold_parked() {
    HELD.set(Some(PARKED.lock()));
}

/// After it; the child forgets the parent's events.
pub(crate) fn release_parked(forget: bool) {
    if let Some(mut parked) = HELD.take()
        && forget
    {
        parked.clear();
    }
}

/// What is to be shown of a host: `host` and `host_version` as in a decision, whose open attempt keeps it there.
/// `version` 0 takes any. Equal version, equal content. Errors: NEXTHOP_NOT_FOUND, NEXTHOP_SHORT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_host(
    engine: nexthop_engine,
    host: u32,
    version: u32,
    out: *mut nexthop_host_info,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
) -> nexthop_status {
    status(|| {
        let buffer = Buffer::new(buf, cap, len)?;
        // SAFETY: the caller's promise about its struct.
        let out = unsafe { Out::new(out)? };
        let (version, info) = raw::host(engine.id, host, version)?;
        let metadata = raw::metadata_json(&info);
        let texts = [
            info.address.as_bytes(),
            info.hostname.as_bytes(),
            info.cluster.as_bytes(),
            info.locality.region.as_bytes(),
            info.locality.zone.as_bytes(),
            info.locality.sub_zone.as_bytes(),
            metadata.as_bytes(),
        ];
        // SAFETY: the caller's promise about its buffer.
        let [address, hostname, cluster_name, region, zone, sub_zone, metadata] =
            unsafe { buffer.put_all(texts)? };
        let facts = nexthop_host_info {
            struct_size: 0,
            version,
            cluster: info.cluster_index,
            weight: info.weight,
            bits: if info.secure { NEXTHOP_HOST_SECURE } else { 0 },
            port: info.port,
            priority: u16::try_from(info.priority).unwrap_or(u16::MAX),
            connect_timeout: info.connect_timeout,
            address,
            hostname,
            cluster_name,
            region,
            zone,
            sub_zone,
            metadata,
        };
        // SAFETY: checked above.
        unsafe { out.put(&facts) };
        Ok(())
    })
}

/// The names of a numbered set of wanted headers, lower case, NUL between them; their places are the indexes of
/// nexthop_pack. `set` 0 asks for the present set of a request's headers. `*number` (may be NULL) gets the set's
/// number: a set never changes, so read each once. Errors: NEXTHOP_NOT_FOUND, NEXTHOP_SHORT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_want(
    engine: nexthop_engine,
    set: u32,
    number: *mut u32,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
) -> nexthop_status {
    status(|| {
        let buffer = Buffer::new(buf, cap, len)?;
        let number = optional(number, "the number")?;
        let (found, names) = raw::want(engine.id, set)?;
        // SAFETY: the caller's promise about its buffer and number.
        unsafe {
            buffer.put(names.join("\0").as_bytes())?;
            store(number, found);
        }
        Ok(())
    })
}

/// Headers to set on an attempt (its id), or on the answer for the client (the request's id): for each name, NUL,
/// value, NUL; the value "\1" says: remove it. `:path` and `:authority` among them rewrite the URL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_extra_headers(
    request_or_attempt: u64,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
) -> nexthop_status {
    status(|| {
        let buffer = Buffer::new(buf, cap, len)?;
        let headers = raw::extra_headers(request_or_attempt)?;
        let pairs = headers.iter().map(|(name, value)| (&**name, value.as_deref().unwrap_or("\u{1}")));
        // SAFETY: the caller's promise about its buffer.
        unsafe { buffer.put(&joined(pairs)) }
    })
}

/// What a request became: cluster, route, limits. Answers for a done request too, until its slot is used again.
/// Errors: NEXTHOP_ENDED, NEXTHOP_SHORT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_request_info(
    request: nexthop_request,
    out: *mut nexthop_request_facts,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
) -> nexthop_status {
    status(|| {
        let buffer = Buffer::new(buf, cap, len)?;
        // SAFETY: the caller's promise about its struct.
        let out = unsafe { Out::new(out)? };
        let info = raw::request_info(request.id)?;
        // SAFETY: the caller's promise about its buffer.
        let [cluster, route] = unsafe { buffer.put_all([info.cluster.as_bytes(), info.route.as_bytes()])? };
        let facts = nexthop_request_facts {
            struct_size: 0,
            reserved: 0,
            timeout: info.timeout,
            idle_timeout: info.idle_timeout,
            cluster,
            route,
        };
        // SAFETY: checked above.
        unsafe { out.put(&facts) };
        Ok(())
    })
}

/// What to answer to the client after a refusal, or after a final verdict on an attempt without response. Ask right
/// after it: the answer is there until the request's slot is used again. Errors: NEXTHOP_EMPTY (the request has
/// none), NEXTHOP_ENDED, NEXTHOP_SHORT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_reply(
    request: nexthop_request,
    out: *mut nexthop_local_reply,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
) -> nexthop_status {
    status(|| {
        let buffer = Buffer::new(buf, cap, len)?;
        // SAFETY: the caller's promise about its struct.
        let out = unsafe { Out::new(out)? };
        let reply = raw::reply(request.id)?.ok_or_else(|| Fault::empty("the request has no local reply; it was neither refused nor did its last attempt fail for good"))?;
        let headers = joined(reply.headers.iter().map(|(name, value)| (&**name, &**value)));
        // SAFETY: the caller's promise about its buffer.
        let [details, body, headers] =
            unsafe { buffer.put_all([reply.details.as_bytes(), reply.body.as_bytes(), &headers])? };
        let facts = nexthop_local_reply {
            struct_size: 0,
            flags: reply.flags,
            status: reply.status,
            reserved: 0,
            n_headers: u32::try_from(reply.headers.len()).unwrap_or(u32::MAX),
            details,
            body,
            headers,
        };
        // SAFETY: checked above.
        unsafe { out.put(&facts) };
        Ok(())
    })
}

pub(crate) fn joined<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in pairs {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    bytes
}
