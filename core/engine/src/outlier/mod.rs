//! Passive health checking: results of attempts and sweeps over time windows eject hosts, sweeps bring them back
//! (`spec/outlier-detection.md`).
//!
//! `report` books results and says which detectors met their threshold, `eject` acts on that, `sweep` is the work
//! of the interval. Successes are read from the host's own count, so that a good answer costs nothing here.

use crate::clock::{MILLI, Time};
use crate::hosts::{HostArena, flag};
use crate::stats::ClusterCounters;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sync::{Mutex, MutexGuard};
use std::collections::BTreeMap;

mod eject;
mod errors;
mod event;
mod kind;
mod report;
mod rules;
mod sweep;
mod wants;

pub(crate) use event::{Event, Rates, Record, line};
pub(crate) use kind::Kind;
pub(crate) use report::{Met, Told, connected, external, tell};
pub(crate) use rules::{Overrides, Rules};
pub(crate) use wants::{DetectorWants, Wanted};

/// Ejection state of a cluster; survives document updates as its hosts do.
#[derive(Default)]
pub(crate) struct Detector {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// A detector is configured. Reports on an older snapshot may come later than its end.
    on: bool,
    /// Decisions use this number, see [`sweep`] for how it can exceed the ejected hosts.
    ejections_active: u32,
    /// By slot: hosts that were ejected, degraded or seen by a sweep.
    hosts: BTreeMap<u32, Host>,
    /// Mean and threshold of the last success rate run, by side; `None` = not computed.
    published: [Option<(f64, f64)>; 2],
}

/// What the detector knows of a host besides its counters.
#[derive(Default)]
struct Host {
    num_ejections: u32,
    multiplier: u32,
    last_ejection: Option<Time>,
    last_unejection: Option<Time>,
    /// Of the newest ejection or degradation, whichever came last.
    jitter_ms: u64,
    degrade_multiplier: u32,
    last_degraded: Option<Time>,
    last_undegraded: Option<Time>,
    /// Counts at the beginning of the present window.
    mark: sweep::Counts,
    /// Success rates of the last window, by side.
    published: [Option<f64>; 2],
}

/// Which failures a window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Answers of the server, and everything while errors are not split.
    External,
    /// Failures on this side.
    Local,
}

/// What one report or sweep did; the caller writes the log and rebuilds host lists.
#[derive(Default)]
pub(crate) struct Effects {
    /// Log records in order.
    pub(crate) log: Vec<(u32, Record)>,
    /// Hosts whose health changed.
    pub(crate) changed: Vec<u32>,
}

/// One cluster's detector with what it works on.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) detector: &'a Detector,
    pub(crate) hosts: &'a HostArena,
    pub(crate) counters: &'a ClusterCounters,
    /// All hosts of the cluster, over all priorities.
    pub(crate) number_of_hosts: u32,
}

/// The state of a detector, held.
pub(crate) struct Hold<'a> {
    _state: MutexGuard<'a, State>,
}

impl Detector {
    /// Held over a fork, so that the child does not inherit a locked state.
    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold { _state: self.state.lock() }
    }

    /// The internal number of ejections, which the gauge shows.
    pub(crate) fn ejections_active(&self) -> u32 {
        self.state.lock().ejections_active
    }

    /// Success rate of a host in the last window, percent.
    pub(crate) fn success_rate(&self, slot: u32, side: Side) -> Option<f64> {
        self.state.lock().hosts.get(&slot).and_then(|host| host.published[side as usize])
    }

    /// Mean and ejection threshold of the last success rate run.
    #[cfg(test)]
    pub(crate) fn cluster_success_rate(&self, side: Side) -> Option<(f64, f64)> {
        self.state.lock().published[side as usize]
    }

    /// Detection begins on hosts that are there already: their counters and windows start now.
    pub(crate) fn start(&self, hosts: &HostArena, slots: impl Iterator<Item = u32>) {
        let mut state = self.state.lock();
        state.on = true;
        for slot in slots {
            reset_counters(hosts, slot);
            state.hosts.entry(slot).or_default().mark = sweep::Counts::read(hosts, slot);
        }
    }

    /// A host left the cluster (its flag says so already): its state goes, without a log line.
    pub(crate) fn remove(&self, hosts: &HostArena, slot: u32) {
        let mut state = self.state.lock();
        state.hosts.remove(&slot);
        // Asked under the lock: nobody ejects a host that is marked as removed.
        if hosts.flags(slot) & flag::FAILED_OUTLIER_CHECK != 0 {
            state.ejections_active = state.ejections_active.saturating_sub(1);
        }
    }

    /// The detector is no longer configured: every host comes back.
    pub(crate) fn clear(&self, hosts: &HostArena) {
        let mut state = self.state.lock();
        for slot in std::mem::take(&mut *state).hosts.into_keys() {
            let mine = flag::FAILED_OUTLIER_CHECK | flag::DEGRADED_OUTLIER_DETECTION;
            hosts.facts(slot).flags.fetch_and(!mine, AcqRel);
        }
    }
}

/// All consecutive counters of a host begin anew.
fn reset_counters(hosts: &HostArena, slot: u32) {
    hosts.end_run(slot);
    hosts.passive(slot).consecutive_local.store(0, Relaxed);
}

/// Whole seconds from an earlier action.
fn seconds_since(then: Option<Time>, now: Time) -> Option<u64> {
    then.map(|then| now.since(then) / (1000 * MILLI))
}

#[cfg(test)]
mod tests;
