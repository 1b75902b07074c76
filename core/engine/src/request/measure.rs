//! What a policy learns from answers: latencies and load reports.

use super::Walk;
use super::state::Attempt;
use crate::clock::nanos;
use crate::headers::HeaderView;
use crate::opt_in::when::wait_of;
use crate::orca::Report;
use crate::outcome::{Outcome, failure};
use crate::spec::{ClientWeights, LoadAware, PeakEwma};
use std::sync::Arc;

/// Longest time that a `retry-after` counts.
const LONGEST_PENALTY: u64 = 300_000_000_000;

/// What a cluster's policy wants to know of every attempt.
#[derive(Clone, Debug)]
pub(crate) struct Measures {
    /// How long it took.
    pub(crate) latency: Option<PeakEwma>,
    /// The weight that the host reports.
    pub(crate) weights: Option<Arc<ClientWeights>>,
    /// How busy the host is.
    pub(crate) utilization: Option<Arc<LoadAware>>,
}

impl Walk<'_> {
    /// Response headers came.
    #[inline]
    pub(super) fn measure_answer(
        &self,
        attempt: &Attempt,
        outcome: &Outcome<'_>,
        status: u16,
        code: u16,
        headers: HeaderView<'_>,
    ) {
        if let Some(measures) = self.measures(attempt) {
            self.answered(measures, attempt, outcome, status, code, headers);
        }
    }

    /// Trailers came.
    #[inline]
    pub(super) fn measure_trailers(&self, attempt: &Attempt, trailers: HeaderView<'_>) {
        if let Some(measures) = self.measures(attempt)
            && !trailers.is_empty()
        {
            self.reported(measures, attempt, trailers);
        }
    }

    fn measures(&self, attempt: &Attempt) -> Option<&Measures> {
        self.snapshot.clusters[attempt.cluster as usize].view.as_ref()?.measures.as_deref()
    }

    #[inline(never)]
    fn answered(
        &self,
        measures: &Measures,
        attempt: &Attempt,
        outcome: &Outcome<'_>,
        status: u16,
        code: u16,
        headers: HeaderView<'_>,
    ) {
        if let Some(spec) = &measures.latency {
            let penalty = (status == 429 || code >= 500).then(|| {
                let asked = headers.first("retry-after");
                let asked = asked.and_then(|value| wait_of("retry-after", value, self.unix()));
                nanos(spec.penalty).max(asked.unwrap_or(0).min(LONGEST_PENALTY))
            });
            self.book(attempt, spec, outcome.latency, penalty.unwrap_or(0));
        }
        if !headers.is_empty() {
            self.reported(measures, attempt, headers);
        }
    }

    /// A load report that says too little changes nothing.
    fn reported(&self, measures: &Measures, attempt: &Attempt, headers: HeaderView<'_>) {
        if measures.weights.is_none() && measures.utilization.is_none() {
            return;
        }
        let Some(report) = Report::find(headers, self.core.settings.read_json) else { return };
        let Some(measured) = self.core.hosts.measured(attempt.slot) else { return };
        if let Some(spec) = &measures.weights {
            let utilization = report.utilization(&spec.metric_names, true);
            if let Ok(weight) = report.weight(utilization, spec.error_penalty) {
                measured.weigh(weight, self.now);
            }
        }
        if let Some(spec) = &measures.utilization {
            let utilization = report.utilization(&spec.metric_names, true);
            if utilization > 0.0 {
                measured.utilize(utilization.min(1.0), self.now);
            }
        }
    }

    /// The attempt failed. What says nothing of its host is not counted.
    #[cold]
    pub(super) fn measure_failure(&self, attempt: &Attempt, kind: u8) {
        use failure as f;
        if matches!(kind, f::OVERFLOW | f::MAX_STREAM_DURATION | f::NO_ERROR_RESET) {
            return;
        }
        if let Some(spec) = self.measures(attempt).and_then(|measures| measures.latency.as_ref()) {
            self.book(attempt, spec, 0, nanos(spec.penalty));
        }
    }

    /// `told`: what the caller measured, 0 = nothing.
    fn book(&self, attempt: &Attempt, spec: &PeakEwma, told: u64, least: u64) {
        let measured = self.now.0.saturating_sub(attempt.begun.0);
        let latency = if told == 0 { measured } else { told }.max(least);
        if let Some(measured) = self.core.hosts.measured(attempt.slot) {
            measured.book(latency, self.now, nanos(spec.decay));
        }
    }
}
