//! The detectors by name, with their percentages and counters (`spec/outlier-detection.md` sections 2 and 14).

use crate::spec::OutlierSpec;
use crate::stats::Counter;

/// Which detector fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Consecutive5xx,
    ConsecutiveGatewayFailure,
    SuccessRate,
    ConsecutiveLocalOriginFailure,
    LocalOriginSuccessRate,
    FailurePercentage,
    LocalOriginFailurePercentage,
    Degraded,
}

impl Kind {
    /// Its word in the event log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Consecutive5xx => "CONSECUTIVE_5XX",
            Self::ConsecutiveGatewayFailure => "CONSECUTIVE_GATEWAY_FAILURE",
            Self::SuccessRate => "SUCCESS_RATE",
            Self::ConsecutiveLocalOriginFailure => "CONSECUTIVE_LOCAL_ORIGIN_FAILURE",
            Self::LocalOriginSuccessRate => "SUCCESS_RATE_LOCAL_ORIGIN",
            Self::FailurePercentage => "FAILURE_PERCENTAGE",
            Self::LocalOriginFailurePercentage => "FAILURE_PERCENTAGE_LOCAL_ORIGIN",
            Self::Degraded => "DEGRADED",
        }
    }

    /// Percent of its ejections that are enforced, before the clamp at 100.
    pub(super) const fn enforcing(self, spec: &OutlierSpec) -> u32 {
        match self {
            Self::Consecutive5xx => spec.enforcing_consecutive_5xx,
            Self::ConsecutiveGatewayFailure => spec.enforcing_consecutive_gateway_failure,
            Self::SuccessRate => spec.enforcing_success_rate,
            Self::ConsecutiveLocalOriginFailure => spec.enforcing_consecutive_local_origin_failure,
            Self::LocalOriginSuccessRate => spec.enforcing_local_origin_success_rate,
            Self::FailurePercentage => spec.enforcing_failure_percentage,
            Self::LocalOriginFailurePercentage => spec.enforcing_failure_percentage_local_origin,
            Self::Degraded => 100,
        }
    }

    pub(super) const fn detected(self) -> Counter {
        match self {
            Self::Consecutive5xx => Counter::OutlierEjectionsDetectedConsecutive5xx,
            Self::ConsecutiveGatewayFailure => Counter::OutlierEjectionsDetectedConsecutiveGatewayFailure,
            Self::SuccessRate => Counter::OutlierEjectionsDetectedSuccessRate,
            Self::ConsecutiveLocalOriginFailure => {
                Counter::OutlierEjectionsDetectedConsecutiveLocalOriginFailure
            }
            Self::LocalOriginSuccessRate => Counter::OutlierEjectionsDetectedLocalOriginSuccessRate,
            Self::FailurePercentage => Counter::OutlierEjectionsDetectedFailurePercentage,
            Self::LocalOriginFailurePercentage => {
                Counter::OutlierEjectionsDetectedLocalOriginFailurePercentage
            }
            Self::Degraded => Counter::OutlierEjectionsDetectedDegradation,
        }
    }

    /// `None`: degradation has no enforced counter.
    pub(super) const fn enforced(self) -> Option<Counter> {
        Some(match self {
            Self::Consecutive5xx => Counter::OutlierEjectionsEnforcedConsecutive5xx,
            Self::ConsecutiveGatewayFailure => Counter::OutlierEjectionsEnforcedConsecutiveGatewayFailure,
            Self::SuccessRate => Counter::OutlierEjectionsEnforcedSuccessRate,
            Self::ConsecutiveLocalOriginFailure => {
                Counter::OutlierEjectionsEnforcedConsecutiveLocalOriginFailure
            }
            Self::LocalOriginSuccessRate => Counter::OutlierEjectionsEnforcedLocalOriginSuccessRate,
            Self::FailurePercentage => Counter::OutlierEjectionsEnforcedFailurePercentage,
            Self::LocalOriginFailurePercentage => {
                Counter::OutlierEjectionsEnforcedLocalOriginFailurePercentage
            }
            Self::Degraded => return None,
        })
    }

    /// Whether the deprecated `ejections_total` counts it.
    pub(super) const fn in_total(self) -> bool {
        matches!(self, Self::Consecutive5xx | Self::SuccessRate)
    }
}
