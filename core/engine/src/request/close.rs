//! Ends of attempts and requests: what is held is given back, once.

use super::hedge::is_global_timeout;
use super::report::{grpc_of, grpc_to_http};
use super::state::{Attempt, Phase, State};
use super::{Waiters, Walk};
use crate::breaker::{Place, connected, leave, release, release_free};
use crate::headers::HeaderView;
use crate::hosts::{Host, flag};
use crate::ids::{Id, request_of};
use crate::outcome::{
    Misuse, Outcome, Packed, action, bits, failure, finish, flags, note, outcome_bits, reason,
};
use crate::request::slab::Slot;
use crate::retry::reply_of;
use crate::stats::Counter;
use crate::sync::atomic::Ordering::Relaxed;

impl Walk<'_> {
    /// Gives back what an attempt holds and forgets it. `served`: it had a good answer that nobody counted yet.
    #[inline]
    pub(crate) fn end_attempt(
        &mut self,
        slot: &Slot,
        request: u64,
        st: &mut State,
        at: usize,
        closed: bool,
        served: bool,
    ) {
        let last = at + 1 == st.attempts.len();
        let Some(attempt) = (if last { st.attempts.pop() } else { Some(st.attempts.remove(at)) }) else {
            return;
        };
        self.unprobed(&attempt);
        let host = self.core.hosts.host(attempt.slot);
        self.give_up(slot, request, st.routing, &attempt, host, closed, served);
    }

    /// Gives back what an attempt that is forgotten held.
    #[expect(clippy::too_many_arguments, reason = "the parts of one locked request")]
    #[inline]
    pub(crate) fn give_up(
        &mut self,
        slot: &Slot,
        request: u64,
        routing: u8,
        attempt: &Attempt,
        host: Host<'_>,
        closed: bool,
        served: bool,
    ) {
        let facts = host.facts();
        let gone = facts.flags.load(Relaxed)
            & (flag::REMOVED | flag::FAILED_OUTLIER_CHECK | flag::FAILED_ACTIVE_HC)
            != 0;
        let p = usize::from(routing);
        if !attempt.counted {
            let pool = &host.load().pools[p];
            let ledger = &self.clusters[attempt.cluster as usize].shared.ledgers[p];
            if release_free(pool, ledger, host, closed, gone, served) {
                return;
            }
        }
        if served {
            host.tally().rq_success.fetch_add(1, Relaxed);
        }
        self.release_slowly(slot, request, attempt, routing, closed || gone);
    }

    #[cold]
    fn release_slowly(&mut self, slot: &Slot, request: u64, attempt: &Attempt, routing: u8, closed: bool) {
        let core = self.core;
        let waiters = Waiters { slab: &core.slab, ready: &core.ready };
        let ask = self.ask(attempt.cluster, attempt.slot, routing);
        if attempt.counted {
            if leave(&ask, request, &slot.grant) {
                return;
            }
            slot.grant.set(Place::None);
        }
        release(&ask, closed, &waiters);
    }

    /// The request is over: its slot goes back, its ids are stale.
    #[inline]
    pub(crate) fn done(&mut self, request: u64, slot: &Slot, st: &mut State) {
        debug_assert!(st.attempts.is_empty() && st.queued.is_none());
        self.free_retry(st);
        if st.has_rare {
            self.leave_gates(st);
        }
        st.phase = Phase::Done;
        slot.next_generation();
        self.free.put(Id::unpack(request).slot, &self.core.slab);
    }

    /// `end` of an answered attempt, or its body broke.
    pub(crate) fn end(&mut self, attempt: u64, outcome: &Outcome<'_>) -> Packed {
        let id = Id::unpack(attempt);
        let slot = match Walk::find(self.core, id) {
            Ok(slot) if id.attempt != 0 => slot,
            Ok(_) | Err(Misuse::Invalid) => return Misuse::Invalid.into(),
            Err(_) => return Packed::NOTHING,
        };
        let Some(mut state) = slot.state.lock() else { return Packed::NOTHING };
        let st = &mut *state;
        if slot.generation() != id.generation || !st.phase.is_live() {
            return Packed::NOTHING;
        }
        let Some(at) = st.attempt(id.attempt) else { return Packed::NOTHING };
        self.now = st.at(self.now);
        if !st.attempts[at].answered {
            return Misuse::State.into();
        }
        self.stream_over(slot, request_of(attempt), st, at, outcome).unwrap_or_else(Packed::from)
    }

    /// The stream after the headers is over, cleanly or not.
    pub(crate) fn stream_over(
        &mut self,
        slot: &Slot,
        request: u64,
        st: &mut State,
        at: usize,
        outcome: &Outcome<'_>,
    ) -> Result<Packed, Misuse> {
        let attempt = st.attempts[at];
        let names = self.names(st, outcome, attempt.good)?;
        let trailers =
            HeaderView::new(names.as_deref().unwrap_or(&[]), outcome.headers).ok_or(Misuse::Invalid)?;
        self.measure_trailers(&attempt, trailers);
        let broken = outcome.failure != failure::NONE || outcome.bits & outcome_bits::CUT != 0;
        if broken {
            let kind = if outcome.failure == failure::NONE {
                failure::CONNECTION_TERMINATION
            } else {
                self.which_timeout(st, outcome.failure)
            };
            let route_over = st.has_rare && st.rare().route_over;
            st.flags |= if route_over { 0 } else { reply_of(kind).1 };
            self.count_limit(st, &attempt, kind, route_over);
            if kind == failure::REMOTE_RESET && self.speaks_http2(&attempt) {
                self.clusters[attempt.cluster as usize].counters.count(Counter::RqRxReset);
            }
            // As before the headers; but it is never retried.
            self.tell_failure(&attempt, kind, st.alternate);
            if attempt.later {
                self.cut_short(&mut st.attempts[at]);
            }
        }
        let status = grpc_of(outcome, trailers);
        if attempt.later {
            if !broken {
                self.whole(st, at, status.map(grpc_to_http));
            }
        } else if st.grpc {
            self.end_of_grpc(&attempt, status.filter(|_| !broken));
        } else if !broken && status.is_some_and(|status| status != 0) {
            self.core.hosts.tally(attempt.slot).rq_error.fetch_add(1, Relaxed);
        }
        if !broken && st.has_rare {
            self.gates_completed(st, grpc_of(outcome, trailers));
        }
        let closed = (broken && self.closes(&attempt, false)) || outcome.bits & outcome_bits::CLOSED != 0;
        self.end_attempt(slot, request, st, at, closed, false);
        if st.attempts.is_empty() {
            self.done(request, slot, st);
        }
        Ok(self.verdict(st, action::FORWARD, reason::STREAM_ENDED, 0, 0))
    }

    /// The host counts a gRPC stream by its trailers; outlier detection has judged its headers, and reads successes
    /// from the host's count.
    #[cold]
    fn end_of_grpc(&mut self, attempt: &Attempt, status: Option<u8>) {
        let tally = self.core.hosts.tally(attempt.slot);
        if status.is_some_and(|status| grpc_to_http(status) < 500) {
            tally.rq_success.fetch_add(1, Relaxed);
            return;
        }
        tally.rq_error.fetch_add(1, Relaxed);
        self.tell_answer(attempt, 200, 200, false, false, HeaderView::EMPTY);
    }

    /// `cancel`: the host is not judged, no retry; the request ends unless others are in flight.
    pub(crate) fn cancel(&mut self, attempt: u64) -> Packed {
        let id = Id::unpack(attempt);
        let Ok(slot) = Walk::find(self.core, id) else { return Packed::NOTHING };
        let Some(mut state) = slot.state.lock() else { return Packed::NOTHING };
        let st = &mut *state;
        if slot.generation() != id.generation || !st.phase.is_live() {
            return Packed::NOTHING;
        }
        let Some(at) = st.attempt(id.attempt) else { return Packed::NOTHING };
        self.now = st.at(self.now);
        self.tell_cancelled(&st.attempts[at].clone());
        self.cut(slot, request_of(attempt), st, at);
        if st.attempts.is_empty() {
            self.leave_queue(slot, request_of(attempt), st);
            self.done(request_of(attempt), slot, st);
        }
        self.verdict(st, action::FORWARD, reason::CLIENT_GONE, 0, 0)
    }

    pub(super) fn cut(&mut self, slot: &Slot, request: u64, st: &mut State, at: usize) {
        let closed = self.closes(&st.attempts[at], false);
        self.end_attempt(slot, request, st, at, closed, false);
    }

    /// `finish`: everything the request holds is given back, whatever its state.
    pub(crate) fn finish(&mut self, request: u64, why: u32) -> Packed {
        let id = Id::unpack(request);
        let Ok(slot) = Walk::find(self.core, id) else { return Packed::NOTHING };
        let Some(mut state) = slot.state.lock() else { return Packed::NOTHING };
        let st = &mut *state;
        if slot.generation() != id.generation || !st.phase.is_live() {
            return Packed::NOTHING;
        }
        self.now = st.at(self.now);
        self.finish_locked(slot, request_of(request), st, why)
    }

    pub(crate) fn finish_locked(&mut self, slot: &Slot, request: u64, st: &mut State, why: u32) -> Packed {
        let timed_out = is_global_timeout(why, st.phase);
        let late = if st.alternate { 204 } else { 504 };
        if timed_out {
            self.time_out_all(slot, request, st);
        }
        while !st.attempts.is_empty() {
            if why != finish::SHUTDOWN {
                self.tell_cancelled(&st.attempts[0].clone());
            }
            self.cut(slot, request, st, 0);
        }
        if self.leave_queue(slot, request, st) {
            self.clusters[st.cluster as usize].counters.count(Counter::RqCancelled);
            if timed_out {
                self.clusters[st.cluster as usize].counters.count(Counter::RqTimeout);
                self.clusters[st.cluster as usize].counters.count_status(late, false);
            }
        }
        let (status, flag) = match why {
            finish::GLOBAL_TIMEOUT => (late, flags::UT),
            finish::CLIENT_GONE => (0, flags::DC),
            // The connection manager's answer, which sets no flag (section 14.5).
            finish::MAX_DURATION if st.phase != Phase::Streaming => {
                st.rare().route_over = true;
                (if st.upload_open { 408 } else { 504 }, 0)
            }
            _ => (0, 0),
        };
        st.flags |= flag;
        st.reply_status = status;
        if status != 0 && st.phase != Phase::Streaming && st.has_rare {
            self.gates_local(st, status);
        }
        if status != 0 {
            st.end = super::state::End::Failed(if why == finish::GLOBAL_TIMEOUT {
                failure::GLOBAL_TIMEOUT
            } else {
                failure::MAX_STREAM_DURATION
            });
        }
        self.done(request, slot, st);
        self.verdict(st, action::FORWARD, reason::CLIENT_GONE, st.wire_status(status), 0)
    }

    /// The global limit ran out on an attempt (section 14.3).
    pub(super) fn time_out(&mut self, attempt: &Attempt, alternate: bool) {
        let tally = self.core.hosts.tally(attempt.slot);
        tally.rq_timeout.fetch_add(1, Relaxed);
        if !attempt.answered {
            tally.rq_error.fetch_add(1, Relaxed);
        }
        if !attempt.told {
            self.tell_failure(attempt, failure::GLOBAL_TIMEOUT, alternate);
        }
    }

    /// A fact about a request or attempt. Stale ids are accepted.
    pub(crate) fn note(&mut self, id: u64, what: u32) -> Result<u16, Misuse> {
        let parts = Id::unpack(id);
        let slot = match Walk::find(self.core, parts) {
            Ok(slot) => slot,
            Err(Misuse::Invalid) => return Err(Misuse::Invalid),
            Err(_) => return Ok(0),
        };
        if !(note::CONNECTED..=note::INTERIM).contains(&what) {
            return Err(Misuse::Invalid);
        }
        let Some(mut state) = slot.state.lock() else { return Ok(0) };
        let st = &mut *state;
        if slot.generation() != parts.generation || !st.phase.is_live() {
            return Ok(0);
        }
        self.now = st.at(self.now);
        match what {
            note::CONNECTED => {
                if let Some(attempt) = st.queued {
                    let core = self.core;
                    let waiters = Waiters { slab: &core.slab, ready: &core.ready };
                    connected(&self.ask(attempt.cluster, attempt.slot, st.routing), &waiters);
                }
            }
            note::SENT => st.sent = true,
            note::BODY_COMPLETE if st.upload_open => {
                st.upload_open = false;
                let never = st.timeout == crate::outcome::NEVER;
                st.deadline = if never { crate::clock::Time::NEVER } else { self.now.plus(st.timeout) };
                let rare = st.rare.as_deref().filter(|_| st.has_rare);
                if let Some(until) = rare.and_then(|rare| rare.route_until) {
                    st.deadline = st.deadline.min(until);
                }
                self.upload_ended(st);
            }
            note::RETRY_ABANDONED if st.retries => {
                st.retries = false;
                st.abandoned = true;
                self.clusters[st.cluster as usize].counters.count(Counter::RetryOrShadowAbandoned);
                // A retry that waits has nothing whole to send any more.
                self.free_retry(st);
                st.rare().too_large |= st.attempts.is_empty() && st.phase == Phase::BackOff;
            }
            note::INTERIM if !st.interim => {
                st.interim = true;
                self.clusters[st.cluster as usize].counters.count_status(100, false);
            }
            _ => {}
        }
        Ok(self.signals() & (bits::WAKE | bits::EVENTS))
    }
}
