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
    /// Section 22.
    Subset(Arc<SubsetSpec>),
    /// The cluster type brings its own (composite).
    ClusterProvided,
}

impl Default for PolicySpec {
    fn default() -> Self {
        Self::RoundRobin { locality: LocalityBalancing::default(), slow_start: None }
    }
}

impl PolicySpec {
    /// The policy that chooses hosts: this one, or that of its subsets.
    pub fn chooser(&self) -> &Self {
        match self {
            Self::Subset(subset) => subset.child.chooser(),
            Self::Filtered(filters) => match &filters.pick {
                FilterPick::Policy(policy) => policy.chooser(),
                FilterPick::Rotation | FilterPick::Interleave => self,
            },
            other => other,
        }
    }

    /// How new hosts start; `None` = with their whole weight.
    pub fn slow_start(&self) -> Option<&SlowStart> {
        match self {
            Self::RoundRobin { slow_start, .. } | Self::LeastRequest { slow_start, .. } => {
                slow_start.as_ref()
            }
            Self::Subset(subset) => subset.child.slow_start(),
            Self::Filtered(filters) => match &filters.pick {
                FilterPick::Policy(policy) => policy.slow_start(),
                FilterPick::Rotation | FilterPick::Interleave => None,
            },
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
        match self.chooser() {
            Self::PeakEwma(_) => Some(&["retry-after"]),
            _ => None,
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
