//! Active checks: which are due, what came of them. Whoever asks first begins them.

use super::error::Error;
use super::local::Local;
use super::registry::{self, Engine, index_of};
use super::{cold, with_engine};
use nexthop_engine::engine::Core;
use nexthop_engine::health::{Check, CheckReport, CheckResult};
use nexthop_engine::outcome::{Misuse, NEVER, Outcome};
use nexthop_engine::spec::Probe;
use nexthop_engine::worker::Worker;
use nexthop_engine::{Time, health};

/// What a check speaks.
pub mod check_protocol {
    #![expect(missing_docs, reason = "the name says it")]
    pub const HTTP: u8 = 1;
    pub const TCP: u8 = 2;
    pub const GRPC: u8 = 3;
    pub const CUSTOM: u8 = 4;
    /// By number.
    pub const NAMES: [&str; 5] = ["", "http", "tcp", "grpc", "custom"];
}

/// Bits of a check.
pub mod check_bits {
    /// It is asked over HTTP/2.
    pub const HTTP2: u8 = 1;
    /// One connection may carry many checks.
    pub const REUSE: u8 = 2;
    /// TLS towards the host.
    pub const SECURE: u8 = 4;
}

/// How a check ended.
pub mod check_results {
    /// The engine judges the answer.
    pub const JUDGE: u32 = 0;
    /// It passed.
    pub const SUCCESS: u32 = 1;
    /// It passed, and the host says that it is degraded.
    pub const DEGRADED: u32 = 2;
    /// The host answered badly, which fails it at once.
    pub const FAILED: u32 = 3;
    /// No connection, reset, disconnect; counts towards the threshold.
    pub const NETWORK: u32 = 4;
    /// No answer in time; counts towards the threshold.
    pub const TIMEOUT: u32 = 5;
    /// The host answered badly in a way that counts towards the threshold.
    pub const RETRIABLE: u32 = 6;
    /// Data traffic says that the host has failed; the check itself is still out.
    pub const PASSIVE: u32 = 7;
    /// By number.
    pub const NAMES: [&str; 8] =
        ["judge", "success", "degraded", "failed", "network", "timeout", "retriable", "passive"];
}

/// Number of what a check speaks, see [`check_protocol`].
pub fn protocol_of(check: &Check) -> u8 {
    match check.spec.probe {
        Probe::Http(_) => check_protocol::HTTP,
        Probe::Tcp { .. } => check_protocol::TCP,
        Probe::Grpc { .. } => check_protocol::GRPC,
        Probe::Custom { .. } => check_protocol::CUSTOM,
    }
}

/// Bits of a check, see [`check_bits`].
pub fn bits_of(check: &Check) -> u8 {
    let bit = |is, bit| if is { bit } else { 0 };
    bit(check.is_http2(), check_bits::HTTP2)
        | bit(check.spec.reuse_connection, check_bits::REUSE)
        | bit(check.secure, check_bits::SECURE)
}

/// Extension name of a custom check; empty for others.
pub fn extension_of(check: &Check) -> &str {
    match &check.spec.probe {
        Probe::Custom { name } => name,
        _ => "",
    }
}

fn at_work<R>(
    local: &mut Local,
    engine: u64,
    now: u64,
    f: impl FnOnce(&Engine, &Core, &mut Worker, Time) -> Result<R, Error>,
) -> Result<R, Error> {
    cold(|| {
        let found = registry::find(engine)?;
        let at = found.at(now);
        let seat = local.seat(index_of(engine)).map_err(Error::from)?;
        seat.run(|core, worker| f(&found, core, worker, at))
    })
}

/// The next check that is due, each handed out once. The first call begins active checking: before it, hosts count as
/// if no cluster had checks.
pub fn poll_check(local: &mut Local, engine: u64, now: u64) -> Result<Option<Check>, Error> {
    at_work(local, engine, now, |_, core, worker, at| Ok(core.poll_check(worker, at)))
}

/// A check that could not be handed over is due again, as if nobody had asked.
pub fn put_back_check(engine: u64, check: &Check, now: u64) {
    // An engine that is gone has no checks.
    let _ = with_engine(engine, |engine| {
        engine.core.put_back(check, engine.at(now));
        Ok(())
    });
}

/// When to look for checks again, nanoseconds from `now`; [`NEVER`] when nothing is checked, or before the first
/// [`poll_check`]. An update of documents or hosts may bring checks that are due at once.
pub fn checks_deadline(engine: u64, now: u64) -> Result<u64, Error> {
    with_engine(engine, |engine| {
        let due = engine.core.checks_deadline();
        let now = engine.at(now);
        Ok(if due == Time::NEVER { NEVER } else { due.since(now) })
    })
}

/// What came of a check: one of [`check_results`], or with `JUDGE` an answer that the engine judges: status, headers
/// (over the set that the check names) and gRPC status in `outcome` with the body, a failure, or everything that a TCP
/// connection has brought so far. `false`: the check is still out, because the bytes do not decide it yet, or because of
/// `PASSIVE`.
///
/// # Errors
/// [`Misuse::Ended`] for a check that is over: reported before, out of time, or its host is gone. Nothing has changed.
pub fn check_result(
    local: &mut Local,
    engine: u64,
    check: u64,
    result: u32,
    outcome: &Outcome<'_>,
    body: &[u8],
    now: u64,
) -> Result<bool, Error> {
    at_work(local, engine, now, |engine, core, worker, at| {
        let report = match result {
            check_results::JUDGE => CheckReport::Answer(outcome, body),
            check_results::SUCCESS => CheckReport::Result(CheckResult::Success { degraded: false }),
            check_results::DEGRADED => CheckReport::Result(CheckResult::Success { degraded: true }),
            check_results::FAILED => CheckReport::Result(CheckResult::Failed { retriable: false }),
            check_results::NETWORK => CheckReport::Result(CheckResult::Network),
            check_results::TIMEOUT => CheckReport::Result(CheckResult::Timeout),
            check_results::RETRIABLE => CheckReport::Result(CheckResult::Failed { retriable: true }),
            check_results::PASSIVE => CheckReport::Result(CheckResult::Passive),
            other => {
                let last = check_results::NAMES.len() - 1;
                let sentence = format!("the result is {other}; there are 0 to {last}");
                return Err(Error::misuse(Misuse::Invalid, sentence));
            }
        };
        let done = core.check_result(worker, check, report, at);
        // A host that left with its check may have kept requests waiting.
        engine.waiters.wake();
        done.map_err(|misuse| Error::misuse(misuse, sentence(core, check, outcome, misuse)))
    })
}

#[cold]
fn sentence(core: &Core, check: u64, outcome: &Outcome<'_>, misuse: Misuse) -> String {
    match misuse {
        Misuse::Ended => format!(
            "check {check} is over: it was reported, its time has run out, or its host has left; nothing has changed"
        ),
        Misuse::Invalid if !core.knows_check(check) => {
            format!("no check {check} was handed out; take its number from the check that was")
        }
        Misuse::Invalid if !outcome.headers.is_empty() => {
            let names = health::WANTED.join(", ");
            format!("the headers of the answer are no block over the set that the check names ({names})")
        }
        Misuse::Invalid => format!(
            "the answer cannot be judged: its status is {}, where an HTTP answer has 100 to 999, or the check is of a \
             protocol that only its caller knows; report success or a failure instead",
            outcome.status
        ),
        _ => super::sentence(misuse).into(),
    }
}

/// Tells in an event that a ready-made loop could not perform a check.
#[cfg(feature = "checks")]
pub(crate) fn check_not_performed(engine: u64, cluster: &str, name: &str, why: &str) {
    let line = serde_json::json!({
        "type": "nexthop.check_not_performed", "cluster_name": cluster, "checker": name, "message": why,
    });
    // An engine that is gone has nobody to tell.
    let _ = with_engine(engine, |engine| {
        engine.core.push_event(line.to_string());
        Ok(())
    });
}
