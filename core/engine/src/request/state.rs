//! The state of one downstream request (`spec/retry-and-timeouts.md` section 1).

use crate::clock::Time;
use crate::outcome::NEVER;
use crate::retry::{BackOff, Extra};
use crate::spec::RetryOn;
use smallvec::SmallVec;

/// Where a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The slot is free.
    #[default]
    Free,
    /// No attempt yet, or the host of a waiting one went away.
    Select,
    /// A retry is decided; its time has not come.
    BackOff,
    /// Waiting for a stream of a chosen host.
    Queued,
    /// An attempt is on its way.
    Flight,
    /// The outcome is final, the body still runs.
    Streaming,
    /// Over.
    Done,
}

impl Phase {
    pub(crate) const fn is_live(self) -> bool {
        !matches!(self, Self::Free | Self::Done)
    }
}

/// One upstream try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// Its part of the id.
    pub(crate) mark: u32,
    pub(crate) number: u32,
    pub(crate) slot: u32,
    pub(crate) birth: u32,
    /// The cluster that owns the host.
    pub(crate) cluster: u32,
    /// Bits of its decision.
    pub(crate) bits: u16,
    /// Whether it was granted as counted: its permit may still be a mark in the queue.
    pub(crate) counted: bool,
    /// Response headers are there, below 400 or not.
    pub(crate) answered: bool,
    pub(crate) good: bool,
    pub(crate) priority: u32,
}

/// Why a request ended by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// With an upstream's answer, or from outside.
    #[default]
    None,
    /// Refused, see `outcome::refusal`.
    Refused(u8),
    /// The last attempt failed, see `outcome::failure`.
    Failed(u8),
}

/// One downstream request.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) generation: u32,
    pub(crate) phase: Phase,
    /// Which policies, and which of them.
    pub(crate) policies: u32,
    pub(crate) policy: u32,
    /// Cluster named by the route.
    pub(crate) cluster: u32,
    /// The retry policy is that cluster's own.
    pub(crate) cluster_retry: bool,
    /// Attempts begun.
    pub(crate) number: u32,
    pub(crate) stateless: bool,
    pub(crate) is_retry: bool,
    /// A retry policy acts at all.
    pub(crate) retries: bool,
    /// Conditions in force.
    pub(crate) on: RetryOn,
    pub(crate) remaining: u32,
    pub(crate) holds_retry: bool,
    pub(crate) back_off: BackOff,
    pub(crate) retry_at: Time,
    /// The scheduled retry has no back-off.
    pub(crate) immediate: bool,
    pub(crate) abandoned: bool,
    pub(crate) sent: bool,
    /// The client has seen a 1xx: no retry any more.
    pub(crate) interim: bool,
    /// Body: 0 none, 1 replayable, 2 once, 3 streaming.
    pub(crate) body: u8,
    pub(crate) replay: bool,
    pub(crate) upload_open: bool,
    /// Breaker thresholds.
    pub(crate) routing: u8,
    pub(crate) begun: Time,
    /// Newest instant seen.
    pub(crate) last: Time,
    pub(crate) deadline: Time,
    /// Nanoseconds of the global limit, NEVER = off.
    pub(crate) timeout: u64,
    pub(crate) per_try: u64,
    pub(crate) hash: Option<u64>,
    pub(crate) flags: u32,
    pub(crate) tried: SmallVec<[(u32, u32); 4]>,
    pub(crate) attempts: SmallVec<[Attempt; 2]>,
    /// The attempt that waits for a stream.
    pub(crate) queued: Option<Attempt>,
    pub(crate) end: End,
    pub(crate) resource: u8,
    pub(crate) reply_status: u16,
    /// Rare things; kept when the slot is reused.
    pub(crate) rare: Option<Box<Rare>>,
    pub(crate) has_rare: bool,
}

/// What few requests need.
#[derive(Default)]
pub(crate) struct Rare {
    /// Values of `set-cookie` for the client.
    pub(crate) cookies: Vec<String>,
    pub(crate) path: Option<String>,
    pub(crate) authority: Option<String>,
    /// Hashes by a sub-cluster's own policies.
    pub(crate) own_hashes: Vec<(u32, Option<u64>)>,
    /// Stateless: addresses tried before.
    pub(crate) tried: Vec<String>,
    /// What the request's own headers added to its retry policy.
    pub(crate) extra: Option<Box<Extra>>,
    /// Name of a cluster that does not exist.
    pub(crate) missing: String,
}

impl State {
    /// Empties the slot for a new request; what is allocated stays.
    #[inline]
    pub(crate) fn reset(&mut self, now: Time) {
        self.phase = Phase::Select;
        self.number = 0;
        self.stateless = false;
        self.is_retry = false;
        self.retries = false;
        self.cluster_retry = false;
        self.on = RetryOn::default();
        self.remaining = 0;
        self.immediate = false;
        self.holds_retry = false;
        self.retry_at = Time(0);
        self.abandoned = false;
        self.sent = false;
        self.interim = false;
        self.body = 0;
        self.replay = false;
        self.upload_open = false;
        self.begun = now;
        self.last = now;
        self.deadline = Time::NEVER;
        self.timeout = NEVER;
        self.per_try = NEVER;
        self.hash = None;
        self.flags = 0;
        self.tried.clear();
        self.attempts.clear();
        self.queued = None;
        self.end = End::None;
        self.resource = 0;
        self.reply_status = 0;
        if self.has_rare {
            self.rare = None;
            self.has_rare = false;
        }
    }

    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.has_rare = true;
        self.rare.get_or_insert_default()
    }

    /// Time never goes back within a request.
    #[inline]
    pub(crate) fn at(&mut self, now: Time) -> Time {
        self.last = self.last.max(now);
        self.last
    }

    pub(crate) fn attempt(&self, mark: u32) -> Option<usize> {
        self.attempts.iter().position(|attempt| attempt.mark == mark)
    }
}
