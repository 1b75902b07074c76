//! The ejection counter: it equals the hosts that are out, and percentages hold.

use super::{both, explore};
use crate::clock::Time;
use crate::hosts::{HostArena, HostInfo, flag};
use crate::outlier::{Detector, Effects, Met, Overrides, Rules, Told, Watch, tell};
use crate::random::{Draws, Source};
use crate::spec::OutlierSpec;
use crate::stats::ClusterCounters;
use crate::sync::atomic::Ordering::AcqRel;
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;

struct Watched {
    hosts: HostArena,
    detector: Detector,
    counters: ClusterCounters,
    rules: Rules,
    slots: [u32; 2],
}

impl Watched {
    fn new(consecutive_5xx: u32, max_ejection_percent: u32) -> Arc<Self> {
        let spec = OutlierSpec { consecutive_5xx, max_ejection_percent, ..OutlierSpec::default() };
        let hosts = HostArena::default();
        let slots = ["10.0.0.1:80", "10.0.0.2:80"].map(|address| hosts.add(HostInfo::at(address), 0));
        let detector = Detector::default();
        detector.start(&hosts, slots.into_iter());
        let rules = Rules::new(&spec, &Overrides::default()).unwrap();
        Arc::new(Self { hosts, detector, counters: ClusterCounters::default(), rules, slots })
    }

    fn watch(&self) -> Watch<'_> {
        Watch {
            rules: &self.rules,
            detector: &self.detector,
            hosts: &self.hosts,
            counters: &self.counters,
            number_of_hosts: 2,
        }
    }

    /// A failure of a host; whether a threshold was met.
    fn fail(&self, host: usize) -> bool {
        let slot = self.slots[host];
        let met = tell(&self.rules, &self.hosts, slot, Told::ExtFailed, Some(500), false);
        if met != Met::NONE {
            self.watch().fire(met, slot, Time(SECOND), &mut Source::Draws(Draws::default()));
        }
        met != Met::NONE
    }

    fn sweep(&self, seconds: u64) -> Effects {
        let random = &mut Source::Draws(Draws::default());
        self.watch().sweep(&self.slots, Time(seconds * SECOND), random)
    }

    fn remove(&self, host: usize) {
        let slot = self.slots[host];
        self.hosts.facts(slot).flags.fetch_or(flag::REMOVED, AcqRel);
        self.detector.remove(&self.hosts, slot);
    }

    fn is_out(&self, host: usize) -> bool {
        let out = flag::FAILED_OUTLIER_CHECK;
        self.hosts.flags(self.slots[host]) & (out | flag::REMOVED) == out
    }

    /// How many are out; the counter says the same.
    fn out(&self) -> u32 {
        let out = [0, 1].into_iter().filter(|host| self.is_out(*host)).count() as u32;
        assert_eq!(self.detector.ejections_active(), out);
        out
    }
}

fn pair(watched: &Arc<Watched>) -> (Arc<Watched>, Arc<Watched>) {
    (Arc::clone(watched), Arc::clone(watched))
}

#[test]
fn of_two_failures_at_once_one_meets_the_threshold() {
    explore(|| {
        let watched = Watched::new(2, 100);
        let (one, other) = pair(&watched);
        let met = both(move || one.fail(0), move || other.fail(0));
        assert!(met.0 != met.1, "{met:?}");
        assert_eq!((watched.out(), watched.is_out(0)), (1, true), "opened once");
    });
}

#[test]
fn the_percentage_holds_for_two_at_once() {
    explore(|| {
        let watched = Watched::new(1, 50);
        let (one, other) = pair(&watched);
        both(move || one.fail(0), move || other.fail(1));
        assert_eq!(watched.out(), 1);
    });
}

#[test]
fn a_host_removed_as_it_is_ejected() {
    explore(|| {
        let watched = Watched::new(1, 100);
        let (one, other) = pair(&watched);
        both(move || one.fail(0), move || other.remove(0));
        assert_eq!(watched.out(), 0);
    });
}

#[test]
fn brought_back_once() {
    explore(|| {
        let watched = Watched::new(1, 100);
        watched.fail(0);
        watched.fail(1);
        assert_eq!(watched.out(), 2);
        let (one, other) = pair(&watched);
        // A sweep and an active check that passed both bring it back.
        both(
            move || one.sweep(31).changed.len(),
            move || other.watch().check_passed(other.slots[0], Time(31 * SECOND)).changed.len(),
        );
        assert_eq!(watched.out(), 0);
    });
}

#[test]
fn ejected_again_as_it_comes_back() {
    explore(|| {
        let watched = Watched::new(1, 100);
        watched.fail(0);
        let (one, other) = pair(&watched);
        both(move || one.sweep(31).changed.len(), move || other.fail(0));
        watched.out();
    });
}

#[test]
fn detection_that_ends_brings_everybody_back() {
    explore(|| {
        let watched = Watched::new(1, 100);
        let (one, other) = pair(&watched);
        both(move || one.fail(0), move || other.detector.clear(&other.hosts));
        assert_eq!(watched.out(), 0);
    });
}
