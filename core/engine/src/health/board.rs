//! The sessions and timers of all checked hosts. One lock; nothing is called under it.

use super::delay::{Bounds, first, next};
use super::session::{Session, interval};
use super::{CheckResult, HttpRules, Transition};
use crate::clock::{Time, nanos};
use crate::hosts::{HostArena, flag};
use crate::random::Source;
use crate::spec::{EndpointChecks, HealthCheckSpec, Probe, SpecError};
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sync::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All sessions of an engine.
#[derive(Default)]
pub(crate) struct Board {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bounds: Bounds,
    clusters: BTreeMap<u32, Checkers>,
    /// By slot.
    hosts: BTreeMap<u32, Checked>,
    /// Checks to hand out.
    due: BTreeSet<(Time, u32, usize)>,
    /// Checks that are out, by the end of their time.
    late: BTreeSet<(Time, u32, usize)>,
    /// The same by their number.
    out: BTreeMap<u64, (u32, usize)>,
    /// Numbers given out.
    last: u64,
}

/// The checkers of one cluster.
struct Checkers {
    list: Arc<[HealthCheckSpec]>,
    rules: Vec<Option<Arc<HttpRules>>>,
    counts: Vec<Counts>,
}

/// What one checker counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) attempt: u64,
    pub(crate) success: u64,
    pub(crate) failure: u64,
    pub(crate) network_failure: u64,
    pub(crate) passive_failure: u64,
    pub(crate) verify_cluster: u64,
}

/// A host with one run per checker of its cluster.
struct Checked {
    cluster: u32,
    endpoint: EndpointChecks,
    runs: Vec<Run>,
    /// Served before it was checked, and does so until each run has a result.
    serves: bool,
}

/// How a host comes under checks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joins {
    /// It has the flags of a checked host already.
    Flagged,
    /// It keeps the flags it has until it is judged: the cluster comes under checks with it.
    Serving,
}

struct Run {
    session: Session,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Not yet put on the calendar.
    New,
    Due(Time),
    Out(u64, Time),
}

/// A check to hand out.
pub(super) struct Handed {
    pub(super) id: u64,
    pub(super) slot: u32,
    pub(super) checkers: Arc<[HealthCheckSpec]>,
    pub(super) checker: usize,
    pub(super) endpoint: EndpointChecks,
}

/// What it takes to judge a check that is out.
pub(super) struct Pending {
    pub(super) checkers: Arc<[HealthCheckSpec]>,
    pub(super) checker: usize,
    pub(super) rules: Option<Arc<HttpRules>>,
    pub(super) cluster: u32,
    pub(super) slot: u32,
}

/// What a result did.
#[derive(Clone, Debug)]
pub(super) struct Applied {
    pub(super) cluster: u32,
    pub(super) slot: u32,
    pub(super) checkers: Arc<[HealthCheckSpec]>,
    pub(super) checker: usize,
    pub(super) result: CheckResult,
    /// The checker's first one.
    pub(super) first: bool,
    /// The host's flags before and after.
    pub(super) flags: (u32, u32),
    /// Host lists have to be built anew.
    pub(super) changed: bool,
}

/// The board, held.
pub(crate) struct Hold<'a> {
    _state: MutexGuard<'a, State>,
}

impl Board {
    /// Held over a fork, so that the child does not inherit a locked board.
    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold { _state: self.state.lock() }
    }

    /// Whether these checkers can work: only a regular expression can fail.
    pub(crate) fn check(list: &[HealthCheckSpec]) -> Result<(), SpecError> {
        list.iter().try_for_each(|spec| compile(spec).map(|_| ()))
    }

    pub(crate) fn set_bounds(&self, bounds: Bounds) {
        self.state.lock().bounds = bounds;
    }

    /// A cluster's checkers; none = it is checked no more. Other checkers than before begin anew.
    pub(crate) fn configure(&self, hosts: &HostArena, cluster: u32, list: &[HealthCheckSpec]) {
        let mut state = self.state.lock();
        if state.clusters.get(&cluster).is_some_and(|old| *old.list == *list) {
            return;
        }
        let known = state.hosts.iter().filter(|(_, host)| host.cluster == cluster);
        let known: Vec<(u32, EndpointChecks)> =
            known.map(|(slot, host)| (*slot, host.endpoint.clone())).collect();
        for (slot, _) in &known {
            state.leave(*slot);
        }
        state.clusters.remove(&cluster);
        if list.is_empty() {
            for (slot, _) in known {
                hosts.facts(slot).flags.fetch_and(!flag::ACTIVE, AcqRel);
            }
            return;
        }
        let rules = list.iter().map(|spec| compile(spec).ok().flatten().map(Arc::new)).collect();
        let counts = vec![Counts::default(); list.len()];
        state.clusters.insert(cluster, Checkers { list: list.into(), rules, counts });
        for (slot, endpoint) in known {
            state.join(hosts, cluster, slot, &endpoint, Joins::Serving);
        }
    }

    /// Whether hosts of this cluster are checked.
    pub(crate) fn checks(&self, cluster: u32) -> bool {
        self.state.lock().clusters.contains_key(&cluster)
    }

    /// A host of the cluster. One that is known goes on as it was.
    pub(crate) fn join(
        &self,
        hosts: &HostArena,
        cluster: u32,
        slot: u32,
        endpoint: &EndpointChecks,
        how: Joins,
    ) {
        self.state.lock().join(hosts, cluster, slot, endpoint, how);
    }

    /// Whether this host is checked, and its flags are what checks found.
    pub(crate) fn knows(&self, slot: u32) -> bool {
        self.state.lock().hosts.get(&slot).is_some_and(|host| !host.serves)
    }

    /// A host left.
    pub(crate) fn leave(&self, slot: u32) {
        self.state.lock().leave(slot);
    }

    /// When the next check is due or runs out of time.
    pub(crate) fn deadline(&self) -> Time {
        let due = self.state.lock().due.first().map_or(Time::NEVER, |(at, ..)| *at);
        due.min(self.end_of_time())
    }

    /// When the next check runs out of time.
    pub(crate) fn end_of_time(&self) -> Time {
        self.state.lock().late.first().map_or(Time::NEVER, |(at, ..)| *at)
    }

    /// The checks that are due, so many at most.
    pub(super) fn take_due(&self, now: Time, random: &mut Source, most: usize) -> Vec<Handed> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let mut handed = Vec::new();
        while handed.len() < most
            && let Some(&(at, slot, checker)) = state.due.first().filter(|(at, ..)| *at <= now)
        {
            state.due.remove(&(at, slot, checker));
            let bounds = state.bounds;
            let Some(host) = state.hosts.get_mut(&slot) else { continue };
            let Some(checkers) = state.clusters.get_mut(&host.cluster) else { continue };
            let spec = &checkers.list[checker];
            let run = &mut host.runs[checker];
            if run.phase == Phase::New
                && let Some(later) = first(spec, bounds, random)
            {
                let at = now.plus(nanos(later));
                run.phase = Phase::Due(at);
                state.due.insert((at, slot, checker));
                continue;
            }
            state.last += 1;
            let end = now.plus(nanos(spec.timeout));
            run.phase = Phase::Out(state.last, end);
            checkers.counts[checker].attempt += 1;
            let id = state.last;
            handed.push(Handed {
                id,
                slot,
                checkers: Arc::clone(&checkers.list),
                checker,
                endpoint: host.endpoint.clone(),
            });
            state.late.insert((end, slot, checker));
            state.out.insert(id, (slot, checker));
        }
        handed
    }

    /// A check that could not be handed over is due as it was.
    pub(super) fn take_back(&self, id: u64, now: Time) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let Some((slot, checker)) = state.out.remove(&id) else { return };
        state.due_again(slot, checker, now);
        let cluster = state.hosts.get(&slot).map(|host| host.cluster);
        if let Some(checkers) = cluster.and_then(|cluster| state.clusters.get_mut(&cluster)) {
            checkers.counts[checker].attempt -= 1;
        }
    }

    /// Numbers of checks whose time is over.
    pub(super) fn take_late(&self, now: Time) -> Vec<u64> {
        let state = self.state.lock();
        let over = state.late.iter().take_while(|(at, ..)| *at <= now);
        over.filter_map(|(_, slot, checker)| match state.hosts.get(slot)?.runs.get(*checker)?.phase {
            Phase::Out(id, _) => Some(id),
            _ => None,
        })
        .collect()
    }

    /// A check that is out; `Err` tells whether there ever was one of this number.
    pub(super) fn pending(&self, id: u64) -> Result<Pending, bool> {
        let state = self.state.lock();
        let &(slot, checker) = state.out.get(&id).ok_or(id != 0 && id <= state.last)?;
        let host = state.hosts.get(&slot).ok_or(true)?;
        let checkers = state.clusters.get(&host.cluster).ok_or(true)?;
        Ok(Pending {
            checkers: Arc::clone(&checkers.list),
            checker,
            rules: checkers.rules[checker].clone(),
            cluster: host.cluster,
            slot,
        })
    }

    /// The result of a check that is out.
    pub(super) fn finish(
        &self,
        hosts: &HostArena,
        id: u64,
        (result, immediate, verified): (CheckResult, bool, bool),
        had_traffic: bool,
        now: Time,
        random: &mut Source,
    ) -> Option<Applied> {
        let mut state = self.state.lock();
        let (slot, checker) = state.out.remove(&id)?;
        let bounds = state.bounds;
        let State { hosts: all, clusters, due, late, .. } = &mut *state;
        let host = all.get_mut(&slot)?;
        let checkers = clusters.get_mut(&host.cluster)?;
        let run = &mut host.runs[checker];
        if let Phase::Out(_, end) = run.phase {
            late.remove(&(end, slot, checker));
        }
        let counts = &mut checkers.counts[checker];
        counts.verify_cluster += u64::from(verified);
        if result.passed() && hosts.flags(slot) & flag::FAILED_ACTIVE_HC != 0 {
            hosts.check_passed(slot, now);
        }
        let (applied, transition) = host.take(hosts, checkers, slot, checker, result, immediate);
        if let Some(base) = interval(&checkers.list[checker], result, transition, had_traffic) {
            let at = now.plus(nanos(next(&checkers.list[checker], base, bounds, random)));
            host.runs[checker].phase = Phase::Due(at);
            due.insert((at, slot, checker));
        }
        Some(applied)
    }

    /// A response to a request asked for immediate failure: every checker takes it; timers stay.
    pub(super) fn passive(&self, hosts: &HostArena, slot: u32) -> Vec<Applied> {
        let mut state = self.state.lock();
        let State { hosts: all, clusters, .. } = &mut *state;
        let Some(host) = all.get_mut(&slot) else { return Vec::new() };
        let Some(checkers) = clusters.get_mut(&host.cluster) else { return Vec::new() };
        (0..host.runs.len())
            .map(|checker| host.take(hosts, checkers, slot, checker, CheckResult::Passive, false).0)
            .collect()
    }

    /// What a cluster's checkers counted, by name.
    pub(crate) fn counts(&self, cluster: u32) -> Vec<(String, Counts)> {
        let state = self.state.lock();
        let checkers = state.clusters.get(&cluster);
        let each = checkers.into_iter().flat_map(|all| all.list.iter().zip(&all.counts));
        each.map(|(spec, counts)| (spec.name.clone(), *counts)).collect()
    }

    /// Hosts that each checker of a cluster finds healthy, and degraded.
    pub(crate) fn found(&self, cluster: u32) -> Vec<(u64, u64)> {
        let state = self.state.lock();
        let n = state.clusters.get(&cluster).map_or(0, |checkers| checkers.list.len());
        let mut found = vec![(0, 0); n];
        for host in state.hosts.values().filter(|host| host.cluster == cluster) {
            for (run, (healthy, degraded)) in host.runs.iter().zip(&mut found) {
                *healthy += u64::from(run.session.flags & flag::FAILED_ACTIVE_HC == 0);
                *degraded += u64::from(run.session.flags & flag::DEGRADED_ACTIVE_HC != 0);
            }
        }
        found
    }

    /// In a forked child: nobody performs the parent's checks any more.
    pub(crate) fn after_fork(&self) {
        let Some(mut state) = self.state.try_lock() else { return };
        for (slot, checker) in std::mem::take(&mut state.out).into_values() {
            state.due_again(slot, checker, Time(0));
        }
    }
}

impl State {
    /// A check that was out has to be made anew.
    fn due_again(&mut self, slot: u32, checker: usize, at: Time) {
        let Some(run) = self.hosts.get_mut(&slot).and_then(|host| host.runs.get_mut(checker)) else { return };
        if let Phase::Out(_, end) = run.phase {
            self.late.remove(&(end, slot, checker));
        }
        run.phase = Phase::Due(at);
        self.due.insert((at, slot, checker));
    }

    fn join(&mut self, hosts: &HostArena, cluster: u32, slot: u32, endpoint: &EndpointChecks, how: Joins) {
        let Some(checkers) = self.clusters.get(&cluster) else { return };
        if let Some(host) = self.hosts.get_mut(&slot) {
            host.endpoint = endpoint.clone();
            return;
        }
        let serves = how == Joins::Serving;
        let flags = if serves { flag::FAILED_ACTIVE_HC } else { hosts.flags(slot) };
        let run = || Run { session: Session::new(flags), phase: Phase::New };
        let runs: Vec<Run> = checkers.list.iter().map(|_| run()).collect();
        self.due.extend((0..runs.len()).map(|checker| (Time(0), slot, checker)));
        self.hosts.insert(slot, Checked { cluster, endpoint: endpoint.clone(), runs, serves });
    }

    fn leave(&mut self, slot: u32) {
        let Some(host) = self.hosts.remove(&slot) else { return };
        for (checker, run) in host.runs.into_iter().enumerate() {
            match run.phase {
                Phase::New => {
                    self.due.remove(&(Time(0), slot, checker));
                }
                Phase::Due(at) => {
                    self.due.remove(&(at, slot, checker));
                }
                Phase::Out(id, end) => {
                    self.late.remove(&(end, slot, checker));
                    self.out.remove(&id);
                }
            }
        }
    }
}

impl Checked {
    /// One result; the host gets the flags of all checkers together, once each has had one.
    fn take(
        &mut self,
        hosts: &HostArena,
        checkers: &mut Checkers,
        slot: u32,
        checker: usize,
        result: CheckResult,
        immediate: bool,
    ) -> (Applied, Transition) {
        let counts = &mut checkers.counts[checker];
        match result {
            CheckResult::Success { .. } => counts.success += 1,
            _ => counts.failure += 1,
        }
        counts.network_failure += u64::from(matches!(result, CheckResult::Network | CheckResult::Timeout));
        counts.passive_failure += u64::from(result == CheckResult::Passive);
        let session = &mut self.runs[checker].session;
        let first = !session.is_judged();
        let transition = session.take(&checkers.list[checker], result, immediate);
        let flags = &hosts.facts(slot).flags;
        let was = flags.load(Relaxed);
        // What Envoy's host would have been before its first result.
        let served = self.serves;
        let before = if served { was | flag::FAILED_ACTIVE_HC } else { was };
        let mut after = before;
        if self.runs.iter().all(|run| run.session.is_judged()) {
            let mine = self.runs.iter().fold(0, |all, run| all | run.session.flags);
            flags.fetch_and(!flag::ACTIVE | mine, AcqRel);
            after = flags.fetch_or(mine, AcqRel) | mine;
            self.serves = false;
        }
        let several = self.runs.len() > 1;
        let changed = if several || served {
            !self.serves && (was ^ after) & flag::ACTIVE != 0
        } else {
            transition == Transition::Changed
        };
        let applied = Applied {
            cluster: self.cluster,
            slot,
            checkers: Arc::clone(&checkers.list),
            checker,
            result,
            first,
            flags: (before, after),
            changed,
        };
        (applied, transition)
    }
}

fn compile(spec: &HealthCheckSpec) -> Result<Option<HttpRules>, SpecError> {
    match &spec.probe {
        Probe::Http(probe) => HttpRules::compile(probe).map(Some),
        _ => Ok(None),
    }
}
