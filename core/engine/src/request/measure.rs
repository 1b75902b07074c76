//! What a policy learns from answers: latencies.

use super::Walk;
use super::state::Attempt;
use crate::clock::nanos;
use crate::headers::HeaderView;
use crate::outcome::failure;
use crate::spec::PeakEwma;

/// Longest time that a `retry-after` counts.
const LONGEST_PENALTY: u64 = 300_000_000_000;

/// What a cluster's policy wants to know of every attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Measures {
    /// How long it took.
    Latency(PeakEwma),
}

impl Walk<'_> {
    /// Response headers came.
    #[inline]
    pub(super) fn measure_answer(&self, attempt: &Attempt, status: u16, code: u16, headers: HeaderView<'_>) {
        if let Some(measures) = self.measures(attempt) {
            self.answered(measures, attempt, status, code, headers);
        }
    }

    fn measures(&self, attempt: &Attempt) -> Option<&Measures> {
        self.snapshot.clusters[attempt.cluster as usize].view.as_ref()?.measures.as_ref()
    }

    #[inline(never)]
    fn answered(
        &self,
        measures: &Measures,
        attempt: &Attempt,
        status: u16,
        code: u16,
        headers: HeaderView<'_>,
    ) {
        match measures {
            Measures::Latency(spec) => {
                let penalty = (status == 429 || code >= 500).then(|| {
                    let asked = headers.first("retry-after").and_then(seconds);
                    nanos(spec.penalty).max(asked.unwrap_or(0).min(LONGEST_PENALTY))
                });
                self.book(attempt, spec, penalty.unwrap_or(0));
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
        match self.measures(attempt) {
            Some(Measures::Latency(spec)) => self.book(attempt, spec, nanos(spec.penalty)),
            None => {}
        }
    }

    fn book(&self, attempt: &Attempt, spec: &PeakEwma, least: u64) {
        let latency = self.now.0.saturating_sub(attempt.begun.0).max(least);
        if let Some(measured) = self.core.hosts.measured(attempt.slot) {
            measured.book(latency, self.now, nanos(spec.decay));
        }
    }
}

/// A `retry-after` in seconds, as nanoseconds. A date says nothing here.
fn seconds(value: &[u8]) -> Option<u64> {
    let seconds: u64 = std::str::from_utf8(value).ok()?.trim_ascii().parse().ok()?;
    Some(seconds.saturating_mul(1_000_000_000))
}
