//! `HealthCheck`: checked against Envoy's rules; this version runs no active checks.

use crate::error::Result;
use crate::read::{At, Fields, Msg};
use crate::report::What;
use nexthop_engine::spec::Protocol;
use std::collections::BTreeSet;

const CHECK: Fields = Fields::of(
    "HealthCheck",
    &[
        "name",
        "timeout",
        "interval",
        "initial_jitter",
        "interval_jitter",
        "interval_jitter_percent",
        "unhealthy_threshold",
        "healthy_threshold",
        "alt_port",
        "reuse_connection",
        "http_health_check",
        "tcp_health_check",
        "grpc_health_check",
        "custom_health_check",
        "no_traffic_interval",
        "no_traffic_healthy_interval",
        "unhealthy_interval",
        "unhealthy_edge_interval",
        "healthy_edge_interval",
        "always_log_health_check_failures",
        "always_log_health_check_success",
        // Matters of the checker's own connections and logs.
        "event_log_path",
        "event_logger",
        "event_service",
        "tls_options",
        "transport_socket_match_criteria",
    ],
)
.one_of(&[&["http_health_check", "tcp_health_check", "grpc_health_check", "custom_health_check"]]);
const HTTP: Fields = Fields::of(
    "HttpHealthCheck",
    &[
        "host",
        "path",
        "send",
        "receive",
        "response_buffer_size",
        "request_headers_to_add",
        "request_headers_to_remove",
        "expected_statuses",
        "retriable_statuses",
        "codec_client_type",
        "use_alpn_protocol",
        "service_name_matcher",
        "method",
    ],
);
const RANGE: Fields = Fields::of("Int64Range", &["start", "end"]);

const METHODS: &[(&str, i32)] = &[
    ("METHOD_UNSPECIFIED", 0),
    ("GET", 1),
    ("HEAD", 2),
    ("POST", 3),
    ("PUT", 4),
    ("DELETE", 5),
    ("CONNECT", 6),
    ("OPTIONS", 7),
    ("TRACE", 8),
    ("PATCH", 9),
];

/// Reads `health_checks`.
pub(super) fn health_checks(at: &At<'_>, protocol: Protocol) -> Result<()> {
    let mut names = BTreeSet::new();
    let count = at.node.items().map_or(0, <[_]>::len);
    for item in at.items()? {
        let name = check(&item, protocol)?;
        if count > 1 && (name.is_empty() || !names.insert(name)) {
            return Err(item.fail("of several health checks each needs a name of its own"));
        }
    }
    if count > 0 {
        at.note(What::NotAvailable, "known, but not available in this version: no host is checked actively");
    }
    Ok(())
}

fn check(at: &At<'_>, protocol: Protocol) -> Result<String> {
    let msg = at.message(&CHECK)?;
    msg.need("timeout")?.positive_duration()?;
    msg.need("interval")?.positive_duration()?;
    msg.need("unhealthy_threshold")?.u32()?;
    msg.need("healthy_threshold")?.u32()?;
    for name in [
        "no_traffic_interval",
        "no_traffic_healthy_interval",
        "unhealthy_interval",
        "unhealthy_edge_interval",
        "healthy_edge_interval",
    ] {
        msg.map(name, |d| d.positive_duration())?;
    }
    msg.map("initial_jitter", |d| d.duration())?;
    msg.map("interval_jitter", |d| d.duration())?;
    msg.map("interval_jitter_percent", |n| n.u32())?;
    msg.map("alt_port", |n| n.u32_in(0, 65_535))?;
    msg.map("reuse_connection", |flag| flag.bool())?;
    if let Some(http) = msg.get("http_health_check") {
        http_check(&http.message(&HTTP)?)?;
    } else if let Some(grpc) = msg.get("grpc_health_check") {
        if protocol != Protocol::Http2 {
            return Err(grpc.fail("a gRPC health check needs a cluster that speaks HTTP/2"));
        }
    } else if !msg.has("tcp_health_check") && !msg.has("custom_health_check") {
        return Err(at.expected(
            "a health check with one of http_health_check, tcp_health_check, grpc_health_check, custom_health_check",
        ));
    }
    msg.or("name", String::new(), |name| name.text())
}

fn http_check(msg: &Msg<'_>) -> Result<()> {
    msg.need("path")?.filled()?;
    for name in ["expected_statuses", "retriable_statuses"] {
        msg.each(name, |item| {
            let range = item.message(&RANGE)?;
            let start = range.or("start", 0, |n| n.i64())?;
            let end = range.or("end", 0, |n| n.i64())?;
            if start < 100 || end > 600 || start >= end {
                return Err(item.fail("a range of statuses lies in 100..600 and is not empty"));
            }
            Ok(())
        })?;
    }
    let method = msg.or("method", 0, |m| m.enumeration(METHODS))?;
    if method == 6 {
        return Err(msg.need("method")?.fail("a health check cannot use CONNECT"));
    }
    if let Some(send) = msg.get("send").filter(|_| !matches!(method, 3 | 4 | 9)) {
        return Err(send.fail("only POST, PUT and PATCH send a body"));
    }
    Ok(())
}
