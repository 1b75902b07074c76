//! `lb_policy` and what belongs to it: the older way to name a policy. Unlike the typed messages its ranges hold.

use super::policy::{NO_FIELDS, prime, ring_sizes, runtime_double, slow_start, zone_aware};
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use nexthop_engine::spec::{
    ConsistentHashing, HashFunction, LocalityBalancing, PolicySpec, SelectionMethod, SlowStart,
};

const ROUND_ROBIN: Fields = Fields::of("RoundRobinLbConfig", &["slow_start_config"]);
const LEAST_REQUEST: Fields =
    Fields::of("LeastRequestLbConfig", &["choice_count", "active_request_bias", "slow_start_config"]);
const RING_HASH: Fields =
    Fields::of("RingHashLbConfig", &["minimum_ring_size", "maximum_ring_size", "hash_function"]);
const MAGLEV: Fields = Fields::of("MaglevLbConfig", &["table_size"]);
const ORIGINAL_DST: Fields = Fields::of(
    "OriginalDstLbConfig",
    &["use_http_header", "http_header_name", "upstream_port_override", "metadata_key"],
);
const CONSISTENT: Fields =
    Fields::of("ConsistentHashingLbConfig", &["use_hostname_for_hashing", "hash_balance_factor"]);

const ZONE_AWARE: Fields =
    Fields::of("ZoneAwareLbConfig", &["routing_enabled", "min_cluster_size", "fail_traffic_on_panic"]);

const POLICIES: &[(&str, i32)] = &[
    ("ROUND_ROBIN", 0),
    ("LEAST_REQUEST", 1),
    ("RING_HASH", 2),
    ("RANDOM", 3),
    ("MAGLEV", 5),
    ("CLUSTER_PROVIDED", 6),
    ("LOAD_BALANCING_POLICY_CONFIG", 7),
];

/// Largest table and ring of the older messages.
const MAX_RING: u64 = 8_388_608;
const MAX_TABLE: u64 = 5_000_011;

/// Reads the policy of a cluster without `load_balancing_policy`. `common` is its `common_lb_config`.
pub(super) fn legacy_policy(cluster: &Msg<'_>, common: Option<&Msg<'_>>) -> Result<PolicySpec> {
    let policy = cluster.or("lb_policy", 0, |p| p.enumeration(POLICIES))?;
    let locality = match common {
        Some(common) if common.has("locality_weighted_lb_config") => {
            common.map("locality_weighted_lb_config", |l| l.message(&NO_FIELDS).map(|_| ()))?;
            LocalityBalancing::Weighted
        }
        Some(common) => common
            .or("zone_aware_lb_config", LocalityBalancing::None, |z| zone_aware(z, &ZONE_AWARE, 100.0))?,
        None => LocalityBalancing::None,
    };
    let hashing = match common {
        Some(common) => {
            common.or("consistent_hashing_lb_config", ConsistentHashing::default(), consistent)?
        }
        None => ConsistentHashing::default(),
    };
    let locality_weighted = locality == LocalityBalancing::Weighted;
    // Configurations of other policies are checked like those of the chosen one.
    let robin = cluster.map("round_robin_lb_config", |at| {
        Ok(at.message(&ROUND_ROBIN)?.map("slow_start_config", |s| slow_start(s, 100.0))?.flatten())
    })?;
    let least = cluster.or("least_request_lb_config", (2, 1.0, None), least_request)?;
    let ring = cluster.or("ring_hash_lb_config", (1024, MAX_RING, HashFunction::XxHash), ring_hash)?;
    let table = cluster.map("maglev_lb_config", |at| {
        Ok(at.message(&MAGLEV)?.map("table_size", |n| n.within(0, MAX_TABLE))?.is_some())
    })?;
    cluster.map("original_dst_lb_config", |at| at.message(&ORIGINAL_DST).map(|_| ()))?;

    Ok(match policy {
        0 => PolicySpec::RoundRobin { locality, slow_start: robin.flatten() },
        1 => PolicySpec::LeastRequest {
            choice_count: least.0,
            active_request_bias: least.1,
            selection: SelectionMethod::NChoices,
            locality,
            slow_start: least.2,
        },
        2 => {
            if let Some(at) = cluster.get("ring_hash_lb_config") {
                ring_sizes(&at, &at.message(&RING_HASH)?)?;
            }
            PolicySpec::RingHash {
                hash_function: ring.2,
                minimum_ring_size: ring.0,
                maximum_ring_size: ring.1,
                hashing,
                locality_weighted,
            }
        }
        3 => PolicySpec::Random { locality },
        5 => {
            let table_size = match cluster.get("maglev_lb_config").filter(|_| table == Some(true)) {
                Some(at) => at.message(&MAGLEV)?.or("table_size", 65_537, prime)?,
                None => 65_537,
            };
            PolicySpec::Maglev { table_size, hashing, locality_weighted }
        }
        6 => PolicySpec::ClusterProvided,
        _ => return Err(cluster.missing("load_balancing_policy")),
    })
}

fn least_request(at: &At<'_>) -> Result<(u32, f64, Option<SlowStart>)> {
    let msg = at.message(&LEAST_REQUEST)?;
    Ok((
        msg.or("choice_count", 2, |n| n.u32_in(2, u32::MAX))?,
        msg.or("active_request_bias", 1.0, runtime_double)?,
        msg.map("slow_start_config", |s| slow_start(s, 100.0))?.flatten(),
    ))
}

fn ring_hash(at: &At<'_>) -> Result<(u64, u64, HashFunction)> {
    let msg = at.message(&RING_HASH)?;
    let functions = [("XX_HASH", 0), ("MURMUR_HASH_2", 1)];
    let function = match msg.or("hash_function", 0, |f| f.enumeration(&functions))? {
        1 => HashFunction::MurmurHash2,
        _ => HashFunction::XxHash,
    };
    Ok((
        msg.or("minimum_ring_size", 1024, |n| n.within(0, MAX_RING))?,
        msg.or("maximum_ring_size", MAX_RING, |n| n.within(0, MAX_RING))?,
        function,
    ))
}

fn consistent(at: &At<'_>) -> Result<ConsistentHashing> {
    let msg = at.message(&CONSISTENT)?;
    Ok(ConsistentHashing {
        use_hostname: msg.or("use_hostname_for_hashing", false, |flag| flag.bool())?,
        balance_factor: msg.or("hash_balance_factor", 0, |n| n.u32_in(100, u32::MAX))?,
        hash_policy: Vec::new(),
    })
}
