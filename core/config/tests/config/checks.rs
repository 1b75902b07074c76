//! Active health checks and the error matcher of outlier detection. What is refused here, a real Envoy refuses.

use crate::cluster;
use nexthop_config::ConfigError;
use nexthop_engine::spec::{
    ClusterSpec, EndpointChecks, ErrorMatch, HealthCheckSpec, HttpProbe, Probe, StringMatch,
};
use std::time::Duration;

const BASE: &str = "timeout: 1s, interval: 2s, unhealthy_threshold: 3, healthy_threshold: 4";

fn checks(fields: &str) -> Result<Vec<HealthCheckSpec>, ConfigError> {
    cluster(&format!("health_checks: [{{{BASE}, {fields}}}]")).map(|cluster| cluster.health_checks)
}

fn http(fields: &str) -> Result<HttpProbe, ConfigError> {
    let list = checks(&format!("http_health_check: {{path: /h, {fields}}}"))?;
    match &list[0].probe {
        Probe::Http(probe) => Ok((**probe).clone()),
        other => panic!("not HTTP: {other:?}"),
    }
}

#[test]
fn every_field_of_a_check() {
    let fields = "name: first, initial_jitter: 0.1s, interval_jitter: 0.2s, interval_jitter_percent: 7, alt_port: 81, \
        reuse_connection: false, no_traffic_interval: 5s, no_traffic_healthy_interval: 6s, unhealthy_interval: 7s, \
        unhealthy_edge_interval: 8s, healthy_edge_interval: 9s, always_log_health_check_failures: true, \
        always_log_health_check_success: true, tcp_health_check: {send: {text: 00fF}, receive: [{binary: AAE=}]}";
    let seconds = Duration::from_secs;
    let wanted = HealthCheckSpec {
        name: "first".into(),
        timeout: seconds(1),
        interval: seconds(2),
        initial_jitter: Duration::from_millis(100),
        interval_jitter: Duration::from_millis(200),
        interval_jitter_percent: 7,
        unhealthy_threshold: 3,
        healthy_threshold: 4,
        no_traffic_interval: seconds(5),
        no_traffic_healthy_interval: Some(seconds(6)),
        unhealthy_interval: Some(seconds(7)),
        unhealthy_edge_interval: Some(seconds(8)),
        healthy_edge_interval: Some(seconds(9)),
        alt_port: Some(81),
        reuse_connection: false,
        always_log_failures: true,
        always_log_success: true,
        probe: Probe::Tcp { send: vec![0, 255], receive: vec![vec![0, 1]] },
    };
    assert_eq!(checks(fields).unwrap(), [wanted]);
    let plain = checks("tcp_health_check: {}").unwrap();
    let tcp = Probe::Tcp { send: Vec::new(), receive: Vec::new() };
    assert_eq!(plain, [HealthCheckSpec::new(seconds(2), seconds(1), (3, 4), tcp)]);
    assert_eq!(plain[0].no_traffic_interval, seconds(60));
}

#[test]
fn http_probes() {
    assert_eq!(http("").unwrap(), HttpProbe::get("/h"));
    let fields = "host: h, method: OPTIONS, send: {text: '6869'}, receive: [{text: 6f}, {text: 6b}], \
        response_buffer_size: 2, request_headers_to_add: [{header: {key: X-A, value: b}}], \
        request_headers_to_remove: [User-Agent], expected_statuses: [{start: 200, end: 300}], \
        retriable_statuses: [{start: 500, end: 600}], codec_client_type: HTTP2, service_name_matcher: {prefix: s}";
    let wanted = HttpProbe {
        host: "h".into(),
        method: "OPTIONS".into(),
        send: b"hi".to_vec(),
        receive: vec![b"o".to_vec(), b"k".to_vec()],
        response_buffer_size: 2,
        headers_to_add: vec![("x-a".into(), "b".into())],
        headers_to_remove: vec!["user-agent".into()],
        expected_statuses: vec![(200, 300)],
        retriable_statuses: vec![(500, 600)],
        service_name: Some(StringMatch::Prefix("s".into(), false)),
        http2: true,
        ..HttpProbe::get("/h")
    };
    assert_eq!(http(fields).unwrap(), wanted);
    for method in ["POST", "PUT", "PATCH"] {
        assert_eq!(http(&format!("method: {method}, send: {{text: '00'}}")).unwrap().method, method);
    }
    for (fields, word) in [
        ("method: DELETE, send: {text: '00'}", "OPTIONS"),
        ("send: {text: '00'}", "OPTIONS"),
        ("receive: [{text: 0g}]", "hexadecimal"),
        ("receive: [{text: '000'}]", "hexadecimal"),
        ("receive: [{text: ''}]", "empty"),
        ("receive: [{}]", "text"),
        ("receive: [{binary: '*'}]", "base64"),
        ("receive: [{text: '000000'}, {text: '000000'}], response_buffer_size: 4", "6 bytes"),
        ("request_headers_to_add: [{header: {key: ':path', value: b}}]", "pseudo"),
        ("request_headers_to_add: [{header: {value: b}}]", "key"),
        ("service_name_matcher: {}", "exact"),
        ("nope: 1", "nope"),
    ] {
        let error = http(fields).unwrap_err().to_string();
        assert!(error.contains(word), "{fields}: {error}");
    }
    assert!(http(&format!("receive: [{{text: '{}'}}]", "00".repeat(1025))).is_err());
    assert!(http(&format!("receive: [{{text: '{}'}}], response_buffer_size: 0", "00".repeat(1025))).is_ok());
}

#[test]
fn other_probes() {
    let grpc = format!(
        "http2_protocol_options: {{}}, health_checks: [{{{BASE}, grpc_health_check: {{service_name: s, authority: a}}}}]"
    );
    let wanted = Probe::Grpc { service: "s".into(), authority: "a".into() };
    assert_eq!(cluster(&grpc).unwrap().health_checks[0].probe, wanted);
    let custom = checks("custom_health_check: {name: envoy.health_checkers.redis}").unwrap();
    assert_eq!(custom[0].probe, Probe::Custom { name: "envoy.health_checkers.redis".into() });
    for fields in [
        "custom_health_check: {}",
        "tcp_health_check: {send: {}}",
        "tcp_health_check: {send: {text: ''}}",
        "tcp_health_check: {receive: [{text: zz}]}",
    ] {
        assert!(checks(fields).is_err(), "{fields}");
    }
}

#[test]
fn how_endpoints_are_checked() {
    let endpoint = |config: &str| -> Result<EndpointChecks, ConfigError> {
        let text = format!(
            "load_assignment: {{cluster_name: c, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: \
             {{address: 10.0.0.1, port_value: 80}}}}, health_check_config: {{{config}}}}}}}]}}]}}"
        );
        cluster(&text).map(|cluster: ClusterSpec| cluster.endpoints.localities[0].endpoints[0].checks.clone())
    };
    let all = |disabled, port, hostname: &str, address: &str| EndpointChecks {
        disabled,
        port,
        hostname: hostname.into(),
        address: address.into(),
    };
    assert_eq!(endpoint("").unwrap(), EndpointChecks::default());
    let fields = "disable_active_health_check: true, port_value: 82, hostname: h";
    assert_eq!(endpoint(fields).unwrap(), all(true, 82, "h", ""));
    let other = "address: {socket_address: {address: '::1', port_value: 81}}";
    assert_eq!(endpoint(other).unwrap(), all(false, 81, "", "[::1]"));
    assert_eq!(endpoint(&format!("{other}, port_value: 82")).unwrap(), all(false, 82, "", "[::1]"));
    assert!(endpoint("port_value: 70000").is_err());
    let cluster = cluster(
        "ignore_health_on_host_removal: true, common_lb_config: {ignore_new_hosts_until_first_hc: true}",
    )
    .unwrap();
    assert!(cluster.ignore_health_on_host_removal && cluster.ignore_new_hosts_until_first_hc);
}

#[test]
fn the_report_says_that_a_program_has_to_perform_them() {
    let text = format!(
        "clusters: [{{name: c, health_checks: [{{{BASE}, event_log_path: /x, tcp_health_check: {{}}}}]}}, {{name: d, health_checks: []}}]"
    );
    let entries = crate::read(&text).unwrap().report.entries;
    let seen: Vec<(&str, bool)> = entries
        .iter()
        .map(|entry| (entry.path.as_str(), entry.text.contains("performs the checks")))
        .collect();
    assert_eq!(
        seen,
        [("clusters[0].health_checks[0].event_log_path", false), ("clusters[0].health_checks", true)]
    );
}

#[test]
fn error_matchers() {
    let with = |matcher: &str| -> Result<Option<ErrorMatch>, ConfigError> {
        let text = format!(
            "outlier_detection: {{}}, typed_extension_protocol_options: {{envoy.extensions.upstreams.http.v3.HttpProtocolOptions: \
             {{'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, \
             explicit_http_config: {{http_protocol_options: {{}}}}, outlier_detection: {{{matcher}}}}}}}"
        );
        cluster(&text).map(|cluster| cluster.outlier.unwrap().error_matcher)
    };
    let status = "http_response_headers_match: {headers: [{name: ':status', string_match: {exact: '404'}}]}";
    let read = |matcher: &str| with(&format!("error_matcher: {{{matcher}}}"));
    let Some(ErrorMatch::Headers(headers)) = read(status).unwrap() else { panic!("headers") };
    assert_eq!((&*headers[0].name, &headers[0].value), (":status", &StringMatch::Exact("404".into(), false)));
    let one = ErrorMatch::Headers(headers);
    let two =
        read(&format!("or_match: {{rules: [{{{status}}}, {{not_match: {{any_match: true}}}}]}}")).unwrap();
    assert_eq!(two, Some(ErrorMatch::Or(vec![one.clone(), ErrorMatch::Not(Box::new(ErrorMatch::Any))])));
    let two =
        read(&format!("and_match: {{rules: [{{{status}}}, {{http_request_headers_match: {{}}}}]}}")).unwrap();
    assert_eq!(two, Some(ErrorMatch::And(vec![one, ErrorMatch::Never])));
    assert_eq!(read("http_response_headers_match: {}").unwrap(), Some(ErrorMatch::Headers(Vec::new())));
    let body = "http_response_generic_body_match: {patterns: [{string_match: a}]}";
    assert_eq!(read(body).unwrap(), Some(ErrorMatch::Never));
    for matcher in [
        "",
        "any_match: false",
        "or_match: {rules: [{any_match: true}]}",
        "any_match: true, http_response_headers_match: {}",
        "http_request_generic_body_match: {}",
    ] {
        assert!(read(matcher).is_err(), "{matcher}");
    }
    assert!(with("").is_err() && with("nope: 1").is_err());
}
