//! What survives updates, what restarts, and what each draw is for, over whole balancers.

use super::testing::{Ask, Assignment, TestCluster, TestHost};
use crate::hosts::flag;
use crate::spec::{
    ConsistentHashing, HashFunction, LocalityBalancing, PolicySpec, SelectionMethod, ZoneAware,
};

const UNHEALTHY: u32 = flag::FAILED_EDS_HEALTH;
const DEGRADED: u32 = flag::DEGRADED_EDS_HEALTH;

const fn round_robin(locality: LocalityBalancing) -> PolicySpec {
    PolicySpec::RoundRobin { locality, slow_start: None }
}

fn ring(hashing: ConsistentHashing) -> PolicySpec {
    PolicySpec::RingHash {
        hash_function: HashFunction::XxHash,
        minimum_ring_size: 64,
        maximum_ring_size: 1024,
        hashing,
        locality_weighted: false,
    }
}

fn host(priority: usize, locality: u32, flags: u32) -> TestHost {
    TestHost { priority, locality, flags, ..TestHost::default() }
}

fn with_flags(flags: &[u32]) -> Vec<TestHost> {
    flags.iter().map(|flags| host(0, 0, *flags)).collect()
}

#[test]
fn draws_at_construction_and_at_updates() {
    let assignment = Assignment { priorities: 3, ..Assignment::default() };
    let draws = |policy: PolicySpec| {
        let mut cluster = TestCluster::new(policy, assignment.clone());
        let hosts = [host(0, 0, 0), host(2, 0, 0)];
        let first = cluster.update(&hosts, &[]);
        let same = cluster.reschedule(&[]);
        cluster.sets[1].version += 100;
        let one = cluster.reschedule(&[]);
        [first, same, one, cluster.update(&hosts, &[])]
    };
    let least_request = |locality| PolicySpec::LeastRequest {
        choice_count: 2,
        active_request_bias: 1.0,
        selection: SelectionMethod::NChoices,
        locality,
        slow_start: None,
    };
    assert_eq!(draws(round_robin(LocalityBalancing::None)), [1, 0, 0, 0]);
    assert_eq!(draws(round_robin(LocalityBalancing::Weighted)), [4, 0, 1, 3]);
    assert_eq!(draws(least_request(LocalityBalancing::None)), [1, 0, 0, 0]);
    assert_eq!(draws(least_request(LocalityBalancing::Weighted)), [4, 0, 1, 3]);
    assert_eq!(draws(PolicySpec::Random { locality: LocalityBalancing::None }), [0, 0, 0, 0]);
    assert_eq!(draws(PolicySpec::Random { locality: LocalityBalancing::Weighted }), [3, 0, 1, 3]);
    assert_eq!(draws(ring(ConsistentHashing::default())), [0, 0, 0, 0]);
}

#[test]
fn an_unchanged_priority_keeps_its_schedule() {
    let mut cluster = TestCluster::new(
        round_robin(LocalityBalancing::None),
        Assignment { priorities: 2, ..Assignment::default() },
    );
    cluster.update(&[TestHost::weighing(1), TestHost::weighing(2), host(1, 0, 0)], &[0]);
    assert_eq!(cluster.picks(2), [1, 0]);
    cluster.sets[1].version += 100;
    cluster.reschedule(&[]);
    assert_eq!(cluster.picks(3), [1, 1, 0], "goes on");
    cluster.sets[0].version += 100;
    cluster.reschedule(&[]);
    assert_eq!(cluster.picks(3), [1, 0, 1], "begins again");
}

#[test]
fn another_policy_or_setting_starts_anew() {
    let mut cluster =
        TestCluster::with_hosts(round_robin(LocalityBalancing::None), &with_flags(&[0, 0, 0]), &[1]);
    assert_eq!(cluster.picks(2), [1, 2]);
    cluster.policy = round_robin(LocalityBalancing::ZoneAware(ZoneAware {
        fail_traffic_on_panic: true,
        ..ZoneAware::default()
    }));
    assert_eq!(cluster.reschedule(&[0]), 1);
    assert_eq!(cluster.picks(2), [0, 1]);
    cluster.policy = PolicySpec::Random { locality: LocalityBalancing::None };
    assert_eq!(cluster.reschedule(&[]), 0);
    assert_eq!(cluster.pick(&[5]).host, Some(2));
    cluster.policy = PolicySpec::ClusterProvided;
    cluster.reschedule(&[]);
    let picked = cluster.pick(&[]);
    assert_eq!((picked.host, picked.draws), (None, 0));
}

#[test]
fn localities_are_scheduled_from_a_new_seed_and_hosts_from_the_old_one() {
    let assignment = Assignment { locality_weights: vec![(0, 1), (1, 2)], ..Assignment::default() };
    let mut cluster = TestCluster::new(round_robin(LocalityBalancing::Weighted), assignment);
    let hosts = [host(0, 0, 0), host(0, 1, 0), host(0, 1, 0)];
    // Seeds: locality 0, hosts 0.
    cluster.update(&hosts, &[0, 0]);
    assert_eq!(cluster.picks(6), [1, 0, 2, 1, 0, 2]);
    // Seed 1 makes the first pick of the localities; the indexes of the hosts go on.
    cluster.update(&hosts, &[1]);
    assert_eq!(cluster.picks(6), [0, 1, 2, 0, 1, 2]);
    assert_eq!(cluster.pick(&[]).draws, 1);
}

#[test]
fn localities_without_weight_or_host_get_nothing_unless_all_do() {
    let mut cluster = TestCluster::new(round_robin(LocalityBalancing::Weighted), Assignment::default());
    let hosts = [host(0, 0, 0), host(0, 1, 0)];
    cluster.update(&hosts, &[]);
    assert_eq!(cluster.picks(4), [0, 1, 0, 1], "no weights: one flat list");
    cluster.assignment.locality_weights = vec![(1, 1)];
    cluster.update(&hosts, &[]);
    assert_eq!(cluster.picks(3), [1, 1, 1], "a missing weight is no traffic");
    // Degraded hosts have a schedule of their own.
    cluster.assignment.locality_weights = vec![(0, 1), (1, 1)];
    cluster.update(&[host(0, 0, DEGRADED), host(0, 1, DEGRADED)], &[]);
    let picked = cluster.pick(&[]);
    assert!(picked.degraded && !picked.panic);
    assert_eq!((picked.host, cluster.picks(2)), (Some(0), vec![1, 0]));
}

#[test]
fn panic_uses_every_host_or_refuses() {
    let hosts = with_flags(&[UNHEALTHY, UNHEALTHY, 0, flag::EDS_STATUS_DRAINING]);
    let mut cluster = TestCluster::with_hosts(round_robin(LocalityBalancing::None), &hosts, &[0]);
    assert_eq!(cluster.picks(5), [0, 1, 2, 3, 0]);
    let picked = cluster.pick(&[]);
    assert!(picked.panic && !picked.degraded);
    assert_eq!(cluster.panics_counted(), 6);

    let refuse = round_robin(LocalityBalancing::ZoneAware(ZoneAware {
        fail_traffic_on_panic: true,
        ..ZoneAware::default()
    }));
    let mut cluster = TestCluster::with_hosts(refuse, &hosts, &[0]);
    let picked = cluster.pick(&[]);
    assert_eq!((picked.host, picked.panic, picked.draws), (None, true, 1));
    assert_eq!(cluster.panics_counted(), 1);
}

#[test]
fn without_panic_nothing_is_found() {
    let mut cluster = TestCluster::new(round_robin(LocalityBalancing::None), Assignment::default());
    cluster.threshold = 0;
    cluster.update(&with_flags(&[UNHEALTHY]), &[]);
    let picked = cluster.pick(&[]);
    assert_eq!((picked.host, picked.draws, picked.panic), (None, 1, false));
    cluster.update(&[], &[]);
    assert_eq!(cluster.pick(&[]).host, None);
    let mut empty = TestCluster::new(
        round_robin(LocalityBalancing::Weighted),
        Assignment { priorities: 0, ..Assignment::default() },
    );
    assert_eq!(empty.update(&[], &[]), 1);
    assert_eq!(empty.pick(&[]).host, None);
}

#[test]
fn priorities_come_and_go() {
    let mut cluster = TestCluster::new(round_robin(LocalityBalancing::None), Assignment::default());
    cluster.update(&with_flags(&[0]), &[0]);
    cluster.assignment.priorities = 2;
    cluster.update(&[host(0, 0, UNHEALTHY), host(1, 0, 0), host(1, 0, 0)], &[]);
    assert_eq!(cluster.picks(3), [1, 2, 1]);
    cluster.assignment.priorities = 1;
    cluster.update(&with_flags(&[0, 0]), &[]);
    assert_eq!(cluster.picks(2), [0, 1], "the list that was empty still begins with its first turn");
    cluster.assignment.priorities = 2;
    cluster.update(&[host(0, 0, UNHEALTHY), host(1, 0, 0), host(1, 0, 0)], &[]);
    assert_eq!(cluster.picks(2), [2, 1], "the index of priority 1 was kept");
}

#[test]
fn every_least_request_draw_is_made_even_with_one_host() {
    let policy = PolicySpec::LeastRequest {
        choice_count: 3,
        active_request_bias: 1.0,
        selection: SelectionMethod::NChoices,
        locality: LocalityBalancing::None,
        slow_start: None,
    };
    let mut cluster = TestCluster::with_hosts(policy, &with_flags(&[0]), &[0]);
    let picked = cluster.pick(&[1, 2, 3, 4]);
    assert_eq!((picked.host, picked.draws), (Some(0), 4));
}

#[test]
fn a_request_without_hash_draws_one() {
    let hosts: Vec<_> = (0..4).map(|i| TestHost::at(&format!("10.0.0.{i}:80"))).collect();
    let mut cluster = TestCluster::with_hosts(ring(ConsistentHashing::default()), &hosts, &[]);
    for word in [0, 1 << 62, u64::MAX] {
        let hashed = cluster.ask(Ask { hash: Some(word), ..Ask::default() });
        let drawn = cluster.pick(&[word]);
        assert_eq!((hashed.draws, drawn.draws), (0, 1));
        assert_eq!(hashed.host, drawn.host);
    }
}

#[test]
fn hash_keys_are_metadata_then_hostname_then_address() {
    let mut hosts: Vec<_> = (0..3).map(|i| TestHost::at(&format!("10.0.0.{i}:80"))).collect();
    hosts[0].hash_key = Some("alpha".into());
    hosts[1].hash_key = Some(String::new());
    hosts[1].hostname = "beta".into();
    let keys = |use_hostname| {
        let hashing = ConsistentHashing { use_hostname, ..ConsistentHashing::default() };
        let cluster = TestCluster::with_hosts(ring(hashing), &hosts, &[]);
        let place = <crate::hash::ring::Ring as super::prepared::Kept>::of(&cluster.prepared);
        let members = &place.unwrap().get(0).unwrap().members;
        members.keys().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(keys(false), ["alpha", "10.0.0.1:80", "10.0.0.2:80"]);
    assert_eq!(keys(true), ["alpha", "beta", ""]);
}

#[test]
fn degraded_hosts_are_in_no_ring() {
    let hosts: Vec<_> = [0, 0, DEGRADED, DEGRADED]
        .into_iter()
        .enumerate()
        .map(|(i, flags)| TestHost { flags, ..TestHost::at(&format!("10.0.0.{i}:80")) })
        .collect();
    let mut cluster = TestCluster::with_hosts(ring(ConsistentHashing::default()), &hosts, &[]);
    assert_eq!(cluster.prepared.degraded_load(), [30]);
    for word in 0..200 {
        let hash = Some(crate::hash::xxh64(&[word as u8], 0));
        let picked = cluster.ask(Ask { hash, ..Ask::default() });
        assert!(matches!(picked.host, Some(0 | 1)) && !picked.degraded);
    }
    let mut cluster = TestCluster::with_hosts(ring(ConsistentHashing::default()), &hosts[2..], &[]);
    assert_eq!(cluster.ask(Ask { hash: Some(3), ..Ask::default() }).host, None);
}

#[test]
fn a_ring_is_kept_while_its_hosts_stay() {
    let hosts: Vec<_> = (0..3).map(|i| TestHost::at(&format!("10.0.0.{i}:80"))).collect();
    let mut cluster = TestCluster::with_hosts(ring(ConsistentHashing::default()), &hosts, &[]);
    let ring_of = |cluster: &TestCluster| {
        let rings = <crate::hash::ring::Ring as super::prepared::Kept>::of(&cluster.prepared).unwrap();
        std::sync::Arc::clone(&rings.get(0).unwrap().structure)
    };
    let first = ring_of(&cluster);
    // New objects under the same addresses: same points, other slots.
    cluster.update(&hosts, &[]);
    assert!(std::sync::Arc::ptr_eq(&first, &ring_of(&cluster)));
    assert!(cluster.pick(&[9]).host.is_some());
    cluster.update(&hosts[..2], &[]);
    assert!(!std::sync::Arc::ptr_eq(&first, &ring_of(&cluster)));
    let sizes = cluster.prepared.sizes().unwrap();
    assert_eq!((sizes.size, sizes.least_per_host, sizes.most_per_host), (64, 32, 32));
}

#[test]
fn workers_may_share_and_move() {
    fn shared<T: Send + Sync>() {}
    fn moved<T: Send>() {}
    shared::<super::Prepared>();
    shared::<crate::hash::HashPolicies>();
    moved::<super::Scheduler>();
}

#[test]
fn the_common_generator_is_drawn_from_like_any_other() {
    use super::{Scheduler, Selection, View};
    use crate::clock::Time;
    use crate::random::{Random as _, Source, Xoshiro256};
    let policy = PolicySpec::LeastRequest {
        choice_count: 3,
        active_request_bias: 1.0,
        selection: SelectionMethod::NChoices,
        locality: LocalityBalancing::None,
        slow_start: None,
    };
    let mut cluster = TestCluster::with_hosts(policy, &with_flags(&[0; 7]), &[0]);
    for at in 0..7 {
        cluster.set_active(at, at as u32 % 3);
    }
    let mut words = Xoshiro256::seeded(7, 1);
    let mut random = Source::Xoshiro(words.clone());
    for _ in 0..100 {
        let expected = {
            let words = [(); 4].map(|()| words.next_u64());
            cluster.pick(&words).host
        };
        let view = View {
            policy: &cluster.policy,
            sets: &cluster.sets,
            prepared: &cluster.prepared,
            hosts: &cluster.arena,
            since: Time(0),
        };
        let mut scheduler = Scheduler::new(view, &mut Source::Xoshiro(words.clone()), Time(0));
        let mut selection = Selection {
            filters: None,
            overrides: None,
            load: None,
            hash: None,
            criteria: None,
            random: &mut random,
            now: Time(0),
            candidates: 1,
            reject: None,
            cluster_active: 0,
            counters: &cluster.counters,
            priority: 9,
            panic: true,
            degraded: true,
        };
        let slot = scheduler.choose(view, &mut selection).unwrap();
        assert_eq!((selection.priority, selection.panic, selection.degraded), (0, false, false));
        assert_eq!(cluster.slots.iter().position(|s| *s == slot), expected);
    }
}
