//! Ejecting, degrading and bringing back (`spec/outlier-detection.md` sections 5, 6, 7, 10, 11).

use super::{Effects, Event, Host, Kind, Met, Rates, Record, State, Watch, reset_counters, seconds_since};
use crate::clock::{MILLI, Time, nanos};
use crate::hosts::flag;
use crate::opt_in::half_open;
use crate::random::{Random, Source};
use crate::stats::Counter;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};

impl Watch<'_> {
    /// Handles what a report met: degradation, gateway, 5xx, local origin, in this order.
    #[cold]
    pub(crate) fn fire(&self, met: Met, slot: u32, now: Time, random: &mut Source) -> Effects {
        let mut effects = Effects::default();
        let mut state = self.detector.state.lock();
        if !state.on {
            return effects;
        }
        if met.has(Met::DEGRADED) && self.flags(slot) & flag::REMOVED == 0 {
            self.degrade(&mut state, slot, now, random, &mut effects);
        }
        let (tally, passive) = (self.hosts.tally(slot), self.hosts.passive(slot));
        for (what, kind, counter) in [
            (Met::GATEWAY, Kind::ConsecutiveGatewayFailure, &tally.consecutive_gateway),
            (Met::SERVER, Kind::Consecutive5xx, &tally.consecutive_5xx),
            (Met::LOCAL, Kind::ConsecutiveLocalOriginFailure, &passive.consecutive_local),
        ] {
            let over = flag::REMOVED | flag::FAILED_OUTLIER_CHECK;
            if !met.has(what) || self.flags(slot) & over != 0 {
                continue;
            }
            self.counters.count(kind.detected());
            self.eject(&mut state, slot, kind, Rates::NONE, now, random, &mut effects);
            if kind == Kind::Consecutive5xx {
                self.counters.count(Counter::OutlierEjectionsConsecutive5xx);
            }
            counter.store(0, Relaxed);
        }
        effects
    }

    pub(super) fn flags(&self, slot: u32) -> u32 {
        self.hosts.flags(slot)
    }

    /// Section 6. A host that is ejected already is ejected once more: who does not want that asks before.
    #[expect(clippy::too_many_arguments, reason = "the parts of one held detector")]
    pub(super) fn eject(
        &self,
        state: &mut State,
        slot: u32,
        kind: Kind,
        rates: Rates,
        now: Time,
        random: &mut Source,
        effects: &mut Effects,
    ) {
        let spec = &self.rules.spec;
        let limit = spec.max_ejection_percent.min(100);
        let percent = 100.0 * (f64::from(state.ejections_active) + 1.0) / f64::from(self.number_of_hosts);
        let first = spec.always_eject_one_host && state.ejections_active == 0;
        if percent > f64::from(limit) && !first {
            self.counters.count(Counter::OutlierEjectionsOverflow);
            return;
        }
        if kind.in_total() {
            self.counters.count(Counter::OutlierEjectionsTotal);
        }
        let enforced = match kind.enforcing(spec).min(100) {
            0 => false,
            100 => true,
            p => random.next_u64() % 100 < u64::from(p),
        };
        let host = state.hosts.entry(slot).or_default();
        if enforced {
            host.num_ejections += 1;
            host.last_ejection = Some(now);
            host.jitter_ms = self.jitter(random);
            self.grow(&mut host.multiplier);
            state.ejections_active += 1;
            self.counters.count(Counter::OutlierEjectionsEnforcedTotal);
            if let Some(counter) = kind.enforced() {
                self.counters.count(counter);
            }
            self.hosts.facts(slot).flags.fetch_or(flag::FAILED_OUTLIER_CHECK, AcqRel);
            half_open::close(&self.hosts.passive(slot).half_open);
            effects.changed.push(slot);
        }
        let record = Record {
            event: Event::Eject(kind, rates),
            num_ejections: host.num_ejections,
            enforced,
            secs_since_last_action: seconds_since(host.last_unejection, now),
        };
        effects.log.push((slot, record));
    }

    /// Section 10: no percentage, no enforcement, no gauge.
    fn degrade(&self, state: &mut State, slot: u32, now: Time, random: &mut Source, effects: &mut Effects) {
        if self.flags(slot) & flag::DEGRADED_OUTLIER_DETECTION != 0 {
            return;
        }
        self.counters.count(Kind::Degraded.detected());
        let host = state.hosts.entry(slot).or_default();
        host.last_degraded = Some(now);
        host.jitter_ms = self.jitter(random);
        self.grow(&mut host.degrade_multiplier);
        self.hosts.facts(slot).flags.fetch_or(flag::DEGRADED_OUTLIER_DETECTION, AcqRel);
        let record = Record {
            event: Event::Eject(Kind::Degraded, Rates::NONE),
            num_ejections: host.num_ejections,
            enforced: true,
            secs_since_last_action: seconds_since(host.last_unejection, now),
        };
        effects.log.push((slot, record));
        effects.changed.push(slot);
    }

    /// Drawn even when the most is 0.
    fn jitter(&self, random: &mut Source) -> u64 {
        let most = nanos(self.rules.spec.max_ejection_time_jitter) / MILLI;
        random.next_u64() % most.saturating_add(1)
    }

    /// One more step, until the time has reached its most.
    fn grow(&self, multiplier: &mut u32) {
        let (base, max) =
            (nanos(self.rules.spec.base_ejection_time), nanos(self.rules.spec.max_ejection_time));
        if u64::from(*multiplier).saturating_mul(base) < max.saturating_add(base) {
            *multiplier += 1;
        }
    }

    /// Whether a time that began at `then` with this multiplier is over.
    pub(super) fn is_over(&self, multiplier: u32, jitter_ms: u64, then: Option<Time>, now: Time) -> bool {
        let (base, max) =
            (nanos(self.rules.spec.base_ejection_time), nanos(self.rules.spec.max_ejection_time));
        let span = u64::from(multiplier).saturating_mul(base).min(max);
        let span = span.saturating_add(jitter_ms.saturating_mul(MILLI));
        then.is_none_or(|then| span <= now.since(then))
    }

    /// Section 11.
    pub(super) fn uneject(
        &self,
        ejections_active: &mut u32,
        host: &mut Host,
        slot: u32,
        now: Time,
        effects: &mut Effects,
    ) {
        *ejections_active = ejections_active.saturating_sub(1);
        self.hosts.facts(slot).flags.fetch_and(!flag::FAILED_OUTLIER_CHECK, AcqRel);
        reset_counters(self.hosts, slot);
        if self.rules.half_open {
            half_open::open(&self.hosts.passive(slot).half_open, now);
        }
        host.last_unejection = Some(now);
        self.back(host, slot, now, effects);
    }

    pub(super) fn undegrade(&self, host: &mut Host, slot: u32, now: Time, effects: &mut Effects) {
        self.hosts.facts(slot).flags.fetch_and(!flag::DEGRADED_OUTLIER_DETECTION, AcqRel);
        host.last_undegraded = Some(now);
        self.back(host, slot, now, effects);
    }

    fn back(&self, host: &Host, slot: u32, now: Time, effects: &mut Effects) {
        let record = Record {
            event: Event::Uneject,
            num_ejections: host.num_ejections,
            enforced: false,
            secs_since_last_action: seconds_since(host.last_ejection, now),
        };
        effects.log.push((slot, record));
        effects.changed.push(slot);
    }

    /// An active check of the host ended well: an ejection ends, unless the checker itself still counts the host
    /// as failed.
    pub(crate) fn check_passed(&self, slot: u32, now: Time) -> Effects {
        let mut effects = Effects::default();
        let mut state = self.detector.state.lock();
        let State { ejections_active, hosts, .. } = &mut *state;
        let flags = self.flags(slot);
        let ejected = flags & (flag::FAILED_OUTLIER_CHECK | flag::REMOVED) == flag::FAILED_OUTLIER_CHECK;
        if self.rules.spec.successful_active_health_check_uneject_host
            && ejected
            && flags & flag::FAILED_ACTIVE_HC == 0
        {
            self.uneject(ejections_active, hosts.entry(slot).or_default(), slot, now, &mut effects);
        }
        effects
    }
}
