//! Single facts: tables, lines, thresholds, runtime values, and what the scripts leave out.

use super::bench::Bench;
use crate::headers::HeaderView;
use crate::outlier::errors::Errors;
use crate::outlier::*;
use crate::spec::{ErrorMatch, HeaderMatch, OutlierSpec, StringMatch, Value as Meta};
use nexthop_vectors::cases;
use serde_json::Value;
use std::time::Duration;

#[test]
fn success_rate_threshold() {
    for case in cases("outlier/success_rate_threshold.json", 7) {
        let given = &case["given"];
        let rates: Vec<f64> =
            given["success_rates"].as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap()).collect();
        let factor = given["success_rate_stdev_factor"].as_u64().unwrap() as u32;
        let (mean, threshold) = sweep::threshold(&rates, factor);
        let wanted = |key: &str| case["expect"][key].as_f64().unwrap();
        // The file gives at most nine decimals.
        assert!((mean - wanted("average")).abs() < 1e-9, "{case}: {mean}");
        assert!((threshold - wanted("threshold")).abs() < 1e-9, "{case}: {threshold}");
    }
}

#[test]
fn error_matcher() {
    for case in cases("outlier/error_matcher.json", 5) {
        let given = &case["given"];
        let matcher = &given["error_matcher"];
        let text = |key: &str| matcher[key].as_str().unwrap().to_owned();
        let spec = ErrorMatch::Headers(vec![header(&text("header"), &text("exact"))]);
        let status = given["status"].as_u64().unwrap() as u16;
        let code = Errors::compile(&spec).unwrap().code(status, HeaderView::EMPTY);
        assert_eq!(u64::from(code), case["expect"]["code_reported"].as_u64().unwrap(), "{case}");
    }
}

fn header(name: &str, exact: &str) -> HeaderMatch {
    HeaderMatch {
        name: name.into(),
        value: StringMatch::Exact(exact.into(), false),
        invert: false,
        treat_missing_as_empty: false,
    }
}

#[test]
fn error_predicates_combine() {
    let is = |status: &str| ErrorMatch::Headers(vec![header(":status", status)]);
    let code = |spec: ErrorMatch| Errors::compile(&spec).unwrap().code(404, HeaderView::EMPTY);
    assert_eq!(code(ErrorMatch::Any), 500);
    assert_eq!(code(ErrorMatch::Never), 200);
    assert_eq!(code(ErrorMatch::Or(vec![is("403"), is("404")])), 500);
    assert_eq!(code(ErrorMatch::And(vec![is("404"), ErrorMatch::Never])), 200);
    assert_eq!(code(ErrorMatch::Not(Box::new(is("403")))), 500);
    assert_eq!(code(ErrorMatch::Headers(Vec::new())), 500, "no condition is none that fails");
    let names: Vec<Box<str>> = vec!["x-error".into()];
    let block = [0, 0, 0, 0, 1, 0, 0, 0, b'1'];
    let view = HeaderView::new(&names, &block).unwrap();
    let by_header = ErrorMatch::Headers(vec![header("x-error", "1")]);
    assert_eq!(Errors::compile(&by_header).unwrap().code(200, view), 500);
    let mut wanted = Vec::new();
    let both = ErrorMatch::Or(vec![by_header, is("404")]);
    Rules::wanted_headers(
        &OutlierSpec { detect_degraded_hosts: true, error_matcher: Some(both), ..OutlierSpec::default() },
        &mut |name| wanted.push(name.to_owned()),
    );
    assert_eq!(wanted, ["x-envoy-degraded", "x-error"]);
}

#[test]
fn grpc_to_http() {
    for case in cases("outlier/grpc_to_http.json", 18) {
        let status = case["given"]["grpc_status"].as_u64().unwrap() as u8;
        let code = crate::request::grpc_to_http(status);
        assert_eq!(u64::from(code), case["expect"]["http_status"].as_u64().unwrap(), "{case}");
    }
    assert_eq!(crate::request::grpc_to_http(u8::MAX), 500);
}

#[test]
fn event_log() {
    for case in cases("outlier/event_log.json", 8) {
        let given = &case["given"];
        let rate = |key: &str| given[key].as_f64().unwrap_or(-1.0);
        let eject = given["action"] == "EJECT";
        let (event, since) = if eject {
            let kinds = [
                Kind::Consecutive5xx,
                Kind::ConsecutiveGatewayFailure,
                Kind::SuccessRate,
                Kind::ConsecutiveLocalOriginFailure,
                Kind::LocalOriginSuccessRate,
                Kind::FailurePercentage,
                Kind::LocalOriginFailurePercentage,
                Kind::Degraded,
            ];
            let kind = kinds.into_iter().find(|kind| given["type"] == kind.name()).unwrap();
            let rates = Rates {
                host: rate("host_success_rate"),
                average: rate("average"),
                threshold: rate("threshold"),
            };
            (Event::Eject(kind, rates), "secs_since_last_unejection")
        } else {
            (Event::Uneject, "secs_since_last_ejection")
        };
        let record = Record {
            event,
            num_ejections: given["num_ejections"].as_u64().unwrap() as u32,
            enforced: given["enforced"].as_bool().unwrap_or(false),
            secs_since_last_action: given[since].as_u64(),
        };
        let text = |key: &str| given[key].as_str().unwrap();
        let unix = unix_nanos(text("timestamp"));
        let line = line(&record, text("cluster_name"), text("upstream_url"), unix);
        assert_eq!(line, case["expect"]["line"].as_str().unwrap());
    }
}

/// Of `2018-12-18T09:00:00Z` or with three decimals; days by counting.
fn unix_nanos(text: &str) -> u64 {
    let number = |range: std::ops::Range<usize>| text[range].parse::<u64>().unwrap();
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let mut days = (1970..year).map(|year| if leap(year) { 366 } else { 365 }).sum::<u64>() + day - 1;
    for month in 1..month {
        days += match month {
            2 => 28 + u64::from(leap(year)),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
    }
    let seconds = days * 86_400 + number(11..13) * 3600 + number(14..16) * 60 + number(17..19);
    let millis = if text.len() > 20 { number(20..23) } else { 0 };
    (seconds * 1000 + millis) * 1_000_000
}

fn overrides(values: &[(&str, f64)]) -> Overrides {
    let list: Vec<_> = values.iter().map(|(key, value)| ((*key).to_owned(), Meta::Number(*value))).collect();
    Overrides::read(&list)
}

#[test]
fn runtime() {
    let all = cases("outlier/runtime.json", 4);
    let [lowered, raised, enforcing, clamped] = &all[..] else { panic!("four cases") };
    let number = |value: &Value| value.as_u64().unwrap() as u32;
    let detected = "ejections_detected_consecutive_5xx";

    let mut spec = OutlierSpec {
        consecutive_5xx: number(&lowered["given"]["consecutive_5xx"]),
        max_ejection_percent: 100,
        ..OutlierSpec::default()
    };
    let mut bench = Bench::new(&["a"], &spec);
    let fail = |bench: &mut Bench, times: &Value| {
        for _ in 0..times.as_u64().unwrap() {
            bench.tell("a", Told::ExtFailed, Some(500), 0);
        }
    };
    for case in [lowered, raised] {
        let given = &case["given"];
        if case == lowered {
            fail(&mut bench, &given["failures_so_far"]);
        }
        let slot = bench.slot("a");
        assert_eq!(bench.hosts.tally(slot).consecutive_5xx.load(Relaxed), number(&given["failures_so_far"]));
        let threshold = given["then_runtime"]["outlier_detection.consecutive_5xx"].as_f64().unwrap();
        bench.rules =
            bench.rules.again(&spec, &overrides(&[("outlier_detection.consecutive_5xx", threshold)]));
        fail(&mut bench, &given["further_failures"]);
        assert_eq!(bench.counter(detected), case["expect"][detected].as_u64().unwrap(), "{case}");
    }

    let given = &enforcing["given"];
    spec.consecutive_5xx = number(&given["consecutive_5xx"]);
    spec.enforcing_consecutive_5xx = number(&given["enforcing_consecutive_5xx"]);
    let mut bench = Bench::new(&["a"], &spec);
    bench.rules =
        bench.rules.again(&spec, &overrides(&[("outlier_detection.enforcing_consecutive_5xx", 0.0)]));
    fail(&mut bench, &given["failures"]);
    for (name, count) in enforcing["expect"].as_object().unwrap() {
        assert_eq!(bench.counter(name), count.as_u64().unwrap(), "{name}");
    }

    let given = &clamped["given"];
    spec = OutlierSpec {
        max_ejection_percent: number(&given["max_ejection_percent"]),
        ..OutlierSpec::default()
    };
    let mut bench = Bench::new(&["a", "b", "c"], &spec);
    let percent = given["runtime"]["outlier_detection.max_ejection_percent"].as_f64().unwrap();
    bench.rules =
        bench.rules.again(&spec, &overrides(&[("outlier_detection.max_ejection_percent", percent)]));
    for name in ["a", "b", "c"] {
        for _ in 0..5 {
            bench.tell(name, Told::ExtFailed, Some(500), 0);
        }
    }
    assert_eq!(bench.ejected().len() as u64, clamped["expect"]["ejected"].as_u64().unwrap());
}

/// The rows that no HTTP request of ours brings about; all others are replayed through requests.
#[test]
fn outcomes_without_a_request() {
    let all = nexthop_vectors::read("outlier/outcome_mapping.json", 28);
    let mut seen = 0;
    for case in &all.list {
        let results: &[(Told, Option<u16>)] = match case["id"].as_str().unwrap() {
            "tcp-connect-ok" => &[(Told::LocalConnectSuccessFinal, None)],
            "tcp-connect-refused" => &[(Told::LocalConnectFailed, None)],
            "timeout-with-alternate-204" => {
                &[(Told::LocalConnectSuccess, None), (Told::LocalTimeout, Some(204))]
            }
            _ => continue,
        };
        seen += 1;
        for (mode, split) in [("split_false", false), ("split_true", true)] {
            let expect = &case["expect"][mode];
            let spec = OutlierSpec {
                split_external_local_origin_errors: split,
                success_rate_minimum_hosts: 0,
                success_rate_request_volume: 0,
                ..OutlierSpec::default()
            };
            let mut bench = Bench::new(&["a"], &spec);
            let slot = bench.slot("a");
            let tally = bench.hosts.tally(slot);
            let counters = [
                ("consecutive_5xx", &tally.consecutive_5xx),
                ("consecutive_gateway_failure", &tally.consecutive_gateway),
                ("consecutive_local_origin_failure", &bench.hosts.passive(slot).consecutive_local),
            ];
            for (_, counter) in counters {
                counter.store(2, Relaxed);
            }
            bench.hosts.facts(slot).fails();
            for (told, code) in results {
                tell(&bench.rules, &bench.hosts, slot, *told, *code, false);
            }
            let named = |list: &str, name: &str| expect[list].as_array().unwrap().iter().any(|n| n == name);
            for (name, counter) in counters {
                let wanted = if named("resets", name) { 0 } else { 2 } + u32::from(named("increments", name));
                assert_eq!(counter.load(Relaxed), wanted, "{name}, {mode}, {case}");
            }
            bench.sweep(10_000);
            let sides = [
                (Side::External, "external_success_rate_samples"),
                (Side::Local, "local_success_rate_samples"),
            ];
            for (side, list) in sides {
                let rate = expect[list].as_array().map(|samples| {
                    let good = samples.iter().filter(|sample| *sample == "success").count();
                    100.0 * good as f64 / samples.len() as f64
                });
                assert_eq!(bench.detector.success_rate(slot, side), rate, "{list}, {mode}, {case}");
            }
        }
    }
    assert!(!all.ours || seen == 3, "{seen}");
}

#[test]
fn every_runtime_key_acts() {
    let keys = [
        "consecutive_5xx",
        "interval_ms",
        "base_ejection_time_ms",
        "max_ejection_percent",
        "enforcing_consecutive_5xx",
        "enforcing_success_rate",
        "success_rate_minimum_hosts",
        "success_rate_request_volume",
        "success_rate_stdev_factor",
        "consecutive_gateway_failure",
        "enforcing_consecutive_gateway_failure",
        "consecutive_local_origin_failure",
        "enforcing_consecutive_local_origin_failure",
        "enforcing_local_origin_success_rate",
        "failure_percentage_threshold",
        "enforcing_failure_percentage",
        "enforcing_failure_percentage_local_origin",
        "failure_percentage_minimum_hosts",
        "failure_percentage_request_volume",
        "max_ejection_time_ms",
        "max_ejection_time_jitter_ms",
    ];
    let default = OutlierSpec::default();
    let mut seen = Vec::new();
    for key in keys {
        let rules = Rules::new(&default, &overrides(&[(&format!("outlier_detection.{key}"), 77.0)])).unwrap();
        assert_ne!(rules.spec, default, "{key}");
        assert!(!seen.contains(&rules.spec), "{key} changes what another one does");
        seen.push(rules.spec);
    }
    // The last value of a key counts, and what is no whole number is none.
    let with = |values: &[f64]| {
        let list: Vec<_> = values.iter().map(|value| ("outlier_detection.interval_ms", *value)).collect();
        Rules::new(&default, &overrides(&list)).unwrap().spec.interval
    };
    assert_eq!(with(&[5.0, 7.0]), Duration::from_millis(7));
    assert_eq!(with(&[5.0, 7.5]), default.interval);
    assert_eq!(with(&[-1.0]), default.interval);
    let text = [("outlier_detection.interval_ms".to_owned(), Meta::String("9".into()))];
    assert_eq!(
        Rules::new(&default, &Overrides::read(&text)).unwrap().spec.interval,
        Duration::from_millis(9)
    );
}

#[test]
fn codes_from_600_on_are_successes() {
    let mut bench = Bench::new(&["a"], &OutlierSpec { max_ejection_percent: 100, ..OutlierSpec::default() });
    for _ in 0..4 {
        bench.tell("a", Told::ExtFailed, Some(599), 0);
    }
    bench.tell("a", Told::ExtFailed, Some(600), 0);
    bench.tell("a", Told::ExtFailed, Some(500), 0);
    assert!(bench.ejected().is_empty());
}

#[test]
fn several_missed_intervals_are_one_step_of_decay() {
    let spec = OutlierSpec {
        max_ejection_percent: 100,
        base_ejection_time: Duration::from_secs(1),
        ..OutlierSpec::default()
    };
    let mut bench = Bench::new(&["a"], &spec);
    for round in 0..3 {
        for _ in 0..5 {
            bench.tell("a", Told::ExtFailed, Some(500), round * 100_000);
        }
        bench.sweep(round * 100_000 + 50_000);
    }
    assert_eq!(bench.multiplier("a"), 3);
    bench.sweep(10_000_000);
    assert_eq!(bench.multiplier("a"), 2);
}

#[test]
fn ejection_and_degradation_share_a_jitter() {
    let spec = OutlierSpec {
        max_ejection_percent: 100,
        detect_degraded_hosts: true,
        max_ejection_time_jitter: Duration::from_secs(5),
        ..OutlierSpec::default()
    };
    let mut bench = Bench::new(&["a"], &spec);
    bench.draw(vec![1000, 4000]);
    for _ in 0..5 {
        bench.tell("a", Told::ExtFailed, Some(500), 0);
    }
    bench.tell("a", Told::ExtDegraded, Some(200), 0);
    bench.sweep(33_999);
    assert_eq!(bench.ejected(), ["a"], "the degradation's 4 s count for both");
    bench.sweep(34_000);
    assert!(bench.ejected().is_empty());
    assert!(bench.flagged(flag::DEGRADED_OUTLIER_DETECTION).is_empty());
}

#[test]
fn a_detector_that_is_gone_ejects_nobody() {
    let mut bench = Bench::new(&["a"], &OutlierSpec { max_ejection_percent: 100, ..OutlierSpec::default() });
    bench.detector.clear(&bench.hosts);
    for _ in 0..5 {
        bench.tell("a", Told::ExtFailed, Some(500), 0);
    }
    bench.sweep(60_000);
    assert!(bench.ejected().is_empty());
    assert_eq!(bench.counter("ejections_detected_consecutive_5xx"), 0);
    // Its successor starts from nothing.
    bench.detector.start(&bench.hosts, std::iter::once(bench.slot("a")));
    bench.tell("a", Told::ExtFailed, Some(500), 0);
    assert!(bench.ejected().is_empty());
}

#[test]
fn windows_take_the_hosts_own_count_of_answers() {
    let spec = OutlierSpec {
        max_ejection_percent: 100,
        failure_percentage_minimum_hosts: 1,
        failure_percentage_request_volume: 1,
        ..OutlierSpec::default()
    };
    let mut bench = Bench::new(&["a"], &spec);
    let slot = bench.slot("a");
    // Three answers that the host counts as good; one of them counts as an error here.
    bench.hosts.tally(slot).rq_success.store(3, Relaxed);
    for code in [200, 200, 500] {
        external(&bench.rules, &bench.hosts, slot, code, true);
    }
    // One that the host does not count, and is a success here.
    external(&bench.rules, &bench.hosts, slot, 200, false);
    bench.sweep(10_000);
    assert_eq!(bench.detector.success_rate(slot, Side::External), Some(75.0));
    bench.sweep(20_000);
    assert_eq!(bench.detector.success_rate(slot, Side::External), None, "an empty window");
}

#[test]
fn of_many_threads_exactly_one_meets_a_threshold() {
    let spec = OutlierSpec {
        consecutive_5xx: 10,
        enforcing_consecutive_5xx: 0,
        max_ejection_percent: 100,
        ..OutlierSpec::default()
    };
    let bench = Bench::new(&["a"], &spec);
    let slot = bench.slot("a");
    let (threads, each) = (4_usize, 5_000_usize);
    let met: usize = std::thread::scope(|scope| {
        let run = || {
            let tell = |_: &usize| external(&bench.rules, &bench.hosts, slot, 500, false) != Met::NONE;
            (0..each).filter(tell).count()
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(met, 1, "nobody has reset the counter since");
    let seen = bench.hosts.passive(slot).external_bad.load(Relaxed) as usize;
    assert_eq!(seen, threads * each);
}
