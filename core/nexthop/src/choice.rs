//! The three answers of choosing.

use crate::Attempt;
use crate::engine_face::{Engine, HostRef};
use crate::raw::{self, Decision, LocalReply, NEVER};
use crate::words::{RefusalKind, Resource, ResponseFlags, WaitReason};
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

/// Send it, wait, or there will be no attempt.
#[must_use]
#[derive(Debug)]
pub enum Choice<E: Deref<Target = Engine>> {
    /// Send it.
    Attempt(Attempt<E>),
    /// Nothing now; choose again later.
    Wait(Wait),
    /// The request is over without another attempt.
    Refused(Refusal),
}

/// Not now. There is no ticket: the request itself keeps its place, and asking again is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// What for.
    pub reason: WaitReason,
    /// Ask again after this; `None` = only after a report.
    pub after: Option<Duration>,
    request: u64,
}

impl Wait {
    pub(crate) fn of(decision: &Decision) -> Self {
        Self { reason: WaitReason(decision.refusal), after: span(decision.wait), request: decision.request }
    }

    /// Blocks this thread until asking again makes sense: until the back-off is over, or a place in the queue is
    /// free, at most a second. Needs no help: whoever frees a permit, wakes.
    pub fn sleep(&self) {
        // An ended request has nothing to wait for; the next choice says so.
        let _ = raw::wait_for(self.request, self.after.map_or(NEVER, nanos));
    }
}

/// There will be no (other) attempt: what to answer instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Why.
    pub kind: RefusalKind,
    /// Which limit, or why a composite had no host.
    pub resource: Resource,
    /// Status of the local reply.
    pub status: u16,
    /// Response flags of the request.
    pub flags: ResponseFlags,
    /// Attempts begun, the refused one included.
    pub attempts: u32,
    /// The host that had been picked before a limit refused.
    pub host: Option<HostRef>,
    /// When it could work, as far as somebody said so.
    pub retry_after: Option<Duration>,
    request: u64,
}

impl Refusal {
    pub(crate) fn of(decision: &Decision) -> Self {
        let host = HostRef { slot: decision.host, version: decision.host_version };
        Self {
            kind: RefusalKind(decision.refusal),
            resource: Resource(decision.resource),
            status: decision.status,
            flags: ResponseFlags(decision.flags),
            attempts: decision.number,
            host: (host.version != 0).then_some(host),
            retry_after: span(decision.wait).filter(|wait| !wait.is_zero()),
            request: decision.request,
        }
    }

    /// What Envoy would answer by itself. Ask before the next request begins on this thread.
    pub fn local_reply(&self) -> LocalReply {
        if let Ok(Some(reply)) = raw::reply(self.request) {
            return reply;
        }
        LocalReply {
            status: self.status,
            flags: self.flags.0,
            details: raw::name(4, self.kind.0.into()).into(),
            headers: Vec::new(),
            body: raw::name(5, self.kind.0.into()).into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no attempt: {}", self.kind)?;
        if self.resource != Resource::default() {
            write!(f, " ({})", self.resource)?;
        }
        let details = raw::name(4, self.kind.0.into());
        write!(f, "; the local reply is {} {}, {details}", self.status, self.flags)
    }
}

impl std::error::Error for Refusal {}

/// Nanoseconds as faces of this language show them; `None` = no limit.
pub(crate) fn span(nanos: u64) -> Option<Duration> {
    (nanos != NEVER).then(|| Duration::from_nanos(nanos))
}

pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(NEVER)
}
