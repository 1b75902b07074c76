//! What a route does: `RouteAction`, `RedirectAction`, `DirectResponseAction`.

use super::breakers::routing_priority;
use super::hash_policy::{hash_policies, header_name};
use super::matcher::regex_rewrite;
use super::retry::{hedge_policy, retry_policy};
use crate::error::Result;
use crate::read::{At, Fields, Msg, Reference};
use crate::report::What;
use nexthop_engine::spec::{ClusterSource, ForwardSpec, RouteAction, RoutingPriority, WeightedCluster};
use std::time::Duration;

const FORWARD: Fields = Fields::of(
    "RouteAction",
    &[
        "cluster",
        "cluster_header",
        "weighted_clusters",
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
.refused(&["cluster_specifier_plugin", "inline_cluster_specifier_plugin", "retry_policy_typed_config"])
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
const WEIGHTED: Fields = Fields::of("WeightedCluster", &["clusters"])
    .not_used(&["total_weight"])
    .not_available(&["runtime_key_prefix"])
    .refused(&["header_name", "use_hash_policy"])
    .one_of(&[&["header_name", "use_hash_policy"]]);
const WEIGHT: Fields = Fields::of("ClusterWeight", &["name", "weight", "metadata_match"])
    .not_used(&["typed_per_filter_config"])
    .not_available(&[
        "request_headers_to_add",
        "request_headers_to_remove",
        "response_headers_to_add",
        "response_headers_to_remove",
        "host_rewrite_literal",
    ])
    .refused(&["cluster_header"]);
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
pub(super) fn forward(at: &At<'_>, checked: bool) -> Result<ForwardSpec> {
    let msg = at.message(&FORWARD)?;
    let default = ForwardSpec::default();
    let codes = [("SERVICE_UNAVAILABLE", 0), ("NOT_FOUND", 1), ("INTERNAL_SERVER_ERROR", 2)];
    let stream = msg.map("max_stream_duration", stream_duration)?;
    Ok(ForwardSpec {
        cluster: cluster_source(at, &msg, checked)?,
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

fn cluster_source(at: &At<'_>, msg: &Msg<'_>, checked: bool) -> Result<ClusterSource> {
    if let Some(name) = msg.get("cluster") {
        return Ok(ClusterSource::Name(named(&name, checked)?));
    }
    if let Some(header) = msg.get("cluster_header") {
        return Ok(ClusterSource::Header(header_name(&header)?));
    }
    let Some(weighted) = msg.get("weighted_clusters") else {
        return Err(at.expected("a route with one of cluster, cluster_header, weighted_clusters"));
    };
    let entries = weighted.message(&WEIGHTED)?.repeated("clusters", |item| {
        let entry = item.message(&WEIGHT)?;
        Ok(WeightedCluster {
            name: named(&entry.need("name")?, checked)?,
            weight: entry.need("weight")?.u32()?,
            metadata_match: entry.map("metadata_match", |m| m.metadata())?,
        })
    })?;
    if entries.is_empty() {
        return Err(weighted.fail("the list of weighted clusters is empty"));
    }
    check_weights(&weighted, &entries)?;
    Ok(ClusterSource::Weighted(entries))
}

/// The sum of weights fits 32 bits and is not zero.
pub(crate) fn check_weights(at: &At<'_>, entries: &[WeightedCluster]) -> Result<()> {
    match entries.iter().map(|entry| u64::from(entry.weight)).sum::<u64>() {
        0 => Err(at.fail("the weights of the clusters add up to 0")),
        sum if sum > u64::from(u32::MAX) => {
            Err(at.fail(format!("the weights of the clusters add up to more than {}", u32::MAX)))
        }
        _ => Ok(()),
    }
}

/// A cluster's name; `checked` remembers the place until all documents are read.
pub(crate) fn named(at: &At<'_>, checked: bool) -> Result<String> {
    let cluster = at.filled()?;
    if checked {
        at.sink().borrow_mut().references.push(Reference { cluster: cluster.clone(), seen: at.seen() });
    }
    Ok(cluster)
}

/// Reads a `RedirectAction`. Its target is known here only when nothing of the request goes into it.
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
    msg.map("regex_rewrite", regex_rewrite)?;
    let text = |name| msg.or(name, String::new(), |t| t.header_value());
    text("prefix_rewrite")?;
    let (scheme, host, path) = (text("scheme_redirect")?, text("host_redirect")?, text("path_redirect")?);
    let scheme = if msg.or("https_redirect", false, |flag| flag.bool())? { "https".into() } else { scheme };
    let port = msg.or("port_redirect", 0, |p| p.u32())?;
    let strip_query = msg.or("strip_query", false, |flag| flag.bool())?;
    let mut headers = Vec::new();
    if scheme.is_empty() || host.is_empty() || path.is_empty() {
        at.note(
            What::NotAvailable,
            "parts of the target come from the request; the answer carries no `location`",
        );
    } else {
        let port = if port == 0 { String::new() } else { format!(":{port}") };
        if !strip_query && !path.contains('?') {
            at.note(What::NotAvailable, "the query of the request is not carried over to the target");
        }
        headers.push(("location".to_owned(), format!("{scheme}://{host}{port}{path}")));
    }
    Ok(RouteAction::Direct { status, headers, body: String::new() })
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
    Ok(RouteAction::Direct { status: u16::try_from(status).unwrap_or(200), headers: Vec::new(), body })
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
