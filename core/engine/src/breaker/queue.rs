//! Who waits for a stream, oldest first, per host and routing priority (`spec/breakers-and-health.md` A3, A6).
//!
//! The queue holds request ids. A grant is written into the waiter's [`Grant`] cell under the queue lock, never
//! into its state: whoever frees a stream takes no other request's lock.

use crate::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::collections::{BTreeMap, VecDeque};

/// What became of a place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Place {
    /// No place.
    None = 0,
    /// Still waiting.
    Waiting = 1,
    /// A stream is ours.
    Granted = 2,
    /// The turn came, and `max_requests` was full.
    Overflow = 3,
    /// The host is gone: choose anew.
    HostGone = 4,
}

/// The cell through which a waiter learns of its grant.
#[derive(Default)]
pub(crate) struct Grant(AtomicU32);

impl Grant {
    #[inline]
    pub(crate) fn get(&self) -> Place {
        match self.0.load(Acquire) {
            1 => Place::Waiting,
            2 => Place::Granted,
            3 => Place::Overflow,
            4 => Place::HostGone,
            _ => Place::None,
        }
    }

    #[inline]
    pub(crate) fn set(&self, place: Place) {
        self.0.store(place as u32, Release);
    }

    /// Leaves `from` for `to`; `false` when it was not there.
    pub(crate) fn swap(&self, from: Place, to: Place) -> bool {
        self.0.compare_exchange(from as u32, to as u32, AcqRel, Acquire).is_ok()
    }
}

/// A host's slot and a routing priority.
pub(crate) type PoolKey = (u32, u8);

/// One place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its request.
    pub(crate) request: u64,
    /// Counts up over all queues of the cluster.
    turn: u64,
    /// A lease that was counted as pending and went on its way: nobody waits for it.
    pub(crate) counted: bool,
}

/// All queues of a cluster.
#[derive(Default)]
pub(crate) struct Queues {
    by_pool: BTreeMap<PoolKey, VecDeque<Entry>>,
    /// The turn that comes next.
    turns: u64,
    /// Connections that are not up yet (`connections: strict`).
    connecting: BTreeMap<PoolKey, u32>,
}

impl Queues {
    pub(crate) fn push(&mut self, pool: PoolKey, request: u64, counted: bool) {
        let entry = Entry { request, turn: self.turns, counted };
        self.turns += 1;
        self.by_pool.entry(pool).or_default().push_back(entry);
    }

    /// The turn of the oldest in a pool.
    pub(crate) fn oldest(&self, pool: PoolKey) -> Option<u64> {
        Some(self.by_pool.get(&pool)?.front()?.turn)
    }

    /// Pools where somebody queues, each with the turn of its oldest.
    pub(crate) fn pools(&self) -> impl Iterator<Item = (u64, PoolKey)> + '_ {
        self.by_pool.iter().filter_map(|(pool, queue)| Some((queue.front()?.turn, *pool)))
    }

    /// The oldest waiter of a pool.
    pub(crate) fn pop(&mut self, pool: PoolKey) -> Option<Entry> {
        let queue = self.by_pool.get_mut(&pool)?;
        let oldest = queue.pop_front();
        if queue.is_empty() {
            self.by_pool.remove(&pool);
        }
        oldest
    }

    /// Takes a request out of the middle; `false` when it is not there.
    pub(crate) fn remove(&mut self, pool: PoolKey, request: u64) -> bool {
        let Some(queue) = self.by_pool.get_mut(&pool) else { return false };
        let Some(at) = queue.iter().position(|entry| entry.request == request) else { return false };
        queue.remove(at);
        if queue.is_empty() {
            self.by_pool.remove(&pool);
        }
        true
    }

    /// Everybody who really waits in a pool, taken out oldest first; counted leases stay.
    pub(crate) fn take_waiting(&mut self, pool: PoolKey) -> Vec<u64> {
        let Some(queue) = self.by_pool.get_mut(&pool) else { return Vec::new() };
        let waiting = queue.iter().filter(|entry| !entry.counted).map(|entry| entry.request).collect();
        queue.retain(|entry| entry.counted);
        if queue.is_empty() {
            self.by_pool.remove(&pool);
        }
        waiting
    }

    /// Connections of a pool that are not up yet.
    pub(crate) fn connecting(&self, pool: PoolKey) -> u32 {
        self.connecting.get(&pool).copied().unwrap_or(0)
    }

    pub(crate) fn add_connecting(&mut self, pool: PoolKey) {
        *self.connecting.entry(pool).or_default() += 1;
    }

    /// One of them is up, or failed. `false` when there is none.
    pub(crate) fn take_connecting(&mut self, pool: PoolKey) -> bool {
        let Some(count) = self.connecting.get_mut(&pool) else { return false };
        *count -= 1;
        if *count == 0 {
            self.connecting.remove(&pool);
        }
        true
    }

    /// Forgets everybody (after a fork).
    pub(crate) fn clear(&mut self) {
        self.connecting.clear();
        self.by_pool.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_first_and_removal() {
        let mut queues = Queues::default();
        for request in [1, 2, 3] {
            queues.push((0, 0), request, request == 3);
        }
        queues.push((7, 1), 4, false);
        assert_eq!(queues.pools().collect::<Vec<_>>(), [(0, (0, 0)), (3, (7, 1))]);
        assert!(queues.remove((0, 0), 2) && !queues.remove((0, 0), 2) && !queues.remove((1, 0), 1));
        assert_eq!(queues.take_waiting((0, 0)), [1]);
        assert_eq!((queues.oldest((0, 0)), queues.oldest((1, 0))), (Some(2), None));
        assert_eq!(queues.pop((0, 0)), Some(Entry { request: 3, turn: 2, counted: true }));
        assert_eq!(queues.pop((0, 0)), None);
    }
}
