//! The next attempt, or a wait, or a refusal.

use super::state::{Attempt, Phase, State};
use super::steer::COOLING;
use super::wanted::wanted;
use super::{Waiters, Walk, clear};
use crate::balance::{Criteria, FilterCall, Overrides, PriorityLoad, Selection};
use crate::breaker::{Members, Permit, Place, acquire, acquire_free, leave, release};
use crate::clock::{Time, nanos};
use crate::cluster::ClusterView;
use crate::engine::Core;
use crate::hosts::flag;
use crate::ids::{Id, attempt_mark, request_of};
use crate::opt_in::OptCounter;
use crate::outcome::{Decision, Misuse, NEVER, bits, flags, kind, reason, refusal, resource, span, wait};
use crate::policies::{Leads, Policies};
use crate::request::slab::Slot;
use crate::retry::PreviousPriorities;
use crate::snapshot::Snapshot;
use crate::spec::ConnectionStyle;
use crate::stats::Counter;
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

/// A queued caller is asked back at least this often: a lost wake-up costs a second, not a hang.
const ASK_BACK: u64 = 1_000_000_000;

/// A host that a selection found.
pub(super) struct Picked {
    pub(super) slot: u32,
    pub(super) cluster: u32,
    pub(super) priority: u32,
    pub(super) bits: u16,
}

/// What every level of a selection passes on.
pub(super) struct Want<'w> {
    hash: Option<u64>,
    own_hashes: &'w [(u32, Option<u64>)],
    pub(super) criteria: Option<&'w Criteria>,
    /// What it brings to filters, by cluster.
    brought: &'w [(u32, Vec<Option<String>>)],
    state: &'w State,
    overrides: Option<&'w Overrides>,
    /// A host by address, and whether no other will do.
    wanted: Option<&'w (String, bool)>,
    number: u32,
    pub(super) candidates: u32,
    pub(super) reject: Option<&'w dyn Fn(u32) -> bool>,
    /// Whether an earlier attempt met a host; only of retries.
    pub(super) tried: Option<&'w dyn Fn(u32) -> bool>,
    /// The retry priority plugin, while it acts.
    priorities: &'w Cell<Option<Box<PreviousPriorities>>>,
    pub(super) is_retry: bool,
    pub(super) routing: u8,
    /// Hosts that an answer spoke against.
    pub(super) avoid: &'w [(u32, u32)],
    /// When the first host is back that was set aside.
    pub(super) cooling: &'w Cell<Time>,
}

/// What one selection among a cluster's own hosts brings.
#[derive(Clone, Copy)]
pub(super) struct Brings<'w> {
    pub(super) hash: Option<u64>,
    pub(super) criteria: Option<&'w Criteria>,
    pub(super) filters: Option<&'w FilterCall<'w>>,
    pub(super) overrides: Option<&'w Overrides>,
    pub(super) candidates: u32,
    pub(super) reject: Option<&'w dyn Fn(u32) -> bool>,
    /// Of retries, where tried hosts are excluded.
    pub(super) tried: Option<&'w dyn Fn(u32) -> bool>,
    pub(super) load: Option<&'w PriorityLoad>,
}

impl Brings<'static> {
    const NOTHING: Self = Self {
        hash: None,
        criteria: None,
        filters: None,
        overrides: None,
        candidates: 1,
        reject: None,
        tried: None,
        load: None,
    };
}

impl<'a> Walk<'a> {
    /// `choose` on a live request.
    pub(crate) fn choose(&mut self, request: u64, out: &mut Decision) -> Result<(), Misuse> {
        let id = Id::unpack(request);
        let slot = Walk::find(self.core, id)?;
        let mut state = slot.state.lock().ok_or(Misuse::Ended)?;
        let st = &mut *state;
        if slot.generation() != id.generation || !st.phase.is_live() {
            return Err(Misuse::Ended);
        }
        let request = request_of(request);
        match st.phase {
            Phase::Flight | Phase::Streaming => return Err(Misuse::State),
            Phase::Free | Phase::Done => return Err(Misuse::Ended),
            Phase::Select | Phase::BackOff | Phase::Queued => {}
        }
        clear(out);
        self.now = st.at(self.now);
        let mut kept = None;
        let policies = self.made(st, &mut kept)?;
        if self.now >= st.deadline {
            self.too_late(slot, request, st, out);
            return Ok(());
        }
        if st.deadline != Time::NEVER && self.is_short_of_time(policies.retry(st).options.as_deref(), st) {
            self.refuse_short(request, slot, st, out);
            return Ok(());
        }
        match st.phase {
            Phase::BackOff if self.now < st.retry_at => {
                self.wait(request, st, wait::BACKOFF, st.retry_at.min(st.deadline), out);
            }
            Phase::BackOff => self.retry(policies, slot, request, st, out),
            Phase::Queued => self.queued(policies, slot, request, st, out),
            _ => self.select(policies, slot, request, st, out),
        }
        Ok(())
    }

    /// The first choice of a new request.
    #[inline]
    pub(crate) fn first(
        &mut self,
        policies: &Policies,
        slot: &Slot,
        request: u64,
        st: &mut State,
        out: &mut Decision,
    ) {
        if !st.stateless {
            st.number = 1;
        } else if st.number > 1 && st.retries && !self.take_retry(request, slot, st, out) {
            return;
        }
        // A first choice among hosts of its own is by far the most frequent one.
        match &self.snapshot.clusters[st.cluster as usize].view {
            Some(view) if view.direct && !st.is_retry && !st.has_rare => {
                match self.among(st.cluster, view, Brings { hash: st.hash, ..Brings::NOTHING }) {
                    Ok(picked) => self.at_host(policies, slot, request, st, picked, out),
                    Err(why) => self.no_host(request, slot, st, why, out),
                }
            }
            _ => self.select(policies, slot, request, st, out),
        }
    }

    /// The retry breaker is asked for a stateless retry: nobody decided it before.
    #[cold]
    fn take_retry(&mut self, request: u64, slot: &Slot, st: &mut State, out: &mut Decision) -> bool {
        let p = usize::from(st.routing);
        let entry = &self.snapshot.clusters[st.cluster as usize];
        let Some(view) = &entry.view else { return true };
        let counters = &self.clusters[st.cluster as usize].counters;
        let members = Members { hosts: &self.core.hosts, list: &view.members };
        if !entry.shared.ledgers[p].take_retry(&view.limits[p], members, p) {
            counters.count(Counter::RqRetryOverflow);
            st.resource = resource::RETRIES;
            self.refuse(request, slot, st, refusal::OVERFLOW, 503, flags::UO, out);
            return false;
        }
        st.holds_retry = true;
        counters.count(Counter::RqRetry);
        counters.count(Counter::RqRetryBackoffExponential);
        true
    }

    /// The back-off is over (section 11).
    fn retry(&mut self, policies: &Policies, slot: &Slot, request: u64, st: &mut State, out: &mut Decision) {
        st.is_retry = true;
        st.number = st.number.saturating_add(1);
        if st.has_rare {
            self.choose_cluster_again(policies, st);
        }
        if self.snapshot.clusters[st.cluster as usize].view.is_some() {
            let counters = &self.clusters[st.cluster as usize].counters;
            counters.count(Counter::RqRetry);
            match st.back_off_kind {
                reason::BACKOFF => counters.count(Counter::RqRetryBackoffExponential),
                reason::BACKOFF_RATELIMITED => counters.count(Counter::RqRetryBackoffRatelimited),
                _ => {}
            }
        }
        self.select(policies, slot, request, st, out);
    }

    /// With `refresh_cluster_on_retry` each of the weighted clusters has its turn before one comes again. The word
    /// that chose the first one chooses them all.
    #[cold]
    fn choose_cluster_again(&mut self, policies: &Policies, st: &mut State) {
        let Leads::Weighted { clusters, .. } = &policies.request(st).leads else { return };
        let Some((word, used)) = st.rare.as_deref_mut().and_then(|rare| rare.again.as_mut()) else { return };
        if clusters.iter().all(|lead| lead.weight == 0 || used.contains(&lead.cluster)) {
            used.clear();
        }
        let left = || clusters.iter().filter(|lead| !used.contains(&lead.cluster));
        let total: u64 = left().map(|lead| lead.weight).sum();
        let mut at = *word % total.max(1);
        let chosen = left().find(|lead| {
            let here = at < lead.weight;
            at = at.saturating_sub(lead.weight);
            here
        });
        let Some(cluster) = chosen.map(|lead| lead.cluster) else { return };
        used.push(cluster);
        st.course.cluster = cluster;
    }

    /// Chooses a host and asks for a permit there.
    #[inline(never)]
    fn select(&mut self, policies: &Policies, slot: &Slot, request: u64, st: &mut State, out: &mut Decision) {
        let picked = match &self.snapshot.clusters[st.cluster as usize].view {
            Some(_) => self.host(policies, st),
            None => {
                self.refuse(request, slot, st, refusal::NO_CLUSTER, 503, flags::NC, out);
                return;
            }
        };
        match picked {
            Ok(picked) => self.at_host(policies, slot, request, st, picked, out),
            Err(why) => self.no_host(request, slot, st, why, out),
        }
    }

    #[cold]
    fn no_host(&mut self, request: u64, slot: &Slot, st: &mut State, why: u8, out: &mut Decision) {
        self.live_discard(st);
        let counters = &self.clusters[st.cluster as usize].counters;
        if why == COOLING {
            counters.count_opt(OptCounter::CoolDownRefused);
            counters.count_status(503, false);
            let until = st.rare().opted.cools_until;
            self.refuse(request, slot, st, refusal::COOLING, 503, flags::UH, out);
            out.wait = until.since(self.now);
            return;
        }
        st.resource = why;
        counters.count(Counter::CxNoneHealthy);
        counters.count_status(503, false);
        self.refuse(request, slot, st, refusal::NO_HEALTHY_UPSTREAM, 503, flags::UH, out);
    }

    /// A host is chosen; the breakers have the next word.
    #[inline]
    fn at_host(
        &mut self,
        policies: &Policies,
        slot: &Slot,
        request: u64,
        st: &mut State,
        picked: Picked,
        out: &mut Decision,
    ) {
        let core: &'a Core = self.core;
        let host = core.hosts.host(picked.slot);
        let facts = host.facts();
        let attempt = Attempt {
            mark: attempt_mark(st.number.max(1)),
            number: st.number,
            slot: picked.slot,
            birth: facts.birth.load(Relaxed),
            cluster: picked.cluster,
            bits: picked.bits | if st.is_retry { bits::RETRY } else { 0 },
            counted: false,
            answered: false,
            good: false,
            later: false,
            status: 0,
            priority: picked.priority,
            begun: self.now,
        };
        out.host = attempt.slot;
        out.host_version = facts.version.load(Relaxed);
        let snapshot: &'a Snapshot = self.snapshot;
        let entry = &snapshot.clusters[picked.cluster as usize];
        if let Some(view) = &entry.view {
            let p = usize::from(st.routing);
            let pool = &host.load().pools[p];
            let max = view.limits[p].max_requests;
            if acquire_free(pool, &entry.shared.ledgers[p], max, view.streams) {
                self.go(request, st, attempt, out);
                return;
            }
        }
        self.ask_permit(policies, slot, request, st, attempt, out);
    }

    /// No stream is free at once: a new connection, the queue, or a refusal.
    #[cold]
    fn ask_permit(
        &mut self,
        policies: &Policies,
        slot: &Slot,
        request: u64,
        st: &mut State,
        mut attempt: Attempt,
        out: &mut Decision,
    ) {
        let core: &'a Core = self.core;
        let waiters = Waiters { slab: &core.slab, ready: &core.ready };
        let view = self.snapshot.clusters[attempt.cluster as usize].view.as_ref();
        let style = view.map_or(ConnectionStyle::Count, |view| view.style(st.stateless));
        let permit = {
            let ask = self.ask(attempt.cluster, attempt.slot, st.routing);
            acquire(&ask, style, request, &slot.grant, &waiters)
        };
        match permit {
            Permit::Granted => self.go(request, st, attempt, out),
            Permit::Counted => {
                attempt.counted = true;
                self.go(request, st, attempt, out);
            }
            Permit::Queued => {
                st.queued = Some(attempt);
                st.phase = Phase::Queued;
                // The grant may have come between queueing and here.
                if slot.grant.get() == Place::Waiting {
                    (out.host, out.host_version) = (0, 0);
                    self.wait(request, st, wait::QUEUE, st.deadline.min(self.now.plus(ASK_BACK)), out);
                } else {
                    self.queued(policies, slot, request, st, out);
                }
            }
            Permit::Refused(which) => {
                self.unprobed(&attempt);
                st.tried.push((attempt.slot, attempt.birth));
                self.overflow(request, slot, st, which, out);
            }
        }
    }

    fn overflow(&mut self, request: u64, slot: &Slot, st: &mut State, which: u8, out: &mut Decision) {
        st.resource = which;
        self.clusters[st.cluster as usize].counters.count_status(503, false);
        self.refuse(request, slot, st, refusal::OVERFLOW, 503, flags::UO, out);
    }

    /// Is it my turn?
    fn queued(&mut self, policies: &Policies, slot: &Slot, request: u64, st: &mut State, out: &mut Decision) {
        let Some(attempt) = st.queued else {
            st.phase = Phase::Select;
            self.select(policies, slot, request, st, out);
            return;
        };
        let place = slot.grant.get();
        if place != Place::Waiting {
            // Whoever asks by itself need not be told any more.
            self.core.ready.remove(request);
        }
        match place {
            Place::Waiting => {
                self.wait(request, st, wait::QUEUE, st.deadline.min(self.now.plus(ASK_BACK)), out);
            }
            Place::Granted if self.is_set_aside(&attempt) => {
                self.leave_queue(slot, request, st);
                st.phase = Phase::Select;
                self.select(policies, slot, request, st, out);
            }
            Place::Granted => {
                slot.grant.set(Place::None);
                st.queued = None;
                out.host = attempt.slot;
                out.host_version = self.core.hosts.facts(attempt.slot).version.load(Relaxed);
                self.go(request, st, attempt, out);
            }
            Place::Overflow => {
                slot.grant.set(Place::None);
                st.queued = None;
                self.unprobed(&attempt);
                out.host = attempt.slot;
                out.host_version = self.core.hosts.facts(attempt.slot).version.load(Relaxed);
                self.overflow(request, slot, st, resource::REQUESTS, out);
            }
            Place::HostGone | Place::None => {
                slot.grant.set(Place::None);
                st.queued = None;
                self.unprobed(&attempt);
                st.phase = Phase::Select;
                self.select(policies, slot, request, st, out);
            }
        }
    }

    /// Gives up the place in the queue, or the grant that came meanwhile. Returns whether it was still waiting.
    pub(crate) fn leave_queue(&mut self, slot: &Slot, request: u64, st: &mut State) -> bool {
        let Some(attempt) = st.queued.take() else { return false };
        self.unprobed(&attempt);
        let core = self.core;
        let waiters = Waiters { slab: &core.slab, ready: &core.ready };
        let ask = self.ask(attempt.cluster, attempt.slot, st.routing);
        let waiting = leave(&ask, request, &slot.grant);
        core.ready.remove(request);
        if !waiting && slot.grant.get() == Place::Granted {
            release(&ask, false, &waiters);
        }
        slot.grant.set(Place::None);
        waiting
    }

    /// The deadline passed while nothing was in flight (section 14.3).
    fn too_late(&mut self, slot: &Slot, request: u64, st: &mut State, out: &mut Decision) {
        let waited = st.phase == Phase::Queued && self.leave_queue(slot, request, st);
        let counters = &self.clusters[st.cluster as usize].counters;
        if waited {
            counters.count(Counter::RqCancelled);
        }
        if waited && !Self::runs_out(st) {
            counters.count(Counter::RqTimeout);
            counters.count_status(if st.alternate { 204 } else { 504 }, false);
        }
        let status = if st.alternate { 204 } else { 504 };
        if Self::runs_out(st) {
            st.rare().route_over = true;
            let status = if st.upload_open { 408 } else { 504 };
            self.refuse(request, slot, st, refusal::TIMEOUT, status, 0, out);
            return;
        }
        self.refuse(request, slot, st, refusal::TIMEOUT, status, flags::UT, out);
    }

    /// Less time is left than any attempt takes.
    #[cold]
    pub(super) fn refuse_short(&mut self, request: u64, slot: &Slot, st: &mut State, out: &mut Decision) {
        let counters = &self.clusters[st.cluster as usize].counters;
        counters.count_status(504, false);
        if st.phase == Phase::Queued && self.leave_queue(slot, request, st) {
            self.clusters[st.cluster as usize].counters.count(Counter::RqCancelled);
        }
        self.refuse(request, slot, st, refusal::DEADLINE, 504, flags::UT, out);
    }

    fn wait(&mut self, request: u64, st: &State, why: u8, until: Time, out: &mut Decision) {
        out.kind = kind::WAIT;
        out.request = request;
        out.number = st.number;
        out.refusal = why;
        out.wait = span(until, self.now);
        out.remaining = span(st.deadline, self.now);
        out.try_timeout = NEVER;
        out.bits = self.signals();
    }

    /// The attempt may be sent.
    #[inline]
    fn go(&mut self, request: u64, st: &mut State, attempt: Attempt, out: &mut Decision) {
        let remaining = span(st.deadline, self.now);
        out.kind = kind::GO;
        out.request = request;
        out.attempt = request | u64::from(attempt.mark);
        out.number = attempt.number;
        out.want_ok = st.wants.ok;
        out.want_err = st.wants.err;
        out.try_timeout = st.per_try.min(remaining);
        out.remaining = remaining;
        out.wait = NEVER;
        let mut bits = attempt.bits;
        if st.marks | st.has_rare {
            bits |= Self::header_bits(st);
            if st.has_rare {
                self.limit_stream(st, &attempt, out);
                self.live_start(st, &attempt);
                if let Some(session) = &mut st.rare().session {
                    session.host = Some((attempt.slot, attempt.birth));
                }
            }
        }
        out.bits = bits | self.signals();
        self.clusters[attempt.cluster as usize].counters.count(Counter::RqTotal);
        if st.retries && !st.stateless {
            st.tried.push((attempt.slot, attempt.birth));
            if st.has_rare
                && let Some(plugin) = st.rare.as_deref_mut().and_then(|rare| rare.priorities.as_mut())
            {
                plugin.attempted(attempt.priority);
            }
        }
        st.attempts.push(attempt);
        st.phase = Phase::Flight;
    }

    /// The attempt's own limit, to the end of its body (section 14.5).
    #[cold]
    fn limit_stream(&self, st: &mut State, attempt: &Attempt, out: &mut Decision) {
        let Some(rare) = st.rare.as_deref_mut() else { return };
        let view = self.snapshot.clusters[attempt.cluster as usize].view.as_ref();
        let own = view.map(|view| nanos(view.spec.max_stream_duration)).filter(|limit| *limit > 0);
        let limit = rare.stream_limit.or(own).filter(|limit| *limit != NEVER);
        rare.stream_until = limit.map(|limit| self.now.plus(limit));
        if let Some(limit) = limit {
            out.remaining = out.remaining.min(limit);
            out.try_timeout = out.try_timeout.min(limit);
        }
    }

    #[cold]
    fn header_bits(st: &State) -> u16 {
        let rare = st.rare.as_deref().filter(|_| st.has_rare);
        let rewrite = rare.is_some_and(|rare| rare.path.is_some() || rare.authority.is_some());
        let cookies = rare.is_some_and(|rare| !rare.cookies.is_empty());
        let mut bits = 0;
        if st.marks || rewrite || cookies {
            bits |= bits::HEADERS;
        }
        if rewrite {
            bits |= bits::REWRITE;
        }
        bits
    }

    /// One host for this attempt, or why there is none (a number of [`resource`]).
    fn host(&mut self, policies: &Policies, st: &mut State) -> Result<Picked, u8> {
        let priorities = Cell::new(None);
        if st.is_retry && st.has_rare {
            priorities.set(st.rare.as_deref_mut().and_then(|rare| rare.priorities.take()));
        }
        let cooling = Cell::new(Time::NEVER);
        let picked = self.host_with(policies, st, &priorities, &cooling);
        match &picked {
            Ok(picked) => {
                if picked.bits & bits::PROBE != 0 {
                    st.plain_success = false;
                }
                if cooling.get() != Time::NEVER {
                    self.walked(st, picked.cluster);
                }
            }
            Err(COOLING) => st.rare().opted.cools_until = cooling.get(),
            Err(_) => {}
        }
        if let Some(plugin) = priorities.take() {
            st.rare().priorities = Some(plugin);
        }
        picked
    }

    fn host_with(
        &mut self,
        policies: &Policies,
        st: &State,
        priorities: &Cell<Option<Box<PreviousPriorities>>>,
        cooling: &Cell<Time>,
    ) -> Result<Picked, u8> {
        let rare = st.rare.as_deref().filter(|_| st.has_rare);
        let own_hashes = rare.map_or(&[][..], |rare| &rare.own_hashes);
        let retry = policies.retry(st);
        let hosts = &self.core.hosts;
        let tried = &st.tried;
        let named = rare.map_or(&[][..], |rare| &rare.tried);
        let met = |slot: u32| {
            tried.contains(&(slot, hosts.facts(slot).birth.load(Relaxed)))
                || (!named.is_empty()
                    && hosts.info(slot).is_some_and(|(_, info)| named.contains(&info.address)))
        };
        let reject = |slot: u32| {
            if retry.omit_canary_hosts && hosts.flags(slot) & flag::CANARY != 0 {
                return true;
            }
            if retry.omits_by_metadata()
                && hosts.info(slot).is_some_and(|(_, info)| retry.omits(info.metadata.0.get("envoy.lb")))
            {
                return true;
            }
            retry.previous_hosts && met(slot)
        };
        let predicates = st.is_retry && retry.rejects();
        let want = Want {
            hash: st.hash,
            criteria: rare.and_then(|rare| rare.criteria.as_deref()),
            overrides: rare.and_then(|rare| rare.overrides.as_ref()),
            own_hashes,
            brought: rare.and_then(|rare| rare.brought.as_ref()).map_or(&[], |own| &own.values),
            state: st,
            wanted: rare.and_then(|rare| rare.wanted.as_ref()).filter(|_| !st.is_retry && st.number <= 1),
            number: rare.map_or(st.number, |rare| rare.opted.step(st.number)),
            candidates: if st.is_retry { retry.candidates } else { 1 },
            reject: if predicates { Some(&reject) } else { None },
            tried: if st.is_retry { Some(&met) } else { None },
            priorities,
            is_retry: st.is_retry,
            routing: st.routing,
            avoid: rare.map_or(&[], |rare| &rare.opted.avoid),
            cooling,
        };
        self.pick(st.cluster, &want)
    }

    /// One selection in one cluster; a composite hands on to the sub-cluster of this attempt.
    fn pick(&mut self, cluster: u32, want: &Want<'_>) -> Result<Picked, u8> {
        let Some(view) = &self.snapshot.clusters[cluster as usize].view else {
            return Err(resource::SUB_CLUSTER_MISSING);
        };
        if let Some((address, strict)) = want.wanted {
            let found = wanted(&self.core.hosts, view, address);
            let out = found.is_some_and(|(slot, _)| self.sits_out(view, slot, want.cooling));
            match found.filter(|_| !out) {
                Some((slot, priority)) => return Ok(Picked { slot, cluster, priority, bits: 0 }),
                None if out && *strict => return Err(COOLING),
                // A composite has no hosts: the word is its sub-cluster's.
                None if *strict && view.composite.is_none() => return Err(resource::NONE),
                None => {}
            }
        }
        match &view.composite {
            Some(subs) => self.composite(subs, want),
            None => {
                let own = want.own_hashes.iter().find(|(of, _)| *of == cluster);
                let hash = own.map_or(want.hash, |(_, hash)| *hash);
                let load = want.priorities.take().and_then(|mut plugin| {
                    let prepared = view.view(&self.core.hosts).prepared;
                    let load = plugin.load(prepared.healthy_availability(), prepared.degraded_availability());
                    want.priorities.set(Some(plugin));
                    load
                });
                let own = want.brought.iter().find(|(of, _)| *of == cluster);
                let call = own.map(|(_, values)| FilterCall::new(values, self.previous(want.state, view)));
                let brings = Brings {
                    hash,
                    criteria: want.criteria,
                    filters: call.as_ref(),
                    overrides: want.overrides,
                    candidates: want.candidates,
                    reject: want.reject,
                    tried: want.tried.filter(|_| view.spec.exclude_tried),
                    load: load.as_ref(),
                };
                let picked = if view.steer.is_some() || !want.avoid.is_empty() {
                    self.steered(cluster, view, want, brings)
                } else {
                    self.among(cluster, view, brings)
                };
                match &call {
                    Some(call) => {
                        let why = self.filters_told(cluster, call);
                        picked.map_err(
                            |found| if why == resource::NONE || found == COOLING { found } else { why },
                        )
                    }
                    None => picked,
                }
            }
        }
    }

    /// One selection among a cluster's own hosts.
    #[inline]
    pub(super) fn among(
        &mut self,
        cluster: u32,
        view: &ClusterView,
        brings: Brings<'_>,
    ) -> Result<Picked, u8> {
        let mine = &mut self.clusters[cluster as usize];
        let Some(scheduler) = &mut mine.scheduler else { return Err(resource::SUB_CLUSTER_MISSING) };
        // Only a bounded load asks; where one acts, no credits lie at hosts, so the count is exact.
        let active = |p: usize| mine.shared.ledgers[p].places();
        let cluster_active = if view.bounded { active(0).saturating_add(active(1)) } else { 0 };
        let mut selection = Selection {
            hash: brings.hash,
            criteria: brings.criteria,
            filters: brings.filters,
            overrides: brings.overrides,
            random: self.random,
            now: self.now,
            candidates: brings.candidates,
            reject: brings.reject,
            cluster_active,
            load: brings.load,
            counters: &mine.counters,
            priority: 0,
            panic: false,
            degraded: false,
        };
        let seen = view.view(&self.core.hosts);
        let slot = match brings.tried {
            None => scheduler.choose(seen, &mut selection),
            Some(tried) => scheduler.choose_untried(seen, &mut selection, tried),
        };
        let slot = slot.ok_or(resource::NONE)?;
        let bits = if selection.panic { bits::PANIC } else { 0 }
            | if selection.degraded { bits::DEGRADED } else { 0 };
        Ok(Picked { slot, cluster, priority: selection.priority, bits })
    }

    /// Attempt N goes to the N-th sub-cluster, or forward to the next that has a host
    /// (`spec/composite-and-aggregate.md` A2).
    fn composite(&mut self, subs: &[u32], want: &Want<'_>) -> Result<Picked, u8> {
        let Some(first) = (want.number as usize).checked_sub(1) else {
            return Err(resource::NO_ATTEMPT_NUMBER);
        };
        if first >= subs.len() {
            return Err(resource::PAST_LAST_SUB_CLUSTER);
        }
        let mut why = resource::SUB_CLUSTER_EMPTY;
        for (walked, sub) in subs[first..].iter().enumerate() {
            match self.pick(*sub, want) {
                Ok(mut picked) => {
                    if walked > 0 {
                        picked.bits |= bits::FALLBACK;
                    }
                    return Ok(picked);
                }
                Err(resource::NONE) => {
                    let empty = self.snapshot.clusters[*sub as usize]
                        .view
                        .as_ref()
                        .is_none_or(|view| view.members.is_empty());
                    why = if empty { resource::SUB_CLUSTER_EMPTY } else { resource::SUB_CLUSTER_REFUSED };
                }
                Err(inner) => why = inner,
            }
            if !self.snapshot.runtime.composite_skip_empty {
                break;
            }
        }
        // Whose hosts are set aside will have them again.
        Err(if want.cooling.get() == Time::NEVER { why } else { COOLING })
    }
}
