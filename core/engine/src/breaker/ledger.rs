//! What is in use of a cluster's limits, per routing priority (`spec/breakers-and-health.md` A2).
//!
//! Taking checks and takes in one step, so a limit is never passed, not even for an instant.

use crate::spec::{RetryBudget, Thresholds};
use std::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Relaxed};

/// Counts of one routing priority. Apart from other clusters' counts by alignment: they are the only words
/// that every worker writes on every decision.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Ledger {
    pub(crate) connections: AtomicU32,
    pub(crate) pending: AtomicU32,
    pub(crate) requests: AtomicU32,
    pub(crate) retries: AtomicU32,
}

/// Takes one when fewer than `max` are taken.
#[inline]
pub(crate) fn take(count: &AtomicU32, max: u32) -> bool {
    let mut taken = count.load(Relaxed);
    while taken < max {
        match count.compare_exchange_weak(taken, taken + 1, AcqRel, Relaxed) {
            Ok(_) => return true,
            Err(now) => taken = now,
        }
    }
    false
}

/// Takes one whatever the limit.
pub(crate) fn take_anyway(count: &AtomicU32) {
    count.fetch_add(1, AcqRel);
}

/// Gives one back. A count never goes below 0: a second release is a bug elsewhere and must not open the limit.
#[inline]
pub(crate) fn give(count: &AtomicU32) {
    let before = count.fetch_sub(1, AcqRel);
    debug_assert!(before > 0, "a permit was given back twice");
    if before == 0 {
        count.fetch_add(1, AcqRel);
    }
}

/// Gives several back.
pub(crate) fn give_many(count: &AtomicU32, n: u32) {
    for _ in 0..n {
        give(count);
    }
}

impl Ledger {
    /// Nothing is taken any more (after a fork).
    pub(crate) fn reset(&self) {
        for count in [&self.connections, &self.pending, &self.requests, &self.retries] {
            count.store(0, Relaxed);
        }
    }

    /// How many retries may be under way (A4): the budget's share, or `max_retries`.
    #[inline]
    pub(crate) fn max_retries(&self, limits: &Thresholds) -> u32 {
        match limits.retry_budget {
            None => limits.max_retries,
            Some(budget) => {
                self.budget(budget, self.requests.load(Relaxed).saturating_add(self.pending.load(Relaxed)))
            }
        }
    }

    fn budget(&self, budget: RetryBudget, active: u32) -> u32 {
        // Truncated like Envoy's conversion of the double.
        ((budget.budget_percent / 100.0 * f64::from(active)) as u32).max(budget.min_retry_concurrency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_up_to_the_limit() {
        let count = AtomicU32::new(0);
        assert!(!take(&count, 0));
        assert!(take(&count, 2) && take(&count, 2) && !take(&count, 2));
        give(&count);
        assert!(take(&count, 2));
    }

    #[test]
    fn budget_facts() {
        let ledger = Ledger::default();
        let limits = |percent, min| Thresholds {
            retry_budget: Some(RetryBudget { budget_percent: percent, min_retry_concurrency: min }),
            ..Thresholds::default()
        };
        for (requests, pending, expected) in [(0, 0, 5), (100, 0, 20), (50, 0, 10), (50, 50, 20), (0, 0, 5)] {
            ledger.requests.store(requests, Relaxed);
            ledger.pending.store(pending, Relaxed);
            assert_eq!(ledger.max_retries(&limits(20.0, 5)), expected);
        }
        ledger.requests.store(9, Relaxed);
        assert_eq!(ledger.max_retries(&limits(60.0, 0)), 5);
        assert_eq!(ledger.max_retries(&Thresholds::default()), 3);
    }
}
