//! What goes in and what comes out of each decision: plain values of fixed layout, so that whoever embeds the
//! engine can hand them on without copying. Numbers are stable; unknown ones must be tolerated.

use crate::clock::Time;

/// No limit, or "only after a report".
pub const NEVER: u64 = u64::MAX;

/// Kind of a [`Decision`].
pub mod kind {
    #![expect(missing_docs, reason = "the name says it")]
    pub const GO: u16 = 1;
    pub const WAIT: u16 = 2;
    pub const REFUSED: u16 = 3;
}

/// Action of a [`Verdict`].
pub mod action {
    #![expect(missing_docs, reason = "the name says it")]
    pub const NONE: u8 = 0;
    pub const FORWARD: u8 = 1;
    pub const RETRY: u8 = 2;
    pub const DISCARD: u8 = 3;
}

/// Bits of decisions; the low three of verdicts and maintenance too.
pub mod bits {
    /// Somebody's wait may be over: ask `poll_ready`.
    pub const WAKE: u16 = 1;
    /// Abort the request's other attempts.
    pub const ABORT_OTHERS: u16 = 2;
    /// There are events.
    pub const EVENTS: u16 = 4;
    /// The set of wanted request headers grew.
    pub const WANT_CHANGED: u16 = 8;
    /// There are headers to add to the attempt.
    pub const HEADERS: u16 = 16;
    /// This attempt is a retry.
    pub const RETRY: u16 = 32;
    /// This attempt is a hedge.
    pub const HEDGE: u16 = 64;
    /// The priority panicked: health was not looked at.
    pub const PANIC: u16 = 128;
    /// A fallback was taken: composite walk, subset, gray.
    pub const FALLBACK: u16 = 256;
    /// The host is the one the request asked for.
    pub const OVERRIDE: u16 = 512;
    /// The host is degraded.
    pub const DEGRADED: u16 = 1024;
    /// Measure latency with the precise clock.
    pub const PRECISE: u16 = 2048;
    /// The headers to add contain `:path` or `:authority`.
    pub const REWRITE: u16 = 4096;
    /// A probe of a half-open host.
    pub const PROBE: u16 = 8192;
    /// A mechanism in dry run would have decided otherwise.
    pub const DRY_RUN: u16 = 16384;
}

/// Why a [`Decision`] says wait.
pub mod wait {
    #![expect(missing_docs, reason = "the name says it")]
    pub const QUEUE: u8 = 1;
    pub const BACKOFF: u8 = 2;
    pub const HEDGE: u8 = 3;
    pub const ATTEMPTS: u8 = 4;
    /// Names by number.
    pub const NAMES: [&str; 5] = ["", "queue", "backoff", "hedge", "attempts"];
}

/// Why there will be no attempt.
pub mod refusal {
    #![expect(missing_docs, reason = "the name says it")]
    pub const NO_HEALTHY_UPSTREAM: u8 = 1;
    pub const OVERFLOW: u8 = 2;
    pub const TIMEOUT: u8 = 3;
    pub const NO_ROUTE: u8 = 4;
    pub const NO_CLUSTER: u8 = 5;
    pub const DROP_OVERLOAD: u8 = 6;
    pub const UNCONDITIONAL_DROP_OVERLOAD: u8 = 7;
    pub const MAINTENANCE: u8 = 8;
    pub const INVALID_HEADERS: u8 = 9;
    pub const DIRECT_RESPONSE: u8 = 10;
    pub const ADMISSION: u8 = 11;
    pub const CONCURRENCY: u8 = 12;
    pub const BODY_TOO_LARGE: u8 = 13;
    pub const DEADLINE: u8 = 14;
    pub const COOLING: u8 = 15;
    /// Names by number.
    pub const NAMES: [&str; 16] = [
        "",
        "no_healthy_upstream",
        "overflow",
        "timeout",
        "no_route",
        "no_cluster",
        "drop_overload",
        "unconditional_drop_overload",
        "maintenance",
        "invalid_headers",
        "direct_response",
        "admission",
        "concurrency",
        "body_too_large",
        "deadline",
        "cooling",
    ];
}

/// Which limit refused, or why a composite found no host.
pub mod resource {
    #![expect(missing_docs, reason = "the name says it")]
    pub const NONE: u8 = 0;
    pub const PENDING: u8 = 1;
    pub const REQUESTS: u8 = 2;
    pub const RETRIES: u8 = 3;
    pub const POOLS: u8 = 4;
    pub const CONNECTIONS: u8 = 5;
    pub const NO_ATTEMPT_NUMBER: u8 = 16;
    pub const PAST_LAST_SUB_CLUSTER: u8 = 17;
    pub const SUB_CLUSTER_MISSING: u8 = 18;
    pub const SUB_CLUSTER_EMPTY: u8 = 19;
    pub const SUB_CLUSTER_REFUSED: u8 = 20;
    pub const FILTERED: u8 = 21;

    /// The name of a number, empty for none.
    pub const fn name(resource: u8) -> &'static str {
        match resource {
            PENDING => "pending",
            REQUESTS => "requests",
            RETRIES => "retries",
            POOLS => "pools",
            CONNECTIONS => "connections",
            NO_ATTEMPT_NUMBER => "no_attempt_number",
            PAST_LAST_SUB_CLUSTER => "past_last_sub_cluster",
            SUB_CLUSTER_MISSING => "sub_cluster_missing",
            SUB_CLUSTER_EMPTY => "sub_cluster_empty",
            SUB_CLUSTER_REFUSED => "sub_cluster_refused",
            FILTERED => "filtered",
            _ => "",
        }
    }
}

/// Failures a caller can report, by number.
pub mod failure {
    #![expect(missing_docs, reason = "the name says it")]
    pub const NONE: u8 = 0;
    pub const CONNECT_FAILURE: u8 = 1;
    pub const CONNECT_TIMEOUT: u8 = 2;
    pub const CONNECTION_TERMINATION: u8 = 3;
    pub const REMOTE_RESET: u8 = 4;
    pub const REFUSED_STREAM: u8 = 5;
    pub const PROTOCOL_ERROR: u8 = 6;
    pub const LOCAL_CONNECT_FAILURE: u8 = 7;
    pub const TIMEOUT: u8 = 8;
    pub const PER_TRY_TIMEOUT: u8 = 9;
    pub const PER_TRY_IDLE_TIMEOUT: u8 = 10;
    pub const GLOBAL_TIMEOUT: u8 = 11;
    pub const MAX_STREAM_DURATION: u8 = 12;
    pub const LOCAL_RESET: u8 = 13;
    pub const OVERFLOW: u8 = 14;
    pub const CONNECT_ERROR: u8 = 15;
    pub const PREMATURE_CLOSE: u8 = 16;
    pub const OVERLOAD_MANAGER: u8 = 17;
    pub const NO_ERROR_RESET: u8 = 18;
    /// Names by number.
    pub const NAMES: [&str; 19] = [
        "",
        "connect_failure",
        "connect_timeout",
        "connection_termination",
        "remote_reset",
        "refused_stream",
        "protocol_error",
        "local_connect_failure",
        "timeout",
        "per_try_timeout",
        "per_try_idle_timeout",
        "global_timeout",
        "max_stream_duration",
        "local_reset",
        "overflow",
        "connect_error",
        "premature_close",
        "overload_manager",
        "no_error_reset",
    ];
}

/// Why a verdict is what it is.
pub mod reason {
    #![expect(missing_docs, reason = "the name says it")]
    pub const NONE: u8 = 0;
    pub const SUCCESS: u8 = 1;
    pub const NOT_RETRIABLE: u8 = 2;
    pub const NO_POLICY: u8 = 3;
    pub const LIMIT_EXCEEDED: u8 = 4;
    pub const RETRY_OVERFLOW: u8 = 5;
    pub const RUNTIME_DISABLED: u8 = 6;
    pub const RESPONSE_STARTED: u8 = 7;
    pub const ALREADY_HEDGED: u8 = 8;
    pub const ABANDONED: u8 = 9;
    pub const BODY_NOT_REPLAYABLE: u8 = 10;
    pub const BACKOFF: u8 = 11;
    pub const BACKOFF_RATELIMITED: u8 = 12;
    pub const IMMEDIATE: u8 = 13;
    pub const OTHERS_IN_FLIGHT: u8 = 14;
    pub const CLIENT_GONE: u8 = 15;
    pub const STREAM_ENDED: u8 = 16;
    pub const DEADLINE: u8 = 17;
    pub const RETRY_AFTER_TOO_LONG: u8 = 18;
    pub const NOT_IDEMPOTENT: u8 = 19;
    pub const OUTER_LAYER_RETRIES: u8 = 20;
    /// Names by number.
    pub const NAMES: [&str; 21] = [
        "",
        "success",
        "not_retriable",
        "no_policy",
        "limit_exceeded",
        "retry_overflow",
        "runtime_disabled",
        "response_started",
        "already_hedged",
        "abandoned",
        "body_not_replayable",
        "backoff",
        "backoff_ratelimited",
        "immediate",
        "others_in_flight",
        "client_gone",
        "stream_ended",
        "deadline",
        "retry_after_too_long",
        "not_idempotent",
        "outer_layer_retries",
    ];
}

/// Envoy's response flags as bits, in the order in which their short names are joined.
pub mod flags {
    #![expect(missing_docs, reason = "Envoy's words")]
    pub const UH: u32 = 1 << 1;
    pub const UT: u32 = 1 << 2;
    pub const LR: u32 = 1 << 3;
    pub const UR: u32 = 1 << 4;
    pub const UF: u32 = 1 << 5;
    pub const UC: u32 = 1 << 6;
    pub const UO: u32 = 1 << 7;
    pub const NR: u32 = 1 << 8;
    pub const DC: u32 = 1 << 14;
    pub const URX: u32 = 1 << 15;
    pub const IH: u32 = 1 << 17;
    pub const UMSDR: u32 = 1 << 19;
    pub const UPE: u32 = 1 << 23;
    pub const NC: u32 = 1 << 24;
    pub const DO: u32 = 1 << 27;
    pub const UDO: u32 = 1 << 29;
    /// Short names by bit.
    pub const NAMES: [&str; 30] = [
        "LH", "UH", "UT", "LR", "UR", "UF", "UC", "UO", "NR", "DI", "FI", "RL", "UAEX", "RLSE", "DC", "URX",
        "SI", "IH", "DPE", "UMSDR", "RFCF", "NFCF", "DT", "UPE", "NC", "OM", "DF", "DO", "DR", "UDO",
    ];

    /// Comma-joined in bit order, `-` for none.
    pub fn text(flags: u32) -> String {
        let names: Vec<&str> = NAMES
            .iter()
            .enumerate()
            .filter(|(bit, _)| flags & (1 << bit) != 0)
            .map(|(_, name)| *name)
            .collect();
        if names.is_empty() { "-".into() } else { names.join(",") }
    }
}

/// Misuse of the interface; nothing has changed. The numbers are those of every face.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(i8)]
#[non_exhaustive]
pub enum Misuse {
    /// A bad argument: the calling thread's last error says which.
    #[error("invalid argument")]
    Invalid = -1,
    /// The attempt or request has ended.
    #[error("the attempt or request has ended")]
    Ended = -2,
    /// Not legal in this state.
    #[error("not legal in this state")]
    State = -3,
    /// The engine is closed.
    #[error("the engine is closed")]
    Closed = -4,
    /// No such name or host.
    #[error("not found")]
    NotFound = -7,
    /// A fixed limit is reached.
    #[error("a fixed limit is reached")]
    Limit = -8,
    /// A bug in nexthop, contained.
    #[error("internal error")]
    Panic = -11,
}

impl Misuse {
    /// That of a verdict's code; unknown ones are bugs.
    #[cold]
    pub fn from_code(code: i8) -> Self {
        [Self::Invalid, Self::Ended, Self::State, Self::Closed, Self::NotFound, Self::Limit]
            .into_iter()
            .find(|misuse| *misuse as i8 == code)
            .unwrap_or(Self::Panic)
    }
}

/// The answer of choosing: send it, wait, or there will be no attempt. 72 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Decision {
    /// Size of this struct in bytes, for callers across a C boundary.
    pub struct_size: u32,
    /// See [`kind`]; 0 before the first answer.
    pub kind: u16,
    /// See [`bits`].
    pub bits: u16,
    /// The request's id.
    pub request: u64,
    /// The attempt's id (GO).
    pub attempt: u64,
    /// Slot of the host (GO, and REFUSED when one was picked before a limit refused).
    pub host: u32,
    /// Version of what a face may show of that host.
    pub host_version: u32,
    /// Attempt number (GO), attempts begun (else).
    pub number: u32,
    /// Wanted headers of answers below 400.
    pub want_ok: u16,
    /// Wanted headers of other answers and failures.
    pub want_err: u16,
    /// Nanoseconds to response headers.
    pub try_timeout: u64,
    /// Nanoseconds of the global limit, to the end of the body.
    pub remaining: u64,
    /// Nanoseconds until asking again makes sense.
    pub wait: u64,
    /// Local reply (REFUSED).
    pub status: u16,
    /// See [`refusal`] (REFUSED) or [`wait`] (WAIT).
    pub refusal: u8,
    /// See [`resource`].
    pub resource: u8,
    /// See [`flags`].
    pub flags: u32,
}

/// The answer to a report. 16 bytes, handed around by value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Verdict {
    /// 0, or a [`Misuse`] number.
    pub code: i8,
    /// See [`action`].
    pub action: u8,
    /// See [`reason`].
    pub reason: u8,
    /// Low three of [`bits`].
    pub bits: u8,
    /// See [`flags`]; they accumulate over a request.
    pub flags: u32,
    /// The upstream's status, or the local reply's.
    pub status: u16,
    /// Always 0.
    pub reserved: u16,
    /// Milliseconds of back-off (RETRY).
    pub after_ms: u32,
}

impl From<Misuse> for Verdict {
    fn from(misuse: Misuse) -> Self {
        Self { code: misuse as i8, ..Self::default() }
    }
}

/// A verdict in two machine words, laid out as [`Verdict`] is on a little-endian machine. Inside the engine it
/// travels like this: put together field by field in memory, each copy would wait for the narrower stores before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed(pub u64, pub u64);

impl Packed {
    #[inline]
    pub(crate) const fn new(
        action: u8,
        reason: u8,
        bits: u8,
        flags: u32,
        status: u16,
        after_ms: u32,
    ) -> Self {
        Self(
            (action as u64) << 8 | (reason as u64) << 16 | (bits as u64) << 24 | (flags as u64) << 32,
            status as u64 | (after_ms as u64) << 32,
        )
    }

    /// Nothing happened, and that is fine.
    pub const NOTHING: Self = Self(0, 0);

    /// With these of the low three [`bits`] as well.
    #[inline]
    pub(crate) const fn with(self, bits: u16) -> Self {
        Self(self.0 | (bits as u64 & 7) << 24, self.1)
    }

    /// The low three of [`bits`].
    #[inline]
    pub const fn bits(self) -> u16 {
        (self.0 >> 24) as u16 & 0xff
    }
}

impl From<Misuse> for Packed {
    #[inline]
    fn from(misuse: Misuse) -> Self {
        Self(u64::from((misuse as i8).cast_unsigned()), 0)
    }
}

impl From<Verdict> for Packed {
    #[inline]
    fn from(verdict: Verdict) -> Self {
        let Self(a, b) = Self::new(
            verdict.action,
            verdict.reason,
            verdict.bits,
            verdict.flags,
            verdict.status,
            verdict.after_ms,
        );
        Self(a | u64::from(verdict.code.cast_unsigned()), b | u64::from(verdict.reserved) << 16)
    }
}

impl From<Packed> for Verdict {
    #[inline]
    fn from(Packed(a, b): Packed) -> Self {
        Self {
            code: (a as u8).cast_signed(),
            action: (a >> 8) as u8,
            reason: (a >> 16) as u8,
            bits: (a >> 24) as u8,
            flags: (a >> 32) as u32,
            status: b as u16,
            reserved: (b >> 16) as u16,
            after_ms: (b >> 32) as u32,
        }
    }
}

/// Facts about an attempt.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// 0 none, 100..=999.
    pub status: u16,
    /// See [`failure`].
    pub failure: u8,
    /// -1 none, 0..=16, anything else invalid but legal.
    pub grpc_status: i8,
    /// See [`outcome_bits`].
    pub bits: u32,
    /// Header block over the wanted set (trailers in `end`).
    pub headers: &'a [u8],
    /// Free text for explain and events.
    pub detail: &'a str,
    /// Nanoseconds from sent to headers; 0 = the engine measures.
    pub latency: u64,
    /// Body bytes, 0 unknown.
    pub bytes: u64,
}

impl Outcome<'_> {
    /// Whether it is an answer without headers or a gRPC status.
    #[inline]
    pub(crate) fn is_bare(&self) -> bool {
        self.failure == failure::NONE && self.grpc_status == -1 && self.headers.is_empty()
    }
}

impl Default for Outcome<'_> {
    fn default() -> Self {
        Self {
            status: 0,
            failure: 0,
            grpc_status: -1,
            bits: 0,
            headers: &[],
            detail: "",
            latency: 0,
            bytes: 0,
        }
    }
}

impl Outcome<'_> {
    /// An answer with this status.
    pub fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// A failure, see [`failure`].
    pub fn failed(failure: u8) -> Self {
        Self { failure, ..Self::default() }
    }
}

/// Bits of an [`Outcome`].
pub mod outcome_bits {
    #![expect(missing_docs, reason = "the name says it")]
    pub const CONNECTED: u32 = 1;
    pub const NOT_SENT: u32 = 2;
    pub const CUT: u32 = 4;
    pub const NO_BODY: u32 = 8;
    pub const CLOSED: u32 = 16;
}

/// Facts between decision and report.
pub mod note {
    #![expect(missing_docs, reason = "the name says it")]
    pub const CONNECTED: u32 = 1;
    pub const SENT: u32 = 2;
    pub const BODY_COMPLETE: u32 = 3;
    pub const RETRY_ABANDONED: u32 = 4;
    pub const INTERIM: u32 = 5;
    /// Names by number.
    pub const NAMES: [&str; 6] = ["", "connected", "sent", "body_complete", "retry_abandoned", "interim"];
}

/// Why a request is finished from outside.
pub mod finish {
    #![expect(missing_docs, reason = "the name says it")]
    pub const CLIENT_GONE: u32 = 1;
    pub const GLOBAL_TIMEOUT: u32 = 2;
    pub const MAX_DURATION: u32 = 3;
    pub const IDLE: u32 = 4;
    pub const SHUTDOWN: u32 = 5;
}

/// Bits of a [`Head`].
pub mod head_bits {
    /// `x-envoy-*` request headers count.
    pub const INTERNAL: u32 = 1;
    /// Keep the whole reason trail.
    pub const EXPLAIN: u32 = 2;
    /// A streamed body can be sent again.
    pub const REPLAY: u32 = 4;
    /// `hash` is set.
    pub const HASH: u32 = 8;
}

/// What a request is made from. All text is UTF-8.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// See [`head_bits`].
    pub bits: u32,
    /// Number of a cluster or route; 0 = match the route tables.
    pub target: u32,
    /// Attempt number of a stateless pick; 0 = a full request.
    pub number: u32,
    /// Number of the wanted set that `headers` indexes.
    pub want: u32,
    /// 0 DEFAULT, 1 HIGH, -1 the route's.
    pub priority: i8,
    /// 0 none, 1 replayable, 2 once, 3 streaming.
    pub body: u8,
    /// Empty = GET.
    pub method: &'a str,
    /// Empty = http.
    pub scheme: &'a str,
    /// `:authority`.
    pub authority: &'a str,
    /// With its query; empty = `/`.
    pub path: &'a str,
    /// Header block over `want`.
    pub headers: &'a [u8],
    /// Downstream `ip` or `ip:port`.
    pub source: &'a str,
    /// Local `ip:port`.
    pub local: &'a str,
    /// Replaces every hash policy when set.
    pub key: Option<&'a [u8]>,
    /// Comma-joined addresses tried before (stateless).
    pub tried: &'a str,
    /// Address asked for; `!` before it = strict.
    pub override_host: &'a str,
    /// JSON object of `envoy.lb` criteria.
    pub metadata: &'a str,
    /// JSON object of other namespaces.
    pub filter_metadata: &'a str,
    /// The hash itself, with bit `HASH`.
    pub hash: u64,
    /// The caller's own limit in nanoseconds; 0 or NEVER = none.
    pub timeout: u64,
    /// Comes back from `poll_ready`.
    pub user_data: u64,
}

impl Head<'_> {
    /// Bytes of text that a head may hold.
    pub const TEXT_LIMIT: usize = 60 * 1024;

    /// Bytes of text that this one holds.
    #[inline]
    pub fn text_len(&self) -> usize {
        let texts = [
            self.method.len(),
            self.scheme.len(),
            self.authority.len(),
            self.path.len(),
            self.headers.len(),
            self.source.len(),
            self.local.len(),
            self.key.map_or(0, <[u8]>::len),
            self.tried.len(),
            self.override_host.len(),
            self.metadata.len(),
            self.filter_metadata.len(),
        ];
        texts.iter().sum()
    }
}

impl Default for Head<'_> {
    fn default() -> Self {
        Self {
            bits: 0,
            target: 0,
            number: 0,
            want: 1,
            priority: -1,
            body: 0,
            method: "",
            scheme: "",
            authority: "",
            path: "",
            headers: &[],
            source: "",
            local: "",
            key: None,
            tried: "",
            override_host: "",
            metadata: "",
            filter_metadata: "",
            hash: 0,
            timeout: 0,
            user_data: 0,
        }
    }
}

/// A request whose wait is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Ready {
    /// Its id.
    pub request: u64,
    /// As given in its head.
    pub user_data: u64,
}

/// What the router would answer by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalReply {
    /// HTTP status.
    pub status: u16,
    /// See [`flags`].
    pub flags: u32,
    /// Envoy's response code details.
    pub details: String,
    /// Headers, in order.
    pub headers: Vec<(String, String)>,
    /// Body text.
    pub body: String,
}

/// An instant that may be [`NEVER`], as a span from `now`.
#[inline]
pub(crate) fn span(until: Time, now: Time) -> u64 {
    if until == Time::NEVER { NEVER } else { until.since(now) }
}

const _: () = assert!(size_of::<Decision>() == 72 && size_of::<Verdict>() == 16 && size_of::<Ready>() == 16);
