//! Recorded verdicts of Envoy 1.40.0 on whole families of fields.

use crate::cluster;
use nexthop_config::ConfigError;
use nexthop_engine::spec::ClusterSpec;
use nexthop_vectors::{cases, read};
use serde_json::{Value, json};

fn with(field: &str, value: &Value) -> Result<ClusterSpec, ConfigError> {
    cluster(&format!("{field}: {value}"))
}

fn verdict(result: Result<ClusterSpec, ConfigError>, case: &Value) -> Option<ClusterSpec> {
    let accepted = case["expect"]["accepted"].as_bool().unwrap();
    assert_eq!(result.is_ok(), accepted, "{case}\n{:?}", result.err());
    result.ok()
}

#[test]
fn outlier_detection() {
    for case in cases("outlier/config.json", 25) {
        let Some(cluster) = verdict(with("outlier_detection", &case["given"]), &case) else { continue };
        let spec = cluster.outlier.unwrap();
        let numbers = json!({
            "interval_ms": spec.interval.as_millis() as u64,
            "base_ejection_time_ms": spec.base_ejection_time.as_millis() as u64,
            "max_ejection_time_ms": spec.max_ejection_time.as_millis() as u64,
            "max_ejection_time_jitter_ms": spec.max_ejection_time_jitter.as_millis() as u64,
            "consecutive_5xx": spec.consecutive_5xx,
            "consecutive_gateway_failure": spec.consecutive_gateway_failure,
            "enforcing_consecutive_5xx": spec.enforcing_consecutive_5xx,
            "enforcing_consecutive_gateway_failure": spec.enforcing_consecutive_gateway_failure,
            "max_ejection_percent": spec.max_ejection_percent,
            "always_eject_one_host": spec.always_eject_one_host,
            "split_external_local_origin_errors": spec.split_external_local_origin_errors,
            "consecutive_local_origin_failure": spec.consecutive_local_origin_failure,
            "enforcing_consecutive_local_origin_failure": spec.enforcing_consecutive_local_origin_failure,
            "enforcing_success_rate": spec.enforcing_success_rate,
            "enforcing_local_origin_success_rate": spec.enforcing_local_origin_success_rate,
            "success_rate_minimum_hosts": spec.success_rate_minimum_hosts,
            "success_rate_request_volume": spec.success_rate_request_volume,
            "success_rate_stdev_factor": spec.success_rate_stdev_factor,
            "failure_percentage_threshold": spec.failure_percentage_threshold,
            "enforcing_failure_percentage": spec.enforcing_failure_percentage,
            "enforcing_failure_percentage_local_origin": spec.enforcing_failure_percentage_local_origin,
            "failure_percentage_minimum_hosts": spec.failure_percentage_minimum_hosts,
            "failure_percentage_request_volume": spec.failure_percentage_request_volume,
            "successful_active_health_check_uneject_host": spec.successful_active_health_check_uneject_host,
            "detect_degraded_hosts": spec.detect_degraded_hosts,
        });
        for (name, value) in case["expect"]["effective"].as_object().into_iter().flatten() {
            assert_eq!(numbers.get(name), Some(value), "{name} of {case}");
        }
    }
}

#[test]
fn circuit_breakers() {
    for case in cases("breakers/config.json", 14) {
        let given = match case["given"].get("retry_budget") {
            Some(budget) => json!({"thresholds": [{"retry_budget": budget}]}),
            None => case["given"].clone(),
        };
        let Some(cluster) = verdict(with("circuit_breakers", &given), &case) else { continue };
        let first = &cluster.breakers.thresholds[0];
        let effective = &case["expect"]["effective"];
        if let Some(value) = effective.get("max_connections") {
            assert_eq!(json!(first.max_connections), *value);
        }
        if let Some(value) = effective.get("budget_percent") {
            assert_eq!(json!(first.retry_budget.unwrap().budget_percent), *value);
            assert_eq!(first.retry_budget.unwrap().min_retry_concurrency, 3);
        }
    }
}

#[test]
fn retry_policies() {
    for case in cases("retry/config_validation.json", 14) {
        let (route, here) = match case["given"].as_str().unwrap() {
            "retry_back_off without base_interval" => {
                ("retry_policy: {retry_back_off: {max_interval: 1s}}", None)
            }
            "retry_back_off.base_interval 0s" => {
                ("retry_policy: {retry_back_off: {base_interval: 0s}}", None)
            }
            "retry_back_off.base_interval 0.0001s" => {
                ("retry_policy: {retry_back_off: {base_interval: 0.0001s}}", None)
            }
            "retry_back_off max < base" => {
                ("retry_policy: {retry_back_off: {base_interval: 2s, max_interval: 1s}}", None)
            }
            "retry_back_off base 0.0005s max 0.0001s" => {
                ("retry_policy: {retry_back_off: {base_interval: 0.0005s, max_interval: 0.0001s}}", None)
            }
            "rate_limited_retry_back_off.reset_headers empty" => {
                ("retry_policy: {rate_limited_retry_back_off: {reset_headers: []}}", None)
            }
            "rate_limited_retry_back_off.max_interval 0s" => (
                "retry_policy: {rate_limited_retry_back_off: {reset_headers: [{name: a}], max_interval: 0s}}",
                None,
            ),
            "unknown retry_on token" => ("retry_policy: {retry_on: \"5xx,nonsense\"}", None),
            // Envoy loads these two and then fails every retry, or itself.
            "host_selection_retry_max_attempts -1" => {
                ("retry_policy: {host_selection_retry_max_attempts: -1}", Some(false))
            }
            "previous_priorities update_frequency 0 or unset" => (
                "retry_policy: {retry_priority: {name: envoy.retry_priorities.previous_priorities}}",
                Some(false),
            ),
            "hedge_policy.initial_requests 0" => ("hedge_policy: {initial_requests: 0}", None),
            "max_grpc_timeout and max_stream_duration.grpc_timeout_header_max together" => {
                ("max_grpc_timeout: 1s, max_stream_duration: {grpc_timeout_header_max: 1s}", None)
            }
            "per_try_timeout negative" => ("retry_policy: {per_try_timeout: -1s}", None),
            "retriable_status_codes 99999" => ("retry_policy: {retriable_status_codes: [99999]}", None),
            other => panic!("no document for the case {other:?}"),
        };
        let text = format!(
            "- name: c\n- virtual_hosts: [{{name: v, domains: [\"*\"], routes: [{{match: {{prefix: /}}, route: {{cluster: c, {route}}}}}]}}]"
        );
        let accepted = here.unwrap_or_else(|| case["expect"]["accepted"].as_bool().unwrap());
        let result = crate::read(&text);
        assert_eq!(result.is_ok(), accepted, "{case}\n{:?}", result.err());
    }
}

#[test]
fn previous_priorities() {
    let kind =
        "type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig";
    let cases = cases("retry/previous_priorities.json", 10);
    let rejects: Vec<_> = cases.iter().filter(|case| case["expect"]["reject_at_load"] == true).collect();
    assert!(!rejects.is_empty());
    for case in rejects {
        let config = format!("\"@type\": {kind}, update_frequency: {}", case["given"]["update_frequency"]);
        let policy = format!("retry_priority: {{name: p, typed_config: {{{config}}}}}");
        let routes =
            format!("routes: [{{match: {{prefix: /}}, route: {{cluster: c, retry_policy: {{{policy}}}}}}}]");
        let text = format!("- name: c\n- virtual_hosts: [{{name: v, domains: [\"*\"], {routes}}}]");
        let error = crate::read(&text).expect_err("refused");
        assert!(error.path.ends_with("update_frequency"), "{error:?}");
    }
}

#[test]
fn health_checks() {
    let minimal =
        json!({"timeout": "1s", "interval": "1s", "unhealthy_threshold": 2, "healthy_threshold": 2});
    for case in cases("health/config.json", 23) {
        let given = &case["given"];
        let check = |given: &Value| {
            let mut check = minimal.clone();
            check["tcp_health_check"] = json!({});
            let fields = given.as_object().unwrap();
            for (name, value) in fields.iter().filter(|(name, _)| *name != "minimal" && *name != "without") {
                let http =
                    matches!(name.as_str(), "expected_statuses" | "retriable_statuses" | "method" | "send");
                if http {
                    check.as_object_mut().unwrap().remove("tcp_health_check");
                    let ranges = |v: &Value| json!({"start": v[0], "end": v[1]});
                    let value = match (name.as_str(), value.as_array()) {
                        ("send", _) => json!({"text": value}),
                        (_, Some(list)) => list.iter().map(ranges).collect(),
                        _ => value.clone(),
                    };
                    check["http_health_check"]["path"] = json!("/");
                    check["http_health_check"][name] = value;
                } else {
                    if name.ends_with("_health_check") {
                        check.as_object_mut().unwrap().remove("tcp_health_check");
                    }
                    check[name] = value.clone();
                }
            }
            if let Some(name) = given.get("without").and_then(Value::as_str) {
                let name = if name == "health_checker" { "tcp_health_check" } else { name };
                check.as_object_mut().unwrap().remove(name);
            }
            check
        };
        let checks = match given.get("health_checks") {
            Some(words) => {
                let named = |word: &Value| match word.as_str().unwrap().split_once(' ') {
                    Some((_, name)) => check(&json!({"name": name})),
                    None => check(&json!({})),
                };
                json!(words.as_array().unwrap().iter().map(named).collect::<Vec<_>>())
            }
            None if given.get("custom_health_check").is_some() => {
                json!([check(&json!({"custom_health_check": {"name": "envoy.health_checkers.udp"}}))])
            }
            None => json!([check(given)]),
        };
        verdict(with("health_checks", &checks), &case);
    }
}

/// `common_lb_config` of the recorded cases writes percentages bare.
fn wrap_percents(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        for (name, value) in fields {
            let is_percent =
                matches!(name.as_str(), "healthy_panic_threshold" | "routing_enabled" | "min_weight_percent");
            if is_percent {
                *value = json!({"value": value.clone()});
            } else {
                wrap_percents(value);
            }
        }
    }
}

fn legacy_fields(given: &Value) -> Value {
    let mut fields = given.clone();
    wrap_percents(&mut fields);
    let configs = ["least_request_lb_config", "ring_hash_lb_config", "maglev_lb_config"];
    if let Some(config) = configs.iter().find(|name| fields.get(*name).is_some()) {
        fields["lb_policy"] = json!(config.trim_end_matches("_lb_config"));
    }
    fields
}

fn typed_fields(name: &str, given: &Value) -> Value {
    let message: String = name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
    let mut config = given.clone();
    wrap_percents(&mut config);
    config["@type"] =
        json!(format!("type.googleapis.com/envoy.extensions.load_balancing_policies.{name}.v3.{message}"));
    json!({"load_balancing_policy": {"policies": [{"typed_extension_config": {"name": name, "typed_config": config}}]}})
}

#[test]
fn load_balancing() {
    let mut seen = 0;
    let cases = read("lb/config_validation.json", 64);
    for case in &cases.list {
        let result = case["expect"]["result"].as_str().unwrap();
        let given = &case["given"];
        // The others are sentences; the tests of clusters and endpoints hold their documents.
        let fields = if let Some(legacy) = given.get("legacy").filter(|legacy| legacy.is_object()) {
            legacy_fields(legacy)
        } else if let Some((name, config)) = given["typed"].as_object().and_then(|typed| typed.iter().next())
        {
            typed_fields(name, config)
        } else {
            continue;
        };
        let text = fields.to_string();
        let own = cluster(&text[1..text.len() - 1]);
        seen += 1;
        assert_eq!(own.is_ok(), result.starts_with("accepted"), "{case}\n{:?}", own.err());
    }
    assert!(!cases.ours || seen == 29, "{seen} cases");
}

#[test]
fn percentages_that_act_as_one_less() {
    let named = |case: &Value| case["name"] == "percent-to-integer exceptions over 0..100";
    let cases = read("lb/panic.json", 13);
    let Some(case) = cases.list.iter().find(|case| named(case)) else { return assert!(!cases.ours) };
    let mut differs = serde_json::Map::new();
    for percent in 0..=100_u32 {
        let fields = format!("common_lb_config: {{healthy_panic_threshold: {{value: {percent}}}}}");
        let threshold = cluster(&fields).unwrap().panic_threshold;
        if threshold != percent {
            differs.insert(percent.to_string(), threshold.into());
        }
    }
    assert_eq!(Value::Object(differs), case["expect"]["differs_from_p"]);
}
