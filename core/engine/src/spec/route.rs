//! Route tables (`RouteConfiguration`).

use super::{GateSpec, HashPolicySpec, Metadata, RegexRewrite, RetrySpec, RoutingPriority, SessionSpec};
use std::sync::Arc;
use std::time::Duration;

/// One `RouteConfiguration`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteTableSpec {
    /// Its name; may be empty.
    pub name: String,
    /// In document order.
    pub virtual_hosts: Vec<VirtualHostSpec>,
    /// Compare authorities without their port. Defaults to false.
    pub ignore_port_in_host_matching: bool,
    /// A trusted `x-envoy-expected-rq-timeout-ms` is the request's limit (router filter). Defaults to false.
    pub respect_expected_rq_timeout: bool,
    /// Do not send `x-envoy-expected-rq-timeout-ms` (router filter). Defaults to false.
    pub suppress_envoy_headers: bool,
    /// `stat_prefix` of the connection manager; names what `gates` count.
    pub stat_prefix: String,
    /// Admission control and adaptive concurrency before every route, in the order of the HTTP filters. A cluster's
    /// own of the same kind replaces one here.
    pub gates: Vec<GateSpec>,
    /// How requests name the host of their session; `None` = they do not.
    pub session: Option<Arc<SessionSpec>>,
    /// `x-envoy-*` headers of trusted requests that must read well; else the answer is 400 (router filter).
    pub strict_check_headers: Vec<String>,
}

/// One virtual host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VirtualHostSpec {
    /// Its name.
    pub name: String,
    /// Exact, `*.suffix`, `prefix.*` or `*`; lower case.
    pub domains: Vec<String>,
    /// The first match wins.
    pub routes: Vec<RouteSpec>,
    /// For routes without one.
    pub retry: Option<RetrySpec>,
    /// `hedge_policy.hedge_on_per_try_timeout`, for routes without one.
    pub hedge: Option<bool>,
    /// Set `x-envoy-attempt-count` on each attempt. Defaults to false.
    pub include_request_attempt_count: bool,
    /// Set `x-envoy-attempt-count` on the answer to the client. Defaults to false.
    pub include_attempt_count_in_response: bool,
    /// Set `x-envoy-is-timeout-retry` on retries. Defaults to false.
    pub include_is_timeout_retry_header: bool,
    /// In place of the table's: another session, or none at all.
    pub session: Option<Option<Arc<SessionSpec>>>,
}

/// One route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteSpec {
    /// May be empty.
    pub name: String,
    /// When it applies.
    pub matcher: MatchSpec,
    /// What happens then.
    pub action: RouteAction,
    /// In place of the virtual host's: another session, or none at all.
    pub session: Option<Option<Arc<SessionSpec>>>,
}

/// When a route applies; all parts must match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatchSpec {
    /// The path.
    pub path: PathMatch,
    /// Compare paths with case. Defaults to true.
    pub case_insensitive: bool,
    /// Headers (`:method`, `:authority` too).
    pub headers: Vec<HeaderMatch>,
    /// Query parameters.
    pub query: Vec<QueryMatch>,
    /// Only gRPC requests. Defaults to false.
    pub grpc: bool,
    /// `runtime_fraction` default: numerator over denominator; `None` = always.
    pub fraction: Option<(u32, u32)>,
}

/// How the path (without its query) is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathMatch {
    /// Begins with.
    Prefix(String),
    /// Equals.
    Exact(String),
    /// Equals, or begins with it followed by `/`.
    SeparatedPrefix(String),
    /// The whole path matches.
    Regex(String),
}

impl Default for PathMatch {
    fn default() -> Self {
        Self::Prefix("/".into())
    }
}

/// One header condition.
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderMatch {
    /// Lower case.
    pub name: String,
    /// What its value must be.
    pub value: StringMatch,
    /// Negate the result.
    pub invert: bool,
    /// A missing header counts as an empty value.
    pub treat_missing_as_empty: bool,
}

/// One query parameter condition.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryMatch {
    /// Its name.
    pub name: String,
    /// What its value must be.
    pub value: StringMatch,
}

/// A text condition.
#[derive(Clone, Debug, PartialEq)]
pub enum StringMatch {
    /// There at all (`false`: absent).
    Present(bool),
    /// An integer in `start..end`.
    Range(i64, i64),
    /// Equals.
    Exact(String, IgnoreCase),
    /// Begins with.
    Prefix(String, IgnoreCase),
    /// Ends with.
    Suffix(String, IgnoreCase),
    /// Contains.
    Contains(String, IgnoreCase),
    /// The whole value matches.
    Regex(String),
}

/// Compare without case when true.
type IgnoreCase = bool;

/// What a matched route does.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteAction {
    /// Send to a cluster.
    Forward(Box<ForwardSpec>),
    /// Answer by itself.
    Direct {
        /// 200..=599.
        status: u16,
        /// Body of the answer.
        body: String,
    },
    /// Send the client elsewhere: an answer with a `location` header.
    Redirect(Box<RedirectSpec>),
}

impl Default for RouteAction {
    fn default() -> Self {
        Self::Forward(Box::default())
    }
}

/// `redirect:` of a route: parts that are empty come from the request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RedirectSpec {
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// New scheme.
    pub scheme: String,
    /// New host.
    pub host: String,
    /// New port; 0 = the request's, unless that is the old scheme's own and the scheme changes.
    pub port: u32,
    /// New path; keeps the request's query when it has none of its own.
    pub path: String,
    /// New path prefix in place of the matched one; empty = keep.
    pub prefix_rewrite: String,
    /// Rewrites the path when set.
    pub regex_rewrite: Option<RegexRewrite>,
    /// Drop the request's query.
    pub strip_query: bool,
}

/// `route:` of a route.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardSpec {
    /// Which cluster.
    pub cluster: ClusterSource,
    /// What chooses, when there are several.
    pub word: WordSource,
    /// Whole request. Defaults to 15 s; zero = none.
    pub timeout: Duration,
    /// `max_stream_duration`: the whole request from its start, zero = any time. When set, `timeout` and
    /// `max_grpc_timeout` do not count.
    pub max_stream_duration: Option<Duration>,
    /// `max_grpc_timeout`: gRPC requests are limited by their `grpc-timeout`, at most by this (zero: by it alone).
    pub max_grpc_timeout: Option<Duration>,
    /// `grpc_timeout_offset`: taken off a longer `grpc-timeout`.
    pub grpc_timeout_offset: Duration,
    /// Breaker thresholds that apply.
    pub priority: RoutingPriority,
    /// `None` = the virtual host's.
    pub retry: Option<RetrySpec>,
    /// `grpc_timeout_header_max` (zero: no maximum) and `grpc_timeout_header_offset`: `grpc-timeout`, at most the
    /// first and less the second, limits the whole request.
    pub grpc_timeout_header: Option<(Duration, Duration)>,
    /// `hedge_policy.hedge_on_per_try_timeout`; `None` = the virtual host's.
    pub hedge: Option<bool>,
    /// First level of the route's hash policies.
    pub hash_policy: Vec<HashPolicySpec>,
    /// Subset criteria (`envoy.lb`).
    pub metadata_match: Option<Metadata>,
    /// Status when the cluster does not exist. Defaults to 503.
    pub cluster_not_found_status: u16,
    /// New path prefix in place of the matched one; empty = keep.
    pub prefix_rewrite: String,
    /// Rewrites the path when set.
    pub regex_rewrite: Option<RegexRewrite>,
    /// New `:authority`; empty = keep.
    pub host_rewrite: String,
}

impl Default for ForwardSpec {
    fn default() -> Self {
        Self {
            cluster: ClusterSource::Name(String::new()),
            word: WordSource::Drawn,
            timeout: Duration::from_secs(15),
            max_stream_duration: None,
            max_grpc_timeout: None,
            grpc_timeout_offset: Duration::ZERO,
            priority: RoutingPriority::Default,
            retry: None,
            hedge: None,
            grpc_timeout_header: None,
            hash_policy: Vec::new(),
            metadata_match: None,
            cluster_not_found_status: 503,
            prefix_rewrite: String::new(),
            regex_rewrite: None,
            host_rewrite: String::new(),
        }
    }
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterSource {
    /// `cluster`.
    Name(String),
    /// `cluster_header`, lower case.
    Header(String),
    /// `weighted_clusters`; the sum of weights is at least 1.
    Weighted(Vec<WeightedCluster>),
    /// The cluster specifier `priority_group`.
    Groups(Box<PriorityGroups>),
}

impl ClusterSource {
    /// The clusters it names, in order, perhaps repeatedly.
    pub fn names(&self) -> Vec<&str> {
        if let Self::Name(name) = self {
            return vec![name];
        }
        self.shares().into_iter().map(|share| share.name.as_str()).collect()
    }

    /// The clusters that a word chooses among, in order: of all groups.
    pub fn shares(&self) -> Vec<&WeightedCluster> {
        match self {
            Self::Name(_) | Self::Header(_) => Vec::new(),
            Self::Weighted(list) => list.iter().collect(),
            Self::Groups(groups) => groups.list.iter().flat_map(|group| &group.clusters).collect(),
        }
    }

    /// Whether a request may name other clusters than those in [`names`](Self::names).
    pub fn is_open(&self) -> bool {
        match self {
            Self::Header(_) => true,
            Self::Groups(groups) => !groups.override_namespace.is_empty(),
            Self::Name(_) | Self::Weighted(_) => false,
        }
    }
}

/// One entry of `weighted_clusters`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightedCluster {
    /// Cluster name.
    pub name: String,
    /// 0 = never.
    pub weight: u32,
    /// Subset criteria (`envoy.lb`) over the route's.
    pub metadata_match: Option<Metadata>,
}

/// `PriorityGroupClusterSpecifier`: with `refresh_cluster_on_retry` attempt N chooses among the clusters of the N-th
/// group, attempts past the last group among those of the last; without it every attempt keeps the first choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriorityGroups {
    /// At least one.
    pub list: Vec<PriorityGroup>,
    /// Namespace of request metadata whose `priority_groups` replace these for one request; empty = none.
    pub override_namespace: String,
}

/// One group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriorityGroup {
    /// Its name; of equal ones the first is meant.
    pub name: String,
    /// At least one, each of a weight of at least 1.
    pub clusters: Vec<WeightedCluster>,
}

/// Where the word comes from that chooses among several clusters; it is the same for all attempts of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WordSource {
    /// One draw.
    #[default]
    Drawn,
    /// The one value of a header (lower case) that is an unsigned number; else drawn.
    Header(String),
    /// The hash of the route's hash policies; else drawn.
    HashPolicy,
}
