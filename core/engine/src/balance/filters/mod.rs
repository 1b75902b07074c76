//! Filters (`spec/gray-and-nacos.md` section 8): stages narrow the hosts, then a policy chooses among what is left.

mod index;
mod java;
mod told;

#[cfg(test)]
mod vectors;

pub use index::StageOutcome;
pub(crate) use index::{Index, text};
pub(crate) use told::Told;

use super::{Accept, Policy, Prepared, Scheduler, Selection, View};
use crate::clock::Time;
use crate::hosts::HostArena;
use crate::random::{Random as _, Source};
use crate::sets::HostSet;
use crate::spec::{FilterPick, PolicySpec, StageRule, Value};
use index::{Code, Walked};
use std::cell::Cell;
use std::collections::BTreeMap;

/// What a request brings to the stages, and what they answer beside a host.
pub struct FilterCall<'a> {
    /// By stage; `None` and empty = nothing.
    pub values: &'a [Option<String>],
    /// The host of the attempt before.
    pub previous: Option<u32>,
    /// Left by the balancer: there is something to tell an operator.
    pub(crate) told: Cell<Option<Box<Told>>>,
}

impl<'a> FilterCall<'a> {
    /// A call with nothing told yet.
    pub fn new(values: &'a [Option<String>], previous: Option<u32>) -> Self {
        Self { values, previous, told: Cell::new(None) }
    }
}

/// Filters walked for an explanation.
pub(crate) struct FilterWalk {
    /// By stage: what it did, and how many hosts were left.
    pub(crate) outcomes: Vec<(StageOutcome, usize)>,
    /// The stage that left a host out, by slot.
    pub(crate) dropped: BTreeMap<u32, String>,
}

/// Walks the filters of a cluster, if it has any.
pub(crate) fn walk_filters(
    prepared: &Prepared,
    values: &[Option<String>],
    previous: Option<u32>,
) -> Option<FilterWalk> {
    let index = prepared.filters()?;
    let mut codes = Vec::new();
    index.codes(values, previous, None, &mut codes);
    let mut dropped = BTreeMap::new();
    let walked = index.walk_with(&codes, |at, before, after| {
        let name = index.spec.stages.get(at).map_or("", |stage| &stage.name);
        for (slot, _) in before.iter().filter(|host| !after.contains(host)) {
            dropped.insert(*slot, name.to_owned());
        }
        // A stage that started over brings hosts back.
        for (slot, _) in after {
            dropped.remove(slot);
        }
    });
    Some(FilterWalk { outcomes: walked.outcomes, dropped })
}

/// One worker's state.
pub(super) struct Filtered {
    /// Spring's position.
    position: u32,
    last: Option<u32>,
    remembers: bool,
    children: BTreeMap<Vec<Code>, Child>,
    /// Kept to be filled again.
    codes: Vec<Code>,
}

/// What the stages leave for some values.
struct Child {
    walked: Walked,
    sets: Vec<HostSet>,
    chooser: Chooser,
}

enum Chooser {
    Policy {
        prepared: Box<Prepared>,
        scheduler: Box<Scheduler>,
    },
    /// Slots with priorities, each as often as it is chosen.
    List(Vec<(u32, u32)>),
}

/// Combinations of values that a worker keeps hosts for.
const MOST_CHILDREN: usize = 256;

impl Child {
    fn new(index: &Index, codes: &[Code], view: View<'_>, random: &mut Source, now: Time) -> Self {
        let walked = index.walk(codes);
        let sets = index.sets(&walked.candidates, view.sets, view.hosts);
        let chooser = match &index.spec.pick {
            FilterPick::Policy(policy) => {
                let prepared = Box::new(Prepared::build(policy, 0, &sets, view.hosts, None, None));
                let inner = View { policy, sets: &sets, prepared: &prepared, hosts: view.hosts, since: now };
                Chooser::Policy { scheduler: Box::new(Scheduler::new(inner, random, now)), prepared }
            }
            FilterPick::Rotation => Chooser::List(index.eligible(&walked.candidates)),
            FilterPick::Interleave => {
                Chooser::List(interleave(&index.eligible(&walked.candidates), view.hosts))
            }
        };
        Self { walked, sets, chooser }
    }

    /// Takes over what an update changed; a policy keeps its place.
    fn refresh(&mut self, index: &Index, codes: &[Code], view: View<'_>, random: &mut Source, now: Time) {
        let (FilterPick::Policy(policy), Chooser::Policy { prepared, scheduler }) =
            (&index.spec.pick, &mut self.chooser)
        else {
            *self = Self::new(index, codes, view, random, now);
            return;
        };
        self.walked = index.walk(codes);
        self.sets = index.sets(&self.walked.candidates, view.sets, view.hosts);
        **prepared = Prepared::build(policy, 0, &self.sets, view.hosts, None, Some(prepared));
        let inner = View { policy, sets: &self.sets, prepared, hosts: view.hosts, since: view.since };
        scheduler.refresh(inner, random, now);
    }
}

fn parts<'a>(view: View<'a>) -> Option<&'a Index> {
    match view.policy {
        PolicySpec::Filtered(_) => view.prepared.filters(),
        _ => None,
    }
}

impl Policy for Filtered {
    fn new(view: View<'_>, random: &mut Source, _: Time) -> Self {
        let spec = parts(view).map(|index| &index.spec);
        let rotates = spec.is_some_and(|spec| !matches!(spec.pick, FilterPick::Policy(_)));
        let remembers =
            spec.is_some_and(|spec| spec.stages.iter().any(|stage| stage.rule == StageRule::SameInstance));
        Self {
            // As Spring: somewhere below 1,000.
            position: if rotates { (random.next_u64() % 1000) as u32 } else { 0 },
            last: None,
            remembers,
            children: BTreeMap::new(),
            codes: Vec::new(),
        }
    }

    fn refresh(&mut self, view: View<'_>, random: &mut Source, now: Time) {
        let Some(index) = parts(view) else { return };
        for (codes, child) in &mut self.children {
            child.refresh(index, codes, view, random, now);
        }
    }

    #[inline(never)]
    fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        let index = parts(view)?;
        let call = selection.filters;
        let (values, previous) = call.map_or((&[][..], None), |call| (call.values, call.previous));
        index.codes(values, previous, self.last, &mut self.codes);
        if !self.children.contains_key(&self.codes) {
            if self.children.len() >= MOST_CHILDREN {
                self.children.clear();
            }
            let child = Child::new(index, &self.codes, view, selection.random, selection.now);
            self.children.insert(self.codes.clone(), child);
        }
        let child = self.children.get_mut(&self.codes)?;
        if let Some(call) = call {
            call.told.set(told::told(index, &child.walked, values, selection.now));
        }
        if self.remembers && child.walked.outcomes.iter().any(|(what, _)| *what == StageOutcome::FellBack) {
            self.last = None;
        }
        let chosen = match (&mut child.chooser, &index.spec.pick) {
            (Chooser::Policy { prepared, scheduler }, FilterPick::Policy(policy)) => {
                let inner =
                    View { policy, sets: &child.sets, prepared, hosts: view.hosts, since: view.since };
                scheduler.choose(inner, selection)
            }
            (Chooser::List(list), _) => {
                let position = &mut self.position;
                selection.examine(|selection, _| {
                    let at = match list.as_slice() {
                        [] => return None,
                        [_] => 0,
                        several => {
                            *position = position.wrapping_add(1) & 0x7fff_ffff;
                            *position as usize % several.len()
                        }
                    };
                    let (slot, priority) = list[at];
                    (selection.priority, selection.panic, selection.degraded) = (priority, false, false);
                    Some(slot)
                })
            }
            (Chooser::Policy { .. }, _) => None,
        };
        if self.remembers {
            self.last = chosen.or(self.last);
        }
        chosen
    }

    /// Among the hosts that the stages left to the choice before; a list goes on from where it is.
    fn search(&mut self, view: View<'_>, selection: &mut Selection<'_>, accept: Accept<'_>) -> Option<u32> {
        let index = parts(view)?;
        let child = self.children.get_mut(&self.codes)?;
        let found = match (&mut child.chooser, &index.spec.pick) {
            (Chooser::Policy { prepared, scheduler }, FilterPick::Policy(policy)) => {
                let inner =
                    View { policy, sets: &child.sets, prepared, hosts: view.hosts, since: view.since };
                scheduler.search(inner, selection, accept)
            }
            (Chooser::List(list), _) => {
                let (before, after) =
                    list.split_at((self.position as usize).checked_rem(list.len()).unwrap_or(0));
                let (slot, priority) = after.iter().chain(before).copied().find(|(slot, _)| accept(*slot))?;
                (selection.priority, selection.panic, selection.degraded) = (priority, false, false);
                Some(slot)
            }
            (Chooser::Policy { .. }, _) => None,
        };
        if self.remembers {
            self.last = found.or(self.last);
        }
        found
    }
}

/// Spring's list of weighted hosts (section 6): in rounds, each host in as many as its weight.
fn interleave(hosts: &[(u32, u32)], arena: &HostArena) -> Vec<(u32, u32)> {
    // A list is held in memory; beyond this, shares are kept as well as they fit.
    const MOST: u64 = 100_000;
    let weight = |slot: u32| -> u64 {
        let given = arena.info(slot).and_then(|(_, info)| match info.metadata.lb("weight")? {
            Value::String(text) => Some(text.parse().ok().filter(|n: &i32| *n > 0).map_or(1, |n| n as u64)),
            _ => None,
        });
        given.unwrap_or_else(|| u64::from(arena.weight(slot)))
    };
    let mut weights: Vec<u64> = hosts.iter().map(|(slot, _)| weight(*slot)).collect();
    let divisor = weights.iter().copied().fold(0, common_divisor).max(1);
    let sum: u64 = weights.iter().map(|weight| weight / divisor).sum();
    let divisor = divisor.saturating_mul(sum.div_ceil(MOST).max(1));
    weights.iter_mut().for_each(|weight| *weight = (*weight / divisor).max(1));
    let mut open: Vec<((u32, u32), u64)> = hosts.iter().copied().zip(weights).collect();
    let mut list = Vec::new();
    while !open.is_empty() {
        list.extend(open.iter().map(|(host, _)| *host));
        open.retain_mut(|(_, rest)| {
            *rest -= 1;
            *rest > 0
        });
    }
    list
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
