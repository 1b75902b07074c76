//! The permit counter: limits hold, no place is lost, none is given twice.

use super::{both, explore, whole};
use crate::breaker::testing::Bench;
use crate::spec::Thresholds;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

fn bench(hosts: u32, max_requests: u32) -> Arc<Bench> {
    Arc::new(Bench::new(hosts, Thresholds { max_requests, ..Thresholds::default() }))
}

/// Everything is back, and can all be had again at this host.
fn is_whole(bench: &Bench, slot: u32, max: u32) {
    assert_eq!(bench.ledger.active(bench.members(), 0), 0);
    for _ in 0..max {
        assert!(bench.take(slot), "a place was lost");
    }
    assert!(!bench.take(slot), "a place was given twice");
}

fn take_and_give(bench: &Bench, under_way: &AtomicU32, slot: u32, max: u32) -> bool {
    let took = bench.take(slot);
    if took {
        assert!(under_way.fetch_add(1, SeqCst) < max, "over the limit");
        under_way.fetch_sub(1, SeqCst);
        bench.give(slot, false);
    }
    took
}

#[test]
fn the_last_place_goes_to_one() {
    explore(|| {
        let (bench, under_way) = (bench(1, 1), Arc::new(AtomicU32::new(0)));
        let slot = bench.members[0].slot;
        let one = {
            let (bench, under_way) = (Arc::clone(&bench), Arc::clone(&under_way));
            move || take_and_give(&bench, &under_way, slot, 1)
        };
        let other = {
            let (bench, under_way) = (Arc::clone(&bench), Arc::clone(&under_way));
            move || take_and_give(&bench, &under_way, slot, 1)
        };
        let (one, other) = both(one, other);
        assert!(one || other, "the first to come is not refused");
        is_whole(&bench, slot, 1);
    });
}

/// A place that was left at a host is called back for another one while it is used and left there again.
#[test]
fn places_left_behind_are_never_lost() {
    explore(|| {
        let bench = bench(2, 2);
        let (here, there) = (bench.members[0].slot, bench.members[1].slot);
        assert!(bench.take(here));
        bench.give(here, false);
        assert_eq!(bench.ledger.places(), 1, "a place lies at the host");
        let user = {
            let bench = Arc::clone(&bench);
            move || {
                if bench.take(here) {
                    bench.give(here, false);
                }
            }
        };
        let caller = {
            let bench = Arc::clone(&bench);
            move || (0..2).filter(|_| bench.take(there)).count()
        };
        let ((), taken) = both(user, caller);
        for _ in 0..taken {
            bench.give(there, true);
        }
        is_whole(&bench, there, 2);
        drop(whole(bench));
    });
}

/// Two who leave places and two who want them all.
#[test]
fn a_limit_holds_while_places_move() {
    explore(|| {
        let (bench, under_way) = (bench(2, 2), Arc::new(AtomicU32::new(0)));
        let (here, there) = (bench.members[0].slot, bench.members[1].slot);
        assert!(bench.take(here));
        bench.give(here, false);
        let work = |slots: &'static [u32]| {
            let (bench, under_way) = (Arc::clone(&bench), Arc::clone(&under_way));
            let slots = slots.iter().map(|at| [here, there][*at as usize]).collect::<Vec<_>>();
            move || slots.into_iter().for_each(|slot| drop(take_and_give(&bench, &under_way, slot, 2)))
        };
        both(work(&[0]), work(&[1, 0]));
        is_whole(&bench, here, 2);
    });
}
