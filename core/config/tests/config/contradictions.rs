//! Policies that contradict themselves or what they lead to: refused with place and reason, or told by `lint`.

use crate::read;

const CLUSTER: &str = "- name: c\n  type: STATIC\n  load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}, {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}]}]}\n- {name: empty, type: STATIC}\n";
const ROUTE: &str = "[2].virtual_hosts[0].routes[0].route";

fn document(cluster: &str, fields: &str) -> String {
    format!(
        "{CLUSTER}- virtual_hosts: [{{name: v, domains: ['*'], routes: [{{match: {{prefix: /}}, route: {{cluster: {cluster}, {fields}}}}}]}}]"
    )
}

#[test]
fn refused() {
    let retry = |fields: &str| format!("retry_policy: {{retry_on: 5xx, {fields}}}");
    let budget = |fields: &str| {
        format!("- name: b\n  circuit_breakers: {{thresholds: [{{retry_budget: {{{fields}}}}}]}}")
    };
    let limit = |fields: &str| format!("- name: b\n  circuit_breakers: {{thresholds: [{{{fields}}}]}}");
    let of_route = [
        ("timeout: -1s".to_owned(), "timeout", "-1s"),
        ("timeout: 315576000001s".into(), "timeout", "315576000001s"),
        (
            "max_stream_duration: {max_stream_duration: -0.5s}".into(),
            "max_stream_duration.max_stream_duration",
            "-0.5s",
        ),
        (retry("per_try_timeout: -1s"), "retry_policy.per_try_timeout", "-1s"),
        (retry("per_try_idle_timeout: -1s"), "retry_policy.per_try_idle_timeout", "-1s"),
        (retry("num_retries: -1"), "retry_policy.num_retries", "-1"),
        (retry("num_retries: 4294967296"), "retry_policy.num_retries", "4294967296"),
        (retry("num_retries: 1.5"), "retry_policy.num_retries", "1.5"),
        (retry("retriable_status_codes: [-1]"), "retry_policy.retriable_status_codes[0]", "-1"),
        (
            retry("retriable_status_codes: [4294967296]"),
            "retry_policy.retriable_status_codes[0]",
            "4294967296",
        ),
        (
            retry("host_selection_retry_max_attempts: -1"),
            "retry_policy.host_selection_retry_max_attempts",
            "-1",
        ),
        (
            retry("host_selection_retry_max_attempts: 9223372036854775808"),
            "retry_policy.host_selection_retry_max_attempts",
            "9223372036854775808",
        ),
        (retry("retry_back_off: {base_interval: 0s}"), "retry_policy.retry_back_off.base_interval", "0s"),
        (retry("retry_back_off: {base_interval: -1s}"), "retry_policy.retry_back_off.base_interval", "-1s"),
        (
            retry("retry_back_off: {base_interval: 2s, max_interval: 1s}"),
            "retry_policy.retry_back_off.max_interval",
            "at least base_interval",
        ),
        (retry("retry_back_off: {max_interval: 1s}"), "retry_policy.retry_back_off", "base_interval"),
        (
            retry("rate_limited_retry_back_off: {reset_headers: []}"),
            "retry_policy.rate_limited_retry_back_off",
            "reset_headers",
        ),
        (
            retry("rate_limited_retry_back_off: {reset_headers: [{name: x}], max_interval: 0s}"),
            "retry_policy.rate_limited_retry_back_off.max_interval",
            "0s",
        ),
        (
            retry(
                "retry_priority: {name: p, typed_config: {'@type': type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig, update_frequency: 0}}",
            ),
            "update_frequency",
            "0",
        ),
        ("hedge_policy: {initial_requests: 0}".into(), "hedge_policy.initial_requests", "0"),
        ("max_grpc_timeout: -1s".into(), "max_grpc_timeout", "-1s"),
    ];
    for (fields, path, reason) in of_route {
        let error = read(&document("c", &fields)).expect_err(&fields);
        let path = format!("{ROUTE}.{path}");
        assert!(error.path == path || error.path.ends_with(&path[ROUTE.len()..]), "{fields}: {error}");
        assert!(error.to_string().contains(reason) && error.line > 0, "{fields}: {error}");
    }
    for (text, path, reason) in [
        (budget("budget_percent: {value: -1}"), "retry_budget.budget_percent.value", "-1"),
        (budget("budget_percent: {value: 100.5}"), "retry_budget.budget_percent.value", "100.5"),
        (budget("budget_percent: {value: NaN}"), "retry_budget.budget_percent.value", "NaN"),
        (budget("min_retry_concurrency: -1"), "retry_budget.min_retry_concurrency", "-1"),
        (budget("budget_interval: -1s"), "retry_budget.budget_interval", "-1s"),
        (limit("max_retries: -1"), "thresholds[0].max_retries", "-1"),
        (limit("max_retries: 4294967296"), "thresholds[0].max_retries", "4294967296"),
    ] {
        let error = read(&text).expect_err(&text);
        assert!(error.path.ends_with(path) && error.to_string().contains(reason), "{text}: {error}");
    }
}

#[test]
fn told() {
    for (cluster, fields, code, path, reason) in [
        (
            "c",
            "timeout: 1s, retry_policy: {retry_on: reset, per_try_timeout: 1s}",
            "NX-012",
            "retry_policy.per_try_timeout",
            "before the first retry",
        ),
        (
            "c",
            "timeout: 1s, retry_policy: {retry_on: reset, num_retries: 3, per_try_timeout: 0.4s}",
            "NX-013",
            "retry_policy.per_try_timeout",
            "not every try fits",
        ),
        ("empty", "retry_policy: {retry_on: reset}", "NX-046", "retry_policy", "has no host"),
        ("c", "retry_policy: {num_retries: 3}", "NX-024", "retry_policy", "nothing is ever retried"),
        ("c", "timeout: 0s, retry_policy: {retry_on: reset}", "NX-020", "timeout", "no time-out at all"),
    ] {
        let loaded = read(&document(cluster, fields)).unwrap_or_else(|error| panic!("{error}"));
        let list: Vec<_> = loaded.findings.iter().filter(|finding| finding.code == code).collect();
        let [found] = list.as_slice() else { panic!("{fields}: {list:?}") };
        assert!(found.path.ends_with(path) && found.effect.contains(reason) && found.line > 0, "{found:?}");
    }
}
