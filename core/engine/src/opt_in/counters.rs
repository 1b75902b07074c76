//! What the mechanisms count, under `cluster.<name>.nexthop.`; shown once it was counted.

use crate::spec::ClassName;
use crate::stats::{bump, counters};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

counters! {
    OptCounter, "A counter of a mechanism beyond Envoy.":
    DeadlineGaveUp = "nexthop.deadline_first.gave_up",
    DeadlineDryRun = "nexthop.deadline_first.dry_run",
    RetryAfterWaited = "nexthop.retry_after.waited",
    RetryAfterGaveUp = "nexthop.retry_after.gave_up",
    RetryAfterDryRun = "nexthop.retry_after.dry_run",
    IdempotencyGaveUp = "nexthop.idempotency.gave_up",
    IdempotencyDryRun = "nexthop.idempotency.dry_run",
    LayersGaveUp = "nexthop.layers.gave_up",
    LayersDryRun = "nexthop.layers.dry_run",
    ClassRateLimited = "nexthop.classes.rate_limited",
    ClassQuota = "nexthop.classes.quota",
    ClassOverloaded = "nexthop.classes.overloaded",
    ClassAuth = "nexthop.classes.auth",
    ClassTooLong = "nexthop.classes.too_long",
    ClassFiltered = "nexthop.classes.filtered",
    ClassOther = "nexthop.classes.other",
    ClassesDryRun = "nexthop.classes.dry_run",
    CoolDownSetAside = "nexthop.cool_down.set_aside",
    CoolDownPassedOver = "nexthop.cool_down.passed_over",
    CoolDownRefused = "nexthop.cool_down.refused",
    CoolDownDryRun = "nexthop.cool_down.dry_run",
    HalfOpenProbes = "nexthop.half_open.probes",
    HalfOpenFailed = "nexthop.half_open.failed",
    HalfOpenClosed = "nexthop.half_open.closed",
    HalfOpenPassedOver = "nexthop.half_open.passed_over",
    HalfOpenDryRun = "nexthop.half_open.dry_run",
    BelowLimitPassedOver = "nexthop.prefer_below_limit.passed_over",
    BelowLimitDryRun = "nexthop.prefer_below_limit.dry_run",
    AdmissionDryRun = "nexthop.admission.dry_run",
    ConcurrencyDryRun = "nexthop.concurrency.dry_run",
    OutcomeCut = "nexthop.outcome_at.cut",
}

impl OptCounter {
    /// The counter of a failure class.
    pub(crate) const fn of_class(class: ClassName) -> Self {
        match class {
            ClassName::RateLimited => Self::ClassRateLimited,
            ClassName::Quota => Self::ClassQuota,
            ClassName::Overloaded => Self::ClassOverloaded,
            ClassName::Auth => Self::ClassAuth,
            ClassName::TooLong => Self::ClassTooLong,
            ClassName::Filtered => Self::ClassFiltered,
            ClassName::Other => Self::ClassOther,
        }
    }
}

/// One worker's counts. One writer, any readers.
pub(crate) struct OptCounters([AtomicU64; OptCounter::ALL.len()]);

impl Default for OptCounters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; OptCounter::ALL.len()])
    }
}

impl OptCounters {
    pub(crate) fn count(&self, which: OptCounter) {
        bump(&self.0[which as usize]);
    }

    /// What was counted at all.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(OptCounter, u64)) {
        for (which, cell) in OptCounter::ALL.iter().zip(&self.0) {
            let value = cell.load(Relaxed);
            if value != 0 {
                visit(*which, value);
            }
        }
    }

    pub(crate) fn absorb(&self, other: &Self) {
        for (mine, theirs) in self.0.iter().zip(&other.0) {
            mine.store(mine.load(Relaxed).wrapping_add(theirs.load(Relaxed)), Relaxed);
        }
    }
}
