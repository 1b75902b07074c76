//! The pending queue: everybody who waits is answered once, whatever happens at the same time.

use super::{both, explore, whole};
use crate::breaker::testing::Bench;
use crate::breaker::{Grant, Permit, Place, Promotions, acquire, acquire_free, host_gone, leave, pool};
use crate::hosts::flag;
use crate::spec::{ConnectionStyle, Thresholds};
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Requests 0 to 2: their cells, and how often they were woken.
#[derive(Default)]
struct Waiters {
    grants: [Grant; 3],
    woken: [AtomicU32; 3],
}

impl Promotions for Waiters {
    fn grant(&self, request: u64) -> Option<&Grant> {
        self.grants.get(request as usize)
    }

    fn wake(&self, request: u64) {
        self.woken[request as usize].fetch_add(1, SeqCst);
    }
}

/// One connection, taken.
struct Narrow {
    bench: Bench,
    waiters: Waiters,
    slot: u32,
}

impl Narrow {
    fn new() -> Arc<Self> {
        let limits = Thresholds { max_connections: 1, ..Thresholds::default() };
        let bench = Bench::new(1, limits);
        let slot = bench.members[0].slot;
        assert!(bench.take(slot));
        Arc::new(Self { bench, waiters: Waiters::default(), slot })
    }

    fn ask(&self, request: usize) -> Permit {
        let word = &self.bench.hosts.load(self.slot).pools[0];
        if acquire_free(word, &self.bench.ledger, self.bench.limits.max_requests, 1) {
            return Permit::Granted;
        }
        let (ask, grant) = (self.bench.ask(self.slot), &self.waiters.grants[request]);
        acquire(&ask, ConnectionStyle::Queue, request as u64, grant, &self.waiters)
    }

    /// As the end of an attempt does: whether the host is gone is looked up first.
    fn give(&self) {
        let gone = self.bench.hosts.flags(self.slot) & flag::REMOVED != 0;
        self.bench.give_to(self.slot, gone, &self.waiters);
    }

    /// What became of a request that asked, now that everybody is done. Whoever has a stream gives it back.
    fn end(&self, request: usize, permit: Permit) -> Place {
        let place = match permit {
            Permit::Granted => Place::Granted,
            Permit::Queued => {
                let place = self.waiters.grants[request].get();
                let woken = self.waiters.woken[request].load(SeqCst);
                assert_eq!(woken, u32::from(place != Place::None), "woken once when there was something");
                place
            }
            other => panic!("{other:?}"),
        };
        assert_ne!(place, Place::Waiting, "a stream is free, and nobody has it");
        if place == Place::Granted {
            self.give();
        }
        place
    }

    fn is_idle(&self, connections: u32) {
        let word = self.bench.hosts.load(self.slot).pools[0].load(Relaxed);
        assert_eq!((pool::active(word), pool::queued(word)), (0, 0));
        let ledger = &self.bench.ledger;
        assert_eq!((ledger.active(self.bench.members(), 0), ledger.pending.load(Relaxed)), (0, 0));
        assert_eq!(ledger.connections.load(Relaxed), connections);
    }
}

#[test]
fn a_stream_given_back_reaches_who_comes_to_wait() {
    explore(|| {
        let narrow = Narrow::new();
        let giver = Arc::clone(&narrow);
        let asker = Arc::clone(&narrow);
        let ((), permit) = both(move || giver.give(), move || asker.ask(0));
        assert_eq!(narrow.end(0, permit), Place::Granted);
        narrow.is_idle(1);
    });
}

#[test]
fn two_who_come_to_wait_are_both_served() {
    explore(|| {
        let narrow = Narrow::new();
        let (one, other, giver) = (Arc::clone(&narrow), Arc::clone(&narrow), Arc::clone(&narrow));
        let first = super::thread(move || one.ask(0));
        let ((), second) = both(move || giver.give(), move || other.ask(1));
        let first = first.join().unwrap();
        // Whoever was first has the stream; the other one gets it after that.
        let mut left = vec![(0, first), (1, second)];
        let has = |(request, permit): &(usize, Permit)| {
            *permit == Permit::Granted || narrow.waiters.grants[*request].get() == Place::Granted
        };
        for _ in 0..2 {
            let at = left.iter().position(has).expect("a stream is free, and nobody has it");
            let (request, permit) = left.remove(at);
            assert_eq!(narrow.end(request, permit), Place::Granted);
        }
        narrow.is_idle(1);
    });
}

#[test]
fn a_waiter_cancelled_as_it_is_granted() {
    explore(|| {
        let narrow = Narrow::new();
        assert_eq!((narrow.ask(0), narrow.ask(1)), (Permit::Queued, Permit::Queued));
        let giver = Arc::clone(&narrow);
        let goes = Arc::clone(&narrow);
        let leaver = move || {
            let ask = goes.bench.ask(goes.slot);
            if !leave(&ask, 0, &goes.waiters.grants[0]) {
                assert_eq!(goes.waiters.grants[0].get(), Place::Granted);
                goes.give();
            }
        };
        both(move || giver.give(), leaver);
        assert_eq!(narrow.end(1, Permit::Queued), Place::Granted, "the next one has the stream");
        narrow.is_idle(1);
    });
}

/// What is over when a host has left, with whatever late comers did there.
fn is_gone(narrow: Arc<Narrow>) {
    let mut narrow = whole(narrow);
    narrow.bench.members.clear();
    narrow.bench.hosts.reclaim(|_, _, left| narrow.bench.ledger.give_left(left));
    assert_eq!(narrow.bench.ledger.places(), 0, "a place stayed at a host that is gone");
    assert_eq!(
        narrow.bench.ledger.connections.load(Relaxed),
        0,
        "a connection stayed at a host that is gone"
    );
}

fn remove(narrow: &Narrow) {
    narrow.bench.hosts.facts(narrow.slot).flags.fetch_or(flag::REMOVED, AcqRel);
    host_gone(&narrow.bench.ask(narrow.slot), &narrow.waiters);
}

#[test]
fn a_host_removed_with_an_attempt_in_flight_and_a_waiter() {
    explore(|| {
        let narrow = Narrow::new();
        assert_eq!(narrow.ask(0), Permit::Queued);
        let (giver, remover) = (Arc::clone(&narrow), Arc::clone(&narrow));
        both(move || giver.give(), move || remove(&remover));
        let place = narrow.end(0, Permit::Queued);
        assert!(matches!(place, Place::Granted | Place::HostGone), "{place:?}");
        is_gone(narrow);
    });
}

/// Whoever chose the host before it left may still ask for it.
#[test]
fn a_host_removed_as_somebody_asks_for_it() {
    explore(|| {
        let narrow = Narrow::new();
        let (giver, remover, asker) = (Arc::clone(&narrow), Arc::clone(&narrow), Arc::clone(&narrow));
        let gives = super::thread(move || giver.give());
        let ((), permit) = both(move || remove(&remover), move || asker.ask(0));
        gives.join().unwrap();
        let place = narrow.end(0, permit);
        assert!(matches!(place, Place::Granted | Place::HostGone), "{place:?}");
        is_gone(narrow);
    });
}
