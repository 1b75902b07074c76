//! How many requests began lately (`spec/breakers-and-health.md` A4, `budget_interval`).

use crate::clock::{MILLI, Time, nanos};
use crate::sync::Mutex;
use crate::sync::atomic::{
    AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::collections::VecDeque;
use std::time::Duration;

/// An interval is told apart into so many slots.
const SLOTS: usize = 10;

/// Counts beginnings; sums of closed slots are made up for by whoever comes next, so no timer is needed.
#[derive(Default)]
pub(crate) struct Window {
    begun: AtomicU64,
    /// End of the present slot, in nanoseconds.
    end: AtomicU64,
    past: Mutex<Past>,
}

#[derive(Default)]
struct Past {
    /// Nanoseconds of a slot.
    tick: u64,
    /// All beginnings at the end of each of the last slots, oldest first.
    sums: VecDeque<u64>,
}

/// A tenth of the interval in whole milliseconds; Envoy leaves less than that open.
fn tick_of(interval: Duration) -> u64 {
    (nanos(interval) / (SLOTS as u64) / MILLI * MILLI).max(MILLI)
}

impl Window {
    /// A request begins.
    pub(crate) fn begin(&self, interval: Duration, now: Time) {
        self.close_slots(interval, now);
        self.begun.fetch_add(1, AcqRel);
    }

    /// It never reached a connection.
    pub(crate) fn take_back(&self) {
        let _ = self.begun.fetch_update(AcqRel, Relaxed, |begun| begun.checked_sub(1));
    }

    /// Beginnings of about the last interval: a request leaves at the tenth end of a slot after its own.
    pub(crate) fn recent(&self, interval: Duration, now: Time) -> u32 {
        self.close_slots(interval, now);
        let past = self.past.lock();
        let gone = if past.sums.len() == SLOTS { past.sums.front().copied().unwrap_or(0) } else { 0 };
        u32::try_from(self.begun.load(Acquire).saturating_sub(gone)).unwrap_or(u32::MAX)
    }

    fn close_slots(&self, interval: Duration, now: Time) {
        let tick = tick_of(interval);
        if now.0 < self.end.load(Acquire) && self.past.lock().tick == tick {
            return;
        }
        let mut past = self.past.lock();
        if past.tick != tick {
            *past = Past { tick, sums: VecDeque::new() };
            self.begun.store(0, Relaxed);
            self.end.store((now.0 / tick).saturating_add(1).saturating_mul(tick), Release);
            return;
        }
        let end = self.end.load(Acquire);
        if now.0 < end {
            return;
        }
        let ended = (now.0 - end) / tick + 1;
        let begun = self.begun.load(Acquire);
        for _ in 0..ended.min(SLOTS as u64) {
            if past.sums.len() == SLOTS {
                past.sums.pop_front();
            }
            past.sums.push_back(begun);
        }
        self.end.store(end.saturating_add(ended.saturating_mul(tick)), Release);
    }

    /// Nothing began (after a fork).
    pub(crate) fn reset(&self) {
        *self.past.lock() = Past::default();
        self.begun.store(0, Relaxed);
        self.end.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_of_time_empties_it() {
        let window = Window::default();
        let second = Duration::from_secs(1);
        for _ in 0..7 {
            window.begin(second, Time(5 * MILLI));
        }
        assert_eq!(window.recent(second, Time(999 * MILLI)), 7);
        assert_eq!(window.recent(second, Time(1_000 * MILLI)), 0);
        window.begin(second, Time(50_000 * MILLI));
        assert_eq!(window.recent(second, Time(50_000 * MILLI)), 1);
        window.take_back();
        window.take_back();
        assert_eq!(window.recent(second, Time(50_000 * MILLI)), 0);
    }

    #[test]
    fn another_interval_starts_anew() {
        let window = Window::default();
        window.begin(Duration::from_secs(1), Time(0));
        assert_eq!(window.recent(Duration::from_secs(2), Time(0)), 0);
    }
}
