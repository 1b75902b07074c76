//! `Bootstrap`: static clusters and listeners, and the runtime's static layers.

use super::cluster::cluster;
use super::cluster_source::named;
use super::endpoints::locality;
use super::listener::listener;
use crate::batch::Batch;
use crate::error::Result;
use crate::read::{At, Fields, struct_of};
use nexthop_engine::spec::Value;
use std::collections::{BTreeMap, BTreeSet};

const BOOTSTRAP: Fields =
    Fields::of("Bootstrap", &["static_resources", "cluster_manager", "layered_runtime", "node", "nexthop"])
        .not_used(&[
            "node_context_params",
            "hds_config",
            "flags_path",
            "stats_sinks",
            "deferred_stat_options",
            "stats_config",
            "stats_flush_interval",
            "stats_flush_on_admin",
            "stats_eviction_interval",
            "watchdog",
            "watchdogs",
            "tracing",
            "admin",
            "overload_manager",
            "enable_dispatcher_stats",
            "stats_server_version_override",
            "use_tcp_for_dns_lookups",
            "dns_resolution_config",
            "typed_dns_resolver_config",
            "bootstrap_extensions",
            "fatal_actions",
            "default_socket_interface",
            "certificate_provider_instances",
            "inline_headers",
            "perf_tracing_file_path",
            "default_regex_engine",
            "xds_delegate_extension",
            "xds_config_tracker_extension",
            "listener_manager",
            "application_log_config",
            "grpc_async_client_manager_config",
            "memory_allocator_manager",
            "enable_worker_cpu_affinity",
        ])
        .not_available(&["dynamic_resources", "config_sources", "default_config_source", "header_prefix"]);
const STATIC: Fields = Fields::of("StaticResources", &["listeners", "clusters"]).not_used(&["secrets"]);
const MANAGER: Fields = Fields::of("ClusterManager", &["local_cluster_name"]).not_used(&[
    "outlier_detection",
    "upstream_bind_config",
    "load_stats_config",
    "enable_deferred_cluster_creation",
]);
const RUNTIME: Fields = Fields::of("LayeredRuntime", &["layers"]);
const LAYER: Fields = Fields::of("RuntimeLayer", &["name", "static_layer"])
    .not_used(&["admin_layer"])
    .not_available(&["disk_layer", "rtds_layer"])
    .one_of(&[&["static_layer", "disk_layer", "admin_layer", "rtds_layer"]]);
const NODE: Fields = Fields::of("Node", &["locality"]).not_used(&[
    "id",
    "cluster",
    "metadata",
    "dynamic_parameters",
    "user_agent_name",
    "user_agent_version",
    "user_agent_build_version",
    "extensions",
    "client_features",
    "listening_addresses",
]);

/// Reads a `Bootstrap`.
pub(crate) fn bootstrap(at: &At<'_>, batch: &mut Batch) -> Result<()> {
    let msg = at.message(&BOOTSTRAP)?;
    if let Some(resources) = msg.get("static_resources") {
        let resources = resources.message(&STATIC)?;
        resources.repeated("clusters", |item| {
            let (spec, waits) = cluster(&item)?;
            batch.add_cluster(&item, spec, waits)
        })?;
        resources.repeated("listeners", |item| listener(&item, batch))?;
    }
    if let Some(manager) = msg.get("cluster_manager") {
        let manager = manager.message(&MANAGER)?;
        if let Some(local) = manager.get("local_cluster_name")
            && !local.text()?.is_empty()
        {
            batch.set_local_cluster(named(&local, true)?);
        }
    }
    if let Some(node) = msg.get("node")
        && let Some(at) = node.message(&NODE)?.map("locality", locality)?
    {
        batch.set_locality(at);
    }
    if let Some(runtime) = msg.get("layered_runtime") {
        layers(&runtime, batch)?;
    }
    if let Some(block) = msg.get("nexthop") {
        batch.add_block(&block)?;
    }
    Ok(())
}

/// Later layers win.
fn layers(at: &At<'_>, batch: &mut Batch) -> Result<()> {
    let mut names = BTreeSet::new();
    at.message(&RUNTIME)?.repeated("layers", |item| {
        let layer = item.message(&LAYER)?;
        let name = layer.need("name")?;
        if !names.insert(name.filled()?) {
            return Err(name.fail("this layer name is used twice"));
        }
        if let Some(values) = layer.get("static_layer") {
            batch.add_runtime(flatten(&values)?);
        }
        Ok(())
    })?;
    Ok(())
}

/// Runtime values by dotted key. A mapping with a numerator or denominator is one value, a fraction.
pub(crate) fn flatten(at: &At<'_>) -> Result<Vec<(String, Value)>> {
    let Some(values) = struct_of(at.node) else { return Err(at.expected("a mapping of runtime values")) };
    let mut flat = Vec::new();
    match walk("", values, &mut flat) {
        Ok(()) => Ok(flat),
        Err(key) => {
            Err(at
                .fail(format!("the runtime value of `{key}` is neither text, number, boolean nor fraction")))
        }
    }
}

/// Depth is bounded by the front.
fn walk(
    prefix: &str,
    values: BTreeMap<String, Value>,
    flat: &mut Vec<(String, Value)>,
) -> std::result::Result<(), String> {
    for (key, value) in values {
        let key = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        match value {
            Value::Struct(inner) if inner.contains_key("numerator") || inner.contains_key("denominator") => {
                flat.push((key, Value::Struct(inner)));
            }
            Value::Struct(inner) => walk(&key, inner, flat)?,
            Value::Null | Value::List(_) => return Err(key),
            value => flat.push((key, value)),
        }
    }
    Ok(())
}
