//! What threads meet at: atomics, cells and locks, the standard library's or, under `cfg(loom)`, those whose every
//! interleaving a model tries (`make loom`).
//!
//! Unlocking a lock of the standard library never hands it to a thread that a `fork` left behind (queueing locks do). There
//! is no poisoning: a panic under a lock is contained by who catches it, request by request.

use std::fmt;
use std::sync::{PoisonError, TryLockError};

#[cfg(loom)]
use loom::sync as given;
#[cfg(not(loom))]
use std::sync as given;

pub(crate) use given::atomic;

#[cfg(loom)]
pub(crate) use loom::{hint::spin_loop, thread::yield_now};
#[cfg(not(loom))]
pub(crate) use std::{hint::spin_loop, thread::yield_now};

pub use given::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// Mutual exclusion.
#[derive(Default)]
pub struct Mutex<T>(given::Mutex<T>);

impl<T> Mutex<T> {
    /// Around a value.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self(given::Mutex::new(value))
    }

    /// Around a value.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self(given::Mutex::new(value))
    }

    /// Waits for it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does not wait.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Nobody else can hold it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

/// Many readers or one writer.
#[derive(Default)]
pub struct RwLock<T>(given::RwLock<T>);

impl<T> RwLock<T> {
    /// Around a value.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self(given::RwLock::new(value))
    }

    /// Around a value.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self(given::RwLock::new(value))
    }

    /// Waits for it, to read.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for it, to write.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A value that its user guards by other means; a model tells when two get at it at once.
#[cfg(loom)]
pub(crate) type Cell<T> = loom::cell::UnsafeCell<T>;
#[cfg(not(loom))]
pub(crate) type Cell<T> = std::cell::UnsafeCell<T>;
