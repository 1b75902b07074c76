//! Envoy's scalar rules, one test for each row of what was measured on 1.40.0.

use crate::{cluster, read};
use nexthop_engine::spec::{PolicySpec, Value};
use std::time::Duration;

fn number(text: &str) -> Option<u32> {
    cluster(&format!("circuit_breakers: {{thresholds: [{{max_connections: {text}}}]}}"))
        .ok()
        .map(|cluster| cluster.breakers.thresholds[0].max_connections)
}

fn flag(text: &str) -> Option<bool> {
    cluster(&format!("circuit_breakers: {{thresholds: [{{track_remaining: {text}}}]}}"))
        .ok()
        .map(|cluster| cluster.breakers.thresholds[0].track_remaining)
}

fn duration(text: &str) -> Option<Duration> {
    cluster(&format!("connect_timeout: {text}")).ok().map(|cluster| cluster.connect_timeout)
}

#[test]
fn boolean_words() {
    for word in [
        "yes", "on", "y", "true", "True", "YES", "\"true\"", "\"yes\"", "\"y\"", "\"t\"", "\"1\"",
        "\"TRUE\"", "tRUE", "yEs",
    ] {
        assert_eq!(flag(word), Some(true), "{word}");
    }
    for word in ["no", "off", "n", "false", "\"0\"", "\"F\"", "\"no\"", "null", "~"] {
        assert_eq!(flag(word), Some(false), "{word}");
    }
    for word in ["\"on\"", "\"off\"", "1", "0", "1.0", "maybe", "\"\"", "[]", "{}"] {
        assert_eq!(flag(word), None, "{word}");
    }
}

#[test]
fn whole_numbers() {
    let cases = [
        ("10", 10),
        ("010", 8),
        ("\"010\"", 10),
        ("0x10", 16),
        ("\"0x10\"", 16),
        ("1e1", 10),
        ("10.0", 10),
        ("\"1e1\"", 10),
        ("\"10.0\"", 10),
        ("08", 8),
        ("+5", 5),
        ("-0", 0),
        ("4294967295", u32::MAX),
        ("null", 1024),
        ("! 10", 10),
        ("!!str 10", 10),
    ];
    for (text, value) in cases {
        assert_eq!(number(text), Some(value), "{text}");
    }
    for text in [
        "0o10",
        "0b11",
        "1_000",
        "4294967296",
        "-1",
        "10.5",
        "\" 10\"",
        "\"10 \"",
        "\"\"",
        "true",
        "1e400",
        "0x",
        "ten",
        "[1]",
        "{}",
        "NaN",
        "99999999999999999999999999",
        "0xfffffffff",
    ] {
        assert_eq!(number(text), None, "{text}");
    }
}

#[test]
fn durations() {
    let cases = [
        ("5s", Duration::from_secs(5)),
        ("\"5s\"", Duration::from_secs(5)),
        ("0.25s", Duration::from_millis(250)),
        ("00005s", Duration::from_secs(5)),
        ("5.000000001s", Duration::from_secs(5)),
        ("9223372035s", Duration::from_secs(9_223_372_035)),
        // A timer of nothing would never rest.
        ("0.000000001s", Duration::from_millis(1)),
    ];
    for (text, value) in cases {
        assert_eq!(duration(text), Some(value), "{text}");
    }
    for text in [
        "5.0000000001s",
        "5ms",
        "5",
        "1",
        "+1s",
        "1.s",
        ".5s",
        "1e1s",
        "5S",
        "\" 5s\"",
        "5.5",
        "s",
        "-s",
        "0s",
        "-5s",
        "-0s",
        "9223372036s",
        "99999999999999999999s",
        "true",
        "[]",
        "\"\"",
    ] {
        assert_eq!(duration(text), None, "{text}");
    }
}

#[test]
fn enums() {
    for text in ["LEAST_REQUEST", "least_request", "Least_Request", "1", "\"1\"", "01", "0x1"] {
        let policy = cluster(&format!("lb_policy: {text}")).map(|cluster| cluster.policy);
        assert!(matches!(policy, Ok(PolicySpec::LeastRequest { .. })), "{text}");
    }
    for text in ["least-request", "\" LEAST_REQUEST\"", "77", "-1", "1.0", "\"1.0\"", "\"\"", "true", "4"] {
        assert!(cluster(&format!("lb_policy: {text}")).is_err(), "{text}");
    }
    assert!(cluster("lb_policy: null").is_ok());
    let error = cluster("lb_policy: LEAST_REQUESTS").unwrap_err();
    assert_eq!(error.nearest.as_deref(), Some("LEAST_REQUEST"));
}

#[test]
fn texts() {
    for (text, value) in [
        ("\"123\"", "123"),
        ("12345678901", "12345678901"),
        ("1.5", "1.5"),
        ("\"yes\"", "yes"),
        ("0x1FFFFFFFF", "8589934591"),
    ] {
        let loaded = read(&format!("name: {text}\ntype: STATIC")).unwrap();
        assert_eq!(loaded.specs.clusters[0].name, value);
    }
    for text in ["123", "0x10", "yes", "off", "[a]", "{a: b}", "null", "\"\""] {
        assert!(read(&format!("name: {text}\ntype: STATIC")).is_err(), "{text}");
    }
    let error = read("name: 123\ntype: STATIC").unwrap_err();
    assert_eq!(error.message, "expected text (put it in quotes), found `123`");
}

#[test]
fn names_come_in_two_spellings_and_the_last_wins() {
    let both = cluster("connectTimeout: 1s, connect_timeout: 2s").unwrap();
    assert_eq!(both.connect_timeout, Duration::from_secs(2));
    let both = cluster("connect_timeout: 2s, connectTimeout: 1s, connectTimeout: 3s").unwrap();
    assert_eq!(both.connect_timeout, Duration::from_secs(3));
    for key in ["ConnectTimeout", "connect-timeout", "connecttimeout", "connect_Timeout"] {
        let error = cluster(&format!("{key}: 1s")).unwrap_err();
        assert_eq!(error.nearest.as_deref(), Some("connect_timeout"), "{key}");
    }
    assert!(cluster("outlierDetection: {consecutive5xx: 3, enforcingConsecutive5xx: 4}").is_ok());
}

#[test]
fn merge_keys_are_unknown_fields() {
    let error = cluster("<<: {connect_timeout: 1s}").unwrap_err();
    assert_eq!(error.found, "<<");
}

#[test]
fn ignored_keys_may_hold_anchors() {
    let text = "!ignore x: &limits {thresholds: [{max_requests: 7}]}\n\
                static_resources: {clusters: [{name: a, circuit_breakers: *limits}]}";
    assert_eq!(read(text).unwrap().specs.clusters[0].breakers.thresholds[0].max_requests, 7);
}

#[test]
fn members_of_a_choice_exclude_each_other() {
    let error = cluster("ring_hash_lb_config: {}, maglev_lb_config: {}").unwrap_err();
    assert_eq!(error.message, "`ring_hash_lb_config` and `maglev_lb_config` exclude each other");
    assert!(cluster("ring_hash_lb_config: {}, maglev_lb_config: null").is_ok());
}

#[test]
fn percentages() {
    let panic = |text: &str| {
        let fields = format!("common_lb_config: {{healthy_panic_threshold: {text}}}");
        cluster(&fields).ok().map(|cluster| cluster.panic_threshold)
    };
    for (text, value) in [
        ("29", 28),
        ("57", 56),
        ("58", 57),
        ("50.9", 50),
        ("0", 0),
        ("100", 100),
        ("\"50\"", 50),
        ("1e1", 10),
    ] {
        assert_eq!(panic(&format!("{{value: {text}}}")), Some(value), "{text}");
    }
    assert_eq!(panic("{}"), Some(0));
    assert_eq!(panic("null"), Some(50));
    for text in [
        "50",
        "{value: NaN}",
        "{value: \"NaN\"}",
        "{value: .nan}",
        "{value: -1}",
        "{value: 100.5}",
        "{value: 101}",
        "{value: Infinity}",
        "{value: yes}",
    ] {
        assert_eq!(panic(text), None, "{text}");
    }
}

#[test]
fn metadata_types_are_those_of_the_first_step() {
    let values = "{a: 1.5, b: 12345678901, c: yes, d: \"1\", e: 010, f: 0x10, g: [1, x], h: null, i: 1e3, m: {n: 2.0}, q: 2147483648, l: 2147483647}";
    let hosts = format!(
        "load_assignment: {{cluster_name: c, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 1.2.3.4, port_value: 1}}}}}}, metadata: {{filter_metadata: {{envoy.lb: {values}}}}}}}]}}]}}"
    );
    let cluster = cluster(&hosts).unwrap();
    let metadata = &cluster.endpoints.localities[0].endpoints[0].metadata;
    let lb = |key| metadata.lb(key).cloned().unwrap();
    let text = |text: &str| Value::String(text.into());
    assert_eq!(lb("a"), text("1.5"));
    assert_eq!(lb("b"), text("12345678901"));
    assert_eq!(lb("c"), Value::Bool(true));
    assert_eq!(lb("d"), text("1"));
    assert_eq!(lb("e"), Value::Number(8.0));
    assert_eq!(lb("f"), Value::Number(16.0));
    assert_eq!(lb("g"), Value::List(vec![Value::Number(1.0), text("x")]));
    assert_eq!(lb("h"), Value::Null);
    assert_eq!(lb("i"), text("1e3"));
    assert_eq!(lb("q"), text("2147483648"));
    assert_eq!(lb("l"), Value::Number(2_147_483_647.0));
}

#[test]
fn json_has_its_own_types() {
    let text = r#"{"name": "c", "type": "STATIC", "load_assignment": {"cluster_name": "c", "endpoints": [{"lb_endpoints": [
        {"endpoint": {"address": {"socket_address": {"address": "1.2.3.4", "port_value": 1e1}}},
         "metadata": {"filter_metadata": {"envoy.lb": {"a": 1.5, "b": 12345678901, "y": "y"}}}}]}]}}"#;
    let loaded = read(text).unwrap();
    let host = &loaded.specs.clusters[0].endpoints.localities[0].endpoints[0];
    assert_eq!(host.address, "1.2.3.4:10");
    assert_eq!(host.metadata.lb("a"), Some(&Value::Number(1.5)));
    assert_eq!(host.metadata.lb("b"), Some(&Value::Number(12_345_678_901.0)));
    assert!(read(r#"{"name": 5, "type": "STATIC"}"#).is_err());
    assert!(read(r#"{"name": "a", "connect_timeout": true}"#).is_err());
}

/// A repeated field of Envoy's messages takes a single value, and lists in lists are one list.
#[test]
fn repeated_fields() {
    for text in ["{max_connections: 7}", "[{max_connections: 7}]", "[[{max_connections: 7}]]"] {
        let cluster = cluster(&format!("circuit_breakers: {{thresholds: {text}}}")).unwrap();
        assert_eq!(cluster.breakers.thresholds[0].max_connections, 7, "{text}");
    }
    assert!(cluster("circuit_breakers: {thresholds: 5}").is_err());
}

/// Percentages of the older policy messages are at most 100; those of the typed ones are not checked.
#[test]
fn percentages_of_older_messages() {
    let slow = |percent| {
        format!("round_robin_lb_config: {{slow_start_config: {{min_weight_percent: {{value: {percent}}}}}}}")
    };
    let zone = |percent| {
        format!("common_lb_config: {{zone_aware_lb_config: {{routing_enabled: {{value: {percent}}}}}}}")
    };
    for made in [slow, zone] as [fn(u32) -> String; 2] {
        assert!(cluster(&made(100)).is_ok());
        assert!(cluster(&made(101)).is_err());
    }
}
