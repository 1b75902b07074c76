//! Slots that are reached by index from any thread, grow without moving, and are never given back to the system.

use std::sync::OnceLock;

const FIRST: usize = 64;
const CHUNKS: usize = 26;

/// Chunk k holds 64 * 2^k slots, so an index names its chunk by its highest bit and small engines stay small.
pub(crate) struct Arena<T> {
    chunks: [OnceLock<Box<[T]>>; CHUNKS],
}

impl<T: Default> Arena<T> {
    pub(crate) const fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    #[inline]
    fn locate(index: u32) -> (usize, usize) {
        let shifted = index as usize + FIRST;
        let chunk = (shifted.ilog2() - FIRST.ilog2()) as usize;
        (chunk, shifted - (FIRST << chunk))
    }

    /// The slot, when its chunk exists.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (chunk, at) = Self::locate(index);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    /// A slot that is known to exist.
    #[inline]
    pub(crate) fn reach_existing(&self, index: u32) -> &T {
        let (chunk, at) = Self::locate(index);
        &self.chunks[chunk].get().expect("a slot that was given out lies in a chunk that was made")[at]
    }

    /// The slot; makes its chunk when it is the first one there.
    pub(crate) fn reach(&self, index: u32) -> &T {
        let (chunk, at) = Self::locate(index);
        let chunk = self.chunks[chunk]
            .get_or_init(|| std::iter::repeat_with(T::default).take(FIRST << chunk).collect());
        &chunk[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn every_index_has_its_own_slot() {
        let arena = Arena::<AtomicU32>::new();
        assert!(arena.get(0).is_none());
        for index in 0..10_000 {
            arena.reach(index).store(index, Relaxed);
        }
        for index in 0..10_000 {
            assert_eq!(arena.get(index).unwrap().load(Relaxed), index);
        }
        assert!(arena.get(1 << 24).is_none());
    }
}
