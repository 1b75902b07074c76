//! Slow start (section 16): a host that has just become healthy gets part of its weight.

use crate::clock::{MILLI, Time};
use crate::hosts::{Health, HostArena, flag};
use crate::sets::HostSet;
use crate::spec::SlowStart;

/// What a balancer knows of starting hosts.
pub(super) struct SlowStarts {
    /// Whole milliseconds, as are all times here.
    window: u64,
    aggression: f64,
    min_weight: f64,
    /// When the newest host seen became healthy, or the balancer was made.
    newest: u64,
}

impl SlowStarts {
    /// `since`: when the balancer was made.
    pub(super) fn new(spec: &SlowStart, since: Time) -> Self {
        Self {
            window: u64::try_from(spec.window.as_millis()).unwrap_or(u64::MAX),
            aggression: spec.aggression,
            min_weight: spec.min_weight,
            newest: millis(since),
        }
    }

    /// Looks at the hosts of a priority that changed.
    pub(super) fn observe(&mut self, set: &HostSet, hosts: &HostArena, now: Time) {
        let now = millis(now);
        for passed in set.healthy.iter().filter_map(|slot| hosts.healthy_since(*slot)) {
            let passed = millis(passed);
            if passed > self.newest && now.saturating_sub(passed) <= self.window {
                self.newest = passed;
            }
        }
    }

    /// Whether any host may still be starting: only then do factors act and lists become schedules.
    pub(super) fn is_live(&self, now: Time) -> bool {
        millis(now).saturating_sub(self.newest) <= self.window
    }

    /// What a host's weight is multiplied with.
    pub(super) fn factor(&self, slot: u32, hosts: &HostArena, now: Time) -> f64 {
        if flag::health(hosts.flags(slot)) != Health::Healthy || !self.is_live(now) {
            return 1.0;
        }
        let Some(since) = hosts.healthy_since(slot) else { return 1.0 };
        let elapsed = now.0.saturating_sub(since.0) / MILLI;
        factor(elapsed, self.window, self.aggression, self.min_weight)
    }
}

fn millis(time: Time) -> u64 {
    time.0 / MILLI
}

/// The part of its weight that a host has after `elapsed` of `window` milliseconds.
pub(super) fn factor(elapsed: u64, window: u64, aggression: f64, min_weight: f64) -> f64 {
    if elapsed >= window {
        return 1.0;
    }
    let aggression = if aggression > 0.0 { aggression } else { 1.0 };
    let ratio = elapsed.max(1) as f64 / window as f64;
    let grown = if aggression == 1.0 || ratio == 1.0 { ratio } else { ratio.powf(1.0 / aggression) };
    grown.max(min_weight)
}
