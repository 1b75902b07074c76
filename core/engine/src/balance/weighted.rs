//! What round_robin and least_request share: a schedule over every list whose weights differ, and a rule of
//! the policy's own for lists whose weights do not (section 9, section 3.2).

use super::edf::Edf;
use super::modulus::Modulus;
use super::routing::{List, Routing};
use super::slow_start::SlowStarts;
use super::{Accept, Policy, Selection, View};
use crate::clock::Time;
use crate::hosts::HostArena;
use crate::random::{Random, Source, unit};
use crate::sets::HostSet;
use crate::spec::{LocalityBalancing, PolicySpec};

/// What a policy adds.
pub(super) trait Rule: Sized {
    /// The policy's settings and its locality handling.
    fn new(policy: &PolicySpec) -> (Self, &LocalityBalancing);

    /// The present weight of a host in a schedule.
    fn weight(&self, slot: u32, hosts: &HostArena) -> f64;

    /// Chooses from a list that is not empty and whose weights are all equal.
    fn unweighted(&self, list: Unweighted<'_>, random: &mut Source, hosts: &HostArena) -> Option<u32>;
}

/// A list of hosts whose weights are all equal.
pub(super) struct Unweighted<'a> {
    /// At least one host.
    pub(super) hosts: &'a [u32],
    /// Remainders by the length of the list.
    pub(super) modulus: Modulus,
    /// The list's own count of turns; starts at the construction seed and lives as long as the balancer.
    pub(super) turn: &'a mut u64,
}

impl Unweighted<'_> {
    /// The host at a draw's remainder.
    #[inline]
    pub(super) fn at(&self, word: u64) -> Option<u32> {
        self.hosts.get(self.modulus.of(word)).copied()
    }
}

/// A policy of this family.
pub(super) struct Weighted<R> {
    rule: R,
    routing: Routing,
    /// Drawn at construction; every rebuilt schedule starts from it again.
    seed: u64,
    priorities: Vec<Lists>,
    slow_start: Option<Box<SlowStarts>>,
}

/// The lists of one priority by [`List::number`]. Never shrinks, so that turns survive.
#[derive(Default)]
struct Lists {
    /// Of the set that the schedules come from.
    version: Option<u64>,
    states: Vec<State>,
}

struct State {
    /// There when the list has at least two hosts and their weights differ.
    schedule: Option<Box<Edf>>,
    turn: u64,
    modulus: Modulus,
}

impl<R: Rule> Policy for Weighted<R> {
    fn new(view: View<'_>, random: &mut Source, now: Time) -> Self {
        let (rule, balancing) = R::new(view.policy);
        let routing = Routing::new(balancing, view, random);
        let seed = random.next_u64();
        let slow_start = view.policy.slow_start().map(|spec| Box::new(SlowStarts::new(spec, view.since)));
        let mut policy = Self { rule, routing, seed, priorities: Vec::new(), slow_start };
        policy.rebuild(view, now);
        policy
    }

    fn refresh(&mut self, view: View<'_>, random: &mut Source, now: Time) {
        self.routing.refresh(view, random);
        self.rebuild(view, now);
    }

    #[inline(never)]
    fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        selection.examine(|selection, _| self.candidate(view, selection))
    }

    /// By the rule of the list where its weights are equal, else a draw by present weight.
    fn search(&mut self, view: View<'_>, selection: &mut Selection<'_>, accept: Accept<'_>) -> Option<u32> {
        let found = self.routing.search(view, selection, accept)?;
        let state = self.priorities.get_mut(found.priority as usize)?.states.get_mut(found.list.number())?;
        if state.schedule.is_none() {
            let modulus = Modulus::new(found.hosts.len());
            let list = Unweighted { hosts: &found.hosts, modulus, turn: &mut state.turn };
            return self.rule.unweighted(list, selection.random, view.hosts);
        }
        let weight = |slot: &u32| {
            let starts = self.slow_start.as_ref();
            let factor = starts.map_or(1.0, |starts| starts.factor(*slot, view.hosts, selection.now));
            self.rule.weight(*slot, view.hosts) * factor
        };
        let total: f64 = found.hosts.iter().map(weight).sum();
        let mut left = unit(selection.random.next_u64()) * total;
        let drawn = found.hosts.iter().find(|slot| {
            left -= weight(slot);
            left < 0.0
        });
        drawn.or_else(|| found.hosts.last()).copied()
    }
}

impl<R: Rule> Weighted<R> {
    #[inline]
    fn candidate(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        let word = selection.random.next_u64();
        let (priority, list) = self.routing.list(view, selection, word)?;
        let hosts = list.of(view.sets.get(priority as usize)?);
        let state = self.priorities.get_mut(priority as usize)?.states.get_mut(list.number())?;
        if let Some(schedule) = &mut state.schedule {
            if let Some(slow_start) = &self.slow_start {
                return starting(schedule, slow_start, &self.rule, view.hosts, selection.now);
            }
            return schedule.pick(|slot| self.rule.weight(slot, view.hosts));
        }
        if hosts.is_empty() {
            return None;
        }
        let list = Unweighted { hosts, modulus: state.modulus, turn: &mut state.turn };
        self.rule.unweighted(list, selection.random, view.hosts)
    }

    /// Rebuilds the lists of priorities that changed. `now` decides whether slow start lives.
    fn rebuild(&mut self, view: View<'_>, now: Time) {
        if self.priorities.len() < view.sets.len() {
            self.priorities.resize_with(view.sets.len(), Lists::default);
        }
        for (lists, set) in self.priorities.iter_mut().zip(view.sets) {
            if lists.version == Some(set.version) {
                continue;
            }
            if let Some(slow_start) = &mut self.slow_start {
                slow_start.observe(set, view.hosts, now);
            }
            let starts = self.slow_start.as_deref().filter(|slow_start| slow_start.is_live(now));
            let weight = |slot: u32| {
                let weight = self.rule.weight(slot, view.hosts);
                starts.map_or(weight, |starts| weight * starts.factor(slot, view.hosts, now))
            };
            lists.rebuild(set, self.seed, view.hosts, starts.is_some(), weight);
        }
        // A priority that is gone may come back as another one.
        for lists in self.priorities.iter_mut().skip(view.sets.len()) {
            lists.version = None;
        }
    }
}

impl Lists {
    /// `always`: lists of at least two hosts have a schedule even when their weights are equal.
    fn rebuild(
        &mut self,
        set: &HostSet,
        seed: u64,
        hosts: &HostArena,
        always: bool,
        weight: impl Fn(u32) -> f64,
    ) {
        self.version = Some(set.version);
        for list in List::each(set) {
            if self.states.len() <= list.number() {
                self.states.push(State { schedule: None, turn: seed, modulus: Modulus::default() });
            }
            let state = &mut self.states[list.number()];
            let members = list.of(set);
            state.modulus = Modulus::new(members.len());
            let scheduled = (always && members.len() > 1) || weights_differ(members, hosts);
            state.schedule = scheduled.then(|| Box::new(Edf::with_picks(members, seed, &weight)));
        }
    }
}

/// A pick under slow start. Apart: other clusters have none.
#[inline(never)]
fn starting<R: Rule>(
    schedule: &mut Edf,
    slow_start: &SlowStarts,
    rule: &R,
    hosts: &HostArena,
    now: Time,
) -> Option<u32> {
    schedule.pick(|slot| rule.weight(slot, hosts) * slow_start.factor(slot, hosts, now))
}

fn weights_differ(list: &[u32], hosts: &HostArena) -> bool {
    let mut weights = list.iter().map(|slot| hosts.weight(*slot));
    weights.next().is_some_and(|first| weights.any(|weight| weight != first))
}
