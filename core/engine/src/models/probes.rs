//! The half-open word: one probe at a time, late reports change nothing, and it never stays taken.

use super::{both, explore};
use crate::clock::Time;
use crate::opt_in::half_open::{Proved, Ticket, close, fail, give_back, is_open, open, succeed, take};
use crate::sync::atomic::AtomicU64;
use std::sync::Arc;

const LATE: Time = Time(u64::MAX / 4);

/// What a holder does with its ticket.
const ENDS: [fn(&AtomicU64, Ticket); 3] = [
    |cell, ticket| give_back(cell, ticket),
    |cell, ticket| drop(succeed(cell, ticket, 2)),
    |cell, ticket| drop(fail(cell, ticket, Time(0), 1, 1)),
];

#[test]
fn one_probe_at_a_time() {
    explore(|| {
        let cell = Arc::new(AtomicU64::new(0));
        open(&cell, Time(0));
        let prober = || {
            let cell = Arc::clone(&cell);
            move || take(&cell, LATE)
        };
        let (one, other) = both(prober(), prober());
        assert!(one.is_some() != other.is_some(), "{one:?} {other:?}");
    });
}

/// A probe of before the host was ejected again ends as another one is under way.
#[test]
fn a_late_report_frees_nobody_elses_place() {
    for end in ENDS {
        explore(move || {
            let cell = Arc::new(AtomicU64::new(0));
            open(&cell, Time(0));
            let old = take(&cell, LATE).unwrap();
            let (late, anew) = (Arc::clone(&cell), Arc::clone(&cell));
            let reporter = move || {
                end(&late, old);
                take(&late, LATE)
            };
            let sweeper = move || {
                close(&anew);
                open(&anew, Time(0));
                take(&anew, LATE)
            };
            let (theirs, mine) = both(reporter, sweeper);
            // Tickets of one opening are the same; two of them would be two probes at once.
            assert!(theirs.is_none() || theirs != mine, "{theirs:?} {mine:?}");
            for ticket in [theirs, mine].into_iter().flatten() {
                give_back(&cell, ticket);
            }
            assert!(is_open(&cell) && take(&cell, LATE).is_some(), "the place is free");
        });
    }
}

#[test]
fn a_probe_never_sent_and_a_report_at_once_leave_one_place() {
    for end in ENDS {
        explore(move || {
            let cell = Arc::new(AtomicU64::new(0));
            open(&cell, Time(0));
            let ticket = take(&cell, LATE).unwrap();
            let (one, other) = (Arc::clone(&cell), Arc::clone(&cell));
            both(move || end(&one, ticket), move || give_back(&other, ticket));
            let next = take(&cell, LATE).expect("the place is free");
            assert!(take(&cell, LATE).is_none(), "and it is one");
            assert_ne!(succeed(&cell, next, 1), Proved::Late);
        });
    }
}

#[test]
fn opened_twice_is_opened() {
    explore(|| {
        let cell = Arc::new(AtomicU64::new(0));
        let opener = || {
            let cell = Arc::clone(&cell);
            move || open(&cell, Time(0))
        };
        both(opener(), opener());
        let ticket = take(&cell, LATE).unwrap();
        assert!(take(&cell, LATE).is_none());
        assert_eq!(succeed(&cell, ticket, 1), Proved::Closed);
        assert!(!is_open(&cell));
    });
}
