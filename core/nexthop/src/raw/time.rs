//! The clocks an engine can run on.

use super::error::Error;
use super::types::clock;
use nexthop_engine::Misuse;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a manual clock begins: 0 means "the engine's clock" in calls.
pub(super) const MANUAL_START: u64 = 1_000_000_000;

/// Where it ends: what lies far behind stands for "never".
const MANUAL_END: u64 = i64::MAX.cast_unsigned();

/// One engine's clock.
pub(super) enum Clock {
    /// A clock of the system; its number.
    System(AtomicI32),
    Manual(AtomicU64),
}

impl Clock {
    pub(super) fn new(kind: u8) -> Option<Self> {
        match kind {
            clock::COARSE => Some(Self::System(AtomicI32::new(COARSE))),
            clock::PRECISE => Some(Self::System(AtomicI32::new(libc::CLOCK_MONOTONIC))),
            clock::MANUAL => Some(Self::Manual(AtomicU64::new(MANUAL_START))),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn now(&self) -> u64 {
        match self {
            Self::System(id) => read(id.load(Relaxed)),
            Self::Manual(at) => at.load(Relaxed),
        }
    }

    /// Latency decides from now on: a coarse clock, which lags by some milliseconds, becomes precise for good.
    pub(super) fn sharpen(&self) {
        if let Self::System(id) = self {
            id.store(libc::CLOCK_MONOTONIC, Relaxed);
        }
    }

    /// Whether it can be moved so far; the sentence says why not.
    pub(super) fn check_advance(&self, ns: u64) -> Result<(), Error> {
        self.moved(ns, |at| at.load(Relaxed).checked_add(ns).is_some_and(|at| at <= MANUAL_END))
    }

    /// Moves a manual clock; the sentence says why not.
    pub(super) fn advance(&self, ns: u64) -> Result<(), Error> {
        self.moved(ns, |at| {
            at.fetch_update(Relaxed, Relaxed, |at| at.checked_add(ns).filter(|at| *at <= MANUAL_END)).is_ok()
        })
    }

    fn moved(&self, ns: u64, by: impl FnOnce(&AtomicU64) -> bool) -> Result<(), Error> {
        let Self::Manual(at) = self else {
            let sentence = "only a manual clock can be moved; ask for one when the engine is made";
            return Err(Error::misuse(Misuse::State, sentence));
        };
        if by(at) {
            return Ok(());
        }
        let sentence = format!("{ns} ns would take the clock past its end, 292 years after its start");
        Err(Error::misuse(Misuse::Invalid, sentence))
    }

    /// Nanoseconds since 1970 at this clock's 0; a manual clock counts from 1970 itself.
    pub(super) fn unix_base(&self) -> u64 {
        match self {
            Self::System(_) => {
                let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX).saturating_sub(self.now())
            }
            Self::Manual(_) => 0,
        }
    }

    pub(super) fn is_manual(&self) -> bool {
        matches!(self, Self::Manual(_))
    }
}

#[cfg(target_os = "linux")]
const COARSE: libc::clockid_t = libc::CLOCK_MONOTONIC_COARSE;
#[cfg(not(target_os = "linux"))]
const COARSE: libc::clockid_t = libc::CLOCK_MONOTONIC;

#[inline]
fn read(id: libc::clockid_t) -> u64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local; the clock ids used here exist on every supported system.
    unsafe { libc::clock_gettime(id, &raw mut at) };
    (at.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(at.tv_nsec as u64)
}

/// Name of this machine; empty when it has none or does not tell.
pub(super) fn hostname() -> String {
    let told = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match told.trim() {
        "" | "(none)" => std::env::var("HOSTNAME").unwrap_or_default(),
        name => name.to_owned(),
    }
}
