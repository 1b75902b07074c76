//! Clusters (`spec/load-balancing.md` section 1.3, `spec/breakers-and-health.md` A1).

use super::{
    AdmissionSpec, ClusterOptions, ConcurrencySpec, Endpoints, ForwardSpec, HashPolicySpec, HealthCheckSpec,
    HealthStatus, OutlierSpec, PolicySpec, RetrySpec,
};
use std::time::Duration;

/// One cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSpec {
    /// Unique, not empty.
    pub name: String,
    /// Name that assignments for it carry (`eds_cluster_config.service_name`); empty = its own.
    pub service_name: String,
    /// Its own hosts, or other clusters.
    pub kind: ClusterKind,
    /// Hosts of a [`ClusterKind::Hosts`] cluster.
    pub endpoints: Endpoints,
    /// Load-balancing policy. Defaults to round robin.
    pub policy: PolicySpec,
    /// `healthy_panic_threshold` as integer percent, 0..=100. Defaults to 50.
    pub panic_threshold: u32,
    /// Health changes reach balancers at most once per window after the first. Defaults to 1 s; zero = at once.
    pub update_merge_window: Duration,
    /// Defaults to 5 s.
    pub connect_timeout: Duration,
    /// Limits.
    pub breakers: Breakers,
    /// `None` = no detector.
    pub outlier: Option<OutlierSpec>,
    /// Active checks; none = the hosts are not checked.
    pub health_checks: Vec<HealthCheckSpec>,
    /// A host that is no longer listed goes even while its active check passes. Defaults to false.
    pub ignore_health_on_host_removal: bool,
    /// New hosts are left out of priority load and panic until their first check. Defaults to false.
    pub ignore_new_hosts_until_first_hc: bool,
    /// How long one attempt may take, its body included. Zero (the default) = any time.
    pub max_stream_duration: Duration,
    /// HTTP version spoken to the hosts. Defaults to HTTP/1.1.
    pub protocol: Protocol,
    /// Streams per HTTP/2 connection. Defaults to 1,024.
    pub max_concurrent_streams: u32,
    /// Requests that a connection carries over its life; 0 (the default) = any number.
    pub max_requests_per_connection: u32,
    /// Idle virtual connections are forgotten after this. Defaults to 1 h; zero = never.
    pub idle_timeout: Duration,
    /// `HttpProtocolOptions.retry_policy`: replaces the route's entirely, even when it has no condition.
    pub retry: Option<RetrySpec>,
    /// `HttpProtocolOptions.hash_policy`: used before the route's when not empty.
    pub hash_policy: Vec<HashPolicySpec>,
    /// How a request that names this cluster directly is treated; `None` = as the first route that leads here.
    pub defaults: Option<ForwardSpec>,
    /// Connection accounting; `None` = `queue`, and `count` for stateless picks.
    pub connections: Option<ConnectionStyle>,
    /// Admission control of requests to this cluster; replaces that of the route table.
    pub admission: Option<AdmissionSpec>,
    /// Adaptive concurrency of requests to this cluster; replaces that of the route table.
    pub concurrency: Option<ConcurrencySpec>,
    /// Nacos' protection: at this healthy part of the hosts or less, all count as healthy. Defaults to none.
    pub protect_threshold: Option<f32>,
    /// Starts and ends of attempts are events. Defaults to false.
    pub lifecycle_events: bool,
    /// Hosts are spoken to over TLS (only shapes URLs).
    pub secure: bool,
    /// `common_lb_config.override_host_status`: what a host that a request asks for by address may be. Defaults to
    /// UNKNOWN, HEALTHY and DEGRADED; none = no host may.
    pub override_host_status: Vec<HealthStatus>,
    /// A retry never meets a tried host while any other may be chosen. Defaults to false.
    pub exclude_tried: bool,
    /// Of each priority only so many hosts are used, which ones the engine's seed decides. At least 1; `None` (the
    /// default) = all.
    pub subset_size: Option<u32>,
    /// Mechanisms beyond Envoy.
    pub options: ClusterOptions,
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            service_name: String::new(),
            kind: ClusterKind::Hosts,
            endpoints: Endpoints::default(),
            policy: PolicySpec::default(),
            panic_threshold: 50,
            update_merge_window: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(5),
            breakers: Breakers::default(),
            outlier: None,
            health_checks: Vec::new(),
            ignore_health_on_host_removal: false,
            ignore_new_hosts_until_first_hc: false,
            max_stream_duration: Duration::ZERO,
            protocol: Protocol::Http1,
            max_concurrent_streams: 1024,
            max_requests_per_connection: 0,
            idle_timeout: Duration::from_secs(3600),
            retry: None,
            hash_policy: Vec::new(),
            defaults: None,
            connections: None,
            admission: None,
            concurrency: None,
            protect_threshold: None,
            lifecycle_events: false,
            secure: false,
            override_host_status: vec![HealthStatus::Unknown, HealthStatus::Healthy, HealthStatus::Degraded],
            exclude_tried: false,
            subset_size: None,
            options: ClusterOptions::default(),
        }
    }
}

/// Where a cluster's hosts come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClusterKind {
    /// Its own endpoints.
    #[default]
    Hosts,
    /// `envoy.clusters.composite`: attempt N goes to the N-th of these names.
    Composite(Vec<String>),
    /// `envoy.clusters.aggregate`: the priorities of these names, laid end to end.
    Aggregate(Vec<String>),
}

impl ClusterKind {
    /// The names it lists; none for a cluster with hosts of its own.
    pub fn subs(&self) -> &[String] {
        match self {
            Self::Hosts => &[],
            Self::Composite(names) | Self::Aggregate(names) => names,
        }
    }

    /// Its word in messages.
    pub const fn article(&self) -> &'static str {
        match self {
            Self::Hosts => "a cluster",
            Self::Composite(_) => "a composite",
            Self::Aggregate(_) => "an aggregate",
        }
    }
}

/// HTTP version towards the hosts; decides how many requests one connection carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// One request per connection at a time.
    #[default]
    Http1,
    /// `max_concurrent_streams` requests per connection.
    Http2,
}

/// Routing priority: chosen by the route, each with its own limits and counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoutingPriority {
    /// `DEFAULT`.
    #[default]
    Default = 0,
    /// `HIGH`.
    High = 1,
}

/// `circuit_breakers`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Breakers {
    /// By [`RoutingPriority`].
    pub thresholds: [Thresholds; 2],
    /// `per_host_thresholds[].max_connections` by [`RoutingPriority`]; `None` = unlimited.
    pub per_host_max_connections: [Option<u32>; 2],
}

/// Limits of one routing priority; an explicit 0 is a limit of 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// Defaults to 1,024.
    pub max_connections: u32,
    /// Defaults to 1,024.
    pub max_pending_requests: u32,
    /// Defaults to 1,024.
    pub max_requests: u32,
    /// Defaults to 3; not used while a budget is set.
    pub max_retries: u32,
    /// Replaces `max_retries`.
    pub retry_budget: Option<RetryBudget>,
    /// Publish the `remaining_*` gauges. Defaults to false.
    pub track_remaining: bool,
    /// Hosts that may have connections at once; `None` (the default) = any number.
    pub max_connection_pools: Option<u64>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            max_pending_requests: 1024,
            max_requests: 1024,
            max_retries: 3,
            retry_budget: None,
            track_remaining: false,
            max_connection_pools: None,
        }
    }
}

/// `retry_budget`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryBudget {
    /// 0.0..=100.0. Defaults to 20.
    pub budget_percent: f64,
    /// Defaults to 3.
    pub min_retry_concurrency: u32,
    /// `budget_interval`: the share is of the requests that began within it, in whole milliseconds. Zero (the
    /// default) = of those under way or pending.
    pub interval: Duration,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { budget_percent: 20.0, min_retry_concurrency: 3, interval: Duration::ZERO }
    }
}

/// How connections are accounted without owning any (`spec/breakers-and-health.md` A6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionStyle {
    /// A request over the limits waits for its turn.
    Queue,
    /// Never waits: granted while within limits plus pending, else refused.
    Count,
    /// As `Queue`, and connections are up only when the caller says so.
    Strict,
}
