//! Hosts that are passed over although they are healthy: set aside until a time (`cool_down`), back from an ejection
//! with nothing proved (`half_open`), without a free place (`prefer_below_limit`), or spoken against by an answer
//! (`classes`). The policy chooses as ever; what is passed over is drawn again, and before anybody gets a host for
//! want of a better one, all hosts were looked at.

use super::Walk;
use super::opt_in::would;
use super::pick::{Brings, Picked, Want};
use crate::balance::PriorityLoad;
use crate::breaker::Room;
use crate::clock::Time;
use crate::cluster::ClusterView;
use crate::engine::Core;
use crate::opt_in::half_open::{self, Ticket};
use crate::opt_in::{OptCounter, Steer};
use crate::outcome::bits;
use crate::snapshot::Snapshot;
use crate::sync::atomic::Ordering::Relaxed;
use std::cell::Cell;
use std::time::Duration;

/// What a pick says when every host is set aside. Never shown.
pub(super) const COOLING: u8 = u8::MAX;

/// Draws before all hosts are looked at.
const DRAWS: u32 = 4;

/// Why a host is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Against {
    CoolDown(Time),
    HalfOpen,
    BelowLimit,
    Class,
}

impl Against {
    const fn name(self) -> &'static str {
        match self {
            Self::CoolDown(_) => "cool_down",
            Self::HalfOpen => "half_open",
            Self::BelowLimit => "prefer_below_limit",
            Self::Class => "classes",
        }
    }

    /// Counted once a choice: that it was passed over, and that it would have been.
    const fn counters(self) -> Option<(OptCounter, OptCounter)> {
        match self {
            Self::CoolDown(_) => Some((OptCounter::CoolDownPassedOver, OptCounter::CoolDownDryRun)),
            Self::HalfOpen => Some((OptCounter::HalfOpenPassedOver, OptCounter::HalfOpenDryRun)),
            Self::BelowLimit => Some((OptCounter::BelowLimitPassedOver, OptCounter::BelowLimitDryRun)),
            Self::Class => None,
        }
    }
}

/// What it takes to judge hosts during one selection.
pub(crate) struct Judge<'j> {
    core: &'j Core,
    steer: Option<Steer>,
    room: Room<'j>,
    routing: usize,
    avoid: &'j [(u32, u32)],
    probes: bool,
    now: Time,
    /// Why somebody was passed over.
    passed: Cell<[Option<Against>; 3]>,
    /// Whose place for a probe was taken.
    took: Cell<Option<(u32, Ticket)>>,
}

/// What a choice wants to know of hosts.
pub(crate) struct Asks<'j> {
    /// The routing priority.
    pub(crate) routing: u8,
    /// Hosts, slot and birth, that answers spoke against.
    pub(crate) avoid: &'j [(u32, u32)],
    /// Whether it may be a probe.
    pub(crate) probes: bool,
}

impl<'j> Judge<'j> {
    pub(crate) fn new(
        core: &'j Core,
        snapshot: &'j Snapshot,
        cluster: u32,
        view: &'j ClusterView,
        asks: &Asks<'j>,
        now: Time,
    ) -> Self {
        let p = usize::from(asks.routing);
        Self {
            core,
            steer: view.steer,
            room: Room {
                hosts: &core.hosts,
                ledger: &snapshot.clusters[cluster as usize].shared.ledgers[p],
                max_connections: view.spec.breakers.thresholds[p].max_connections,
                per_host: view.spec.breakers.per_host_max_connections[p].unwrap_or(u32::MAX),
                streams: view.streams,
            },
            routing: p,
            avoid: asks.avoid,
            probes: asks.probes,
            now,
            passed: Cell::new([None; 3]),
            took: Cell::new(None),
        }
    }

    /// Why a host is passed over, in words; `true`: only while there is another one.
    pub(crate) fn words(&self, slot: u32) -> Option<(String, bool)> {
        Some(match self.against(slot).0? {
            Against::CoolDown(until) => {
                let left = Duration::from_nanos(until.0.saturating_sub(self.now.0)).as_secs_f64();
                (format!("set aside for another {left:.1} s: its answer asked for it"), false)
            }
            Against::HalfOpen => ("half open after an ejection: only probes go there".into(), true),
            Against::BelowLimit => ("no place is free there: others come first".into(), true),
            Against::Class => ("an answer to this request spoke against it".into(), true),
        })
    }

    /// What speaks against a host, and what would if its mechanism were in force.
    fn against(&self, slot: u32) -> (Option<Against>, Option<Against>) {
        let (mut real, mut dry) = (None, None);
        let mut found = |what: Against, dry_run: bool| {
            let cell = if dry_run { &mut dry } else { &mut real };
            cell.get_or_insert(what);
        };
        let passive = self.core.hosts.passive(slot);
        if let Some(steer) = &self.steer {
            if let Some(dry_run) = steer.cools {
                let until = Time(passive.cool_until.load(Relaxed));
                if self.now < until {
                    found(Against::CoolDown(until), dry_run);
                }
            }
            if let Some(half) = &steer.half_open
                && half_open::is_open(&passive.half_open)
                && !(self.probes && half_open::is_due(&passive.half_open, self.now))
            {
                found(Against::HalfOpen, half.dry_run);
            }
            if let Some(dry_run) = steer.below_limit
                && !self.room.at(slot, self.routing)
            {
                found(Against::BelowLimit, dry_run);
            }
        }
        if !self.avoid.is_empty() {
            let birth = self.core.hosts.facts(slot).birth.load(Relaxed);
            if self.avoid.contains(&(slot, birth)) {
                found(Against::Class, false);
            }
        }
        (real, dry)
    }

    /// Until when a host is set aside, if that is enforced.
    fn cools(&self, slot: u32) -> Option<Time> {
        match self.against(slot).0 {
            Some(Against::CoolDown(until)) => Some(until),
            _ => None,
        }
    }

    fn passes_over(&self, slot: u32) -> bool {
        let Some(against) = self.against(slot).0 else { return false };
        let mut passed = self.passed.get();
        let same = |known: &Option<Against>| known.is_some_and(|known| known.name() == against.name());
        if !passed.iter().any(same)
            && let Some(free) = passed.iter_mut().find(|known| known.is_none())
        {
            *free = Some(against);
        }
        self.passed.set(passed);
        true
    }
}

impl<'a> Walk<'a> {
    /// One selection in a cluster that passes hosts over.
    #[inline(never)]
    pub(super) fn steered(
        &mut self,
        cluster: u32,
        view: &'a ClusterView,
        want: &Want<'_>,
        brings: Brings<'_>,
    ) -> Result<Picked, u8> {
        let Brings { tried, load, .. } = brings;
        let judge = self.judge(cluster, view, want);
        let met = |slot| tried.is_some_and(|tried| tried(slot));
        let cools = |slot| judge.cools(slot).is_some();
        let among = |walk: &mut Self, avoid: &dyn Fn(u32) -> bool, load: Option<&PriorityLoad>| {
            let candidates = brings.candidates.max(DRAWS);
            walk.among(cluster, view, Brings { candidates, tried: Some(avoid), load, ..brings })
        };
        let any = |slot| judge.passes_over(slot) || met(slot);
        let mut picked = among(self, &any, load)?;
        // For want of a better one: a host that is set aside is none at all, and one that was tried comes last.
        if any(picked.slot) {
            picked = among(self, &|slot| cools(slot) || met(slot), load)?;
        }
        if cools(picked.slot) {
            // Priorities that get nothing now are better than none.
            let (mut healthy, degraded) = (vec![1; view.sets.len()], vec![1; view.sets.len()]);
            healthy.iter_mut().take(1).for_each(|first| *first = 100);
            picked = among(self, &cools, Some(&PriorityLoad { healthy, degraded }))?;
        }
        if cools(picked.slot) {
            let back = view.members.iter().filter_map(|member| judge.cools(member.slot));
            want.cooling.set(back.fold(want.cooling.get(), Time::min));
            return Err(COOLING);
        }
        if !self.probe(&judge, picked.slot) {
            // Somebody was faster: the host has no place any more.
            let again = among(self, &any, load)?;
            if !any(again.slot) && self.probe(&judge, again.slot) {
                picked = again;
            }
        }
        Ok(self.settled(&judge, cluster, picked))
    }

    /// Whether a host that was asked for by its address is set aside; notes until when.
    pub(super) fn sits_out(&self, view: &ClusterView, slot: u32, cooling: &Cell<Time>) -> bool {
        let until = Time(self.core.hosts.passive(slot).cool_until.load(Relaxed));
        let out = view.steer.is_some_and(|steer| steer.cools == Some(false)) && self.now < until;
        if out {
            cooling.set(cooling.get().min(until));
        }
        out
    }

    fn judge<'j>(&self, cluster: u32, view: &'j ClusterView, want: &'j Want<'_>) -> Judge<'j>
    where
        'a: 'j,
    {
        let snapshot: &'a Snapshot = self.snapshot;
        // A retry has failed once already.
        let asks = Asks { routing: want.routing, avoid: want.avoid, probes: !want.is_retry };
        Judge::new(self.core, snapshot, cluster, view, &asks, self.now)
    }

    /// Takes the place for a probe, if this host takes one. `false`: somebody was faster.
    fn probe(&self, judge: &Judge<'_>, slot: u32) -> bool {
        let Some(half) = judge.steer.and_then(|steer| steer.half_open) else { return true };
        let word = &self.core.hosts.passive(slot).half_open;
        if !half_open::is_open(word) || !judge.probes {
            return true;
        }
        let ticket = half_open::take(word, self.now);
        if let Some(ticket) = ticket {
            judge.took.set(Some((slot, ticket)));
        }
        ticket.is_some() || half.dry_run
    }

    /// Counts what was passed over, and what would have been.
    fn settled(&self, judge: &Judge<'_>, cluster: u32, mut picked: Picked) -> Picked {
        let mine = &self.clusters[cluster as usize];
        let (real, dry) = judge.against(picked.slot);
        for passed in judge.passed.get().into_iter().flatten() {
            // Nobody was passed over for a host of the same kind.
            if real.is_none_or(|real| real.name() != passed.name())
                && let Some((counter, _)) = passed.counters()
            {
                mine.counters.count_opt(counter);
            }
        }
        let took = judge.took.get().filter(|(slot, _)| *slot == picked.slot);
        let probe = took.is_some();
        if let Some((_, ticket)) = took {
            picked.ticket = ticket;
            picked.bits |= bits::PROBE;
            mine.counters.count_opt(OptCounter::HalfOpenProbes);
        }
        let dry = dry.filter(|against| !(probe && *against == Against::HalfOpen));
        if let Some(against) = dry {
            picked.bits |= bits::DRY_RUN;
            if let Some((_, counter)) = against.counters() {
                mine.counters.count_opt(counter);
            }
            let address =
                self.core.hosts.info(picked.slot).map_or_else(String::new, |(_, info)| info.address.clone());
            let event = would(against.name(), &mine.shared.name).text("upstream_url", &address);
            self.core.events.push(event.end());
        }
        picked
    }
}
