//! The `routes:` list of the short form.

use super::settings::{hash, retry};
use crate::envoy::{check_weights, header_name, named, regex};
use crate::error::Result;
use crate::read::{At, Fields};
use nexthop_engine::spec::{
    ClusterSource, ForwardSpec, HeaderMatch, MatchSpec, PathMatch, RouteAction, RouteSpec, RouteTableSpec,
    StringMatch, VirtualHostSpec, WeightedCluster,
};
use std::collections::BTreeMap;

const ROUTE: Fields = Fields::ours(
    "a route of the short form",
    &["host", "path", "match", "cluster", "timeout", "retry", "hash"],
)
.one_of(&[&["path", "match"]]);
const MATCH: Fields = Fields::ours("match of the short form", &["path", "exact", "regex", "header"])
    .one_of(&[&["path", "exact", "regex"]]);

/// Reads the list into one table: a virtual host for each host, its routes in their order. Routes take their
/// settings from the cluster they lead to (`defaults`) unless they have their own.
pub(super) fn routes(at: &At<'_>, defaults: &BTreeMap<String, ForwardSpec>) -> Result<RouteTableSpec> {
    let mut table = RouteTableSpec::default();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for item in at.items()? {
        let msg = item.message(&ROUTE)?;
        let host = msg.or("host", "*".to_owned(), |host| host.filled())?.to_ascii_lowercase();
        let virtual_host = *index.entry(host.clone()).or_insert_with(|| {
            let domains = vec![host.clone()];
            table.virtual_hosts.push(VirtualHostSpec { name: host, domains, ..VirtualHostSpec::default() });
            table.virtual_hosts.len() - 1
        });
        let cluster = cluster(&msg.need("cluster")?)?;
        let mut forward = settings(&cluster, defaults);
        forward.timeout = msg.or("timeout", forward.timeout, |d| d.short_millis())?;
        if let Some(own) = msg.get("retry") {
            forward.retry = Some(retry(&own)?);
        }
        forward.hash_policy = msg.or("hash", forward.hash_policy, hash)?;
        forward.cluster = cluster;
        let matcher = match (msg.get("path"), msg.get("match")) {
            (Some(path), _) => MatchSpec { path: PathMatch::Prefix(path.filled()?), ..MatchSpec::default() },
            (None, Some(at)) => route_match(&at)?,
            (None, None) => MatchSpec::default(),
        };
        let action = RouteAction::Forward(Box::new(forward));
        table.virtual_hosts[virtual_host].routes.push(RouteSpec { matcher, action, ..RouteSpec::default() });
    }
    Ok(table)
}

/// Settings of the first cluster that has any.
fn settings(cluster: &ClusterSource, defaults: &BTreeMap<String, ForwardSpec>) -> ForwardSpec {
    let found = cluster.names().into_iter().find_map(|name| defaults.get(name));
    found.cloned().unwrap_or_default()
}

/// A name, or names with weights.
fn cluster(at: &At<'_>) -> Result<ClusterSource> {
    if !at.is_map() {
        return Ok(ClusterSource::Name(named(at, true)?));
    }
    let mut entries = Vec::new();
    for (entry, weight) in at.entries()? {
        let reference = crate::front::Node {
            kind: crate::front::Kind::Scalar(entry.key.clone(), crate::front::Style::Quoted),
            place: entry.place,
        };
        let name = named(&at.key(&entry.key, &reference), true)?;
        entries.push(WeightedCluster { name, weight: weight.u32()?, metadata_match: None });
    }
    check_weights(at, &entries)?;
    Ok(ClusterSource::Weighted(entries))
}

fn route_match(at: &At<'_>) -> Result<MatchSpec> {
    let msg = at.message(&MATCH)?;
    let mut matcher = MatchSpec::default();
    if let Some(path) = msg.get("path") {
        matcher.path = PathMatch::Prefix(path.filled()?);
    } else if let Some(exact) = msg.get("exact") {
        matcher.path = PathMatch::Exact(exact.filled()?);
    } else if let Some(pattern) = msg.get("regex") {
        matcher.path = PathMatch::Regex(regex(&pattern)?);
    }
    if let Some(headers) = msg.get("header") {
        for (entry, value) in headers.entries()? {
            let name = crate::front::Node {
                kind: crate::front::Kind::Scalar(entry.key.clone(), crate::front::Style::Quoted),
                place: entry.place,
            };
            matcher.headers.push(HeaderMatch {
                name: header_name(&headers.key(&entry.key, &name))?,
                value: StringMatch::Exact(value.text()?, false),
                invert: false,
                treat_missing_as_empty: false,
            });
        }
    }
    Ok(matcher)
}
