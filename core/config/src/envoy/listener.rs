//! Listeners: of their HTTP connection managers the route tables are read, and the HTTP filters that decide on requests.

use super::gates::{admission, concurrency};
use super::route_table::route_configuration;
use super::session;
use crate::batch::Batch;
use crate::error::Result;
use crate::read::{At, Fields};
use crate::report::What;
use nexthop_engine::spec::GateSpec;

const LISTENER: Fields = Fields::of("Listener", &["filter_chains", "default_filter_chain"]).not_used(&[
    "name",
    "address",
    "additional_addresses",
    "stat_prefix",
    "stats_matcher",
    "fcds_config",
    "filter_chain_matcher",
    "use_original_dst",
    "per_connection_buffer_limit_bytes",
    "per_connection_buffer_high_watermark_timeout",
    "metadata",
    "deprecated_v1",
    "drain_type",
    "listener_filters",
    "listener_filters_timeout",
    "continue_on_listener_filters_timeout",
    "transparent",
    "freebind",
    "socket_options",
    "tcp_fast_open_queue_length",
    "traffic_direction",
    "udp_listener_config",
    "api_listener",
    "connection_balance_config",
    "reuse_port",
    "enable_reuse_port",
    "access_log",
    "tcp_backlog_size",
    "max_connections_to_accept_per_socket_event",
    "bind_to_port",
    "internal_listener",
    "enable_mptcp",
    "ignore_global_conn_limit",
    "bypass_overload_manager",
    "tcp_keepalive",
]);
const CHAIN: Fields = Fields::of("FilterChain", &["filters"]).not_used(&[
    "filter_chain_match",
    "use_proxy_proto",
    "metadata",
    "transport_socket",
    "transport_socket_connect_timeout",
    "name",
]);
const FILTER: Fields = Fields::of("Filter", &["name", "typed_config"])
    .not_available(&["config_discovery"])
    .one_of(&[&["typed_config", "config_discovery"]]);
const MANAGER: Fields = Fields::of("HttpConnectionManager", &["route_config", "http_filters", "stat_prefix"])
    .not_used(&[
        "codec_type",
        "add_user_agent",
        "tracing",
        "http1_safe_max_connection_duration",
        "http_protocol_options",
        "http2_protocol_options",
        "http3_protocol_options",
        "server_name",
        "server_header_transformation",
        "scheme_header_transformation",
        "max_request_headers_kb",
        "stream_flush_timeout",
        "request_headers_timeout",
        "drain_timeout",
        "drain_timeout_jitter",
        "delayed_close_timeout",
        "access_log",
        "access_log_flush_interval",
        "flush_access_log_on_new_request",
        "access_log_options",
        "skip_xff_append",
        "via",
        "generate_request_id",
        "preserve_external_request_id",
        "always_set_request_id_in_response",
        "forward_client_cert_details",
        "set_current_client_cert_details",
        "forward_client_cert_matcher",
        "proxy_100_continue",
        "represent_ipv4_remote_address_as_ipv4_mapped_ipv6",
        "upgrade_configs",
        "request_id_extension",
        "stream_error_on_invalid_http_message",
        "proxy_status_config",
        "typed_header_validation_config",
        "append_x_forwarded_port",
        "append_local_overload",
        "add_proxy_protocol_connection_state",
        "forward_proto_config",
        "record_route_resolution_stats",
    ])
    .not_available(&[
        "rds",
        "scoped_routes",
        "stream_idle_timeout",
        "request_timeout",
        "use_remote_address",
        "xff_num_trusted_hops",
        "internal_address_config",
        "original_ip_detection_extensions",
        "early_header_mutation_extensions",
        "common_http_protocol_options",
        "normalize_path",
        "merge_slashes",
        "path_with_escaped_slashes_action",
        "path_normalization_options",
        "strip_matching_host_port",
        "strip_any_host_port",
        "strip_trailing_host_dot",
        "local_reply_config",
    ])
    .one_of(&[&["rds", "route_config", "scoped_routes"]]);

const MANAGER_TYPE: &str =
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const ADMISSION_TYPE: &str = "envoy.extensions.filters.http.admission_control.v3.AdmissionControl";
const CONCURRENCY_TYPE: &str = "envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency";
const ROUTER_TYPE: &str = "envoy.extensions.filters.http.router.v3.Router";

const ROUTER: Fields =
    Fields::of("Router", &["respect_expected_rq_timeout", "suppress_envoy_headers", "strict_check_headers"])
        .not_used(&[
            "dynamic_stats",
            "start_child_span",
            "upstream_log",
            "upstream_log_options",
            "suppress_grpc_request_failure_code_stats",
            "upstream_http_filters",
            "reject_connect_request_early_data",
        ]);
/// Headers that can be checked.
const STRICT: [&str; 5] = [
    "x-envoy-upstream-rq-timeout-ms",
    "x-envoy-upstream-rq-per-try-timeout-ms",
    "x-envoy-max-retries",
    "x-envoy-retry-grpc-on",
    "x-envoy-retry-on",
];

/// Reads a `Listener`.
pub(crate) fn listener(at: &At<'_>, batch: &mut Batch) -> Result<()> {
    let msg = at.message(&LISTENER)?;
    msg.repeated("filter_chains", |item| filter_chain(&item, batch))?;
    msg.map("default_filter_chain", |chain| filter_chain(chain, batch))?;
    Ok(())
}

fn filter_chain(at: &At<'_>, batch: &mut Batch) -> Result<()> {
    at.message(&CHAIN)?.repeated("filters", |item| {
        let filter = item.message(&FILTER)?;
        let Some(config) = filter.get("typed_config") else { return Ok(()) };
        config.any(|type_name, at| {
            if type_name == MANAGER_TYPE {
                connection_manager(&at, batch)
            } else {
                at.note(What::NotUsed, "not used here: no HTTP connection manager");
                Ok(())
            }
        })
    })?;
    Ok(())
}

fn connection_manager(at: &At<'_>, batch: &mut Batch) -> Result<()> {
    let msg = at.message(&MANAGER)?;
    let mut router = (false, false, Vec::new());
    let mut gates = Vec::new();
    let mut state = None;
    msg.repeated("http_filters", |item| {
        let config = ["typed_config", "typedConfig"].iter().find_map(|key| item.raw(key));
        let type_name = config.and_then(|config| config.type_name().ok()).unwrap_or_default();
        if let (true, Some(config)) = (type_name.starts_with(session::FILTER), &config) {
            state = config.any(|_, at| session::session(&at))?;
        } else if let (ADMISSION_TYPE | CONCURRENCY_TYPE, Some(config)) = (&*type_name, &config) {
            gates.extend(gate(&item, config)?);
        } else if type_name != ROUTER_TYPE {
            item.note(What::NotUsed, "not used here: filters are a proxy's own work");
        } else if let Some(config) = config {
            router = config.any(|_, at| {
                let msg = at.message(&ROUTER)?;
                let flag = |name| msg.or(name, false, |flag| flag.bool());
                let strict = msg.repeated("strict_check_headers", |item| {
                    let name = item.text()?;
                    match STRICT.contains(&name.as_str()) {
                        true => Ok(name),
                        false => Err(item.unknown_name("header to check", &name, STRICT.into_iter())),
                    }
                })?;
                Ok((flag("respect_expected_rq_timeout")?, flag("suppress_envoy_headers")?, strict))
            })?;
        }
        Ok(())
    })?;
    if let Some(seen) = msg.get("route_config") {
        let mut table = route_configuration(&seen)?;
        (table.respect_expected_rq_timeout, table.suppress_envoy_headers, table.strict_check_headers) =
            router;
        table.stat_prefix = msg.or("stat_prefix", String::new(), |prefix| prefix.text())?;
        table.gates = gates;
        table.session = state;
        batch.add_table(&seen, table, false);
    }
    Ok(())
}

/// A filter that lets requests pass or not; `None` when it is switched off for every route.
fn gate(item: &At<'_>, config: &At<'_>) -> Result<Option<GateSpec>> {
    let off = match item.raw("disabled") {
        Some(flag) if !flag.node.is_null() => flag.bool()?,
        _ => false,
    };
    let spec = config.any(|type_name, at| match type_name {
        ADMISSION_TYPE => admission(&at, true).map(GateSpec::Admission),
        _ => concurrency(&at, true).map(GateSpec::Concurrency),
    })?;
    if off {
        item.note(
            What::NotUsed,
            "not used: it is disabled here, and routes cannot switch it on in this version",
        );
    }
    Ok((!off).then_some(spec))
}
