//! Loads, panic, choice of priority.

use crate::balance::PriorityLoad;
use crate::balance::priority::{Division, Loads, is_below};
use crate::balance::testing::{Assignment, TestCluster, TestHost, each_case, numbers, words};
use crate::hosts::{HostArena, flag};
use crate::retry::PreviousPriorities;
use crate::sets::HostSet;
use crate::spec::PolicySpec;
use serde_json::Value;

/// A set with so many hosts; slots do not matter where counts decide.
fn counted(given: &Value, factor: u32) -> HostSet {
    let list = |key: &str| (0..given[key].as_u64().unwrap() as u32).collect();
    HostSet {
        hosts: list("hosts"),
        healthy: list("healthy"),
        degraded: list("degraded"),
        excluded: given["excluded"].as_u64().unwrap() as u32,
        overprovisioning_factor: factor,
        ..HostSet::default()
    }
}

/// A set of hosts with weights.
fn weighted(given: &Value, factor: u32, arena: &HostArena) -> HostSet {
    let mut set =
        HostSet { overprovisioning_factor: factor, weighted_priority_health: true, ..HostSet::default() };
    for host in given.as_array().unwrap() {
        let flags = match host["state"].as_str().unwrap() {
            "healthy" => 0,
            "degraded" => flag::DEGRADED_EDS_HEALTH,
            "excluded" => flag::EDS_STATUS_DRAINING,
            "unhealthy" => flag::FAILED_EDS_HEALTH,
            other => panic!("unknown state {other}"),
        };
        let weight = host["weight"].as_u64().unwrap() as u32;
        let slot = TestHost { weight, flags, ..TestHost::default() }.add_to(arena);
        set.hosts.push(slot);
        match flags {
            0 => set.healthy.push(slot),
            flag::DEGRADED_EDS_HEALTH => set.degraded.push(slot),
            flag::EDS_STATUS_DRAINING => set.excluded += 1,
            _ => {}
        }
    }
    set
}

#[test]
fn priority_load() {
    each_case("priority_load", 31, &[], |name, given, expect| {
        let arena = HostArena::default();
        let factor = given["overprovisioning_factor"].as_u64().unwrap() as u32;
        let sets: Vec<HostSet> = if let Some(priorities) = given["priorities"].as_array() {
            priorities.iter().map(|priority| counted(priority, factor)).collect()
        } else {
            let priorities = given["priority_hosts"].as_array().unwrap();
            priorities.iter().map(|priority| weighted(priority, factor, &arena)).collect()
        };
        let threshold = given["panic_threshold"].as_u64().unwrap() as u32;
        let loads = Loads::compute(&sets, threshold, &arena, None);
        assert_eq!(loads.healthy, numbers::<u32>(&expect["healthy_load"]), "{name}");
        assert_eq!(loads.degraded, numbers::<u32>(&expect["degraded_load"]), "{name}");
        if !expect["panic"].is_null() {
            let panics: Vec<bool> =
                expect["panic"].as_array().unwrap().iter().map(|panics| panics.as_bool().unwrap()).collect();
            assert_eq!(loads.panics, panics, "{name}");
            let availability = numbers::<u32>(&expect["availability_healthy"]);
            assert_eq!(loads.healthy_availability, availability, "{name}");
            let availability = numbers::<u32>(&expect["availability_degraded"]);
            assert_eq!(loads.degraded_availability, availability, "{name}");
        }
    });
}

#[test]
fn panic() {
    // Percentages become integers where documents are read.
    each_case("panic", 12, &["percent-to-integer exceptions over 0..100"], |name, given, expect| {
        let threshold = expect["effective_threshold"].as_u64().unwrap() as u32;
        let below = expect["host_set_below_threshold"].as_bool().unwrap();
        let set = counted(given, 140);
        assert_eq!(is_below(&set, threshold), below, "{name}");
        // The flag says the same, unless all that exists is available.
        let loads = Loads::compute(&[set], threshold, &HostArena::default(), None);
        let whole = loads.healthy_availability[0] + loads.degraded_availability[0] >= 100;
        assert_eq!(loads.panics, [below && !whole], "{name}");
    });
}

#[test]
fn choose_priority() {
    each_case("choose_priority", 4, &[], |name, given, expect| {
        let healthy: Vec<u32> = numbers(&given["healthy_load"]);
        let degraded: Vec<u32> = numbers(&given["degraded_load"]);
        let division = Division::new(&healthy, &degraded);
        for (hash, pick) in words(&given["hashes"]).into_iter().zip(expect["picks"].as_array().unwrap()) {
            let priority = pick["priority"].as_u64().unwrap() as u32;
            let is_degraded = pick["availability"] == "degraded";
            assert_eq!(division.choose(hash), (priority, is_degraded), "{name}: {hash}");
        }
    });
}

/// `previous_priorities` on a whole cluster: what each priority could take comes from its hosts.
#[test]
fn retry_priority() {
    each_case("retry_priority", 6, &[], |name, given, expect| {
        let priorities = given["priorities"].as_array().unwrap();
        let count = |priority: &Value, key: &str| priority[key].as_u64().unwrap() as usize;
        let mut hosts = Vec::new();
        for (at, priority) in priorities.iter().enumerate() {
            let (healthy, degraded) = (count(priority, "healthy"), count(priority, "degraded"));
            for host in 0..count(priority, "hosts") {
                let flags = match host {
                    host if host < healthy => 0,
                    host if host < healthy + degraded => flag::DEGRADED_EDS_HEALTH,
                    _ => flag::FAILED_EDS_HEALTH,
                };
                hosts.push(TestHost { priority: at, flags, ..TestHost::default() });
            }
        }
        let assignment = Assignment { priorities: priorities.len(), ..Assignment::default() };
        let mut cluster = TestCluster::new(PolicySpec::default(), assignment);
        cluster.update(&hosts, &[]);
        let prepared = &cluster.prepared;
        let every = given["update_frequency"].as_u64().unwrap() as u32;
        let mut plugin = PreviousPriorities::new(every);
        let load = |value: &Value| PriorityLoad {
            healthy: numbers(&value["healthy"]),
            degraded: numbers(&value["degraded"]),
        };
        let original = load(&given["original"]);
        let plain = |_: u32, priority: u32| Some(priority);
        assert_eq!(
            plugin.load(prepared.healthy_availability(), prepared.degraded_availability(), &plain),
            None
        );
        let attempts: Vec<u32> = numbers(&given["attempted_priorities"]);
        let after = expect["loads_after_each_attempt"].as_array().unwrap();
        assert_eq!(attempts.len(), after.len());
        for (attempt, after) in attempts.iter().zip(after) {
            plugin.attempted(0, *attempt);
            let got = plugin.load(prepared.healthy_availability(), prepared.degraded_availability(), &plain);
            assert_eq!(got.unwrap_or_else(|| original.clone()), load(after), "{name}");
        }
    });
}
