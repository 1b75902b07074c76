//! A host that came back from an ejection and has yet to prove itself: one word of it, so that a place for a probe is
//! taken by one compare-and-swap and nobody holds a lock.
//!
//! A host that needs no probe is closed. While it is open, it gets one request at a time, and only once its wait is
//! over. Whoever takes the place gets a [`Ticket`] and ends it in one of three ways: good, failed, or given back unused.
//! A ticket of before the host was closed or opened anew does nothing: its place may be another one's by now.

use crate::clock::{MILLI, Time};
use crate::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

const OPEN: u64 = 1;
const TAKEN: u64 = 2;
/// Failures in a row: the wait doubles with each.
const STEP_SHIFT: u32 = 2;
const STEPS: u64 = 0x3f;
/// Good probes in a row.
const GOOD_SHIFT: u32 = 8;
const GOODS: u64 = 0x7f;
/// How often the host was opened; tickets carry it. A ticket older than 32 openings does not exist.
const ERA_SHIFT: u32 = 15;
const ERAS: u64 = 0x1f;
/// When the next probe may be sent, in milliseconds: 557 years.
const DUE_SHIFT: u32 = 20;
const DUES: u64 = (1 << (64 - DUE_SHIFT)) - 1;

/// The right to one probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticket(u8);

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

const fn era(word: u64) -> u64 {
    word >> ERA_SHIFT & ERAS
}

/// The word of a closed host that remembers its era.
const fn closed(word: u64) -> u64 {
    word & ERAS << ERA_SHIFT
}

const fn holds(word: u64, ticket: Ticket) -> bool {
    word & TAKEN != 0 && era(word) == ticket.0 as u64
}

/// Not earlier than the instant.
fn in_millis(at: Time) -> u64 {
    at.0.div_ceil(MILLI).min(DUES)
}

fn change(cell: &AtomicU64, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    cell.fetch_update(AcqRel, Acquire, next).ok()
}

/// The host comes back: its first probe may be sent at once.
pub(crate) fn open(cell: &AtomicU64, now: Time) {
    let next = |word| OPEN | ((era(word) + 1) & ERAS) << ERA_SHIFT | in_millis(now) << DUE_SHIFT;
    change(cell, |word| Some(next(word)));
}

/// The host is ejected again, or needs no probe for another reason.
pub(crate) fn close(cell: &AtomicU64) {
    cell.fetch_and(ERAS << ERA_SHIFT, AcqRel);
}

/// Whether the host has yet to prove itself.
#[inline]
pub(crate) fn is_open(cell: &AtomicU64) -> bool {
    cell.load(Relaxed) & OPEN != 0
}

/// Whether a probe could be sent now.
pub(crate) fn is_due(cell: &AtomicU64, now: Time) -> bool {
    may_take(cell.load(Relaxed), now)
}

const fn may_take(word: u64, now: Time) -> bool {
    word & (OPEN | TAKEN) == OPEN && now.0 / MILLI >= due(word)
}

/// Takes the place for a probe.
pub(crate) fn take(cell: &AtomicU64, now: Time) -> Option<Ticket> {
    let word = change(cell, |word| may_take(word, now).then_some(word | TAKEN))?;
    Some(Ticket(era(word) as u8))
}

/// The probe was not sent, or nobody knows how it went.
pub(crate) fn give_back(cell: &AtomicU64, ticket: Ticket) {
    change(cell, |word| holds(word, ticket).then_some(word & !TAKEN));
}

/// Nobody has a ticket any more (after a fork).
pub(crate) fn forget(cell: &AtomicU64) {
    cell.fetch_and(!TAKEN, AcqRel);
}

/// The probe was answered well. `probes`: how many in a row it takes.
pub(crate) fn succeed(cell: &AtomicU64, ticket: Ticket, probes: u32) -> Proved {
    let next = |word: u64| {
        let good = (word >> GOOD_SHIFT & GOODS) + 1;
        if good >= u64::from(probes) {
            closed(word)
        } else {
            word & !(TAKEN | GOODS << GOOD_SHIFT) | good << GOOD_SHIFT
        }
    };
    match change(cell, |word| holds(word, ticket).then(|| next(word))) {
        Some(word) if next(word) & OPEN == 0 => Proved::Closed,
        Some(_) => Proved::More,
        None => Proved::Late,
    }
}

/// The probe failed: the next one waits twice as long as after the last failure. Returns the wait, `None` when nobody
/// asked for the probe any more.
pub(crate) fn fail(
    cell: &AtomicU64,
    ticket: Ticket,
    now: Time,
    interval: u64,
    max_interval: u64,
) -> Option<u64> {
    let wait = |word: u64| {
        let step = (word >> STEP_SHIFT & STEPS) as u32;
        interval.saturating_mul(1_u64.checked_shl(step).unwrap_or(u64::MAX)).min(max_interval)
    };
    let next = |word: u64| {
        let step = ((word >> STEP_SHIFT & STEPS) + 1).min(STEPS);
        OPEN | step << STEP_SHIFT | closed(word) | in_millis(now.plus(wait(word))) << DUE_SHIFT
    };
    change(cell, |word| holds(word, ticket).then(|| next(word))).map(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1000 * MILLI;

    #[test]
    fn one_at_a_time_with_waits_that_double() {
        let cell = AtomicU64::new(0);
        assert!(
            !is_open(&cell) && take(&cell, Time(S)).is_none(),
            "a host that was never ejected needs no probe"
        );
        open(&cell, Time(10 * S));
        assert_eq!(take(&cell, Time(10 * S - 1)), None);
        let mut ticket = take(&cell, Time(10 * S)).unwrap();
        assert_eq!(take(&cell, Time(10 * S)), None, "one at a time");
        give_back(&cell, ticket);
        ticket = take(&cell, Time(10 * S)).expect("a probe that was not sent costs nothing");
        let mut now = Time(10 * S);
        for wait in [5, 10, 20, 40, 60, 60] {
            assert_eq!(fail(&cell, ticket, now, 5 * S, 60 * S), Some(wait * S));
            assert!(!is_due(&cell, now.plus(wait * S - 1)));
            now = now.plus(wait * S);
            ticket = take(&cell, now).unwrap();
        }
        assert_eq!(succeed(&cell, ticket, 2), Proved::More);
        ticket = take(&cell, now).unwrap();
        assert_eq!(succeed(&cell, ticket, 2), Proved::Closed);
        assert_eq!(succeed(&cell, ticket, 2), Proved::Late);
        assert_eq!(fail(&cell, ticket, now, S, S), None);
        assert!(!is_open(&cell));
    }

    #[test]
    fn reports_on_what_is_no_more_change_nothing() {
        let cell = AtomicU64::new(0);
        open(&cell, Time(0));
        let old = take(&cell, Time(0)).unwrap();
        close(&cell);
        let late = |cell: &AtomicU64| {
            give_back(cell, old);
            assert_eq!((succeed(cell, old, 1), fail(cell, old, Time(0), S, S)), (Proved::Late, None));
        };
        late(&cell);
        assert!(!is_open(&cell));
        // Opened anew, and another probe is out: it is that one's place.
        open(&cell, Time(0));
        late(&cell);
        let new = take(&cell, Time(0)).unwrap();
        late(&cell);
        assert_eq!(take(&cell, Time(0)), None, "still one at a time");
        open(&cell, Time(0));
        assert_eq!(succeed(&cell, new, 1), Proved::Late, "opening twice is opening anew");
        assert!(is_open(&cell) && take(&cell, Time(0)).is_some());
    }

    proptest! {
        /// Whatever happens, waiting brings another probe as soon as nobody is out with one, and good probes close.
        #[test]
        fn never_stuck(steps in proptest::collection::vec(0_u8..6, 0..200), interval in 1_u64..1000) {
            let (cell, most) = (AtomicU64::new(0), 300 * S);
            open(&cell, Time(0));
            let (mut now, mut out) = (Time(0), None);
            for step in steps {
                match step {
                    0 => out = take(&cell, now).or(out),
                    1 => out.take().into_iter().for_each(|ticket| give_back(&cell, ticket)),
                    2 => {
                        if let Some(ticket) = out.take() {
                            let wait = fail(&cell, ticket, now, interval * MILLI, most).unwrap();
                            prop_assert!(wait <= most);
                        }
                    }
                    3 => {
                        if out.take().is_some_and(|ticket| succeed(&cell, ticket, 3) == Proved::Closed) {
                            open(&cell, now);
                        }
                    }
                    _ => now = now.plus(u64::from(step) * S),
                }
                prop_assert_eq!(cell.load(Relaxed) & TAKEN != 0, out.is_some());
            }
            if let Some(ticket) = out {
                give_back(&cell, ticket);
            }
            now = now.plus(most + MILLI);
            for _ in 0..3 {
                let ticket = take(&cell, now);
                prop_assert!(ticket.is_some());
                if succeed(&cell, ticket.unwrap_or_default(), 3) == Proved::Closed {
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
                        let Some(ticket) = take(cell, Time(u64::MAX / 2)) else { continue };
                        assert_eq!(out.fetch_add(1, AcqRel), 0, "two probes at once");
                        out.fetch_sub(1, AcqRel);
                        match (thread + round) % 3 {
                            0 => give_back(cell, ticket),
                            1 => drop(succeed(cell, ticket, 100)),
                            _ => drop(fail(cell, ticket, Time(0), 1, 1)),
                        }
                    }
                });
            }
        });
        assert!(take(&cell, Time(u64::MAX / 2)).is_some(), "the place is free in the end");
    }
}
