//! `tests/vectors/gray`: what the Java code chooses, by stage and draw.

use super::index::Code;
use super::{FilterCall, Filtered};
use crate::balance::testing::{TestCluster, TestHost};
use crate::balance::{Policy, Selection, View};
use crate::clock::Time;
use crate::headers::{HeaderView, pack};
use crate::hosts::flag;
use crate::random::{Draws, Source};
use crate::request::filter_values;
use crate::route::RequestView;
use crate::spec::{
    FilterPick, FilterSpec, HostKey, MatchRule, NoMatch, PolicySpec, RequestValue, StageRule, StageSpec,
    Value as Meta, WhenAbsent,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

fn matching(values: Vec<RequestValue>, key: &str) -> MatchRule {
    MatchRule {
        values,
        key: HostKey::Metadata(key.into()),
        absent: WhenAbsent::Skip,
        ignore_case: false,
        hostname: None,
        value_map: BTreeMap::new(),
    }
}

fn stage(name: &str, rule: StageRule) -> StageSpec {
    let (no_match, healthy_only) = (NoMatch::Input, false);
    StageSpec { name: name.into(), rule, no_match, healthy_only, warn: true, warn_absent: true }
}

fn quiet(name: &str, rule: StageRule) -> StageSpec {
    StageSpec { warn: false, warn_absent: false, ..stage(name, rule) }
}

fn header(name: &str) -> RequestValue {
    RequestValue::Header(name.into())
}

fn fixed(value: &Value) -> RequestValue {
    RequestValue::Fixed(value.as_str().unwrap().into())
}

fn gray() -> (Vec<StageSpec>, FilterPick) {
    let tag = MatchRule {
        absent: WhenAbsent::RequireAbsent,
        hostname: Some(None),
        ..matching(vec![header("tag")], "tag")
    };
    let version = matching(vec![header("version")], "version");
    let stages = vec![stage("version", StageRule::Match(version)), stage("tag", StageRule::Match(tag))];
    (stages, FilterPick::Policy(PolicySpec::WeightedRandom))
}

fn nacos(input: &Value) -> (Vec<StageSpec>, FilterPick) {
    let own = match input["cluster"].as_str().unwrap().trim() {
        "" => StageRule::CrossCluster,
        _ => StageRule::Match(matching(vec![fixed(&input["cluster"])], "nacos.cluster")),
    };
    let ipv6 = !input["local_ipv6"].is_null();
    let family = StageRule::IpFamily { ipv6, rewrite: ipv6 };
    let family = StageSpec { no_match: NoMatch::Fail, ..quiet("ip_family", family) };
    (vec![quiet("cluster", own), family], FilterPick::Policy(PolicySpec::WeightedRandom))
}

fn spring(input: &Value) -> (Vec<StageSpec>, FilterPick) {
    let mut pick = FilterPick::Rotation;
    let mut stages = Vec::new();
    for given in input["stages"].as_array().unwrap() {
        stages.push(match given["type"].as_str().unwrap() {
            "zone" => {
                let zone = matching(vec![fixed(&given["zone"])], "zone");
                quiet("zone", StageRule::Match(MatchRule { ignore_case: true, ..zone }))
            }
            "hint" => {
                let values = vec![header("x-sc-lb-hint"), fixed(&input["hint"])];
                quiet("hint", StageRule::Match(matching(values, "hint")))
            }
            "sticky" => {
                let cookie = vec![RequestValue::Cookie("sc-lb-instance-id".into())];
                quiet("sticky", StageRule::Match(MatchRule { key: HostKey::Id, ..matching(cookie, "") }))
            }
            "retry" => stage("avoid_previous", StageRule::AvoidPrevious),
            "subset" => {
                let size = given["size"].as_u64().unwrap() as u32;
                let id = given["instance_id"].as_str().unwrap().to_owned();
                quiet("subset", StageRule::Part { size, id })
            }
            "weighted" => {
                pick = FilterPick::Interleave;
                continue;
            }
            other => panic!("{other}"),
        });
    }
    (stages, pick)
}

/// As the reader of instance lists makes it.
fn host(instance: &Value) -> TestHost {
    let text = |key: &str| instance["metadata"][key].as_str();
    let fields = instance["metadata"].as_object().unwrap().iter();
    let weight = text("nacos.weight").or_else(|| text("weight")).map_or(Ok(1.0), str::parse);
    let healthy = match instance["metadata"].get("nacos.cluster") {
        Some(_) => text("nacos.healthy").is_some_and(|text| text.eq_ignore_ascii_case("true")),
        None => true,
    };
    TestHost {
        metadata: fields
            .map(|(key, value)| (key.clone(), Meta::String(value.as_str().unwrap().into())))
            .collect(),
        registry_weight: Some(weight.unwrap_or(1.0)),
        registry_id: instance["id"].as_str().map(str::to_owned),
        flags: if healthy { 0 } else { flag::FAILED_EDS_HEALTH },
        ..TestHost::at(&format!("{}:{}", instance["host"].as_str().unwrap(), instance["port"]))
    }
}

fn word(unit: &Value) -> u64 {
    ((unit.as_f64().unwrap() * (1u64 << 53) as f64) as u64) << 11
}

fn headers(input: &Value) -> (Vec<Box<str>>, Vec<u8>) {
    let (mut names, mut block) = (Vec::<Box<str>>::new(), Vec::new());
    let mut add = |name: &str, value: &str| {
        let name = name.to_lowercase();
        let at = names.iter().position(|known| **known == *name).unwrap_or_else(|| {
            names.push(name.into());
            names.len() - 1
        });
        pack(&mut block, at as u16, value.as_bytes());
    };
    for (name, value) in input["headers"].as_object().into_iter().flatten() {
        match value {
            Value::Array(several) => several.iter().for_each(|value| add(name, value.as_str().unwrap())),
            one => add(name, one.as_str().unwrap()),
        }
    }
    for (name, value) in input["cookies"].as_object().into_iter().flatten() {
        add("cookie", &format!("{name}={}", value.as_str().unwrap()));
    }
    (names, block)
}

#[test]
fn recorded_choices() {
    for (kind, count) in [("gray_filter", 22), ("nacos_lb", 5), ("spring_chain", 11)] {
        let named = |document: &nexthop_vectors::Document| document.text.contains(&format!("\"{kind}\""));
        for document in nexthop_vectors::documents("gray", "json", count, named) {
            let case: Value = serde_json::from_str(&document.text).unwrap();
            let input = &case["input"];
            let (stages, pick) = match kind {
                "gray_filter" => gray(),
                "nacos_lb" => nacos(input),
                _ => spring(input),
            };
            run(&document.name, &case, stages, pick);
        }
    }
}

fn run(name: &str, case: &Value, stages: Vec<StageSpec>, pick: FilterPick) {
    let input = &case["input"];
    let expected = |key: &str| match &case["engine_expect"][key] {
        Value::Null => case["expect"][key].clone(),
        given => given.clone(),
    };
    let instances = input["instances"].as_array().unwrap();
    let ids: Vec<&str> = instances.iter().map(|instance| instance["id"].as_str().unwrap()).collect();
    let hosts: Vec<TestHost> = instances.iter().map(host).collect();
    let spec = Arc::new(FilterSpec { stages, ignore_health: false, pick: pick.clone() });
    let cluster = TestCluster::with_hosts(PolicySpec::Filtered(Arc::clone(&spec)), &hosts, &[]);
    let slot_of = |id: &str| cluster.slots[ids.iter().position(|other| *other == id).unwrap()];
    let id_of = |slot: u32| ids[cluster.slots.iter().position(|other| *other == slot).unwrap()];

    let (names, block) = headers(input);
    let view = RequestView {
        method: "GET",
        scheme: "http",
        authority: "",
        path: "/",
        headers: HeaderView::new(&names, &block).unwrap(),
    };
    let local = input["local_hostname"].as_str().unwrap_or("");
    let values = filter_values(&spec, &view, None, local);
    let previous = input["previous"].as_str().map(slot_of);
    let index = cluster.prepared.filters().unwrap();
    let mut codes: Vec<Code> = Vec::new();
    index.codes(&values, previous, None, &mut codes);
    let walked = index.walk(&codes);
    let listed = |list: &[(u32, u32)]| json!(list.iter().map(|(slot, _)| id_of(*slot)).collect::<Vec<_>>());
    match pick {
        FilterPick::Interleave => {
            assert_eq!(
                listed(&super::interleave(&walked.candidates, &cluster.arena)),
                expected("candidates")
            );
        }
        _ => assert_eq!(listed(&walked.candidates), expected("candidates"), "{name}"),
    }
    if case["expect"].get("eligible").is_some() {
        assert_eq!(listed(&index.eligible(&walked.candidates)), expected("eligible"), "{name}");
    }

    let view = View {
        policy: &cluster.policy,
        sets: &cluster.sets,
        prepared: &cluster.prepared,
        hosts: &cluster.arena,
        since: Time(0),
    };
    let mut policy = Filtered::new(view, &mut Source::Draws(Draws::default()), Time(0));
    policy.position = input["round_robin_seed"].as_u64().unwrap_or(0) as u32;
    let draws = input["draws"].as_array().cloned();
    let picks = draws.as_ref().map_or_else(|| input["picks"].as_u64().unwrap_or(1) as usize, Vec::len);
    let (mut chosen, mut warnings) = (Vec::new(), Vec::new());
    for pick in 0..picks {
        let words = draws.as_ref().map_or_else(Vec::new, |draws| vec![word(&draws[pick])]);
        let call = FilterCall::new(&values, previous);
        let mut random = Source::Draws(Draws::new(words));
        let mut selection = Selection {
            overrides: None,
            hash: None,
            criteria: None,
            filters: Some(&call),
            random: &mut random,
            now: Time(0),
            candidates: 1,
            reject: None,
            cluster_active: 0,
            load: None,
            counters: &cluster.counters,
            priority: 0,
            panic: false,
            degraded: false,
        };
        chosen.push(policy.choose(view, &mut selection).map(id_of));
        assert!(!selection.panic, "{name}");
        if let Some(told) = call.told.take() {
            warnings.extend(told.warnings.into_iter().map(|warning| warning.code));
        }
    }
    if case["expect"].get("chosen").is_some() {
        assert_eq!(json!(chosen), expected("chosen"), "{name}");
    }
    // Weights are judged where instance lists are read.
    let told = expected("warnings");
    let told: Vec<&str> = told
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .filter(|code| *code != "W-BAD-WEIGHT")
        .collect();
    assert_eq!(warnings, told, "{name}");
}
