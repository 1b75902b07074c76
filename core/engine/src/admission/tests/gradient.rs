use crate::admission::gradient::{Gradient, Rules, gradient, next_limit};
use crate::admission::overlay::Overlay;
use crate::clock::Time;
use crate::random::Draws;
use crate::spec::{ConcurrencySpec, MinRtt, Value};
use serde_json::Value as Json;
use std::time::Duration;

const MILLI: u64 = 1_000_000;

fn spec() -> ConcurrencySpec {
    ConcurrencySpec::new(Duration::from_millis(100), MinRtt::Measured(Duration::from_secs(30)))
}

fn fixed(ms: u64) -> ConcurrencySpec {
    ConcurrencySpec { min_rtt: MinRtt::Fixed(Duration::from_millis(ms)), ..spec() }
}

/// A controller on a clock of its own.
struct Bench {
    gradient: Gradient,
    now: Time,
    draws: Draws,
}

impl Bench {
    fn new(spec: &ConcurrencySpec) -> Self {
        let runtime = Overlay::new(&[]);
        Self { gradient: Gradient::new(spec, &runtime, Time(0)), now: Time(0), draws: Draws::default() }
    }

    /// One request of this latency, in milliseconds.
    fn request(&mut self, ms: u64) {
        let since = self.now;
        assert_eq!(self.gradient.admit(), Some(true));
        self.now = since.plus(ms * MILLI);
        self.gradient.leave(Some(since), self.now, &mut self.draws);
    }

    /// The same, without that time passes.
    fn sample(&mut self, ms: u64) {
        assert_eq!(self.gradient.admit(), Some(true));
        let since = self.now;
        self.gradient.leave(Some(since), since.plus(ms * MILLI), &mut self.draws);
    }

    /// Time passes up to the next update, whatever else is due before.
    fn update(&mut self) {
        self.now = self.now.plus(100 * MILLI);
        self.gradient.tick(self.now);
    }

    fn limit(&self) -> u32 {
        self.gradient.limit()
    }

    /// As many as pass before one is blocked.
    fn forwarded(&self) -> u64 {
        std::iter::from_fn(|| self.gradient.admit()).count() as u64
    }
}

#[test]
fn limit() {
    let file = "concurrency/gradient_limit.json";
    for (id, case) in nexthop_vectors::chosen(file, 13, |_| true) {
        let (given, expect) = (&case["given"], &case["expect"]);
        let int = |name: &str| given[name].as_u64().unwrap();
        if id.starts_with("trajectory-") {
            let (floor, ceiling) = (int("min_concurrency_limit") as u32, int("max_concurrency_limit") as u32);
            let mut limit = int("start_limit") as u32;
            let gradients = given["gradients"].as_array().unwrap();
            let limits: Vec<u32> = gradients
                .iter()
                .map(|gradient| {
                    limit = next_limit(limit, gradient.as_f64().unwrap(), floor, ceiling).0;
                    limit
                })
                .collect();
            assert_eq!(serde_json::json!(limits), expect["limits"], "{id}");
        } else {
            let buffer = given["buffer"].as_f64().unwrap();
            let found = gradient(int("min_rtt_us"), buffer, int("sample_rtt_us"));
            assert!((found - expect["gradient"].as_f64().unwrap()).abs() < 1e-9, "{id}: {found}");
            assert_eq!((found * 1000.0) as u64, expect["gradient_gauge"].as_u64().unwrap(), "{id}");
            let bounds = (int("min_limit") as u32, int("max_limit") as u32);
            let (next, headroom) = next_limit(int("old_limit") as u32, found, bounds.0, bounds.1);
            assert_eq!(u64::from(next), expect["new_limit"].as_u64().unwrap(), "{id}");
            assert_eq!(headroom, expect["burst_queue_size_gauge"].as_u64().unwrap(), "{id}");
        }
    }
}

/// Whether a document is accepted is a matter of the faces.
#[test]
fn behaviour() {
    let file = "concurrency/gradient_behaviour.json";
    for (id, case) in nexthop_vectors::chosen(file, 15, |id| !id.starts_with("config-")) {
        let (given, expect) = (&case["given"], &case["expect"]);
        let int = |name: &str| given[name].as_u64().unwrap_or_else(|| panic!("{id}: {name}"));
        let wanted = |name: &str| expect[name].as_u64().unwrap();
        match &*id {
            "min-rtt-window" => {
                let spec = ConcurrencySpec {
                    min_concurrency: int("min_concurrency") as u32,
                    request_count: int("request_count") as u32,
                    percentile: int("percentile") as f64,
                    ..spec()
                };
                assert_eq!(u64::from(Bench::new(&spec).limit()), wanted("initial_limit"));
                assert_eq!(Bench::new(&spec).forwarded(), wanted("forwarded_before_first_block"));
                let mut bench = Bench::new(&spec);
                for _ in 1..wanted("window_ends_after_samples") {
                    bench.request(13);
                    assert!(bench.gradient.gauges().measuring);
                }
                bench.request(13);
                let gauges = bench.gradient.gauges();
                let ms = wanted("min_rtt_ms_when_every_sample_is_13ms");
                assert_eq!((gauges.measuring, gauges.min_rtt_ms), (false, ms));
            }
            "fixed-min-rtt" => {
                let spec = ConcurrencySpec {
                    min_concurrency: int("min_concurrency") as u32,
                    ..fixed(int("fixed_value_ms"))
                };
                let bench = Bench::new(&spec);
                let gauges = bench.gradient.gauges();
                assert_eq!(u64::from(gauges.measuring), wanted("min_rtt_calculation_active"));
                assert_eq!(u64::from(bench.limit()), wanted("initial_limit"));
                assert_eq!(gauges.min_rtt_ms, wanted("min_rtt_msecs"));
            }
            "median-of-1-to-5" => {
                let samples = given["samples_ms"].as_array().unwrap();
                let spec = ConcurrencySpec {
                    request_count: int("request_count") as u32,
                    percentile: int("percentile") as f64,
                    ..spec()
                };
                let mut bench = Bench::new(&spec);
                samples.iter().for_each(|ms| bench.request(ms.as_u64().unwrap()));
                assert_eq!(bench.gradient.gauges().min_rtt_ms, wanted("min_rtt_ms"));
            }
            "cancel-frees-a-slot-without-a-sample" => {
                let spec = ConcurrencySpec {
                    min_concurrency: int("min_concurrency") as u32,
                    request_count: 1,
                    ..spec()
                };
                let mut bench = Bench::new(&spec);
                let ops = given["ops"].as_array().unwrap();
                let results: Vec<Json> = ops
                    .iter()
                    .map(|op| match op.as_str().unwrap() {
                        "forward" => match bench.gradient.admit() {
                            Some(true) => "ok".into(),
                            _ => "blocked".into(),
                        },
                        "cancel" => {
                            bench.gradient.leave(None, bench.now, &mut bench.draws);
                            Json::Null
                        }
                        other => panic!("no {other}"),
                    })
                    .collect();
                assert_eq!(Json::Array(results), expect["results"]);
                assert!(bench.gradient.gauges().measuring, "one sample would have ended it");
            }
            "old-requests-are-not-sampled" => old_requests(int("request_count"), int("min_concurrency")),
            "limit-restored-after-window" => {
                let spec = ConcurrencySpec {
                    request_count: int("request_count") as u32,
                    min_concurrency: int("min_concurrency") as u32,
                    min_limit: Some(20),
                    ..spec()
                };
                let limits = window_limits(&spec, 20);
                assert_eq!(u64::from(limits.0), wanted("limit_during_window"));
                assert_eq!(limits.1, 20);
            }
            "no-samples-no-change" => {
                let mut bench = measured(&spec());
                let before = (bench.limit(), bench.gradient.gauges());
                for _ in 0..int("sample_windows_without_samples") {
                    bench.update();
                }
                assert_eq!(u64::from(bench.limit() != before.0), wanted("limit_changes"));
                assert_eq!(bench.gradient.gauges(), before.1);
            }
            "timer-with-jitter" | "timer-without-jitter" => {
                let jitter = int("jitter_percent") as f64;
                let every = Duration::from_millis(int("interval_ms"));
                let update = int("concurrency_update_interval_ms");
                let spec = ConcurrencySpec {
                    jitter,
                    ..ConcurrencySpec::new(Duration::from_millis(update), MinRtt::Measured(every))
                };
                let word = given["random"].as_u64();
                let mut draws = Draws::new(word.into_iter().collect());
                let rules = Rules::new(&spec, &Overlay::new(&[]));
                let pause = rules.pause(int("interval_ms") * MILLI, &mut draws);
                assert_eq!(pause, wanted("next_min_rtt_window_ms") * MILLI);
                assert_eq!(draws.taken() as u64, expect["random_draws"].as_u64().unwrap_or(1));
                assert_eq!(expect["sample_timer_ms"].as_u64().unwrap_or(update), update);
                let bench = measured(&spec);
                assert_eq!(bench.gradient.deadline().since(bench.now), update * MILLI);
            }
            "five-windows-at-the-floor-start-a-measurement" => {
                let mut bench = measured(&spec());
                let updates = int("consecutive_updates_from_floor_to_floor");
                for done in 0..updates {
                    assert!(!bench.gradient.gauges().measuring, "after {done}");
                    // So slow that the limit stays where it is, at the floor.
                    bench.sample(900);
                    bench.update();
                }
                assert!(bench.gradient.gauges().measuring);
                assert_eq!(wanted("min_rtt_window_started_after_ms"), 0);
            }
            "window-limit-when-limit-is-below-min-concurrency"
            | "window-limit-when-limit-is-above-min-concurrency" => {
                let before = int("limit_before_window") as u32;
                let spec = ConcurrencySpec {
                    min_concurrency: int("min_concurrency") as u32,
                    min_limit: Some(int("min_concurrency_limit") as u32),
                    request_count: 5,
                    ..spec()
                };
                let limits = window_limits(&spec, before);
                assert_eq!(u64::from(limits.0), wanted("limit_during_window"));
                assert_eq!(
                    u64::from(limits.1),
                    expect["limit_after_window"].as_u64().unwrap_or_else(|| before.into())
                );
            }
            "floor-above-ceiling" => {
                let spec = ConcurrencySpec {
                    min_limit: Some(int("min_concurrency_limit") as u32),
                    max_limit: int("max_concurrency_limit") as u32,
                    ..fixed(50)
                };
                let mut bench = Bench::new(&spec);
                bench.sample(10);
                bench.update();
                assert_eq!(u64::from(bench.limit()), wanted("limit"));
                assert_eq!(expect["accepted"], true);
            }
            "defaults" => {
                let every = Duration::from_millis(int("interval_ms"));
                let update = Duration::from_millis(int("concurrency_update_interval_ms"));
                let spec = ConcurrencySpec::new(update, MinRtt::Measured(every));
                let rules = Rules::new(&spec, &Overlay::new(&[]));
                assert_eq!(u64::from(rules.max_limit), wanted("max_concurrency_limit"));
                assert_eq!(u64::from(rules.request_count), wanted("request_count"));
                assert_eq!(u64::from(rules.min_concurrency), wanted("min_concurrency"));
                assert_eq!(expect["min_concurrency_limit"], "min_concurrency");
                assert_eq!(rules.min_limit, rules.min_concurrency);
                let shares = ["percentile", "jitter", "buffer"].map(|name| expect[name].as_f64().unwrap());
                assert_eq!([rules.share, rules.jitter, rules.buffer], shares);
            }
            "clamped-percentages" => {
                let percents = given["runtime_percent"].as_array().unwrap();
                for (percent, effective) in percents.iter().zip(expect["effective"].as_array().unwrap()) {
                    let key = |leaf: &str| format!("adaptive_concurrency.gradient_controller.{leaf}");
                    let value = Value::Number(percent.as_f64().unwrap());
                    let leaves = ["jitter", "min_rtt_buffer", "sample_aggregate_percentile"];
                    let values = leaves.map(|leaf| (key(leaf), value.clone()));
                    let rules = Rules::new(&spec(), &Overlay::new(&values));
                    let effective = effective.as_f64().unwrap();
                    assert_eq!([rules.share, rules.jitter, rules.buffer], [effective; 3]);
                }
            }
            other => panic!("no test for {other}"),
        }
    }
}

/// A controller that has measured 10 ms.
fn measured(spec: &ConcurrencySpec) -> Bench {
    let mut bench = Bench::new(spec);
    for _ in 0..spec.request_count {
        bench.request(10);
    }
    assert!(!bench.gradient.gauges().measuring);
    bench
}

/// The limits while and after the second measurement, which begins at limit `before`.
fn window_limits(spec: &ConcurrencySpec, before: u32) -> (u32, u32) {
    let mut bench = measured(spec);
    // Slow answers lead to the floor, and five more of them to a measurement.
    for _ in 0..50 {
        if bench.gradient.gauges().measuring {
            break;
        }
        bench.sample(900);
        bench.update();
    }
    assert!(bench.gradient.gauges().measuring);
    assert_eq!(spec.min_limit, Some(before), "it came from the floor");
    let during = bench.limit();
    for _ in 0..spec.request_count {
        bench.request(10);
    }
    (during, bench.limit())
}

/// What began before a measurement tells nothing about it.
fn old_requests(count: u64, min_concurrency: u64) {
    let spec = ConcurrencySpec {
        request_count: count as u32,
        min_concurrency: min_concurrency as u32,
        min_limit: Some(40),
        ..spec()
    };
    let mut bench = measured(&spec);
    bench.sample(1);
    bench.update();
    assert!(bench.limit() >= 40);
    let since = bench.now;
    for _ in 0..=count {
        assert_eq!(bench.gradient.admit(), Some(true));
    }
    bench.now = bench.now.plus(40_000 * MILLI);
    bench.gradient.tick(bench.now);
    assert!(bench.gradient.gauges().measuring);
    for _ in 0..=count {
        bench.gradient.leave(Some(since), bench.now, &mut bench.draws);
    }
    assert!(bench.gradient.gauges().measuring);
    assert_eq!(bench.gradient.under_way(), 0);
}

/// Every limit of 0 would be the last one: runtime values cannot set one.
#[test]
fn no_runtime_value_stops_everything() {
    let key = |leaf: &str| format!("adaptive_concurrency.gradient_controller.{leaf}");
    let leaves = [
        "min_concurrency",
        "min_concurrency_limit",
        "max_concurrency_limit",
        "min_rtt_aggregate_request_count",
        "sample_rtt_calc_interval_ms",
        "min_rtt_calc_interval_ms",
    ];
    let values = leaves.map(|leaf| (key(leaf), Value::Number(0.0)));
    let runtime = Overlay::new(&values);
    let gradient = Gradient::new(&spec(), &runtime, Time(0));
    assert_eq!(gradient.admit(), Some(true));
    gradient.leave(Some(Time(0)), Time(5 * MILLI), &mut Draws::default());
    gradient.tick(Time(1_000_000 * MILLI));
    assert!(gradient.deadline() > Time(1_000_000 * MILLI) || gradient.gauges().measuring);
    assert!(gradient.limit() >= 1);
}
