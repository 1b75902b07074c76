//! Findings about route tables.

use super::out::Out;
use super::{Table, Way};
use nexthop_engine::spec::{ClusterSource, MatchSpec, PathMatch, RouteAction};
use std::collections::{BTreeMap, BTreeSet};

/// The names a way may lead to.
pub(super) fn names(source: &ClusterSource) -> Vec<&str> {
    match source {
        ClusterSource::Weighted(_) | ClusterSource::Groups(_) => {
            let shares = source.shares().into_iter().filter(|share| share.weight > 0);
            shares.map(|share| share.name.as_str()).collect()
        }
        ClusterSource::Name(_) | ClusterSource::Header(_) => source.names(),
    }
}

/// The ways of a table's routes.
pub(super) fn ways<'a>(table: &'a Table<'a>) -> Vec<Way<'a>> {
    let mut ways = Vec::new();
    for (host, virtual_host) in table.spec.virtual_hosts.iter().enumerate() {
        for (at, route) in virtual_host.routes.iter().enumerate() {
            let RouteAction::Forward(forward) = &route.action else { continue };
            let (prefix, host_prefix) = match table.short_item(&virtual_host.name, at) {
                Some(item) => (format!("[{item}]."), String::new()),
                None => {
                    (format!("virtual_hosts[{host}].routes[{at}].route."), format!("virtual_hosts[{host}]."))
                }
            };
            let retry = forward.retry.as_ref().or(virtual_host.retry.as_ref());
            ways.push(Way { forward, retry, marks: table.marks, prefix, host_prefix });
        }
    }
    ways
}

pub(super) fn table(table: &Table<'_>, known: &BTreeSet<&str>, out: &mut Out) {
    for (host, virtual_host) in table.spec.virtual_hosts.iter().enumerate() {
        let mut covered = false;
        for (at, route) in virtual_host.routes.iter().enumerate() {
            let path = match table.short_item(&virtual_host.name, at) {
                Some(item) => format!("[{item}]"),
                None => format!("virtual_hosts[{host}].routes[{at}]"),
            };
            if covered {
                let effect =
                    format!("this route of {} is never taken: one before it matches all", virtual_host.name);
                out.warn(
                    "NX-030",
                    table.marks.seen(&[&path]),
                    effect,
                    "move it before the route that matches all",
                );
            }
            covered |= matches_all(&route.matcher);
            let RouteAction::Forward(forward) = &route.action else { continue };
            for name in names(&forward.cluster) {
                if !known.contains(name) {
                    let seen = table.marks.seen(&[&format!("{path}.route.cluster"), &path]);
                    let effect = format!("there is no cluster {name}: requests get 503 NC");
                    out.error("NX-028", seen, effect, "define the cluster, or route to one that exists");
                }
            }
            if let ClusterSource::Weighted(entries) = &forward.cluster {
                for entry in entries.iter().filter(|entry| entry.weight == 0) {
                    let seen = table.marks.seen(&[&format!("{path}.route.weighted_clusters"), &path]);
                    let effect = format!("the cluster {} has weight 0 and gets no request", entry.name);
                    out.note("NX-031", seen, effect, "give it a weight, or remove it");
                }
            }
        }
    }
}

fn matches_all(matcher: &MatchSpec) -> bool {
    let prefix = match &matcher.path {
        PathMatch::Prefix(prefix) => matches!(prefix.as_str(), "" | "/"),
        _ => false,
    };
    prefix
        && matcher.headers.is_empty()
        && matcher.query.is_empty()
        && !matcher.grpc
        && matcher.fraction.is_none()
}

/// Requests that name a cluster directly are treated as the first route to it says.
pub(super) fn disagreements(ways: &[Way<'_>], own: &BTreeSet<&str>, out: &mut Out) {
    let mut first: BTreeMap<&str, &Way<'_>> = BTreeMap::new();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for way in ways {
        for name in names(&way.forward.cluster) {
            let known = first.entry(name).or_insert(way);
            let same = known.retry == way.retry && known.forward.timeout == way.forward.timeout;
            if !same && !own.contains(name) && told.insert(name) {
                let effect = format!(
                    "routes to {name} have different policies: a request that names the cluster takes those of the first"
                );
                let advice = "name the route in such requests, or give the routes one policy";
                out.note("NX-032", way.seen(&["cluster", ""]), effect, advice);
            }
        }
    }
}
