//! Hosts by round_robin, least_request and random.

use crate::balance::least_request::dynamic_weight;
use crate::balance::testing::{Assignment, TestCluster, TestHost, each_case, numbers, word, words};
use crate::hosts::flag;
use crate::spec::{LocalityBalancing, PolicySpec, SelectionMethod};
use serde_json::Value;

const ROUND_ROBIN: PolicySpec =
    PolicySpec::RoundRobin { locality: LocalityBalancing::None, slow_start: None };

/// The hosts of a step: by weights, or so many of which the first are healthy.
fn hosts_of(step: &Value) -> Vec<TestHost> {
    if step["weights"].is_array() {
        return numbers(&step["weights"]).into_iter().map(TestHost::weighing).collect();
    }
    let healthy = step["healthy"].as_u64().unwrap();
    (0..step["hosts"].as_u64().unwrap())
        .map(|at| TestHost {
            flags: if at < healthy { 0 } else { flag::FAILED_EDS_HEALTH },
            ..TestHost::default()
        })
        .collect()
}

#[test]
fn round_robin() {
    each_case("round_robin", 6, &[], |name, given, expect| {
        let mut cluster = TestCluster::new(ROUND_ROBIN, Assignment::default());
        let mut expected = expect["picks"].as_array().unwrap().iter();
        for step in given["steps"].as_array().unwrap() {
            match step["op"].as_str().unwrap() {
                "init" => assert_eq!(cluster.update(&hosts_of(step), &[word(&given["seed"])]), 1, "{name}"),
                "update_hosts" => assert_eq!(cluster.update(&hosts_of(step), &[]), 0, "{name}"),
                "pick" => {
                    let picks = cluster.picks(step["n"].as_u64().unwrap() as usize);
                    assert_eq!(picks, numbers::<usize>(expected.next().unwrap()), "{name}");
                }
                "set_weights_in_place" => {
                    for (slot, weight) in cluster.slots.iter().zip(numbers::<u32>(&step["weights"])) {
                        let facts = cluster.arena.facts(*slot);
                        facts.weight.store(weight, crate::sync::atomic::Ordering::Relaxed);
                    }
                }
                other => panic!("unknown step {other}"),
            }
        }
        assert!(expected.next().is_none(), "{name}");
        if let Some(panics) = expect["lb_healthy_panic"].as_u64() {
            assert_eq!(cluster.panics_counted(), panics, "{name}");
        }
    });
}

fn least_request_of(given: &Value) -> PolicySpec {
    PolicySpec::LeastRequest {
        choice_count: given["choice_count"].as_u64().unwrap_or(2) as u32,
        active_request_bias: given["bias"].as_f64().unwrap_or(1.0),
        selection: match given["selection"].as_str() {
            Some("FULL_SCAN") => SelectionMethod::FullScan,
            _ => SelectionMethod::NChoices,
        },
        locality: LocalityBalancing::None,
        slow_start: None,
    }
}

#[test]
fn least_request() {
    // Counting pending requests is a runtime guard that is off.
    let elsewhere = ["pending counted when the runtime guard is on"];
    each_case("least_request", 22, &elsewhere, |name, given, expect| {
        if let Some(weight) = given["weight"].as_u64() {
            let bias = given["bias"].as_f64().unwrap();
            let found = dynamic_weight(weight as u32, given["active"].as_u64().unwrap(), bias);
            let expected = expect["dynamic_weight"].as_f64().unwrap();
            assert!((found - expected).abs() <= expected * 1e-12, "{name}: {found}");
        } else if let Some(steps) = given["steps"].as_array() {
            let hosts: Vec<_> = numbers(&given["weights"]).into_iter().map(TestHost::weighing).collect();
            let mut cluster =
                TestCluster::with_hosts(least_request_of(given), &hosts, &[word(&given["seed"])]);
            for (step, expected) in steps.iter().zip(expect["picks"].as_array().unwrap()) {
                for (host, active) in numbers::<u32>(&step["active"]).into_iter().enumerate() {
                    cluster.set_active(host, active);
                }
                let picks = cluster.picks(step["picks"].as_u64().unwrap() as usize);
                assert_eq!(picks, numbers::<usize>(expected), "{name}");
            }
        } else {
            let active: Vec<u32> = numbers(&given["active"]);
            let hosts = vec![TestHost::default(); active.len()];
            let mut cluster = TestCluster::with_hosts(least_request_of(given), &hosts, &[7]);
            for (host, active) in active.into_iter().enumerate() {
                cluster.set_active(host, active);
            }
            let picked = cluster.pick(&words(&given["random"]));
            assert_eq!(picked.host.map(|host| host as u64), expect["pick"].as_u64(), "{name}");
            if let Some(draws) = expect["draws"].as_u64() {
                assert_eq!(picked.draws as u64, draws, "{name}");
            }
        }
    });
}

#[test]
fn random() {
    let policy = PolicySpec::Random { locality: LocalityBalancing::None };
    // 20 of 40 hosts healthy are 70 percent of priority 0; the other 20 come after them.
    let skewed = || {
        let assignment = Assignment { priorities: 2, ..Assignment::default() };
        let mut cluster = TestCluster::new(policy.clone(), assignment);
        let host = |priority, flags| TestHost { priority, flags, ..TestHost::default() };
        let mut hosts = vec![host(0, 0); 20];
        hosts.extend(vec![host(0, flag::FAILED_EDS_HEALTH); 20]);
        hosts.push(host(1, 0));
        cluster.update(&hosts, &[]);
        assert_eq!(cluster.prepared.healthy_load(), [70, 30]);
        cluster
    };
    each_case("random", 3, &[], |name, given, expect| {
        if given["p0_load"].is_u64() {
            let mut cluster = skewed();
            let mut hits = [0; 20];
            for word in (0..100).flat_map(|word| [word, word + 100, word + 200]) {
                if let Some(hits) = cluster.pick(&[word]).host.and_then(|host| hits.get_mut(host)) {
                    *hits += 1;
                }
            }
            assert_eq!(hits[..10], [12; 10], "{name}");
            assert_eq!(hits[10..], [9; 10], "{name}");
        } else if given["priorities"].is_array() {
            let mut cluster = skewed();
            for (word, expected) in
                words(&given["random"]).into_iter().zip(expect["picks"].as_array().unwrap())
            {
                let picked = cluster.pick(&[word]);
                let place = [u64::from(picked.priority), picked.host.unwrap() as u64 % 40];
                assert_eq!(place, words(expected)[..], "{name}");
                assert_eq!(picked.draws, 1, "{name}");
            }
        } else {
            let hosts = vec![TestHost::default(); given["hosts"].as_u64().unwrap() as usize];
            let mut cluster = TestCluster::with_hosts(policy.clone(), &hosts, &[]);
            let picks = words(&given["random"]).into_iter().map(|word| cluster.pick(&[word]).host.unwrap());
            assert_eq!(picks.collect::<Vec<_>>(), numbers::<usize>(&expect["picks"]), "{name}");
        }
    });
}
