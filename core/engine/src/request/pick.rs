//! Which host an attempt goes to: through composites, aggregates, filters and whom a cluster passes over.

use super::Walk;
use super::state::State;
use super::steer::COOLING;
use super::trail;
use super::wanted::wanted;
use crate::balance::{Criteria, FilterCall, Linear, Overrides, PriorityLoad, Selection};
use crate::clock::Time;
use crate::cluster::{ClusterView, Subs};
use crate::hosts::flag;
use crate::opt_in::half_open::Ticket;
use crate::outcome::{bits, resource};
use crate::policies::Policies;
use crate::random::Random;
use crate::retry::PreviousPriorities;
use crate::sync::atomic::Ordering::Relaxed;
use std::cell::Cell;

/// A host that a selection found.
pub(super) struct Picked {
    pub(super) slot: u32,
    pub(super) cluster: u32,
    pub(super) priority: u32,
    pub(super) bits: u16,
    /// Of a probe.
    pub(super) ticket: Ticket,
}

/// What every level of a selection passes on.
#[derive(Clone, Copy)]
pub(super) struct Want<'w> {
    hash: Option<u64>,
    own_hashes: &'w [(u32, Option<u64>)],
    pub(super) criteria: Option<&'w Criteria>,
    /// What it brings to filters, by cluster.
    brought: &'w [(u32, Vec<Option<String>>)],
    state: &'w State,
    overrides: Option<&'w Overrides>,
    /// A host by address, and whether no other will do.
    wanted: Option<&'w (String, bool)>,
    number: u32,
    pub(super) candidates: u32,
    pub(super) reject: Option<&'w dyn Fn(u32) -> bool>,
    /// Whether an earlier attempt met a host; only of retries.
    pub(super) tried: Option<&'w dyn Fn(u32) -> bool>,
    /// The retry priority plugin, while it acts.
    priorities: &'w Cell<Option<Box<PreviousPriorities>>>,
    pub(super) is_retry: bool,
    pub(super) routing: u8,
    /// Hosts that an answer spoke against.
    pub(super) avoid: &'w [(u32, u32)],
    /// When the first host is back that was set aside.
    pub(super) cooling: &'w Cell<Time>,
}

/// What one selection among a cluster's own hosts brings.
#[derive(Clone, Copy)]
pub(super) struct Brings<'w> {
    pub(super) hash: Option<u64>,
    pub(super) criteria: Option<&'w Criteria>,
    pub(super) filters: Option<&'w FilterCall<'w>>,
    pub(super) overrides: Option<&'w Overrides>,
    pub(super) candidates: u32,
    pub(super) reject: Option<&'w dyn Fn(u32) -> bool>,
    /// Of retries, where tried hosts are excluded.
    pub(super) tried: Option<&'w dyn Fn(u32) -> bool>,
    pub(super) load: Option<&'w PriorityLoad>,
}

impl Brings<'static> {
    pub(super) const NOTHING: Self = Self {
        hash: None,
        criteria: None,
        filters: None,
        overrides: None,
        candidates: 1,
        reject: None,
        tried: None,
        load: None,
    };
}

impl Want<'_> {
    /// How the retry priority divides the load, if it has a say. `place`: where a host tried belongs.
    fn divide(
        &self,
        healthy: &[u32],
        degraded: &[u32],
        place: &dyn Fn(u32, u32) -> Option<u32>,
    ) -> Option<PriorityLoad> {
        let mut plugin = self.priorities.take()?;
        let load = plugin.load(healthy, degraded, place);
        self.priorities.set(Some(plugin));
        load
    }
}

impl<'a> Walk<'a> {
    /// One host for this attempt, or why there is none (a number of [`resource`]).
    pub(super) fn host(&mut self, policies: &Policies, st: &mut State) -> Result<Picked, u8> {
        let priorities = Cell::new(None);
        if st.is_retry && st.has_rare {
            priorities.set(st.rare.as_deref_mut().and_then(|rare| rare.priorities.take()));
        }
        let cooling = Cell::new(Time::NEVER);
        let traced = trail::is_kept(st);
        let mark = if traced { self.random.mark() } else { None };
        let picked = self.host_with(policies, st, &priorities, &cooling);
        if traced {
            let slot = picked.as_ref().ok().map(|picked| picked.slot);
            self.keep_trail(policies, st, mark.as_ref(), slot);
        }
        match &picked {
            Ok(picked) => {
                if picked.bits & bits::PROBE != 0 {
                    st.plain_success = false;
                }
                if cooling.get() != Time::NEVER {
                    self.walked(st, picked.cluster);
                }
            }
            Err(COOLING) => st.rare().opted.cools_until = cooling.get(),
            Err(_) => {}
        }
        if let Some(plugin) = priorities.take() {
            st.rare().priorities = Some(plugin);
        }
        picked
    }

    fn host_with(
        &mut self,
        policies: &Policies,
        st: &State,
        priorities: &Cell<Option<Box<PreviousPriorities>>>,
        cooling: &Cell<Time>,
    ) -> Result<Picked, u8> {
        let rare = st.rare.as_deref().filter(|_| st.has_rare);
        let own_hashes = rare.map_or(&[][..], |rare| &rare.own_hashes);
        let retry = policies.retry(st);
        let hosts = &self.core.hosts;
        let tried = &st.tried;
        let named = rare.map_or(&[][..], |rare| &rare.tried);
        let met = |slot: u32| {
            tried.contains(&(slot, hosts.facts(slot).birth.load(Relaxed)))
                || (!named.is_empty()
                    && hosts.info(slot).is_some_and(|(_, info)| named.contains(&info.address)))
        };
        let reject = |slot: u32| {
            if retry.omit_canary_hosts && hosts.flags(slot) & flag::CANARY != 0 {
                return true;
            }
            if retry.omits_by_metadata()
                && hosts.info(slot).is_some_and(|(_, info)| retry.omits(info.metadata.0.get("envoy.lb")))
            {
                return true;
            }
            retry.previous_hosts && met(slot)
        };
        let predicates = st.is_retry && retry.rejects();
        let want = Want {
            hash: st.hash,
            criteria: rare.and_then(|rare| rare.criteria.as_deref()),
            overrides: rare.and_then(|rare| rare.overrides.as_ref()),
            own_hashes,
            brought: rare.and_then(|rare| rare.brought.as_ref()).map_or(&[], |own| &own.values),
            state: st,
            wanted: rare.and_then(|rare| rare.wanted.as_ref()).filter(|_| !st.is_retry && st.number <= 1),
            number: rare.map_or(st.number, |rare| rare.opted.step(st.number)),
            candidates: if st.is_retry { retry.candidates } else { 1 },
            reject: if predicates { Some(&reject) } else { None },
            tried: if st.is_retry { Some(&met) } else { None },
            priorities,
            is_retry: st.is_retry,
            routing: st.routing,
            avoid: rare.map_or(&[], |rare| &rare.opted.avoid),
            cooling,
        };
        self.pick(st.cluster, &want)
    }

    /// One selection in one cluster; a composite hands on to the sub-cluster of this attempt.
    fn pick(&mut self, cluster: u32, want: &Want<'_>) -> Result<Picked, u8> {
        let Some(view) = &self.snapshot.clusters[cluster as usize].view else {
            return Err(resource::SUB_CLUSTER_MISSING);
        };
        let alone;
        let want = match (want.wanted, &view.subs) {
            // The word is the outer cluster's alone, and that has no hosts.
            (Some((_, true)), Some(_)) => return Err(resource::NONE),
            (Some(_), Some(_)) => {
                alone = Want { wanted: None, ..*want };
                &alone
            }
            _ => want,
        };
        if let Some((address, strict)) = want.wanted {
            let found = wanted(&self.core.hosts, view, address);
            let out = found.is_some_and(|(slot, _)| self.sits_out(view, slot, want.cooling));
            match found.filter(|_| !out) {
                Some((slot, priority)) => {
                    return Ok(Picked { slot, cluster, priority, bits: 0, ticket: Ticket::default() });
                }
                None if out && *strict => return Err(COOLING),
                None if *strict => return Err(resource::NONE),
                None => {}
            }
        }
        match &view.subs {
            Some(Subs::Composite(subs)) => self.composite(subs, want),
            Some(Subs::Aggregate(_)) => match &self.snapshot.clusters[cluster as usize].linear {
                Some(linear) => self.aggregate(linear, want),
                None => Err(resource::NONE),
            },
            None => {
                let prepared = &view.prepared;
                let (healthy, degraded) = (prepared.healthy_availability(), prepared.degraded_availability());
                // A host tried elsewhere counts by its plain number.
                let load = want.divide(healthy, degraded, &|_, priority| Some(priority));
                self.within(cluster, view, want, load.as_ref())
            }
        }
    }

    /// The linear priority that a word leads to, then its cluster alone (B3 to B5): whatever that cluster has no host
    /// for is not looked for elsewhere.
    fn aggregate(&mut self, linear: &Linear, want: &Want<'_>) -> Result<Picked, u8> {
        if linear.is_empty() {
            return Err(resource::NONE);
        }
        let (healthy, degraded) = linear.availability();
        let load = want.divide(healthy, degraded, &|cluster, priority| linear.priority_of(cluster, priority));
        let word = self.random.next_u64();
        let (place, degraded) = linear.choose(load.as_ref(), word).ok_or(resource::NONE)?;
        let snapshot = self.snapshot;
        let view = snapshot.clusters[place.cluster as usize].view.as_ref().ok_or(resource::NONE)?;
        let (chosen, cluster) = (place.load(degraded), place.cluster);
        match self.within(cluster, view, want, Some(chosen)) {
            Err(COOLING) => self.beside(linear, cluster, want),
            picked => picked,
        }
    }

    /// All hosts of the chosen cluster are set aside. Those of the others are none the worse: the first in the list that
    /// has one, healthy before degraded.
    #[cold]
    fn beside(&mut self, linear: &Linear, cooling: u32, want: &Want<'_>) -> Result<Picked, u8> {
        let snapshot = self.snapshot;
        let mut cooled = vec![cooling];
        for (place, degraded) in linear.in_order() {
            let Some(view) = snapshot.clusters[place.cluster as usize].view.as_ref() else { continue };
            if cooled.contains(&place.cluster) {
                continue;
            }
            match self.within(place.cluster, view, want, Some(place.load(degraded))) {
                Ok(mut picked) => {
                    picked.bits |= bits::FALLBACK;
                    return Ok(picked);
                }
                Err(COOLING) => cooled.push(place.cluster),
                Err(_) => {}
            }
        }
        Err(COOLING)
    }

    /// One selection among a cluster's own hosts, through its filters and past whom it passes over.
    fn within(
        &mut self,
        cluster: u32,
        view: &'a ClusterView,
        want: &Want<'_>,
        load: Option<&PriorityLoad>,
    ) -> Result<Picked, u8> {
        let own = want.own_hashes.iter().find(|(of, _)| *of == cluster);
        let hash = own.map_or(want.hash, |(_, hash)| *hash);
        let own = want.brought.iter().find(|(of, _)| *of == cluster);
        let call = own.map(|(_, values)| FilterCall::new(values, self.previous(want.state, view)));
        let brings = Brings {
            hash,
            criteria: want.criteria,
            filters: call.as_ref(),
            overrides: want.overrides,
            candidates: want.candidates,
            reject: want.reject,
            tried: want.tried.filter(|_| view.spec.exclude_tried),
            load,
        };
        let picked = if view.steer.is_some() || !want.avoid.is_empty() {
            self.steered(cluster, view, want, brings)
        } else {
            self.among(cluster, view, brings)
        };
        let Some(call) = &call else { return picked };
        let why = self.filters_told(cluster, call);
        picked.map_err(|found| if why == resource::NONE || found == COOLING { found } else { why })
    }

    /// One selection among a cluster's own hosts.
    #[inline]
    pub(super) fn among(
        &mut self,
        cluster: u32,
        view: &ClusterView,
        brings: Brings<'_>,
    ) -> Result<Picked, u8> {
        let mine = &mut self.clusters[cluster as usize];
        let Some(scheduler) = &mut mine.scheduler else { return Err(resource::SUB_CLUSTER_MISSING) };
        // Only a bounded load asks; where one acts, no credits lie at hosts, so the count is exact.
        let active = |p: usize| mine.shared.ledgers[p].places();
        let cluster_active = if view.bounded { active(0).saturating_add(active(1)) } else { 0 };
        let mut selection = Selection {
            hash: brings.hash,
            criteria: brings.criteria,
            filters: brings.filters,
            overrides: brings.overrides,
            random: self.random,
            now: self.now,
            candidates: brings.candidates,
            reject: brings.reject,
            cluster_active,
            load: brings.load,
            counters: &mine.counters,
            priority: 0,
            panic: false,
            degraded: false,
        };
        let seen = view.view(&self.core.hosts);
        let slot = match brings.tried {
            None => scheduler.choose(seen, &mut selection),
            Some(tried) => scheduler.choose_untried(seen, &mut selection, tried),
        };
        let slot = slot.ok_or(resource::NONE)?;
        let bits = if selection.panic { bits::PANIC } else { 0 }
            | if selection.degraded { bits::DEGRADED } else { 0 };
        Ok(Picked { slot, cluster, priority: selection.priority, bits, ticket: Ticket::default() })
    }

    /// Attempt N goes to the N-th sub-cluster, or forward to the next that has a host
    /// (`spec/composite-and-aggregate.md` A2).
    fn composite(&mut self, subs: &[u32], want: &Want<'_>) -> Result<Picked, u8> {
        let Some(first) = (want.number as usize).checked_sub(1) else {
            return Err(resource::NO_ATTEMPT_NUMBER);
        };
        if first >= subs.len() {
            return Err(resource::PAST_LAST_SUB_CLUSTER);
        }
        let mut why = resource::SUB_CLUSTER_EMPTY;
        for (walked, sub) in subs[first..].iter().enumerate() {
            match self.pick(*sub, want) {
                Ok(mut picked) => {
                    if walked > 0 {
                        picked.bits |= bits::FALLBACK;
                    }
                    return Ok(picked);
                }
                Err(resource::NONE) => {
                    let empty = self.snapshot.clusters[*sub as usize]
                        .view
                        .as_ref()
                        .is_none_or(|view| view.members.is_empty());
                    why = if empty { resource::SUB_CLUSTER_EMPTY } else { resource::SUB_CLUSTER_REFUSED };
                }
                Err(inner) => why = inner,
            }
            if !self.snapshot.runtime.composite_skip_empty {
                break;
            }
        }
        // Whose hosts are set aside will have them again.
        Err(if want.cooling.get() == Time::NEVER { why } else { COOLING })
    }
}
