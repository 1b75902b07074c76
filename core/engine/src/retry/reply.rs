//! What the client is told when a failure is final: status, flag, details and body, in Envoy's words.

use crate::outcome::{LocalReply, failure, flags};

/// Envoy's flag "OM", which no other part of the engine sets.
const OVERLOAD_MANAGER: u32 = 1 << 25;

/// Status and response flag of the local reply to a failure (numbers of [`failure`]).
pub const fn reply_of(failure: u8) -> (u16, u32) {
    match failure {
        failure::NONE => (0, 0),
        failure::CONNECT_FAILURE | failure::CONNECT_TIMEOUT | failure::LOCAL_CONNECT_FAILURE => {
            (503, flags::UF)
        }
        failure::CONNECTION_TERMINATION => (503, flags::UC),
        failure::PROTOCOL_ERROR => (502, flags::UPE),
        failure::TIMEOUT
        | failure::PER_TRY_TIMEOUT
        | failure::PER_TRY_IDLE_TIMEOUT
        | failure::GLOBAL_TIMEOUT => (504, flags::UT),
        failure::MAX_STREAM_DURATION => (504, flags::UMSDR),
        failure::LOCAL_RESET | failure::PREMATURE_CLOSE => (503, flags::LR),
        failure::OVERFLOW => (503, flags::UO),
        failure::OVERLOAD_MANAGER => (503, OVERLOAD_MANAGER),
        _ => (503, flags::UR),
    }
}

/// Envoy's response code details. Where its transport reason is known use [`details_with`].
pub const fn details(failure: u8) -> &'static str {
    macro_rules! reset {
        ($reason:literal) => {
            concat!("upstream_reset_before_response_started{", $reason, "}")
        };
    }
    match failure {
        failure::NONE => "via_upstream",
        failure::CONNECT_FAILURE => reset!("remote_connection_failure"),
        failure::CONNECT_TIMEOUT => reset!("connection_timeout"),
        failure::CONNECTION_TERMINATION => reset!("connection_termination"),
        failure::REMOTE_RESET => reset!("remote_reset"),
        failure::REFUSED_STREAM => reset!("remote_refused_stream_reset"),
        failure::PROTOCOL_ERROR => reset!("protocol_error"),
        failure::LOCAL_CONNECT_FAILURE => reset!("local_connection_failure"),
        failure::TIMEOUT | failure::GLOBAL_TIMEOUT => "response_timeout",
        failure::PER_TRY_TIMEOUT => "upstream_per_try_timeout",
        failure::PER_TRY_IDLE_TIMEOUT => "upstream_per_try_idle_timeout",
        failure::MAX_STREAM_DURATION => "upstream_max_stream_duration_reached",
        failure::LOCAL_RESET => reset!("local_reset"),
        failure::OVERFLOW => reset!("overflow"),
        failure::CONNECT_ERROR => reset!("remote_error_with_CONNECT_request"),
        failure::PREMATURE_CLOSE => reset!("HTTP/1_premature_upstream_half_close"),
        failure::OVERLOAD_MANAGER => reset!("overload_manager_reset"),
        failure::NO_ERROR_RESET => reset!("remote_reset_(no_error)"),
        _ => reset!("unknown"),
    }
}

/// Envoy's words for the reset; empty for what is no reset.
pub const fn reset_reason(failure: u8) -> &'static str {
    match failure {
        failure::CONNECT_FAILURE => "remote connection failure",
        failure::CONNECT_TIMEOUT => "connection timeout",
        failure::CONNECTION_TERMINATION => "connection termination",
        failure::REMOTE_RESET => "remote reset",
        failure::REFUSED_STREAM => "remote refused stream reset",
        failure::PROTOCOL_ERROR => "protocol error",
        failure::LOCAL_CONNECT_FAILURE => "local connection failure",
        failure::LOCAL_RESET => "local reset",
        failure::OVERFLOW => "overflow",
        failure::CONNECT_ERROR => "remote error with CONNECT request",
        failure::PREMATURE_CLOSE => "HTTP/1 premature upstream half close",
        failure::OVERLOAD_MANAGER => "overload manager reset",
        failure::NO_ERROR_RESET => "remote reset (no error)",
        _ => "",
    }
}

/// The details with the transport's own reason (say `delayed connect error: Connection refused`), blanks replaced;
/// as [`details`] when there is none or the failure is no reset.
pub fn details_with(failure: u8, transport: &str) -> String {
    let details = details(failure);
    match details.strip_suffix('}') {
        Some(open) if !transport.is_empty() => {
            let transport: String =
                transport.chars().map(|c| if c.is_ascii_whitespace() { '_' } else { c }).collect();
            format!("{open}|{transport}}}")
        }
        _ => details.to_owned(),
    }
}

/// The body text of the local reply; the transport's own reason is kept from clients. `retried`: at least one
/// retry was sent before.
pub fn body(failure: u8, retried: bool) -> String {
    match failure {
        failure::NONE => String::new(),
        failure::TIMEOUT
        | failure::PER_TRY_TIMEOUT
        | failure::PER_TRY_IDLE_TIMEOUT
        | failure::GLOBAL_TIMEOUT => "upstream request timeout".into(),
        failure::MAX_STREAM_DURATION => "upstream max stream duration reached".into(),
        _ => {
            let retried = if retried { "retried and the latest " } else { "" };
            let reason = reset_reason(failure);
            format!(
                "upstream connect error or disconnect/reset before headers. {retried}reset reason: {reason}"
            )
        }
    }
}

/// The local reply of a gRPC request: its status is in a header, its text in another. `duration`: the whole
/// request's duration is over, which Envoy's connection manager answers.
pub fn speak_grpc(reply: &mut LocalReply, duration: bool) {
    let status = match reply.status {
        _ if duration => 4,
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => 14,
        _ => 2,
    };
    let mut message = String::new();
    for byte in std::mem::take(&mut reply.body).bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => message.push(char::from(byte)),
            _ => message.push_str(&format!("%{byte:02X}")),
        }
    }
    reply.status = 200;
    reply.headers.retain(|(name, _)| name != "content-type");
    reply.headers.push(("content-type".into(), "application/grpc".into()));
    reply.headers.push(("grpc-status".into(), status.to_string()));
    if !message.is_empty() {
        reply.headers.push(("grpc-message".into(), message));
    }
}
