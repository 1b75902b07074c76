//! One upstream try.

use crate::choice::span;
use crate::engine_face::{Engine, HostRef};
use crate::raw::{self, Asked, Call, Decision, HostInfo, Misuse, Outcome, bits};
use crate::verdict::{Note, Signals, Verdict, explained};
use nexthop_engine::Time;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What was decided about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// Attempt number, from 1.
    pub number: u32,
    /// Where the host is found; see [`Attempt::host`].
    pub host: HostRef,
    /// Limit to the response's headers; `None` = none. The caller enforces it.
    pub timeout: Option<Duration>,
    /// What is left of the request's limit, to the end of the body.
    pub remaining: Option<Duration>,
    /// Choose again after this although the attempt is in flight.
    pub hedge_after: Option<Duration>,
    /// Number of the headers to report with a status below 400, see [`Engine::wanted`].
    pub want_ok: u32,
    /// Number of the headers to report with any other status, and with failures.
    pub want_err: u32,
    /// See [`bits`](crate::raw::bits).
    pub bits: u16,
}

impl Plan {
    /// Whether this attempt is a retry.
    pub fn is_retry(&self) -> bool {
        self.bits & bits::RETRY != 0
    }
}

/// One upstream try: a host, permits, time-outs. Report it once: `complete`, or `on_headers` and later `end`, or
/// `fail`. Dropping it unreported cancels it: permits come back, nothing is held against the host.
#[must_use]
pub struct Attempt<E: Deref<Target = Engine>> {
    engine: E,
    id: u64,
    plan: Plan,
    host: OnceLock<Arc<HostInfo>>,
    ended: bool,
}

impl<E: Deref<Target = Engine>> Attempt<E> {
    pub(crate) fn new(engine: E, decision: &Decision) -> Self {
        Self {
            engine,
            id: decision.attempt,
            plan: Plan {
                number: decision.number,
                host: HostRef { slot: decision.host, version: decision.host_version },
                timeout: span(decision.try_timeout),
                remaining: span(decision.remaining),
                hedge_after: span(decision.wait),
                want_ok: decision.want_ok.into(),
                want_err: decision.want_err.into(),
                bits: decision.bits,
            },
            host: OnceLock::new(),
            ended: false,
        }
    }

    /// The attempt's number in texts and events.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The engine that decided.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// What was decided.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The host to send to. An open attempt keeps its host, whatever updates come.
    pub fn host(&self) -> &HostInfo {
        self.host.get_or_init(|| {
            // Any version: the host may have changed since, its address cannot.
            self.engine
                .host(HostRef { version: 0, ..self.plan.host })
                .unwrap_or_else(|| Arc::new(HostInfo::unknown()))
        })
    }

    /// `http://host:port/path`, or `https://` for a cluster with TLS. A route's rewrite is in
    /// [`upstream_headers`](Self::upstream_headers) as `:path`.
    pub fn url(&self, path: &str) -> String {
        let host = self.host();
        let (scheme, usual) = if host.secure { ("https", ":443") } else { ("http", ":80") };
        let authority = host.address.strip_suffix(usual).unwrap_or(&host.address);
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!("{scheme}://{authority}{slash}{path}")
    }

    /// Headers to set (or, `None`, to remove) on the upstream request; `:path` and `:authority` rewrite it.
    pub fn upstream_headers(&self) -> Vec<(String, Option<String>)> {
        if self.plan.bits & bits::HEADERS == 0 {
            return Vec::new();
        }
        raw::extra_headers(self.id).unwrap_or_default()
    }

    /// Why this host, in one line.
    pub fn explain(&self) -> Option<String> {
        self.engine.explain(self.id)
    }

    /// The whole report: headers and end at once, or a failure.
    pub fn complete(mut self, outcome: &Outcome<'_>, now: Time) -> Result<Verdict, Misuse> {
        let verdict = raw::with_local(|local| raw::complete(local, self.id, outcome, now.0));
        self.close(verdict, Asked::report(Call::Complete, self.id, outcome))
    }

    /// Response headers are there. Forward: the body follows, then [`end`](Self::end). Else the attempt is over.
    pub fn on_headers(&mut self, outcome: &Outcome<'_>, now: Time) -> Result<Verdict, Misuse> {
        let verdict = raw::with_local(|local| raw::headers(local, self.id, outcome, now.0));
        self.engine.signal(verdict.bits.into());
        Verdict::of(verdict, &Asked::report(Call::Headers, self.id, outcome))
    }

    /// The body is over; `outcome` has trailers, or is the default. In an attempt whose headers were not reported
    /// this is [`Misuse::State`], and the attempt is cancelled.
    pub fn end(mut self, outcome: &Outcome<'_>, now: Time) -> Result<Verdict, Misuse> {
        let verdict = raw::with_local(|local| raw::end(local, self.id, Some(outcome), now.0));
        self.close(verdict, Asked::report(Call::End, self.id, outcome))
    }

    /// The attempt failed before its headers, or its body broke after them: a [`failure`](mod@crate::failure).
    pub fn fail(mut self, failure: u8, now: Time) -> Result<Verdict, Misuse> {
        let verdict = raw::with_local(|local| raw::fail(local, self.id, failure.into(), now.0));
        self.close(verdict, Asked::with(Call::Fail, self.id, failure.into()))
    }

    /// Drops the attempt now.
    pub fn cancel(mut self, now: Time) -> Signals {
        self.ended = true;
        let verdict = raw::with_local(|local| raw::cancel(local, self.id, now.0));
        self.engine.signal(verdict.bits.into())
    }

    /// A fact about the attempt.
    pub fn note(&mut self, what: Note, now: Time) -> Result<Signals, Misuse> {
        let asked = Asked::with(Call::Note, self.id, what.number());
        let bits = raw::with_local(|local| raw::note(local, self.id, what.number(), now.0))
            .map_err(|misuse| explained(&asked, misuse))?;
        Ok(self.engine.signal(bits))
    }

    /// A report that was refused has changed nothing: the drop that follows cancels.
    fn close(&mut self, verdict: raw::Verdict, asked: Asked) -> Result<Verdict, Misuse> {
        self.ended = verdict.code == 0;
        self.engine.signal(verdict.bits.into());
        Verdict::of(verdict, &asked)
    }
}

impl<E: Deref<Target = Engine>> Drop for Attempt<E> {
    fn drop(&mut self) {
        if !self.ended {
            let verdict = raw::with_local(|local| raw::cancel(local, self.id, raw::NOW));
            self.engine.signal(verdict.bits.into());
        }
    }
}

impl<E: Deref<Target = Engine>> std::fmt::Debug for Attempt<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").field("id", &self.id).field("plan", &self.plan).finish_non_exhaustive()
    }
}
