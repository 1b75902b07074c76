//! Request slots: found by index, reused for ever, each with a lock of its own.

use super::cell::Locked;
use super::state::State;
use crate::arena::Arena;
use crate::breaker::Grant;
use crate::ids::MAX_REQUESTS;
use crate::sync::{Mutex, MutexGuard};
use std::sync::atomic::AtomicU64;

/// One request's place.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) state: Locked<State>,
    /// Written by whoever frees a stream for this request; see `breaker::queue`.
    pub(crate) grant: Grant,
    /// Comes back when this request is ready; readable without the lock.
    pub(crate) user_data: AtomicU64,
}

/// All slots of an engine.
pub(crate) struct Slab {
    slots: Arena<Slot>,
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    list: Vec<u32>,
    next: u32,
}

/// The list of free slots, held over a fork.
pub(crate) struct Hold<'a> {
    _free: MutexGuard<'a, Free>,
}

/// How many free slots a worker fetches or gives back at once.
const BATCH: usize = 32;

impl Default for Slab {
    fn default() -> Self {
        Self { slots: Arena::new(), free: Mutex::default() }
    }
}

impl Slab {
    /// The slot of an id that was given out.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index)
    }

    /// Fills a worker's stock of free slots. `false` when no slot is left.
    #[cold]
    pub(crate) fn fetch(&self, stock: &mut Vec<u32>, first_generation: u32) -> bool {
        let mut free = self.free.lock();
        let keep = free.list.len().saturating_sub(BATCH);
        stock.extend(free.list.drain(keep..));
        while stock.len() < BATCH && free.next < MAX_REQUESTS {
            let index = free.next;
            free.next += 1;
            self.slots.reach(index).state.lock().generation = first_generation;
            stock.push(index);
        }
        // The lowest index on top: a quiet engine stays within few slots.
        stock.sort_unstable_by(|a, b| b.cmp(a));
        !stock.is_empty()
    }

    /// Takes what a worker has over `keep`.
    #[cold]
    pub(crate) fn give_back(&self, stock: &mut Vec<u32>, keep: usize) {
        if stock.len() > keep {
            self.free.lock().list.extend(stock.drain(keep..));
        }
    }

    /// Every slot that was ever given out.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, &Slot)> {
        let next = self.free.lock().next;
        (0..next).filter_map(|index| Some((index, self.slots.get(index)?)))
    }

    /// Slots in use, as far as workers' stocks tell, but for those that are `lost`.
    pub(crate) fn count(&self, lost: impl Fn(u32) -> bool) -> u64 {
        let live = |(index, slot): &(u32, &Slot)| !lost(*index) && slot.state.lock().phase.is_live();
        self.each().filter(live).count() as u64
    }

    /// Empties every slot and forgets all stocks (after a fork). Slots whose lock cannot be had are left out of
    /// use and told in `lost`.
    pub(crate) fn renew(&self, lost: &mut Vec<u32>) {
        let mut free = Vec::new();
        for (index, slot) in self.each() {
            let Some(mut state) = slot.state.try_lock() else {
                lost.push(index);
                continue;
            };
            let generation = (state.generation + 1) % crate::ids::GENERATIONS;
            state.reset(crate::clock::Time(0));
            state.phase = super::state::Phase::Free;
            state.generation = generation;
            slot.grant.set(crate::breaker::Place::None);
            free.push(index);
        }
        free.reverse();
        self.free.lock().list = free;
    }

    /// Holds the list of free slots.
    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold { _free: self.free.lock() }
    }

    /// Bound of a worker's stock.
    pub(crate) const fn stock_limit() -> usize {
        4 * BATCH
    }

    /// What a worker keeps when it is over the bound.
    pub(crate) const fn stock_kept() -> usize {
        2 * BATCH
    }
}
