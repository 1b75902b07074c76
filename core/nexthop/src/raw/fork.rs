//! What a `fork` does to engines: the child keeps documents, hosts and ejections, and starts with no request,
//! permit, waiter or event.

use super::local::FORKS;
use super::registry::{self, Engine};
use nexthop_engine::engine::{ClusterHandle, FrozenCluster, FrozenRest, FrozenUpdates};
use nexthop_engine::sync::MutexGuard;
use nexthop_engine::worker::Worker;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Locks held from before a fork until after it, in the thread that forks.
struct Held {
    // Dropped in this order: the locks before what they lie in.
    engines: Vec<HeldEngine>,
    workers: Vec<MutexGuard<'static, Worker>>,
    _registry: Box<dyn std::any::Any>,
    _kept: Vec<Arc<Engine>>,
}

/// The locks of one engine, dropped in the order opposite to their taking.
struct HeldEngine {
    _rest: FrozenRest<'static>,
    _clusters: Vec<FrozenCluster<'static>>,
    _updates: FrozenUpdates<'static>,
    _handles: Box<[ClusterHandle]>,
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
    let held = engines.iter().map(|engine| hold(engine)).collect();
    HELD.set(Some(Held { engines: held, workers, _registry: registry, _kept: engines }));
}

/// Takes the locks of one engine. The caller keeps the engine for as long as the result lives.
fn hold(engine: &Engine) -> HeldEngine {
    let (updates, handles) = engine.core.freeze_updates();
    let clusters = handles
        .iter()
        .map(|handle| {
            let cluster = handle.freeze();
            // SAFETY: the locks lie in a cluster that `_handles` keeps alive and in place, and they are dropped
            // before it.
            unsafe { std::mem::transmute::<FrozenCluster<'_>, FrozenCluster<'static>>(cluster) }
        })
        .collect();
    let rest = engine.core.freeze_rest();
    // SAFETY: the locks lie in an engine that `Held::_kept` keeps alive and in place for as long as `Held` lives,
    // and they are dropped before it.
    let (rest, updates) = unsafe {
        (
            std::mem::transmute::<FrozenRest<'_>, FrozenRest<'static>>(rest),
            std::mem::transmute::<FrozenUpdates<'_>, FrozenUpdates<'static>>(updates),
        )
    };
    HeldEngine { _rest: rest, _clusters: clusters, _updates: updates, _handles: handles }
}

fn thaw() {
    if let Some(mut held) = HELD.take() {
        held.engines.clear();
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
