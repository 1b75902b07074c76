//! What a `fork` does to engines: the child keeps documents, hosts and ejections, and starts with no request,
//! permit, waiter or event.

use super::documents::Documents;
use super::local::FORKS;
use super::registry::{self, Engine};
use nexthop_config::{Findings, LoadReport};
use nexthop_engine::engine::{ClusterHandle, FrozenCluster, FrozenRest, FrozenUpdates};
use nexthop_engine::sync::{Mutex, MutexGuard};
use nexthop_engine::worker::Worker;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Locks held from before a fork until after it, in the thread that forks.
struct Held {
    // Dropped in this order: the locks before what they lie in.
    engines: Vec<HeldEngine>,
    workers: Vec<MutexGuard<'static, Worker>>,
    documents: Vec<MutexGuard<'static, Documents>>,
    _registry: Box<dyn std::any::Any>,
    _kept: Vec<Arc<Engine>>,
}

/// The locks of one engine, dropped in the order opposite to their taking.
struct HeldEngine {
    _waiters: MutexGuard<'static, ()>,
    _findings: MutexGuard<'static, Findings>,
    _report: MutexGuard<'static, LoadReport>,
    _rest: FrozenRest<'static>,
    _clusters: Vec<FrozenCluster<'static>>,
    _updates: FrozenUpdates<'static>,
    _handles: Box<[ClusterHandle]>,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Before `fork`: takes every lock of every engine but those of requests, so that the child inherits none that a
/// vanished thread holds. In the order of all calls: documents, workers, the rest.
pub fn before_fork() {
    let (registry, engines) = registry::lock();
    let registry: Box<dyn std::any::Any> = Box::new(registry);
    let documents = engines.iter().map(|engine| keep(&engine.documents)).collect();
    let workers = engines.iter().flat_map(|engine| &engine.shared).map(keep).collect();
    let held = engines.iter().map(|engine| hold(engine)).collect();
    HELD.set(Some(Held { engines: held, workers, documents, _registry: registry, _kept: engines }));
}

/// Takes a lock of an engine. The caller keeps the engine for as long as the result lives.
fn keep<T>(lock: &Mutex<T>) -> MutexGuard<'static, T> {
    // SAFETY: the lock lies in an engine that `Held::_kept` keeps alive and in place for as long as `Held` lives,
    // and the guard is dropped before it.
    unsafe { std::mem::transmute::<MutexGuard<'_, T>, MutexGuard<'static, T>>(lock.lock()) }
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
    HeldEngine {
        _waiters: keep(engine.waiters.lock()),
        _findings: keep(&engine.findings),
        _report: keep(&engine.report),
        _rest: rest,
        _clusters: clusters,
        _updates: updates,
        _handles: handles,
    }
}

fn thaw() {
    if let Some(mut held) = HELD.take() {
        held.engines.clear();
        held.workers.clear();
        held.documents.clear();
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
