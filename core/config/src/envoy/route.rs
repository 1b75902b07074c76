//! `Route`: when it applies and which of its actions follows.

use super::cluster_source::Scope;
use super::matcher::{header_matches, query_matches, regex_matcher};
use super::route_action::{direct_response, forward, redirect};
use super::session::per_filter;
use crate::error::Result;
use crate::read::{At, Fields};
use crate::report::What;
use nexthop_engine::spec::{MatchSpec, PathMatch, RouteAction, RouteSpec};

const ROUTE: Fields = Fields::of(
    "Route",
    &["name", "match", "route", "redirect", "direct_response", "typed_per_filter_config"],
)
.not_used(&[
    "metadata",
    "decorator",
    "tracing",
    "per_request_buffer_limit_bytes",
    "stat_prefix",
    "request_body_buffer_limit",
])
.not_available(&[
    "request_headers_to_add",
    "request_headers_to_remove",
    "response_headers_to_add",
    "response_headers_to_remove",
])
.refused(&["filter_action", "non_forwarding_action", "route_specifiers"])
.one_of(&[&["route", "redirect", "direct_response", "filter_action", "non_forwarding_action"]]);
const MATCH: Fields = Fields::of(
    "RouteMatch",
    &[
        "prefix",
        "path",
        "safe_regex",
        "path_separated_prefix",
        "case_sensitive",
        "runtime_fraction",
        "headers",
        "query_parameters",
        "grpc",
    ],
)
.refused(&[
    "connect_matcher",
    "path_match_policy",
    "cookies",
    "tls_context",
    "dynamic_metadata",
    "filter_state",
])
.one_of(&[&[
    "prefix",
    "path",
    "safe_regex",
    "path_separated_prefix",
    "connect_matcher",
    "path_match_policy",
]]);
const GRPC: Fields = Fields::of("GrpcRouteMatchOptions", &[]);
const RUNTIME_FRACTION: Fields = Fields::of("RuntimeFractionalPercent", &["default_value", "runtime_key"]);
const FRACTION: Fields = Fields::of("FractionalPercent", &["numerator", "denominator"]);

/// Reads a `Route`.
pub(super) fn route(at: &At<'_>, scope: &Scope) -> Result<RouteSpec> {
    let msg = at.message(&ROUTE)?;
    let action = if let Some(action) = msg.get("route") {
        RouteAction::Forward(Box::new(forward(&action, scope)?))
    } else if let Some(action) = msg.get("redirect") {
        redirect(&action)?
    } else if let Some(action) = msg.get("direct_response") {
        direct_response(&action)?
    } else {
        return Err(at.expected("a route with one of route, redirect, direct_response"));
    };
    Ok(RouteSpec {
        name: msg.or("name", String::new(), |name| name.text())?,
        matcher: route_match(&msg.need("match")?)?,
        action,
        session: msg.map("typed_per_filter_config", per_filter)?.flatten(),
    })
}

fn route_match(at: &At<'_>) -> Result<MatchSpec> {
    let msg = at.message(&MATCH)?;
    let path = if let Some(prefix) = msg.get("prefix") {
        PathMatch::Prefix(prefix.text()?)
    } else if let Some(path) = msg.get("path") {
        PathMatch::Exact(path.text()?)
    } else if let Some(regex) = msg.get("safe_regex") {
        PathMatch::Regex(regex_matcher(&regex)?)
    } else if let Some(prefix) = msg.get("path_separated_prefix") {
        let text = prefix.text()?;
        if text.len() < 2 || text.contains(['?', '#']) || text.ends_with('/') {
            return Err(prefix.expected("a path without `?`, `#` or `/` at its end"));
        }
        PathMatch::SeparatedPrefix(text)
    } else {
        return Err(at.expected("a match with one of prefix, path, safe_regex, path_separated_prefix"));
    };
    Ok(MatchSpec {
        path,
        case_insensitive: !msg.or("case_sensitive", true, |flag| flag.bool())?,
        headers: header_matches(&msg, "headers")?,
        query: query_matches(&msg)?,
        grpc: msg.map("grpc", |grpc| grpc.message(&GRPC).map(|_| ()))?.is_some(),
        fraction: msg.map("runtime_fraction", runtime_fraction)?,
    })
}

fn runtime_fraction(at: &At<'_>) -> Result<(u32, u32)> {
    let msg = at.message(&RUNTIME_FRACTION)?;
    if let Some(key) = msg.get("runtime_key").filter(|key| key.text().is_ok_and(|key| !key.is_empty())) {
        key.note(What::NotAvailable, "not read in this version: the default value always holds");
    }
    fraction(&msg.need("default_value")?)
}

/// Reads a `FractionalPercent`: numerator and denominator.
pub(super) fn fraction(at: &At<'_>) -> Result<(u32, u32)> {
    let msg = at.message(&FRACTION)?;
    let words = [("HUNDRED", 0), ("TEN_THOUSAND", 1), ("MILLION", 2)];
    let denominator = match msg.or("denominator", 0, |d| d.enumeration(&words))? {
        1 => 10_000,
        2 => 1_000_000,
        _ => 100,
    };
    Ok((msg.or("numerator", 0, |n| n.u32())?, denominator))
}
