//! `RouteConfiguration` and `VirtualHost`.

use super::cluster_source::Scope;
use super::retry::{hedge_policy, retry_policy};
use super::route::route;
use super::session::per_filter;
use crate::error::Result;
use crate::read::{At, Fields};
use nexthop_engine::spec::{RouteTableSpec, VirtualHostSpec};
use std::collections::BTreeMap;

const TABLE: Fields = Fields::of(
    "RouteConfiguration",
    &[
        "name",
        "virtual_hosts",
        "validate_clusters",
        "ignore_port_in_host_matching",
        "cluster_specifier_plugins",
    ],
)
.not_used(&[
    "internal_only_headers",
    "most_specific_header_mutations_wins",
    "max_direct_response_body_size_bytes",
    "request_mirror_policies",
    "typed_per_filter_config",
    "metadata",
])
.not_available(&[
    "vhds",
    "response_headers_to_add",
    "response_headers_to_remove",
    "request_headers_to_add",
    "request_headers_to_remove",
])
.refused(&["vhost_header", "ignore_path_parameters_in_path_matching", "route_specifiers"]);
const VIRTUAL_HOST: Fields = Fields::of(
    "VirtualHost",
    &[
        "name",
        "domains",
        "routes",
        "include_request_attempt_count",
        "include_attempt_count_in_response",
        "include_is_timeout_retry_header",
        "retry_policy",
        "hedge_policy",
        "typed_per_filter_config",
    ],
)
.not_used(&[
    "require_tls",
    "virtual_clusters",
    "rate_limits",
    "cors",
    "per_request_buffer_limit_bytes",
    "request_body_buffer_limit",
    "request_mirror_policies",
    "metadata",
])
.not_available(&[
    "request_headers_to_add",
    "request_headers_to_remove",
    "response_headers_to_add",
    "response_headers_to_remove",
])
.refused(&["matcher", "retry_policy_typed_config", "route_specifiers"]);

/// Reads a `RouteConfiguration`.
pub(crate) fn route_configuration(at: &At<'_>) -> Result<RouteTableSpec> {
    let msg = at.message(&TABLE)?;
    let scope = Scope::new(&msg, msg.or("validate_clusters", true, |flag| flag.bool())?)?;
    let mut domains = BTreeMap::new();
    Ok(RouteTableSpec {
        name: msg.or("name", String::new(), |name| name.text())?,
        virtual_hosts: msg.repeated("virtual_hosts", |item| virtual_host(&item, &scope, &mut domains))?,
        ignore_port_in_host_matching: msg.or("ignore_port_in_host_matching", false, |flag| flag.bool())?,
        ..RouteTableSpec::default()
    })
}

fn virtual_host(at: &At<'_>, scope: &Scope, seen: &mut BTreeMap<String, u32>) -> Result<VirtualHostSpec> {
    let msg = at.message(&VIRTUAL_HOST)?;
    let domains = msg.repeated("domains", |item| {
        let domain = item.text()?.to_ascii_lowercase();
        match seen.insert(domain.clone(), item.node.place.line) {
            None => Ok(domain),
            Some(line) => {
                Err(item.fail(format!("the domain {domain:?} already has a virtual host (line {line})")))
            }
        }
    })?;
    if domains.is_empty() {
        return Err(msg.missing("domains"));
    }
    Ok(VirtualHostSpec {
        name: msg.need("name")?.filled()?,
        domains,
        routes: msg.repeated("routes", |item| route(&item, scope))?,
        retry: msg.map("retry_policy", retry_policy)?,
        hedge: msg.map("hedge_policy", hedge_policy)?,
        include_request_attempt_count: msg.or("include_request_attempt_count", false, |flag| flag.bool())?,
        include_attempt_count_in_response: msg
            .or("include_attempt_count_in_response", false, |flag| flag.bool())?,
        include_is_timeout_retry_header: msg
            .or("include_is_timeout_retry_header", false, |flag| flag.bool())?,
        session: msg.map("typed_per_filter_config", per_filter)?.flatten(),
    })
}
