//! What time alone brings: sweeps, merge windows, leases. Run by the first call at or past the deadline, one
//! caller at a time; others pass by.

use crate::clock::{MILLI, Time, nanos};
use crate::engine::Core;
use crate::events::Json;
use crate::ids::Id;
use crate::outcome::{NEVER, bits, finish};
use crate::outlier::{Rules, Watch};
use crate::spec::PolicySpec;
use crate::stats::{ClusterCounters, Counter};
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::update::period;
use crate::worker::Worker;

/// A request without a deadline is lost this long after its last call.
const LAST_CALL: u64 = 3_600_000_000_000;
/// Requests looked at for leases in one go.
const LEASE_CHUNK: u32 = 20_000;

/// Timers of maintenance.
#[derive(Default)]
pub(crate) struct Maintenance {
    /// Next sweep by cluster; `None` = no detector.
    sweeps: Vec<Option<Time>>,
    /// Next look for leases.
    leases: Option<Time>,
    /// Where that look goes on.
    lease_slot: u32,
    /// Next look for idle connections by cluster.
    idle: Vec<Option<Time>>,
    /// Next computation from load reports by cluster; `None` = nobody reads them.
    loads: Vec<Option<Time>>,
}

impl Core {
    /// Makes sure maintenance runs at `at` at the latest.
    pub(crate) fn due_by(&self, at: Time) {
        self.due.fetch_min(at.0, AcqRel);
    }

    /// When maintenance is due; [`Time::NEVER`] when nothing is.
    pub fn deadline(&self) -> Time {
        Time(self.due.load(Relaxed))
    }

    /// Runs what is due. Returns bits.
    pub fn maintain(&self, worker: &mut Worker, now: Time) -> u16 {
        if now.0 >= self.due.load(Relaxed) {
            self.maintain_now(worker, now);
        }
        self.refresh(worker, now);
        let mut signals = 0;
        if self.ready.any() {
            signals |= bits::WAKE;
        }
        if self.events.pending() {
            signals |= bits::EVENTS;
        }
        signals
    }

    /// Arms the timers of clusters that have none yet.
    pub(crate) fn arm(&self, now: Time) {
        let mut timers = self.maintenance.lock();
        let snapshot = self.current.lock().clone();
        timers.sweeps.resize(snapshot.clusters.len(), None);
        timers.idle.resize(snapshot.clusters.len(), None);
        timers.loads.resize(snapshot.clusters.len(), None);
        for (index, entry) in snapshot.clusters.iter().enumerate() {
            let spec = entry.view.as_ref().map(|view| &view.spec);
            let interval = entry.outlier.as_deref().map(sweep_interval);
            match (&mut timers.sweeps[index], interval) {
                (armed @ None, Some(interval)) => *armed = Some(now.plus(interval)),
                (armed, None) => *armed = None,
                _ => {}
            }
            match (&mut timers.loads[index], spec.and_then(|spec| period(&spec.policy))) {
                (armed @ None, Some(period)) => *armed = Some(now.plus(period)),
                (armed, None) => *armed = None,
                _ => {}
            }
            let idle = spec.map(|spec| nanos(spec.idle_timeout)).filter(|idle| *idle > 0);
            match (&mut timers.idle[index], idle) {
                (armed @ None, Some(idle)) => *armed = Some(now.plus(idle)),
                (armed, None) => *armed = None,
                _ => {}
            }
        }
        timers.leases.get_or_insert_with(|| now.plus(self.lease_pause()));
        self.due_by(timers.next().min(self.tick_gates(now)));
    }

    fn lease_pause(&self) -> u64 {
        (self.settings.lease / 8).clamp(1_000_000, 10_000_000_000)
    }

    #[cold]
    pub(crate) fn maintain_now(&self, worker: &mut Worker, now: Time) {
        let Some(mut timers) = self.maintenance.try_lock() else { return };
        // Whoever shortens the deadline from here on must win over the one computed below.
        self.due.store(NEVER, Relaxed);
        self.sweep(&mut timers, worker, now);
        self.expire_checks(worker, now);
        let windows = self.end_windows(now).min(self.tick_gates(now));
        self.compute_loads(&mut timers, now);
        self.refresh(worker, now);
        self.expire_idle(&mut timers, worker, now);
        if timers.leases.is_some_and(|at| now >= at) {
            self.expire_leases(&mut timers, worker, now);
        }
        let snapshot = self.current.lock().clone();
        self.reclaim_hosts(|cluster| snapshot.clusters.get(cluster).map(|entry| &*entry.shared));
        self.due_by(timers.next().min(windows).min(self.board.end_of_time()));
    }

    fn sweep(&self, timers: &mut Maintenance, worker: &mut Worker, now: Time) {
        let snapshot = self.current.lock().clone();
        for (index, entry) in snapshot.clusters.iter().enumerate() {
            let Some(armed) = timers.sweeps.get_mut(index) else { break };
            if armed.is_none_or(|at| now < at) {
                continue;
            }
            let (Some(view), Some(rules)) = (&entry.view, &entry.outlier) else {
                *armed = None;
                continue;
            };
            let members: Vec<u32> = view.members.iter().map(|member| member.slot).collect();
            let counters = ClusterCounters::default();
            let watch = Watch {
                rules,
                detector: &entry.shared.detector,
                hosts: &self.hosts,
                counters: &counters,
                number_of_hosts: members.len() as u32,
            };
            let effects = watch.sweep(&members, now, &mut worker.random);
            entry.shared.counters.lock().base.absorb(&counters);
            self.outlier_effects(index as u32, &effects, now);
            *armed = Some(now.plus(sweep_interval(rules)));
        }
    }

    /// Computes what load reports change, where it is due.
    fn compute_loads(&self, timers: &mut Maintenance, now: Time) {
        for (index, armed) in timers.loads.iter_mut().enumerate() {
            if armed.is_none_or(|at| now < at) {
                continue;
            }
            let policy = self.policy_of(index);
            *armed = policy.and_then(|policy| period(&policy)).map(|period| now.plus(period));
            self.tick_loads(index, now);
        }
    }

    fn policy_of(&self, index: usize) -> Option<PolicySpec> {
        let snapshot = self.current.lock().clone();
        Some(snapshot.clusters.get(index)?.view.as_ref()?.spec.policy.clone())
    }

    /// Forgets virtual connections of pools that were idle for a whole period.
    fn expire_idle(&self, timers: &mut Maintenance, worker: &mut Worker, now: Time) {
        for index in 0..timers.idle.len() {
            if timers.idle[index].is_none_or(|at| now < at) {
                continue;
            }
            let walk = self.walk(worker, now);
            let Some(view) = walk.snapshot.clusters.get(index).and_then(|entry| entry.view.clone()) else {
                timers.idle[index] = None;
                continue;
            };
            for member in view.members.iter() {
                let used = self.hosts.rq_success(member.slot);
                let seen = self.hosts.tally(member.slot).idle_mark.swap(used as u32, Relaxed);
                if seen == used as u32 {
                    for routing in 0..2 {
                        crate::breaker::close_idle(&walk.ask(index as u32, member.slot, routing));
                    }
                }
            }
            timers.idle[index] = Some(now.plus(nanos(view.spec.idle_timeout)));
        }
    }

    /// Ends every live request whose user data is wanted: those of a caller that is gone. Stateless attempts stay.
    pub fn abandon_all(&self, worker: &mut Worker, wanted: impl Fn(u64) -> bool, now: Time) -> u16 {
        self.refresh(worker, now);
        for (index, slot) in self.slab.each() {
            if self.slot_lost(index) || !wanted(slot.user_data.load(Relaxed)) {
                continue;
            }
            let Some(mut state) = slot.state.lock() else { continue };
            // A stateless attempt has no user data: what is there was that of the request before.
            if !state.phase.is_live() || state.stateless || !wanted(slot.user_data.load(Relaxed)) {
                continue;
            }
            let id =
                Id { engine: self.settings.index, slot: index, generation: slot.generation(), attempt: 0 };
            self.walk(worker, now).finish_locked(slot, id.pack(), &mut state, finish::CLIENT_GONE);
        }
        self.walk(worker, now).signals()
    }

    /// Ends requests that nobody reports any more.
    fn expire_leases(&self, timers: &mut Maintenance, worker: &mut Worker, now: Time) {
        let from = timers.lease_slot;
        let mut seen = 0;
        let mut last = from;
        for (index, slot) in self.slab.each().skip(from as usize).take(LEASE_CHUNK as usize) {
            seen += 1;
            last = index + 1;
            let Ok(mut state) = slot.state.try_lock() else { continue };
            if !state.phase.is_live() {
                continue;
            }
            let over = if state.deadline == Time::NEVER {
                state.last.plus(LAST_CALL)
            } else {
                state.deadline.plus(self.settings.lease)
            };
            if now < over {
                continue;
            }
            let id =
                Id { engine: self.settings.index, slot: index, generation: slot.generation(), attempt: 0 };
            let (cluster, number, open) = (state.cluster, state.number, state.attempts.len().max(1));
            let mut walk = self.walk(worker, now);
            walk.finish_locked(slot, id.pack(), &mut state, finish::SHUTDOWN);
            let Some(mine) = walk.clusters.get(cluster as usize) else { continue };
            for _ in 0..open {
                mine.counters.count(Counter::AttemptsLost);
            }
            let line = Json::new()
                .text("type", "nexthop.attempt_lost")
                .text("cluster_name", &mine.shared.name)
                .raw("number", number)
                .end();
            self.events.push(line);
        }
        let more = seen == LEASE_CHUNK as usize;
        timers.lease_slot = if more { last } else { 0 };
        timers.leases = Some(if more { now } else { now.plus(self.lease_pause()) });
    }
}

/// Nanoseconds; an interval that was cut to 0 ms (or is 0 by runtime) counts as 1 ms.
fn sweep_interval(rules: &Rules) -> u64 {
    nanos(rules.spec.interval).max(MILLI)
}

impl Maintenance {
    fn next(&self) -> Time {
        let timers =
            self.sweeps.iter().chain(&self.idle).chain(&self.loads).flatten().copied().chain(self.leases);
        timers.min().unwrap_or(Time::NEVER)
    }
}
