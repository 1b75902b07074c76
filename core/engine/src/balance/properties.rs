//! What holds for any cluster and any words.

use super::testing::{Ask, Assignment, TestCluster, TestHost};
use crate::hosts::{Health, flag};
use crate::spec::{
    Aperture, ClientWeights, ConsistentHashing, HashFunction, LoadAware, LocalityBalancing, OverrideSpec,
    PeakEwma, PolicySpec, SelectionMethod, SubsetFallback, SubsetSpec, ZoneAware,
};
use proptest::prelude::*;
use std::sync::Arc;

fn locality_balancing() -> impl Strategy<Value = LocalityBalancing> {
    prop_oneof![
        Just(LocalityBalancing::None),
        Just(LocalityBalancing::Weighted),
        any::<bool>().prop_map(|fail| LocalityBalancing::ZoneAware(ZoneAware {
            fail_traffic_on_panic: fail,
            ..ZoneAware::default()
        })),
    ]
}

fn hashing() -> impl Strategy<Value = ConsistentHashing> {
    (any::<bool>(), prop_oneof![Just(0_u32), 100..300_u32]).prop_map(|(use_hostname, balance_factor)| {
        ConsistentHashing { use_hostname, balance_factor, hash_policy: Vec::new() }
    })
}

fn simple_policy() -> impl Strategy<Value = PolicySpec> {
    let bias = prop_oneof![Just(1.0), Just(0.0), 0.0..1e9, Just(f64::NAN), Just(f64::INFINITY)];
    let function = prop_oneof![Just(HashFunction::XxHash), Just(HashFunction::MurmurHash2)];
    let prime = prop_oneof![Just(2_u64), Just(3), Just(17), Just(251)];
    prop_oneof![
        locality_balancing().prop_map(|locality| PolicySpec::RoundRobin { locality, slow_start: None }),
        locality_balancing().prop_map(|locality| PolicySpec::Random { locality }),
        (0..5_u32, bias, any::<bool>(), locality_balancing()).prop_map(
            |(choice_count, active_request_bias, scan, locality)| PolicySpec::LeastRequest {
                choice_count,
                active_request_bias,
                selection: if scan { SelectionMethod::FullScan } else { SelectionMethod::NChoices },
                locality,
                slow_start: None,
            }
        ),
        (function, 0..200_u64, 0..200_u64, hashing(), any::<bool>()).prop_map(
            |(hash_function, minimum_ring_size, more, hashing, locality_weighted)| PolicySpec::RingHash {
                hash_function,
                minimum_ring_size,
                maximum_ring_size: minimum_ring_size + more,
                hashing,
                locality_weighted,
            }
        ),
        (prime, hashing(), any::<bool>()).prop_map(|(table_size, hashing, locality_weighted)| {
            PolicySpec::Maglev { table_size, hashing, locality_weighted }
        }),
        (1..4_u32).prop_map(|choices| PolicySpec::PeakEwma(PeakEwma { choices, ..PeakEwma::default() })),
        Just(PolicySpec::RendezvousHash),
        (1..6_u32, 1..4_u32, 0..4_u32).prop_map(|(size, peers, id)| {
            PolicySpec::DeterministicAperture(Aperture { size, id: id % peers, peers })
        }),
        Just(PolicySpec::WeightedRandom),
        locality_balancing().prop_map(|locality| {
            PolicySpec::ClientSideWeighted(Arc::new(ClientWeights { locality, ..ClientWeights::default() }))
        }),
        Just(PolicySpec::ClusterProvided),
    ]
}

/// Any policy, and those that put something around another one.
pub(crate) fn policy() -> impl Strategy<Value = PolicySpec> {
    prop_oneof![
        6 => simple_policy(),
        1 => simple_policy().prop_map(|fallback| {
            PolicySpec::OverrideHost(Arc::new(OverrideSpec { sources: Vec::new(), fallback }))
        }),
        1 => simple_policy().prop_map(|child| {
            PolicySpec::LoadAwareLocality(Arc::new(LoadAware { child, ..LoadAware::default() }))
        }),
        1 => simple_policy().prop_map(|child| {
            PolicySpec::Subset(Arc::new(SubsetSpec { fallback: SubsetFallback::Any, child, ..SubsetSpec::default() }))
        }),
    ]
}

fn host() -> impl Strategy<Value = TestHost> {
    let flags = prop_oneof![
        3 => Just(0),
        1 => Just(flag::FAILED_EDS_HEALTH),
        1 => Just(flag::DEGRADED_EDS_HEALTH),
        1 => Just(flag::EDS_STATUS_DRAINING),
        1 => Just(flag::PENDING_ACTIVE_HC),
    ];
    let weight = prop_oneof![4 => Just(1_u32), 2 => 1..10_u32, 1 => Just(u32::MAX)];
    (0..3_usize, 0..3_u32, weight, flags, 0..100_u32, any::<bool>()).prop_map(
        |(priority, locality, weight, flags, port, named)| TestHost {
            priority,
            locality,
            weight,
            flags,
            hostname: if named { format!("h{port}") } else { String::new() },
            ..TestHost::at(&format!("10.0.0.1:{port}"))
        },
    )
}

fn hosts() -> impl Strategy<Value = Vec<TestHost>> {
    prop::collection::vec(host(), 0..12)
}

fn assignment() -> impl Strategy<Value = Assignment> {
    let weights = prop::collection::vec((0..3_u32, 0..5_u32), 0..4);
    (1..5_usize, weights, 1..300_u32, any::<bool>()).prop_map(
        |(priorities, locality_weights, overprovisioning_factor, weighted_priority_health)| Assignment {
            priorities,
            locality_weights,
            overprovisioning_factor,
            weighted_priority_health,
        },
    )
}

/// Everything that one run of a cluster shows.
type Trace = Vec<(Option<usize>, usize, u32, bool, bool)>;

fn run(
    policy: &PolicySpec,
    assignment: &Assignment,
    threshold: u32,
    updates: &[Vec<TestHost>],
    words: &[u64],
) -> Trace {
    let mut cluster = TestCluster::new(policy.clone(), assignment.clone());
    cluster.threshold = threshold;
    let mut trace = Vec::new();
    for hosts in updates {
        cluster.update(hosts, words);
        cluster.tick();
        for (turn, words) in words.windows(3).enumerate() {
            let reject = |host: usize| words[1] >> (host % 64) & 1 == 1;
            let picked = cluster.ask(Ask {
                filters: None,
                criteria: None,
                hash: words[0].is_multiple_of(3).then_some(words[1]),
                words,
                candidates: turn as u32 % 4,
                reject: Some(&reject),
                tried: None,
                overrides: None,
            });
            if let Some(host) = picked.host {
                let flags = hosts[host].flags;
                assert!(picked.panic || flag::health(flags) != Health::Unhealthy, "unhealthy without panic");
                assert_eq!(hosts[host].priority, picked.priority as usize);
                if !picked.panic {
                    assert_eq!(flag::health(flags) == Health::Degraded, picked.degraded);
                }
                assert!(!(picked.panic && picked.degraded));
                cluster.set_active(host, (words[2] % 50) as u32);
                cluster.cluster_active = cluster.cluster_active.wrapping_add(1);
            }
            trace.push((picked.host, picked.draws, picked.priority, picked.panic, picked.degraded));
        }
    }
    trace
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn allowed_hosts_only_and_the_same_again(
        policy in policy(),
        assignment in assignment(),
        threshold in prop_oneof![Just(0_u32), Just(50), 0..120_u32],
        updates in prop::collection::vec(hosts(), 1..4),
        words in prop::collection::vec(any::<u64>(), 8..24),
    ) {
        // Some hosts may lie in a priority that the assignment does not have: they are in no set.
        let first = run(&policy, &assignment, threshold, &updates, &words);
        let second = run(&policy, &assignment, threshold, &updates, &words);
        prop_assert_eq!(first, second);
    }

    /// Whatever first choices can meet, a retry finds when all else was tried.
    #[test]
    fn an_untried_host_is_found_while_there_is_one(
        policy in policy(),
        assignment in assignment(),
        threshold in prop_oneof![Just(0_u32), Just(50)],
        hosts in hosts(),
        words in prop::collection::vec(any::<u64>(), 32),
        left: usize,
        candidates in 0..3_u32,
    ) {
        let mut cluster = TestCluster::new(policy, assignment);
        cluster.threshold = threshold;
        cluster.update(&hosts, &[]);
        cluster.tick();
        let mut met = std::collections::BTreeSet::new();
        for words in words.windows(4) {
            met.extend(cluster.ask(Ask { hash: Some(words[0]), words, ..Ask::default() }).host);
            met.extend(cluster.ask(Ask { words, ..Ask::default() }).host);
        }
        let met: Vec<usize> = met.into_iter().collect();
        let Some(only) = met.get(left % met.len().max(1)).copied() else { return Ok(()) };
        let all_but_one = |host: usize| host != only;
        let hash = Some(words[0]).filter(|word| word % 2 == 0);
        let ask = Ask { hash, words: &words, candidates, tried: Some(&all_but_one), ..Ask::default() };
        let picked = cluster.ask(ask);
        prop_assert_eq!(picked.host, Some(only));
        prop_assert_eq!(picked.priority as usize, hosts[only].priority);
        let health = flag::health(hosts[only].flags);
        prop_assert!(picked.panic || health != Health::Unhealthy);
        // When everything was tried a tried host is better than none, and a predicate has no say in what was tried.
        let refuses = |host: usize| host == only;
        let ask = Ask { tried: Some(&all_but_one), reject: Some(&refuses), hash, words: &words, candidates, ..Ask::default() };
        prop_assert_eq!(cluster.ask(ask).host, Some(only));
        let ask = Ask { tried: Some(&|_| true), hash, words: &words, candidates: candidates + 1, ..Ask::default() };
        let last = cluster.ask(ask).host;
        prop_assert!(last.is_none_or(|host| met.contains(&host) || hosts[host].priority < cluster.sets.len()));
    }

    #[test]
    fn loads_cover_everything(
        mut assignment in assignment(),
        threshold in 0..101_u32,
        hosts in hosts(),
    ) {
        // Smaller factors and weights can round all availability to nothing without panic; then no load is given.
        assignment.overprovisioning_factor = assignment.overprovisioning_factor.max(100);
        assignment.weighted_priority_health = false;
        let policy = PolicySpec::default();
        let mut cluster = TestCluster::new(policy, assignment);
        cluster.threshold = threshold;
        cluster.update(&hosts, &[]);
        let prepared = &cluster.prepared;
        let sum: u32 = prepared.healthy_load().iter().chain(prepared.degraded_load()).sum();
        prop_assert_eq!(sum, 100);
        prop_assert_eq!(prepared.panics().len(), cluster.sets.len());
    }
}

/// How many of 20,000 keys lead to another host once the last host is gone.
fn moved(policy: &PolicySpec, hosts: u32) -> (f64, f64) {
    let all: Vec<_> = (0..hosts).map(|i| TestHost::at(&format!("10.0.0.{i}:80"))).collect();
    let mut before = TestCluster::with_hosts(policy.clone(), &all, &[]);
    let mut after = TestCluster::with_hosts(policy.clone(), &all[..all.len() - 1], &[]);
    let (mut moved, mut lost) = (0, 0);
    for key in 0..20_000_u64 {
        let hash = Some(crate::hash::xxh64(&key.to_le_bytes(), 0));
        let from = before.ask(Ask { hash, ..Ask::default() }).host.unwrap();
        let to = after.ask(Ask { hash, ..Ask::default() }).host.unwrap();
        moved += u32::from(from != to);
        lost += u32::from(from == all.len() - 1);
    }
    (f64::from(moved) / 20_000.0, f64::from(lost) / 20_000.0)
}

#[test]
fn a_lost_host_moves_its_own_keys() {
    let hashing = ConsistentHashing::default();
    let ring = |points| PolicySpec::RingHash {
        hash_function: HashFunction::XxHash,
        minimum_ring_size: points,
        maximum_ring_size: points,
        hashing: hashing.clone(),
        locality_weighted: false,
    };
    let weighted = |host: (usize, TestHost)| TestHost { weight: 1 + host.0 as u32 % 3, ..host.1 };
    let mixed: Vec<TestHost> =
        (0..20).map(|i| TestHost::at(&format!("10.0.0.{i}:80"))).enumerate().map(weighted).collect();
    let mut scores = (
        TestCluster::with_hosts(PolicySpec::RendezvousHash, &mixed, &[]),
        TestCluster::with_hosts(PolicySpec::RendezvousHash, &mixed[..19], &[]),
    );
    // Rings of one host more or less have the same points per host when the size follows the number of hosts.
    let all: Vec<_> = (0..20).map(|i| TestHost::at(&format!("10.0.0.{i}:80"))).collect();
    let mut before = TestCluster::with_hosts(ring(20 * 500), &all, &[]);
    let mut after = TestCluster::with_hosts(ring(19 * 500), &all[..19], &[]);
    for key in 0..5_000_u64 {
        let hash = Some(crate::hash::xxh64(&key.to_le_bytes(), 0));
        let from = before.ask(Ask { hash, ..Ask::default() }).host;
        let to = after.ask(Ask { hash, ..Ask::default() }).host;
        assert!(from == to || from == Some(19), "key {key} moved from {from:?} to {to:?}");
    }
    // Scores move nothing else at all, whatever the weights.
    for key in 0..5_000_u64 {
        let hash = Some(crate::hash::xxh64(&key.to_le_bytes(), 0));
        let from = scores.0.ask(Ask { hash, ..Ask::default() }).host;
        let to = scores.1.ask(Ask { hash, ..Ask::default() }).host;
        assert!(from == to || from == Some(19), "key {key} moved from {from:?} to {to:?}");
    }
    // A table may move some more.
    let maglev = PolicySpec::Maglev { table_size: 65_537, hashing, locality_weighted: false };
    let (moved, lost) = moved(&maglev, 20);
    assert!((0.04..0.06).contains(&lost), "{lost}");
    assert!(moved < lost + 0.02, "{moved} moved for {lost} lost");
    // So does a ring of a fixed size, whose points are divided anew.
    let fixed = PolicySpec::RingHash {
        hash_function: HashFunction::XxHash,
        minimum_ring_size: 1024,
        maximum_ring_size: 1024,
        hashing: ConsistentHashing::default(),
        locality_weighted: false,
    };
    let (moved, lost) = self::moved(&fixed, 20);
    assert!(moved < lost + 0.06, "{moved} moved for {lost} lost");
}
