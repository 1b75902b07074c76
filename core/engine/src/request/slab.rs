//! Request slots: found by index, reused for ever, each with a lock of its own.
#![allow(unsafe_code)]

use super::cell::{Busy, Guard, Locked};
use super::state::State;
use crate::arena::Arena;
use crate::breaker::Grant;
use crate::ids::{GENERATIONS, MAX_REQUESTS};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::sync::{Mutex, MutexGuard};
use std::sync::Arc;

/// One request's place.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) state: Locked<State>,
    /// Written by whoever frees a stream for this request; see `breaker::queue`.
    pub(crate) grant: Grant,
    /// Comes back when this request is ready; readable without the lock.
    pub(crate) user_data: AtomicU64,
    /// Of the request that is here, or of the next one. Written by the lock's holder.
    generation: AtomicU32,
}

impl Slot {
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Relaxed)
    }

    /// Every id of this slot that was given out is stale from here on.
    #[inline]
    pub(crate) fn next_generation(&self) {
        self.generation.store((self.generation() + 1) % GENERATIONS, Relaxed);
    }
}

/// A slot that is held.
pub(crate) struct Taken<'a> {
    pub(crate) index: u32,
    pub(crate) slot: &'a Slot,
    pub(crate) state: Guard<'a, State>,
}

/// All slots of an engine.
pub(crate) struct Slab {
    slots: Arena<Box<[Slot]>>,
    free: Mutex<Free>,
    /// Moves when all stocks are void.
    era: AtomicU32,
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

/// A worker's own free slots. An index is in one stock or in the slab's list, never in two: it comes here when
/// its request ends, and leaves when the next one begins.
pub(crate) struct Stock {
    slab: Arc<Slab>,
    list: Vec<u32>,
    era: u32,
}

impl Stock {
    pub(crate) fn new(slab: Arc<Slab>) -> Self {
        let era = slab.era.load(Relaxed);
        Self { slab, list: Vec::new(), era }
    }

    #[inline]
    fn is_of(&self, slab: &Slab) -> bool {
        std::ptr::eq(&raw const *self.slab, slab)
    }

    /// The slot of a request that ended just now, by whoever holds its lock.
    #[inline]
    pub(crate) fn put(&mut self, index: u32, slab: &Slab) {
        if !self.is_of(slab) {
            return;
        }
        self.list.push(index);
        if self.list.len() > 4 * BATCH {
            self.give_back(2 * BATCH);
        }
    }

    /// Gives back to the slab what is over `keep`.
    #[cold]
    fn give_back(&mut self, keep: usize) {
        if self.era == self.slab.era.load(Relaxed) && self.list.len() > keep {
            self.slab.free.lock().list.extend(self.list.drain(keep..));
        }
    }

    /// Forgets all slots (after a fork).
    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        self.give_back(0);
    }
}

/// How many free slots a worker fetches or gives back at once.
const BATCH: usize = 32;

impl Default for Slab {
    fn default() -> Self {
        Self { slots: Arena::new(), free: Mutex::default(), era: AtomicU32::new(0) }
    }
}

impl Slab {
    /// The slot of an id that was given out.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Slot> {
        let (chunk, at) = self.slots.get(index)?;
        chunk.get(at)
    }

    /// A free slot, held. `None` when no slot is left, or the stock is another slab's.
    #[inline]
    pub(crate) fn take(&self, stock: &mut Stock, first_generation: u32) -> Option<Taken<'_>> {
        if !stock.is_of(self) {
            return None;
        }
        let index = match stock.list.pop() {
            Some(index) if stock.era == self.era.load(Relaxed) => index,
            _ => self.fetch(stock, first_generation)?,
        };
        let slot = self.get(index)?;
        // SAFETY: the index was in this stock alone, so no other thread can take the slot for its own.
        let state = unsafe { slot.state.own() };
        Some(Taken { index, slot, state })
    }

    /// Fills a worker's stock of free slots, and takes one.
    #[cold]
    fn fetch(&self, stock: &mut Stock, first_generation: u32) -> Option<u32> {
        let mut free = self.free.lock();
        let era = self.era.load(Relaxed);
        if stock.era != era {
            // What it holds was given to others in a fork.
            stock.list.clear();
            stock.era = era;
        }
        let stock = &mut stock.list;
        let keep = free.list.len().saturating_sub(BATCH);
        stock.extend(free.list.drain(keep..));
        while stock.len() < BATCH && free.next < MAX_REQUESTS {
            let index = free.next;
            free.next += 1;
            let (chunk, at) = self.slots.reach(index);
            chunk[at].generation.store(first_generation, Relaxed);
            stock.push(index);
        }
        // The lowest index on top: a quiet engine stays within few slots.
        stock.sort_unstable_by(|a, b| b.cmp(a));
        stock.pop()
    }

    /// Every slot that was ever given out.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, &Slot)> {
        let next = self.free.lock().next;
        (0..next).filter_map(|index| Some((index, self.get(index)?)))
    }

    /// Slots in use, as far as workers' stocks tell, but for those that are `lost`.
    pub(crate) fn count(&self, lost: impl Fn(u32) -> bool) -> u64 {
        let live = |(index, slot): &(u32, &Slot)| {
            !lost(*index) && slot.state.lock().is_some_and(|state| state.phase.is_live())
        };
        self.each().filter(live).count() as u64
    }

    /// Empties every slot and forgets all stocks (after a fork). Slots whose lock cannot be had are left out of
    /// use and told in `lost`.
    pub(crate) fn renew(&self, lost: &mut Vec<u32>) {
        let mut free = Vec::new();
        for (index, slot) in self.each() {
            // A parked slot was in a stock of the parent's; those are forgotten, so it is nobody's any more.
            match slot.state.try_lock() {
                Ok(mut state) => state.empty(),
                Err(Busy::Parked) => {}
                Err(Busy::Taken) => {
                    lost.push(index);
                    continue;
                }
            }
            slot.next_generation();
            slot.grant.set(crate::breaker::Place::None);
            free.push(index);
        }
        free.reverse();
        let mut list = self.free.lock();
        list.list = free;
        self.era.fetch_add(1, Relaxed);
    }

    /// Holds the list of free slots.
    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold { _free: self.free.lock() }
    }
}
