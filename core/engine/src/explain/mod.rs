//! Why a request goes where it goes: plain data, for faces to show. Nothing here decides or counts.

mod hosts;
mod whole;

pub use hosts::{CandidateWhy, FilterWhy, HostsWhy, PriorityWhy, policy_name};
pub(crate) use whole::{Beside, route_why};

/// A whole answer: of a head that only asks, or of one decision of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// How the request came to its cluster.
    pub route: RouteWhy,
    /// Why there is no attempt whatever the hosts, see `outcome::refusal`; 0 = there may be one.
    pub refusal: u8,
    /// The limit that refuses, see `outcome::resource`; 0 = none does.
    pub resource: u8,
    /// The attempt that is explained, from 1.
    pub number: u32,
    /// The cluster, and what composites hand on to; the last one has the hosts.
    pub levels: Vec<LevelWhy>,
    /// Hosts of the last level; `None` when there is no such cluster.
    pub hosts: Option<HostsWhy>,
    /// The request's hash, where the policy goes by it.
    pub hash: Option<u64>,
    /// Limits of the cluster for the request's routing priority.
    pub limits: Vec<LimitWhy>,
    /// Limits of time, nanoseconds, `NEVER` = none.
    pub times: TimesWhy,
    /// What happens when the attempt fails.
    pub retry: RetryWhy,
    /// The host that was chosen; empty when a head only asks.
    pub chosen: String,
    /// Random words that choosing took.
    pub draws: Vec<u64>,
}

/// How a request came to its cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteWhy {
    /// `VHOST/ROUTE`; empty without one.
    pub name: String,
    /// One sentence.
    pub why: String,
    /// Clusters that a draw chooses among, with their weights.
    pub weighted: Vec<(String, u64)>,
}

/// One cluster on the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelWhy {
    /// Its name.
    pub cluster: String,
    /// One sentence.
    pub why: String,
}

/// One limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitWhy {
    /// `connections`, `pending_requests`, `requests`, `retries`.
    pub name: &'static str,
    /// In use now.
    pub used: u64,
    /// At most.
    pub max: u64,
}

/// Limits of time in nanoseconds, `NEVER` = none.
#[derive(Clone, Debug, PartialEq)]
pub struct TimesWhy {
    /// Of the whole request.
    pub timeout: u64,
    /// Of one attempt.
    pub per_try: u64,
    /// Between bytes of one attempt.
    pub per_try_idle: u64,
    /// For a connection.
    pub connect: u64,
}

impl Default for TimesWhy {
    fn default() -> Self {
        use crate::outcome::NEVER;
        Self { timeout: NEVER, per_try: NEVER, per_try_idle: NEVER, connect: NEVER }
    }
}

/// What happens on failure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryWhy {
    /// Conditions, as `retry_on` has them; empty = no retry.
    pub on: Vec<&'static str>,
    /// Retries left after this attempt.
    pub left: u32,
    /// One sentence.
    pub then: String,
}
