//! What a `fork` does to engines: the child keeps documents, hosts and ejections, and starts with no request,
//! permit, waiter or event.

use super::local::FORKS;
use super::registry::{self, Engine};
use nexthop_engine::engine::Frozen;
use nexthop_engine::sync::MutexGuard;
use nexthop_engine::worker::Worker;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Locks held from before a fork until after it, in the thread that forks.
struct Held {
    // Dropped in this order: the locks before what they lie in.
    frozen: Vec<Frozen<'static>>,
    workers: Vec<MutexGuard<'static, Worker>>,
    _registry: Box<dyn std::any::Any>,
    _engines: Vec<Arc<Engine>>,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Before `fork`: takes the update and event locks of every engine, so that the child inherits none that a
/// vanished thread holds.
pub fn before_fork() {
    let engines = registry::all();
    let registry: Box<dyn std::any::Any> = Box::new(registry::lock());
    // Workers before the rest, as in every call: who holds one may ask for any other lock.
    let mut workers = Vec::new();
    for engine in &engines {
        for worker in &engine.shared {
            // SAFETY: as below.
            let held = unsafe {
                std::mem::transmute::<MutexGuard<'_, Worker>, MutexGuard<'static, Worker>>(worker.lock())
            };
            workers.push(held);
        }
    }
    let frozen = engines
        .iter()
        .map(|engine| {
            let frozen = engine.core.freeze();
            // SAFETY: the locks lie in an engine that `_engines` keeps alive and in place for as long as `Held`
            // lives, and `frozen` is dropped before it.
            unsafe { std::mem::transmute::<Frozen<'_>, Frozen<'static>>(frozen) }
        })
        .collect();
    HELD.set(Some(Held { frozen, workers, _registry: registry, _engines: engines }));
}

fn thaw() {
    if let Some(mut held) = HELD.take() {
        held.frozen.clear();
        held.workers.clear();
    }
}

/// In the parent, after `fork`: gives the locks back.
pub fn after_fork_in_parent() {
    thaw();
}

/// In the child, after `fork`: drops requests, permits, waiters and events; workers start with new random words.
pub fn after_fork_in_child() {
    thaw();
    FORKS.fetch_add(1, Relaxed);
    for engine in registry::all() {
        engine.waiters.forget();
        engine.core.after_fork(std::process::id());
        let now = engine.at(0);
        for shared in &engine.shared {
            if let Some(mut worker) = shared.try_lock() {
                std::mem::replace(&mut *worker, engine.core.worker(now)).abandon();
            }
        }
    }
}
