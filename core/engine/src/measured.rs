//! What answers say of a host beyond good or bad: latencies, load reports. Only hosts of clusters whose policy asks
//! for it have this.

use crate::clock::Time;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Of one host; any thread may write. Values that belong together may be a report apart.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Nanoseconds, as the bits of a number.
    ewma: AtomicU64,
    /// 1 + when that was; 0 = never.
    ewma_at: AtomicU64,
    /// The weight of the last load report, 1 + when it came and 1 + since when there is one; 0 = never.
    weight: AtomicU32,
    weight_at: AtomicU64,
    weight_since: AtomicU64,
    /// Utilization of the last load report, as bits, and 1 + when it came; 0 = never.
    utilization: AtomicU64,
    utilization_at: AtomicU64,
}

impl Measured {
    /// Nothing was measured yet.
    pub(crate) fn reset(&self) {
        for cell in [&self.ewma_at, &self.weight_at, &self.weight_since, &self.utilization_at] {
            cell.store(0, Relaxed);
        }
    }

    /// A load report gave this weight.
    pub(crate) fn weigh(&self, weight: u32, now: Time) {
        self.weight.store(weight, Relaxed);
        self.weight_at.store(now.0.saturating_add(1), Relaxed);
        if self.weight_since.load(Relaxed) == 0 {
            self.weight_since.store(now.0.saturating_add(1), Relaxed);
        }
    }

    /// The weight that load reports give, once there were some for `blackout` and unless the last one is older than
    /// `expiration` nanoseconds: then it begins anew.
    pub(crate) fn weight(&self, now: Time, blackout: u64, expiration: u64) -> Option<u32> {
        let since = self.weight_since.load(Relaxed).checked_sub(1)?;
        let last = self.weight_at.load(Relaxed).checked_sub(1)?;
        if last.saturating_add(expiration) < now.0 {
            self.weight_since.store(0, Relaxed);
            return None;
        }
        (since.saturating_add(blackout) <= now.0).then(|| self.weight.load(Relaxed))
    }

    /// A load report gave this utilization, 0 to 1.
    pub(crate) fn utilize(&self, utilization: f64, now: Time) {
        self.utilization.store(utilization.to_bits(), Relaxed);
        self.utilization_at.store(now.0.saturating_add(1), Relaxed);
    }

    /// The utilization of the last load report unless that is older than `expiration` nanoseconds; 0 = it never is.
    pub(crate) fn utilization(&self, now: Time, expiration: u64) -> Option<f64> {
        let last = self.utilization_at.load(Relaxed).checked_sub(1)?;
        let fresh = expiration == 0 || now.0.saturating_sub(last) <= expiration;
        fresh.then(|| f64::from_bits(self.utilization.load(Relaxed)))
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
