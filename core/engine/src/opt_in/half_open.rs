//! A host that came back from an ejection and has yet to prove itself: one word of it, so that a place for a probe is
//! taken by one compare-and-swap and nobody holds a lock.
//!
//! The word is 0 for a host that needs no probe. While it is not, the host gets one request at a time, and only once
//! its wait is over. Whoever takes the place ends it in one of three ways: good, failed, or given back unused; all
//! of them do nothing to a word that was closed or opened anew meanwhile.

use crate::clock::{MILLI, Time};
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

const OPEN: u64 = 1;
const TAKEN: u64 = 2;
/// Failures in a row: the wait doubles with each.
const STEP_SHIFT: u32 = 2;
const STEPS: u64 = 0x3f;
/// Good probes in a row.
const GOOD_SHIFT: u32 = 8;
const GOODS: u64 = 0xff;
/// When the next probe may be sent, in milliseconds.
const DUE_SHIFT: u32 = 16;
const DUES: u64 = (1 << (64 - DUE_SHIFT)) - 1;

/// What became of a good probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proved {
    /// The host is as good as any again.
    Closed,
    /// More probes must follow.
    More,
    /// Nobody asked for it any more.
    Late,
}

const fn due(word: u64) -> u64 {
    word >> DUE_SHIFT
}

/// Not earlier than the instant.
fn in_millis(at: Time) -> u64 {
    at.0.div_ceil(MILLI).min(DUES)
}

/// The host comes back: its first probe may be sent at once.
pub(crate) fn open(cell: &AtomicU64, now: Time) {
    cell.store(OPEN | in_millis(now) << DUE_SHIFT, Relaxed);
}

/// The host is ejected again, or needs no probe for another reason.
pub(crate) fn close(cell: &AtomicU64) {
    cell.store(0, Relaxed);
}

/// Whether the host has yet to prove itself.
#[inline]
pub(crate) fn is_open(cell: &AtomicU64) -> bool {
    cell.load(Relaxed) != 0
}

/// Whether a probe could be sent now.
pub(crate) fn is_due(cell: &AtomicU64, now: Time) -> bool {
    may_take(cell.load(Relaxed), now)
}

const fn may_take(word: u64, now: Time) -> bool {
    word & (OPEN | TAKEN) == OPEN && now.0 / MILLI >= due(word)
}

/// Takes the place for a probe.
pub(crate) fn take(cell: &AtomicU64, now: Time) -> bool {
    cell.fetch_update(AcqRel, Acquire, |word| may_take(word, now).then_some(word | TAKEN)).is_ok()
}

/// The probe was not sent, or nobody knows how it went.
pub(crate) fn give_back(cell: &AtomicU64) {
    let _ = cell.fetch_update(AcqRel, Acquire, |word| (word & TAKEN != 0).then_some(word & !TAKEN));
}

/// The probe was answered well. `probes`: how many in a row it takes.
pub(crate) fn succeed(cell: &AtomicU64, probes: u32) -> Proved {
    let next = |word: u64| {
        let good = (word >> GOOD_SHIFT & GOODS) + 1;
        if good >= u64::from(probes) { 0 } else { word & !(TAKEN | GOODS << GOOD_SHIFT) | good << GOOD_SHIFT }
    };
    match cell.fetch_update(AcqRel, Acquire, |word| (word & TAKEN != 0).then(|| next(word))) {
        Ok(word) if next(word) == 0 => Proved::Closed,
        Ok(_) => Proved::More,
        Err(_) => Proved::Late,
    }
}

/// The probe failed: the next one waits twice as long as after the last failure. Returns the wait, `None` when nobody
/// asked for the probe any more.
pub(crate) fn fail(cell: &AtomicU64, now: Time, interval: u64, max_interval: u64) -> Option<u64> {
    let wait = |word: u64| {
        let step = (word >> STEP_SHIFT & STEPS) as u32;
        interval.saturating_mul(1_u64.checked_shl(step).unwrap_or(u64::MAX)).min(max_interval)
    };
    let next = |word: u64| {
        let step = ((word >> STEP_SHIFT & STEPS) + 1).min(STEPS);
        OPEN | step << STEP_SHIFT | in_millis(now.plus(wait(word))) << DUE_SHIFT
    };
    let before = cell.fetch_update(AcqRel, Acquire, |word| (word & TAKEN != 0).then(|| next(word)));
    before.ok().map(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1000 * MILLI;

    #[test]
    fn one_at_a_time_with_waits_that_double() {
        let cell = AtomicU64::new(0);
        assert!(!is_open(&cell) && !take(&cell, Time(S)), "a host that was never ejected needs no probe");
        open(&cell, Time(10 * S));
        assert!(!take(&cell, Time(10 * S - 1)));
        assert!(take(&cell, Time(10 * S)) && !take(&cell, Time(10 * S)), "one at a time");
        give_back(&cell);
        assert!(take(&cell, Time(10 * S)), "a probe that was not sent costs nothing");
        let mut now = Time(10 * S);
        for wait in [5, 10, 20, 40, 60, 60] {
            assert_eq!(fail(&cell, now, 5 * S, 60 * S), Some(wait * S));
            assert!(!is_due(&cell, now.plus(wait * S - 1)));
            now = now.plus(wait * S);
            assert!(take(&cell, now));
        }
        assert_eq!(succeed(&cell, 2), Proved::More);
        assert!(take(&cell, now));
        assert_eq!(succeed(&cell, 2), Proved::Closed);
        assert_eq!(succeed(&cell, 2), Proved::Late);
        assert_eq!(fail(&cell, now, S, S), None);
        assert!(!is_open(&cell));
    }

    #[test]
    fn reports_on_what_is_no_more_change_nothing() {
        let cell = AtomicU64::new(0);
        open(&cell, Time(0));
        assert!(take(&cell, Time(0)));
        close(&cell);
        give_back(&cell);
        assert_eq!((succeed(&cell, 1), fail(&cell, Time(0), S, S)), (Proved::Late, None));
        assert!(!is_open(&cell));
    }

    proptest! {
        /// Whatever happens, waiting brings another probe as soon as nobody is out with one, and good probes close.
        #[test]
        fn never_stuck(steps in proptest::collection::vec(0_u8..6, 0..200), interval in 1_u64..1000) {
            let (cell, most) = (AtomicU64::new(0), 300 * S);
            open(&cell, Time(0));
            let (mut now, mut out) = (Time(0), false);
            for step in steps {
                match step {
                    0 => out |= take(&cell, now),
                    1 if out => {
                        give_back(&cell);
                        out = false;
                    }
                    2 if out => {
                        let wait = fail(&cell, now, interval * MILLI, most).unwrap();
                        prop_assert!(wait <= most);
                        out = false;
                    }
                    3 if out => {
                        out = false;
                        if succeed(&cell, 3) == Proved::Closed {
                            open(&cell, now);
                        }
                    }
                    _ => now = now.plus(u64::from(step) * S),
                }
                prop_assert_eq!(cell.load(Relaxed) & TAKEN != 0, out);
            }
            if out {
                give_back(&cell);
            }
            now = now.plus(most + MILLI);
            for _ in 0..3 {
                prop_assert!(take(&cell, now));
                if succeed(&cell, 3) == Proved::Closed {
                    return Ok(());
                }
            }
            prop_assert!(false, "three good probes close");
        }
    }

    /// Many threads at once: never two places out, and none is lost.
    #[test]
    fn places_are_exclusive() {
        let (cell, out) = (AtomicU64::new(0), AtomicU64::new(0));
        open(&cell, Time(0));
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (cell, out) = (&cell, &out);
                scope.spawn(move || {
                    for round in 0..5_000_u64 {
                        if !take(cell, Time(u64::MAX / 2)) {
                            continue;
                        }
                        assert_eq!(out.fetch_add(1, AcqRel), 0, "two probes at once");
                        out.fetch_sub(1, AcqRel);
                        match (thread + round) % 3 {
                            0 => give_back(cell),
                            1 => drop(succeed(cell, 100)),
                            _ => drop(fail(cell, Time(0), 1, 1)),
                        }
                    }
                });
            }
        });
        assert!(take(&cell, Time(u64::MAX / 2)), "the place is free in the end");
    }
}
