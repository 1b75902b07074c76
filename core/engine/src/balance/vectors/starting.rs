//! Slow start.

use crate::balance::edf::Edf;
use crate::balance::slow_start::factor;
use crate::balance::testing::{TestCluster, TestHost, each_case, numbers, word};
use crate::clock::{MILLI, Time};
use crate::spec::{LocalityBalancing, PolicySpec, SelectionMethod, SlowStart};
use std::time::Duration;

const fn least_request(window: Duration) -> PolicySpec {
    PolicySpec::LeastRequest {
        choice_count: 2,
        active_request_bias: 1.0,
        selection: SelectionMethod::NChoices,
        locality: LocalityBalancing::None,
        slow_start: Some(SlowStart { window, aggression: 1.0, min_weight: 0.1 }),
    }
}

#[test]
fn slow_start() {
    each_case("slow_start", 30, &[], |name, given, expect| {
        if let Some(window) = given["window_ms"].as_u64().filter(|_| !given["policy"].is_null()) {
            assert_eq!(given["policy"], "least_request");
            let hosts = vec![TestHost::default(); given["hosts"].as_u64().unwrap() as usize];
            let policy = least_request(Duration::from_millis(window));
            let mut cluster = TestCluster::with_hosts(policy, &hosts, &[0]);
            let picks = cluster.picks(given["picks"].as_u64().unwrap() as usize);
            assert!(picks.iter().zip(&picks[1..]).all(|(one, other)| one != other), "{name}");
            return;
        }
        if let Some(elapsed) = given["elapsed_ms"].as_u64() {
            let real = |key: &str| given[key].as_f64().unwrap();
            let window = given["window_ms"].as_u64().unwrap();
            let factor = factor(elapsed, window, real("aggression"), real("min_weight_fraction"));
            let expected = expect["factor"].as_f64().unwrap();
            assert!((factor - expected).abs() <= expected * 1e-12, "{name}: {factor}");
            return;
        }
        let reals = |key: &str| -> Vec<f64> {
            given[key].as_array().unwrap().iter().map(|real| real.as_f64().unwrap()).collect()
        };
        let weights: Vec<f64> = reals("weights").iter().zip(reals("factors")).map(|(w, f)| w * f).collect();
        let weight = |item: u32| weights[item as usize];
        let items: Vec<u32> = (0..weights.len() as u32).collect();
        let mut edf = Edf::with_picks(&items, word(&given["seed"]), weight);
        let order: Vec<u32> =
            (0..given["picks"].as_u64().unwrap()).map(|_| edf.pick(weight).unwrap()).collect();
        assert_eq!(order, numbers::<u32>(&expect["order"]), "{name}");
    });
}

/// Picks of the last host in a hundred, `after` milliseconds after it came to two old ones.
fn share(cluster: &mut TestCluster, after: u64) -> usize {
    cluster.now = Time(60_000 * MILLI + after * MILLI);
    (0..100).filter(|_| cluster.pick(&[]).host == Some(2)).count()
}

#[test]
fn a_new_host_gets_a_growing_share() {
    let slow_start = Some(SlowStart { window: Duration::from_secs(4), aggression: 1.0, min_weight: 0.1 });
    let policy = PolicySpec::RoundRobin { locality: LocalityBalancing::None, slow_start };
    let mut cluster = TestCluster::with_hosts(policy, &vec![TestHost::default(); 2], &[0]);
    cluster.now = Time(60_000 * MILLI);
    cluster.update(&vec![TestHost::default(); 3], &[]);
    let newest = *cluster.slots.last().unwrap();
    cluster.arena.seen_healthy(newest, cluster.now);
    cluster.reschedule_all();
    let shares = [400, 1000, 2000, 3000, 4000, 9000].map(|after| share(&mut cluster, after));
    assert!((4..=5).contains(&shares[0]), "{shares:?}");
    assert!(shares[..4].is_sorted() && shares[2] == 20 && shares[3] == 27, "{shares:?}");
    assert!((33..=34).contains(&shares[4]) && (33..=34).contains(&shares[5]), "{shares:?}");
    // The schedule outlives the window, until the next update.
    cluster.now = Time(120_000 * MILLI);
    cluster.reschedule_all();
    assert_eq!(cluster.picks(6), [0, 1, 2, 0, 1, 2]);
}
