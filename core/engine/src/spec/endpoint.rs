//! Hosts as documents give them (`spec/load-balancing.md` section 2).

use super::Metadata;

/// Where a host is; missing = three empty strings.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locality {
    /// Region.
    pub region: String,
    /// Zone.
    pub zone: String,
    /// Sub-zone.
    pub sub_zone: String,
}

/// EDS health status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "Envoy's words")]
pub enum HealthStatus {
    #[default]
    Unknown = 0,
    Healthy = 1,
    Unhealthy = 2,
    Draining = 3,
    Timeout = 4,
    Degraded = 5,
}

impl HealthStatus {
    /// The status of an EDS number; `None` for numbers without a name.
    pub fn from_number(number: i32) -> Option<Self> {
        let all =
            [Self::Unknown, Self::Healthy, Self::Unhealthy, Self::Draining, Self::Timeout, Self::Degraded];
        all.get(usize::try_from(number).ok()?).copied()
    }
}

/// One host.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointSpec {
    /// The key a host is known by: `a.b.c.d:port`, `[v6]:port` (canonical), `name:port` or a pipe's path.
    pub address: String,
    /// Port; 0 for pipes.
    pub port: u16,
    /// `endpoint.hostname`, else the DNS name, else empty.
    pub hostname: String,
    /// 1..=2^32-1. Defaults to 1.
    pub weight: u32,
    /// EDS status.
    pub health: HealthStatus,
    /// All namespaces.
    pub metadata: Metadata,
    /// How it is checked.
    pub checks: EndpointChecks,
}

/// `health_check_config` of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointChecks {
    /// Not at all.
    pub disabled: bool,
    /// Port to check instead of its own; 0 = its own, or the check's.
    pub port: u16,
    /// Host header or authority instead of the check's; empty = the check's.
    pub hostname: String,
    /// `ip` or `[v6]` to check instead of its own; empty = its own.
    pub address: String,
}

impl Default for EndpointSpec {
    fn default() -> Self {
        Self {
            address: String::new(),
            port: 0,
            hostname: String::new(),
            weight: 1,
            health: HealthStatus::Unknown,
            metadata: Metadata::default(),
            checks: EndpointChecks::default(),
        }
    }
}

/// One `LocalityLbEndpoints`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalityEndpoints {
    /// The locality; `None` when the message has none (its weight is then dropped).
    pub locality: Option<Locality>,
    /// 0..=128. Gaps between priorities are legal.
    pub priority: u32,
    /// `load_balancing_weight`, at least 1 when given.
    pub weight: Option<u32>,
    /// Hosts in document order.
    pub endpoints: Vec<EndpointSpec>,
}

/// One `ClusterLoadAssignment`.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoints {
    /// Localities in document order.
    pub localities: Vec<LocalityEndpoints>,
    /// Percent, greater than 0. Defaults to 140.
    pub overprovisioning_factor: u32,
    /// Priority load from host weights instead of counts. Defaults to false.
    pub weighted_priority_health: bool,
    /// Share of new requests that are answered before any host is chosen, 0..=1 (`drop_overloads`). Defaults to 0.
    pub drop_ratio: f32,
    /// The registry protects: it told all instances as healthy. Defaults to false.
    pub protected: bool,
    /// When the registry made the list, if it tells: an older list than the one in force is refused.
    pub revision: Option<i64>,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            localities: Vec::new(),
            overprovisioning_factor: 140,
            weighted_priority_health: false,
            drop_ratio: 0.0,
            protected: false,
            revision: None,
        }
    }
}
