//! The lock of one request: a byte's worth of word, taken by one locked instruction and given back by a store.
//!
//! Two threads meet here only when they use one request at once, and every holder is done within a microsecond,
//! so the loser spins and then yields.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A value behind its lock.
#[derive(Default)]
pub(crate) struct Locked<T> {
    taken: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard alone, and there is one guard at a time.
unsafe impl<T: Send> Sync for Locked<T> {}

/// The value, held.
pub(crate) struct Guard<'a, T> {
    of: &'a Locked<T>,
}

impl<T> Locked<T> {
    /// Waits for the value.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        if self.taken.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            self.wait();
        }
        Guard { of: self }
    }

    /// The value, if nobody holds it.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        // A guard must not even come to be when the value is taken: dropping it would release another's hold.
        match self.taken.compare_exchange(0, 1, Acquire, Relaxed) {
            Ok(_) => Some(Guard { of: self }),
            Err(_) => None,
        }
    }

    #[cold]
    fn wait(&self) {
        let mut rounds = 0_u32;
        while self.taken.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
            rounds += 1;
            if rounds < 64 {
                std::hint::spin_loop();
            } else {
                // The holder may have lost its core.
                std::thread::yield_now();
            }
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one, and it is borrowed mutably.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.of.taken.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time() {
        let cell = Locked::<u64>::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        *cell.lock() += 1;
                    }
                });
            }
        });
        let guard = cell.lock();
        assert_eq!(*guard, 40_000);
        assert!(cell.try_lock().is_none());
        assert!(cell.try_lock().is_none(), "a refused attempt leaves the holder alone");
        drop(guard);
        assert!(cell.try_lock().is_some());
    }
}
