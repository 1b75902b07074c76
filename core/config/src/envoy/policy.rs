//! `LoadBalancingPolicy` and the typed messages of the policies.
//!
//! Envoy 1.40 does not enforce the documented ranges of these messages, so neither does this reader, except where
//! Envoy checks by code or would not survive.

use super::hash_policy::hash_policies;
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use crate::report::What;
use nexthop_engine::spec::{
    ConsistentHashing, HashFunction, LocalityBalancing, PolicySpec, SelectionMethod, SlowStart, ZoneAware,
};
use std::time::Duration;

const POLICIES: Fields = Fields::of("LoadBalancingPolicy", &["policies"]);
const POLICY: Fields = Fields::of("LoadBalancingPolicy.Policy", &["typed_extension_config"]);
const ROUND_ROBIN: Fields = Fields::of("RoundRobin", &["slow_start_config", "locality_lb_config"]);
const LEAST_REQUEST: Fields = Fields::of(
    "LeastRequest",
    &["choice_count", "active_request_bias", "slow_start_config", "locality_lb_config", "selection_method"],
)
.not_used(&["enable_full_scan"]);
const RANDOM: Fields = Fields::of("Random", &["locality_lb_config"]);
const RING_HASH: Fields = Fields::of(
    "RingHash",
    &[
        "hash_function",
        "minimum_ring_size",
        "maximum_ring_size",
        "use_hostname_for_hashing",
        "hash_balance_factor",
        "consistent_hashing_lb_config",
        "locality_weighted_lb_config",
    ],
);
const MAGLEV: Fields =
    Fields::of("Maglev", &["table_size", "consistent_hashing_lb_config", "locality_weighted_lb_config"]);
const CLUSTER_PROVIDED: Fields = Fields::of("ClusterProvided", &[]);
const CONSISTENT: Fields = Fields::of(
    "ConsistentHashingLbConfig",
    &["use_hostname_for_hashing", "hash_balance_factor", "hash_policy"],
);
const LOCALITY: Fields =
    Fields::of("LocalityLbConfig", &["zone_aware_lb_config", "locality_weighted_lb_config"])
        .one_of(&[&["zone_aware_lb_config", "locality_weighted_lb_config"]]);
const ZONE_AWARE: Fields = Fields::of(
    "ZoneAwareLbConfig",
    &[
        "routing_enabled",
        "min_cluster_size",
        "fail_traffic_on_panic",
        "force_locality_direct_routing",
        "force_local_zone",
        "locality_basis",
    ],
);
const FORCE_LOCAL: Fields = Fields::of("ForceLocalZone", &["min_size"]);
pub(super) const NO_FIELDS: Fields = Fields::of("LocalityWeightedLbConfig", &[]);
const SLOW_START: Fields =
    Fields::of("SlowStartConfig", &["slow_start_window", "aggression", "min_weight_percent"]);
const RUNTIME_DOUBLE: Fields =
    Fields::of("RuntimeDouble", &["default_value"]).not_available(&["runtime_key"]);
const PERCENT: Fields = Fields::of("Percent", &["value"]);

const PREFIX: &str = "envoy.extensions.load_balancing_policies.";

/// The policy messages by the part of their type that tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyMessage {
    RoundRobin,
    LeastRequest,
    Random,
    RingHash,
    Maglev,
    ClusterProvided,
    Subset,
    OverrideHost,
    ClientSideWeighted,
    WrrLocality,
    LoadAwareLocality,
    /// Code of somebody else's.
    DynamicModules,
}

impl PolicyMessage {
    /// By full message name; `None` = no such policy in Envoy 1.40.
    fn from_type(type_name: &str) -> Option<Self> {
        let (package, message) = type_name.strip_prefix(PREFIX)?.split_once(".v3.")?;
        Some(match (package, message) {
            ("round_robin", "RoundRobin") => Self::RoundRobin,
            ("least_request", "LeastRequest") => Self::LeastRequest,
            ("random", "Random") => Self::Random,
            ("ring_hash", "RingHash") => Self::RingHash,
            ("maglev", "Maglev") => Self::Maglev,
            ("cluster_provided", "ClusterProvided") => Self::ClusterProvided,
            ("subset", "Subset") => Self::Subset,
            ("override_host", "OverrideHost") => Self::OverrideHost,
            ("client_side_weighted_round_robin", "ClientSideWeightedRoundRobin") => Self::ClientSideWeighted,
            ("wrr_locality", "WrrLocality") => Self::WrrLocality,
            ("load_aware_locality", "LoadAwareLocality") => Self::LoadAwareLocality,
            ("dynamic_modules", "DynamicModulesLoadBalancerConfig") => Self::DynamicModules,
            _ => return None,
        })
    }

    /// Reads the fields of this message.
    pub(crate) fn read(self, at: &At<'_>) -> Result<PolicySpec> {
        match self {
            Self::RoundRobin => round_robin(at),
            Self::LeastRequest => least_request(at),
            Self::Random => random(at),
            Self::RingHash => ring_hash(at),
            Self::Maglev => maglev(at),
            Self::ClusterProvided => at.message(&CLUSTER_PROVIDED).map(|_| PolicySpec::ClusterProvided),
            Self::Subset => super::subset::typed(at),
            Self::OverrideHost => super::override_host::override_host(at),
            Self::ClientSideWeighted => super::load_reports::client_weights(at),
            Self::WrrLocality => super::load_reports::wrr_locality(at),
            Self::LoadAwareLocality => super::load_reports::load_aware_locality(at),
            Self::DynamicModules => Err(at.unavailable("a policy in a module of its own")),
        }
    }
}

/// Reads `load_balancing_policy`: the first entry whose type Envoy knows counts.
pub(super) fn load_balancing_policy(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&POLICIES)?;
    let mut names = Vec::new();
    let mut chosen = None;
    if let Some(list) = msg.get("policies") {
        for item in list.repeated() {
            if chosen.is_some() {
                item.note(What::NotUsed, "not used: an earlier policy of the list is known");
                continue;
            }
            let policy = item.message(&POLICY)?;
            chosen = policy.need("typed_extension_config")?.extension(|name, type_name, config| {
                names.push(name.to_owned());
                let Some(config) = config else {
                    return Err(item.fail("the field `typed_config` is required"));
                };
                match PolicyMessage::from_type(type_name) {
                    Some(message) => message.read(&config).map(Some),
                    None => {
                        config.note(What::NotUsed, format!("skipped: Envoy 1.40 has no policy {type_name}"));
                        Ok(None)
                    }
                }
            })?;
        }
    }
    chosen.ok_or_else(|| at.fail(format!("none of the policies [{}] is known", names.join(", "))))
}

fn round_robin(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&ROUND_ROBIN)?;
    let slow_start = msg.map("slow_start_config", |s| slow_start(s, f64::MAX))?.flatten();
    Ok(PolicySpec::RoundRobin { locality: locality(&msg)?, slow_start })
}

fn least_request(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&LEAST_REQUEST)?;
    let slow_start = msg.map("slow_start_config", |s| slow_start(s, f64::MAX))?.flatten();
    let mut choice_count = msg.or("choice_count", 2, |n| n.u32())?;
    let methods = [("N_CHOICES", 0), ("FULL_SCAN", 1)];
    let selection = match msg.or("selection_method", 0, |m| m.open_enumeration(&methods))? {
        0 => SelectionMethod::NChoices,
        1 => SelectionMethod::FullScan,
        // Envoy loads numbers it does not know and then finds no host in unweighted picks, as with no choices.
        _ => {
            choice_count = 0;
            SelectionMethod::NChoices
        }
    };
    Ok(PolicySpec::LeastRequest {
        choice_count,
        active_request_bias: msg.or("active_request_bias", 1.0, runtime_double)?,
        selection,
        locality: locality(&msg)?,
        slow_start,
    })
}

fn random(at: &At<'_>) -> Result<PolicySpec> {
    Ok(PolicySpec::Random { locality: locality(&at.message(&RANDOM)?)? })
}

fn ring_hash(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&RING_HASH)?;
    let functions = [("DEFAULT_HASH", 0), ("XX_HASH", 1), ("MURMUR_HASH_2", 2)];
    let hash_function = match msg.or("hash_function", 0, |f| f.open_enumeration(&functions))? {
        2 => HashFunction::MurmurHash2,
        _ => HashFunction::XxHash,
    };
    let (minimum_ring_size, maximum_ring_size) = ring_sizes(at, &msg)?;
    let own = ConsistentHashing {
        use_hostname: msg.or("use_hostname_for_hashing", false, |flag| flag.bool())?,
        balance_factor: msg.or("hash_balance_factor", 0, |n| n.u32())?,
        hash_policy: Vec::new(),
    };
    Ok(PolicySpec::RingHash {
        hash_function,
        minimum_ring_size,
        maximum_ring_size,
        hashing: msg.or("consistent_hashing_lb_config", own, consistent_hashing)?,
        locality_weighted: locality_weighted(&msg)?,
    })
}

/// The ring's bounds, in order.
pub(super) fn ring_sizes(at: &At<'_>, msg: &Msg<'_>) -> Result<(u64, u64)> {
    let minimum = msg.or("minimum_ring_size", 1024, |n| n.u64())?;
    let maximum = msg.or("maximum_ring_size", 8_388_608, |n| n.u64())?;
    if minimum > maximum {
        let wrong = msg.get("maximum_ring_size").or_else(|| msg.get("minimum_ring_size"));
        let text = format!("minimum_ring_size ({minimum}) is greater than maximum_ring_size ({maximum})");
        return Err(wrong.as_ref().unwrap_or(at).fail(text));
    }
    Ok((minimum, maximum))
}

fn maglev(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&MAGLEV)?;
    Ok(PolicySpec::Maglev {
        table_size: msg.or("table_size", 65_537, prime)?,
        hashing: msg.or("consistent_hashing_lb_config", ConsistentHashing::default(), consistent_hashing)?,
        locality_weighted: locality_weighted(&msg)?,
    })
}

/// A prime number. Envoy takes 1 for one and then divides by zero.
pub(super) fn prime(at: &At<'_>) -> Result<u64> {
    let n = at.u64()?;
    // Tables hold one slot per number; beyond 32 bits the test alone would take seconds and no table fits.
    let is_prime = n >= 2
        && n <= u64::from(u32::MAX)
        && (n % 2 != 0 || n == 2)
        && (3..).step_by(2).take_while(|d| d * d <= n).all(|d| n % d != 0);
    if is_prime { Ok(n) } else { Err(at.expected("a prime number")) }
}

fn consistent_hashing(at: &At<'_>) -> Result<ConsistentHashing> {
    let msg = at.message(&CONSISTENT)?;
    Ok(ConsistentHashing {
        use_hostname: msg.or("use_hostname_for_hashing", false, |flag| flag.bool())?,
        balance_factor: msg.or("hash_balance_factor", 0, |n| n.u32())?,
        hash_policy: hash_policies(&msg)?,
    })
}

fn locality_weighted(msg: &Msg<'_>) -> Result<bool> {
    Ok(msg.map("locality_weighted_lb_config", |l| l.message(&NO_FIELDS).map(|_| ()))?.is_some())
}

fn locality(msg: &Msg<'_>) -> Result<LocalityBalancing> {
    let Some(at) = msg.get("locality_lb_config") else { return Ok(LocalityBalancing::None) };
    let msg = at.message(&LOCALITY)?;
    if locality_weighted(&msg)? {
        return Ok(LocalityBalancing::Weighted);
    }
    msg.or("zone_aware_lb_config", LocalityBalancing::None, |z| zone_aware(z, &ZONE_AWARE, f64::MAX))
}

/// Reads a `ZoneAwareLbConfig`, the older one too, which has fewer fields. Apart from `fail_traffic_on_panic` it acts
/// when the documents name a local cluster. `most` bounds the percentage: only the older messages check it.
pub(super) fn zone_aware(at: &At<'_>, fields: &'static Fields, most: f64) -> Result<LocalityBalancing> {
    let msg = at.message(fields)?;
    let default = ZoneAware::default();
    let whole = |value: f64| (100.0 * (value / 100.0)).trunc().min(f64::from(u32::MAX)) as u32;
    let direct = msg.or("force_locality_direct_routing", false, |flag| flag.bool())?;
    let forced = msg.map("force_local_zone", |f| f.message(&FORCE_LOCAL)?.or("min_size", 1, |n| n.u32()))?;
    let bases = [("HEALTHY_HOSTS_NUM", 0), ("HEALTHY_HOSTS_WEIGHT", 1)];
    let zone = ZoneAware {
        routing_enabled: msg
            .or("routing_enabled", default.routing_enabled, |p| percent(p, most).map(whole))?,
        min_cluster_size: msg.or("min_cluster_size", default.min_cluster_size, |n| n.u64())?,
        fail_traffic_on_panic: msg.or("fail_traffic_on_panic", false, |flag| flag.bool())?,
        force_local_zone: forced.or_else(|| direct.then_some(1)),
        by_weight: msg.or("locality_basis", 0, |b| b.open_enumeration(&bases))? == 1,
    };
    if msg.names().any(|name| name != "fail_traffic_on_panic") {
        at.needs_local_cluster();
    }
    Ok(LocalityBalancing::ZoneAware(zone))
}

/// Reads a `SlowStartConfig`; without a window it does nothing.
pub(super) fn slow_start(at: &At<'_>, most: f64) -> Result<Option<SlowStart>> {
    let msg = at.message(&SLOW_START)?;
    let slow_start = SlowStart {
        window: msg.or("slow_start_window", Duration::ZERO, |d| d.millis())?,
        aggression: msg.or("aggression", 1.0, runtime_double)?,
        min_weight: msg.or("min_weight_percent", 10.0, |p| percent(p, most))? / 100.0,
    };
    if slow_start.window.is_zero() {
        at.note(What::NotUsed, "not used: without `slow_start_window` hosts start at full weight");
        return Ok(None);
    }
    Ok(Some(slow_start))
}

/// Reads a `RuntimeDouble`.
pub(super) fn runtime_double(at: &At<'_>) -> Result<f64> {
    at.message(&RUNTIME_DOUBLE)?.or("default_value", 0.0, |n| n.f64())
}

/// Reads a `Percent` from 0 to a bound.
pub(super) fn percent(at: &At<'_>, max: f64) -> Result<f64> {
    let msg = at.message(&PERCENT)?;
    let value = msg.or("value", 0.0, |n| n.f64())?;
    if (0.0..=max).contains(&value) {
        return Ok(value);
    }
    Err(msg.get("value").as_ref().unwrap_or(at).expected("a percentage from 0 to 100"))
}

/// A percentage as Envoy's integer arithmetic sees it: 29 acts as 28.
pub(crate) fn panic_percent(value: f64) -> u32 {
    (100.0 * (value / 100.0)).trunc().clamp(0.0, 100.0) as u32
}
