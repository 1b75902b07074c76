//! Slots that are reached by index from any thread, grow without moving, and are never given back to the system.

use std::sync::OnceLock;

/// A model makes no more than it uses.
const FIRST: usize = if cfg!(loom) { 2 } else { 64 };
const CHUNKS: usize = 26;

/// A run of slots, in one column or several.
pub(crate) trait Chunk {
    /// That many empty slots.
    fn of(slots: usize) -> Self;
}

impl<T: Default> Chunk for Box<[T]> {
    fn of(slots: usize) -> Self {
        std::iter::repeat_with(T::default).take(slots).collect()
    }
}

/// Chunk k holds 64 * 2^k slots, so an index names its chunk by its highest bit and small engines stay small.
pub(crate) struct Arena<C> {
    chunks: [OnceLock<C>; CHUNKS],
}

impl<C: Chunk> Arena<C> {
    pub(crate) const fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// Number of the chunk, and the place in it.
    #[inline]
    fn locate(index: u32) -> (usize, usize) {
        let shifted = index as usize + FIRST;
        let top = shifted.ilog2();
        ((top - FIRST.ilog2()) as usize, shifted ^ (1 << top))
    }

    /// The chunk of a slot and the place in it, when that chunk exists.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<(&C, usize)> {
        let (chunk, at) = Self::locate(index);
        Some((self.chunks.get(chunk)?.get()?, at))
    }

    /// The same for a slot that is known to exist.
    #[inline]
    pub(crate) fn reach_existing(&self, index: u32) -> (&C, usize) {
        self.get(index).expect("a slot that was given out lies in a chunk that was made")
    }

    /// The same; makes the chunk when the slot is the first one there.
    pub(crate) fn reach(&self, index: u32) -> (&C, usize) {
        let (chunk, at) = Self::locate(index);
        (self.chunks[chunk].get_or_init(|| C::of(FIRST << chunk)), at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn every_index_has_its_own_slot() {
        let arena = Arena::<Box<[AtomicU32]>>::new();
        assert!(arena.get(0).is_none());
        for index in 0..10_000 {
            let (chunk, at) = arena.reach(index);
            chunk[at].store(index, Relaxed);
        }
        for index in 0..10_000 {
            let (chunk, at) = arena.reach_existing(index);
            assert_eq!(chunk[at].load(Relaxed), index);
        }
        assert!(arena.get(1 << 24).is_none());
        assert!(arena.get(u32::MAX).is_none());
    }
}
