//! Several attempts at once (`spec/retry-and-timeouts.md` section 15): when the limit per try runs out the attempt
//! goes on, and another one is started beside it as a retry would be.

use super::opt_in::Seen;
use super::state::{Phase, State};
use super::{Decided, Walk};
use crate::clock::Time;
use crate::outcome::{Decision, NEVER, failure, finish, reason, wait};
use crate::policies::Policies;
use crate::request::slab::Slot;
use crate::retry::Retry;
use crate::stats::Counter;

/// What a request that may hedge keeps.
#[derive(Debug, Default)]
pub(crate) struct Hedge {
    /// Nanoseconds from an attempt's start until another one is thought of; NEVER = not by time.
    pub(crate) after: u64,
    /// Attempts for which that has not come yet, by their mark.
    pub(crate) due: Vec<(u32, Time)>,
}

impl Hedge {
    /// When to think of another attempt.
    fn next(&self) -> Time {
        self.due.iter().map(|(_, at)| *at).min().unwrap_or(Time::NEVER)
    }
}

impl State {
    pub(crate) fn hedge(&mut self) -> Option<&mut Hedge> {
        if !self.has_rare {
            return None;
        }
        self.rare.as_deref_mut()?.hedge.as_mut()
    }

    /// Whether somebody else's answer may still come: another attempt without headers, or a retry on its way.
    pub(super) fn awaits(&self) -> bool {
        self.awaits_but(None)
    }

    /// The same, but for the attempt at this place.
    fn awaits_but(&self, but: Option<usize>) -> bool {
        let others = self.attempts.iter().enumerate().filter(|(at, _)| Some(*at) != but);
        others.into_iter().any(|(_, attempt)| !attempt.answered) || self.is_pending()
    }

    fn is_pending(&self) -> bool {
        matches!(self.phase, Phase::Select | Phase::BackOff | Phase::Queued)
    }
}

impl Walk<'_> {
    /// An attempt begins: from when on another one is thought of.
    #[cold]
    pub(super) fn arm_hedge(&self, st: &mut State, mark: u32, out: &mut Decision) {
        let (open, now) = (st.upload_open, self.now);
        let Some(hedge) = st.hedge() else { return };
        // Whoever hedges does not give up an attempt for its own limit.
        out.try_timeout = out.remaining;
        if hedge.after != NEVER && !open {
            out.wait = hedge.after;
            hedge.due.push((mark, now.plus(hedge.after)));
        }
    }

    /// The request is complete: limits of attempts under way start.
    #[cold]
    pub(super) fn upload_ended(&self, st: &mut State) {
        let marks: Vec<u32> = st.attempts.iter().map(|attempt| attempt.mark).collect();
        let now = self.now;
        let Some(hedge) = st.hedge().filter(|hedge| hedge.after != NEVER) else { return };
        let at = now.plus(hedge.after);
        hedge.due = marks.into_iter().map(|mark| (mark, at)).collect();
    }

    /// Limits per try that have run out: outlier detection is told, and a retry is decided whatever its conditions.
    pub(super) fn soft_timeouts(&mut self, policies: &Policies, st: &mut State) {
        loop {
            let now = self.now;
            let Some(hedge) = st.hedge() else { return };
            let Some(first) = hedge.due.iter().position(|(_, at)| *at <= now) else { return };
            let (mark, _) = hedge.due.remove(first);
            let Some(at) = st.attempt(mark).filter(|at| !st.attempts[*at].answered) else { continue };
            st.attempts[at].told = true;
            let attempt = st.attempts[at];
            self.tell_failure(&attempt, failure::PER_TRY_TIMEOUT, st.alternate);
            if !st.retries || st.interim || attempt.hedged || st.is_pending() {
                continue;
            }
            let options = policies.retry(st).options.as_deref();
            let seen = Seen { sent: true, cluster: attempt.cluster, options, ..Seen::default() };
            if let Decided::Yes { after_ms, reason } = self.decide(st, Retry::WithBackoff, &seen) {
                st.attempts[at].hedged = true;
                st.timeout_retry = true;
                self.back_off(st, after_ms, reason);
            }
        }
    }

    /// Nothing new yet: the attempts go on.
    pub(super) fn wait_for_attempts(&self, request: u64, st: &mut State, out: &mut Decision) {
        let next = st.hedge().map_or(Time::NEVER, |hedge| hedge.next());
        let until = next.min(st.deadline);
        self.wait(request, st, wait::ATTEMPTS, until, out);
    }

    /// An answer that is as bad as one to retry, when no retry may come of it: somebody else may do better.
    pub(super) fn others_may_do_better_than(st: &State, at: usize, why: u8) -> bool {
        let bad = matches!(why, reason::LIMIT_EXCEEDED | reason::RETRY_OVERFLOW | reason::ALREADY_HEDGED);
        bad && st.awaits_but(Some(at))
    }

    /// Every attempt but the winner is dropped, and what was to come as well. Whether there was any.
    #[cold]
    pub(super) fn abort_others(
        &mut self,
        slot: &Slot,
        request: u64,
        st: &mut State,
        winner: Option<u32>,
    ) -> bool {
        let mut any = false;
        while let Some(at) = st.attempts.iter().position(|attempt| Some(attempt.mark) != winner) {
            any = true;
            self.tell_cancelled(&st.attempts[at].clone());
            self.cut(slot, request, st, at);
        }
        self.leave_queue(slot, request, st);
        self.free_retry(st);
        any
    }

    /// The global limit ran out: on everything that is under way (section 14.3).
    pub(super) fn time_out_all(&mut self, slot: &Slot, request: u64, st: &mut State) -> bool {
        let late = if st.alternate { 204 } else { 504 };
        let any = !st.attempts.is_empty();
        while let Some(attempt) = st.attempts.first().copied() {
            self.time_out(&attempt, st.alternate);
            self.probe_failed(&mut st.attempts[0], failure::GLOBAL_TIMEOUT);
            let counters = &self.clusters[st.cluster as usize].counters;
            counters.count(Counter::RqTimeout);
            if !attempt.answered {
                counters.count_status(late, false);
            }
            self.cut(slot, request, st, 0);
        }
        any
    }

    /// The retry breaker and budget of section 8 said yes: when it will be sent.
    pub(super) fn back_off(&self, st: &mut State, after_ms: u64, why: u8) {
        st.back_off_kind = why;
        st.retry_at = self.now.plus(after_ms.saturating_mul(crate::clock::MILLI));
        st.phase = Phase::BackOff;
    }

    /// Section 15 for requests that begin: whether they may hedge, by their route or by their own word.
    #[cold]
    pub(super) fn may_hedge(&self, policies: &Policies, st: &mut State) {
        let idle = policies.request(st).per_try_idle;
        let after = st.per_try.min(idle);
        st.rare().hedge = Some(Hedge { after, due: Vec::new() });
    }
}

/// Whether `finish` counts what is under way as timed out.
pub(super) fn is_global_timeout(why: u32, phase: Phase) -> bool {
    why == finish::GLOBAL_TIMEOUT && phase != Phase::Streaming
}
