//! The answer to a report, and what else can be told about a request.

use crate::raw::{self, Asked, Misuse, action, bits};
use crate::words::{Reason, ResponseFlags};
use std::time::Duration;

/// What to do with an attempt's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Nothing to do: the answer to a release.
    None,
    /// Give it to the client; without a response, give the local reply.
    Forward,
    /// Drop it and choose again.
    Retry,
    /// Drop it: another attempt of this request goes on.
    Discard,
}

/// The answer to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// What to do.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// Back-off before the next attempt (retry). Choosing too early is harmless: it answers with the wait.
    pub after: Duration,
    /// The upstream's status, or the local reply's.
    pub status: u16,
    /// So far.
    pub flags: ResponseFlags,
    /// What else this call brought about.
    pub signals: Signals,
}

impl Verdict {
    /// A verdict, or the misuse it stands for.
    pub(crate) fn of(verdict: raw::Verdict, asked: &Asked) -> Result<Self, Misuse> {
        if verdict.code != 0 {
            return Err(explained(asked, Misuse::from_code(verdict.code)));
        }
        Ok(Self::released(verdict))
    }

    /// The answer to a release, which is always legal: nothing happens where there is nothing to release.
    pub(crate) fn released(verdict: raw::Verdict) -> Self {
        Self {
            action: match verdict.action {
                action::NONE => Action::None,
                action::RETRY => Action::Retry,
                action::DISCARD => Action::Discard,
                // Unknown actions mean forward.
                _ => Action::Forward,
            },
            reason: Reason(verdict.reason),
            after: Duration::from_millis(verdict.after_ms.into()),
            status: verdict.status,
            flags: ResponseFlags(verdict.flags),
            signals: Signals(verdict.bits.into()),
        }
    }

    /// Whether the action is retry.
    pub fn retry(&self) -> bool {
        self.action == Action::Retry
    }
}

/// Keeps the sentence of a misuse for [`last_error`](crate::last_error).
#[cold]
pub(crate) fn explained(asked: &Asked, misuse: Misuse) -> Misuse {
    raw::set_last_error(&raw::sentence_of(asked, misuse));
    misuse
}

/// What a call brought about besides its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signals(pub u16);

impl Signals {
    /// Somebody's wait may be over: [`Engine::take_ready`](crate::Engine::take_ready) tells whose. Threads in
    /// [`Wait::sleep`](crate::Wait::sleep) and tasks in a `Driver` are woken already.
    pub const fn wake(self) -> bool {
        self.0 & bits::WAKE != 0
    }

    /// Abort the request's other attempts.
    pub const fn abort_others(self) -> bool {
        self.0 & bits::ABORT_OTHERS != 0
    }

    /// There are events, see [`Engine::poll_event`](crate::Engine::poll_event).
    pub const fn events(self) -> bool {
        self.0 & bits::EVENTS != 0
    }
}

/// Why a request is finished from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finish {
    /// The client went away; what dropping a request says.
    ClientGone,
    /// The global limit passed.
    GlobalTimeout,
    /// The limit of a stream's whole duration passed.
    MaxDuration,
    /// Nothing moved for too long.
    Idle,
    /// The process stops.
    Shutdown,
}

impl Finish {
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::ClientGone => raw::finish::CLIENT_GONE,
            Self::GlobalTimeout => raw::finish::GLOBAL_TIMEOUT,
            Self::MaxDuration => raw::finish::MAX_DURATION,
            Self::Idle => raw::finish::IDLE,
            Self::Shutdown => raw::finish::SHUTDOWN,
        }
    }
}

/// A fact between decision and report. Most callers need none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Note {
    /// The attempt has its connection.
    Connected,
    /// The request is on the wire.
    Sent,
    /// The upload is over: time-outs begin.
    BodyComplete,
    /// The upload is larger than the caller keeps for a retry.
    RetryAbandoned,
    /// An interim response came.
    Interim,
}

impl Note {
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Connected => raw::note::CONNECTED,
            Self::Sent => raw::note::SENT,
            Self::BodyComplete => raw::note::BODY_COMPLETE,
            Self::RetryAbandoned => raw::note::RETRY_ABANDONED,
            Self::Interim => raw::note::INTERIM,
        }
    }
}
