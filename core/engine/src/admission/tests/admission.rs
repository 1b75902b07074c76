use crate::admission::control::{Control, Rules, Window, is_success, rejects};
use crate::admission::overlay::Overlay;
use crate::clock::Time;
use crate::inspect::{refusal_body, refusal_details};
use crate::outcome::refusal;
use crate::random::Draws;
use crate::spec::{AdmissionSpec, Switch, Tunable, Value};
use serde_json::Value as Json;

const MILLI: u64 = 1_000_000;

fn rules(given: &Json) -> Rules {
    let number = |name: &str| given[name].as_f64().unwrap();
    Rules {
        enabled: true,
        aggression: number("aggression"),
        threshold: number("sr_threshold"),
        rps_threshold: 0,
        max_rejection: number("max_rejection_probability"),
    }
}

#[test]
fn probability() {
    let file = "concurrency/admission_probability.json";
    for (id, case) in nexthop_vectors::chosen(file, 26, |_| true) {
        let (given, expect) = (&case["given"], &case["expect"]);
        let counts = || (given["requests"].as_u64().unwrap(), given["successes"].as_u64().unwrap());
        if id.starts_with("prob-") {
            let (n, s) = counts();
            let found = rules(given).probability(n, s);
            assert!((found - expect["probability"].as_f64().unwrap()).abs() < 1e-9, "{id}: {found}");
        } else if id.starts_with("draw-") {
            let word = given["random"].as_u64().unwrap();
            let found = rejects(given["probability"].as_f64().unwrap(), word);
            assert_eq!(found, expect["reject"].as_bool().unwrap(), "{id}");
        } else {
            match &*id {
                "perfect-success-with-aggression-2-never-rejects" => {
                    let (n, s) = counts();
                    let rejected =
                        (0..n).filter(|word| rejects(rules(given).probability(n, s), *word)).count();
                    assert_eq!(rejected as u64, expect["rejected_of_300"].as_u64().unwrap());
                }
                "below-rps-threshold-is-forwarded-and-still-recorded" => {
                    let threshold = given["rps_threshold"].as_f64().unwrap();
                    let spec =
                        AdmissionSpec { rps_threshold: Tunable::of(threshold), ..AdmissionSpec::default() };
                    let control = Control::new(&spec, &Overlay::new(&[]));
                    let (n, s) = counts();
                    (0..n).for_each(|at| control.record(at < s, Time(0)));
                    let rejected = control.admit(Time(0), &mut Draws::default()).is_none();
                    assert_eq!(rejected, expect["reject"].as_bool().unwrap());
                    assert_eq!(control.admit(Time(0), &mut Draws::default()), expect["recorded"].as_bool());
                }
                "rejected-requests-are-not-recorded" => shares(given, expect),
                "reject-response" => {
                    assert_eq!(expect["body"], refusal_body(refusal::ADMISSION));
                    assert_eq!(expect["details"], refusal_details(refusal::ADMISSION));
                    // Status and headers: `requests::rejected`.
                    assert_eq!(expect["status"], 503);
                }
                other => panic!("no test for {other}"),
            }
        }
    }
}

/// 300 successes, then failures alone: every request is either a failure or rejected.
fn shares(given: &Json, expect: &Json) {
    assert_eq!((&given["aggression"], &given["sampling_window"]), (&Json::from(1.0), &Json::from("4s")));
    let spec =
        AdmissionSpec { sampling_window: std::time::Duration::from_secs(4), ..AdmissionSpec::default() };
    let control = Control::new(&spec, &Overlay::new(&[]));
    let mut words = crate::random::Xoshiro256::seeded(3, 1);
    let mut send = |good: bool| {
        if control.admit(Time(0), &mut words).is_some() {
            control.record(good, Time(0));
        }
    };
    (0..300).for_each(|_| send(true));
    (0..300).for_each(|_| send(false));
    use crate::sync::atomic::Ordering::Relaxed;
    let [rejected, good, bad] =
        [&control.rejected, &control.succeeded, &control.failed].map(|count| count.load(Relaxed));
    assert_eq!(good, expect["rq_success"].as_u64().unwrap());
    assert_eq!(bad + rejected, expect["sum_of_rq_failure_and_rq_rejected"].as_u64().unwrap());
    let measured = expect["measured"]["rq_failure"].as_u64().unwrap();
    // Random by design: some standard errors around one run.
    assert!(bad.abs_diff(measured) < 30, "{bad} of about {measured}");
}

#[test]
fn window() {
    let file = "concurrency/admission_window.json";
    for (id, case) in nexthop_vectors::chosen(file, 5, |_| true) {
        let given = &case["given"];
        let mut window = Window::new(given["sampling_window_s"].as_u64().unwrap());
        let mut now = Time(0);
        let ops = given["ops"].as_array().unwrap();
        let wanted = case["expect"]["results"].as_array().unwrap();
        assert_eq!(ops.len(), wanted.len());
        for (at, (op, wanted)) in ops.iter().zip(wanted).enumerate() {
            let found = match op[0].as_str().unwrap() {
                "record" => {
                    window.record(op[1] == "success", now);
                    Json::Null
                }
                "advance_ms" => {
                    now = now.plus(op[1].as_u64().unwrap() * MILLI);
                    Json::Null
                }
                "counts" => {
                    let (requests, successes) = window.counts(now);
                    serde_json::json!([requests, successes])
                }
                "average_rps" => window.average_rps(now).into(),
                other => panic!("no {other}"),
            };
            assert_eq!(found, *wanted, "{id}, op {at}");
        }
    }
}

/// Whether a document is accepted is a matter of the faces.
#[test]
fn criteria() {
    let file = "concurrency/admission_criteria.json";
    let is_document = |id: &str| id.starts_with("accept-") || id.starts_with("reject-");
    for (id, case) in nexthop_vectors::chosen(file, 4, |id| !is_document(id)) {
        let (given, expect) = (&case["given"], &case["expect"]);
        let list = |name: &str| -> Vec<u16> {
            let list = expect[name].as_array().into_iter().flatten();
            list.map(|code| code.as_u64().unwrap() as u16).collect()
        };
        let spec = match &*id {
            "default-http" | "default-grpc" => AdmissionSpec::default(),
            "http-ranges" => AdmissionSpec {
                http_success: Some(serde_json::from_value(given["http_success_status"].clone()).unwrap()),
                ..AdmissionSpec::default()
            },
            "grpc-codes" => AdmissionSpec {
                grpc_success: serde_json::from_value(given["grpc_success_status"].clone()).unwrap(),
                ..AdmissionSpec::default()
            },
            other => panic!("no test for {other}"),
        };
        match &*id {
            "default-http" => {
                assert_eq!(
                    (&expect["http_success"], &expect["http_failure"]),
                    (&"200..499".into(), &"500..599".into())
                );
                assert!((200..=499).all(|status| is_success(&spec, status, None)));
                assert!((500..=599).all(|status| !is_success(&spec, status, None)));
            }
            "http-ranges" => {
                assert!(list("success").iter().all(|status| is_success(&spec, *status, None)));
                assert!(list("failure").iter().all(|status| !is_success(&spec, *status, None)));
            }
            "default-grpc" => {
                assert!(list("grpc_success").iter().all(|code| is_success(&spec, 503, Some(*code as u8))));
                assert!(list("grpc_failure").iter().all(|code| !is_success(&spec, 200, Some(*code as u8))));
            }
            _ => {
                assert!(list("success").iter().all(|code| is_success(&spec, 503, Some(*code as u8))));
                assert!(list("failure").iter().all(|code| !is_success(&spec, 200, Some(*code as u8))));
            }
        }
    }
}

#[test]
fn runtime_values_replace_settings() {
    let spec = AdmissionSpec {
        enabled: Switch { on: true, key: "e".into() },
        aggression: Tunable { value: 1.0, key: "a".into() },
        sr_threshold: Tunable { value: 95.0, key: "s".into() },
        rps_threshold: Tunable { value: 5.0, key: "r".into() },
        ..AdmissionSpec::default()
    };
    let rules = |values: &[(&str, Value)]| {
        let values: Vec<_> = values.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        Rules::new(&spec, &Overlay::new(&values))
    };
    let plain = rules(&[]);
    assert_eq!((plain.enabled, plain.aggression, plain.threshold, plain.rps_threshold), (true, 1.0, 0.95, 5));
    let other = rules(&[
        ("e", Value::Bool(false)),
        ("a", Value::Number(2.5)),
        ("s", Value::String("50".into())),
        ("r", Value::Number(7.0)),
    ]);
    assert_eq!((other.enabled, other.aggression, other.threshold, other.rps_threshold), (false, 2.5, 0.5, 7));
    let odd = rules(&[
        ("e", Value::Number(0.0)),
        ("a", Value::Number(0.2)),
        ("s", Value::Number(101.0)),
        ("r", Value::Number(7.5)),
    ]);
    assert_eq!((odd.enabled, odd.aggression, odd.threshold, odd.rps_threshold), (true, 1.0, 0.95, 5));
    // A threshold of 0 divides by nothing: no request is rejected for it.
    let zero = rules(&[("s", Value::Number(0.0))]);
    assert_eq!((zero.probability(100, 100), zero.probability(100, 0)), (0.0, 0.0));
}
