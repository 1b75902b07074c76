//! `HealthCheck`. What is read here acts once somebody performs the checks.

use super::hash_policy::header_name;
use super::matcher::string_match;
use super::route_action::bytes_of_base64;
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use crate::report::What;
use nexthop_engine::spec::{HealthCheckSpec, HttpProbe, Probe, Protocol};
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
    ],
)
// Matters of the checker's own connections and logs.
.not_used(&[
    "event_log_path",
    "event_logger",
    "event_service",
    "tls_options",
    "transport_socket_match_criteria",
])
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
        "service_name_matcher",
        "method",
    ],
)
.not_used(&["use_alpn_protocol"]);
const TCP: Fields = Fields::of("TcpHealthCheck", &["send", "receive"]).not_used(&["proxy_protocol_config"]);
const GRPC: Fields =
    Fields::of("GrpcHealthCheck", &["service_name", "authority"]).not_used(&["initial_metadata"]);
const CUSTOM: Fields = Fields::of("CustomHealthCheck", &["name"]).not_used(&["typed_config"]);
const PAYLOAD: Fields = Fields::of("Payload", &["text", "binary"]).one_of(&[&["text", "binary"]]);
const HEADER_OPTION: Fields =
    Fields::of("HeaderValueOption", &["header"]).not_used(&["append", "append_action", "keep_empty_value"]);
const HEADER: Fields = Fields::of("HeaderValue", &["key", "value"]).not_used(&["raw_value"]);
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
pub(super) fn health_checks(at: &At<'_>, protocol: Protocol) -> Result<Vec<HealthCheckSpec>> {
    let mut names = BTreeSet::new();
    let mut list = Vec::new();
    let count = at.node.items().map_or(0, <[_]>::len);
    for item in at.repeated() {
        let spec = check(&item, protocol)?;
        if count > 1 && (spec.name.is_empty() || !names.insert(spec.name.clone())) {
            return Err(item.fail("of several health checks each needs a name of its own"));
        }
        list.push(spec);
    }
    if count > 0 {
        at.note(
            What::NotUsed,
            "does nothing until the program performs the checks, with the ready-made loop of its language or by hand",
        );
    }
    Ok(list)
}

fn check(at: &At<'_>, protocol: Protocol) -> Result<HealthCheckSpec> {
    let msg = at.message(&CHECK)?;
    let timeout = msg.need("timeout")?.positive_duration()?;
    let interval = msg.need("interval")?.positive_duration()?;
    let thresholds = (msg.need("unhealthy_threshold")?.u32()?, msg.need("healthy_threshold")?.u32()?);
    let alt_port = msg.map("alt_port", |n| n.u32_in(0, 65_535))?;
    let probe = if let Some(http) = msg.get("http_health_check") {
        Probe::Http(Box::new(http_probe(&http.message(&HTTP)?)?))
    } else if let Some(tcp) = msg.get("tcp_health_check") {
        let tcp = tcp.message(&TCP)?;
        Probe::Tcp {
            send: tcp.or("send", Vec::new(), payload)?,
            receive: tcp.repeated("receive", |item| payload(&item))?,
        }
    } else if let Some(grpc) = msg.get("grpc_health_check") {
        if protocol != Protocol::Http2 {
            return Err(grpc.fail("a gRPC health check needs a cluster that speaks HTTP/2"));
        }
        let grpc = grpc.message(&GRPC)?;
        Probe::Grpc {
            service: grpc.or("service_name", String::new(), |s| s.text())?,
            authority: grpc.or("authority", String::new(), |s| s.text())?,
        }
    } else if let Some(custom) = msg.get("custom_health_check") {
        Probe::Custom { name: custom.message(&CUSTOM)?.need("name")?.filled()? }
    } else {
        return Err(at.expected(
            "a health check with one of http_health_check, tcp_health_check, grpc_health_check, custom_health_check",
        ));
    };
    let default = HealthCheckSpec::new(interval, timeout, thresholds, probe);
    let positive = |name| msg.map(name, |d| d.positive_duration());
    Ok(HealthCheckSpec {
        name: msg.or("name", String::new(), |name| name.text())?,
        initial_jitter: msg.or("initial_jitter", default.initial_jitter, |d| d.duration())?,
        interval_jitter: msg.or("interval_jitter", default.interval_jitter, |d| d.duration())?,
        interval_jitter_percent: msg.or("interval_jitter_percent", 0, |n| n.u32())?,
        no_traffic_interval: positive("no_traffic_interval")?.unwrap_or(default.no_traffic_interval),
        no_traffic_healthy_interval: positive("no_traffic_healthy_interval")?,
        unhealthy_interval: positive("unhealthy_interval")?,
        unhealthy_edge_interval: positive("unhealthy_edge_interval")?,
        healthy_edge_interval: positive("healthy_edge_interval")?,
        alt_port: alt_port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0),
        reuse_connection: msg.or("reuse_connection", true, |flag| flag.bool())?,
        always_log_failures: msg.or("always_log_health_check_failures", false, |flag| flag.bool())?,
        always_log_success: msg.or("always_log_health_check_success", false, |flag| flag.bool())?,
        ..default
    })
}

fn http_probe(msg: &Msg<'_>) -> Result<HttpProbe> {
    let default = HttpProbe::get(&msg.need("path")?.filled()?);
    let ranges = |name| {
        msg.repeated(name, |item| {
            let range = item.message(&RANGE)?;
            let start = range.or("start", 0, |n| n.i64())?;
            let end = range.or("end", 0, |n| n.i64())?;
            match (u16::try_from(start), u16::try_from(end)) {
                (Ok(start), Ok(end)) if start >= 100 && end <= 600 && start < end => Ok((start, end)),
                _ => Err(item.fail("a range of statuses lies in 100..600 and is not empty")),
            }
        })
    };
    let method = msg.or("method", 0, |m| m.enumeration(METHODS))?;
    if method == 6 {
        return Err(msg.need("method")?.fail("a health check cannot use CONNECT"));
    }
    if let Some(send) = msg.get("send").filter(|_| !matches!(method, 3 | 4 | 7 | 9)) {
        return Err(send.fail("only POST, PUT, PATCH and OPTIONS send a body"));
    }
    let receive = msg.repeated("receive", |item| payload(&item))?;
    let size = msg.or("response_buffer_size", default.response_buffer_size, |n| n.u64())?;
    let wanted = receive.iter().map(Vec::len).sum::<usize>() as u64;
    if size > 0 && wanted > size {
        return Err(msg.at.fail(format!(
            "`receive` has {wanted} bytes, more than the {size} of the body that are looked at (`response_buffer_size`)"
        )));
    }
    Ok(HttpProbe {
        host: msg.or("host", String::new(), |h| h.text())?,
        method: METHODS[usize::try_from(method.max(1)).unwrap_or(1)].0.to_owned(),
        send: msg.or("send", Vec::new(), payload)?,
        receive,
        response_buffer_size: size,
        headers_to_add: msg.repeated("request_headers_to_add", |item| header(&item))?,
        headers_to_remove: msg.repeated("request_headers_to_remove", |item| header_name(&item))?,
        expected_statuses: ranges("expected_statuses")?,
        retriable_statuses: ranges("retriable_statuses")?,
        service_name: msg.map("service_name_matcher", string_match)?,
        http2: msg
            .or("codec_client_type", 0, |c| c.enumeration(&[("HTTP1", 0), ("HTTP2", 1), ("HTTP3", 2)]))?
            == 1,
        ..default
    })
}

fn header(at: &At<'_>) -> Result<(String, String)> {
    let option = at.message(&HEADER_OPTION)?;
    let header = option.need("header")?.message(&HEADER)?;
    let key = header.need("key")?;
    let name = header_name(&key)?;
    if name.starts_with(':') || name == "host" {
        return Err(key.fail("neither pseudo headers nor `host` can be changed"));
    }
    Ok((name, header.or("value", String::new(), |v| v.text())?))
}

/// Bytes in hexadecimal (`text`) or base64 (`binary`).
fn payload(at: &At<'_>) -> Result<Vec<u8>> {
    let msg = at.message(&PAYLOAD)?;
    if let Some(text) = msg.get("text") {
        return hex(&text.filled()?).ok_or_else(|| text.expected("pairs of hexadecimal digits"));
    }
    match msg.get("binary") {
        Some(binary) => bytes_of_base64(&binary.text()?).ok_or_else(|| binary.expected("base64")),
        None => Err(at.expected("a payload: `text` or `binary`")),
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits?;
    (digits.len() % 2 == 0).then(|| digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
