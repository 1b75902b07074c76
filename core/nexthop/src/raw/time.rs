//! The clocks an engine can run on.

use super::types::clock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a manual clock begins: 0 means "the engine's clock" in calls.
pub(super) const MANUAL_START: u64 = 1_000_000_000;

/// One engine's clock.
pub(super) enum Clock {
    System(libc::clockid_t),
    Manual(AtomicU64),
}

impl Clock {
    pub(super) fn new(kind: u8) -> Option<Self> {
        match kind {
            clock::COARSE => Some(Self::System(COARSE)),
            clock::PRECISE => Some(Self::System(libc::CLOCK_MONOTONIC)),
            clock::MANUAL => Some(Self::Manual(AtomicU64::new(MANUAL_START))),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn now(&self) -> u64 {
        match self {
            Self::System(id) => read(*id),
            Self::Manual(at) => at.load(Relaxed),
        }
    }

    /// `false` for a clock that moves by itself.
    pub(super) fn advance(&self, ns: u64) -> bool {
        match self {
            Self::System(_) => false,
            Self::Manual(at) => {
                let _ = at.fetch_update(Relaxed, Relaxed, |at| Some(at.saturating_add(ns)));
                true
            }
        }
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
