//! Schedules over hosts and localities.

use crate::balance::edf::Edf;
use crate::balance::locality_weighted::LocalityWeights;
use crate::balance::testing::{each_case, numbers, word, words};
use crate::sets::{HostSet, LocalityHosts};
use serde_json::Value;

fn order(weights: &[f64], seed: u64, picks: usize) -> Vec<u32> {
    let items: Vec<u32> = (0..weights.len() as u32).collect();
    let weight = |item: u32| weights[item as usize];
    let mut edf = Edf::with_picks(&items, seed, weight);
    (0..picks).map(|_| edf.pick(weight).unwrap()).collect()
}

#[test]
fn edf() {
    each_case("edf", 109, &[], |name, given, expect| {
        let picks = given["picks"].as_u64().unwrap_or(0) as usize;
        if let Some(weights) = given["weights"].as_array() {
            let weights: Vec<f64> = weights.iter().map(|weight| weight.as_f64().unwrap()).collect();
            if let Some(seeds) = given["seeds"].as_array() {
                let firsts: Vec<u32> = seeds.iter().map(|seed| order(&weights, word(seed), 1)[0]).collect();
                assert_eq!(firsts, numbers::<u32>(&expect["first_picks"]), "{name}");
            } else {
                let expected = numbers::<u32>(&expect["order"]);
                assert_eq!(order(&weights, word(&given["seed"]), picks), expected, "{name}");
            }
            return;
        }
        match given["weights"].as_str().unwrap() {
            "128 entries of weight 1" => {
                let expected: Vec<u32> = (0..128).cycle().take(picks).collect();
                assert_eq!(order(&[1.0; 128], 0, picks), expected, "{name}");
            }
            "entry i has weight i+1, i in 0..127" => {
                let weights: Vec<f64> = (0..128).map(|i| f64::from(i + 1)).collect();
                let picked = order(&weights, 0, picks);
                for i in 0..128 {
                    let count = picked.iter().filter(|pick| **pick == i).count();
                    assert_eq!(count, i as usize + 1, "{name}: {i}");
                }
            }
            other => panic!("unknown weights {other}"),
        }
    });
}

fn locality(given: &Value) -> LocalityHosts {
    let list = |key: &str| (0..given[key].as_u64().unwrap() as u32).collect::<Vec<_>>();
    LocalityHosts {
        weight: given["weight"].as_u64().unwrap() as u32,
        hosts: list("hosts"),
        healthy: list("eligible"),
        excluded: given["excluded"].as_u64().unwrap() as u32,
        ..LocalityHosts::default()
    }
}

#[test]
fn locality_weighted() {
    each_case("locality_weighted", 15, &[], |name, given, expect| {
        let Some(localities) = given["localities"].as_array() else {
            let localities = words(&given["weights"])
                .into_iter()
                .map(|weight| LocalityHosts {
                    weight: weight as u32,
                    hosts: vec![0],
                    healthy: vec![0],
                    ..LocalityHosts::default()
                })
                .collect();
            let set = HostSet { localities, overprovisioning_factor: 140, ..HostSet::default() };
            let firsts: Vec<u32> = words(&given["seeds"])
                .into_iter()
                .map(|seed| LocalityWeights::new(&set, seed).pick(false).unwrap())
                .collect();
            assert_eq!(firsts, numbers::<u32>(&expect["first_picks"]), "{name}");
            return;
        };
        let set = HostSet {
            localities: localities.iter().map(locality).collect(),
            overprovisioning_factor: given["overprovisioning_factor"].as_u64().unwrap() as u32,
            ..HostSet::default()
        };
        let mut weights = LocalityWeights::new(&set, word(&given["seed"]));
        assert_eq!(weights.pick(true), None, "{name}: no degraded host");
        let Some(effective) = expect["effective_weights"].as_array() else {
            assert!(expect["locality"].is_null(), "{name}");
            assert_eq!(weights.pick(false), None, "{name}");
            return;
        };
        let effective: Vec<f64> = effective.iter().map(|weight| weight.as_f64().unwrap()).collect();
        assert_eq!(weights.healthy_weights(), effective, "{name}");
        let picks = given["picks"].as_u64().unwrap();
        let picks: Vec<u32> = (0..picks).map(|_| weights.pick(false).unwrap()).collect();
        for key in ["order", "first_20"] {
            if !expect[key].is_null() {
                let expected = numbers::<u32>(&expect[key]);
                assert_eq!(picks[..expected.len()], expected, "{name}");
            }
        }
        for (at, count) in numbers::<usize>(&expect["pick_counts"]).into_iter().enumerate() {
            assert_eq!(picks.iter().filter(|pick| **pick == at as u32).count(), count, "{name}: {at}");
        }
    });
}
