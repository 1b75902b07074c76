//! Adaptive concurrency: a limit on requests under way that follows their latency (`spec/breakers-and-health.md`
//! part D). The latency without load is measured from time to time under a small limit; after that, the limit grows
//! while latency stays near it and shrinks when it rises.

use super::overlay::Overlay;
use super::samples::Samples;
use crate::clock::{MILLI, Time, nanos};
use crate::random::Random;
use crate::spec::{ConcurrencySpec, MinRtt};
use crate::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};
use crate::sync::{Mutex, MutexGuard};

const PREFIX: &str = "adaptive_concurrency.gradient_controller.";
/// So many updates from the floor to the floor in a row doubt what was measured.
const FLOORS: u32 = 5;

/// One controller.
pub(crate) struct Gradient {
    enabled: AtomicBool,
    limit: AtomicU32,
    under_way: AtomicU32,
    pub(super) blocked: AtomicU64,
    state: Mutex<State>,
}

/// The controller, held.
pub(crate) struct Hold<'a> {
    _state: MutexGuard<'a, State>,
}

/// Settings as they act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rules {
    pub(super) share: f64,
    pub(super) max_limit: u32,
    pub(super) min_limit: u32,
    /// Nanoseconds.
    update_interval: u64,
    /// Nanoseconds; `None` = it is given.
    measure_every: Option<u64>,
    pub(super) request_count: u32,
    pub(super) jitter: f64,
    pub(super) min_concurrency: u32,
    pub(super) buffer: f64,
}

/// What the gauges show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gauges {
    /// Thousandths.
    pub(super) gradient: u64,
    pub(super) headroom: u64,
    pub(super) measuring: bool,
    pub(super) min_rtt_ms: u64,
    pub(super) sample_rtt_ms: u64,
}

struct State {
    rules: Rules,
    samples: Samples,
    /// Microseconds.
    min_rtt: u64,
    /// The limit to come back to when the running measurement ends.
    deferred: Option<u32>,
    /// When the running or last measurement began: what started before it is no sample.
    since: Time,
    floors: u32,
    /// [`Time::NEVER`] = not armed.
    measure_at: Time,
    update_at: Time,
    gauges: Gauges,
}

impl Rules {
    pub(super) fn new(spec: &ConcurrencySpec, runtime: &Overlay<'_>) -> Self {
        let key = |leaf: &str| format!("{PREFIX}{leaf}");
        let span = |leaf: &str, span| runtime.millis(&key(leaf)).map_or(span, |ms| ms.saturating_mul(MILLI));
        // A limit of 0 would let nothing through that could ever raise it.
        let limit = |leaf: &str, value| runtime.whole(&key(leaf), value).max(1);
        let min_concurrency = limit("min_concurrency", spec.min_concurrency);
        let measure_every = match spec.min_rtt {
            MinRtt::Measured(every) => Some(span("min_rtt_calc_interval_ms", nanos(every)).max(MILLI)),
            MinRtt::Fixed(_) => None,
        };
        Self {
            share: runtime.fraction(&key("sample_aggregate_percentile"), spec.percentile),
            max_limit: limit("max_concurrency_limit", spec.max_limit),
            min_limit: limit("min_concurrency_limit", spec.min_limit.unwrap_or(min_concurrency)),
            update_interval: span("sample_rtt_calc_interval_ms", nanos(spec.update_interval)).max(MILLI),
            measure_every,
            request_count: limit("min_rtt_aggregate_request_count", spec.request_count),
            jitter: runtime.fraction(&key("jitter"), spec.jitter),
            min_concurrency,
            buffer: runtime.fraction(&key("min_rtt_buffer"), spec.buffer),
        }
    }

    /// The pause before the next measurement, in nanoseconds.
    pub(super) fn pause(&self, every: u64, random: &mut dyn Random) -> u64 {
        let range = ((every / MILLI) as f64 * self.jitter).ceil() as u64;
        if self.jitter <= 0.0 || range == 0 {
            return every;
        }
        every.saturating_add((random.next_u64() % range).saturating_mul(MILLI))
    }
}

/// The gradient of two latencies in microseconds.
pub(super) fn gradient(min_rtt: u64, buffer: f64, sample_rtt: u64) -> f64 {
    let wanted = min_rtt as f64 + min_rtt as f64 * buffer;
    // No latency at all is the best there is, whatever was measured.
    if sample_rtt == 0 { 2.0 } else { (wanted / sample_rtt as f64).clamp(0.5, 2.0) }
}

/// The next limit, and the headroom in it. The floor beats the ceiling.
pub(super) fn next_limit(limit: u32, gradient: f64, floor: u32, ceiling: u32) -> (u32, u64) {
    let scaled = f64::from(limit) * gradient;
    let headroom = scaled.sqrt();
    (((scaled + headroom) as u32).min(ceiling).max(floor), headroom as u64)
}

impl Gradient {
    pub(super) fn new(spec: &ConcurrencySpec, runtime: &Overlay<'_>, now: Time) -> Self {
        let rules = Rules::new(spec, runtime);
        let mut state = State {
            rules,
            samples: Samples::default(),
            min_rtt: 0,
            deferred: None,
            since: now,
            floors: 0,
            measure_at: Time::NEVER,
            update_at: now.plus(rules.update_interval),
            gauges: Gauges::default(),
        };
        let limit = AtomicU32::new(rules.min_concurrency);
        match spec.min_rtt {
            MinRtt::Measured(_) => state.measure(&limit, now),
            MinRtt::Fixed(rtt) => {
                state.min_rtt = nanos(rtt) / 1000;
                state.gauges.min_rtt_ms = state.min_rtt / 1000;
                limit.store(rules.min_limit, Relaxed);
            }
        }
        Self {
            enabled: AtomicBool::new(runtime.flag(&spec.enabled)),
            limit,
            under_way: AtomicU32::new(0),
            blocked: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }

    /// Held over a fork, so that the child does not inherit it locked.
    pub(super) fn hold(&self) -> Hold<'_> {
        Hold { _state: self.state.lock() }
    }

    /// In a forked child none of the parent's requests is under way.
    pub(super) fn forget(&self) {
        self.under_way.store(0, Relaxed);
    }

    pub(super) fn set_runtime(&self, spec: &ConcurrencySpec, runtime: &Overlay<'_>) {
        self.enabled.store(runtime.flag(&spec.enabled), Relaxed);
        self.state.lock().rules = Rules::new(spec, runtime);
    }

    /// Whether a request may pass: `Some(true)` = yes, and it is under way until [`Gradient::leave`].
    pub(super) fn admit(&self) -> Option<bool> {
        if !self.enabled.load(Relaxed) {
            return Some(false);
        }
        let mut under_way = self.under_way.load(Relaxed);
        while under_way < self.limit.load(Acquire) {
            match self.under_way.compare_exchange_weak(under_way, under_way + 1, AcqRel, Relaxed) {
                Ok(_) => return Some(true),
                Err(now) => under_way = now,
            }
        }
        self.blocked.fetch_add(1, Relaxed);
        None
    }

    /// Lets a request pass whatever the limit; whether it was within it.
    pub(super) fn admit_anyway(&self) -> (bool, bool) {
        if !self.enabled.load(Relaxed) {
            return (false, true);
        }
        let under_way = self.under_way.fetch_add(1, AcqRel);
        (true, under_way < self.limit.load(Acquire))
    }

    /// A request is over. `since`: when it began, if it ended by itself. Returns whether a timer was set.
    pub(super) fn leave(&self, since: Option<Time>, now: Time, random: &mut dyn Random) -> bool {
        // A forked child forgot its parent's requests.
        let _ = self.under_way.fetch_update(AcqRel, Relaxed, |n| n.checked_sub(1));
        let Some(since) = since else { return false };
        let mut state = self.state.lock();
        if since < state.since {
            return false;
        }
        state.samples.add(now.since(since) / 1000);
        state.end_measurement(&self.limit, now, random)
    }

    /// When something is due.
    pub(super) fn deadline(&self) -> Time {
        let state = self.state.lock();
        state.measure_at.min(state.update_at)
    }

    /// Runs what is due, each at its own instant.
    pub(super) fn tick(&self, now: Time) {
        let mut state = self.state.lock();
        loop {
            let (update, measure) = (state.update_at, state.measure_at);
            if update.min(measure) > now {
                return;
            }
            if update <= measure {
                state.update_at = Time::NEVER;
                // The end of the measurement arms it again.
                if state.deferred.is_none() {
                    state.update(&self.limit, update);
                    // Without samples nothing happens until now.
                    let missed = now.since(update) / state.rules.update_interval;
                    state.update_at = update.plus(state.rules.update_interval.saturating_mul(missed + 1));
                }
            } else {
                state.measure_at = Time::NEVER;
                state.measure(&self.limit, measure);
            }
        }
    }

    pub(super) fn gauges(&self) -> Gauges {
        self.state.lock().gauges
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit.load(Relaxed)
    }

    pub(super) fn under_way(&self) -> u32 {
        self.under_way.load(Relaxed)
    }
}

impl State {
    /// Begins to measure, unless that is under way.
    fn measure(&mut self, limit: &AtomicU32, at: Time) {
        if self.deferred.is_some() {
            return;
        }
        let before = limit.load(Relaxed);
        self.deferred = Some(before);
        self.gauges.measuring = true;
        self.set_limit(limit, before.min(self.rules.min_concurrency), at);
        self.samples.clear();
        self.since = at;
    }

    fn end_measurement(&mut self, limit: &AtomicU32, now: Time, random: &mut dyn Random) -> bool {
        let Some(before) = self.deferred else { return false };
        if self.samples.len() < u64::from(self.rules.request_count) {
            return false;
        }
        self.min_rtt = self.take_samples();
        self.gauges.min_rtt_ms = self.min_rtt / 1000;
        self.set_limit(limit, before, now);
        self.deferred = None;
        self.gauges.measuring = false;
        if let Some(every) = self.rules.measure_every {
            self.measure_at = now.plus(self.rules.pause(every, random));
        }
        self.update_at = now.plus(self.rules.update_interval);
        true
    }

    fn update(&mut self, limit: &AtomicU32, at: Time) {
        if self.samples.len() == 0 {
            return;
        }
        let sample_rtt = self.take_samples();
        self.gauges.sample_rtt_ms = sample_rtt / 1000;
        let gradient = gradient(self.min_rtt, self.rules.buffer, sample_rtt);
        let (floor, ceiling) = (self.rules.min_limit, self.rules.max_limit);
        let (next, headroom) = next_limit(limit.load(Relaxed), gradient, floor, ceiling);
        self.gauges.gradient = (gradient * 1000.0) as u64;
        self.gauges.headroom = headroom;
        self.set_limit(limit, next, at);
    }

    fn take_samples(&mut self) -> u64 {
        let us = self.samples.quantile(self.rules.share) as u64;
        self.samples.clear();
        us
    }

    fn set_limit(&mut self, limit: &AtomicU32, next: u32, at: Time) {
        let before = limit.swap(next, Release);
        let floor = self.rules.min_limit;
        let at_floor = self.deferred.is_none() && before == floor && next == floor;
        self.floors = if at_floor { self.floors.saturating_add(1) } else { 0 };
        if self.floors >= FLOORS && self.rules.measure_every.is_some() {
            self.measure_at = at;
        }
    }
}
