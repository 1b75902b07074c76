//! Admission control and adaptive concurrency: HTTP filters and blocks. What is refused here, a real Envoy refuses
//! in a filter.

use nexthop_config::{ConfigError, Dialect, Loaded, Source, load};
use nexthop_engine::spec::{AdmissionSpec, ConcurrencySpec, GateSpec, MinRtt, Switch, Tunable};
use std::time::Duration;

fn read(text: &str) -> Result<Loaded, ConfigError> {
    load(&[Source { name: "t.yaml", text: text.as_bytes(), dialect: Dialect::Auto }])
}

/// A bootstrap whose connection manager has these HTTP filters.
fn filters(list: &str) -> Result<Loaded, ConfigError> {
    read(&format!(
        "static_resources:\n  listeners:\n  - name: l\n    filter_chains:\n    - filters:\n      - name: h\n        typed_config:\n          \
         \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager\n          \
         stat_prefix: ingress\n          \
         route_config: {{virtual_hosts: [{{name: v, domains: ['*'], routes: [{{match: {{prefix: /}}, direct_response: {{status: 200}}}}]}}]}}\n          \
         http_filters: [{list}]\n"
    ))
}

fn filter(kind: &str, fields: &str) -> String {
    let lower = if kind == "AdmissionControl" { "admission_control" } else { "adaptive_concurrency" };
    let url = format!("type.googleapis.com/envoy.extensions.filters.http.{lower}.v3.{kind}");
    format!("{{name: f, typed_config: {{\"@type\": {url}, {fields}}}}}")
}

fn admission(fields: &str) -> Result<AdmissionSpec, ConfigError> {
    let loaded = filters(&filter("AdmissionControl", fields))?;
    match &loaded.specs.route_tables[0].gates[..] {
        [GateSpec::Admission(spec)] => Ok(spec.clone()),
        other => panic!("{other:?}"),
    }
}

const CRITERIA: &str = "success_criteria: {}";
const INTERVAL: &str = "concurrency_limit_params: {concurrency_update_interval: 0.1s}";

fn concurrency(gradient: &str, more: &str) -> Result<ConcurrencySpec, ConfigError> {
    let fields = format!("gradient_controller_config: {{{gradient}}}, {more}");
    let loaded = filters(&filter("AdaptiveConcurrency", &fields))?;
    match &loaded.specs.route_tables[0].gates[..] {
        [GateSpec::Concurrency(spec)] => Ok(spec.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_field_of_admission_control() {
    assert_eq!(admission(CRITERIA).unwrap(), AdmissionSpec::default());
    let fields = "enabled: {default_value: false, runtime_key: sw}, sampling_window: 10.9s, \
        success_criteria: {http_criteria: {http_success_status: [{start: 200, end: 300}, {start: 404, end: 405}]}, \
        grpc_criteria: {grpc_success_status: [0, 5]}}, aggression: {default_value: 1.5, runtime_key: a}, \
        sr_threshold: {default_value: {value: 90}, runtime_key: s}, rps_threshold: {default_value: 7}, \
        max_rejection_probability: {default_value: {value: 50}, runtime_key: m}";
    let tunable = |value, key: &str| Tunable { value, key: key.into() };
    let wanted = AdmissionSpec {
        enabled: Switch { on: false, key: "sw".into() },
        http_success: Some(vec![(200, 300), (404, 405)]),
        grpc_success: vec![0, 5],
        sampling_window: Duration::from_millis(10_900),
        aggression: tunable(1.5, "a"),
        sr_threshold: tunable(90.0, "s"),
        rps_threshold: Tunable::of(7.0),
        max_rejection_probability: tunable(50.0, "m"),
        dry_run: false,
    };
    assert_eq!(admission(fields).unwrap(), wanted);
}

#[test]
fn what_admission_control_refuses() {
    for fields in [
        "",
        "success_criteria: {http_criteria: {}}",
        "success_criteria: {grpc_criteria: {}}",
        "success_criteria: {http_criteria: {http_success_status: [{start: 600, end: 600}]}}",
        "success_criteria: {http_criteria: {http_success_status: [{start: 500, end: 601}]}}",
        "success_criteria: {http_criteria: {http_success_status: [{start: 99, end: 200}]}}",
        "success_criteria: {http_criteria: {http_success_status: [{start: 300, end: 200}]}}",
        "success_criteria: {grpc_criteria: {grpc_success_status: [17]}}",
        "success_criteria: {}, sr_threshold: {}",
        "success_criteria: {}, sr_threshold: {default_value: {value: 0.5}}",
        "success_criteria: {}, sr_threshold: {default_value: {value: 101}}",
        "success_criteria: {}, enabled: {runtime_key: sw}",
        "success_criteria: {}, sampling_window: -1s",
        "success_criteria: {}, nothing: 1",
    ] {
        assert!(admission(fields).is_err(), "{fields}");
    }
    for fields in [
        "success_criteria: {http_criteria: {http_success_status: [{start: 599, end: 599}]}}",
        "success_criteria: {}, sr_threshold: {default_value: {value: 1}}",
        "success_criteria: {}, aggression: {runtime_key: a}",
        "success_criteria: {}, max_rejection_probability: {default_value: {value: 0}}",
    ] {
        assert!(admission(fields).is_ok(), "{fields}");
    }
}

/// A dry run is of a cluster's own gates alone: Envoy's filters have none.
#[test]
fn dry_runs_of_a_clusters_own_gates() {
    let filter = admission(&format!("{CRITERIA}, dry_run: true")).unwrap_err();
    assert!(filter.to_string().contains("dry_run"), "{filter}");
    let measure = format!("{INTERVAL}, min_rtt_calc_params: {{interval: 30s}}");
    assert!(concurrency(&measure, "dry_run: true").is_err());
    let block = format!(
        "clusters: {{web: {{hosts: [10.0.0.1:80], nexthop: {{admission: {{dry_run: true}}, \
         concurrency: {{gradient_controller_config: {{{measure}}}, dry_run: true}}}}}}}}"
    );
    let loaded = crate::read(&block).unwrap();
    let cluster = &loaded.specs.clusters[0];
    assert!(cluster.admission.as_ref().unwrap().dry_run && cluster.concurrency.as_ref().unwrap().dry_run);
}

#[test]
fn every_field_of_adaptive_concurrency() {
    let plain = concurrency(&format!("{INTERVAL}, min_rtt_calc_params: {{interval: 30s}}"), "").unwrap();
    let tenth = Duration::from_millis(100);
    assert_eq!(plain, ConcurrencySpec::new(tenth, MinRtt::Measured(Duration::from_secs(30))));
    let gradient = "sample_aggregate_percentile: {value: 90}, \
        concurrency_limit_params: {max_concurrency_limit: 60, concurrency_update_interval: 0.1s, min_concurrency_limit: 80}, \
        min_rtt_calc_params: {interval: 30s, request_count: 9, jitter: {value: 1}, min_concurrency: 5, buffer: {value: 2}, \
        fixed_value: 0.05s}";
    let more = "enabled: {default_value: true, runtime_key: sw}, concurrency_limit_exceeded_status: {code: TooManyRequests}";
    let wanted = ConcurrencySpec {
        enabled: Switch { on: true, key: "sw".into() },
        exceeded_status: 429,
        percentile: 90.0,
        max_limit: 60,
        min_limit: Some(80),
        request_count: 9,
        jitter: 1.0,
        min_concurrency: 5,
        buffer: 2.0,
        ..ConcurrencySpec::new(tenth, MinRtt::Fixed(Duration::from_millis(50)))
    };
    assert_eq!(concurrency(gradient, more).unwrap(), wanted);
    let measure = format!("{INTERVAL}, min_rtt_calc_params: {{interval: 30s}}");
    let status = |code: &str| {
        let more = format!("concurrency_limit_exceeded_status: {{code: {code}}}");
        concurrency(&measure, &more).map(|spec| spec.exceeded_status)
    };
    assert_eq!((status("200").unwrap(), status("511").unwrap()), (503, 511), "a refusal is no success");
    for code in ["0", "420", "700"] {
        assert!(status(code).is_err(), "{code}");
    }
    // What is cut to 0 ms is not given.
    let tiny = format!("{INTERVAL}, min_rtt_calc_params: {{interval: 1s, fixed_value: 0.0005s}}");
    assert_eq!(concurrency(&tiny, "").unwrap().min_rtt, MinRtt::Measured(Duration::from_secs(1)));
}

#[test]
fn what_adaptive_concurrency_refuses() {
    for gradient in [
        "",
        INTERVAL,
        "min_rtt_calc_params: {interval: 30s}",
        "concurrency_limit_params: {}, min_rtt_calc_params: {interval: 30s}",
        "concurrency_limit_params: {concurrency_update_interval: 0s}, min_rtt_calc_params: {interval: 30s}",
        "concurrency_limit_params: {concurrency_update_interval: 1s, max_concurrency_limit: 0}, min_rtt_calc_params: {interval: 30s}",
        "concurrency_limit_params: {concurrency_update_interval: 1s, min_concurrency_limit: 0}, min_rtt_calc_params: {interval: 30s}",
        "concurrency_limit_params: {concurrency_update_interval: 1s}, min_rtt_calc_params: {}",
        "concurrency_limit_params: {concurrency_update_interval: 1s}, min_rtt_calc_params: {interval: 0.0005s, fixed_value: 1s}",
        "concurrency_limit_params: {concurrency_update_interval: 1s}, min_rtt_calc_params: {fixed_value: 0s}",
        "concurrency_limit_params: {concurrency_update_interval: 1s}, min_rtt_calc_params: {fixed_value: 0.0005s}",
        "concurrency_limit_params: {concurrency_update_interval: 1s}, min_rtt_calc_params: {interval: 1s, request_count: 0}",
        "concurrency_limit_params: {concurrency_update_interval: 1s}, min_rtt_calc_params: {interval: 1s, min_concurrency: 0}",
        "concurrency_limit_params: {concurrency_update_interval: 1s}, min_rtt_calc_params: {interval: 1s, jitter: {value: 101}}",
    ] {
        assert!(concurrency(gradient, "").is_err(), "{gradient}");
    }
}

#[test]
fn filters_keep_their_order_and_a_disabled_one_is_told() {
    let measure =
        format!("gradient_controller_config: {{{INTERVAL}, min_rtt_calc_params: {{interval: 30s}}}}");
    let both =
        format!("{}, {}", filter("AdaptiveConcurrency", &measure), filter("AdmissionControl", CRITERIA));
    let table = &filters(&both).unwrap().specs.route_tables[0];
    assert_eq!(table.stat_prefix, "ingress");
    assert!(matches!(table.gates[..], [GateSpec::Concurrency(_), GateSpec::Admission(_)]));
    let off = filter("AdmissionControl", CRITERIA).replacen("name: f", "name: f, disabled: true", 1);
    let loaded = filters(&off).unwrap();
    assert!(loaded.specs.route_tables[0].gates.is_empty());
    assert!(loaded.report.entries.iter().any(|entry| entry.text.contains("disabled")));
}

#[test]
fn blocks_of_clusters_and_their_defaults() {
    let text = "nexthop: {defaults: {admission: {sampling_window: 5s}}}\n\
        clusters:\n  a: {hosts: [10.0.0.1:80]}\n  b: {hosts: [10.0.0.2:80], nexthop: {admission: {sampling_window: 9s}, \
        concurrency: {gradient_controller_config: {concurrency_limit_params: {concurrency_update_interval: 1s}, \
        min_rtt_calc_params: {fixed_value: 1s}}}}}\n";
    let clusters = read(text).unwrap().specs.clusters;
    let window = |at: usize| clusters[at].admission.as_ref().map(|spec| spec.sampling_window.as_secs());
    assert_eq!((window(0), window(1)), (Some(5), Some(9)));
    assert_eq!(clusters[0].concurrency, None);
    let own = clusters[1].concurrency.as_ref().unwrap();
    assert_eq!(own.min_rtt, MinRtt::Fixed(Duration::from_secs(1)));
    let bad = "clusters: {a: {hosts: [10.0.0.1:80], nexthop: {admission: {agression: {default_value: 2}}}}}";
    let error = read(bad).unwrap_err();
    assert!(error.to_string().contains("aggression"), "the nearest name is told: {error}");
}
