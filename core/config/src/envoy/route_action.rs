//! What a route does: `RouteAction`, `RedirectAction`, `DirectResponseAction`.

use super::breakers::routing_priority;
use super::cluster_source::Scope;
use super::hash_policy::hash_policies;
use super::matcher::regex_rewrite;
use super::retry::{hedge_policy, retry_policy};
use crate::error::Result;
use crate::read::{At, Fields};
use crate::report::What;
use nexthop_engine::spec::{ForwardSpec, RedirectSpec, RouteAction, RoutingPriority};
use std::time::Duration;

const FORWARD: Fields = Fields::of(
    "RouteAction",
    &[
        "cluster",
        "cluster_header",
        "weighted_clusters",
        "cluster_specifier_plugin",
        "inline_cluster_specifier_plugin",
        "cluster_not_found_response_code",
        "metadata_match",
        "prefix_rewrite",
        "regex_rewrite",
        "host_rewrite_literal",
        "timeout",
        "retry_policy",
        "priority",
        "hash_policy",
        "hedge_policy",
        "max_grpc_timeout",
        "grpc_timeout_offset",
        "max_stream_duration",
    ],
)
.not_used(&[
    "append_x_forwarded_host",
    "flush_timeout",
    "early_data_policy",
    "request_mirror_policies",
    "rate_limits",
    "include_vh_rate_limits",
    "cors",
    "upgrade_configs",
])
.not_available(&[
    "auto_host_rewrite",
    "host_rewrite_header",
    "host_rewrite_path_regex",
    "host_rewrite",
    "idle_timeout",
    "internal_redirect_policy",
    "internal_redirect_action",
    "max_internal_redirects",
    "path_rewrite_policy",
    "path_rewrite",
])
.refused(&["retry_policy_typed_config"])
.one_of(&[
    &[
        "cluster",
        "cluster_header",
        "weighted_clusters",
        "cluster_specifier_plugin",
        "inline_cluster_specifier_plugin",
    ],
    &[
        "host_rewrite_literal",
        "auto_host_rewrite",
        "host_rewrite_header",
        "host_rewrite_path_regex",
        "host_rewrite",
    ],
    &["prefix_rewrite", "regex_rewrite", "path_rewrite_policy"],
]);
const STREAM_DURATION: Fields = Fields::of(
    "MaxStreamDuration",
    &["max_stream_duration", "grpc_timeout_header_max", "grpc_timeout_header_offset"],
);
const REDIRECT: Fields = Fields::of(
    "RedirectAction",
    &[
        "https_redirect",
        "scheme_redirect",
        "host_redirect",
        "port_redirect",
        "path_redirect",
        "prefix_rewrite",
        "regex_rewrite",
        "path_rewrite",
        "response_code",
        "strip_query",
    ],
)
.one_of(&[
    &["https_redirect", "scheme_redirect"],
    &["path_redirect", "prefix_rewrite", "regex_rewrite", "path_rewrite"],
]);
const DIRECT: Fields =
    Fields::of("DirectResponseAction", &["status", "body"]).not_available(&["body_format"]);
const BODY: Fields = Fields::of("DataSource", &["inline_string", "inline_bytes"])
    .not_used(&["watched_directory"])
    .refused(&["filename", "environment_variable"])
    .one_of(&[&["inline_string", "inline_bytes", "filename", "environment_variable"]]);

/// Reads a `RouteAction`.
pub(super) fn forward(at: &At<'_>, scope: &Scope) -> Result<ForwardSpec> {
    let msg = at.message(&FORWARD)?;
    let default = ForwardSpec::default();
    let codes = [("SERVICE_UNAVAILABLE", 0), ("NOT_FOUND", 1), ("INTERNAL_SERVER_ERROR", 2)];
    let stream = msg.map("max_stream_duration", stream_duration)?;
    let (cluster, word) = scope.source(at, &msg)?;
    Ok(ForwardSpec {
        cluster,
        word,
        timeout: msg.or("timeout", default.timeout, |d| d.millis())?,
        max_stream_duration: stream.map(|(duration, _)| duration),
        grpc_timeout_header: stream.and_then(|(_, grpc)| grpc),
        max_grpc_timeout: msg.map("max_grpc_timeout", |d| d.millis())?,
        grpc_timeout_offset: msg.or("grpc_timeout_offset", default.grpc_timeout_offset, |d| d.millis())?,
        priority: msg.or("priority", RoutingPriority::Default, routing_priority)?,
        retry: msg.map("retry_policy", retry_policy)?,
        hedge: msg.map("hedge_policy", hedge_policy)?,
        hash_policy: hash_policies(&msg)?,
        metadata_match: msg.map("metadata_match", |m| m.metadata())?,
        cluster_not_found_status: match msg
            .or("cluster_not_found_response_code", 0, |c| c.enumeration(&codes))?
        {
            1 => 404,
            2 => 500,
            _ => 503,
        },
        prefix_rewrite: msg.or("prefix_rewrite", String::new(), |p| p.header_value())?,
        regex_rewrite: msg.map("regex_rewrite", regex_rewrite)?,
        host_rewrite: msg.or("host_rewrite_literal", String::new(), |h| h.header_value())?,
    })
}

/// Set at all, it switches the route's time-outs off.
fn stream_duration(at: &At<'_>) -> Result<(Duration, Option<(Duration, Duration)>)> {
    let msg = at.message(&STREAM_DURATION)?;
    let offset = msg.or("grpc_timeout_header_offset", Duration::ZERO, |d| d.millis())?;
    let max = msg.map("grpc_timeout_header_max", |d| d.millis())?;
    Ok((msg.or("max_stream_duration", Duration::ZERO, |d| d.millis())?, max.map(|max| (max, offset))))
}

/// Reads a `RedirectAction`.
pub(super) fn redirect(at: &At<'_>) -> Result<RouteAction> {
    let msg = at.message(&REDIRECT)?;
    let codes = [
        ("MOVED_PERMANENTLY", 0),
        ("FOUND", 1),
        ("SEE_OTHER", 2),
        ("TEMPORARY_REDIRECT", 3),
        ("PERMANENT_REDIRECT", 4),
    ];
    let status = match msg.or("response_code", 0, |c| c.enumeration(&codes))? {
        1 => 302,
        2 => 303,
        3 => 307,
        4 => 308,
        _ => 301,
    };
    if let Some(rewrite) = msg.get("path_rewrite") {
        rewrite.note(What::NotAvailable, "the target is not known here; the answer carries no `location`");
        return Ok(RouteAction::Direct { status, body: String::new() });
    }
    let text = |name| msg.or(name, String::new(), |t| t.header_value());
    let https = msg.or("https_redirect", false, |flag| flag.bool())?;
    Ok(RouteAction::Redirect(Box::new(RedirectSpec {
        status,
        scheme: if https { "https".into() } else { text("scheme_redirect")? },
        host: text("host_redirect")?,
        port: msg.or("port_redirect", 0, |p| p.u32())?,
        path: text("path_redirect")?,
        prefix_rewrite: text("prefix_rewrite")?,
        regex_rewrite: msg.map("regex_rewrite", regex_rewrite)?,
        strip_query: msg.or("strip_query", false, |flag| flag.bool())?,
    })))
}

/// Reads a `DirectResponseAction`.
pub(super) fn direct_response(at: &At<'_>) -> Result<RouteAction> {
    let msg = at.message(&DIRECT)?;
    let status = msg.need("status")?.u32_in(200, 599)?;
    let body = match msg.get("body") {
        None => String::new(),
        Some(body) => {
            let source = body.message(&BODY)?;
            match (source.get("inline_string"), source.get("inline_bytes")) {
                (Some(text), _) => text.text()?,
                (None, Some(bytes)) => {
                    from_base64(&bytes.text()?).ok_or_else(|| bytes.expected("base64 of UTF-8 text"))?
                }
                (None, None) => return Err(body.expected("a body with `inline_string` or `inline_bytes`")),
            }
        }
    };
    Ok(RouteAction::Direct { status: u16::try_from(status).unwrap_or(200), body })
}

fn from_base64(text: &str) -> Option<String> {
    String::from_utf8(bytes_of_base64(text)?).ok()
}

/// Bytes from base64, of both alphabets, padded or not.
pub(super) fn bytes_of_base64(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0u32);
    for byte in text.trim_end_matches('=').bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        held = (held << 6 | u32::from(digit)) & 0xfff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits & 0xff) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::from_base64;

    #[test]
    fn base64() {
        assert_eq!(from_base64("aGVsbG8gd29ybGQ=").as_deref(), Some("hello world"));
        assert_eq!(from_base64("aGk").as_deref(), Some("hi"));
        assert_eq!(from_base64("").as_deref(), Some(""));
        assert_eq!(from_base64("a*"), None);
        assert_eq!(from_base64("_w=="), None);
    }
}
