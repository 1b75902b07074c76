//! The next attempt, or a wait, or a refusal.

use super::pick::{Brings, Picked};
use super::state::{Attempt, Phase, State};
use super::steer::COOLING;
use super::{Waiters, Walk, clear};
use crate::breaker::{Members, Permit, Place, acquire, acquire_free, leave, release};
use crate::clock::{Time, nanos};
use crate::engine::Core;
use crate::ids::{Id, attempt_mark, request_of};
use crate::opt_in::OptCounter;
use crate::outcome::{Decision, Misuse, NEVER, bits, flags, kind, reason, refusal, resource, span, wait};
use crate::policies::Policies;
use crate::request::slab::Slot;
use crate::shed::Sheds;
use crate::snapshot::Snapshot;
use crate::spec::ConnectionStyle;
use crate::stats::Counter;
use crate::sync::atomic::Ordering::Relaxed;

/// A queued caller is asked back at least this often: a lost wake-up costs a second, not a hang.
const ASK_BACK: u64 = 1_000_000_000;

/// The bit of an attempt that is started beside others.
fn hedges(st: &State) -> u16 {
    if st.attempts.is_empty() { 0 } else { bits::HEDGE }
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
        let phase = st.phase;
        match phase {
            Phase::Flight if st.hedge().is_some() => {}
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
        if st.has_rare {
            if st.rare().too_large {
                self.refuse(request, slot, st, refusal::BODY_TOO_LARGE, 507, 0, out);
                return Ok(());
            }
            self.soft_timeouts(policies, st);
        }
        match st.phase {
            Phase::Flight => self.wait_for_attempts(request, st, out),
            Phase::BackOff if self.now < st.retry_at => {
                let why = if st.attempts.is_empty() { wait::BACKOFF } else { wait::HEDGE };
                self.wait(request, st, why, st.retry_at.min(st.deadline), out);
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
        let snapshot: &'a Snapshot = self.snapshot;
        if let Some(sheds) = &snapshot.clusters[st.cluster as usize].sheds
            && self.is_shed(sheds, request, slot, st, out)
        {
            return;
        }
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

    /// Whether a new request is turned away before anything else, which is answered then.
    #[cold]
    fn is_shed(
        &mut self,
        sheds: &Sheds,
        request: u64,
        slot: &Slot,
        st: &mut State,
        out: &mut Decision,
    ) -> bool {
        // A stateless attempt with a higher number is the caller's own retry.
        let Some((why, flag)) = sheds.turn_away(st.is_retry, self.random) else { return false };
        st.number = 0;
        self.clusters[st.cluster as usize].counters.count_status(503, false);
        self.refuse(request, slot, st, why, 503, flag, out);
        true
    }

    /// The retry breaker is asked for a stateless retry: nobody decided it before.
    #[cold]
    fn take_retry(&mut self, request: u64, slot: &Slot, st: &mut State, out: &mut Decision) -> bool {
        let p = usize::from(st.routing);
        let entry = &self.snapshot.clusters[st.cluster as usize];
        let Some(view) = &entry.view else { return true };
        let counters = &self.clusters[st.cluster as usize].counters;
        let members = Members { hosts: &self.core.hosts, list: &view.members };
        if !entry.shared.ledgers[p].take_retry(&view.limits[p], members, p, self.now) {
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
        if st.has_rare && !self.choose_cluster_again(policies, st) {
            st.resource = resource::SUB_CLUSTER_MISSING;
            self.clusters[st.cluster as usize].counters.count_status(503, false);
            self.refuse(request, slot, st, refusal::NO_HEALTHY_UPSTREAM, 503, flags::UH, out);
            return;
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
            bits: picked.bits | if st.is_retry { bits::RETRY } else { 0 } | hedges(st),
            ticket: picked.ticket,
            counted: false,
            answered: false,
            good: false,
            later: false,
            status: 0,
            hedged: false,
            told: false,
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
                if view.looks_back {
                    entry.shared.ledgers[p].begin(&view.limits[p], self.now);
                }
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
            // One request has one place in queues: while an attempt's permit may still be there, no other may wait.
            if st.attempts.iter().any(|other| other.counted) {
                ask.counters.count(Counter::RqPendingOverflow);
                Permit::Refused(resource::PENDING)
            } else {
                acquire(&ask, style, request, &slot.grant, &waiters)
            }
        };
        match permit {
            Permit::Granted => {
                self.begun(&attempt, st.routing);
                self.go(request, st, attempt, out);
            }
            Permit::Counted => {
                attempt.counted = true;
                self.begun(&attempt, st.routing);
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

    /// A budget that looks back counts beginnings.
    fn begun(&self, attempt: &Attempt, routing: u8) {
        let entry = &self.snapshot.clusters[attempt.cluster as usize];
        let p = usize::from(routing);
        if let Some(view) = entry.view.as_ref().filter(|view| view.looks_back) {
            entry.shared.ledgers[p].begin(&view.limits[p], self.now);
        }
    }

    fn overflow(&mut self, request: u64, slot: &Slot, st: &mut State, which: u8, out: &mut Decision) {
        self.clusters[st.cluster as usize].counters.count_status(503, false);
        if !st.attempts.is_empty() {
            // As a reset that others may make good (section 15).
            st.phase = Phase::Flight;
            (out.host, out.host_version) = (0, 0);
            self.wait_for_attempts(request, st, out);
            return;
        }
        st.resource = which;
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
                self.begun(&attempt, st.routing);
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
        if self.time_out_all(slot, request, st) {
            out.bits |= bits::ABORT_OTHERS;
        }
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

    pub(super) fn wait(&self, request: u64, st: &State, why: u8, until: Time, out: &mut Decision) {
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
                self.arm_hedge(st, attempt.mark, out);
            }
        }
        out.bits = bits | self.signals();
        self.clusters[attempt.cluster as usize].counters.count(Counter::RqTotal);
        if st.retries && !st.stateless {
            st.tried.push((attempt.slot, attempt.birth));
            if st.has_rare
                && let Some(plugin) = st.rare.as_deref_mut().and_then(|rare| rare.priorities.as_mut())
            {
                plugin.attempted(attempt.cluster, attempt.priority);
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
}
