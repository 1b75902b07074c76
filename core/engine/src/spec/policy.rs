//! Load-balancing policies and request hash policies (`spec/load-balancing.md` sections 13 to 20).

use super::{FilterPick, FilterSpec, SubsetSpec};
use std::sync::Arc;
use std::time::Duration;

/// How a cluster chooses a host.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicySpec {
    /// Section 13.
    RoundRobin {
        /// Locality handling.
        locality: LocalityBalancing,
        /// New hosts start with part of their weight; `None` = with all of it.
        slow_start: Option<SlowStart>,
    },
    /// Section 14.
    LeastRequest {
        /// Draws per unweighted pick. Defaults to 2; 0 makes every unweighted pick find nothing, as in Envoy.
        choice_count: u32,
        /// Exponent of the active count in weighted picks. Defaults to 1.0; negative or NaN acts as 1.0.
        active_request_bias: f64,
        /// Sampling or a full scan.
        selection: SelectionMethod,
        /// Locality handling.
        locality: LocalityBalancing,
        /// New hosts start with part of their weight; `None` = with all of it.
        slow_start: Option<SlowStart>,
    },
    /// Section 15.
    Random {
        /// Locality handling.
        locality: LocalityBalancing,
    },
    /// Section 19.
    RingHash {
        /// Hash of the ring's points.
        hash_function: HashFunction,
        /// Defaults to 1,024.
        minimum_ring_size: u64,
        /// Defaults to 8,388,608; not below the minimum.
        maximum_ring_size: u64,
        /// Keys, bounded load, own hash policies.
        hashing: ConsistentHashing,
        /// `locality_weighted_lb_config` is present.
        locality_weighted: bool,
    },
    /// Section 20.
    Maglev {
        /// A prime, at least 2. Defaults to 65,537.
        table_size: u64,
        /// Keys, bounded load, own hash policies.
        hashing: ConsistentHashing,
        /// `locality_weighted_lb_config` is present.
        locality_weighted: bool,
    },
    /// `peak_ewma` of the `nexthop:` block.
    PeakEwma(PeakEwma),
    /// `rendezvous_hash` of the `nexthop:` block.
    RendezvousHash,
    /// `deterministic_aperture` of the `nexthop:` block.
    DeterministicAperture(Aperture),
    /// Nacos' draw over the weights of registries (`spec/gray-and-nacos.md` section 3).
    WeightedRandom,
    /// Stages narrow the hosts first (`spec/gray-and-nacos.md` section 8).
    Filtered(Arc<FilterSpec>),
    /// Sections 23 and 24.
    ClientSideWeighted(Arc<ClientWeights>),
    /// Section 26.
    LoadAwareLocality(Arc<LoadAware>),
    /// Section 25.1.
    OverrideHost(Arc<OverrideSpec>),
    /// Section 22.
    Subset(Arc<SubsetSpec>),
    /// The cluster type brings its own (composite, aggregate).
    ClusterProvided,
}

impl Default for PolicySpec {
    fn default() -> Self {
        Self::RoundRobin { locality: LocalityBalancing::default(), slow_start: None }
    }
}

impl PolicySpec {
    /// The policy that chooses hosts in the end: this one, or that of its subsets or localities or behind its overrides.
    pub fn chooser(&self) -> &Self {
        self.child().map_or(self, Self::chooser)
    }

    /// This policy, or what is behind its overrides.
    pub fn below_overrides(&self) -> &Self {
        match self {
            Self::OverrideHost(spec) => spec.fallback.below_overrides(),
            other => other,
        }
    }

    /// Where a request lists the hosts that it wants; empty under any other policy.
    pub fn override_sources(&self) -> &[OverrideSource] {
        match self {
            Self::OverrideHost(spec) => &spec.sources,
            other => other.child().map_or(&[], Self::override_sources),
        }
    }

    /// Whether hosts are chosen among subsets.
    pub fn has_subsets(&self) -> bool {
        match self {
            Self::Subset(_) => true,
            other => other.child().is_some_and(Self::has_subsets),
        }
    }

    /// How new hosts start; `None` = with their whole weight.
    pub fn slow_start(&self) -> Option<&SlowStart> {
        match self {
            Self::RoundRobin { slow_start, .. } | Self::LeastRequest { slow_start, .. } => {
                slow_start.as_ref()
            }
            Self::ClientSideWeighted(spec) => spec.slow_start.as_ref(),
            Self::Subset(_) | Self::Filtered(_) | Self::OverrideHost(_) | Self::LoadAwareLocality(_) => {
                self.child().and_then(Self::slow_start)
            }
            Self::Random { .. }
            | Self::RingHash { .. }
            | Self::Maglev { .. }
            | Self::PeakEwma(_)
            | Self::RendezvousHash
            | Self::DeterministicAperture(_)
            | Self::WeightedRandom
            | Self::ClusterProvided => None,
        }
    }

    /// Whether the hash of a request decides.
    pub fn is_by_hash(&self) -> bool {
        matches!(self.chooser(), Self::RingHash { .. } | Self::Maglev { .. } | Self::RendezvousHash)
    }

    /// The response headers that the policy learns from; `None` = it learns nothing from answers.
    pub fn learns_from(&self) -> Option<&'static [&'static str]> {
        if self.client_weights().is_some() || self.load_aware().is_some() {
            return Some(crate::orca::HEADERS);
        }
        self.peak_ewma().map(|_| &["retry-after"][..])
    }

    /// The policy whose child this one asks, if any.
    fn child(&self) -> Option<&Self> {
        match self {
            Self::Subset(spec) => Some(&spec.child),
            Self::OverrideHost(spec) => Some(&spec.fallback),
            Self::Filtered(spec) => match &spec.pick {
                FilterPick::Policy(policy) => Some(policy),
                FilterPick::Rotation | FilterPick::Interleave => None,
            },
            Self::LoadAwareLocality(spec) => Some(&spec.child),
            _ => None,
        }
    }

    /// Settings of client_side_weighted_round_robin, here or below.
    pub fn client_weights(&self) -> Option<&Arc<ClientWeights>> {
        match self {
            Self::ClientSideWeighted(spec) => Some(spec),
            other => other.child()?.client_weights(),
        }
    }

    /// Settings of load_aware_locality, here or below.
    pub fn load_aware(&self) -> Option<&Arc<LoadAware>> {
        match self {
            Self::LoadAwareLocality(spec) => Some(spec),
            other => other.child()?.load_aware(),
        }
    }

    /// Settings of peak_ewma, here or below.
    pub fn peak_ewma(&self) -> Option<&PeakEwma> {
        match self {
            Self::PeakEwma(spec) => Some(spec),
            other => other.child()?.peak_ewma(),
        }
    }

    /// Settings of ring_hash and maglev.
    pub fn hashing(&self) -> Option<&ConsistentHashing> {
        match self.chooser() {
            Self::RingHash { hashing, .. } | Self::Maglev { hashing, .. } => Some(hashing),
            _ => None,
        }
    }
}

/// Settings of client_side_weighted_round_robin, and of wrr_locality around it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientWeights {
    /// A host's first reports are not used for this long. Defaults to 10 s.
    pub blackout: Duration,
    /// A weight without a newer report ends after this. Defaults to 180 s.
    pub expiration: Duration,
    /// How often weights are computed. Above zero; defaults to 1 s.
    pub period: Duration,
    /// What an error each request adds to the utilization. Defaults to 0; negative acts as 0.
    pub error_penalty: f64,
    /// The metrics whose highest value is the utilization.
    pub metric_names: Vec<String>,
    /// wrr_locality: localities by their weights. Defaults to false.
    pub locality: LocalityBalancing,
    /// New hosts start with part of their weight; `None` = with all of it.
    pub slow_start: Option<SlowStart>,
}

impl Default for ClientWeights {
    fn default() -> Self {
        Self {
            blackout: Duration::from_secs(10),
            expiration: Duration::from_secs(180),
            period: Duration::from_secs(1),
            error_penalty: 0.0,
            metric_names: Vec::new(),
            locality: LocalityBalancing::None,
            slow_start: None,
        }
    }
}

/// Settings of load_aware_locality.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadAware {
    /// How often weights are computed, at least 100 ms. Defaults to 1 s.
    pub period: Duration,
    /// The metrics whose highest value is the utilization.
    pub metric_names: Vec<String>,
    /// The own locality is preferred until it is busier than the others by more than this, 0..=1. Defaults to 0.1.
    pub variance_threshold: f64,
    /// Averages forget with this time constant, above zero. Defaults to 5 s.
    pub smoothing: Duration,
    /// Least part of the traffic that other localities get, 0..1. Defaults to 0.03.
    pub probe_fraction: f64,
    /// A report counts for so long; zero = for ever. Defaults to 180 s.
    pub expiration: Duration,
    /// Chooses in each locality.
    pub child: PolicySpec,
}

impl Default for LoadAware {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(1),
            metric_names: Vec::new(),
            variance_threshold: 0.1,
            smoothing: Duration::from_secs(5),
            probe_fraction: 0.03,
            expiration: Duration::from_secs(180),
            child: PolicySpec::default(),
        }
    }
}

/// Settings of override_host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverrideSpec {
    /// Asked in order.
    pub sources: Vec<OverrideSource>,
    /// Chooses when no listed host is there.
    pub fallback: PolicySpec,
}

/// Where a request lists hosts: `ip:port`, apart by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideSource {
    /// The first value of a header, lower case.
    Header(String),
    /// A text in the request's metadata: namespace and path.
    Metadata(String, Vec<String>),
}

/// Settings of `peak_ewma`: of `choices` draws the one with the least latency * (active requests + 1) / weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakEwma {
    /// A latency counts 1/e after this time. Above zero; defaults to 10 s.
    pub decay: Duration,
    /// Latency of a host that has not answered yet. Defaults to 30 ms.
    pub default_rtt: Duration,
    /// Least latency that a failure is booked with. Defaults to 5 s.
    pub penalty: Duration,
    /// At least 1. Defaults to 2.
    pub choices: u32,
}

impl Default for PeakEwma {
    fn default() -> Self {
        Self {
            decay: Duration::from_secs(10),
            default_rtt: Duration::from_millis(30),
            penalty: Duration::from_secs(5),
            choices: 2,
        }
    }
}

/// Settings of `deterministic_aperture`: each of several peers keeps to its own part of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aperture {
    /// Hosts that a peer keeps to, at least. At least 1; defaults to 12.
    pub size: u32,
    /// Which peer this is, 0..`peers`.
    pub id: u32,
    /// How many there are, at least 1.
    pub peers: u32,
}

/// `slow_start_config` of round_robin and least_request (section 16).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowStart {
    /// How long a host starts; whole milliseconds, above zero.
    pub window: Duration,
    /// Exponent's inverse. Defaults to 1.0; zero, negative and NaN act as 1.0.
    pub aggression: f64,
    /// Least part of its weight that a host has. Defaults to 0.1; not limited to 1.
    pub min_weight: f64,
}

/// `selection_method` of least_request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelectionMethod {
    /// The better of `choice_count` draws.
    #[default]
    NChoices,
    /// The best of all hosts.
    FullScan,
}

/// `locality_lb_config` of round_robin, least_request and random (sections 9, 11, 12).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LocalityBalancing {
    /// Not configured.
    #[default]
    None,
    /// `locality_weighted_lb_config {}`.
    Weighted,
    /// `zone_aware_lb_config`. With a local cluster its defaults act without it, too.
    ZoneAware(ZoneAware),
}

/// `zone_aware_lb_config` (section 12.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneAware {
    /// Percent of the picks routed by zone; above 100 acts as 100. Defaults to 100.
    pub routing_enabled: u32,
    /// Fewer healthy hosts are not routed by zone. Defaults to 6.
    pub min_cluster_size: u64,
    /// Refuse instead of using every host while a priority, or the local cluster, panics. Defaults to false.
    pub fail_traffic_on_panic: bool,
    /// All picks stay in the own zone when it has so many healthy hosts. Defaults to none.
    pub force_local_zone: Option<u32>,
    /// Zones are compared by weight instead of number of hosts. Defaults to false.
    pub by_weight: bool,
}

impl Default for ZoneAware {
    fn default() -> Self {
        Self {
            routing_enabled: 100,
            min_cluster_size: 6,
            fail_traffic_on_panic: false,
            force_local_zone: None,
            by_weight: false,
        }
    }
}

/// Hash of ring points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashFunction {
    /// XXH64, seed 0.
    #[default]
    XxHash,
    /// 64-bit MurmurHash2 with libstdc++'s seed.
    MurmurHash2,
}

/// `consistent_hashing_lb_config`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsistentHashing {
    /// Host key from the hostname instead of the address. Defaults to false.
    pub use_hostname: bool,
    /// Percent, 0 = no bound. Defaults to 0.
    pub balance_factor: u32,
    /// Used alone when not empty.
    pub hash_policy: Vec<HashPolicySpec>,
}

/// One entry of a `hash_policy` list (section 17).
#[derive(Clone, Debug, PartialEq)]
pub struct HashPolicySpec {
    /// What is hashed.
    pub source: HashSource,
    /// Stop after this one if there is a hash. Defaults to false.
    pub terminal: bool,
}

/// What a hash policy reads.
#[derive(Clone, Debug, PartialEq)]
pub enum HashSource {
    /// All values of a header.
    Header {
        /// Lower case.
        name: String,
        /// Applied to each value first.
        rewrite: Option<RegexRewrite>,
    },
    /// A cookie, generated when `ttl` is given and the cookie is absent.
    Cookie {
        /// Its name.
        name: String,
        /// `Max-Age` of a generated cookie; zero = session cookie.
        ttl: Option<Duration>,
        /// `Path` of a generated cookie; empty = none.
        path: String,
        /// More attributes of a generated cookie: name and value.
        attributes: Vec<(String, String)>,
    },
    /// The downstream address without its port.
    SourceIp,
    /// First query parameter of that name, as sent.
    QueryParameter {
        /// Its name.
        name: String,
    },
    /// An object the caller keeps; without a proxy there is none, so it gives no hash.
    FilterState {
        /// Its key.
        key: String,
    },
}

/// `regex_rewrite`: every match is replaced; `\N` is a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexRewrite {
    /// RE2 syntax.
    pub pattern: String,
    /// With `\1` ... `\9`.
    pub substitution: String,
}
