//! Candidates of retries (section 8).

use crate::balance::testing::{Ask, TestCluster, TestHost, each_case, word};
use crate::spec::{ConsistentHashing, HashFunction, LocalityBalancing, PolicySpec};
use serde_json::Value;
use std::cell::Cell;

const ROUND_ROBIN: PolicySpec =
    PolicySpec::RoundRobin { locality: LocalityBalancing::None, slow_start: None };

/// Candidates as the request code counts them: the setting is stored in 32 bits, 0 acts as 1, and one more.
fn candidates(given: &Value) -> u32 {
    if given["is_retry"] == false {
        return 1;
    }
    let stored = given["host_selection_retry_max_attempts"].as_i64().unwrap_or(0);
    // 2^32 is not unset: it is stored as 0, and that is used.
    let unset = stored == 0;
    (if unset { 1 } else { stored as u32 }).wrapping_add(1)
}

fn six_hosts(policy: PolicySpec) -> (TestCluster, Vec<String>) {
    let keys: Vec<String> = (90..96).map(|port| format!("127.0.0.1:{port}")).collect();
    let hosts: Vec<_> = keys.iter().map(|key| TestHost::at(key)).collect();
    (TestCluster::with_hosts(policy, &hosts, &[]), keys)
}

#[test]
fn host_selection_retry() {
    let mut two = TestCluster::with_hosts(ROUND_ROBIN, &[TestHost::default(), TestHost::default()], &[0]);
    each_case("host_selection_retry", 14, &[], |name, given, expect| match given["policy"].as_str() {
        None => {
            let (mut cluster, _) = six_hosts(ROUND_ROBIN);
            let examined = Cell::new(0);
            let last = Cell::new(None);
            let reject = |host| {
                examined.set(examined.get() + 1);
                last.set(Some(host));
                true
            };
            let retry = given["is_retry"] == true;
            let ask = Ask {
                candidates: candidates(given),
                reject: retry.then_some(&reject as &dyn Fn(usize) -> bool),
                ..Ask::default()
            };
            let picked = cluster.ask(ask);
            let expected = expect["candidates_examined"].as_u64().unwrap();
            assert_eq!(picked.draws as u64, expected, "{name}: one draw a candidate");
            if retry {
                assert_eq!(examined.get(), expected, "{name}");
                assert_eq!(picked.host, last.get(), "{name}");
                assert_eq!(picked.host.is_none(), expect["result"].is_null(), "{name}");
            }
        }
        Some("round_robin") => {
            let accepted = given["accept"][0].as_u64().unwrap() as usize;
            let count = given["retry_count"].as_u64().unwrap() as u32;
            for pick in expect["picks"].as_array().unwrap() {
                let reject = |host| host != accepted;
                let ask = Ask { candidates: count + 1, reject: Some(&reject), ..Ask::default() };
                assert_eq!(two.ask(ask).host.unwrap() as u64, pick.as_u64().unwrap(), "{name}");
            }
        }
        Some(kind) => {
            let hashing = ConsistentHashing::default();
            let (mut cluster, keys) = six_hosts(match kind {
                "ring_hash" => PolicySpec::RingHash {
                    hash_function: HashFunction::XxHash,
                    minimum_ring_size: 12,
                    maximum_ring_size: 8_388_608,
                    hashing,
                    locality_weighted: false,
                },
                _ => PolicySpec::Maglev { table_size: 7, hashing, locality_weighted: false },
            });
            let rejected = given["reject"].as_array();
            let reject = |host: usize| rejected.is_none_or(|list| list.iter().any(|key| *key == keys[host]));
            let ask = Ask {
                hash: Some(word(&given["hash"])),
                candidates: given["retry_count"].as_u64().unwrap() as u32 + 1,
                reject: Some(&reject),
                ..Ask::default()
            };
            let picked = cluster.ask(ask);
            assert_eq!(picked.draws, 0, "{name}");
            assert_eq!(keys[picked.host.unwrap()], expect["pick"], "{name}");
        }
    });
}
