//! When the next check is due (`spec/breakers-and-health.md` B5).

use crate::random::Random;
use crate::spec::{HealthCheckSpec, Value};
use std::time::Duration;

/// Runtime values `health_check.min_interval` and `max_interval`, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    min: u64,
    max: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { min: 0, max: u64::MAX }
    }
}

impl Bounds {
    /// The last one of a key wins; what is no whole number leaves the default.
    pub(crate) fn read(values: &[(String, Value)]) -> Self {
        let mut bounds = Self::default();
        for (key, value) in values {
            let number = crate::snapshot::integer(value);
            match key.as_str() {
                "health_check.min_interval" => bounds.min = number.unwrap_or(0),
                "health_check.max_interval" => bounds.max = number.unwrap_or(u64::MAX),
                _ => {}
            }
        }
        bounds
    }

    fn clamp(self, ms: u64) -> Duration {
        // In this order: a minimum above the maximum wins, and no delay is 0.
        Duration::from_millis(ms.min(self.max).max(self.min).max(1))
    }
}

fn whole_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// An interval with its jitter: percent is drawn first.
pub(crate) fn next(
    spec: &HealthCheckSpec,
    base: Duration,
    bounds: Bounds,
    random: &mut dyn Random,
) -> Duration {
    let mut ms = whole_ms(base);
    let share = u128::from(spec.interval_jitter_percent) * u128::from(ms) / 100;
    let share = u64::try_from(share).unwrap_or(u64::MAX);
    if share > 0 {
        ms = ms.saturating_add(random.next_u64() % share);
    }
    let jitter = whole_ms(spec.interval_jitter);
    if jitter > 0 {
        ms = ms.saturating_add(random.next_u64() % jitter);
    }
    bounds.clamp(ms)
}

/// How long the very first check is put off; `None` = not at all.
pub(crate) fn first(spec: &HealthCheckSpec, bounds: Bounds, random: &mut dyn Random) -> Option<Duration> {
    let jitter = whole_ms(spec.initial_jitter);
    (jitter > 0).then(|| bounds.clamp(random.next_u64() % jitter))
}
