//! How long a retry waits.

use crate::random::{Random, Source};
use crate::spec::BackOffSpec;

/// Exponential back-off with full jitter; one per request, kept over its retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackOff {
    next_ms: u32,
    max_ms: u32,
}

impl BackOff {
    /// For requests that are never retried.
    pub(crate) const NONE: Self = Self { next_ms: 1, max_ms: 1 };

    /// Nobody has said anything: see [`settle`](Self::settle).
    pub(crate) const OPEN: Self = Self { next_ms: 0, max_ms: 0 };

    /// Makes an open one definite: `base_ms` (`None` = 25) and ten times as much.
    #[inline]
    pub(crate) fn settle(&mut self, base_ms: Option<u64>) {
        if *self == Self::OPEN {
            let spec = base_ms.map(|base_ms| BackOffSpec { base_ms, max_ms: base_ms.saturating_mul(10) });
            *self = Self::new(&spec.unwrap_or_default());
        }
    }

    /// Before the first retry. Intervals over 49 days act as 49 days.
    pub fn new(spec: &BackOffSpec) -> Self {
        let bound = |ms: u64| u32::try_from(ms).unwrap_or(u32::MAX).max(1);
        Self { next_ms: bound(spec.base_ms), max_ms: bound(spec.max_ms) }
    }

    /// Milliseconds to wait, 0 included; below a bound that doubles up to the maximum. Draws one word.
    #[inline]
    pub fn next(&mut self, random: &mut Source) -> u64 {
        let bound = self.next_ms;
        self.skip();
        random.next_u64() % u64::from(bound)
    }

    /// Passes over one delay that somebody else waited.
    #[inline]
    pub fn skip(&mut self) {
        self.next_ms = if self.next_ms < self.max_ms / 2 { self.next_ms * 2 } else { self.max_ms };
    }

    /// The exclusive bound of the next delay.
    pub fn bound_ms(&self) -> u64 {
        u64::from(self.next_ms)
    }
}

/// The delay for an interval that the answer named: at least that long, less than half more, so that clients do
/// not return together. `None` below 2 ms, where the exponential back-off applies. Draws one word, or none.
pub fn rate_limited_ms(interval_ms: u64, random: &mut Source) -> Option<u64> {
    let spread = interval_ms >> 1;
    (spread > 0).then(|| (random.next_u64() % spread).saturating_add(interval_ms))
}
