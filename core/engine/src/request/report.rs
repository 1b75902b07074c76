//! What became of an attempt, and what now (`spec/retry-and-timeouts.md` sections 6 to 8, 14, 17).

use super::Walk;
use super::cell::Guard;
use super::filters::tells;
use super::opt_in::{Seen, retry_after};
use super::state::{Attempt, End, Phase, State};
use crate::breaker::{Members, ledger};
use crate::clock::{MILLI, Time};
use crate::headers::HeaderView;
use crate::health::IMMEDIATE_FAIL;
use crate::ids::{Id, request_of};
use crate::outcome::{Misuse, Outcome, Packed, action, bits, failure, flags, outcome_bits, reason};
use crate::policies::Policies;
use crate::random::Random;
use crate::request::slab::Slot;
use crate::retry::{Retry, on_headers_with, on_reset, rate_limited_ms, reply_of};
use crate::spec::Protocol;
use crate::stats::Counter;
use crate::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// A time-out reported this close before the deadline is the deadline's.
const TOLERANCE: u64 = 5 * MILLI;

/// Which report it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Headers; the body follows.
    Headers,
    /// Everything at once.
    Whole,
    /// A failure.
    Fail,
}

/// The answer of the decision (section 8).
pub(super) enum Decided {
    Yes { after_ms: u64, reason: u8 },
    No(u8),
}

impl<'a> Walk<'a> {
    /// `headers`, `complete`, `fail`.
    #[inline]
    pub(crate) fn report(&mut self, attempt: u64, outcome: &Outcome<'_>, kind: Report) -> Packed {
        match self.report_checked(attempt, outcome, kind) {
            Ok(verdict) => verdict,
            Err(misuse) => misuse.into(),
        }
    }

    #[inline]
    fn report_checked(
        &mut self,
        attempt: u64,
        outcome: &Outcome<'_>,
        kind: Report,
    ) -> Result<Packed, Misuse> {
        let id = Id::unpack(attempt);
        let slot = Walk::find(self.core, id)?;
        check(id, outcome)?;
        let mut state = slot.state.lock().ok_or(Misuse::Ended)?;
        let st = &mut *state;
        if slot.generation() != id.generation || !st.phase.is_live() {
            return Err(Misuse::Ended);
        }
        let request = request_of(attempt);
        if kind == Report::Whole && outcome.is_bare() && is_plain_success(st, id, outcome.status) {
            let closed = outcome.bits & outcome_bits::CLOSED != 0;
            let verdict = self.succeed(slot, request, st, outcome.status, closed);
            leave(state);
            return Ok(verdict);
        }
        self.report_locked(slot, st, attempt, outcome, kind)
    }

    /// A whole answer that is nothing but a status. `None`: not plain, nothing happened, report it with the time.
    #[inline]
    pub(crate) fn report_plain(&mut self, attempt: u64, status: u16) -> Option<Packed> {
        let id = Id::unpack(attempt);
        let slot = Walk::find(self.core, id).ok()?;
        let mut state = slot.state.lock()?;
        let st = &mut *state;
        if slot.generation() != id.generation || !is_plain_success(st, id, status) {
            return None;
        }
        let verdict = self.succeed(slot, request_of(attempt), st, status, false);
        leave(state);
        Some(verdict)
    }

    /// A plain success of the only attempt: nothing to match, nothing to decide.
    #[inline]
    fn succeed(&mut self, slot: &Slot, request: u64, st: &mut State, status: u16, closed: bool) -> Packed {
        self.now = st.at(self.now);
        let Some(attempt) = st.attempts.pop() else { return Misuse::Ended.into() };
        let host = self.core.hosts.host(attempt.slot);
        if host.facts().has_failed() {
            // Clusters that look closer at their answers take the other way (`Course::plain_success`).
            self.tell_answer(&attempt, status, status, false, true, HeaderView::EMPTY);
        } else if st.split {
            self.tell_connected(&attempt);
        }
        self.free_retry(st);
        let counters = &self.clusters[st.cluster as usize].counters;
        if st.retries && st.is_retry {
            counters.count(Counter::RqRetrySuccess);
        }
        counters.count_status(status, false);
        self.give_up(slot, request, st.routing, &attempt, host, closed, true);
        self.done(request, slot, st);
        self.verdict(st, action::FORWARD, reason::SUCCESS, status, 0)
    }

    /// Every other report.
    #[inline(never)]
    fn report_locked(
        &mut self,
        slot: &Slot,
        st: &mut State,
        attempt: u64,
        outcome: &Outcome<'_>,
        kind: Report,
    ) -> Result<Packed, Misuse> {
        let at = st.attempt(Id::unpack(attempt).attempt).ok_or(Misuse::Ended)?;
        self.now = st.at(self.now);
        let answered = st.attempts[at].answered;
        if answered && kind != Report::Fail {
            return Err(Misuse::State);
        }
        let request = request_of(attempt);
        if answered {
            return self.stream_over(slot, request, st, at, outcome);
        }
        if tells(st) && !(100..200).contains(&outcome.status) {
            self.live_complete(st, &st.attempts[at], outcome);
        }
        let mut kept = None;
        let policies = self.made(st, &mut kept)?;
        if outcome.failure != failure::NONE {
            return Ok(self.failed(policies, slot, request, st, at, outcome));
        }
        self.answer(policies, slot, request, st, at, outcome, kind == Report::Whole)
    }

    /// Response headers arrived.
    #[expect(clippy::too_many_arguments, reason = "the parts of one locked request")]
    #[inline]
    fn answer(
        &mut self,
        policies: &Policies,
        slot: &Slot,
        request: u64,
        st: &mut State,
        at: usize,
        outcome: &Outcome<'_>,
        whole: bool,
    ) -> Result<Packed, Misuse> {
        let status = if outcome.status == 0 { 200 } else { outcome.status };
        if (100..200).contains(&status) && status != 101 {
            if whole {
                // Nothing is over with an interim answer; only headers can bring one.
                return Err(Misuse::Invalid);
            }
            // From here on the client has seen something: no retry of any kind.
            if matches!(status, 100 | 102 | 103 | 104) && !st.interim {
                st.interim = true;
                self.clusters[st.cluster as usize].counters.count_status(status, false);
            }
            return Ok(self.verdict(st, action::NONE, reason::NONE, status, 0));
        }
        let names = self.names(st, outcome, status < 400)?;
        let headers =
            HeaderView::new(names.as_deref().unwrap_or(&[]), outcome.headers).ok_or(Misuse::Invalid)?;
        let grpc = grpc_of(outcome, headers);
        let code = grpc.map_or(status, grpc_to_http);
        let at_end = self.judges_at_end(&st.attempts[at]);
        if at_end && whole && outcome.bits & outcome_bits::CUT != 0 {
            let attempt = st.attempts[at];
            self.tell_failure(&attempt, failure::CONNECTION_TERMINATION, st.alternate);
            self.cut_short(&mut st.attempts[at]);
            return Ok(self.forward_cut(slot, request, st, at, status));
        }
        let good = code < 500;
        st.attempts[at].good = good;
        let attempt = st.attempts[at];
        if !good {
            self.core.hosts.tally(attempt.slot).rq_error.fetch_add(1, Relaxed);
        }
        if !headers.is_empty() && headers.first(IMMEDIATE_FAIL).is_some() {
            self.core.immediate_fail(attempt.slot, self.now);
        }
        let later = at_end && !whole && self.passes(&attempt, status, code, grpc.is_some(), headers);
        if !later {
            self.judge_answer(st, at, status, code, grpc.is_some(), headers);
        }
        self.measure_answer(&attempt, outcome, status, code, headers);
        if code >= 400 {
            self.cool_down(&attempt, code, headers);
        }
        let retry_policy = policies.retry(st);
        let options = retry_policy.options.as_deref();
        let retry = if st.retries && !st.interim {
            let rare = st.rare.as_deref().filter(|_| st.has_rare);
            let extra = rare.and_then(|rare| rare.extra.as_deref());
            let early_data = rare.is_some_and(|rare| rare.early_data);
            on_headers_with(st.on, retry_policy, extra, status, grpc, headers, early_data)
        } else {
            Retry::No
        };
        if st.has_rare && attempt.hedged {
            let why = Self::word_of_hedged(retry, status);
            (st.attempts[at].later, st.attempts[at].status) = (later, code);
            if Self::others_may_do_better_than(st, at, why) {
                // It has no end to be judged at any more.
                if later {
                    self.judge_answer(st, at, status, code, grpc.is_some(), headers);
                }
                self.not_forwarded(&attempt);
                self.cut(slot, request, st, at);
                return Ok(self.verdict(st, action::DISCARD, reason::OTHERS_IN_FLIGHT, status, 0));
            }
            self.gates_answered(st, status, grpc, headers, whole);
            return Ok(self.forward(slot, request, st, at, outcome, status, why, whole));
        }
        let retry = match options.filter(|options| status >= 400 && !options.classes.is_empty()) {
            Some(options) => self.classify(st, at, options, status, headers, outcome, retry),
            None => retry,
        };
        let limited = match retry {
            Retry::WithBackoff if !headers.is_empty() => {
                let unix = self.unix() / 1_000_000_000;
                retry_policy.reset.as_ref().and_then(|reset| reset.interval_ms(headers, unix))
            }
            _ => None,
        };
        let after = match options {
            Some(options) if options.retry_after.is_some() => retry_after(headers, self.unix()),
            _ => None,
        };
        let (good_status, cluster) = (status < 400, attempt.cluster);
        let seen =
            Seen { sent: true, good: good_status, limited, after, cluster, options, ..Seen::default() };
        let decided = self.decide(st, retry, &seen);
        match decided {
            Decided::Yes { after_ms, reason } => {
                Self::settle(st);
                // It has no end to be judged at any more.
                if later {
                    self.judge_answer(st, at, status, code, grpc.is_some(), headers);
                }
                st.timeout_retry = false;
                self.clusters[st.cluster as usize].counters.count_status(status, true);
                let closed = outcome.bits & outcome_bits::CLOSED != 0;
                self.not_forwarded(&attempt);
                self.end_attempt(slot, request, st, at, closed, false);
                Ok(self.schedule(request, slot, st, status, after_ms, reason))
            }
            Decided::No(why) => {
                (st.attempts[at].later, st.attempts[at].status) = (later, code);
                if st.attempts.len() > 1 && Self::others_may_do_better_than(st, at, why) {
                    if later {
                        self.judge_answer(st, at, status, code, grpc.is_some(), headers);
                    }
                    self.not_forwarded(&attempt);
                    self.cut(slot, request, st, at);
                    return Ok(self.verdict(st, action::DISCARD, reason::OTHERS_IN_FLIGHT, status, 0));
                }
                if st.has_rare {
                    self.gates_answered(st, status, grpc, headers, whole);
                }
                Ok(self.forward(slot, request, st, at, outcome, status, why, whole))
            }
        }
    }

    /// An answer that the client does not get is an error of its host, whatever its status; those of 500 and above are
    /// counted as such anyway.
    fn not_forwarded(&self, attempt: &Attempt) {
        if attempt.good {
            self.core.hosts.tally(attempt.slot).rq_error.fetch_add(1, Relaxed);
        }
    }

    /// A whole answer whose body was cut short counts as a failure, and is given to the client as it is.
    #[cold]
    fn forward_cut(&mut self, slot: &Slot, request: u64, st: &mut State, at: usize, status: u16) -> Packed {
        let mark = st.attempts[at].mark;
        let others = if self.abort_others(slot, request, st, Some(mark)) { bits::ABORT_OTHERS } else { 0 };
        st.flags |= flags::UC;
        self.clusters[st.cluster as usize].counters.count_status(status, false);
        let closed = self.closes(&st.attempts[0], false);
        self.end_attempt(slot, request, st, 0, closed, false);
        self.done(request, slot, st);
        self.verdict(st, action::FORWARD, reason::RESPONSE_STARTED, status, 0).with(others)
    }

    /// What is said of an attempt for which another one was started long ago: it wins, or it is as if it had failed.
    fn word_of_hedged(retry: Retry, status: u16) -> u8 {
        match retry {
            Retry::No if status < 400 => reason::SUCCESS,
            Retry::No => reason::NOT_RETRIABLE,
            _ => reason::ALREADY_HEDGED,
        }
    }

    /// What an answer says of its host, at its headers or when its body is over: to outlier detection, and of a probe.
    pub(super) fn judge_answer(
        &mut self,
        st: &mut State,
        at: usize,
        status: u16,
        code: u16,
        grpc: bool,
        headers: HeaderView<'_>,
    ) {
        let (attempt, good) = (st.attempts[at], code < 500);
        self.tell_answer(&attempt, status, code, grpc, good, headers);
        if attempt.bits & bits::PROBE != 0 {
            self.probed(&mut st.attempts[at], good);
        }
    }

    /// The answer is the client's.
    #[expect(clippy::too_many_arguments, reason = "the parts of one locked request")]
    #[inline]
    fn forward(
        &mut self,
        slot: &Slot,
        request: u64,
        st: &mut State,
        at: usize,
        outcome: &Outcome<'_>,
        status: u16,
        why: u8,
        whole: bool,
    ) -> Packed {
        self.clusters[st.cluster as usize].counters.count_status(status, false);
        let attempt = st.attempts[at];
        let good = attempt.good;
        let mut at = at;
        let mut others = 0;
        if st.attempts.len() > 1 || st.phase != Phase::Flight {
            if self.abort_others(slot, request, st, Some(attempt.mark)) {
                others = bits::ABORT_OTHERS;
            }
            at = 0;
        }
        if whole {
            let closed = outcome.bits & outcome_bits::CLOSED != 0;
            self.end_attempt(slot, request, st, at, closed, good);
            self.done(request, slot, st);
            return self.verdict(st, action::FORWARD, why, status, 0).with(others);
        }
        // How a gRPC stream went is told by its trailers.
        if good && !st.grpc && !attempt.later {
            self.core.hosts.tally(attempt.slot).rq_success.fetch_add(1, Relaxed);
        }
        st.attempts[at].answered = true;
        st.attempts[at].good = status < 400;
        st.phase = Phase::Streaming;
        self.verdict(st, action::FORWARD, why, status, 0).with(others)
    }

    /// The names that a report's header block is over.
    #[inline]
    pub(crate) fn names(
        &self,
        st: &State,
        outcome: &Outcome<'_>,
        good: bool,
    ) -> Result<Option<Arc<[Box<str>]>>, Misuse> {
        if outcome.headers.is_empty() {
            return Ok(None);
        }
        let set = if good { st.wants.ok } else { st.wants.err };
        self.core.wants.lock().get(u32::from(set)).ok_or(Misuse::Invalid).map(Some)
    }

    /// The attempt failed before its response headers.
    fn failed(
        &mut self,
        policies: &Policies,
        slot: &Slot,
        request: u64,
        st: &mut State,
        at: usize,
        outcome: &Outcome<'_>,
    ) -> Packed {
        let kind = self.which_timeout(st, outcome.failure);
        let route_over = st.has_rare && st.rare().route_over;
        let connect = matches!(
            kind,
            failure::CONNECT_FAILURE | failure::CONNECT_TIMEOUT | failure::LOCAL_CONNECT_FAILURE
        );
        let attempt = st.attempts[at];
        let tally = self.core.hosts.tally(attempt.slot);
        let theirs = &self.clusters[attempt.cluster as usize].counters;
        if connect {
            // Its connection never carried it.
            theirs.uncount(Counter::RqTotal);
            let shared = &self.snapshot.clusters[attempt.cluster as usize].shared;
            shared.ledgers[usize::from(st.routing)].take_back();
            theirs.count(Counter::RqPendingFailureEject);
            theirs.count(Counter::CxConnectFail);
            if kind == failure::CONNECT_TIMEOUT {
                theirs.count(Counter::CxConnectTimeout);
            }
        } else if kind == failure::OVERFLOW {
            theirs.uncount(Counter::RqTotal);
        } else if self.speaks_http2(&attempt) {
            // Envoy counts these in its multiplexed client only.
            match kind {
                failure::REMOTE_RESET => theirs.count(Counter::RqRxReset),
                failure::CONNECTION_TERMINATION => theirs.count(Counter::RqPendingFailureEject),
                _ => {}
            }
        }
        let timeout = self.count_limit(st, &attempt, kind, route_over);
        if !matches!(kind, failure::OVERFLOW | failure::MAX_STREAM_DURATION) {
            tally.rq_error.fetch_add(1, Relaxed);
        }
        if !(attempt.told && kind == failure::GLOBAL_TIMEOUT) {
            self.tell_failure(&attempt, kind, st.alternate);
        }
        self.probe_failed(&mut st.attempts[at], kind);
        let unsent = connect || kind == failure::OVERFLOW || outcome.bits & outcome_bits::NOT_SENT != 0;
        st.sent |= !unsent;
        let last = kind == failure::GLOBAL_TIMEOUT || route_over;
        let retry =
            if last || !st.retries || st.interim { Retry::No } else { on_reset(st.on, kind, st.sent) };
        let decided = if last {
            self.free_retry(st);
            Decided::No(reason::NOT_RETRIABLE)
        } else if attempt.hedged {
            Decided::No(reason::ALREADY_HEDGED)
        } else {
            let untouched = kind == failure::REFUSED_STREAM;
            let options = policies.retry(st).options.as_deref();
            self.decide(st, retry, &Seen { sent: !unsent, untouched, options, ..Seen::default() })
        };
        let closed = self.closes(&attempt, connect || kind == failure::CONNECTION_TERMINATION);
        self.end_attempt(slot, request, st, at, closed, false);
        let (mut status, mut flag) = reply_of(kind);
        let mut others = 0;
        if route_over {
            flag = 0;
        }
        if kind == failure::MAX_STREAM_DURATION && st.upload_open {
            status = 408;
        }
        if st.alternate && (timeout || kind == failure::GLOBAL_TIMEOUT) {
            status = 204;
        }
        match decided {
            Decided::Yes { after_ms, reason } => {
                Self::settle(st);
                st.timeout_retry = timeout;
                self.schedule(request, slot, st, status, after_ms, reason)
            }
            Decided::No(why) => {
                if kind != failure::MAX_STREAM_DURATION {
                    self.clusters[st.cluster as usize].counters.count_status(status, false);
                }
                let limit = timeout || kind == failure::MAX_STREAM_DURATION;
                if !st.attempts.is_empty() || st.phase != Phase::Flight {
                    if !limit && st.awaits() {
                        return self.verdict(st, action::DISCARD, reason::OTHERS_IN_FLIGHT, status, 0);
                    }
                    let timed_out = kind == failure::GLOBAL_TIMEOUT && self.time_out_all(slot, request, st);
                    if self.abort_others(slot, request, st, None) || timed_out {
                        others = bits::ABORT_OTHERS;
                    }
                }
                st.flags |= flag;
                st.end = End::Failed(kind);
                st.reply_status = status;
                if st.has_rare {
                    self.gates_local(st, status);
                }
                self.done(request, slot, st);
                self.verdict(st, action::FORWARD, why, st.wire_status(status), 0).with(others)
            }
        }
    }

    /// Counts a limit that ended an attempt. Whether it is a time-out.
    pub(super) fn count_limit(&self, st: &State, attempt: &Attempt, kind: u8, route_over: bool) -> bool {
        let ours = &self.clusters[st.cluster as usize].counters;
        match kind {
            failure::PER_TRY_TIMEOUT => ours.count(Counter::RqPerTryTimeout),
            failure::PER_TRY_IDLE_TIMEOUT => ours.count(Counter::RqPerTryIdleTimeout),
            failure::GLOBAL_TIMEOUT => ours.count(Counter::RqTimeout),
            failure::MAX_STREAM_DURATION if !route_over => {
                self.clusters[attempt.cluster as usize].counters.count(Counter::RqMaxDurationReached);
                return false;
            }
            _ => return false,
        }
        self.core.hosts.tally(attempt.slot).rq_timeout.fetch_add(1, Relaxed);
        true
    }

    /// Whether the request's duration ends before its global limit does.
    pub(super) fn runs_out(st: &State) -> bool {
        let rare = st.rare.as_deref().filter(|_| st.has_rare);
        rare.and_then(|rare| rare.route_until).is_some_and(|until| until <= st.deadline)
    }

    /// Whether a time-out now is that of the attempt's duration, or of the request's.
    #[cold]
    fn duration_is_over(&self, st: &mut State) -> bool {
        let soon = self.now.plus(TOLERANCE);
        if Self::runs_out(st) && soon >= st.deadline {
            st.rare().route_over = true;
            return true;
        }
        let until = st.rare().stream_until;
        until.is_some_and(|until| soon >= until && until < st.deadline)
    }

    /// A time-out of unknown kind is the global one once the deadline is reached, else the try's.
    pub(super) fn which_timeout(&self, st: &mut State, kind: u8) -> u8 {
        if kind != failure::TIMEOUT {
            return kind;
        }
        if st.has_rare && self.duration_is_over(st) {
            return failure::MAX_STREAM_DURATION;
        }
        if st.deadline != Time::NEVER && self.now.plus(TOLERANCE) >= st.deadline {
            failure::GLOBAL_TIMEOUT
        } else {
            failure::PER_TRY_TIMEOUT
        }
    }

    /// Whether the end of a stream closes its connection: HTTP/1.1 cannot go on after a cut.
    pub(crate) fn closes(&self, attempt: &Attempt, broken: bool) -> bool {
        broken || !self.speaks_http2(attempt)
    }

    pub(crate) fn speaks_http2(&self, attempt: &Attempt) -> bool {
        let view = self.snapshot.clusters[attempt.cluster as usize].view.as_ref();
        view.is_some_and(|view| view.spec.protocol == Protocol::Http2)
    }

    /// Section 8.
    #[inline]
    pub(super) fn decide(&mut self, st: &mut State, retry: Retry, seen: &Seen<'_>) -> Decided {
        let good = seen.good;
        self.free_retry(st);
        if !st.retries {
            let why = if st.abandoned {
                reason::ABANDONED
            } else if good {
                reason::SUCCESS
            } else {
                reason::NO_POLICY
            };
            return Decided::No(why);
        }
        if st.interim {
            return Decided::No(reason::RESPONSE_STARTED);
        }
        if retry == Retry::No {
            if st.is_retry {
                self.clusters[st.cluster as usize].counters.count(Counter::RqRetrySuccess);
            }
            return Decided::No(if good { reason::SUCCESS } else { reason::NOT_RETRIABLE });
        }
        self.grant_retry(st, retry, seen)
    }

    #[cold]
    fn grant_retry(&mut self, st: &mut State, retry: Retry, seen: &Seen<'_>) -> Decided {
        let once = st.body == 2 || (st.body == 3 && !st.replay);
        if once && seen.sent {
            return Decided::No(reason::BODY_NOT_REPLAYABLE);
        }
        let entry = &self.snapshot.clusters[st.home as usize];
        let counters = &self.clusters[st.cluster as usize].counters;
        if st.remaining == 0 {
            counters.count(Counter::RqRetryLimitExceeded);
            st.flags |= flags::URX;
            return Decided::No(reason::LIMIT_EXCEEDED);
        }
        if let Some(why) = self.forbids(st, seen) {
            return Decided::No(why);
        }
        st.remaining -= 1;
        if !st.stateless {
            let p = usize::from(st.routing);
            let ledger = &entry.shared.ledgers[p];
            let limits = entry.view.as_ref().map_or(&self.core.no_limits, |v| &v.limits[p]);
            let list = entry.view.as_ref().map_or(&[][..], |view| &view.members);
            if !ledger.take_retry(limits, Members { hosts: &self.core.hosts, list }, p, self.now) {
                counters.count(Counter::RqRetryOverflow);
                st.flags |= flags::UO;
                return Decided::No(reason::RETRY_OVERFLOW);
            }
            st.holds_retry = true;
        }
        let use_retry = self.snapshot.runtime.use_retry;
        if use_retry < 100 && self.random.next_u64() % 100 >= use_retry {
            self.free_retry(st);
            return Decided::No(reason::RUNTIME_DISABLED);
        }
        let drawn = if retry == Retry::Immediately {
            (0, reason::IMMEDIATE)
        } else {
            match seen.limited.and_then(|interval| rate_limited_ms(interval, self.random)) {
                Some(after_ms) => (after_ms, reason::BACKOFF_RATELIMITED),
                None => {
                    st.back_off.settle(self.snapshot.runtime.base_retry_backoff_ms);
                    (st.back_off.next(self.random), reason::BACKOFF)
                }
            }
        };
        match self.waits(st, seen, drawn) {
            Ok((after_ms, reason)) => Decided::Yes { after_ms, reason },
            Err(why) => {
                self.free_retry(st);
                Decided::No(why)
            }
        }
    }

    /// Gives back the retry slot this request holds.
    #[inline]
    pub(crate) fn free_retry(&mut self, st: &mut State) {
        if st.holds_retry {
            st.holds_retry = false;
            let entry = &self.snapshot.clusters[st.home as usize];
            ledger::give(&entry.shared.ledgers[usize::from(st.routing)].retries);
        }
    }

    /// A retry is decided. A stateless attempt only says so.
    fn schedule(
        &mut self,
        request: u64,
        slot: &Slot,
        st: &mut State,
        status: u16,
        after_ms: u64,
        why: u8,
    ) -> Packed {
        self.back_off(st, after_ms, why);
        if st.stateless {
            if st.has_rare {
                self.gates_local(st, status);
            }
            self.done(request, slot, st);
        }
        self.verdict(st, action::RETRY, why, status, after_ms)
    }

    #[inline]
    pub(crate) fn verdict(&self, st: &State, act: u8, why: u8, status: u16, after_ms: u64) -> Packed {
        let after_ms = u32::try_from(after_ms).unwrap_or(u32::MAX);
        Packed::new(act, why, (self.signals() & 7) as u8, st.flags, status, after_ms)
    }
}

/// Whether a bare answer of this status comes from the only attempt, and no policy has a say in it.
#[inline]
fn is_plain_success(st: &State, id: Id, status: u16) -> bool {
    let plain = st.plain_success & !st.interim & !st.abandoned & !st.has_rare;
    let only = matches!(&st.attempts[..], [one] if one.mark == id.attempt && !one.answered);
    (200..400).contains(&status) && plain && only
}

/// Ends the hold of a request that succeeded. Of a stateless one nothing more can be asked, so its slot's next
/// owner shall need no lock.
#[inline]
fn leave(state: Guard<'_, State>) {
    if state.stateless && !state.marks {
        state.park();
    }
}

fn check(id: Id, outcome: &Outcome<'_>) -> Result<(), Misuse> {
    let status = outcome.status == 0 || (100..=999).contains(&outcome.status);
    if id.attempt == 0 || !status || usize::from(outcome.failure) >= failure::NAMES.len() {
        return Err(Misuse::Invalid);
    }
    Ok(())
}

/// The gRPC status of headers or trailers: given, or in the block.
pub(crate) fn grpc_of(outcome: &Outcome<'_>, headers: HeaderView<'_>) -> Option<u8> {
    match outcome.grpc_status {
        -1 => headers.first("grpc-status").map(grpc_status),
        given => Some(u8::try_from(given).unwrap_or(u8::MAX)),
    }
}

/// A `grpc-status` header; anything that is no number up to 16 is invalid, which no condition names.
fn grpc_status(value: &[u8]) -> u8 {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(u8::MAX)
}

/// The HTTP code that a gRPC status counts as.
pub(crate) fn grpc_to_http(status: u8) -> u16 {
    const CODES: [u16; 17] =
        [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401];
    CODES.get(usize::from(status)).copied().unwrap_or(500)
}
