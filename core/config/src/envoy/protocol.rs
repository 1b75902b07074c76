//! The protocol towards the hosts: `HttpProtocolOptions` and its older forms in the cluster itself.

use super::hash_policy::hash_policies;
use super::outlier::error_matcher;
use super::retry::retry_policy;
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use crate::report::What;
use nexthop_engine::spec::{ClusterSpec, Protocol};
use std::time::Duration;

const KEY: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

const OPTIONS: Fields = Fields::of(
    "HttpProtocolOptions",
    &[
        "common_http_protocol_options",
        "explicit_http_config",
        "use_downstream_protocol_config",
        "auto_config",
        "hash_policy",
        "retry_policy",
        "outlier_detection",
    ],
)
.not_used(&[
    "upstream_http_protocol_options",
    "http_filters",
    "header_validation_config",
    "request_mirror_policies",
])
.one_of(&[&["explicit_http_config", "use_downstream_protocol_config", "auto_config"]]);
const EXPLICIT: Fields =
    Fields::of("ExplicitHttpConfig", &["http_protocol_options", "http2_protocol_options"])
        .refused(&["http3_protocol_options"])
        .one_of(&[&["http_protocol_options", "http2_protocol_options", "http3_protocol_options"]]);
const NEGOTIATED: Fields = Fields::of("AutoHttpConfig", &["http_protocol_options", "http2_protocol_options"])
    .not_used(&["http3_protocol_options", "alternate_protocols_cache_options"]);
const COMMON: Fields = Fields::of(
    "HttpProtocolOptions",
    &["idle_timeout", "max_stream_duration", "max_requests_per_connection"],
)
.not_used(&["max_headers_count", "max_response_headers_kb", "headers_with_underscores_action"])
.not_available(&["max_connection_duration", "max_connection_duration_jitter"]);
const HTTP1: Fields = Fields::of("Http1ProtocolOptions", &[]).not_used(&[
    "allow_absolute_url",
    "accept_http_10",
    "default_host_for_http_10",
    "header_key_format",
    "enable_trailers",
    "allow_chunked_length",
    "override_stream_error_on_invalid_http_message",
    "send_fully_qualified_url",
    "use_balsa_parser",
    "allow_custom_methods",
    "ignore_http_11_upgrade",
]);
const HTTP2: Fields = Fields::of("Http2ProtocolOptions", &["max_concurrent_streams"]).not_used(&[
    "hpack_table_size",
    "initial_stream_window_size",
    "initial_connection_window_size",
    "allow_connect",
    "allow_metadata",
    "max_outbound_frames",
    "max_outbound_control_frames",
    "max_consecutive_inbound_frames_with_empty_payload",
    "max_inbound_priority_frames_per_stream",
    "max_inbound_window_update_frames_per_data_frame_sent",
    "stream_error_on_invalid_http_messaging",
    "override_stream_error_on_invalid_http_message",
    "custom_settings_parameters",
    "connection_keepalive",
    "use_oghttp2_codec",
    "max_metadata_size",
    "enable_huffman_encoding",
    "max_header_field_size_kb",
    "disallow_obs_text",
    "stream_reset_burst",
    "stream_reset_rate",
]);

/// Reads what a cluster says about its protocol into its spec.
pub(super) fn protocol(cluster: &Msg<'_>, spec: &mut ClusterSpec) -> Result<()> {
    let legacy = legacy(cluster)?;
    let mut typed = false;
    if let Some(options) = cluster.get("typed_extension_protocol_options") {
        for (entry, at) in options.entries()? {
            if entry.key != KEY {
                if !entry.key.starts_with("envoy.") {
                    return Err(at.unknown_name("protocol options", &entry.key, [KEY].into_iter()));
                }
                at.note(What::NotUsed, "not used here: options of another protocol");
                continue;
            }
            at.any(|type_name, at| match type_name == KEY {
                true => typed_options(&at, spec),
                false => Err(at.fail(format!("expected the type {KEY}, found {type_name}"))),
            })?;
            typed = true;
        }
    }
    if !typed {
        (spec.protocol, spec.max_concurrent_streams) = legacy.protocol;
        legacy.common.apply(spec);
    }
    Ok(())
}

/// The older fields, which count when there are no typed options.
struct Legacy {
    protocol: (Protocol, u32),
    common: Common,
}

/// What all versions of HTTP have.
struct Common {
    idle_timeout: Duration,
    max_stream_duration: Duration,
    max_requests_per_connection: u32,
}

impl Common {
    fn apply(self, spec: &mut ClusterSpec) {
        spec.idle_timeout = self.idle_timeout;
        spec.max_stream_duration = self.max_stream_duration;
        spec.max_requests_per_connection = self.max_requests_per_connection;
    }
}

fn legacy(cluster: &Msg<'_>) -> Result<Legacy> {
    let default = ClusterSpec::default();
    let words = [("USE_CONFIGURED_PROTOCOL", 0), ("USE_DOWNSTREAM_PROTOCOL", 1)];
    let downstream = cluster.or("protocol_selection", 0, |p| p.enumeration(&words))? == 1;
    let http1 = cluster.map("http_protocol_options", http1)?.is_some();
    let http2 = cluster.map("http2_protocol_options", http2)?;
    if http1 && http2.is_some() && !downstream {
        let text = "`http_protocol_options` and `http2_protocol_options` exclude each other here";
        return Err(cluster.need("http2_protocol_options")?.fail(text));
    }
    if let Some(at) = cluster.get("protocol_selection").filter(|_| downstream) {
        at.note(What::NotAvailable, "the protocol of the client is not known here: HTTP/1.1 is assumed");
    }
    Ok(Legacy {
        protocol: match http2.filter(|_| !downstream) {
            Some(streams) => (Protocol::Http2, streams),
            None => (Protocol::Http1, default.max_concurrent_streams),
        },
        common: {
            // The older place of a field that the options have, too.
            let most = cluster.or("max_requests_per_connection", 0, |n| n.u32())?;
            let unsaid = Common {
                idle_timeout: default.idle_timeout,
                max_stream_duration: Duration::ZERO,
                max_requests_per_connection: most,
            };
            match cluster.get("common_http_protocol_options") {
                Some(at) => common_options(&at, unsaid)?,
                None => unsaid,
            }
        },
    })
}

fn common_options(at: &At<'_>, unsaid: Common) -> Result<Common> {
    let msg = at.message(&COMMON)?;
    Ok(Common {
        idle_timeout: msg.or("idle_timeout", unsaid.idle_timeout, |d| d.millis())?,
        max_stream_duration: msg.or("max_stream_duration", unsaid.max_stream_duration, |d| d.millis())?,
        max_requests_per_connection: msg.or(
            "max_requests_per_connection",
            unsaid.max_requests_per_connection,
            |n| n.u32(),
        )?,
    })
}

fn typed_options(at: &At<'_>, spec: &mut ClusterSpec) -> Result<()> {
    let msg = at.message(&OPTIONS)?;
    if let Some(common) = msg.get("common_http_protocol_options") {
        let unsaid = Common {
            idle_timeout: spec.idle_timeout,
            max_stream_duration: spec.max_stream_duration,
            max_requests_per_connection: 0,
        };
        common_options(&common, unsaid)?.apply(spec);
    }
    if let Some(explicit) = msg.get("explicit_http_config") {
        let explicit_msg = explicit.message(&EXPLICIT)?;
        let streams = explicit_msg.map("http2_protocol_options", http2)?;
        let first = explicit_msg.map("http_protocol_options", http1)?;
        match (first, streams) {
            (_, Some(streams)) => {
                (spec.protocol, spec.max_concurrent_streams) = (Protocol::Http2, streams);
            }
            (Some(()), None) => {}
            (None, None) => {
                return Err(explicit.expected("`http_protocol_options` or `http2_protocol_options`"));
            }
        }
    } else if let Some(at) = msg.get("auto_config").or_else(|| msg.get("use_downstream_protocol_config")) {
        let negotiated = at.message(&NEGOTIATED)?;
        negotiated.map("http_protocol_options", http1)?;
        negotiated.map("http2_protocol_options", http2)?;
        at.note(
            What::NotAvailable,
            "the protocol is agreed on a connection, which is the caller's: HTTP/1.1 is assumed",
        );
    } else {
        return Err(at.expected(
            "one of explicit_http_config, use_downstream_protocol_config, auto_config among the protocol options",
        ));
    }
    spec.hash_policy = hash_policies(&msg)?;
    spec.retry = msg.map("retry_policy", retry_policy)?;
    if let Some(at) = msg.get("outlier_detection") {
        let matcher = error_matcher(&at)?;
        match &mut spec.outlier {
            Some(outlier) => outlier.error_matcher = Some(matcher),
            None => at.note(What::NotUsed, "not used here: the cluster has no outlier_detection"),
        }
    }
    Ok(())
}

fn http1(at: &At<'_>) -> Result<()> {
    at.message(&HTTP1).map(|_| ())
}

/// The streams one connection carries.
fn http2(at: &At<'_>) -> Result<u32> {
    let default = ClusterSpec::default().max_concurrent_streams;
    at.message(&HTTP2)?.or("max_concurrent_streams", default, |n| n.u32_in(1, 2_147_483_647))
}
