//! Admission control: a share of requests is rejected while too few succeed (`spec/breakers-and-health.md` part C).
//!
//! Envoy keeps one window per worker thread. Here all threads share one: a process has few requests on any single
//! thread, and with one worker both are the same.

use super::overlay::Overlay;
use crate::clock::Time;
use crate::random::Random;
use crate::spec::AdmissionSpec;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Mutex, MutexGuard};
use std::collections::VecDeque;

const SECOND: u64 = 1_000_000_000;

/// One controller.
pub(crate) struct Control {
    state: Mutex<State>,
    pub(super) rejected: AtomicU64,
    pub(super) succeeded: AtomicU64,
    pub(super) failed: AtomicU64,
}

/// The controller, held.
pub(crate) struct Hold<'a> {
    _state: MutexGuard<'a, State>,
}

struct State {
    rules: Rules,
    window: Window,
}

/// Settings as they act: fractions, runtime values applied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rules {
    pub(super) enabled: bool,
    pub(super) aggression: f64,
    pub(super) threshold: f64,
    pub(super) rps_threshold: u32,
    pub(super) max_rejection: f64,
}

impl Rules {
    pub(super) fn new(spec: &AdmissionSpec, runtime: &Overlay<'_>) -> Self {
        Self {
            enabled: runtime.flag(&spec.enabled),
            aggression: runtime.number(&spec.aggression).max(1.0),
            threshold: runtime.percent(&spec.sr_threshold) / 100.0,
            rps_threshold: runtime.whole(&spec.rps_threshold.key, spec.rps_threshold.value as u32),
            max_rejection: runtime.percent(&spec.max_rejection_probability) / 100.0,
        }
    }

    /// How probable a rejection is, 0.0..=1.0.
    pub(super) fn probability(&self, requests: u64, successes: u64) -> f64 {
        let (n, s) = (requests as f64, successes as f64);
        let missing = (n - s / self.threshold) / (n + 1.0);
        // A negative base has no power: it must not become the largest probability. Neither must 0 / 0.
        let base = if missing > 0.0 { missing } else { 0.0 };
        base.powf(1.0 / self.aggression).min(self.max_rejection).max(0.0)
    }
}

/// Whether a word rejects under this probability.
pub(super) fn rejects(probability: f64, word: u64) -> bool {
    const ACCURACY: u64 = 10_000;
    ACCURACY as f64 * probability > (word % ACCURACY) as f64
}

/// Requests and successes of the last seconds, by second.
pub(super) struct Window {
    /// Nanoseconds, whole seconds.
    length: u64,
    slots: VecDeque<Slot>,
    requests: u64,
    successes: u64,
}

#[derive(Clone, Copy)]
struct Slot {
    since: Time,
    requests: u64,
    successes: u64,
}

impl Window {
    pub(super) fn new(seconds: u64) -> Self {
        let length = seconds.saturating_mul(SECOND);
        Self { length, slots: VecDeque::new(), requests: 0, successes: 0 }
    }

    fn renew(&mut self, now: Time) {
        while let Some(oldest) = self.slots.front()
            && now.since(oldest.since) >= self.length
        {
            self.requests -= oldest.requests;
            self.successes -= oldest.successes;
            self.slots.pop_front();
        }
        if self.slots.back().is_none_or(|newest| now.since(newest.since) >= SECOND) {
            self.slots.push_back(Slot { since: now, requests: 0, successes: 0 });
        }
    }

    pub(super) fn record(&mut self, success: bool, now: Time) {
        self.renew(now);
        let one = u64::from(success);
        if let Some(newest) = self.slots.back_mut() {
            newest.requests += 1;
            newest.successes += one;
            self.requests += 1;
            self.successes += one;
        }
    }

    /// Requests and successes.
    pub(super) fn counts(&mut self, now: Time) -> (u64, u64) {
        self.renew(now);
        (self.requests, self.successes)
    }

    /// Whole requests per second; what is too old counts until somebody looks at the counts.
    pub(super) fn average_rps(&self, now: Time) -> u64 {
        let Some(oldest) = self.slots.front() else { return 0 };
        let span = self.length.max(now.since(oldest.since)) / SECOND;
        self.requests / span.max(1)
    }
}

impl Control {
    pub(super) fn new(spec: &AdmissionSpec, runtime: &Overlay<'_>) -> Self {
        let state =
            State { rules: Rules::new(spec, runtime), window: Window::new(spec.sampling_window.as_secs()) };
        Self {
            state: Mutex::new(state),
            rejected: AtomicU64::new(0),
            succeeded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Held over a fork, so that the child does not inherit it locked.
    pub(super) fn hold(&self) -> Hold<'_> {
        Hold { _state: self.state.lock() }
    }

    pub(super) fn set_runtime(&self, spec: &AdmissionSpec, runtime: &Overlay<'_>) {
        self.state.lock().rules = Rules::new(spec, runtime);
    }

    /// Whether a request may pass: `Some(true)` = yes, and its outcome counts.
    pub(super) fn admit(&self, now: Time, random: &mut dyn Random) -> Option<bool> {
        let passes = self.decide(now, random);
        self.rejected.fetch_add(u64::from(passes.is_none()), Relaxed);
        passes
    }

    /// The same, and nothing is counted.
    pub(super) fn decide(&self, now: Time, random: &mut dyn Random) -> Option<bool> {
        let mut state = self.state.lock();
        let rules = state.rules;
        if !rules.enabled {
            return Some(false);
        }
        if state.window.average_rps(now) < u64::from(rules.rps_threshold) {
            return Some(true);
        }
        let (requests, successes) = state.window.counts(now);
        drop(state);
        (!rejects(rules.probability(requests, successes), random.next_u64())).then_some(true)
    }

    pub(super) fn record(&self, success: bool, now: Time) {
        let count = if success { &self.succeeded } else { &self.failed };
        count.fetch_add(1, Relaxed);
        self.state.lock().window.record(success, now);
    }
}

/// Whether an answer is a success by its HTTP status, or by its gRPC status alone.
pub(super) fn is_success(spec: &AdmissionSpec, status: u16, grpc: Option<u8>) -> bool {
    match grpc {
        Some(grpc) => spec.grpc_success.contains(&grpc),
        None => match &spec.http_success {
            None => status < 500,
            Some(ranges) => ranges.iter().any(|(start, end)| (*start..*end).contains(&status)),
        },
    }
}
