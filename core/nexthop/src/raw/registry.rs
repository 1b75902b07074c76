//! All engines of the process, found by the index in every id.

use super::error::Error;
use super::time::Clock;
use super::types::{Document, Options};
use nexthop_config::{Findings, LoadReport};
use nexthop_engine::engine::{Core, Settings};
use nexthop_engine::ids::MAX_ENGINES;
use nexthop_engine::sync::{Mutex, RwLock};
use nexthop_engine::worker::Worker;
use nexthop_engine::{Misuse, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// One engine with what the id-level functions keep of it.
pub(super) struct Engine {
    pub(super) id: u64,
    pub(super) core: Core,
    pub(super) clock: Clock,
    closed: AtomicBool,
    pub(super) seed: u64,
    /// `workers: N`: shared by all threads, taken in turn.
    pub(super) shared: Vec<Mutex<Worker>>,
    next_shared: AtomicU32,
    /// Documents as last applied.
    pub(super) documents: Mutex<super::documents::Documents>,
    pub(super) report: Mutex<LoadReport>,
    pub(super) findings: Mutex<Findings>,
    pub(super) waiters: super::waiting::Waiters,
    pub(super) panics: AtomicU32,
}

struct Registry {
    engines: Vec<Option<Arc<Engine>>>,
    /// By index: how often it was used, and the first generation of the next engine there.
    history: Vec<(u32, u32)>,
}

static REGISTRY: RwLock<Registry> = RwLock::new(Registry { engines: Vec::new(), history: Vec::new() });

/// Index in the low bits, use of that index above: a freed engine's id never comes back.
const INDEX: u64 = MAX_ENGINES as u64;

impl Engine {
    /// Whether the engine was freed.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Acquire)
    }

    #[inline]
    pub(super) fn at(&self, now: u64) -> Time {
        Time(if now == 0 { self.clock.now() } else { now })
    }

    /// Which shared worker a new thread uses.
    pub(super) fn turn(&self) -> usize {
        match self.shared.len() {
            0 | 1 => 0,
            n => self.next_shared.fetch_add(1, Relaxed) as usize % n,
        }
    }

    /// Brings shared workers up to date right after an update, so that their draws fall at the update.
    pub(super) fn refresh_shared(&self) {
        let now = self.at(0);
        for worker in &self.shared {
            self.core.refresh(&mut worker.lock(), now);
        }
    }
}

pub(super) fn index_of(engine: u64) -> u32 {
    (engine & INDEX) as u32
}

/// The engine of this id, while it is not freed.
pub(super) fn find(engine: u64) -> Result<Arc<Engine>, Error> {
    let index = index_of(engine) as usize;
    if engine == 0 {
        return Err(Error::misuse(Misuse::Invalid, "the engine handle is zero; make one with engine_new"));
    }
    let registry = REGISTRY.read();
    match registry.engines.get(index) {
        Some(Some(found)) if found.id == engine => Ok(Arc::clone(found)),
        _ => Err(Error::misuse(Misuse::Closed, "the engine was closed or never made; make a new one")),
    }
}

/// The engine at an index, whichever it is now.
pub(super) fn at_index(index: u32) -> Option<Arc<Engine>> {
    REGISTRY.read().engines.get(index as usize)?.clone()
}

/// Every engine alive.
pub(super) fn all() -> Vec<Arc<Engine>> {
    REGISTRY.read().all()
}

impl Registry {
    fn all(&self) -> Vec<Arc<Engine>> {
        self.engines.iter().flatten().cloned().collect()
    }
}

/// Makes an engine and registers it.
pub(super) fn create(options: &Options, documents: &[Document<'_>]) -> Result<Arc<Engine>, Error> {
    let clock = Clock::new(options.clock).ok_or_else(|| {
        Error::misuse(
            Misuse::Invalid,
            format!("unknown clock {}; use 0 coarse, 1 precise or 2 manual", options.clock),
        )
    })?;
    if options.workers > 1024 {
        let sentence = format!("{} workers asked for; at most 1,024 are possible", options.workers);
        return Err(Error::misuse(Misuse::Invalid, sentence));
    }
    let mut kept = super::documents::Documents::default();
    let loaded = kept.read(documents)?;
    let mut registry = REGISTRY.write();
    if registry.engines.is_empty() {
        // Index 0 is never given out: no id is 0.
        registry.engines.push(None);
        registry.history.push((0, 0));
    }
    let index = match registry.engines.iter().skip(1).position(Option::is_none) {
        Some(at) => at + 1,
        None if registry.engines.len() <= MAX_ENGINES as usize => {
            registry.engines.push(None);
            registry.history.push((0, 0));
            registry.engines.len() - 1
        }
        None => {
            return Err(Error::misuse(
                Misuse::Limit,
                format!("{MAX_ENGINES} engines are alive, which is the most; close one first"),
            ));
        }
    };
    let (uses, first_generation) = registry.history[index];
    let seed = if options.seed == 0 { system_seed() } else { options.seed };
    let defaults = Settings::default();
    let settings = Settings {
        index: index as u32,
        first_generation,
        seed,
        draws: options.draws.clone(),
        lease: if options.lease == 0 { defaults.lease } else { options.lease },
        events: if options.events == 0 { defaults.events } else { options.events.min(1 << 20) as usize },
        unix_base: clock.unix_base(),
        // They begin with the first question for them: a host that waits for a check that nobody performs would wait
        // for ever.
        active_checks: false,
        hostname: super::time::hostname(),
        read_json: nexthop_config::parse_metadata_json,
    };
    let now = Time(clock.now());
    let core = Core::new(&loaded.specs, settings, now).map_err(Error::from_spec)?;
    if core.measures_latency() {
        clock.sharpen();
    }
    let shared = (0..options.workers).map(|_| Mutex::new(core.worker(now))).collect();
    let engine = Arc::new(Engine {
        id: index as u64 | (u64::from(uses) + 1) << 10,
        core,
        clock,
        closed: AtomicBool::new(false),
        seed,
        shared,
        next_shared: AtomicU32::new(0),
        documents: Mutex::new(kept),
        report: Mutex::new(loaded.report),
        findings: Mutex::new(loaded.findings),
        waiters: super::waiting::Waiters::default(),
        panics: AtomicU32::new(0),
    });
    registry.engines[index] = Some(Arc::clone(&engine));
    Ok(engine)
}

/// Closes an engine. Running calls keep its memory.
pub(super) fn close(engine: u64) -> Result<(), Error> {
    let found = find(engine)?;
    found.closed.store(true, Release);
    let index = index_of(engine) as usize;
    let mut registry = REGISTRY.write();
    if registry.engines[index].as_ref().is_some_and(|at| at.id == engine) {
        registry.engines[index] = None;
        let (uses, _) = registry.history[index];
        registry.history[index] = (uses + 1, found.core.last_generation());
    }
    drop(registry);
    found.waiters.wake_all();
    Ok(())
}

/// Every engine alive, and the lock that keeps it so over a fork.
pub(super) fn lock() -> (nexthop_engine::sync::RwLockWriteGuard<'static, impl Sized>, Vec<Arc<Engine>>) {
    let registry = REGISTRY.write();
    let engines = registry.all();
    (registry, engines)
}

/// Random words of the system.
pub(super) fn system_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library seeds its hashers from the system; no other dependency is needed for one word.
    let word = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (word ^ unix.as_nanos() as u64 ^ (u64::from(std::process::id()) << 32)).max(1)
}
