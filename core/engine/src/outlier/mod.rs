//! Passive health checking: consecutive failures eject a host, sweeps bring it back
//! (`spec/outlier-detection.md` sections 4 to 8, 11, 12).

use crate::clock::{MILLI, Time, nanos};
use crate::hosts::{HostArena, flag};
use crate::random::{Random, Source};
use crate::spec::OutlierSpec;
use crate::stats::{ClusterCounters, Counter};
use crate::sync::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

mod event;

pub(crate) use event::{Kind, Record, line};

/// Ejection state of a cluster; survives document updates as its hosts do.
#[derive(Default)]
pub(crate) struct Detector {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ejections_active: u32,
    /// By slot; only hosts that were ejected at least once.
    hosts: BTreeMap<u32, Ejection>,
}

#[derive(Default)]
struct Ejection {
    num_ejections: u32,
    multiplier: u32,
    last_ejection: Option<Time>,
    last_unejection: Option<Time>,
    jitter_ms: u64,
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
    pub(crate) spec: &'a OutlierSpec,
    pub(crate) detector: &'a Detector,
    pub(crate) hosts: &'a HostArena,
    pub(crate) counters: &'a ClusterCounters,
    /// All hosts of the cluster, over all priorities.
    pub(crate) number_of_hosts: u32,
}

/// Books a result given as HTTP code (section 4.2, errors not split by origin). Returns whether a threshold
/// was met, so that [`Watch::fire`] must follow.
#[inline]
pub(crate) fn book(watch: &Watch<'_>, slot: u32, code: u16) -> bool {
    let facts = watch.hosts.facts(slot);
    if !(500..600).contains(&code) {
        // Loads first: a healthy host's counters stay clean in every core's cache.
        for counter in [&facts.consecutive_5xx, &facts.consecutive_gateway] {
            if counter.load(Relaxed) != 0 {
                counter.store(0, Relaxed);
            }
        }
        return false;
    }
    let mut met = false;
    if (502..=504).contains(&code) {
        met |= facts.consecutive_gateway.fetch_add(1, AcqRel) + 1 == watch.spec.consecutive_gateway_failure;
    } else {
        facts.consecutive_gateway.store(0, Relaxed);
    }
    met |= facts.consecutive_5xx.fetch_add(1, AcqRel) + 1 == watch.spec.consecutive_5xx;
    met
}

impl Watch<'_> {
    /// Handles what [`book`] met: gateway first, then 5xx (section 5).
    #[cold]
    pub(crate) fn fire(&self, slot: u32, now: Time, random: &mut Source) -> Effects {
        let mut effects = Effects::default();
        let facts = self.hosts.facts(slot);
        for kind in [Kind::ConsecutiveGatewayFailure, Kind::Consecutive5xx] {
            let (counter, threshold, detected) = match kind {
                Kind::ConsecutiveGatewayFailure => (
                    &facts.consecutive_gateway,
                    self.spec.consecutive_gateway_failure,
                    Counter::OutlierEjectionsDetectedConsecutiveGatewayFailure,
                ),
                Kind::Consecutive5xx => (
                    &facts.consecutive_5xx,
                    self.spec.consecutive_5xx,
                    Counter::OutlierEjectionsDetectedConsecutive5xx,
                ),
            };
            if threshold == 0 || counter.load(Relaxed) != threshold {
                continue;
            }
            let flags = facts.flags.load(Relaxed);
            if flags & (flag::REMOVED | flag::FAILED_OUTLIER_CHECK) != 0 {
                continue;
            }
            self.counters.count(detected);
            self.eject(slot, kind, now, random, &mut effects);
            if kind == Kind::Consecutive5xx {
                self.counters.count(Counter::OutlierEjectionsConsecutive5xx);
            }
            counter.store(0, Relaxed);
        }
        effects
    }

    /// Section 6.
    fn eject(&self, slot: u32, kind: Kind, now: Time, random: &mut Source, effects: &mut Effects) {
        let mut state = self.detector.state.lock();
        let limit = self.spec.max_ejection_percent.min(100);
        let percent = 100.0 * f64::from(state.ejections_active + 1) / f64::from(self.number_of_hosts.max(1));
        let allowed =
            percent <= f64::from(limit) || (self.spec.always_eject_one_host && state.ejections_active == 0);
        if !allowed {
            self.counters.count(Counter::OutlierEjectionsOverflow);
            return;
        }
        if kind == Kind::Consecutive5xx {
            self.counters.count(Counter::OutlierEjectionsTotal);
        }
        let percentage = match kind {
            Kind::Consecutive5xx => self.spec.enforcing_consecutive_5xx,
            Kind::ConsecutiveGatewayFailure => self.spec.enforcing_consecutive_gateway_failure,
        };
        let enforced = match percentage.min(100) {
            0 => false,
            100 => true,
            p => random.next_u64() % 100 < u64::from(p),
        };
        let base = nanos(self.spec.base_ejection_time);
        let max = nanos(self.spec.max_ejection_time);
        let host = state.hosts.entry(slot).or_default();
        let since = host.last_unejection.map(|then| now.since(then) / (1000 * MILLI));
        if !enforced {
            let record = Record::eject(kind, host.num_ejections, false, since);
            effects.log.push((slot, record));
            return;
        }
        host.num_ejections += 1;
        host.last_ejection = Some(now);
        let jitter = nanos(self.spec.max_ejection_time_jitter) / MILLI;
        host.jitter_ms = random.next_u64() % (jitter + 1);
        if u64::from(host.multiplier).saturating_mul(base) < max.saturating_add(base) {
            host.multiplier += 1;
        }
        effects.log.push((slot, Record::eject(kind, host.num_ejections, true, since)));
        state.ejections_active += 1;
        self.counters.count(Counter::OutlierEjectionsEnforcedTotal);
        self.counters.count(match kind {
            Kind::Consecutive5xx => Counter::OutlierEjectionsEnforcedConsecutive5xx,
            Kind::ConsecutiveGatewayFailure => Counter::OutlierEjectionsEnforcedConsecutiveGatewayFailure,
        });
        self.hosts.facts(slot).flags.fetch_or(flag::FAILED_OUTLIER_CHECK, AcqRel);
        effects.changed.push(slot);
    }

    /// One interval sweep (section 8): un-ejection, then decay of the multipliers.
    pub(crate) fn sweep(&self, now: Time) -> Effects {
        let mut effects = Effects::default();
        let mut state = self.detector.state.lock();
        let State { ejections_active, hosts } = &mut *state;
        let base = nanos(self.spec.base_ejection_time);
        let max = nanos(self.spec.max_ejection_time);
        for (&slot, host) in hosts.iter_mut() {
            let facts = self.hosts.facts(slot);
            if facts.flags.load(Relaxed) & flag::FAILED_OUTLIER_CHECK == 0 {
                continue;
            }
            let span = u64::from(host.multiplier).saturating_mul(base).min(max);
            let span = span.saturating_add(host.jitter_ms.saturating_mul(MILLI));
            if host.last_ejection.is_none_or(|then| span <= now.since(then)) {
                *ejections_active = ejections_active.saturating_sub(1);
                facts.flags.fetch_and(!flag::FAILED_OUTLIER_CHECK, AcqRel);
                facts.consecutive_5xx.store(0, Relaxed);
                facts.consecutive_gateway.store(0, Relaxed);
                host.last_unejection = Some(now);
                let since = host.last_ejection.map(|then| now.since(then) / (1000 * MILLI));
                effects.log.push((slot, Record::uneject(host.num_ejections, since)));
                effects.changed.push(slot);
            }
        }
        let interval = nanos(self.spec.interval);
        for (&slot, host) in hosts.iter_mut() {
            let ejected = self.hosts.flags(slot) & flag::FAILED_OUTLIER_CHECK != 0;
            let rested = host.last_unejection.is_some_and(|then| now.since(then) >= interval);
            if !ejected && rested && host.multiplier > 0 {
                host.multiplier -= 1;
            }
        }
        effects
    }
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

    /// Hosts ejected right now.
    pub(crate) fn ejections_active(&self) -> u32 {
        self.state.lock().ejections_active
    }

    /// A host left the cluster: its state goes, without a log line.
    pub(crate) fn remove(&self, slot: u32, ejected: bool) {
        let mut state = self.state.lock();
        state.hosts.remove(&slot);
        if ejected {
            state.ejections_active = state.ejections_active.saturating_sub(1);
        }
    }

    /// The detector is no longer configured: every ejected host comes back. Returns them.
    pub(crate) fn clear(&self, hosts: &HostArena) -> Vec<u32> {
        let mut state = self.state.lock();
        let slots: Vec<u32> = std::mem::take(&mut state.hosts).into_keys().collect();
        state.ejections_active = 0;
        slots
            .into_iter()
            .filter(|slot| {
                let before = hosts.facts(*slot).flags.fetch_and(!flag::FAILED_OUTLIER_CHECK, AcqRel);
                before & flag::FAILED_OUTLIER_CHECK != 0
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
