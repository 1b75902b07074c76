//! The lock of one request: one word, taken by one locked instruction and given back by a store.
//!
//! Two threads meet here only when they use one request at once, and every holder is done within a microsecond,
//! so the loser spins and then yields. A value that its holder parks is out of use: nobody gets at it until its
//! owner, who knows itself alone, takes it again without any locked instruction.
#![allow(unsafe_code)]

use crate::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use crate::sync::{Cell, spin_loop, yield_now};
use std::ops::{Deref, DerefMut};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const PARKED: u32 = 2;

/// A value behind its lock.
#[derive(Default)]
pub(crate) struct Locked<T> {
    word: AtomicU32,
    value: Cell<T>,
}

// SAFETY: the value is reached through a guard alone, and there is one guard at a time.
unsafe impl<T: Send> Sync for Locked<T> {}

/// The value, held.
pub(crate) struct Guard<'a, T> {
    of: &'a Locked<T>,
    /// A model's proof that nobody else has the value.
    #[cfg(loom)]
    alone: Option<loom::cell::MutPtr<T>>,
}

/// Why the value cannot be had now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// Somebody holds it.
    Taken,
    /// It is out of use.
    Parked,
}

impl<T> Locked<T> {
    /// The guard of whoever took the word.
    #[inline]
    fn held(&self) -> Guard<'_, T> {
        Guard {
            of: self,
            #[cfg(loom)]
            alone: Some(self.value.get_mut()),
        }
    }

    /// Waits for the value; `None` when it is out of use.
    #[inline]
    pub(crate) fn lock(&self) -> Option<Guard<'_, T>> {
        match self.word.compare_exchange(FREE, TAKEN, Acquire, Relaxed) {
            Ok(_) => Some(self.held()),
            Err(_) => self.wait(),
        }
    }

    /// The value, if nobody holds it.
    pub(crate) fn try_lock(&self) -> Result<Guard<'_, T>, Busy> {
        // A guard must not even come to be when the value is taken: dropping it would release another's hold.
        match self.word.compare_exchange(FREE, TAKEN, Acquire, Relaxed) {
            Ok(_) => Ok(self.held()),
            Err(PARKED) => Err(Busy::Parked),
            Err(_) => Err(Busy::Taken),
        }
    }

    #[cold]
    fn wait(&self) -> Option<Guard<'_, T>> {
        let mut rounds = 0_u32;
        loop {
            match self.word.compare_exchange_weak(FREE, TAKEN, Acquire, Relaxed) {
                Ok(_) => return Some(self.held()),
                Err(PARKED) => return None,
                Err(_) => {}
            }
            rounds += 1;
            if rounds < 64 {
                spin_loop();
            } else {
                // The holder may have lost its core.
                yield_now();
            }
        }
    }

    /// The value for its owner: whoever parked it, or was handed it by who did.
    ///
    /// # Safety
    /// No other thread may call this for the same value until the guard is dropped or parked.
    #[inline]
    pub(crate) unsafe fn own(&self) -> Guard<'_, T> {
        // A parked value is locked for everybody else, so it needs no locked instruction.
        if self.word.load(Acquire) == PARKED {
            return self.held();
        }
        self.lock().unwrap_or_else(|| {
            // Parked meanwhile: what its last holder wrote is seen from here on.
            self.word.load(Acquire);
            self.held()
        })
    }
}

impl<T> Guard<'_, T> {
    /// Puts the value out of use instead of giving it back.
    #[inline]
    pub(crate) fn park(mut self) {
        self.let_go();
        self.of.word.store(PARKED, Release);
        std::mem::forget(self);
    }

    /// Before anybody else may have the value.
    #[inline]
    fn let_go(&mut self) {
        #[cfg(loom)]
        drop(self.alone.take());
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one.
        #[cfg(not(loom))]
        return unsafe { &*self.of.value.get() };
        #[cfg(loom)]
        // SAFETY: as above.
        return unsafe { self.alone.as_ref().expect("held").deref() };
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one, and it is borrowed mutably.
        #[cfg(not(loom))]
        return unsafe { &mut *self.of.value.get() };
        #[cfg(loom)]
        // SAFETY: as above.
        return unsafe { self.alone.as_ref().expect("held").deref() };
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.let_go();
        self.of.word.store(FREE, Release);
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
                        *cell.lock().unwrap() += 1;
                    }
                });
            }
        });
        let guard = cell.lock().unwrap();
        assert_eq!(*guard, 40_000);
        assert_eq!(cell.try_lock().err(), Some(Busy::Taken));
        assert_eq!(cell.try_lock().err(), Some(Busy::Taken), "a refused attempt leaves the holder alone");
        drop(guard);
        assert!(cell.try_lock().is_ok());
    }

    #[test]
    fn a_parked_value_is_its_owners_alone() {
        let cell = Locked::<u64>::default();
        let mut guard = cell.lock().unwrap();
        *guard = 7;
        guard.park();
        assert!(cell.lock().is_none());
        assert_eq!(cell.try_lock().err(), Some(Busy::Parked));
        // SAFETY: this thread is the only one.
        let mut owner = unsafe { cell.own() };
        assert!(cell.lock().is_none(), "still out of use while its owner works");
        *owner += 1;
        drop(owner);
        assert_eq!(*cell.lock().unwrap(), 8);
        // SAFETY: as above.
        assert_eq!(*unsafe { cell.own() }, 8, "a value that was not parked is locked as ever");
    }
}
