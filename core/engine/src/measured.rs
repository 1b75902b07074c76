//! What answers say of a host beyond good or bad: latencies, load reports. Only hosts of clusters whose policy asks
//! for it have this.

use crate::clock::Time;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Of one host; any thread may write. Values that belong together may be a report apart.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Nanoseconds, as the bits of a number.
    ewma: AtomicU64,
    /// 1 + when that was; 0 = never.
    ewma_at: AtomicU64,
}

impl Measured {
    /// Nothing was measured yet.
    pub(crate) fn reset(&self) {
        self.ewma_at.store(0, Relaxed);
    }

    /// The average latency in nanoseconds, faded by the time since it was measured. `None` = none was.
    pub(crate) fn latency(&self, now: Time, decay: u64) -> Option<f64> {
        let at = self.ewma_at.load(Relaxed).checked_sub(1)?;
        Some(f64::from_bits(self.ewma.load(Relaxed)) * faded(now.0.saturating_sub(at), decay))
    }

    /// A latency in nanoseconds: a higher one than the average replaces it, a lower one pulls it down by what has faded.
    pub(crate) fn book(&self, latency: u64, now: Time, decay: u64) {
        let latency = latency as f64;
        let before = self.ewma_at.load(Relaxed).checked_sub(1);
        let average = before.map_or(latency, |at| {
            let average = f64::from_bits(self.ewma.load(Relaxed));
            let share = faded(now.0.saturating_sub(at), decay);
            if latency > average { latency } else { average * share + latency * (1.0 - share) }
        });
        self.ewma.store(average.to_bits(), Relaxed);
        self.ewma_at.store(now.0.saturating_add(1), Relaxed);
    }
}

/// The part of a value that is left after a time; `decay` is the time after which it is 1/e.
fn faded(elapsed: u64, decay: u64) -> f64 {
    if elapsed == 0 { 1.0 } else { (-(elapsed as f64) / decay.max(1) as f64).exp() }
}
