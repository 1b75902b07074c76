//! Zone-aware routing.

use crate::balance::ZoneRuntime;
use crate::balance::testing::{Assignment, Picked, TestCluster, TestHost, each_case, numbers, words};
use crate::balance::zone::{Share, State, compute, shares};
use crate::hosts::flag;
use crate::sets::HostSet;
use crate::spec::{LocalityBalancing, PolicySpec, ZoneAware};
use crate::stats::Counter;
use serde_json::Value;

/// Numbers of the localities of a list; `-` is a zone of its own between its neighbours, or `own` when it stands first.
fn zone_numbers(list: &[Value], own: Option<u32>) -> Vec<u32> {
    let mut last = 0;
    let number = |(at, given): (usize, &Value)| {
        let found = match given["zone"].as_str().unwrap() {
            "-" if at == 0 && own.is_some() => return own.unwrap(),
            "-" => last + 1,
            name => u32::from(name.as_bytes()[0]) * 10,
        };
        last = found;
        found
    };
    list.iter().enumerate().map(number).collect()
}

/// Hosts of zones in the order of a list; zones without a healthy host have one that is not.
fn hosts(zones: &Value, own: Option<u32>) -> Vec<TestHost> {
    let zones = zones.as_array().unwrap();
    let each = zones.iter().zip(zone_numbers(zones, own));
    each.flat_map(|(given, locality)| {
        let weights = match given["hosts"].as_u64() {
            Some(hosts) => vec![1; hosts as usize],
            None => numbers::<u32>(&given["weights"]),
        };
        let host = |weight, flags| TestHost { locality, weight, flags, ..TestHost::default() };
        match weights.is_empty() {
            true => vec![host(1, flag::FAILED_EDS_HEALTH)],
            false => weights.into_iter().map(|weight| host(weight, 0)).collect(),
        }
    })
    .collect()
}

fn zones(list: &[(u32, usize)]) -> Vec<TestHost> {
    let zone = |&(locality, hosts): &(u32, usize)| vec![TestHost { locality, ..TestHost::default() }; hosts];
    list.iter().flat_map(zone).collect()
}

fn policy(zone: ZoneAware) -> PolicySpec {
    PolicySpec::RoundRobin { locality: LocalityBalancing::ZoneAware(zone), slow_start: None }
}

/// A cluster in the eyes of a node in zone `at` whose own cluster has these hosts.
fn cluster(params: ZoneAware, at: u32, upstream: &[TestHost], local: &[TestHost]) -> (TestCluster, HostSet) {
    let mut own = TestCluster::new(PolicySpec::default(), Assignment::default());
    own.at = Some(at);
    own.update(local, &[]);
    let mut cluster = TestCluster::new(policy(params), Assignment::default());
    // Slots of the local cluster lie in an arena of their own: the same hosts are put into this one first.
    for host in local {
        host.add_to(&cluster.arena);
    }
    cluster.at = Some(at);
    let set = own.sets.remove(0);
    cluster.local = Some(set.clone());
    cluster.update(upstream, &[0]);
    (cluster, set)
}

fn state(cluster: &TestCluster, params: &ZoneAware, local: &HostSet) -> Result<State, Option<Counter>> {
    compute(params, ZoneRuntime::default(), &cluster.sets[0], local, &cluster.arena)
}

fn locality(cluster: &TestCluster, picked: &Picked) -> Option<usize> {
    let slot = cluster.slots[picked.host?];
    cluster.sets[0].localities.iter().position(|locality| locality.hosts.contains(&slot))
}

fn check_table(name: &str, given: &Value, expect: &Value) {
    let by_weight = given["basis"] == "HEALTHY_HOSTS_WEIGHT";
    let params = ZoneAware { min_cluster_size: 1, by_weight, ..ZoneAware::default() };
    let prefix = if by_weight { "weights" } else { "healthy" };
    let (upstream, local) = (&given[format!("upstream_{prefix}")], &given[format!("local_{prefix}")]);
    let local = hosts(local, None);
    // This node is in the first zone of the local cluster's list.
    let at = local[0].locality;
    let has_local = given["upstream_has_local_zone"] == true;
    let own = has_local.then_some(at);
    let order = zone_numbers(upstream.as_array().unwrap(), own);
    let upstream = hosts(upstream, own);
    let (mut cluster, set) = cluster(params.clone(), at, &upstream, &local);
    let found = state(&cluster, &params, &set);
    let position = |number: u32| {
        let name = format!("{number:08}");
        cluster.sets[0].localities.iter().position(|found| found.locality.zone == name).unwrap()
    };
    let order: Vec<usize> = order.into_iter().map(position).collect();
    assert!(by_weight || cluster.sets[0].has_local == has_local, "{name}");
    if let Some(percentages) = expect["percentages"].as_array() {
        let found = shares(&params, &cluster.sets[0], &set, &cluster.arena);
        let number = |share: &Value, key: &str| share[key].as_u64().unwrap();
        let expected: Vec<Share> = percentages
            .iter()
            .map(|share| Share { upstream: number(share, "upstream"), local: number(share, "local") })
            .collect();
        let found: Vec<&Share> = order.iter().map(|at| &found[*at]).collect();
        assert_eq!(found, expected.iter().collect::<Vec<_>>(), "{name}");
    }
    if expect["state"] == "direct" {
        assert_eq!(found, Ok(State::Direct), "{name}");
    } else {
        let to_local = expect["local_percent_to_route"].as_u64().unwrap();
        let room = words(&expect["residual_capacity"]);
        assert_eq!(found, Ok(State::Residual { to_local, room }), "{name}");
    }
    for pick in expect["picks"].as_array().into_iter().flatten() {
        let stats: Vec<&str> = pick["stat"].as_str().unwrap().split('+').collect();
        let counts = |cluster: &TestCluster| -> Vec<u64> {
            let of = |name: &&str| {
                let counter = Counter::ALL.iter().find(|counter| counter.name() == *name).unwrap();
                cluster.counters.get(*counter)
            };
            stats.iter().map(of).collect()
        };
        let before = counts(&cluster);
        let draws: Vec<u64> = std::iter::once(0).chain(words(&pick["draws"])).collect();
        let picked = cluster.pick(&draws);
        let expected = pick["locality_index"].as_u64().map(|at| order[at as usize]);
        assert_eq!(locality(&cluster, &picked), expected, "{name}: {pick}");
        let counted: Vec<u64> = counts(&cluster).iter().zip(before).map(|(now, old)| now - old).collect();
        assert_eq!(counted, vec![1; stats.len()], "{name}: {pick}");
    }
}

/// Cases whose input is a condition instead of zones.
fn check_condition(name: &str, given: &Value, expect: &Value) {
    let both = zones(&[(1, 2), (2, 2)]);
    let uneven = zones(&[(1, 1), (2, 5)]);
    let mut params = ZoneAware { min_cluster_size: 1, ..ZoneAware::default() };
    let (mut upstream, mut local, mut at) = (uneven, both, 1);
    if given["min_cluster_size"].is_u64() {
        params.min_cluster_size = given["min_cluster_size"].as_u64().unwrap();
        upstream = zones(&[(1, 1), (2, given["healthy_upstream_hosts"].as_u64().unwrap() as usize - 1)]);
    } else if given["upstream_zones"].is_u64() {
        let count = |key: &str| -> Vec<(u32, usize)> {
            (1..=given[key].as_u64().unwrap() as u32).map(|zone| (zone, 3)).collect()
        };
        (upstream, local) = (zones(&count("upstream_zones")), zones(&count("local_zones")));
    } else if given["local_cluster_has_local_zone_hosts"] == false {
        at = 3;
    } else if let Some(threshold) = given["panic_threshold"].as_u64() {
        assert_eq!((given["local_cluster_healthy_percent"].as_u64(), threshold), (Some(0), 50), "{name}");
        params.fail_traffic_on_panic = given["fail_traffic_on_panic"].as_bool().unwrap();
        for host in &mut local {
            host.flags = flag::FAILED_EDS_HEALTH;
        }
        let (mut cluster, set) = cluster(params.clone(), at, &upstream, &local);
        assert!(state(&cluster, &params, &set).is_ok(), "{name}");
        let picked: Vec<Option<usize>> = (0..6).map(|_| cluster.pick(&[]).host).collect();
        if expect["host"].is_null() && expect["source"].is_null() {
            assert_eq!(picked, [None; 6], "{name}");
        } else {
            assert_eq!(expect["source"], "flat healthy list", "{name}");
            assert_eq!(picked, [0, 1, 2, 3, 4, 5].map(Some), "{name}");
        }
        assert_eq!(expect["stat"], Counter::LbLocalClusterNotOk.name(), "{name}");
        assert_eq!(cluster.counters.get(Counter::LbLocalClusterNotOk), 6, "{name}");
        return;
    } else {
        assert_eq!(given["upstream_local_zone_hosts"], 1, "{name}");
        params.force_local_zone = Some(given["force_local_zone"]["min_size"].as_u64().unwrap() as u32);
    }
    let (cluster, set) = cluster(params.clone(), at, &upstream, &local);
    let found = state(&cluster, &params, &set);
    match expect["state"].as_str().unwrap() {
        "none" => {
            let counted = found.expect_err(name).map(Counter::name);
            assert_eq!(counted, expect["stat"].as_str(), "{name}");
        }
        "direct" => assert_eq!(found, Ok(State::Direct), "{name}"),
        "residual" => assert!(matches!(found, Ok(State::Residual { .. })), "{name}"),
        other => panic!("{name}: unknown state {other}"),
    }
}

#[test]
fn zone_routing() {
    each_case("zone_routing", 17, &[], |name, given, expect| {
        let table = given["upstream_healthy"].is_array() || given["upstream_weights"].is_array();
        if table { check_table(name, given, expect) } else { check_condition(name, given, expect) }
    });
}

#[test]
fn a_share_of_the_picks_is_routed_by_zone() {
    let params = ZoneAware { min_cluster_size: 1, routing_enabled: 30, ..ZoneAware::default() };
    let both = zones(&[(1, 2), (2, 2)]);
    let (mut cluster, _) = cluster(params, 1, &both, &both);
    assert_eq!(cluster.pick(&[0, 129]).draws, 2);
    assert_eq!(cluster.counters.get(Counter::LbZoneRoutingAllDirectly), 1);
    assert_eq!(cluster.pick(&[0, 130]).draws, 2);
    assert_eq!(cluster.counters.get(Counter::LbZoneRoutingAllDirectly), 1);
}
