//! Mechanisms beyond Envoy (`spec/nexthop-block.md`): each is off unless a document asks for it.
//!
//! `dry_run`: decide and count, tell an event, enforce nothing.

use std::time::Duration;

/// The opt-in part of a retry policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryOptions {
    /// No retry that cannot end before the request's deadline.
    pub deadline_first: Option<DeadlineFirst>,
    /// What `retry-after` says is waited for, or the retry is given up.
    pub retry_after: Option<RetryAfter>,
    /// Only repeatable requests are retried once something was sent.
    pub idempotency: Option<Idempotency>,
    /// An outer layer's attempts count against the retries here.
    pub layers: Option<Layers>,
    /// What answers mean; the first that matches counts.
    pub classes: Vec<FailureClass>,
}

impl RetryOptions {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `deadline_first`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlineFirst {
    /// What any attempt takes at least; with less left none is begun. Defaults to zero: only waits are judged.
    pub least: Duration,
    /// See the module.
    pub dry_run: bool,
}

/// `retry_after: honour`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// Longer waits are not worth it: the retry is given up. Defaults to 300 s.
    pub max: Duration,
    /// See the module.
    pub dry_run: bool,
}

impl Default for RetryAfter {
    fn default() -> Self {
        Self { max: Duration::from_secs(300), dry_run: false }
    }
}

/// `idempotency: guard`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idempotency {
    /// See the module.
    pub dry_run: bool,
}

/// `layers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    /// Lower-case name of the request header that counts the outer layer's attempts, from 1. Defaults to
    /// `x-envoy-attempt-count`.
    pub header: String,
    /// Attempts of both layers, multiplied, at most; at least 1.
    pub max_product: u32,
    /// See the module.
    pub dry_run: bool,
}

/// One entry of `classes`.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureClass {
    /// All that is given must hold.
    pub when: ClassMatch,
    /// The name it is counted under.
    pub class: ClassName,
    /// Another attempt may go to the host that answered so. Defaults to false.
    pub same_host: bool,
    /// The host is set aside for as long, or for longer if its answer says so and the cluster cools hosts down.
    pub cool_down: Option<Duration>,
    /// Where the next attempt goes; `None` = as the retry conditions say.
    pub next: Option<ClassNext>,
    /// See the module.
    pub dry_run: bool,
}

/// Which answers an entry of `classes` is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassMatch {
    /// Ranges of statuses, ends included; none = any.
    pub statuses: Vec<(u16, u16)>,
    /// Lower-case names that must be there, with the value they must have, if one is given.
    pub headers: Vec<(String, Option<String>)>,
    /// The error code of the body, as the caller tells it in the outcome's detail; none = any.
    pub body_codes: Vec<String>,
}

/// What failures of model providers are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the name says it")]
pub enum ClassName {
    RateLimited,
    Quota,
    Overloaded,
    Auth,
    TooLong,
    Filtered,
    Other,
}

/// Where the attempt after a classified answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassNext {
    /// To a host of the same cluster: a composite does not move on.
    Host,
    /// To the composite's next cluster.
    Cluster,
    /// Nowhere.
    Stop,
}

/// The opt-in part of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterOptions {
    /// Hosts without a free place are passed over while another has one.
    pub prefer_below_limit: Option<PreferBelowLimit>,
    /// An ejected host comes back through probes.
    pub half_open: Option<HalfOpen>,
    /// A host is set aside until the time that its answer names.
    pub cool_down: Option<CoolDown>,
    /// When an answer is judged.
    pub outcome_at: OutcomeAt,
}

/// `prefer_below_limit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreferBelowLimit {
    /// See the module.
    pub dry_run: bool,
}

/// `half_open`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfOpen {
    /// Good probes in a row that bring the host back, 1..=100. Defaults to 1.
    pub probes: u32,
    /// Wait after the first failed probe; doubles with each. Defaults to 5 s.
    pub interval: Duration,
    /// The longest wait. Defaults to 300 s.
    pub max_interval: Duration,
    /// See the module.
    pub dry_run: bool,
}

impl Default for HalfOpen {
    fn default() -> Self {
        Self {
            probes: 1,
            interval: Duration::from_secs(5),
            max_interval: Duration::from_secs(300),
            dry_run: false,
        }
    }
}

/// `cool_down`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoolDown {
    /// Statuses, 400..=599. Defaults to 429 and 503.
    pub on: Vec<u16>,
    /// Lower-case names of the headers that name a time; the first that is readable counts. Defaults to
    /// `retry-after`, `x-ratelimit-reset`, `retry-after-ms`.
    pub from_headers: Vec<String>,
    /// When no header does. Defaults to 5 s; zero = only what a header names.
    pub default: Duration,
    /// Longer times are cut. Defaults to 300 s.
    pub max: Duration,
    /// See the module.
    pub dry_run: bool,
}

impl Default for CoolDown {
    fn default() -> Self {
        Self {
            on: vec![429, 503],
            from_headers: ["retry-after", "x-ratelimit-reset", "retry-after-ms"].map(String::from).to_vec(),
            default: Duration::from_secs(5),
            max: Duration::from_secs(300),
            dry_run: false,
        }
    }
}

/// `outcome_at`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutcomeAt {
    /// With the response headers, as Envoy does.
    #[default]
    Headers,
    /// A good answer counts when its body is whole; one that is cut short is a failure.
    End,
}
