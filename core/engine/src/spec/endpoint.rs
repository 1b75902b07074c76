//! Hosts as documents give them (`spec/load-balancing.md` section 2).

use super::Metadata;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

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

/// Whether two texts are equal. Most texts of a host are empty, and to compare nothing byte by byte can cost more than to
/// compare something: where it would begin there is no memory.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && (a.is_empty() || a == b)
}

/// One host.
#[derive(Clone, Debug)]
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

/// A host as lists hold it. Copies share one record until somebody changes theirs, so a list costs little besides its
/// length, and lists with the same records are told to be equal at once.
#[derive(Clone, Debug, Default)]
pub struct Endpoint(Arc<EndpointSpec>);

impl From<EndpointSpec> for Endpoint {
    fn from(spec: EndpointSpec) -> Self {
        Self(Arc::new(spec))
    }
}

impl Deref for Endpoint {
    type Target = EndpointSpec;

    fn deref(&self) -> &EndpointSpec {
        &self.0
    }
}

impl DerefMut for Endpoint {
    fn deref_mut(&mut self) -> &mut EndpointSpec {
        Arc::make_mut(&mut self.0)
    }
}

impl PartialEq for Endpoint {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl PartialEq for EndpointSpec {
    fn eq(&self, other: &Self) -> bool {
        let Self { address, port, hostname, weight, health, metadata, checks } = self;
        is_same(address, &other.address)
            && is_same(hostname, &other.hostname)
            && (port, weight, health) == (&other.port, &other.weight, &other.health)
            && (metadata.0.is_empty() && other.metadata.0.is_empty() || *metadata == other.metadata)
            && *checks == other.checks
    }
}

/// `health_check_config` of an endpoint.
#[derive(Clone, Debug, Default)]
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

impl PartialEq for EndpointChecks {
    fn eq(&self, other: &Self) -> bool {
        let Self { disabled, port, hostname, address } = self;
        (disabled, port) == (&other.disabled, &other.port)
            && is_same(hostname, &other.hostname)
            && is_same(address, &other.address)
    }
}

impl Eq for EndpointChecks {}

impl Locality {
    /// Whether this is the same place.
    pub fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || is_same(&self.region, &other.region)
                && is_same(&self.zone, &other.zone)
                && is_same(&self.sub_zone, &other.sub_zone)
    }
}

impl EndpointSpec {
    /// Whether a name is this host's.
    pub(crate) fn is_named(&self, hostname: &str) -> bool {
        is_same(&self.hostname, hostname)
    }
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
    pub endpoints: Vec<Endpoint>,
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
