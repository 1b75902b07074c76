//! Time comes in from outside.

use std::time::Duration;

/// Nanoseconds of a monotonic clock whose origin the caller chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Later than any real instant.
    pub const NEVER: Self = Self(u64::MAX);

    /// This instant plus `span`; [`Time::NEVER`] when that does not fit.
    #[inline]
    pub const fn plus(self, span: u64) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// Nanoseconds from `earlier` to this instant, 0 when it is not earlier.
    #[inline]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// What a front-end implements to let the engine's callers omit `now`.
pub trait Clock: Send + Sync {
    /// Now, cheap; may lag by a scheduler tick.
    fn now(&self) -> Time;
    /// Now, as exactly as the machine can tell.
    fn precise(&self) -> Time {
        self.now()
    }
    /// Wall clock, seconds since 1970; only for event stamps and dates in headers.
    fn unix_seconds(&self) -> u64;
}

/// Nanoseconds of a span; saturates after 584 years.
#[inline]
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds in a millisecond.
pub(crate) const MILLI: u64 = 1_000_000;
