//! The engine: clusters, routes, requests, and the calls that walk a request through them.

use crate::admission::{Gate, Gates};
use crate::breaker::Queues;
use crate::clock::Time;
use crate::cluster::{ClusterShared, Counters};
use crate::events::Events;
use crate::health::Board;
use crate::hosts::{HostArena, HostInfo};
use crate::maintain::Maintenance;
use crate::outcome::{Decision, Head, Misuse, Outcome, Packed, Ready, failure};
use crate::outlier::{self, Effects};
use crate::policies::{Policies, WantSets};
use crate::random::{Draws, Source, Xoshiro256};
use crate::request::Walk;
use crate::request::cell::Busy;
use crate::request::slab::{Slab, Stock};
use crate::snapshot::Snapshot;
use crate::spec::{SpecError, Specs, Thresholds, Value};
use crate::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
};
use crate::sync::{Mutex, MutexGuard};
use crate::update::Master;
use crate::worker::Worker;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub use crate::request::{Report, Stateless, UNKNOWN_TARGET};
pub use crate::update::{HostPatch, PatchError};

/// What an engine is made with besides documents.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number in every id this engine gives out, 1..=1023.
    pub index: u32,
    /// First generation of request slots: an engine that takes over an index starts where the last one ended.
    pub first_generation: u32,
    /// Seeds the generators of all workers.
    pub seed: u64,
    /// Words that replace worker 1's, in order, then zeros.
    pub draws: Option<Vec<u64>>,
    /// Nanoseconds after a request's deadline until an unreported attempt counts as lost. Defaults to 300 s.
    pub lease: u64,
    /// How many events are kept. Defaults to 1,024.
    pub events: usize,
    /// Nanoseconds since 1970 at [`Time`] 0; stamps events.
    pub unix_base: u64,
    /// Hosts are checked from the start, so that they are failed until their first result. Defaults to false: hosts
    /// count as if no cluster had checks until [`Core::checks`] or [`Core::poll_check`] is called for the first time.
    pub active_checks: bool,
    /// Name of this machine, for filters that ask for it; empty = no host's.
    pub hostname: String,
    /// Reads a JSON object: `metadata` of a request. Defaults to refusing every text.
    pub read_json: fn(&str) -> Result<BTreeMap<String, Value>, String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            index: 1,
            first_generation: 0,
            seed: 0,
            draws: None,
            lease: 300_000_000_000,
            events: 1024,
            unix_base: 0,
            active_checks: false,
            hostname: String::new(),
            read_json: |_| Err("nobody reads JSON here".into()),
        }
    }
}

/// The engine. Every method takes `&self` and may be called from any thread.
pub struct Core {
    pub(crate) settings: Settings,
    pub(crate) hosts: Arc<HostArena>,
    pub(crate) slab: Arc<Slab>,
    pub(crate) master: Mutex<Master>,
    pub(crate) current: Mutex<Arc<Snapshot>>,
    /// Moves with `current`; workers compare it by a plain load.
    pub(crate) version: AtomicU64,
    pub(crate) wants: Mutex<WantSets>,
    /// Policies of earlier documents that live requests may still be made with.
    pub(crate) old_policies: Mutex<Vec<Arc<Policies>>>,
    pub(crate) ready: ReadyList,
    pub(crate) events: Events,
    /// When maintenance is due; [`Time::NEVER`] = nothing to do.
    pub(crate) due: AtomicU64,
    pub(crate) maintenance: Mutex<Maintenance>,
    pub(crate) board: Board,
    /// Somebody performs checks.
    pub(crate) checking: AtomicBool,
    /// Admission control and adaptive concurrency of the present documents.
    pub(crate) gates: Mutex<Arc<[Arc<Gate>]>>,
    pub(crate) no_limits: Thresholds,
    workers: AtomicU64,
    /// Slots whose lock a thread of the parent process held at a fork.
    lost_slots: Mutex<Vec<u32>>,
    any_lost: AtomicBool,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// Asking again makes sense now.
    Nothing,
    /// A back-off.
    Time,
    /// A place in a queue.
    Turn,
    /// Nothing any more: the request is over, or there never was one of that id.
    Over,
}

/// Requests whose wait is over, until somebody asks.
#[derive(Default)]
pub(crate) struct ReadyList {
    list: Mutex<VecDeque<u64>>,
    length: AtomicU32,
}

impl ReadyList {
    pub(crate) fn push(&self, request: u64) {
        let mut list = self.list.lock();
        list.push_back(request);
        self.length.store(list.len() as u32, Relaxed);
    }

    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.length.load(Relaxed) != 0
    }

    fn pop(&self) -> Option<u64> {
        let mut list = self.list.lock();
        let request = list.pop_front();
        self.length.store(list.len() as u32, Relaxed);
        request
    }

    /// Takes one request out of the middle.
    pub(crate) fn remove(&self, request: u64) {
        if !self.any() {
            return;
        }
        let mut list = self.list.lock();
        if let Some(at) = list.iter().position(|id| *id == request) {
            list.remove(at);
            self.length.store(list.len() as u32, Relaxed);
        }
    }

    fn clear(&self) {
        self.list.lock().clear();
        self.length.store(0, Relaxed);
    }
}

impl Core {
    /// Builds an engine; `now` is the instant at which its clusters come to be.
    pub fn new(specs: &Specs, settings: Settings, now: Time) -> Result<Self, SpecError> {
        let empty = Snapshot {
            clusters: Vec::new(),
            policies: Arc::new(Policies::compile(
                &Specs::default(),
                0,
                &mut crate::policies::Names::default(),
                &mut WantSets::default(),
                false,
                &Gates::default(),
            )?),
            runtime: crate::snapshot::Runtime::default(),
        };
        let core = Self {
            hosts: Arc::default(),
            slab: Arc::default(),
            master: Mutex::default(),
            current: Mutex::new(Arc::new(empty)),
            version: AtomicU64::new(0),
            wants: Mutex::default(),
            old_policies: Mutex::default(),
            ready: ReadyList::default(),
            events: Events::new(settings.events),
            due: AtomicU64::new(u64::MAX),
            maintenance: Mutex::default(),
            board: Board::default(),
            checking: AtomicBool::new(settings.active_checks),
            gates: Mutex::new(Arc::from(Vec::new())),
            no_limits: Thresholds::default(),
            workers: AtomicU64::new(0),
            lost_slots: Mutex::default(),
            any_lost: AtomicBool::new(false),
            settings,
        };
        core.update(specs, now)?;
        Ok(core)
    }

    /// A new worker; the first one has number 1.
    pub fn worker(&self, now: Time) -> Worker {
        let number = self.workers.fetch_add(1, AcqRel) + 1;
        let random = match &self.settings.draws {
            Some(words) if number == 1 => Source::Draws(Draws::new(words.clone())),
            _ => Source::Xoshiro(Xoshiro256::seeded(self.settings.seed, number)),
        };
        self.worker_with(random, now)
    }

    /// A new worker with words of the embedder's own.
    pub fn worker_with(&self, random: Source, now: Time) -> Worker {
        let (version, snapshot) = self.present();
        let mut worker = Worker {
            random,
            snapshot: Arc::clone(&snapshot),
            version,
            clusters: Vec::new(),
            free: Stock::new(Arc::clone(&self.slab)),
        };
        worker.adopt(snapshot, version, &self.hosts, now);
        worker
    }

    fn present(&self) -> (u64, Arc<Snapshot>) {
        let current = self.current.lock();
        (self.version.load(Acquire), Arc::clone(&current))
    }

    /// Brings a worker up to date; for workers shared by threads, right after an update.
    pub fn refresh(&self, worker: &mut Worker, now: Time) {
        if worker.version != self.version.load(Acquire) {
            let (version, snapshot) = self.present();
            worker.adopt(snapshot, version, &self.hosts, now);
        }
    }

    /// Starts a call: due maintenance first, then the newest snapshot.
    #[inline]
    fn enter<'a>(&'a self, worker: &'a mut Worker, now: Time) -> Walk<'a> {
        if now.0 >= self.due.load(Relaxed) {
            self.maintain_now(worker, now);
        }
        if worker.version != self.version.load(Acquire) {
            self.refresh(worker, now);
        }
        self.walk(worker, now)
    }

    pub(crate) fn walk<'a>(&'a self, worker: &'a mut Worker, now: Time) -> Walk<'a> {
        Walk {
            core: self,
            snapshot: &worker.snapshot,
            random: &mut worker.random,
            clusters: &mut worker.clusters,
            free: &mut worker.free,
            now,
        }
    }

    /// A new request and its first choice.
    #[inline]
    pub fn begin(
        &self,
        worker: &mut Worker,
        head: &Head<'_>,
        stateless: Option<Stateless>,
        now: Time,
        out: &mut Decision,
    ) -> Result<(), Misuse> {
        self.enter(worker, now).begin(head, stateless, out)
    }

    /// A stateless attempt without a head: `number` is its attempt number, `key` replaces the hash policies.
    #[inline]
    pub fn pick(
        &self,
        worker: &mut Worker,
        target: u32,
        number: u32,
        key: Option<&[u8]>,
        now: Time,
        out: &mut Decision,
    ) -> Result<(), Misuse> {
        self.enter(worker, now).pick_one(target, number, key, out)
    }

    /// The next attempt, or: is it my turn?
    pub fn choose(
        &self,
        worker: &mut Worker,
        request: u64,
        now: Time,
        out: &mut Decision,
    ) -> Result<(), Misuse> {
        self.enter(worker, now).choose(request, out)
    }

    /// Headers, a whole outcome, or a failure.
    #[inline]
    pub fn report(
        &self,
        worker: &mut Worker,
        attempt: u64,
        outcome: &Outcome<'_>,
        kind: Report,
        now: Time,
    ) -> Packed {
        if kind == Report::Fail && outcome.failure == failure::NONE {
            return Misuse::Invalid.into();
        }
        self.enter(worker, now).report(attempt, outcome, kind)
    }

    /// A whole answer that is nothing but a status, for callers whose clock costs more than this call. `None` when
    /// it takes the time to judge it: nothing happened, use [`Core::report`].
    #[inline]
    pub fn report_plain(&self, worker: &mut Worker, attempt: u64, status: u16) -> Option<Packed> {
        if worker.version != self.version.load(Acquire) {
            return None;
        }
        self.walk(worker, Time(0)).report_plain(attempt, status)
    }

    /// The stream of an answered attempt is over.
    pub fn end(&self, worker: &mut Worker, attempt: u64, outcome: &Outcome<'_>, now: Time) -> Packed {
        self.enter(worker, now).end(attempt, outcome)
    }

    /// Drops an attempt.
    pub fn cancel(&self, worker: &mut Worker, attempt: u64, now: Time) -> Packed {
        self.enter(worker, now).cancel(attempt)
    }

    /// Ends a request from outside.
    pub fn finish(&self, worker: &mut Worker, request: u64, why: u32, now: Time) -> Packed {
        self.enter(worker, now).finish(request, why)
    }

    /// A fact about a request or attempt. Returns bits.
    pub fn note(&self, worker: &mut Worker, id: u64, what: u32, now: Time) -> Result<u16, Misuse> {
        self.enter(worker, now).note(id, what)
    }

    /// Gives everything back that a request holds after a contained bug.
    pub fn abandon(&self, worker: &mut Worker, id: u64, now: Time) {
        self.walk(worker, now).finish(crate::ids::request_of(id), crate::outcome::finish::SHUTDOWN);
    }

    /// Requests whose wait is over, each handed out once. Returns how many were written.
    pub fn take_ready(&self, out: &mut [Ready]) -> usize {
        let mut written = 0;
        while written < out.len() {
            let Some(request) = self.ready.pop() else { break };
            if let Some(user_data) = self.waiting(request) {
                out[written] = Ready { request, user_data };
                written += 1;
            }
        }
        written
    }

    /// Whether a request still waits in a queue; its user data.
    fn waiting(&self, request: u64) -> Option<u64> {
        let id = crate::ids::Id::unpack(request);
        let slot = self.slab.get(id.slot)?;
        let state = slot.state.lock()?;
        let queued = slot.generation() == id.generation && state.queued.is_some();
        queued.then(|| slot.user_data.load(Relaxed))
    }

    /// What a request waits for. A request whose turn has come is taken off the ready list, so that a blocking
    /// waiter is not also handed out.
    pub fn waits_for(&self, request: u64) -> WaitsFor {
        let id = crate::ids::Id::unpack(request);
        if self.slot_lost(id.slot) {
            return WaitsFor::Over;
        }
        let Some(slot) = self.slab.get(id.slot) else { return WaitsFor::Over };
        let Some(state) = slot.state.lock() else { return WaitsFor::Over };
        if slot.generation() != id.generation || !state.phase.is_live() {
            return WaitsFor::Over;
        }
        match state.phase {
            crate::request::Phase::BackOff => WaitsFor::Time,
            crate::request::Phase::Queued if slot.grant.get() == crate::breaker::Place::Waiting => {
                WaitsFor::Turn
            }
            crate::request::Phase::Queued => {
                drop(state);
                self.ready.remove(request);
                WaitsFor::Nothing
            }
            _ => WaitsFor::Nothing,
        }
    }

    /// Whether an attempt that has not ended was answered.
    pub fn is_answered(&self, attempt: u64) -> Result<bool, Misuse> {
        let id = crate::ids::Id::unpack(attempt);
        let slot = self.slab.get(id.slot).ok_or(Misuse::Ended)?;
        let state = slot.state.lock().ok_or(Misuse::Ended)?;
        if slot.generation() != id.generation || !state.phase.is_live() {
            return Err(Misuse::Ended);
        }
        let at = state.attempt(id.attempt).ok_or(Misuse::Ended)?;
        Ok(state.attempts[at].answered)
    }

    /// The open attempt of a request that keeps it from choosing: its number, and whether it was answered.
    pub fn open_attempt(&self, request: u64) -> Option<(u32, bool)> {
        let id = crate::ids::Id::unpack(request);
        let slot = self.slab.get(id.slot)?;
        let state = slot.state.lock()?;
        let attempt = state.attempts.last().filter(|_| slot.generation() == id.generation)?;
        Some((attempt.number, attempt.answered))
    }

    /// The host in a slot, with its version. `version` 0 takes any; another one than the present is
    /// [`Misuse::NotFound`].
    pub fn host(&self, slot: u32, version: u32) -> Result<(u32, Arc<HostInfo>), Misuse> {
        let (now, info) = self.hosts.info(slot).ok_or(Misuse::NotFound)?;
        if version != 0 && version != now {
            return Err(Misuse::NotFound);
        }
        Ok((now, info))
    }

    /// A numbered set of wanted header names; 0 asks for the present request set.
    pub fn want(&self, set: u32) -> Option<(u32, Arc<[Box<str>]>)> {
        if set == 0 {
            let current = self.current.lock();
            let (number, names) = &current.policies.want;
            return Some((u32::from(*number), Arc::clone(names)));
        }
        self.wants.lock().get(set).map(|names| (set, names))
    }

    /// The number of a cluster's name, or of `route:NAME`, while the name exists.
    pub fn resolve(&self, name: &str) -> Option<u32> {
        let master = self.master.lock();
        let number = *master.names.targets.get(name)?;
        let policies = master.policies.as_ref()?;
        policies.targets.get(number as usize - 1).is_some_and(Option::is_some).then_some(number)
    }

    /// Names of clusters (and of routes, as `route:NAME`) that exist.
    pub fn target_names(&self) -> Vec<String> {
        let master = self.master.lock();
        let Some(policies) = &master.policies else { return Vec::new() };
        let exists = |number: &u32| policies.targets.get(*number as usize - 1).is_some_and(Option::is_some);
        let names = master.names.targets.iter().filter(|(_, number)| exists(number));
        names.map(|(name, _)| name.to_string()).collect()
    }

    /// Counts applied updates.
    pub fn epoch(&self) -> u64 {
        self.master.lock().epoch
    }

    /// Requests that are not done.
    pub fn live_requests(&self) -> u64 {
        self.slab.count(|slot| self.slot_lost(slot))
    }

    /// The next event as a JSON line.
    pub fn poll_event(&self) -> Option<String> {
        self.events.pop()
    }

    /// Adds an event of the embedder's, one JSON object.
    pub fn push_event(&self, line: String) {
        self.events.push(line);
    }

    /// First generation for the next engine of this index.
    pub fn last_generation(&self) -> u32 {
        let known = self.slab.each().filter(|(index, _)| !self.slot_lost(*index));
        let highest = known.map(|(_, slot)| slot.generation()).max();
        highest
            .map_or(self.settings.first_generation, |generation| (generation + 1) % crate::ids::GENERATIONS)
    }

    pub(crate) fn earlier_policies(&self, generation: u32) -> Option<Arc<Policies>> {
        self.old_policies.lock().iter().find(|p| p.generation == generation).cloned()
    }

    /// Drops policies that no live request was made with. A request that is just being made holds the newest.
    pub(crate) fn forget_policies(&self) {
        let mut old = self.old_policies.lock();
        if old.len() < 2 {
            return;
        }
        let newest = old.last().map(|policies| policies.generation);
        let used: std::collections::BTreeSet<u32> = self
            .slab
            .each()
            .filter_map(|(_, slot)| {
                // A locked slot is in use right now: keep what it may hold by keeping everything this time.
                match slot.state.try_lock() {
                    Ok(state) => state.phase.is_live().then_some(state.policies),
                    Err(Busy::Parked) => None,
                    Err(Busy::Taken) => Some(u32::MAX),
                }
            })
            .collect();
        if !used.contains(&u32::MAX) {
            old.retain(|p| {
                used.contains(&p.generation) || Some(p.generation) == newest || Arc::strong_count(p) > 1
            });
        }
    }

    /// Frees the slots of hosts that are gone for good, with what late requests left there.
    pub(crate) fn reclaim_hosts<'s>(&self, shared: impl Fn(usize) -> Option<&'s ClusterShared>) {
        self.hosts.reclaim(|cluster, priority, left| {
            if let Some(shared) = shared(cluster as usize) {
                shared.ledgers[priority].give_left(left);
            }
        });
    }

    /// Writes the log of a detector's work and has the host lists rebuilt.
    pub(crate) fn outlier_effects(&self, cluster: u32, effects: &Effects, now: Time) {
        for (slot, record) in &effects.log {
            if let Some((_, info)) = self.hosts.info(*slot) {
                let unix = self.settings.unix_base.saturating_add(now.0);
                self.events.push(outlier::line(record, &info.cluster, &info.address, unix));
            }
        }
        if !effects.changed.is_empty() {
            self.health_changed(cluster, &effects.changed, now);
        }
    }

    /// Whether a slot's lock was lost in a fork.
    #[inline]
    pub(crate) fn slot_lost(&self, slot: u32) -> bool {
        self.any_lost.load(Relaxed) && self.lost_slots.lock().contains(&slot)
    }

    /// First of three steps that hold every lock of the engine but those of single requests, so that a forked
    /// child inherits none that a vanished thread holds: maintenance and updates. The clusters come next
    /// ([`ClusterHandle::freeze`]), then [`Core::freeze_rest`].
    pub fn freeze_updates(&self) -> (FrozenUpdates<'_>, Box<[ClusterHandle]>) {
        let maintenance = self.maintenance.lock();
        let master = self.master.lock();
        let clusters = master.clusters.iter().map(|cluster| Handle::Cluster(Arc::clone(&cluster.shared)));
        let gates = self.gates.lock().clone();
        let all = clusters.chain(gates.iter().map(|gate| Handle::Gate(Arc::clone(gate))));
        let all = all.map(ClusterHandle).collect();
        (FrozenUpdates { _master: master, _maintenance: maintenance }, all)
    }

    /// The third step.
    pub fn freeze_rest(&self) -> FrozenRest<'_> {
        FrozenRest {
            _ready: self.ready.list.lock(),
            _old: self.old_policies.lock(),
            _wants: self.wants.lock(),
            _current: self.current.lock(),
            _events: self.events.hold(),
            _board: self.board.hold(),
            _gates: self.gates.lock(),
            _slots: self.slab.hold(),
            _hosts: self.hosts.hold(),
        }
    }

    /// In a forked child: no request, permit, waiter or event of the parent is left; documents, hosts and
    /// ejections stay.
    pub fn after_fork(&self, process: u32) {
        self.ready.clear();
        self.events.clear();
        let mut lost = Vec::new();
        self.slab.renew(&mut lost);
        if !lost.is_empty() {
            self.lost_slots.lock().extend(lost);
            self.any_lost.store(true, Relaxed);
        }
        let master = self.master.lock();
        for cluster in &master.clusters {
            if let Some(mut queues) = cluster.shared.queues.try_lock() {
                Queues::clear(&mut queues);
            }
            for ledger in &cluster.shared.ledgers {
                ledger.reset();
            }
            for member in cluster.members.iter() {
                self.hosts.load(member.entry.slot).forget_uses();
                crate::opt_in::half_open::forget(&self.hosts.passive(member.entry.slot).half_open);
            }
            if let Some(mut counters) = cluster.shared.counters.try_lock() {
                Counters::keep_base(&mut counters);
            }
        }
        drop(master);
        self.board.after_fork();
        for gate in &*self.gates.lock().clone() {
            gate.after_fork();
        }
        // Sisters of one parent must not choose in step.
        self.workers.fetch_add(u64::from(process) << 32, AcqRel);
    }
}

/// A cluster or gate whose locks can be held over a fork.
pub struct ClusterHandle(Handle);

enum Handle {
    Cluster(Arc<ClusterShared>),
    Gate(Arc<Gate>),
}

impl ClusterHandle {
    /// Holds its locks.
    pub fn freeze(&self) -> FrozenCluster<'_> {
        let held = match &self.0 {
            Handle::Cluster(shared) => Held::Cluster {
                _queues: shared.queues.lock(),
                _counters: shared.counters.lock(),
                _detector: shared.detector.hold(),
            },
            Handle::Gate(gate) => Held::Gate { _gate: gate.hold() },
        };
        FrozenCluster { _held: held }
    }
}

/// The locks of one cluster or gate, held over a fork.
pub struct FrozenCluster<'a> {
    _held: Held<'a>,
}

enum Held<'a> {
    Cluster {
        _queues: MutexGuard<'a, Queues>,
        _counters: MutexGuard<'a, Counters>,
        _detector: outlier::Hold<'a>,
    },
    Gate {
        _gate: crate::admission::Hold<'a>,
    },
}

/// The locks of updates, held over a fork.
pub struct FrozenUpdates<'a> {
    _master: MutexGuard<'a, Master>,
    _maintenance: MutexGuard<'a, Maintenance>,
}

/// All other locks of the engine, held over a fork.
pub struct FrozenRest<'a> {
    _ready: MutexGuard<'a, VecDeque<u64>>,
    _old: MutexGuard<'a, Vec<Arc<Policies>>>,
    _wants: MutexGuard<'a, WantSets>,
    _current: MutexGuard<'a, Arc<Snapshot>>,
    _events: crate::events::Hold<'a>,
    _board: crate::health::Hold<'a>,
    _gates: MutexGuard<'a, Arc<[Arc<Gate>]>>,
    _slots: crate::request::slab::Hold<'a>,
    _hosts: crate::hosts::Hold<'a>,
}
