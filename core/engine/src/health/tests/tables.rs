//! Pure rules: thresholds, intervals, judging, flags.

use super::flags_of;
use crate::headers::{HeaderView, pack};
use crate::health::delay::{self, Bounds};
use crate::health::session::{Session, interval};
use crate::health::*;
use crate::hosts::{Health, flag};
use crate::random::Draws;
use crate::spec::{HealthCheckSpec, HttpProbe, Probe, StringMatch, Value};
use nexthop_vectors::cases;
use serde_json::Value as Json;
use std::time::Duration;

fn ms(value: &Json) -> Duration {
    Duration::from_millis(value.as_u64().unwrap())
}

fn spec() -> HealthCheckSpec {
    let probe = Probe::Http(Box::new(HttpProbe::get("/")));
    HealthCheckSpec::new(Duration::from_secs(1), Duration::from_secs(1), (2, 2), probe)
}

#[test]
fn state_machine() {
    for case in cases("health/state_machine.json", 18) {
        let given = &case["given"];
        let mut spec = spec();
        for (name, value) in given["config_ms"].as_object().unwrap() {
            let number = || value.as_u64().unwrap() as u32;
            match name.as_str() {
                "interval" => spec.interval = ms(value),
                "unhealthy_interval" => spec.unhealthy_interval = Some(ms(value)),
                "unhealthy_edge_interval" => spec.unhealthy_edge_interval = Some(ms(value)),
                "healthy_edge_interval" => spec.healthy_edge_interval = Some(ms(value)),
                "no_traffic_interval" => spec.no_traffic_interval = ms(value),
                "no_traffic_healthy_interval" => spec.no_traffic_healthy_interval = Some(ms(value)),
                "unhealthy_threshold" => spec.unhealthy_threshold = number(),
                "healthy_threshold" => spec.healthy_threshold = number(),
                other => panic!("no field {other}"),
            }
        }
        let mut session = Session::new(flags_of(&given["initial_flags"]));
        let mut traffic = given["cluster_has_had_traffic"].as_bool().unwrap();
        let steps = given["steps"].as_array().unwrap();
        let expected = case["expect"].as_array().unwrap();
        assert_eq!(steps.len(), expected.len());
        for (at, (step, wanted)) in steps.iter().zip(expected).enumerate() {
            traffic |= step["traffic_started"].as_bool() == Some(true);
            let result = match step["check"].as_str().unwrap() {
                "success" => CheckResult::Success { degraded: step["degraded"].as_bool() == Some(true) },
                "fail_active" => CheckResult::Failed { retriable: false },
                "fail_retriable" => CheckResult::Failed { retriable: true },
                "fail_network" => CheckResult::Network,
                "timeout" => CheckResult::Timeout,
                "passive" => CheckResult::Passive,
                other => panic!("no check {other}"),
            };
            let immediate = step["immediate_fail_header"].as_bool() == Some(true);
            let transition = session.take(&spec, result, immediate);
            let place = format!("{} step {at}", case["id"]);
            let word = match transition {
                Transition::Unchanged => "unchanged",
                Transition::ChangePending => "change_pending",
                Transition::Changed => "changed",
            };
            assert_eq!(word, wanted["transition"].as_str().unwrap(), "{place}");
            assert_eq!(session.flags, flags_of(&wanted["flags"]), "{place}");
            let base = interval(&spec, result, transition, traffic);
            let next = base.map(|base| delay::next(&spec, base, Bounds::default(), &mut Draws::default()));
            assert_eq!(next, wanted["next_check_ms"].as_u64().map(Duration::from_millis), "{place}");
        }
    }
}

#[test]
fn interval_jitter() {
    for case in cases("health/interval_jitter.json", 18) {
        let given = &case["given"];
        let mut spec = spec();
        spec.interval_jitter = Duration::from_millis(given["interval_jitter_ms"].as_u64().unwrap_or(0));
        spec.interval_jitter_percent = given["interval_jitter_percent"].as_u64().unwrap_or(0) as u32;
        let draws = given["random"].as_array();
        let words: Vec<u64> = draws.into_iter().flatten().map(|word| word.as_u64().unwrap()).collect();
        let runtime = given["runtime"].as_object().into_iter().flatten();
        let runtime: Vec<(String, Value)> =
            runtime.map(|(key, value)| (key.clone(), Value::Number(value.as_f64().unwrap()))).collect();
        let mut random = Draws::new(words.clone());
        let next = delay::next(&spec, ms(&given["base_ms"]), Bounds::read(&runtime), &mut random);
        assert_eq!(next, ms(&case["expect"]["delay_ms"]), "{case}");
        assert_eq!(random.taken(), words.len(), "{case}");
    }
}

#[test]
fn the_first_check_is_put_off_by_its_jitter_alone() {
    let mut spec = spec();
    spec.interval_jitter_percent = 50;
    let first =
        |spec: &HealthCheckSpec, word| delay::first(spec, Bounds::default(), &mut Draws::new(vec![word]));
    assert_eq!(first(&spec, 7), None);
    spec.initial_jitter = Duration::from_secs(1);
    assert_eq!(first(&spec, 1999), Some(Duration::from_millis(999)));
    assert_eq!(first(&spec, 1000), Some(Duration::from_millis(1)), "never at once");
    let bounds = |values: &[(&str, f64)]| {
        let list: Vec<_> = values.iter().map(|(k, v)| ((*k).to_owned(), Value::Number(*v))).collect();
        delay::next(&spec, Duration::from_secs(1), Bounds::read(&list), &mut Draws::default())
    };
    // A minimum above the maximum wins.
    let both = [("health_check.max_interval", 500.0), ("health_check.min_interval", 700.0)];
    assert_eq!(bounds(&both), Duration::from_millis(700));
}

#[test]
fn http_result() {
    for case in cases("health/http_result.json", 16) {
        let mut probe = HttpProbe::get("/");
        let ranges = |value: &Json| {
            let pair = |range: &Json| (range[0].as_u64().unwrap() as u16, range[1].as_u64().unwrap() as u16);
            value.as_array().unwrap().iter().map(pair).collect()
        };
        for (name, value) in case["given"]["config"].as_object().unwrap() {
            match name.as_str() {
                "expected_statuses" => probe.expected_statuses = ranges(value),
                "retriable_statuses" => probe.retriable_statuses = ranges(value),
                "receive" => {
                    let blocks = value.as_array().unwrap().iter();
                    probe.receive = blocks.map(|block| block.as_str().unwrap().into()).collect();
                }
                "response_buffer_size" => probe.response_buffer_size = value.as_u64().unwrap(),
                "service_name_matcher" => {
                    let prefix = value["prefix"].as_str().unwrap().to_owned();
                    probe.service_name = Some(StringMatch::Prefix(prefix, false));
                }
                other => panic!("no field {other}"),
            }
        }
        let response = &case["given"]["response"];
        let judged = judge(&probe, response, true);
        let word = match judged.result {
            CheckResult::Success { degraded: true } => "success_degraded",
            CheckResult::Success { degraded: false } => "success",
            CheckResult::Failed { retriable: false } => "fail_active",
            CheckResult::Failed { retriable: true } => "fail_retriable",
            other => panic!("no judgement: {other:?}"),
        };
        assert_eq!(word, case["expect"]["result"].as_str().unwrap(), "{case}");
        assert_eq!(judged.verified, probe.service_name.is_some(), "{case}");
        if probe.service_name.is_some() {
            let unverified = judge(&probe, response, false);
            assert_eq!(unverified.result, CheckResult::Success { degraded: false });
            assert!(!unverified.verified);
        }
    }
}

fn judge(probe: &HttpProbe, response: &Json, verify: bool) -> Judged {
    let names: Vec<Box<str>> = WANTED.map(Box::from).to_vec();
    let mut block = Vec::new();
    for (name, value) in response["headers"].as_object().into_iter().flatten() {
        let at = WANTED.iter().position(|wanted| wanted == name).unwrap();
        pack(&mut block, at as u16, value.as_str().unwrap().as_bytes());
    }
    let headers = HeaderView::new(&names, &block).unwrap();
    let body = response["body"].as_str().unwrap_or("").as_bytes();
    let status = response["status"].as_u64().unwrap() as u16;
    HttpRules::compile(probe).unwrap().judge(probe, status, headers, body, verify)
}

#[test]
fn the_immediate_header_counts_on_failing_answers_alone() {
    let header = |status: u64| {
        let headers = serde_json::json!({"x-envoy-immediate-health-check-fail": ""});
        judge(&HttpProbe::get("/"), &serde_json::json!({"status": status, "headers": headers}), true)
    };
    assert!(header(503).immediate && !header(200).immediate);
    assert!(header(200).result.passed());
    // Not when the service is another one.
    let probe =
        HttpProbe { service_name: Some(StringMatch::Exact("a".into(), false)), ..HttpProbe::get("/") };
    let headers = serde_json::json!({"x-envoy-immediate-health-check-fail": "1"});
    let judged = judge(&probe, &serde_json::json!({"status": 200, "headers": headers}), true);
    assert!(!judged.immediate && !judged.result.passed(), "an absent name is the empty one");
    let body = HttpProbe { receive: vec![b"ok".to_vec()], response_buffer_size: 0, ..HttpProbe::get("/") };
    let long = serde_json::json!({"status": 200, "body": format!("{}ok", "x".repeat(5000))});
    assert!(judge(&body, &long, true).result.passed(), "0 is no limit");
}

#[test]
fn grpc_answers() {
    let frame = |message: &[u8]| {
        let mut frame = vec![0, 0, 0, 0, message.len() as u8];
        frame.extend_from_slice(message);
        frame
    };
    let serving = frame(&[8, 1]);
    assert!(grpc(200, Some(0), &serving).passed());
    // The last value counts, unknown fields of every kind are skipped.
    let odd = [8, 2, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 1, 9, 0x25, 1, 2, 3, 4, 8, 1];
    assert!(grpc(200, Some(0), &frame(&odd)).passed());
    for (status, grpc_status, body) in [
        (503, Some(0), serving.clone()),
        (200, Some(12), serving.clone()),
        (200, None, serving.clone()),
        (200, Some(0), frame(&[8, 2])),
        (200, Some(0), frame(&[])),
        (200, Some(0), Vec::new()),
        (200, Some(0), [serving.clone(), serving.clone()].concat()),
        (200, Some(0), frame(&[8])),
        (200, Some(0), frame(&[0x1a, 200, 1, 1])),
        (200, Some(0), [&[1], &serving[1..]].concat()),
    ] {
        assert_eq!(grpc(status, grpc_status, &body), CheckResult::Failed { retriable: false }, "{body:?}");
    }
    assert_eq!(grpc_question(""), [0, 0, 0, 0, 0]);
    assert_eq!(grpc_question("ab"), [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
    let long = grpc_question(&"x".repeat(300));
    assert_eq!(&long[..8], [0, 0, 0, 1, 47, 0x0a, 0xac, 2]);
}

#[test]
fn blocks_in_order() {
    let blocks = |list: &[&str]| list.iter().map(|block| block.as_bytes().to_vec()).collect::<Vec<_>>();
    assert!(in_order(&blocks(&["a", "b"]), b"xaxb"));
    assert!(!in_order(&blocks(&["a", "b"]), b"ba"));
    assert!(!in_order(&blocks(&["aa", "aa"]), b"aaa"), "each byte counts once");
    assert!(in_order(&[], b"") && in_order(&blocks(&[""]), b"") && !in_order(&blocks(&["a"]), b""));
}

#[test]
fn host_flags() {
    for case in cases("health/host_flags.json", 11) {
        let (given, expect) = (&case["given"], &case["expect"]);
        if let Some(hosts) = given["hosts"].as_array() {
            let all: Vec<u32> = hosts.iter().map(flags_of).collect();
            let at = |test: &dyn Fn(u32) -> bool| -> Vec<usize> {
                (0..all.len()).filter(|i| test(all[*i])).collect()
            };
            let wanted = |key: &str| -> Vec<usize> {
                expect[key].as_array().unwrap().iter().map(|i| i.as_u64().unwrap() as usize).collect()
            };
            assert_eq!(at(&|flags| flag::health(flags) == Health::Healthy), wanted("healthy"));
            assert_eq!(at(&|flags| flag::health(flags) == Health::Degraded), wanted("degraded"));
            assert_eq!(at(&flag::excluded), wanted("excluded"));
            continue;
        }
        let word = match flag::health(flags_of(&given["flags"])) {
            Health::Healthy => "healthy",
            Health::Degraded => "degraded",
            Health::Unhealthy => "unhealthy",
        };
        assert_eq!(word, expect["health"].as_str().unwrap(), "{case}");
    }
}
