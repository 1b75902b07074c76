//! Credits change no answer: against a count of what is under way.

use super::pool::connections;
use super::testing::Bench;
use crate::hosts::HostEntry;
use crate::random::{Random, Xoshiro256};
use crate::spec::{RetryBudget, Thresholds};
use crate::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Arc;

#[test]
fn every_place_is_given_out_and_none_twice() {
    for seed in 0..64 {
        let mut random = Xoshiro256::seeded(seed, 1);
        let mut draw = |n: u64| random.next_u64() % n;
        let max = draw(40) as u32;
        let bench = Bench::new(1 + draw(5) as u32, Thresholds { max_requests: max, ..Thresholds::default() });
        let mut open: Vec<u32> = Vec::new();
        for _ in 0..3_000 {
            // In waves, so that places are left behind and then all of them are wanted.
            let rising = draw(200) < 120;
            if rising {
                let slot = bench.members[draw(bench.members.len() as u64) as usize].slot;
                let taken = bench.take(slot);
                assert_eq!(taken, open.len() < max as usize, "seed {seed}, {} of {max}", open.len());
                if taken {
                    open.push(slot);
                }
            } else {
                for _ in 0..draw(20) {
                    if !open.is_empty() {
                        let at = draw(open.len() as u64) as usize;
                        bench.give(open.swap_remove(at), draw(8) == 0);
                    }
                }
            }
            assert_eq!(bench.ledger.active(bench.members(), 0) as usize, open.len());
            assert!(bench.ledger.places() as usize >= open.len());
        }
        for slot in open {
            bench.give(slot, true);
        }
        assert_eq!(bench.ledger.active(bench.members(), 0), 0);
    }
}

#[test]
fn a_lower_limit_holds_at_once() {
    let mut bench = Bench::new(2, Thresholds { max_requests: 100, ..Thresholds::default() });
    let slots = [bench.members[0].slot, bench.members[1].slot];
    for slot in slots {
        for _ in 0..20 {
            assert!(bench.take(slot));
        }
        for _ in 0..20 {
            bench.give(slot, false);
        }
    }
    assert!(bench.ledger.places() > 0, "places were left behind");
    bench.limits.max_requests = 3;
    bench.ledger.set_limits(&bench.limits, false);
    let taken = (0..10).filter(|n| bench.take(slots[n % 2])).count();
    assert_eq!(taken, 3);
}

#[test]
fn a_budget_counts_what_is_under_way() {
    let budget = RetryBudget { budget_percent: 50.0, min_retry_concurrency: 0, ..RetryBudget::default() };
    let limits = Thresholds { max_requests: 100, retry_budget: Some(budget), ..Thresholds::default() };
    let bench = Bench::new(1, limits);
    let slot = bench.members[0].slot;
    for _ in 0..10 {
        assert!(bench.take(slot));
    }
    for _ in 0..6 {
        bench.give(slot, false);
    }
    assert!(bench.ledger.places() > 4, "places were left behind");
    let retries = (0..10)
        .filter(|_| bench.ledger.take_retry(&bench.limits, bench.members(), 0, crate::clock::Time(0)))
        .count();
    assert_eq!(retries, 2, "half of four");
}

#[test]
fn threads_pass_no_limit_and_leave_nothing_behind() {
    let bench = Bench::new(3, Thresholds { max_requests: 12, ..Thresholds::default() });
    let under_way = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (bench, under_way) = (&bench, &under_way);
            scope.spawn(move || {
                use crate::sync::atomic::Ordering::SeqCst;
                let mut random = Xoshiro256::seeded(9, thread);
                for _ in 0..5_000 {
                    let mut mine = Vec::new();
                    for _ in 0..random.next_u64() % 6 {
                        let slot = bench.members[(random.next_u64() % 3) as usize].slot;
                        if bench.take(slot) {
                            assert!(under_way.fetch_add(1, SeqCst) < 12, "over the limit");
                            mine.push(slot);
                        }
                    }
                    for slot in mine {
                        under_way.fetch_sub(1, SeqCst);
                        bench.give(slot, false);
                    }
                }
            });
        }
    });
    assert_eq!(bench.ledger.active(bench.members(), 0), 0);
    let slots: Vec<u32> = bench.members.iter().map(|member| member.slot).collect();
    let taken = (0..30).filter(|n| bench.take(slots[n % 3])).count();
    assert_eq!(taken, 12, "every place can be had again");
}

/// Connections may be passed by one for each host that has none, and by no more (rule 1 of A3).
#[test]
fn threads_pass_the_limit_of_connections_by_hosts_alone() {
    const MOST: u32 = 2;
    const HOSTS: u32 = 3;
    let bench = Bench::new(
        HOSTS,
        Thresholds { max_connections: MOST, max_pending_requests: 0, ..Thresholds::default() },
    );
    let open = || -> u32 {
        let word = |member: &Arc<HostEntry>| bench.hosts.load(member.slot).pools[0].load(Relaxed);
        bench.members.iter().map(|member| connections(word(member)) as u32).sum()
    };
    let (most, differ) = (AtomicU32::new(0), AtomicU32::new(0));
    // All take at once, then all look while nobody moves: several words are no picture of one moment otherwise.
    let meet = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (bench, most, differ, open, meet) = (&bench, &most, &differ, &open, &meet);
            scope.spawn(move || {
                let mut random = Xoshiro256::seeded(5, thread);
                for _ in 0..2_000 {
                    let slot = bench.members[(random.next_u64() % u64::from(HOSTS)) as usize].slot;
                    meet.wait();
                    let taken = bench.take(slot);
                    meet.wait();
                    let now = open();
                    let counted = bench.ledger.connections.load(Relaxed);
                    most.fetch_max(now, Relaxed);
                    meet.wait();
                    // Half of them close theirs, so that there is always room to be had.
                    if taken {
                        bench.give(slot, random.next_u64().is_multiple_of(2));
                    }
                    differ.fetch_max(counted.abs_diff(now), Relaxed);
                }
            });
        }
    });
    let most = most.load(Relaxed);
    assert!((MOST..MOST + HOSTS).contains(&most), "{most} connections");
    assert_eq!(differ.load(Relaxed), 0, "the count is that of the pools all the time");
    assert_eq!(bench.ledger.connections.load(Relaxed), open(), "the count is that of the pools");
    assert!(open() < MOST + HOSTS);
    for member in &bench.members {
        super::close_idle(&bench.ask(member.slot));
    }
    assert_eq!((open(), bench.ledger.connections.load(Relaxed)), (0, 0));
}
