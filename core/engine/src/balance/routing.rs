//! From a draw to a list of hosts (section 9): priority, panic, then which part of the priority.

use super::locality_weighted::LocalityWeights;
use super::zone::Routed;
use super::{Accept, Selection, View};
use crate::random::{Random, Source};
use crate::sets::HostSet;
use crate::spec::LocalityBalancing;
use crate::stats::Counter;

/// One list of hosts of a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    All,
    Healthy,
    Degraded,
    LocalityHealthy(u32),
    LocalityDegraded(u32),
}

impl List {
    /// Every list of a priority, in the order of [`List::number`].
    pub(super) fn each(set: &HostSet) -> impl Iterator<Item = Self> + use<> {
        let localities = 0..set.localities.len() as u32;
        let flat = [Self::All, Self::Healthy, Self::Degraded];
        flat.into_iter()
            .chain(localities.flat_map(|at| [Self::LocalityHealthy(at), Self::LocalityDegraded(at)]))
    }

    /// A number for state that is kept by list; the same list has the same number after any update.
    #[inline]
    pub(super) const fn number(self) -> usize {
        match self {
            Self::All => 0,
            Self::Healthy => 1,
            Self::Degraded => 2,
            Self::LocalityHealthy(at) => 3 + 2 * at as usize,
            Self::LocalityDegraded(at) => 4 + 2 * at as usize,
        }
    }

    /// The hosts of this list.
    #[inline]
    pub(super) fn of(self, set: &HostSet) -> &[u32] {
        match self {
            Self::All => &set.hosts,
            Self::Healthy => &set.healthy,
            Self::Degraded => &set.degraded,
            Self::LocalityHealthy(at) => set.localities.get(at as usize).map_or(&[], |l| &l.healthy),
            Self::LocalityDegraded(at) => set.localities.get(at as usize).map_or(&[], |l| &l.degraded),
        }
    }
}

/// Chooses lists; keeps the schedules over localities.
pub(super) struct Routing {
    fail_traffic_on_panic: bool,
    /// By priority, under locality weighting only.
    localities: Option<Vec<Localities>>,
}

#[derive(Default)]
struct Localities {
    /// Of the set that the weights come from.
    version: Option<u64>,
    weights: LocalityWeights,
}

impl Routing {
    /// One draw per priority under locality weighting, else none.
    pub(super) fn new(balancing: &LocalityBalancing, view: View<'_>, random: &mut Source) -> Self {
        let (fail_traffic_on_panic, localities) = match balancing {
            LocalityBalancing::None => (false, None),
            LocalityBalancing::Weighted => (false, Some(Vec::new())),
            LocalityBalancing::ZoneAware(zone) => (zone.fail_traffic_on_panic, None),
        };
        let mut routing = Self { fail_traffic_on_panic, localities };
        routing.refresh(view, random);
        routing
    }

    /// Rebuilds the localities of priorities that changed, each with a new seed.
    pub(super) fn refresh(&mut self, view: View<'_>, random: &mut Source) {
        let Some(localities) = &mut self.localities else { return };
        localities.resize_with(view.sets.len(), Localities::default);
        for (state, set) in localities.iter_mut().zip(view.sets) {
            if state.version != Some(set.version) {
                state.version = Some(set.version);
                state.weights = LocalityWeights::new(set, random.next_u64());
            }
        }
    }

    /// The priority and list that `word` leads to; `None` when a panicking priority refuses.
    #[inline]
    pub(super) fn list(
        &mut self,
        view: View<'_>,
        selection: &mut Selection<'_>,
        word: u64,
    ) -> Option<(u32, List)> {
        if view.prepared.is_simple() && self.localities.is_none() && selection.load.is_none() {
            (selection.priority, selection.panic, selection.degraded) = (0, false, false);
            return Some((0, List::Healthy));
        }
        self.list_by_load(view, selection, word)
    }

    fn list_by_load(
        &mut self,
        view: View<'_>,
        selection: &mut Selection<'_>,
        word: u64,
    ) -> Option<(u32, List)> {
        let (priority, degraded) = match selection.load {
            None => view.prepared.priority_for(word),
            Some(load) => load.choose(word),
        };
        selection.priority = priority;
        selection.panic = view.prepared.panic_at(priority);
        selection.degraded = degraded && !selection.panic;
        if selection.panic {
            selection.counters.count(Counter::LbHealthyPanic);
            return (!self.fail_traffic_on_panic).then_some((priority, List::All));
        }
        if let Some(localities) = &mut self.localities {
            let picked = localities.get_mut(priority as usize).and_then(|state| state.weights.pick(degraded));
            if let Some(at) = picked {
                let list = if degraded { List::LocalityDegraded(at) } else { List::LocalityHealthy(at) };
                return Some((priority, list));
            }
        }
        if priority == 0
            && let Some(zone) = view.prepared.zone()
        {
            match zone.route(selection) {
                Routed::Flat => {}
                Routed::Refused => return None,
                Routed::Locality(at) if degraded => return Some((0, List::LocalityDegraded(at))),
                Routed::Locality(at) => return Some((0, List::LocalityHealthy(at))),
            }
        }
        Some((priority, if degraded { List::Degraded } else { List::Healthy }))
    }
}

/// What a search found: hosts of one list, or of its parts that this policy uses.
pub(super) struct Found {
    pub(super) priority: u32,
    /// Whose state acts: turns, schedules.
    pub(super) list: List,
    /// At least one.
    pub(super) hosts: Vec<u32>,
}

impl Routing {
    /// Looks through every list that a selection may lead to, beginning with where this one led. What it leaves in
    /// the selection fits the hosts found.
    #[cold]
    pub(super) fn search(
        &self,
        view: View<'_>,
        selection: &mut Selection<'_>,
        accept: Accept<'_>,
    ) -> Option<Found> {
        let mut places = view.prepared.places(selection.load);
        // The sort is stable: the rest stays in the order of the load.
        let here = (selection.priority, selection.degraded);
        places.sort_by_key(|place| (*place != here, place.0 != here.0));
        for (priority, degraded) in places {
            let Some(set) = view.sets.get(priority as usize) else { continue };
            let panic = view.prepared.panic_at(priority);
            if panic && self.fail_traffic_on_panic {
                continue;
            }
            let lists: Vec<List> = match (panic, degraded) {
                (true, _) => vec![List::All],
                (false, degraded) => self.lists_of(view, priority, degraded),
            };
            for list in lists {
                let hosts: Vec<u32> = list.of(set).iter().copied().filter(|slot| accept(*slot)).collect();
                if !hosts.is_empty() {
                    (selection.priority, selection.panic) = (priority, panic);
                    selection.degraded = degraded && !panic;
                    return Some(Found { priority, list, hosts });
                }
            }
        }
        None
    }

    /// The lists of a priority that does not panic, those that get the most first.
    fn lists_of(&self, view: View<'_>, priority: u32, degraded: bool) -> Vec<List> {
        let of = |at: u32| if degraded { List::LocalityDegraded(at) } else { List::LocalityHealthy(at) };
        let weights = self.localities.as_ref().and_then(|all| all.get(priority as usize));
        if let Some(weighed) = weights.and_then(|state| state.weights.by_weight(degraded)) {
            return weighed.into_iter().map(of).collect();
        }
        let zone = view.prepared.zone().filter(|_| priority == 0);
        let own = zone.and_then(|zone| zone.own());
        let flat = if degraded { List::Degraded } else { List::Healthy };
        match own {
            None => vec![flat],
            Some(only) if only => vec![of(0)],
            Some(_) => vec![of(0), flat],
        }
    }
}
