//! One downstream request.

use crate::attempt::Attempt;
use crate::choice::{Choice, Refusal, Wait};
use crate::engine_face::Engine;
use crate::raw::{self, Asked, Call, Decision, LocalReply, Misuse, RequestInfo, kind};
use crate::verdict::{Finish, Note, Signals, Verdict, explained};
use nexthop_engine::Time;
use std::ops::Deref;

/// One downstream request: its route, its budget of time and retries, the hosts it has tried.
///
/// Dropping it says that the client is gone: open attempts are cancelled, its place in a queue is given up.
#[must_use]
#[derive(Debug)]
pub struct Request<E: Deref<Target = Engine>> {
    engine: E,
    id: u64,
    /// The first choice, which was made with the head at hand.
    first: Option<Result<Decision, Misuse>>,
    /// Why its head was refused.
    head_error: Option<Box<str>>,
    handed_over: bool,
}

impl<E: Deref<Target = Engine>> Request<E> {
    pub(crate) fn begin(engine: E, head: &raw::Head<'_>, now: Time) -> Self {
        let mut out = Decision::default();
        let first = raw::with_local(|local| raw::begin(local, engine.id(), head, now.0, &mut out));
        engine.signal(out.bits);
        let head_error = first.err().map(|misuse| raw::sentence_of_head(head, misuse).into());
        Self { id: out.request, first: Some(first.map(|()| out)), head_error, handed_over: false, engine }
    }

    /// Why the request could not begin, by the field of its head that was wrong; choosing gives its [`Misuse`].
    pub fn head_error(&self) -> Option<&str> {
        self.head_error.as_deref()
    }

    /// The request's number, as [`Engine::take_ready`] names it; 0 when it could not begin.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The engine that decides.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// A fact about the request.
    pub fn note(&mut self, what: Note, now: Time) -> Result<Signals, Misuse> {
        let asked = Asked::with(Call::Note, self.id, what.number());
        let bits = raw::with_local(|local| raw::note(local, self.id, what.number(), now.0))
            .map_err(|misuse| explained(&asked, misuse))?;
        Ok(self.engine.signal(bits))
    }

    /// What the head became: cluster, route, limits.
    pub fn info(&self) -> Option<RequestInfo> {
        raw::request_info(self.id).ok()
    }

    /// What Envoy would answer by itself: after a refusal, or after a last attempt without a response. Ask before
    /// the next request begins on this thread.
    pub fn local_reply(&self) -> Option<LocalReply> {
        raw::reply(self.id).ok().flatten()
    }

    /// Headers to add to the answer for the client (a hash cookie, the attempt count).
    pub fn response_headers(&self) -> Vec<(String, String)> {
        let headers = raw::extra_headers(self.id).unwrap_or_default();
        headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Ends the request from outside.
    pub fn finish(mut self, reason: Finish, now: Time) -> Verdict {
        self.handed_over = true;
        self.end(reason, now)
    }

    /// From here on the open, answered attempt ends the request; for bodies that outlive the handler.
    pub fn hand_over(mut self) {
        self.handed_over = true;
    }

    fn end(&self, reason: Finish, now: Time) -> Verdict {
        let verdict = raw::with_local(|local| raw::finish(local, self.id, reason.number(), now.0));
        self.engine.signal(verdict.bits.into());
        Verdict::released(verdict)
    }
}

impl<E: Deref<Target = Engine> + Clone> Request<E> {
    /// The next attempt, a wait, or a refusal. Never waits. Choosing while an attempt is open is [`Misuse::State`].
    pub fn choose_host(&mut self, now: Time) -> Result<Choice<E>, Misuse> {
        if let Some(first) = self.first.take() {
            let decision = first.inspect_err(|misuse| {
                self.first = Some(Err(*misuse));
                raw::set_last_error(self.head_error.as_deref().unwrap_or_default());
            })?;
            // A wait is asked for again: it may be over.
            if decision.kind != kind::WAIT {
                return Ok(self.answer(&decision));
            }
        }
        let mut out = Decision::default();
        raw::with_local(|local| raw::choose(local, self.id, now.0, &mut out))
            .map_err(|misuse| explained(&Asked::about(Call::Choose, self.id), misuse))?;
        self.engine.signal(out.bits);
        Ok(self.answer(&out))
    }

    fn answer(&self, decision: &Decision) -> Choice<E> {
        choice(&self.engine, decision)
    }
}

/// A decision as an object.
pub(crate) fn choice<E: Deref<Target = Engine> + Clone>(engine: &E, decision: &Decision) -> Choice<E> {
    match decision.kind {
        kind::GO => Choice::Attempt(Attempt::new(engine.clone(), decision)),
        kind::WAIT => Choice::Wait(Wait::of(decision)),
        // Unknown kinds are refusals.
        _ => Choice::Refused(Refusal::of(decision)),
    }
}

impl<E: Deref<Target = Engine>> Drop for Request<E> {
    fn drop(&mut self) {
        if !self.handed_over && self.id != 0 {
            self.end(Finish::ClientGone, Time(raw::NOW));
        }
    }
}
