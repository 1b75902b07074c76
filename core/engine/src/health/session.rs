//! What results do to a checked host (`spec/breakers-and-health.md` B6).

use crate::hosts::flag;
use crate::spec::HealthCheckSpec;
use std::time::Duration;

/// The outcome of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// Passed.
    Success {
        /// The answer said `x-envoy-degraded`.
        degraded: bool,
    },
    /// The peer answered badly.
    Failed {
        /// Its status lies in the retriable ranges.
        retriable: bool,
    },
    /// Connect failure, reset, disconnect.
    Network,
    /// No answer in time.
    Timeout,
    /// No check at all: an answer to a request said `x-envoy-immediate-health-check-fail`.
    Passive,
}

impl CheckResult {
    /// Whether it speaks for the host.
    pub fn passed(self) -> bool {
        matches!(self, Self::Success { .. })
    }
}

/// What a result did to the host's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Nothing.
    Unchanged,
    /// The host is on its way to the other side.
    ChangePending,
    /// Host lists have to be built anew.
    Changed,
}

/// One host under one checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    healthy: u32,
    unhealthy: u32,
    first: bool,
    /// Of [`flag::ACTIVE`], those that this checker would set.
    pub(crate) flags: u32,
}

impl Session {
    /// `flags`: the host's, of which the active ones are taken over.
    pub(crate) fn new(flags: u32) -> Self {
        Self { healthy: 0, unhealthy: 0, first: true, flags: flags & flag::ACTIVE }
    }

    /// Whether a result is known.
    pub(crate) fn is_judged(&self) -> bool {
        !self.first
    }

    /// `immediate`: a failing answer said `x-envoy-immediate-health-check-fail`.
    pub(crate) fn take(
        &mut self,
        spec: &HealthCheckSpec,
        result: CheckResult,
        immediate: bool,
    ) -> Transition {
        let transition = match result {
            CheckResult::Success { degraded } => self.succeed(spec, degraded),
            failure => {
                if immediate || failure == CheckResult::Passive {
                    self.flags |= flag::EXCLUDED_VIA_IMMEDIATE_HC_FAIL;
                }
                self.fail(spec, failure)
            }
        };
        self.first = false;
        transition
    }

    fn succeed(&mut self, spec: &HealthCheckSpec, degraded: bool) -> Transition {
        self.unhealthy = 0;
        let mut transition = Transition::Unchanged;
        if self.flags & flag::FAILED_ACTIVE_HC != 0 {
            if self.first || raise(&mut self.healthy, spec.healthy_threshold) {
                self.flags &= !(flag::FAILED_ACTIVE_HC
                    | flag::ACTIVE_HC_TIMEOUT
                    | flag::EXCLUDED_VIA_IMMEDIATE_HC_FAIL);
                transition = Transition::Changed;
            } else {
                transition = Transition::ChangePending;
            }
        }
        self.arrive(&mut transition);
        if degraded != (self.flags & flag::DEGRADED_ACTIVE_HC != 0) {
            self.flags ^= flag::DEGRADED_ACTIVE_HC;
            if transition == Transition::Unchanged {
                transition = Transition::Changed;
            }
        }
        transition
    }

    fn fail(&mut self, spec: &HealthCheckSpec, result: CheckResult) -> Transition {
        self.healthy = 0;
        let mut transition = Transition::Unchanged;
        if self.flags & flag::FAILED_ACTIVE_HC == 0 {
            // A definite answer fails the host at once; the threshold is for everything else.
            let definite = matches!(result, CheckResult::Failed { retriable: false } | CheckResult::Passive);
            if definite || raise(&mut self.unhealthy, spec.unhealthy_threshold) {
                self.flags |= flag::FAILED_ACTIVE_HC;
                transition = Transition::Changed;
            } else {
                transition = Transition::ChangePending;
            }
        }
        if result == CheckResult::Timeout && self.flags & flag::FAILED_ACTIVE_HC != 0 {
            self.flags |= flag::ACTIVE_HC_TIMEOUT;
        } else {
            self.flags &= !flag::ACTIVE_HC_TIMEOUT;
        }
        self.arrive(&mut transition);
        transition
    }

    /// The first result ends the waiting of a new host.
    fn arrive(&mut self, transition: &mut Transition) {
        if self.flags & flag::PENDING_ACTIVE_HC != 0 {
            self.flags &= !flag::PENDING_ACTIVE_HC;
            *transition = Transition::Changed;
        }
    }
}

/// Compared for equality: 0 is never reached.
fn raise(counter: &mut u32, threshold: u32) -> bool {
    *counter = counter.saturating_add(1);
    *counter == threshold
}

/// The interval to the next check, before jitter; `None` = the timers stay as they are.
pub(crate) fn interval(
    spec: &HealthCheckSpec,
    result: CheckResult,
    transition: Transition,
    had_traffic: bool,
) -> Option<Duration> {
    let pending = transition == Transition::ChangePending;
    let unhealthy = spec.unhealthy_interval.unwrap_or(spec.interval);
    Some(match (result, had_traffic) {
        (CheckResult::Passive, _) => return None,
        (CheckResult::Success { .. }, true) if pending => spec.healthy_edge_interval.unwrap_or(spec.interval),
        (CheckResult::Success { .. }, true) => spec.interval,
        (_, true) if pending => spec.unhealthy_edge_interval.unwrap_or(unhealthy),
        (_, true) => unhealthy,
        (CheckResult::Success { .. }, false) if !pending => {
            spec.no_traffic_healthy_interval.unwrap_or(spec.no_traffic_interval)
        }
        (_, false) => spec.no_traffic_interval,
    })
}
