//! Who waits for a turn, by request id (unique in the process), and who tells them.
//!
//! A waker is a Python callable without arguments. None is ever called, or dropped, under the lock.

use nexthop::raw::{self, Ready};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

static WAITERS: Mutex<BTreeMap<u64, Py<PyAny>>> = Mutex::new(BTreeMap::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn waiters() -> MutexGuard<'static, BTreeMap<u64, Py<PyAny>>> {
    WAITERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on `waker` is called once when this request may go on.
pub(crate) fn add(request: u64, waker: Py<PyAny>) {
    let mut map = waiters();
    let old = map.insert(request, waker);
    COUNT.store(map.len(), Relaxed);
    drop(map);
    drop(old);
}

/// Nobody waits for this request any more.
pub(crate) fn remove(request: u64) -> Option<Py<PyAny>> {
    let mut map = waiters();
    let waker = map.remove(&request);
    COUNT.store(map.len(), Relaxed);
    waker
}

/// Forgets everybody; a child process has other requests under the same numbers.
pub(crate) fn clear() {
    let all = std::mem::take(&mut *waiters());
    COUNT.store(0, Relaxed);
    drop(all);
}

/// Tells whoever waits for this request.
#[inline]
pub(crate) fn wake_request(py: Python<'_>, request: u64) {
    if COUNT.load(Relaxed) == 0 {
        return;
    }
    let Some(waker) = remove(request) else { return };
    // May run while an exception is on its way (a dropped attempt): that one must survive.
    let pending = PyErr::take(py);
    if let Err(error) = waker.call0(py) {
        error.write_unraisable(py, Some(waker.bind(py)));
    }
    if let Some(pending) = pending {
        pending.restore(py);
    }
}

/// Tells everybody: a manual clock has moved.
pub(crate) fn wake_all(py: Python<'_>) {
    let all: Vec<u64> = waiters().keys().copied().collect();
    for request in all {
        wake_request(py, request);
    }
}

/// Tells everybody whom the engine has handed a turn.
#[cold]
pub(crate) fn wake(py: Python<'_>, engine: u64) {
    loop {
        let mut ready = [Ready::default(); 16];
        let count = raw::with_local(|local| raw::poll_ready(local, engine, &mut ready)).unwrap_or(0);
        for turn in &ready[..count] {
            wake_request(py, turn.request);
        }
        if count < ready.len() {
            return;
        }
    }
}
