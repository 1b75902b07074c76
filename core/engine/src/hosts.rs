//! Hosts live in slots of a flat arena: what every decision touches apart from what only faces read.
//!
//! A slot is given back when no snapshot lists its host any more and its last attempt has ended
//! (`HostEntry` carries the first half). What a plain attempt touches is apart from what is counted, told and shown, so that
//! it costs one cache line a host.

use crate::arena::{Arena, Chunk};
use crate::breaker::pool;
use crate::clock::Time;
use crate::measured::Measured;
use crate::spec::{Endpoint, EndpointSpec, HealthStatus, Locality};
use crate::sync::atomic::{
    AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use crate::sync::{Mutex, MutexGuard, RwLock};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Health flags of a host (`spec/breakers-and-health.md` B1), and marks that balancing reads.
pub mod flag {
    /// Failed its active check.
    pub const FAILED_ACTIVE_HC: u32 = 0x001;
    /// Ejected.
    pub const FAILED_OUTLIER_CHECK: u32 = 0x002;
    /// EDS UNHEALTHY or TIMEOUT.
    pub const FAILED_EDS_HEALTH: u32 = 0x004;
    /// Passing check with `x-envoy-degraded`.
    pub const DEGRADED_ACTIVE_HC: u32 = 0x008;
    /// EDS DEGRADED.
    pub const DEGRADED_EDS_HEALTH: u32 = 0x010;
    /// Removed by discovery, kept while its active check passes.
    pub const PENDING_DYNAMIC_REMOVAL: u32 = 0x020;
    /// New, waiting for its first check.
    pub const PENDING_ACTIVE_HC: u32 = 0x040;
    /// Failed its active check, the last time by not answering.
    pub const ACTIVE_HC_TIMEOUT: u32 = 0x100;
    /// Immediate-fail signal.
    pub const EXCLUDED_VIA_IMMEDIATE_HC_FAIL: u32 = 0x080;
    /// EDS DRAINING.
    pub const EDS_STATUS_DRAINING: u32 = 0x200;
    /// Degraded detector.
    pub const DEGRADED_OUTLIER_DETECTION: u32 = 0x400;
    /// `envoy.lb` metadata `canary: true`.
    pub const CANARY: u32 = 0x1_0000;
    /// No longer a member of its cluster.
    pub const REMOVED: u32 = 0x2_0000;
    /// A run of failures is being counted: the next good answer ends it.
    pub(crate) const FAILING: u32 = 0x4_0000;

    /// What active checks set.
    pub const ACTIVE: u32 = FAILED_ACTIVE_HC
        | DEGRADED_ACTIVE_HC
        | PENDING_ACTIVE_HC
        | EXCLUDED_VIA_IMMEDIATE_HC_FAIL
        | ACTIVE_HC_TIMEOUT;

    const UNHEALTHY: u32 = FAILED_ACTIVE_HC | FAILED_OUTLIER_CHECK | FAILED_EDS_HEALTH | EDS_STATUS_DRAINING;
    const DEGRADED: u32 = DEGRADED_ACTIVE_HC | DEGRADED_EDS_HEALTH | DEGRADED_OUTLIER_DETECTION;
    const EXCLUDED: u32 = PENDING_ACTIVE_HC | EXCLUDED_VIA_IMMEDIATE_HC_FAIL | EDS_STATUS_DRAINING;

    /// Coarse health of a set of flags.
    pub const fn health(flags: u32) -> super::Health {
        if flags & UNHEALTHY != 0 {
            super::Health::Unhealthy
        } else if flags & DEGRADED != 0 {
            super::Health::Degraded
        } else {
            super::Health::Healthy
        }
    }

    /// Whether the host leaves the denominators of priority load and panic.
    pub const fn excluded(flags: u32) -> bool {
        flags & EXCLUDED != 0
    }

    /// The flags of an EDS status.
    pub const fn of_status(status: super::HealthStatus) -> u32 {
        use super::HealthStatus as S;
        match status {
            S::Unknown | S::Healthy => 0,
            S::Unhealthy | S::Timeout => FAILED_EDS_HEALTH,
            S::Draining => EDS_STATUS_DRAINING,
            S::Degraded => DEGRADED_EDS_HEALTH,
        }
    }
}

/// Coarse health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Gets traffic.
    Healthy,
    /// Gets what healthy hosts cannot take.
    Degraded,
    /// Gets traffic in panic only.
    Unhealthy,
}

/// The virtual pools of a host, one per routing priority: active streams, connections, queued requests, packed.
#[derive(Default)]
pub struct HostLoad {
    pub(crate) pools: [AtomicU64; 2],
}

impl HostLoad {
    /// Requests attached to this host, both routing priorities.
    #[inline]
    pub fn active(&self) -> u32 {
        (pool::active(self.pools[0].load(Relaxed)) + pool::active(self.pools[1].load(Relaxed))) as u32
    }

    /// Nothing is in use, nothing was served.
    pub(crate) fn reset(&self) {
        for pool in &self.pools {
            pool.store(0, Relaxed);
        }
    }

    /// Nothing is in use any more (after a fork); what was served stays counted.
    pub(crate) fn forget_uses(&self) {
        for pool in &self.pools {
            pool.store(pool::served_alone(pool.load(Relaxed)), Relaxed);
        }
    }

    #[cfg(test)]
    pub(crate) fn set_active(&self, active: u32) {
        self.pools[0].store(u64::from(active), Relaxed);
    }
}

/// All that an attempt touches of its host as long as all goes well: half a cache line, so that ten thousand hosts stay near.
#[derive(Default)]
#[repr(align(32))]
pub struct HostFacts {
    pub(crate) load: HostLoad,
    /// See [`flag`].
    pub(crate) flags: AtomicU32,
    /// 1..=2^32-1.
    pub(crate) weight: AtomicU32,
    /// Identity: each host object has its own number, never reused in an engine.
    pub(crate) birth: AtomicU32,
    /// Moves when anything that a face may show changes.
    pub(crate) version: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<HostFacts>() == 32);

impl HostFacts {
    /// Whether a run of failures is being counted.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.flags.load(Relaxed) & flag::FAILING != 0
    }

    /// A run of failures goes on. Called after it was counted: whoever ends it meanwhile takes the flag first, so that no
    /// run is left without one.
    pub(crate) fn fails(&self) {
        if self.flags.load(Acquire) & flag::FAILING == 0 {
            self.flags.fetch_or(flag::FAILING, AcqRel);
        }
    }
}

/// What is counted of a host.
#[derive(Default)]
pub(crate) struct HostTally {
    pub(crate) consecutive_5xx: AtomicU32,
    pub(crate) consecutive_gateway: AtomicU32,
    pub(crate) rq_success: AtomicU64,
    pub(crate) rq_error: AtomicU32,
    pub(crate) rq_timeout: AtomicU32,
    /// `rq_success` at the last look for idle connections.
    pub(crate) idle_mark: AtomicU32,
}

/// What passive health checking counts of a host and good answers do not touch. All but the first only grow
/// (and wrap).
#[derive(Default)]
pub(crate) struct HostPassive {
    pub(crate) consecutive_local: AtomicU32,
    /// Successes that `rq_success` does not count, less those that it counts wrongly.
    pub(crate) external_good: AtomicU32,
    pub(crate) external_bad: AtomicU32,
    pub(crate) local_good: AtomicU32,
    pub(crate) local_bad: AtomicU32,
    /// 1 + when slow start began to count; 0 = it did not. This and what follows are set, not counted up.
    healthy_since: AtomicU64,
    /// The host is set aside until then.
    pub(crate) cool_until: AtomicU64,
    /// See `opt_in::half_open`.
    pub(crate) half_open: AtomicU64,
}

/// What faces show of a host. Fields of its [`EndpointSpec`] are its own.
#[derive(Clone, Debug, PartialEq)]
pub struct HostInfo {
    /// As its assignment lists it, with the address to show.
    pub spec: Endpoint,
    /// Name of the cluster that owns the host.
    pub cluster: Arc<str>,
    /// Its number.
    pub cluster_index: u32,
    /// 0..=128.
    pub priority: u32,
    /// Region, zone, sub-zone.
    pub locality: Arc<Locality>,
    /// Nanoseconds; of its cluster.
    pub connect_timeout: u64,
    /// TLS towards the host.
    pub secure: bool,
}

impl Deref for HostInfo {
    type Target = EndpointSpec;

    fn deref(&self) -> &EndpointSpec {
        &self.spec
    }
}

impl HostInfo {
    /// Of a host that is gone: nothing is known.
    pub fn unknown() -> Self {
        Self {
            spec: Endpoint::default(),
            cluster: "".into(),
            cluster_index: 0,
            priority: 0,
            locality: Arc::default(),
            connect_timeout: 0,
            secure: false,
        }
    }

    /// A plain host of a cluster `c`.
    #[cfg(test)]
    pub(crate) fn at(address: &str) -> Self {
        let spec = EndpointSpec { address: address.to_owned(), port: 80, ..EndpointSpec::default() };
        Self { spec: spec.into(), cluster: "c".into(), ..Self::unknown() }
    }
}

/// A run of hosts, column by column.
struct Columns {
    facts: Box<[HostFacts]>,
    tallies: Box<[HostTally]>,
    passive: Box<[HostPassive]>,
    measured: Box<[OnceLock<Box<Measured>>]>,
    infos: Box<[RwLock<Option<Arc<HostInfo>>>]>,
}

impl Chunk for Columns {
    fn of(slots: usize) -> Self {
        Self {
            facts: Chunk::of(slots),
            tallies: Chunk::of(slots),
            passive: Chunk::of(slots),
            measured: Chunk::of(slots),
            infos: Chunk::of(slots),
        }
    }
}

/// One host, found once for all of its columns.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    chunk: &'a Columns,
    at: usize,
}

impl<'a> Host<'a> {
    /// Its load words.
    #[inline]
    pub fn load(self) -> &'a HostLoad {
        &self.facts().load
    }

    /// Its facts.
    #[inline]
    pub fn facts(self) -> &'a HostFacts {
        &self.chunk.facts[self.at]
    }

    pub(crate) fn tally(self) -> &'a HostTally {
        &self.chunk.tallies[self.at]
    }

    fn passive(self) -> &'a HostPassive {
        &self.chunk.passive[self.at]
    }

    fn measured(self) -> &'a OnceLock<Box<Measured>> {
        &self.chunk.measured[self.at]
    }

    fn info(self) -> &'a RwLock<Option<Arc<HostInfo>>> {
        &self.chunk.infos[self.at]
    }
}

/// All hosts of an engine.
pub struct HostArena {
    columns: Arena<Columns>,
    ledger: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    free: Vec<u32>,
    limbo: Vec<u32>,
    next: u32,
    births: u32,
}

/// The list of free slots, held over a fork.
pub(crate) struct Hold<'a> {
    _ledger: MutexGuard<'a, Slots>,
}

impl Default for HostArena {
    fn default() -> Self {
        Self { columns: Arena::new(), ledger: Mutex::default() }
    }
}

impl HostArena {
    /// The host in a slot that some snapshot lists.
    #[inline]
    pub fn host(&self, slot: u32) -> Host<'_> {
        let (chunk, at) = self.columns.reach_existing(slot);
        Host { chunk, at }
    }

    /// The load words of a slot that some snapshot lists.
    #[inline]
    pub fn load(&self, slot: u32) -> &HostLoad {
        self.host(slot).load()
    }

    /// The facts of a slot that some snapshot lists.
    #[inline]
    pub fn facts(&self, slot: u32) -> &HostFacts {
        self.host(slot).facts()
    }

    /// What is counted of a slot that some snapshot lists.
    pub(crate) fn tally(&self, slot: u32) -> &HostTally {
        self.host(slot).tally()
    }

    /// All consecutive failures of a host's answers are over.
    pub(crate) fn end_run(&self, slot: u32) {
        let host = self.host(slot);
        host.facts().flags.fetch_and(!flag::FAILING, AcqRel);
        host.tally().consecutive_5xx.store(0, Release);
        host.tally().consecutive_gateway.store(0, Release);
    }

    /// What outlier detection counts of a slot that some snapshot lists.
    pub(crate) fn passive(&self, slot: u32) -> &HostPassive {
        self.host(slot).passive()
    }

    /// What is measured of a host; `None` where no policy asks for it.
    pub(crate) fn measured(&self, slot: u32) -> Option<&Measured> {
        self.host(slot).measured().get().map(|measured| &**measured)
    }

    /// From now on a host is measured.
    pub(crate) fn measure(&self, slot: u32) {
        self.host(slot).measured().get_or_init(Box::default);
    }

    /// When slow start began to count for a host (section 16 of `spec/load-balancing.md`).
    pub(crate) fn healthy_since(&self, slot: u32) -> Option<Time> {
        self.passive(slot).healthy_since.load(Relaxed).checked_sub(1).map(Time)
    }

    /// A check passed that found the host failed: slow start counts from now on.
    pub(crate) fn check_passed(&self, slot: u32, now: Time) {
        self.passive(slot).healthy_since.store(now.0.saturating_add(1), Relaxed);
    }

    /// A host without checks is seen healthy: slow start counts from the first time on.
    pub(crate) fn seen_healthy(&self, slot: u32, now: Time) {
        let cell = &self.passive(slot).healthy_since;
        if cell.load(Relaxed) == 0 {
            cell.store(now.0.saturating_add(1), Relaxed);
        }
    }

    /// Weight of a host, 1..=2^32-1.
    #[inline]
    pub fn weight(&self, slot: u32) -> u32 {
        self.facts(slot).weight.load(Relaxed)
    }

    /// Flags of a host, see [`flag`].
    #[inline]
    pub fn flags(&self, slot: u32) -> u32 {
        self.facts(slot).flags.load(Relaxed) & !flag::FAILING
    }

    /// What faces show of the host in this slot, with its version; `None` when the slot is empty.
    pub fn info(&self, slot: u32) -> Option<(u32, Arc<HostInfo>)> {
        let (chunk, at) = self.columns.get(slot)?;
        let host = Host { chunk, at };
        let info = host.info().read().clone()?;
        Some((host.facts().version.load(Relaxed), info))
    }

    /// Good answers of a host.
    pub fn rq_success(&self, slot: u32) -> u64 {
        let open: u64 = self.load(slot).pools.iter().map(|p| pool::served(p.load(Relaxed))).sum();
        self.tally(slot).rq_success.load(Relaxed) + open
    }

    /// Puts a host into a free slot.
    pub(crate) fn add(&self, info: HostInfo, flags: u32) -> u32 {
        let mut slots = self.ledger.lock();
        let slot = slots.free.pop().unwrap_or_else(|| {
            slots.next += 1;
            slots.next - 1
        });
        slots.births += 1;
        let birth = slots.births;
        drop(slots);
        let (chunk, at) = self.columns.reach(slot);
        let host = Host { chunk, at };
        host.load().reset();
        let facts = host.facts();
        facts.flags.store(flags, Relaxed);
        facts.weight.store(info.weight, Relaxed);
        facts.birth.store(birth, Relaxed);
        let tally = host.tally();
        tally.consecutive_5xx.store(0, Relaxed);
        tally.consecutive_gateway.store(0, Relaxed);
        let passive = host.passive();
        passive.consecutive_local.store(0, Relaxed);
        passive.external_good.store(0, Relaxed);
        passive.external_bad.store(0, Relaxed);
        passive.local_good.store(0, Relaxed);
        passive.local_bad.store(0, Relaxed);
        passive.healthy_since.store(0, Relaxed);
        if let Some(measured) = host.measured().get() {
            measured.reset();
        }
        passive.cool_until.store(0, Relaxed);
        passive.half_open.store(0, Relaxed);
        tally.rq_success.store(0, Relaxed);
        tally.rq_error.store(0, Relaxed);
        tally.rq_timeout.store(0, Relaxed);
        *host.info().write() = Some(Arc::new(info));
        facts.version.fetch_add(1, Relaxed);
        slot
    }

    /// Gives a host another weight than the configured one; faces go on showing that. Returns whether it is another.
    pub(crate) fn set_weight(&self, slot: u32, weight: u32) -> bool {
        self.facts(slot).weight.swap(weight, Relaxed) != weight
    }

    /// Replaces what faces show of a host; its version moves.
    pub(crate) fn set_info(&self, slot: u32, info: HostInfo) {
        let host = self.host(slot);
        let facts = host.facts();
        facts.weight.store(info.weight, Relaxed);
        *host.info().write() = Some(Arc::new(info));
        facts.version.fetch_add(1, Relaxed);
    }

    /// Holds the list of free slots.
    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold { _ledger: self.ledger.lock() }
    }

    /// No snapshot lists this host any more.
    pub(crate) fn retire(&self, slot: u32) {
        self.ledger.lock().limbo.push(slot);
    }

    /// Gives back the slots of retired hosts whose last attempt has ended. `tell` hears of each cluster and routing priority
    /// what lay there.
    pub(crate) fn reclaim(&self, tell: impl Fn(u32, usize, pool::Left)) {
        let mut slots = self.ledger.lock();
        let limbo = std::mem::take(&mut slots.limbo);
        for slot in limbo {
            // Bits above the connections: active streams and queued requests.
            let busy = self.load(slot).pools.iter().any(|p| crate::breaker::is_pinned(p.load(Relaxed)));
            if busy {
                slots.limbo.push(slot);
            } else {
                let info = self.host(slot).info().write().take();
                for (priority, pool) in self.load(slot).pools.iter().enumerate() {
                    // An attempt that ended as its host left may have left its place and its connection here.
                    let left = pool::empty(pool);
                    if let Some(info) = info.as_ref().filter(|_| left != pool::Left::default()) {
                        tell(info.cluster_index, priority, left);
                    }
                }
                slots.free.push(slot);
            }
        }
    }
}

/// A host as snapshots hold it; dropping the last one retires the slot.
pub struct HostEntry {
    /// Where it lives.
    pub slot: u32,
    arena: Arc<HostArena>,
}

impl HostEntry {
    /// Takes charge of a slot.
    pub(crate) fn new(slot: u32, arena: Arc<HostArena>) -> Self {
        Self { slot, arena }
    }
}

impl Drop for HostEntry {
    fn drop(&mut self) {
        self.arena.retire(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever fails and whoever ends runs at the same time: a run that is left is known as one.
    #[test]
    fn no_run_is_left_without_its_flag() {
        let arena = HostArena::default();
        let slot = arena.add(HostInfo::at("10.0.0.1:80"), 0);
        let (facts, runs) = (arena.facts(slot), &arena.tally(slot).consecutive_5xx);
        for _ in 0..2_000 {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    runs.fetch_add(1, AcqRel);
                    facts.fails();
                });
                scope.spawn(|| {
                    if facts.has_failed() {
                        arena.end_run(slot);
                    }
                });
            });
            assert!(runs.load(Relaxed) == 0 || facts.has_failed());
        }
        assert_eq!(arena.flags(slot), 0, "a mark of ours, no health");
    }
}
