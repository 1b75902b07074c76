//! ring_hash, maglev (sections 18.4 and 21) and rendezvous_hash: the request's hash leads into a structure that all workers share.

use super::prepared::{Kept, Place};
use super::{Accept, Policy, Selection, View};
use crate::clock::Time;
use crate::hash::bounded_load;
use crate::random::{Random as _, Source};
use crate::stats::Counter;
use std::marker::PhantomData;

/// A policy over structures of one kind.
pub(super) struct Consistent<S> {
    /// Percent; 0 = load does not matter.
    balance_factor: u32,
    /// Room for the order of probes, so that a choice allocates nothing.
    order: Vec<u32>,
    kind: PhantomData<fn() -> S>,
}

impl<S: Kept> Policy for Consistent<S> {
    fn new(view: View<'_>, random: &mut Source, now: Time) -> Self {
        let balance_factor = view.policy.hashing().map_or(0, |hashing| hashing.balance_factor);
        let mut policy = Self { balance_factor, order: Vec::new(), kind: PhantomData };
        policy.refresh(view, random, now);
        policy
    }

    fn refresh(&mut self, view: View<'_>, _: &mut Source, _: Time) {
        if self.balance_factor > 0 {
            self.order.clear();
            self.order.reserve(S::of(view.prepared).map_or(0, |arrangement| arrangement.most_members()));
        }
    }

    #[inline(never)]
    fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        let hash = match selection.hash {
            Some(hash) => hash,
            None => selection.random.next_u64(),
        };
        // Priority and hash hold for all candidates. That degraded hosts are meant does not matter here: they are
        // in no structure, so the priority answers with what healthy hosts it has.
        let (priority, _) = view.prepared.priority_for(hash);
        selection.priority = priority;
        selection.panic = view.prepared.panic_at(priority);
        selection.degraded = false;
        if selection.panic {
            selection.counters.count(Counter::LbHealthyPanic);
        }
        let place = S::of(view.prepared)?.get(priority)?;
        selection.examine(|selection, attempt| {
            let first = place.structure.pick(hash, attempt)?;
            let host = if self.balance_factor == 0 {
                first
            } else {
                self.within_bounds(first, hash, place, view, selection.cluster_active)
            };
            place.members.slots.get(host as usize).copied()
        })
    }

    /// From where the hash leads onwards, in its own priority before the others.
    fn search(&mut self, view: View<'_>, selection: &mut Selection<'_>, accept: Accept<'_>) -> Option<u32> {
        let hash = selection.hash.unwrap_or_else(|| selection.random.next_u64());
        let mut places = view.prepared.places(selection.load);
        places.sort_by_key(|place| place.0 != selection.priority);
        for (priority, _) in places {
            let Some(place) = S::of(view.prepared).and_then(|all| all.get(priority)) else { continue };
            let slots = &place.members.slots;
            let found = place
                .structure
                .find(hash, &mut |host| slots.get(host as usize).is_some_and(|slot| accept(*slot)));
            if let Some(slot) = found.and_then(|host| slots.get(host as usize)) {
                selection.priority = priority;
                selection.panic = view.prepared.panic_at(priority);
                return Some(*slot);
            }
        }
        None
    }
}

impl<S: Kept> Consistent<S> {
    fn within_bounds(
        &mut self,
        first: u32,
        hash: u64,
        place: &Place<S>,
        view: View<'_>,
        cluster_active: u32,
    ) -> u32 {
        let members = &place.members;
        let total = bounded_load::total_slots(cluster_active, self.balance_factor);
        bounded_load::choose(first, members.slots.len() as u32, hash, &mut self.order, |host| {
            let active = view.hosts.load(members.slots[host as usize]).active();
            bounded_load::load_factor(active, total, members.weights[host as usize])
        })
    }
}
