//! Subsets.

use crate::balance::Criteria;
use crate::balance::subsets::scaled;
use crate::balance::testing::{Ask, Assignment, TestCluster, TestHost, each_case, numbers};
use crate::hosts::flag;
use crate::spec::{PolicySpec, SelectorFallback, SubsetFallback, SubsetSelector, SubsetSpec, Value as Meta};
use crate::stats::Counter;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn meta(value: &Value) -> Meta {
    match value {
        Value::Null => Meta::Null,
        Value::Bool(flag) => Meta::Bool(*flag),
        Value::Number(number) => Meta::Number(number.as_f64().unwrap()),
        Value::String(text) => Meta::String(text.clone()),
        Value::Array(items) => Meta::List(items.iter().map(meta).collect()),
        Value::Object(_) => Meta::Struct(fields(value)),
    }
}

fn fields(value: &Value) -> BTreeMap<String, Meta> {
    let object = value.as_object().into_iter().flatten();
    object.map(|(name, value)| (name.clone(), meta(value))).collect()
}

fn sorted(keys: &Value) -> Vec<String> {
    let mut keys: Vec<String> =
        keys.as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_owned()).collect();
    keys.sort();
    keys
}

fn selector(given: &Value) -> SubsetSelector {
    SubsetSelector {
        keys: sorted(&given["keys"]),
        single_host: given["single_host_per_subset"] == true,
        fallback: match given["fallback_policy"].as_str() {
            None | Some("NOT_DEFINED") => None,
            Some("NO_FALLBACK") => Some(SelectorFallback::None),
            Some("ANY_ENDPOINT") => Some(SelectorFallback::Any),
            Some("DEFAULT_SUBSET") => Some(SelectorFallback::Default),
            Some("KEYS_SUBSET") => Some(SelectorFallback::Keys(sorted(&given["fallback_keys_subset"]))),
            Some(other) => panic!("unknown fallback {other}"),
        },
    }
}

fn spec(config: &Value) -> SubsetSpec {
    let known = [
        "fallback_policy",
        "default_subset",
        "subset_selectors",
        "allow_redundant_keys",
        "panic_mode_any",
        "list_as_any",
        "metadata_fallback_policy",
        "healthy_panic_threshold",
    ];
    assert!(config.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{config}");
    let flag = |name: &str| config[name] == true;
    SubsetSpec {
        fallback: match config["fallback_policy"].as_str() {
            None | Some("NO_FALLBACK") => SubsetFallback::None,
            Some("ANY_ENDPOINT") => SubsetFallback::Any,
            Some("DEFAULT_SUBSET") => SubsetFallback::Default,
            Some(other) => panic!("unknown fallback {other}"),
        },
        default_subset: fields(&config["default_subset"]),
        selectors: config["subset_selectors"].as_array().unwrap().iter().map(selector).collect(),
        allow_redundant_keys: flag("allow_redundant_keys"),
        panic_mode_any: flag("panic_mode_any"),
        list_as_any: flag("list_as_any"),
        fallback_list: config["metadata_fallback_policy"] == "FALLBACK_LIST",
        ..SubsetSpec::default()
    }
}

fn host(given: &Value) -> TestHost {
    TestHost {
        metadata: fields(&given["metadata"]),
        flags: if given["health"] == "UNHEALTHY" { flag::FAILED_EDS_HEALTH } else { 0 },
        ..TestHost::default()
    }
}

/// Counters of subsets and panic that are not zero.
fn counted(cluster: &TestCluster) -> BTreeMap<&'static str, u64> {
    let relevant = Counter::ALL.iter().filter(|counter| counter.name().starts_with("lb_"));
    let values = relevant.map(|counter| (counter.name(), cluster.counters.get(*counter)));
    values.filter(|(_, value)| *value > 0).collect()
}

fn check_queries(name: &str, given: &Value, expect: &Value) {
    let config = &given["config"];
    let mut cluster = TestCluster::new(PolicySpec::Subset(Arc::new(spec(config))), Assignment::default());
    if let Some(threshold) = config["healthy_panic_threshold"].as_u64() {
        cluster.threshold = threshold as u32;
    }
    let hosts: Vec<TestHost> = given["hosts"].as_array().unwrap().iter().map(host).collect();
    cluster.update(&hosts, &[]);
    let queries = given["queries"].as_array().unwrap();
    let results = expect["results"].as_array().unwrap();
    assert_eq!(queries.len(), results.len(), "{name}");
    for (query, result) in queries.iter().zip(results) {
        let criteria = Criteria::new(fields(query));
        let mut one = || {
            let before = counted(&cluster);
            let picked = cluster.ask(Ask { criteria: Some(&criteria), ..Ask::default() });
            let after = counted(&cluster);
            let now = |(name, value): (&'static str, u64)| {
                (value > *before.get(name).unwrap_or(&0)).then_some(name)
            };
            (picked.host, after.into_iter().filter_map(now).collect::<BTreeSet<&str>>())
        };
        let picks: Vec<_> = (0..3 * hosts.len()).map(|_| one()).collect();
        let found: BTreeSet<Option<usize>> = picks.iter().map(|(host, _)| *host).collect();
        let expected: BTreeSet<Option<usize>> = match result["hosts"].is_null() {
            true => BTreeSet::from([None]),
            false => numbers::<usize>(&result["hosts"]).into_iter().map(Some).collect(),
        };
        assert_eq!(found, expected, "{name}: {query}");
        if let Some(stat) = result.get("stat") {
            let stats: BTreeSet<&str> = stat.as_str().map_or_else(BTreeSet::new, |s| s.split('+').collect());
            for (_, counted) in &picks {
                let mut counted = counted.clone();
                if stats.contains("lb_subsets_fallback_panic") {
                    // The default subset was asked first and, having no host, panics.
                    assert!(counted.remove("lb_healthy_panic"), "{name}: {query}");
                }
                assert_eq!(counted, stats, "{name}: {query}");
            }
        }
    }
    if let Some(duplicates) = expect["lb_subsets_single_host_per_subset_duplicate"].as_u64() {
        assert_eq!(cluster.prepared.subset_counts().unwrap().duplicates, duplicates, "{name}");
    }
}

fn check_scaled(name: &str, given: &Value, expect: &Value) {
    let list = |key: &str| numbers::<usize>(&given[key]);
    let weights = list("original_weights").into_iter().zip(list("original_hosts")).zip(list("subset_hosts"));
    let scaled: Vec<u32> =
        weights.map(|((weight, whole), part)| scaled(weight as u32, part, whole)).collect();
    assert_eq!(scaled, numbers::<u32>(&expect["scaled_weights"]), "{name}");
}

fn check_counts(name: &str, given: &Value, expect: &Value) {
    let selectors = given["selectors"].as_array().unwrap();
    let selectors =
        selectors.iter().map(|keys| SubsetSelector { keys: sorted(keys), ..SubsetSelector::default() });
    let spec = SubsetSpec { selectors: selectors.collect(), ..SubsetSpec::default() };
    let mut cluster = TestCluster::new(PolicySpec::Subset(Arc::new(spec)), Assignment::default());
    let mut counts = Vec::new();
    for step in given["steps"].as_array().unwrap() {
        let values = step.as_array().unwrap();
        let host = |pair: &[Value]| {
            let named = ["version", "stage"].into_iter().zip(pair).filter(|(_, value)| !value.is_null());
            let metadata = named.map(|(name, value)| (name.to_owned(), meta(value))).collect();
            TestHost { metadata, ..TestHost::default() }
        };
        cluster.update(&values.chunks(2).map(host).collect::<Vec<_>>(), &[]);
        counts.push(cluster.prepared.subset_counts().unwrap());
    }
    let each = |of: fn(&crate::balance::SubsetCounts) -> u64| counts.iter().map(of).collect::<Vec<_>>();
    assert_eq!(each(|counts| counts.active), numbers::<u64>(&expect["active"]), "{name}");
    assert_eq!(each(|counts| counts.created), numbers::<u64>(&expect["created"]), "{name}");
    assert_eq!(each(|counts| counts.removed), numbers::<u64>(&expect["removed"]), "{name}");
}

#[test]
fn subset() {
    each_case("subset", 38, &[], |name, given, expect| {
        if given["config"].is_object() {
            check_queries(name, given, expect);
        } else if given["original_weights"].is_array() {
            check_scaled(name, given, expect);
        } else {
            check_counts(name, given, expect);
        }
    });
}
