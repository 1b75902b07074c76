//! Counters and gauges under Envoy's names.
//!
//! Each worker counts in a block of its own with plain stores; readers add the blocks. So counting costs no
//! locked instruction and nothing is shared on the hot path.

use crate::opt_in::{OptCounter, OptCounters};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($all:ident, $doc:literal: $($variant:ident = $name:literal,)*) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the names say it, see `name`")]
        #[repr(usize)]
        pub enum $all { $($variant,)* }

        impl $all {
            /// Every counter in the order of its number.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name below `cluster.<name>.`
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

pub(crate) use counters;

counters! {
    Counter, "A counter of a cluster, under Envoy's name.":
    RqTotal = "upstream_rq_total",
    RqCompleted = "upstream_rq_completed",
    Rq1xx = "upstream_rq_1xx",
    Rq2xx = "upstream_rq_2xx",
    Rq3xx = "upstream_rq_3xx",
    Rq4xx = "upstream_rq_4xx",
    Rq5xx = "upstream_rq_5xx",
    RqPendingTotal = "upstream_rq_pending_total",
    RqPendingOverflow = "upstream_rq_pending_overflow",
    RqActiveOverflow = "upstream_rq_active_overflow",
    RqPendingFailureEject = "upstream_rq_pending_failure_eject",
    RqCancelled = "upstream_rq_cancelled",
    RqTimeout = "upstream_rq_timeout",
    RqPerTryTimeout = "upstream_rq_per_try_timeout",
    RqPerTryIdleTimeout = "upstream_rq_per_try_idle_timeout",
    RqMaxDurationReached = "upstream_rq_max_duration_reached",
    RqRxReset = "upstream_rq_rx_reset",
    RqTxReset = "upstream_rq_tx_reset",
    RqRetry = "upstream_rq_retry",
    RqRetryBackoffExponential = "upstream_rq_retry_backoff_exponential",
    RqRetryBackoffRatelimited = "upstream_rq_retry_backoff_ratelimited",
    RqRetryLimitExceeded = "upstream_rq_retry_limit_exceeded",
    RqRetryOverflow = "upstream_rq_retry_overflow",
    RqRetrySuccess = "upstream_rq_retry_success",
    RetryOrShadowAbandoned = "retry_or_shadow_abandoned",
    RetryRqCompleted = "retry.upstream_rq_completed",
    RetryRq2xx = "retry.upstream_rq_2xx",
    RetryRq3xx = "retry.upstream_rq_3xx",
    RetryRq4xx = "retry.upstream_rq_4xx",
    RetryRq5xx = "retry.upstream_rq_5xx",
    CxTotal = "upstream_cx_total",
    CxOverflow = "upstream_cx_overflow",
    CxPoolOverflow = "upstream_cx_pool_overflow",
    CxConnectFail = "upstream_cx_connect_fail",
    CxConnectTimeout = "upstream_cx_connect_timeout",
    CxNoneHealthy = "upstream_cx_none_healthy",
    LbHealthyPanic = "lb_healthy_panic",
    LbZoneRoutingAllDirectly = "lb_zone_routing_all_directly",
    LbZoneRoutingSampled = "lb_zone_routing_sampled",
    LbZoneRoutingCrossZone = "lb_zone_routing_cross_zone",
    LbLocalClusterNotOk = "lb_local_cluster_not_ok",
    LbRecalculateZoneStructures = "lb_recalculate_zone_structures",
    LbZoneClusterTooSmall = "lb_zone_cluster_too_small",
    LbZoneNoCapacityLeft = "lb_zone_no_capacity_left",
    LbSubsetsSelected = "lb_subsets_selected",
    LbSubsetsFallback = "lb_subsets_fallback",
    LbSubsetsFallbackPanic = "lb_subsets_fallback_panic",
    LbSubsetsCreated = "lb_subsets_created",
    LbSubsetsRemoved = "lb_subsets_removed",
    MembershipChange = "membership_change",
    OutlierEjectionsTotal = "outlier_detection.ejections_total",
    OutlierEjectionsEnforcedTotal = "outlier_detection.ejections_enforced_total",
    OutlierEjectionsOverflow = "outlier_detection.ejections_overflow",
    OutlierEjectionsConsecutive5xx = "outlier_detection.ejections_consecutive_5xx",
    OutlierEjectionsSuccessRate = "outlier_detection.ejections_success_rate",
    OutlierEjectionsDetectedConsecutive5xx = "outlier_detection.ejections_detected_consecutive_5xx",
    OutlierEjectionsEnforcedConsecutive5xx = "outlier_detection.ejections_enforced_consecutive_5xx",
    OutlierEjectionsDetectedConsecutiveGatewayFailure = "outlier_detection.ejections_detected_consecutive_gateway_failure",
    OutlierEjectionsEnforcedConsecutiveGatewayFailure = "outlier_detection.ejections_enforced_consecutive_gateway_failure",
    OutlierEjectionsDetectedConsecutiveLocalOriginFailure = "outlier_detection.ejections_detected_consecutive_local_origin_failure",
    OutlierEjectionsEnforcedConsecutiveLocalOriginFailure = "outlier_detection.ejections_enforced_consecutive_local_origin_failure",
    OutlierEjectionsDetectedSuccessRate = "outlier_detection.ejections_detected_success_rate",
    OutlierEjectionsEnforcedSuccessRate = "outlier_detection.ejections_enforced_success_rate",
    OutlierEjectionsDetectedLocalOriginSuccessRate = "outlier_detection.ejections_detected_local_origin_success_rate",
    OutlierEjectionsEnforcedLocalOriginSuccessRate = "outlier_detection.ejections_enforced_local_origin_success_rate",
    OutlierEjectionsDetectedFailurePercentage = "outlier_detection.ejections_detected_failure_percentage",
    OutlierEjectionsEnforcedFailurePercentage = "outlier_detection.ejections_enforced_failure_percentage",
    OutlierEjectionsDetectedLocalOriginFailurePercentage = "outlier_detection.ejections_detected_local_origin_failure_percentage",
    OutlierEjectionsEnforcedLocalOriginFailurePercentage = "outlier_detection.ejections_enforced_local_origin_failure_percentage",
    OutlierEjectionsDetectedDegradation = "outlier_detection.ejections_detected_degradation",
    AttemptsLost = "nexthop.attempts_lost",
}

/// Number of counters.
pub const COUNTERS: usize = Counter::ALL.len();

/// One worker's counters of one cluster. One writer, any readers.
pub struct ClusterCounters {
    values: [AtomicU64; COUNTERS],
    /// Statuses 100..=599 of final answers, and of retried ones, made when first used.
    codes: std::sync::OnceLock<Box<CodeCounters>>,
    /// Mechanisms beyond Envoy, made when first used.
    opted: std::sync::OnceLock<Box<OptCounters>>,
}

/// Counts by exact status.
struct CodeCounters {
    finals: [AtomicU64; 500],
    retried: [AtomicU64; 500],
}

impl Default for ClusterCounters {
    fn default() -> Self {
        Self {
            values: [const { AtomicU64::new(0) }; COUNTERS],
            codes: std::sync::OnceLock::new(),
            opted: std::sync::OnceLock::new(),
        }
    }
}

impl ClusterCounters {
    /// Counts one.
    #[inline]
    pub fn count(&self, which: Counter) {
        bump(&self.values[which as usize]);
    }

    /// Takes one count back, perhaps one that another worker's block holds: only the sum means something.
    #[inline]
    pub fn uncount(&self, which: Counter) {
        let cell = &self.values[which as usize];
        cell.store(cell.load(Relaxed).wrapping_sub(1), Relaxed);
    }

    /// Counts one of a mechanism beyond Envoy.
    #[cold]
    pub fn count_opt(&self, which: OptCounter) {
        self.opted.get_or_init(Box::default).count(which);
    }

    /// What such mechanisms counted.
    pub fn opted(&self, visit: &mut dyn FnMut(OptCounter, u64)) {
        if let Some(opted) = self.opted.get() {
            opted.visit(visit);
        }
    }

    /// Counts a final (or a retried) answer with this status. Classes and sums are added up when they are read.
    #[inline]
    pub fn count_status(&self, status: u16, retried: bool) {
        let codes = match self.codes.get() {
            Some(codes) => codes,
            None => self.first_code(),
        };
        let table = if retried { &codes.retried } else { &codes.finals };
        match table.get(usize::from(status).wrapping_sub(100)) {
            Some(cell) => bump(cell),
            None => self.count(if retried { Counter::RetryRqCompleted } else { Counter::RqCompleted }),
        }
    }

    #[cold]
    fn first_code(&self) -> &CodeCounters {
        self.codes.get_or_init(|| {
            Box::new(CodeCounters {
                finals: [const { AtomicU64::new(0) }; 500],
                retried: [const { AtomicU64::new(0) }; 500],
            })
        })
    }

    /// Present value.
    pub fn get(&self, which: Counter) -> u64 {
        use Counter as C;
        let statuses = match which {
            C::RqCompleted => self.answers(false, 0..500),
            C::Rq1xx => self.answers(false, 0..100),
            C::Rq2xx => self.answers(false, 100..200),
            C::Rq3xx => self.answers(false, 200..300),
            C::Rq4xx => self.answers(false, 300..400),
            C::Rq5xx => self.answers(false, 400..500),
            C::RetryRqCompleted => self.answers(true, 0..500),
            C::RetryRq2xx => self.answers(true, 100..200),
            C::RetryRq3xx => self.answers(true, 200..300),
            C::RetryRq4xx => self.answers(true, 300..400),
            C::RetryRq5xx => self.answers(true, 400..500),
            _ => 0,
        };
        self.values[which as usize].load(Relaxed).wrapping_add(statuses)
    }

    /// Answers whose status minus 100 lies in `range`.
    fn answers(&self, retried: bool, range: std::ops::Range<usize>) -> u64 {
        let Some(codes) = self.codes.get() else { return 0 };
        let table = if retried { &codes.retried } else { &codes.finals };
        table[range].iter().map(|cell| cell.load(Relaxed)).sum()
    }

    /// Every status seen: status, retried, count.
    pub fn statuses(&self, visit: &mut dyn FnMut(u16, bool, u64)) {
        let Some(codes) = self.codes.get() else { return };
        for (table, retried) in [(&codes.finals, false), (&codes.retried, true)] {
            for (i, value) in table.iter().enumerate() {
                let value = value.load(Relaxed);
                if value != 0 {
                    visit(i as u16 + 100, retried, value);
                }
            }
        }
    }

    /// Adds another block to this one.
    pub(crate) fn absorb(&self, other: &Self) {
        for (mine, theirs) in self.values.iter().zip(&other.values) {
            mine.store(mine.load(Relaxed).wrapping_add(theirs.load(Relaxed)), Relaxed);
        }
        if let Some(theirs) = other.opted.get() {
            self.opted.get_or_init(Box::default).absorb(theirs);
        }
        other.statuses(&mut |status, retried, count| {
            let codes = self.first_code();
            let table = if retried { &codes.retried } else { &codes.finals };
            let cell = &table[usize::from(status) - 100];
            cell.store(cell.load(Relaxed) + count, Relaxed);
        });
    }
}

/// Adds one without a locked instruction: the block has one writer.
#[inline]
pub(crate) fn bump(cell: &AtomicU64) {
    cell.store(cell.load(Relaxed).wrapping_add(1), Relaxed);
}
