//! Engines, documents, hosts, time.

use crate::consts::nexthop_status;
use crate::fault::{Fault, or, status};
use crate::fork;
use crate::given;
use crate::sized::{self, Out};
use crate::types::{
    nexthop_document, nexthop_engine, nexthop_engine_facts, nexthop_host_op, nexthop_options, nexthop_str,
};
use nexthop::raw::{self, Document, HostChange, Options};

/// Makes an engine from documents, at least one. `options` may be NULL. Give it back with nexthop_engine_free. Up to 1,023 engines
/// may be there at a time. Errors: NEXTHOP_CONFIG, NEXTHOP_IO, NEXTHOP_LIMIT, NEXTHOP_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_engine_new(
    options: *const nexthop_options,
    documents: *const nexthop_document,
    n: usize,
    out: *mut nexthop_engine,
) -> nexthop_status {
    status(|| {
        let out = place(out, "the engine")?;
        // SAFETY: the caller's promise about its structs.
        let options = unsafe { self::options(options)? };
        // SAFETY: likewise.
        let documents = unsafe { self::documents(documents, n)? };
        fork::follow();
        let id = raw::engine_new(&options, &documents)?;
        // SAFETY: checked above.
        unsafe { out.write(nexthop_engine { id }) };
        Ok(())
    })
}

/// Closes an engine: every handle of it is dead (NEXTHOP_CLOSED). Its memory lives on until calls that are running
/// in other threads have returned. A second call gets NEXTHOP_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_engine_free(engine: nexthop_engine) -> nexthop_status {
    status(|| Ok(raw::engine_free(engine.id)?))
}

/// What an engine is right now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_engine_info(
    engine: nexthop_engine,
    out: *mut nexthop_engine_facts,
) -> nexthop_status {
    status(|| {
        // SAFETY: the caller's promise about its struct.
        let out = unsafe { Out::new(out)? };
        let info = raw::engine_info(engine.id)?;
        let facts = nexthop_engine_facts {
            struct_size: 0,
            reserved: 0,
            epoch: info.epoch,
            live_requests: info.live_requests,
            seed: info.seed,
        };
        // SAFETY: checked above.
        unsafe { out.put(&facts) };
        Ok(())
    })
}

/// Replaces all documents, at least one, whole or not at all. `*epoch` (may be NULL) gets the new epoch. Attempts in
/// flight go on. Requests that queued under a limit that was raised, or for a host that is gone, are ready: ask
/// nexthop_poll_ready, after nexthop_reload and nexthop_apply too.
/// Errors: NEXTHOP_CONFIG, NEXTHOP_IO, NEXTHOP_CLOSED, NEXTHOP_INVALID (also for no documents).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_update(
    engine: nexthop_engine,
    documents: *const nexthop_document,
    n: usize,
    epoch: *mut u64,
) -> nexthop_status {
    status(|| {
        let epoch = optional(epoch, "the epoch")?;
        // SAFETY: the caller's promise about its structs.
        let documents = unsafe { self::documents(documents, n)? };
        let new = raw::update(engine.id, &documents)?;
        // SAFETY: checked above.
        unsafe { store(epoch, new) };
        Ok(())
    })
}

/// Reads those files again that changed. Bad content is no error: the old documents go on serving, and an event
/// tells. `*swapped` (may be NULL) gets 1 when anything was taken over, else 0; `*epoch` (may be NULL) the present epoch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_reload(
    engine: nexthop_engine,
    swapped: *mut u32,
    epoch: *mut u64,
) -> nexthop_status {
    status(|| {
        let (swapped, epoch) = (optional(swapped, "the answer")?, optional(epoch, "the epoch")?);
        let (taken, now) = raw::reload(engine.id)?;
        // SAFETY: checked above.
        unsafe {
            store(swapped, u32::from(taken));
            store(epoch, now);
        }
        Ok(())
    })
}

/// Changes hosts of one cluster, whole or not at all. `*epoch` (may be NULL) gets the new epoch.
/// Errors: NEXTHOP_NOT_FOUND (cluster), NEXTHOP_CONFIG (endpoints), NEXTHOP_INVALID (also for hosts of a composite, for
/// a host to change that is not there, and for endpoints whose cluster_name is of another cluster).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_apply(
    engine: nexthop_engine,
    cluster: nexthop_str,
    changes: *const nexthop_host_op,
    n: usize,
    epoch: *mut u64,
) -> nexthop_status {
    status(|| {
        let epoch = optional(epoch, "the epoch")?;
        // SAFETY: the caller's promise about its text and structs.
        let (cluster, changes) = unsafe { (cluster.text("the cluster name")?, self::changes(changes, n)?) };
        let new = raw::apply(engine.id, cluster, &changes)?;
        // SAFETY: checked above.
        unsafe { store(epoch, new) };
        Ok(())
    })
}

/// The number of a cluster ("name") or route ("route:NAME", "route:VHOST/NAME"). It holds for the engine's life,
/// also across removal and return of the name. Errors: NEXTHOP_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_resolve(
    engine: nexthop_engine,
    name: nexthop_str,
    target: *mut u32,
) -> nexthop_status {
    status(|| {
        let target = place(target, "the target")?;
        // SAFETY: the caller's promise about its text.
        let name = unsafe { name.text("the name")? };
        let number = raw::resolve(engine.id, name)?;
        // SAFETY: checked above.
        unsafe { target.write(number) };
        Ok(())
    })
}

/// Nanoseconds from `now` until maintenance is due, NEXTHOP_NEVER when nothing is or the engine is closed. Only for
/// idle processes: any call at or past that time runs what is due.
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_poll_deadline(engine: nexthop_engine, now: u64) -> u64 {
    or(u64::MAX, || raw::poll_deadline(engine.id, now).unwrap_or(u64::MAX))
}

/// Runs due maintenance: sweeps, un-ejection, overdue attempts. `*bits` (may be NULL) gets NEXTHOP_WAKE, NEXTHOP_EVENTS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_maintain(
    engine: nexthop_engine,
    now: u64,
    bits: *mut u32,
) -> nexthop_status {
    status(|| {
        let bits = optional(bits, "the bits")?;
        let found = raw::maintain(engine.id, now)?;
        // SAFETY: checked above.
        unsafe { store(bits, u32::from(found)) };
        Ok(())
    })
}

/// Moves a manual clock (NEXTHOP_CLOCK_MANUAL) by so many nanoseconds, up to 292 years in all. Errors: NEXTHOP_STATE
/// for other clocks, NEXTHOP_INVALID past that end.
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_advance(engine: nexthop_engine, ns: u64) -> nexthop_status {
    status(|| Ok(raw::advance(engine.id, ns)?))
}

/// The engine's clock in nanoseconds; 0 for a closed engine.
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_now(engine: nexthop_engine) -> u64 {
    or(0, || raw::now(engine.id))
}

/// A pointer that a result is written to.
pub(crate) fn place<T>(ptr: *mut T, what: &str) -> Result<*mut T, Fault> {
    if ptr.is_null() || !ptr.is_aligned() {
        let how = if ptr.is_null() { "NULL" } else { "misaligned" };
        return Err(Fault::invalid(&format!(
            "the pointer to {what} is {how}; pass the address of a variable"
        )));
    }
    Ok(ptr)
}

/// A pointer that may be NULL.
pub(crate) fn optional<T>(ptr: *mut T, what: &str) -> Result<Option<*mut T>, Fault> {
    if ptr.is_null() { Ok(None) } else { place(ptr, what).map(Some) }
}

/// Writes a result that may be unwanted.
///
/// # Safety
/// The pointer must be writable.
pub(crate) unsafe fn store<T>(ptr: Option<*mut T>, value: T) {
    if let Some(ptr) = ptr {
        // SAFETY: the caller's promise.
        unsafe { ptr.write(value) };
    }
}

unsafe fn options(ptr: *const nexthop_options) -> Result<Options, Fault> {
    if ptr.is_null() {
        return Ok(Options::default());
    }
    let mut spare = None;
    // SAFETY: handed on.
    let given = unsafe { sized::read(ptr, &mut spare)? };
    let draws = if given.draws.is_null() {
        if given.n_draws > 0 {
            return Err(Fault::invalid(&format!("draws is NULL with a length of {}", given.n_draws)));
        }
        None
    } else if !given.draws.is_aligned() || given.n_draws > isize::MAX.cast_unsigned() / size_of::<u64>() {
        return Err(Fault::invalid(&format!("draws is misaligned or too long ({})", given.n_draws)));
    } else {
        // SAFETY: the caller's promise; not null, aligned, of a possible length.
        Some(unsafe { std::slice::from_raw_parts(given.draws, given.n_draws) }.to_vec())
    };
    Ok(Options {
        workers: given.workers,
        seed: given.seed,
        lease: given.lease,
        events: given.events,
        clock: given.clock,
        draws,
    })
}

/// The names of dialects, by NEXTHOP_DIALECT_....
const DIALECTS: [&str; 9] = {
    let mut names = [""; 9];
    names[given::NEXTHOP_DIALECT_ENVOY as usize] = "envoy";
    names[given::NEXTHOP_DIALECT_NEXTHOP as usize] = "nexthop";
    names[given::NEXTHOP_DIALECT_ISTIO as usize] = "istio";
    names[given::NEXTHOP_DIALECT_KUBERNETES as usize] = "kubernetes";
    names[given::NEXTHOP_DIALECT_NACOS as usize] = "nacos";
    names[given::NEXTHOP_DIALECT_CONSUL as usize] = "consul";
    names[given::NEXTHOP_DIALECT_EUREKA as usize] = "eureka";
    names[given::NEXTHOP_DIALECT_SPRING as usize] = "spring";
    names
};

unsafe fn documents<'a>(ptr: *const nexthop_document, n: usize) -> Result<Vec<Document<'a>>, Fault> {
    // SAFETY: handed on.
    let read = unsafe { sized::read_all(ptr, n)? };
    read.into_iter()
        .map(|document: nexthop_document| {
            let dialect = DIALECTS.get(usize::from(document.dialect)).copied().ok_or_else(|| {
                let last = DIALECTS.len() - 1;
                Fault::invalid(&format!("the dialect is {}; there are 0 to {last}", document.dialect))
            })?;
            // SAFETY: the caller's promise about its text.
            let (name, text) = unsafe {
                (document.name.text("a document's name")?, document.text.bytes("a document's text")?)
            };
            Ok(Document { kind: document.kind, dialect, name, text: text.unwrap_or_default() })
        })
        .collect()
}

unsafe fn changes<'a>(ptr: *const nexthop_host_op, n: usize) -> Result<Vec<HostChange<'a>>, Fault> {
    // SAFETY: handed on.
    let given = unsafe { sized::read_all(ptr, n)? };
    given
        .into_iter()
        .map(|change| {
            if change.port != 0 {
                return Err(Fault::invalid(
                    "port of a host change is not 0; the port is part of the address",
                ));
            }
            // SAFETY: the caller's promise about its text.
            unsafe {
                Ok(HostChange {
                    op: change.op,
                    fields: change.bits,
                    address: change.address.text("a host's address")?,
                    weight: change.weight,
                    priority: u32::from(change.priority),
                    health: change.health,
                    hostname: change.hostname.text("a host's name")?,
                    region: change.region.text("a host's region")?,
                    zone: change.zone.text("a host's zone")?,
                    sub_zone: change.sub_zone.text("a host's sub-zone")?,
                    metadata: change.metadata.text("a host's metadata")?,
                })
            }
        })
        .collect()
}
