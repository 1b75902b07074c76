//! The state of one downstream request (`spec/retry-and-timeouts.md` section 1).

use super::filters::Brought;
use super::hedge::Hedge;
use super::opt_in::Opted;
use super::trail::Trail;
use crate::admission::Pass;
use crate::balance::{Criteria, Overrides};
use crate::clock::Time;
use crate::opt_in::half_open::Ticket;
use crate::outcome::NEVER;
use crate::policies::{Policies, Wants};
use crate::request::{Again, Session};
use crate::retry::{BackOff, Extra, PreviousPriorities};
use crate::spec::RetryOn;
use smallvec::SmallVec;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

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
    /// Of a probe, see `opt_in::half_open`.
    pub(crate) ticket: Ticket,
    /// Whether it was granted as counted: its permit may still be a mark in the queue.
    pub(crate) counted: bool,
    /// Response headers are there, below 400 or not.
    pub(crate) answered: bool,
    pub(crate) good: bool,
    /// Its answer is judged when its body is over; what it counts as by its headers.
    pub(crate) later: bool,
    pub(crate) status: u16,
    /// Another attempt was started because this one took long: it is never retried again.
    pub(crate) hedged: bool,
    /// Outlier detection knows already that it timed out.
    pub(crate) told: bool,
    pub(crate) priority: u32,
    /// When it was decided.
    pub(crate) begun: Time,
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

/// The part of a request that is plain numbers: copied in one piece when a request begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    /// Newest instant seen.
    pub(crate) last: Time,
    pub(crate) deadline: Time,
    /// Nanoseconds of the global limit, NEVER = off.
    pub(crate) timeout: u64,
    pub(crate) per_try: u64,
    pub(crate) retry_at: Time,
    pub(crate) back_off: BackOff,
    pub(crate) hash: Option<u64>,
    /// Conditions in force.
    pub(crate) on: RetryOn,
    /// Which policies, and which of them.
    pub(crate) policies: u32,
    pub(crate) policy: u32,
    /// Cluster named by the route.
    pub(crate) cluster: u32,
    /// Cluster whose policy and breaker judge retries: the first one, whatever a retry chose.
    pub(crate) home: u32,
    /// Attempts begun.
    pub(crate) number: u32,
    pub(crate) remaining: u32,
    pub(crate) flags: u32,
    /// Wanted response headers.
    pub(crate) wants: Wants,
    pub(crate) reply_status: u16,
    pub(crate) end: End,
    pub(crate) resource: u8,
    pub(crate) phase: Phase,
    /// Body: 0 none, 1 replayable, 2 once, 3 streaming.
    pub(crate) body: u8,
    /// Breaker thresholds.
    pub(crate) routing: u8,
    pub(crate) stateless: bool,
    pub(crate) is_retry: bool,
    /// A retry policy acts at all.
    pub(crate) retries: bool,
    pub(crate) holds_retry: bool,
    /// Why the scheduled retry waits as it does, see `outcome::reason`.
    pub(crate) back_off_kind: u8,
    /// The scheduled or last retry was caused by a limit of its attempt.
    pub(crate) timeout_retry: bool,
    /// A time-out is answered 204.
    pub(crate) alternate: bool,
    pub(crate) abandoned: bool,
    pub(crate) sent: bool,
    /// The client has seen a 1xx: no retry any more.
    pub(crate) interim: bool,
    pub(crate) replay: bool,
    pub(crate) upload_open: bool,
    /// A gRPC request: local replies are gRPC's.
    pub(crate) grpc: bool,
    /// Attempts may carry headers of ours.
    pub(crate) marks: bool,
    /// No retry condition could meet an answer below 400 without headers.
    pub(crate) plain_success: bool,
    /// Where it goes, successes count as the host's own, too.
    pub(crate) split: bool,
}

impl Course {
    /// Of a request that nothing is known of.
    pub(crate) const EMPTY: Self = Self {
        last: Time(0),
        deadline: Time::NEVER,
        timeout: NEVER,
        per_try: NEVER,
        retry_at: Time(0),
        back_off: BackOff::NONE,
        hash: None,
        on: RetryOn::NONE,
        policies: 0,
        policy: 0,
        cluster: 0,
        home: 0,
        number: 0,
        remaining: 0,
        flags: 0,
        wants: Wants { ok: 0, err: 0 },
        reply_status: 0,
        end: End::None,
        resource: 0,
        phase: Phase::Select,
        body: 0,
        routing: 0,
        stateless: false,
        is_retry: false,
        retries: false,
        holds_retry: false,
        back_off_kind: 0,
        timeout_retry: false,
        alternate: false,
        abandoned: false,
        sent: false,
        interim: false,
        replay: false,
        upload_open: false,
        grpc: false,
        marks: false,
        plain_success: false,
        split: false,
    };

    /// Of every request that policy number `at` treats in `cluster`, but for what its own head says.
    pub(crate) fn new(policies: &Policies, at: u32, cluster: u32) -> Self {
        let policy = &policies.list[at as usize];
        let own = policies.cluster(cluster);
        let (judged, split) = own.map_or((false, false), |own| (own.judged, own.split));
        let own = own.and_then(|own| own.retry.as_ref());
        let (retry, wants) = own.map_or((&policy.retry, policy.wants), |(retry, wants)| (retry, *wants));
        Self {
            policies: policies.generation,
            policy: at,
            cluster,
            home: cluster,
            timeout: policy.timeout,
            per_try: policy.per_try,
            routing: policy.priority,
            retries: retry.acts(),
            remaining: retry.num_retries,
            on: retry.on,
            back_off: retry.back_off,
            wants,
            plain_success: retry.ignores_success() && !judged,
            split,
            marks: policy.marks(),
            ..Self::EMPTY
        }
    }
}

const _: () = assert!(size_of::<Course>() <= 128);

/// One downstream request.
pub(crate) struct State {
    pub(crate) course: Course,
    pub(crate) tried: SmallVec<[(u32, u32); 4]>,
    /// Empty when a request is over.
    pub(crate) attempts: SmallVec<[Attempt; 2]>,
    /// The attempt that waits for a stream; none when a request is over.
    pub(crate) queued: Option<Attempt>,
    /// Rare things; kept when the slot is reused.
    pub(crate) rare: Option<Box<Rare>>,
    pub(crate) has_rare: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            course: Course { phase: Phase::Free, ..Course::EMPTY },
            tried: SmallVec::new(),
            attempts: SmallVec::new(),
            queued: None,
            rare: None,
            has_rare: false,
        }
    }
}

impl Deref for State {
    type Target = Course;
    #[inline]
    fn deref(&self) -> &Course {
        &self.course
    }
}

impl DerefMut for State {
    #[inline]
    fn deref_mut(&mut self) -> &mut Course {
        &mut self.course
    }
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
    /// Several attempts may be under way.
    pub(crate) hedge: Option<Hedge>,
    /// What the request itself asks of metadata, while a retry may go to another cluster.
    pub(crate) own_criteria: Option<Arc<Criteria>>,
    /// The body outgrew what its sender keeps while nothing was under way.
    pub(crate) too_large: bool,
    /// A header that does not read as it must: its name and value.
    pub(crate) bad_header: Option<(Box<str>, String)>,
    /// What attempts say as `grpc-timeout`, in milliseconds.
    pub(crate) grpc_stream: Option<u64>,
    /// The retry priority plugin.
    pub(crate) priorities: Option<Box<PreviousPriorities>>,
    /// What retries choose their cluster by, where they may leave it.
    pub(crate) again: Option<Again>,
    /// Where a redirect sends the client.
    pub(crate) location: Option<String>,
    /// Request headers that were read here and go no further.
    pub(crate) consumed: Vec<&'static str>,
    /// Nanoseconds that the request itself allows an attempt.
    pub(crate) stream_limit: Option<u64>,
    /// When the attempt has to be over, body and all.
    pub(crate) stream_until: Option<Time>,
    /// When the request has to be over, whatever happens.
    pub(crate) route_until: Option<Time>,
    /// That was reached.
    pub(crate) route_over: bool,
    /// The request itself came as early data.
    pub(crate) early_data: bool,
    /// Attempts carry `grpc-timeout` anew.
    pub(crate) grpc_timeout: bool,
    /// Name of a cluster that does not exist.
    pub(crate) missing: String,
    /// The host that the first attempt asks for, and whether no other will do.
    pub(crate) wanted: Option<(String, bool)>,
    /// What it brings to filters.
    pub(crate) brought: Option<Box<Brought>>,
    /// The session that the request belongs to.
    pub(crate) session: Option<Box<Session>>,
    /// Hosts that the request lists for the policy override_host.
    pub(crate) overrides: Option<Overrides>,
    /// Why each choice was what it was, for a head that asks for it.
    pub(crate) trail: Option<Box<Trail>>,
    /// What the host's metadata must say.
    pub(crate) criteria: Option<Arc<Criteria>>,
    /// The gates it went through.
    pub(crate) pass: Option<Box<Pass>>,
    /// Of mechanisms beyond Envoy.
    pub(crate) opted: Opted,
}

impl State {
    /// Begins a new request in this slot; what is allocated stays.
    #[inline]
    pub(crate) fn begin(&mut self, course: &Course, now: Time) {
        debug_assert!(self.attempts.is_empty() && self.queued.is_none());
        self.course = *course;
        self.course.last = now;
        if !self.tried.is_empty() {
            self.tried.clear();
        }
        if self.has_rare {
            self.rare = None;
            self.has_rare = false;
        }
    }

    /// Empties the slot, whatever was under way.
    pub(crate) fn empty(&mut self) {
        self.attempts.clear();
        self.queued = None;
        self.begin(&Course { phase: Phase::Free, ..Course::EMPTY }, Time(0));
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

    /// The status of a local reply on the wire: that of gRPC is in a header.
    pub(crate) const fn wire_status(&self, status: u16) -> u16 {
        if self.course.grpc && status != 0 { 200 } else { status }
    }

    pub(crate) fn attempt(&self, mark: u32) -> Option<usize> {
        self.attempts.iter().position(|attempt| attempt.mark == mark)
    }
}
