//! Every number in force, and where it came from.

use nexthop_config::{Dialect, Source, effective, load_in_detail};
use nexthop_engine::spec::Value as Plain;
use serde_json::Value;

/// Value and origin of a field: `PATH:LINE` of a document, the runtime key, or whose default it is.
fn row(text: &str, name: &str, field: &str) -> (Value, String) {
    row_with(text, name, field, &[])
}

fn row_with(text: &str, name: &str, field: &str, overlay: &[(String, Plain)]) -> (Value, String) {
    let source = Source { name: "test.yaml", text: text.as_bytes(), dialect: Dialect::Auto };
    let loaded = load_in_detail(&[source]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let told = effective(&loaded, name, overlay).unwrap_or_else(|| panic!("no {name} in\n{text}"));
    let rows: Vec<&Value> =
        told["values"].as_array().unwrap().iter().filter(|row| row["field"] == field).collect();
    let [row] = rows.as_slice() else { panic!("{field}: {told:#}") };
    let origin = match row["from"].as_str().unwrap() {
        "default" => row["whose"].as_str().unwrap().to_owned(),
        "document" => format!("{}:{}", row["path"].as_str().unwrap(), row["line"]),
        from => format!("{from} {}", row["path"].as_str().unwrap()),
    };
    (row["value"].clone(), origin)
}

macro_rules! rows {
    ($text:expr, $name:expr, $($field:expr => $value:expr, $origin:expr;)*) => {$(
        assert_eq!(row($text, $name, $field), (serde_json::json!($value), $origin.to_owned()), "{}", $field);
    )*};
}

const CLUSTER: &str = "\
name: web
lb_policy: LEAST_REQUEST
least_request_lb_config:
  choice_count: 3
  slow_start_config: {slow_start_window: 30s}
outlier_detection:
  split_external_local_origin_errors: true
health_checks:
- {timeout: 1s, interval: 7s, unhealthy_threshold: 2, healthy_threshold: 3, tcp_health_check: {}}
circuit_breakers:
  thresholds:
  - {max_requests: 5, track_remaining: true}
nexthop:
  half_open: {probes: 2}
  cool_down: {max: 60s}
  exclude_tried: true
  admission:
    sr_threshold: {default_value: {value: 90}, runtime_key: rate}
";

#[test]
fn a_bare_cluster() {
    rows! {CLUSTER, "web",
        "policy" => "least_request", "lb_policy:2";
        "policy.choice_count" => 3, "least_request_lb_config.choice_count:4";
        "policy.slow_start_window" => 30.0, "least_request_lb_config.slow_start_config.slow_start_window:5";
        "policy.aggression" => 1.0, "Envoy";
        "policy.min_weight_percent" => 10.0, "Envoy";
        "panic_threshold" => 50, "Envoy";
        "overprovisioning_factor" => 140, "Envoy";
        "outlier_detection.split_external_local_origin_errors" => true,
            "outlier_detection.split_external_local_origin_errors:7";
        "outlier_detection.interval" => 10.0, "Envoy";
        "health_checks[0].interval" => 7.0, "health_checks[0].interval:9";
        "health_checks[0].unhealthy_interval" => 7.0, "Envoy";
        "health_checks[0].no_traffic_interval" => 60.0, "Envoy";
        "circuit_breakers.default.max_requests" => 5, "circuit_breakers.thresholds[0].max_requests:12";
        "circuit_breakers.default.track_remaining" => true, "circuit_breakers.thresholds[0].track_remaining:12";
        "nexthop.half_open" => true, "nexthop.half_open:14";
        "nexthop.half_open.probes" => 2, "nexthop.half_open.probes:14";
        "nexthop.half_open.interval" => 5.0, "nexthop";
        "nexthop.cool_down.max" => 60.0, "nexthop.cool_down.max:15";
        "nexthop.cool_down.on" => [429, 503], "nexthop";
        "nexthop.exclude_tried" => true, "nexthop.exclude_tried:16";
        "nexthop.admission.sr_threshold" => 90.0, "nexthop.admission.sr_threshold.default_value:18";
        "nexthop.admission.sampling_window" => 30.0, "nexthop";
        "nexthop.prefer_below_limit" => false, "nexthop";
        // The health check's time-out is none of a route's.
        "route.timeout" => 15.0, "Envoy";
        "route.hedge_on_per_try_timeout" => false, "Envoy";
    }
}

#[test]
fn routes_their_virtual_hosts_and_the_filters_before_them() {
    let text = "\
static_resources:
  listeners:
  - filter_chains:
    - filters:
      - name: http
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: in
          http_filters:
          - name: admission
            typed_config:
              '@type': type.googleapis.com/envoy.extensions.filters.http.admission_control.v3.AdmissionControl
              success_criteria: {http_criteria: {http_success_status: [{start: 100, end: 500}]}, grpc_criteria: {grpc_success_status: [0]}}
              rps_threshold: {default_value: 9, runtime_key: least}
          - name: router
            typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
            virtual_hosts:
            - name: v
              domains: ['*']
              retry_policy: {retry_on: 5xx, num_retries: 4, nexthop: {deadline_first: {least: 10ms}}}
              hedge_policy: {hedge_on_per_try_timeout: true}
              routes:
              - name: pay
                match: {prefix: /pay}
                route: {cluster: web, timeout: 2s, hash_policy: [{header: {header_name: x-user}}]}
              - name: other
                match: {prefix: /}
                route: {cluster: web, retry_policy: {retry_on: reset, host_selection_retry_max_attempts: 3}}
  clusters:
  - {name: web, type: STATIC, connect_timeout: 1s}
";
    let host = "static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0]";
    let filter =
        "static_resources.listeners[0].filter_chains[0].filters[0].typed_config.http_filters[0].typed_config";
    for name in ["route:v/pay", "web"] {
        rows! {text, name,
            "route.timeout" => 2.0, format!("{host}.routes[0].route.timeout:26");
            "route.hash_policy" => ["header x-user"], format!("{host}.routes[0].route.hash_policy:26");
            "retry.num_retries" => 4, format!("{host}.retry_policy.num_retries:21");
            "retry.per_try_timeout" => Value::Null, "Envoy";
            "nexthop.deadline_first.least" => 0.01, format!("{host}.retry_policy.nexthop.deadline_first.least:21");
            "nexthop.deadline_first.dry_run" => false, "nexthop";
            "route.hedge_on_per_try_timeout" => true, format!("{host}.hedge_policy.hedge_on_per_try_timeout:22");
            "admission.rps_threshold" => 9.0, format!("{filter}.rps_threshold.default_value:14");
            "admission.sr_threshold" => 95.0, "Envoy";
        }
    }
    rows! {text, "route:v/other",
        "retry.num_retries" => 1, "Envoy";
        "retry.host_selection_retry_max_attempts" => 3,
            format!("{host}.routes[1].route.retry_policy.host_selection_retry_max_attempts:29");
    }
    let overlay = [("least".to_owned(), Plain::Number(5.0))];
    assert_eq!(
        row_with(text, "route:v/pay", "admission.rps_threshold", &overlay),
        (5.0.into(), "runtime least".into())
    );
}

#[test]
fn what_a_document_says_for_all_its_clusters() {
    let text = "\
nexthop: {defaults: {cool_down: {default: 7s}, outcome_at: end}}
clusters:
  a: {hosts: [10.0.0.1:80]}
  b: {hosts: [10.0.0.2:80], policy: {peak_ewma: {choices: 4}}, timeout: 3s}
";
    rows! {text, "a",
        "nexthop.cool_down.default" => 7.0, "nexthop.defaults.cool_down.default:1";
        "nexthop.cool_down.max" => 300.0, "nexthop";
        "nexthop.outcome_at" => "end", "nexthop.defaults.outcome_at:1";
    }
    rows! {text, "b",
        "policy" => "peak_ewma", "clusters.b.policy:4";
        "nexthop.policy.peak_ewma.choices" => 4, "clusters.b.policy.peak_ewma.choices:4";
        "nexthop.policy.peak_ewma.decay" => 10.0, "nexthop";
        "route.timeout" => 3.0, "clusters.b.timeout:4";
    }
}

#[test]
fn a_route_table_that_is_a_document_of_its_own() {
    let text = "\
static_resources: {clusters: [{name: a, load_assignment: {cluster_name: a, endpoints: []}}]}
---
name: r
virtual_hosts:
- name: v
  domains: ['*']
  routes:
  - name: all
    match: {prefix: /}
    route: {cluster: a, timeout: 5s, retry_policy: {retry_on: connect-failure, num_retries: 4}}
";
    rows! {text, "route:v/all",
        "cluster" => "a", "virtual_hosts[0].routes[0].route.cluster:10";
        "route.timeout" => 5.0, "virtual_hosts[0].routes[0].route.timeout:10";
        "retry.num_retries" => 4, "virtual_hosts[0].routes[0].route.retry_policy.num_retries:10";
        "retry.previous_hosts" => false, "Envoy";
    }
}

/// Each number stands once, also where a cluster has its own retries and where a route leads to it.
#[test]
fn retries_stand_once() {
    let text = "\
clusters:
  a: {hosts: [10.0.0.1:80]}
  b: {hosts: [10.0.0.2:80], retry: {on: [5xx], times: 2}}
  c: {composite: [a, b], timeout: 3s, retry: {on: [connect-failure], times: 1}}
  g: {aggregate: [a, b], retry: {on: [connect-failure], times: 1}}
routes:
- {path: /, cluster: b}
";
    rows! {text, "b", "retry.num_retries" => 2, "clusters.b.retry.times:3";}
    rows! {text, "c",
        "retry.num_retries" => 1, "clusters.c.retry.times:4";
        "policy" => "composite", "clusters.c.composite:4";
        "route.timeout" => 3.0, "clusters.c.timeout:4";
    }
    rows! {text, "g", "policy" => "aggregate", "clusters.g.aggregate:5";}
    rows! {text, "a", "retry.on" => Value::Array(Vec::new()), "Envoy";}
}

#[test]
fn filters_their_stages_and_who_chooses() {
    let text = "\
nexthop: {defaults: {filters: [{preset: gray}]}}
clusters:
  w: {hosts: [10.0.0.1:80], policy: least_request}
  x:
    hosts: [10.0.0.1:80]
    policy: least_request
    nexthop:
      filters:
      - {match: {header: zone, host: zone}, compare: ignore_case}
      - {match: {header: version, metadata: version}, when_empty: fail, when_absent: require_absent}
      - {subset: {size: 5, id: me}}
";
    rows! {text, "w",
        "policy" => "weighted_random", "nexthop.defaults.filters[0].preset:1";
        "nexthop.filters[1].when_absent" => "require_absent", "nexthop.defaults.filters[0].preset:1";
    }
    rows! {text, "x",
        "policy" => "least_request", "clusters.x.policy:6";
        "nexthop.filters[0].compare" => "ignore_case", "clusters.x.nexthop.filters[0].compare:9";
        "nexthop.filters[0].when_empty" => "skip", "nexthop";
        "nexthop.filters[1].compare" => "exact", "nexthop";
        "nexthop.filters[1].when_empty" => "fail", "clusters.x.nexthop.filters[1].when_empty:10";
        "nexthop.filters[1].when_absent" => "require_absent", "clusters.x.nexthop.filters[1].when_absent:10";
        "nexthop.filters[2].subset.size" => 5, "clusters.x.nexthop.filters[2].subset.size:11";
        "nexthop.filters[2].healthy_only" => false, "nexthop";
        "nexthop.connections" => "queue", "nexthop";
    }
}

#[test]
fn what_istio_says_where_no_object_does() {
    let text = "\
kind: ClientContext
spec:
  mesh: {connectTimeout: 5s, defaultHttpRetryPolicy: {attempts: 7}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: orders, namespace: shop}
spec:
  host: orders.shop.svc.cluster.local
  trafficPolicy:
    connectionPool: {tcp: {maxConnections: 100, connectTimeout: 250ms}}
  subsets:
  - name: v2
    labels: {version: v2}
    trafficPolicy:
      connectionPool: {http: {http2MaxRequests: 0}}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: orders, namespace: shop}
spec:
  hosts: [orders.shop.svc.cluster.local]
  ports: [{number: 8080, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints:
  - {address: 10.0.0.3, labels: {version: v2}}
";
    let whole = "outbound|8080||orders.shop.svc.cluster.local";
    let limit = |of: &str, field: &str| format!("translation {of}.circuit_breakers.thresholds[0].{field}");
    rows! {text, whole,
        "connect_timeout" => 0.25, format!("translation {whole}.connect_timeout");
        "circuit_breakers.default.max_connections" => 100, limit(whole, "max_connections");
        "circuit_breakers.default.max_requests" => u32::MAX, "Istio";
        "panic_threshold" => 0, "Istio";
        "policy" => "least_request", "Istio";
        "hosts" => 1, "translation spec.endpoints";
        "retry.num_retries" => 7, "translation spec.mesh.defaultHttpRetryPolicy.attempts";
        "retry.on" =>
            ["connect-failure", "refused-stream", "retriable-status-codes", "cancelled", "unavailable"], "Istio";
        "circuit_breakers.high.max_requests" => 1024, "Envoy";
    }
    let v2 = "outbound|8080|v2|orders.shop.svc.cluster.local";
    rows! {text, v2,
        "circuit_breakers.default.max_connections" => u32::MAX, "Istio";
        "circuit_breakers.default.max_requests" => u32::MAX, limit(v2, "max_requests");
        "connect_timeout" => 5.0, "translation spec.mesh.connectTimeout";
        "hosts" => 1, "translation spec.endpoints";
    }
    let without = text.replacen("connectTimeout: 5s, ", "", 1);
    rows! {&without, v2, "connect_timeout" => 10.0, "Istio";}
}

#[test]
fn hosts_of_an_assignment_elsewhere() {
    let text = "\
static_resources: {clusters: [{name: web, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}]}
---
cluster_name: web
endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]
";
    rows! {text, "web", "hosts" => 1, "cluster_name:3";}
}

/// A cluster of the short form that says nothing of time and retries has them from the first route that leads to it.
#[test]
fn a_short_cluster_is_treated_as_its_first_route() {
    let text = "\
clusters:
  a: {hosts: [10.0.0.1:80]}
  b: {hosts: [10.0.0.2:80], timeout: 3s}
  c: {composite: [a, b]}
  d: {hosts: [10.0.0.3:80]}
routes:
- {path: /1, cluster: a, timeout: 7s, retry: {on: [connect-failure], times: 4}}
- {path: /2, cluster: c, timeout: 8s, retry: {on: [connect-failure], times: 1}}
- {path: /3, cluster: {b: 1, d: 99}, timeout: 9s}
";
    rows! {text, "a",
        "route.timeout" => 7.0, "routes[0].timeout:7";
        "retry.num_retries" => 4, "routes[0].retry.times:7";
    }
    rows! {text, "b", "route.timeout" => 3.0, "clusters.b.timeout:3";}
    rows! {text, "c", "retry.num_retries" => 1, "routes[1].retry.times:8";}
    rows! {text, "d", "route.timeout" => 9.0, "routes[2].timeout:9";}
}
