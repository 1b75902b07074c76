//! The work of the interval (`spec/outlier-detection.md` sections 7 to 10).
//!
//! A host that fails both detectors of one run is ejected twice, as in Envoy: the number of active ejections rises
//! by 2 and falls by 1 when it comes back. The rest stays, and counts against `max_ejection_percent`.

use super::{Effects, Kind, Rates, Side, State, Watch};
use crate::clock::{Time, nanos};
use crate::hosts::{HostArena, flag};
use crate::random::Source;
use crate::stats::Counter;
use crate::sync::atomic::Ordering::Relaxed;

/// What a host has counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    answers: u64,
    external_good: u32,
    external_bad: u32,
    local_good: u32,
    local_bad: u32,
}

impl Counts {
    pub(super) fn read(hosts: &HostArena, slot: u32) -> Self {
        let passive = hosts.passive(slot);
        Self {
            // Good answers move from the pool's word to the host's count in two steps; a reader between them sees
            // fewer than a moment later.
            answers: hosts.rq_success(slot).max(hosts.rq_success(slot)),
            external_good: passive.external_good.load(Relaxed),
            external_bad: passive.external_bad.load(Relaxed),
            local_good: passive.local_good.load(Relaxed),
            local_bad: passive.local_bad.load(Relaxed),
        }
    }

    /// What was counted since `mark`, by side.
    fn since(&self, mark: &Self) -> [Bucket; 2] {
        let answers = i64::try_from(self.answers.wrapping_sub(mark.answers)).unwrap_or(0);
        let more = self.external_good.wrapping_sub(mark.external_good).cast_signed();
        // Another thread may be between the two halves of a correction.
        let good = u64::try_from(answers + i64::from(more)).unwrap_or(0);
        let bad = u64::from(self.external_bad.wrapping_sub(mark.external_bad));
        let local_good = u64::from(self.local_good.wrapping_sub(mark.local_good));
        let local_bad = u64::from(self.local_bad.wrapping_sub(mark.local_bad));
        [Bucket { good, total: good + bad }, Bucket { good: local_good, total: local_good + local_bad }]
    }
}

/// The results of one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    good: u64,
    total: u64,
}

impl Bucket {
    /// Good results, percent. There must be some result.
    fn rate(self) -> f64 {
        self.good as f64 * 100.0 / self.total as f64
    }
}

/// Mean of success rates, and the threshold below which a host is an outlier.
pub(super) fn threshold(rates: &[f64], stdev_factor: u32) -> (f64, f64) {
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n;
    let variance = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / n;
    (mean, mean - f64::from(stdev_factor) / 1000.0 * variance.sqrt())
}

impl Watch<'_> {
    /// One interval sweep over the cluster's hosts.
    pub(crate) fn sweep(&self, members: &[u32], now: Time, random: &mut Source) -> Effects {
        let mut effects = Effects::default();
        let mut state = self.detector.state.lock();
        if !state.on {
            return effects;
        }
        // In the order in which the hosts joined: it matters when fewer may be ejected than qualify.
        let mut slots: Vec<u32> =
            members.iter().copied().filter(|slot| self.flags(*slot) & flag::REMOVED == 0).collect();
        let birth = |slot: &u32| self.hosts.facts(*slot).birth.load(Relaxed);
        if !slots.is_sorted_by_key(birth) {
            slots.sort_by_cached_key(birth);
        }
        let (windows, risen) = self.turn(&mut state, &slots, now, &mut effects);
        self.judge(&mut state, Side::External, &windows, now, random, &mut effects);
        // Who was ejected by this is not judged again.
        for slot in effects.changed.iter().filter(|slot| self.flags(**slot) & flag::FAILED_OUTLIER_CHECK != 0)
        {
            if let Some(host) = state.hosts.get_mut(slot) {
                host.published[Side::Local as usize] = None;
            }
        }
        self.judge(&mut state, Side::Local, &windows, now, random, &mut effects);
        self.decay(&mut state, &risen, now);
        effects
    }

    /// Whether the hosts are enough for either detector of an interval.
    fn judges(&self) -> bool {
        let spec = &self.rules.spec;
        self.number_of_hosts >= spec.success_rate_minimum_hosts.min(spec.failure_percentage_minimum_hosts)
    }

    /// Brings back whose time is over, and begins new windows. Also names those whose ejections have grown longer.
    fn turn(
        &self,
        state: &mut State,
        slots: &[u32],
        now: Time,
        effects: &mut Effects,
    ) -> (Vec<(u32, [Bucket; 2])>, Vec<u32>) {
        let mut windows = Vec::with_capacity(slots.len());
        let mut risen = Vec::new();
        let spec = &self.rules.spec;
        let least =
            u64::from(spec.success_rate_request_volume.min(spec.failure_percentage_request_volume)).max(1);
        for &slot in slots {
            let host = state.hosts.entry(slot).or_default();
            let flags = self.flags(slot);
            if flags & flag::FAILED_OUTLIER_CHECK != 0
                && self.is_over(host.multiplier, host.jitter_ms, host.last_ejection, now)
            {
                self.uneject(&mut state.ejections_active, host, slot, now, effects);
            }
            if flags & flag::DEGRADED_OUTLIER_DETECTION != 0
                && self.is_over(host.degrade_multiplier, host.jitter_ms, host.last_degraded, now)
            {
                self.undegrade(host, slot, now, effects);
            }
            let counts = Counts::read(self.hosts, slot);
            let window = counts.since(&host.mark);
            windows.push((slot, window));
            host.mark = counts;
            let shown = self.judges() && self.flags(slot) & flag::FAILED_OUTLIER_CHECK == 0;
            host.published = window.map(|side| (shown && side.total >= least).then(|| side.rate()));
            if host.multiplier | host.degrade_multiplier != 0 {
                risen.push(slot);
            }
        }
        (windows, risen)
    }

    /// Success rate, then failure percentage, of one side (section 9).
    fn judge(
        &self,
        state: &mut State,
        side: Side,
        windows: &[(u32, [Bucket; 2])],
        now: Time,
        random: &mut Source,
        effects: &mut Effects,
    ) {
        let spec = &self.rules.spec;
        state.published[side as usize] = None;
        if !self.judges() {
            return;
        }
        let (sr_volume, fp_volume) =
            (u64::from(spec.success_rate_request_volume), u64::from(spec.failure_percentage_request_volume));
        let (mut by_rate, mut by_failures) = (Vec::new(), Vec::new());
        for (slot, window) in windows {
            let window = window[side as usize];
            let total = window.total;
            if total == 0 || self.flags(*slot) & flag::FAILED_OUTLIER_CHECK != 0 {
                continue;
            }
            let rate = window.rate();
            if total >= sr_volume {
                by_rate.push((*slot, rate));
            }
            if total >= fp_volume {
                by_failures.push((*slot, rate));
            }
        }
        let enough = |list: &[(u32, f64)], minimum: u32| !list.is_empty() && list.len() >= minimum as usize;
        let (sr_kind, fp_kind) = match side {
            Side::External => (Kind::SuccessRate, Kind::FailurePercentage),
            Side::Local => (Kind::LocalOriginSuccessRate, Kind::LocalOriginFailurePercentage),
        };
        let mut rates = Rates::NONE;
        if enough(&by_rate, spec.success_rate_minimum_hosts) {
            let all: Vec<f64> = by_rate.iter().map(|(_, rate)| *rate).collect();
            (rates.average, rates.threshold) = threshold(&all, spec.success_rate_stdev_factor);
            state.published[side as usize] = Some((rates.average, rates.threshold));
            for (slot, rate) in by_rate.iter().filter(|(_, rate)| *rate < rates.threshold) {
                // The deprecated counter takes both sides.
                self.counters.count(Counter::OutlierEjectionsSuccessRate);
                self.counters.count(sr_kind.detected());
                rates.host = *rate;
                self.eject(state, *slot, sr_kind, rates, now, random, effects);
            }
        }
        if enough(&by_failures, spec.failure_percentage_minimum_hosts) {
            let most = f64::from(spec.failure_percentage_threshold);
            for (slot, rate) in by_failures.iter().filter(|(_, rate)| 100.0 - rate >= most) {
                self.counters.count(fp_kind.detected());
                rates.host = *rate;
                self.eject(state, *slot, fp_kind, rates, now, random, effects);
            }
        }
    }

    /// One step down for every host that has behaved for an interval.
    fn decay(&self, state: &mut State, slots: &[u32], now: Time) {
        let interval = nanos(self.rules.spec.interval);
        let rested = |then: Option<Time>| then.is_some_and(|then| now.since(then) >= interval);
        for slot in slots {
            let Some(host) = state.hosts.get_mut(slot) else { continue };
            let flags = self.flags(*slot);
            if flags & flag::FAILED_OUTLIER_CHECK == 0 && rested(host.last_unejection) {
                host.multiplier = host.multiplier.saturating_sub(1);
            }
            if flags & flag::DEGRADED_OUTLIER_DETECTION == 0 && rested(host.last_undegraded) {
                host.degrade_multiplier = host.degrade_multiplier.saturating_sub(1);
            }
        }
    }
}
