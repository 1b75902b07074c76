//! Rings, tables, bounded load.

use crate::balance::prepared::{Kept, Place};
use crate::balance::testing::{Ask, Assignment, TestCluster, TestHost, each_case, numbers, word};
use crate::hash::bounded_load::{choose, load_factor, probe_order, total_slots};
use crate::hash::maglev::{Table, order, walk};
use crate::hash::ring::{Ring, RingParams};
use crate::hash::{Sizes, Structure, xxh64};
use crate::spec::{ConsistentHashing, HashFunction, PolicySpec};
use serde_json::Value;

/// Builds the cluster of a case: plain hosts, or localities with weights.
fn cluster(given: &Value, policy: impl Fn(bool) -> PolicySpec) -> TestCluster {
    let host = |given: &Value, locality| TestHost {
        locality,
        weight: given["weight"].as_u64().unwrap() as u32,
        ..TestHost::at(given["key"].as_str().unwrap())
    };
    let mut assignment = Assignment::default();
    let mut hosts = Vec::new();
    if let Some(list) = given["hosts"].as_array() {
        hosts.extend(list.iter().map(|given| host(given, 0)));
    } else if let Some(localities) = given["localities"].as_array() {
        for (at, locality) in (0..).zip(localities) {
            assignment.locality_weights.push((at, locality["weight"].as_u64().unwrap() as u32));
            hosts.extend(locality["hosts"].as_array().unwrap().iter().map(|given| host(given, at)));
        }
    } else {
        let lopsided = "locality 0: weight 127, one host 127.0.0.1:0; \
                        locality 1: weight 1, hosts 127.0.0.1:1 .. :1023";
        assert_eq!(given["localities"], lopsided);
        assignment.locality_weights = vec![(0, 127), (1, 1)];
        let host =
            |port: u32| TestHost { locality: port.min(1), ..TestHost::at(&format!("127.0.0.1:{port}")) };
        hosts.extend((0..1024).map(host));
    }
    let mut cluster = TestCluster::new(policy(!given["localities"].is_null()), assignment);
    assert_eq!(cluster.update(&hosts, &[]), 0, "hash policies draw nothing at construction");
    cluster
}

/// Checks `picks` through the whole balancer.
fn check_picks<S: Kept>(cluster: &mut TestCluster, expect: &Value, name: &str) {
    for pick in expect["picks"].as_array().into_iter().flatten() {
        let attempt = pick["attempt"].as_u64().unwrap() as u32;
        // The candidate before is rejected as often as it takes.
        let left = std::cell::Cell::new(attempt);
        let reject = |_| left.replace(left.get().saturating_sub(1)) > 0;
        let ask = Ask {
            hash: Some(word(&pick["hash"])),
            candidates: attempt + 1,
            reject: Some(&reject),
            ..Ask::default()
        };
        let host = cluster.ask(ask).host.unwrap();
        let place = S::of(&cluster.prepared).unwrap().get(0).unwrap();
        let number = place.members.slots.iter().position(|slot| *slot == cluster.slots[host]).unwrap();
        assert_eq!(place.members.keys()[number], pick["key"], "{name}: {pick}");
    }
}

fn params(given: &Value) -> RingParams {
    RingParams {
        function: match given["hash_function"].as_str().unwrap() {
            "MURMUR_HASH_2" => HashFunction::MurmurHash2,
            _ => HashFunction::XxHash,
        },
        minimum: given["minimum_ring_size"].as_u64().unwrap(),
        maximum: given["maximum_ring_size"].as_u64().unwrap(),
    }
}

fn ring_policy(params: RingParams, hashing: ConsistentHashing, locality_weighted: bool) -> PolicySpec {
    PolicySpec::RingHash {
        hash_function: params.function,
        minimum_ring_size: params.minimum,
        maximum_ring_size: params.maximum,
        hashing,
        locality_weighted,
    }
}

fn check_ring(ring: &Ring, keys: &[&str], expect: &Value, name: &str) {
    let points: Vec<_> = ring.points().collect();
    if let Some(entries) = expect["entries"].as_u64() {
        assert_eq!(points.len() as u64, entries, "{name}");
    }
    if let Some(size) = expect["size"].as_u64() {
        let expected = Sizes {
            size,
            least_per_host: expect["min_hashes_per_host"].as_u64().unwrap(),
            most_per_host: expect["max_hashes_per_host"].as_u64().unwrap(),
        };
        assert_eq!(ring.sizes(), Some(expected), "{name}");
    }
    for (point, expected) in points.iter().zip(expect["ring"].as_array().into_iter().flatten()) {
        assert_eq!(point.0, word(&expected["hash"]), "{name}");
        assert_eq!(keys[point.1 as usize], expected["key"], "{name}");
    }
}

#[test]
fn ring_hash() {
    each_case("ring_hash", 17, &[], |name, given, expect| {
        if let Some(normalized) = given["normalized"].as_array() {
            let keys: Vec<&str> = normalized.iter().map(|host| host["key"].as_str().unwrap()).collect();
            let weights: Vec<f64> = normalized.iter().map(|host| host["weight"].as_f64().unwrap()).collect();
            check_ring(&Ring::build(&params(given), &keys, &weights), &keys, expect, name);
            return;
        }
        let policy = |weighted| ring_policy(params(given), ConsistentHashing::default(), weighted);
        let mut cluster = cluster(given, policy);
        let place = Ring::of(&cluster.prepared).unwrap().get(0).unwrap();
        check_ring(&place.structure, &place.members.keys(), expect, name);
        check_picks::<Ring>(&mut cluster, expect, name);
        if let Some(samples) = given["samples"].as_u64() {
            let mut counts = vec![0_u64; cluster.slots.len()];
            for sample in 0..samples {
                let hash = Some(sample * (u64::MAX / samples));
                counts[cluster.ask(Ask { hash, ..Ask::default() }).host.unwrap()] += 1;
            }
            assert_eq!(counts, numbers::<u64>(&expect["counts"]), "{name}");
        }
    });
}

fn check_table(place: &Place<Table>, given: &Value, expect: &Value, name: &str) {
    let keys = place.members.keys();
    let slots = given["table_size"].as_u64().unwrap();
    let sizes = Sizes {
        size: slots,
        least_per_host: expect["min_entries_per_host"].as_u64().unwrap(),
        most_per_host: expect["max_entries_per_host"].as_u64().unwrap(),
    };
    assert_eq!(place.structure.sizes(), Some(sizes), "{name}");
    for (number, built) in
        order(&keys).into_iter().zip(expect["build_order"].as_array().into_iter().flatten())
    {
        let number = number as usize;
        assert_eq!(keys[number], built["key"], "{name}");
        assert_eq!(place.members.weights[number], built["normalized_weight"], "{name}");
        let (offset, skip) = walk(keys[number], slots);
        assert_eq!([offset, skip], [word(&built["offset"]), word(&built["skip"])], "{name}");
    }
    if let Some(expected) = expect["table"].as_array() {
        let table = place.structure.slots().map_or_else(|| vec![0; expected.len()], <[u32]>::to_vec);
        let table: Vec<&str> = table.iter().map(|number| keys[*number as usize]).collect();
        assert_eq!(table, *expected, "{name}");
    }
}

#[test]
fn maglev() {
    // Sizes are checked where documents are read.
    each_case("maglev", 12, &["NoPrimeNumber"], |name, given, expect| {
        let policy = |locality_weighted| PolicySpec::Maglev {
            table_size: given["table_size"].as_u64().unwrap(),
            hashing: ConsistentHashing::default(),
            locality_weighted,
        };
        let mut cluster = cluster(given, policy);
        if expect["min_entries_per_host"].is_null() {
            assert!(expect["host"].is_null(), "{name}");
            assert_eq!(cluster.pick(&[5]).host, None, "{name}");
            return;
        }
        let place = Table::of(&cluster.prepared).unwrap().get(0).unwrap();
        check_table(place, given, expect, name);
        check_picks::<Table>(&mut cluster, expect, name);
    });
}

#[test]
fn bounded_load() {
    each_case("bounded_load", 21, &[], |name, given, expect| {
        if given["policy"].is_string() {
            check_scenario(given, expect, name);
        } else if let Some(weight) = given["normalized_weight"].as_f64() {
            let number = |key: &str| given[key].as_u64().unwrap() as u32;
            let total = total_slots(number("overall_active"), number("hash_balance_factor"));
            assert_eq!(u64::from(total), expect["total_slots"].as_u64().unwrap(), "{name}");
            let factor = load_factor(number("host_active"), total, weight);
            assert_eq!(factor, expect["overload_factor"].as_f64().unwrap(), "{name}");
            assert_eq!(factor <= 1.0, expect["eligible"].as_bool().unwrap(), "{name}");
        } else if expect["order"].is_array() {
            let hosts = given["hosts"].as_u64().unwrap() as u32;
            let expected = numbers::<u32>(&expect["order"]);
            assert_eq!(probe_order(hosts, word(&given["hash"])), expected, "{name}");
        } else {
            let overloaded: Vec<u32> = numbers(&given["overloaded"]);
            let factor = |host: u32| match given["overload_factors"][host.to_string()].as_f64() {
                Some(factor) => factor,
                None if overloaded.contains(&host) => 1.5,
                None => 0.5,
            };
            let first = given["first_choice"].as_u64().unwrap() as u32;
            let hosts = given["hosts"].as_u64().unwrap() as u32;
            let host = choose(first, hosts, word(&given["hash"]), &mut Vec::new(), factor);
            assert_eq!(u64::from(host), expect["host"].as_u64().unwrap(), "{name}");
        }
    });
}

/// Requests of one key that all stay active.
fn check_scenario(given: &Value, expect: &Value, name: &str) {
    let params = RingParams {
        function: HashFunction::XxHash,
        minimum: given["minimum_ring_size"].as_u64().unwrap(),
        maximum: 8_388_608,
    };
    let hashing = ConsistentHashing {
        balance_factor: given["hash_balance_factor"].as_u64().unwrap() as u32,
        ..ConsistentHashing::default()
    };
    let mut cluster = cluster(given, |weighted| ring_policy(params, hashing.clone(), weighted));
    let hash = Some(xxh64(given["header_value"].as_str().unwrap().as_bytes(), 0));
    let expected = expect["order"].as_array().unwrap();
    assert_eq!(expected.len() as u64, given["requests"].as_u64().unwrap(), "{name}");
    for (number, expected) in expected.iter().enumerate() {
        let host = cluster.ask(Ask { hash, ..Ask::default() }).host.unwrap();
        assert_eq!(given["hosts"][host]["key"], *expected, "{name}: request {number}");
        let active = cluster.arena.load(cluster.slots[host]).active();
        cluster.set_active(host, active + 1);
        cluster.cluster_active += 1;
    }
}
