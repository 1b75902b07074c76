//! The mesh of the soak: clusters of every policy, composites over them, and how its documents change.

use std::fmt::Write;

/// Plain clusters; each third one has a composite over it and its neighbours.
pub(crate) const CLUSTERS: usize = 120;
/// Hosts that a cluster may have.
pub(crate) const HOSTS: usize = 12;

const POLICIES: [&str; 5] = ["ROUND_ROBIN", "LEAST_REQUEST", "RANDOM", "RING_HASH", "MAGLEV"];

pub(crate) fn cluster(index: usize) -> String {
    format!("c{index}")
}

pub(crate) fn address(cluster: usize, host: usize) -> String {
    format!("10.{}.{}.{}:80", cluster / 200, cluster % 200, host + 1)
}

/// Clusters whose hosts are checked.
pub(crate) fn is_checked(index: usize) -> bool {
    index % 4 == 1
}

/// The documents of a turn. Limits, policies, weights and routes move with it; every tenth cluster comes and goes.
pub(crate) fn document(turn: usize) -> String {
    let mut text = String::from("static_resources:\n  clusters:\n");
    for index in (0..CLUSTERS).filter(|index| index % 10 != 9 || turn.is_multiple_of(2)) {
        let policy = POLICIES[(index + turn / 7) % POLICIES.len()];
        let requests = [8, 64, 1024][(index + turn) % 3];
        let small = if policy == "MAGLEV" { "\n    maglev_lb_config: {table_size: 503}" } else { "" };
        let _ = write!(
            text,
            "  - name: {name}\n    lb_policy: {policy}{small}\n    circuit_breakers: {{thresholds: [{{max_requests: {requests}, \
             max_connections: 40, max_pending_requests: 16, retry_budget: {{budget_percent: {{value: 30}}, \
             min_retry_concurrency: 3}}}}]}}\n    outlier_detection: {{consecutive_5xx: 4, interval: 0.05s, \
             base_ejection_time: 0.02s, max_ejection_percent: 60}}\n    common_lb_config: {{update_merge_window: 0s}}\n    \
             {checks}load_assignment: {{cluster_name: {name}, endpoints: [{{lb_endpoints: [",
            name = cluster(index),
            checks = if is_checked(index) { checks(turn) } else { String::new() },
        );
        for host in 0..4 + (index + turn) % 4 {
            let (ip, port) = (address(index, host), 80);
            let ip = ip.trim_end_matches(":80");
            let _ = write!(
                text,
                "{{endpoint: {{address: {{socket_address: {{address: {ip}, port_value: {port}}}}}}}, \
                 load_balancing_weight: {}}}, ",
                1 + (host + turn) % 3
            );
        }
        text.push_str("]}]}\n");
    }
    for index in (0..CLUSTERS).step_by(3) {
        let _ = write!(
            text,
            "  - name: all{index}\n    lb_policy: CLUSTER_PROVIDED\n    cluster_type: {{name: envoy.clusters.composite, \
             typed_config: {{\"@type\": type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig, \
             clusters: [{{name: c{index}}}, {{name: c{}}}, {{name: c{}}}]}}}}\n",
            index + 1,
            index + 2
        );
    }
    text.push_str(
        "---\nname: routes\nvirtual_hosts:\n- name: all\n  domains: [\"*\"]\n  retry_policy: {retry_on: \
         \"5xx,reset,connect-failure,retriable-headers\", num_retries: 2, retry_back_off: {base_interval: 0.001s, \
         max_interval: 0.002s}, retriable_headers: [{name: x-retry, present_match: true}]}\n  routes:\n",
    );
    for index in (0..CLUSTERS).step_by(3) {
        let _ = write!(
            text,
            "  - match: {{prefix: /{index}/}}\n    route: {{cluster: all{index}, timeout: {}s, hash_policy: \
             [{{header: {{header_name: x-key}}}}, {{cookie: {{name: sid, ttl: 60s}}}}]}}\n",
            1 + turn % 3
        );
    }
    text
}

fn checks(turn: usize) -> String {
    let interval = if turn.is_multiple_of(5) { "0.03s" } else { "0.02s" };
    format!(
        "health_checks: [{{name: a, timeout: 0.05s, interval: {interval}, no_traffic_interval: 0.02s, unhealthy_threshold: 2, \
         healthy_threshold: 1, http_health_check: {{path: /}}}}, {{name: b, timeout: 0.05s, interval: {interval}, \
         no_traffic_interval: 0.02s, unhealthy_threshold: 3, healthy_threshold: 1, tcp_health_check: {{}}}}]\n    "
    )
}
