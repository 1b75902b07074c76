//! What deserves a second look in documents that are legal. Findings of Istio's rules are made where they are read;
//! here are those of clusters and routes in Envoy's form and in the short form.

mod clusters;
mod finding;
mod hosts;
mod marks;
mod out;
mod retries;
mod routes;
mod text;
mod twice;

pub use finding::{Finding, Findings, Severity};
pub(crate) use marks::Marks;
pub(crate) use out::Out;
pub(crate) use twice::repeated_keys;

use crate::read::Seen;
use nexthop_engine::spec::{
    ClusterKind, ClusterSource, ClusterSpec, ForwardSpec, RetrySpec, RouteTableSpec, Specs,
};
use std::collections::{BTreeMap, BTreeSet};

/// A cluster and where its fields stand.
struct Cluster<'a> {
    spec: &'a ClusterSpec,
    marks: &'a Marks,
    /// Different addresses; `None` = they come from elsewhere.
    hosts: Option<usize>,
    priorities: usize,
}

/// A route table and where its fields stand.
struct Table<'a> {
    spec: &'a RouteTableSpec,
    marks: &'a Marks,
    /// Of the short form, a list of routes with their hosts: the positions of each host's routes.
    items: Option<BTreeMap<String, Vec<usize>>>,
}

/// Settings of requests, by a route or by the cluster itself.
struct Way<'a> {
    forward: &'a ForwardSpec,
    retry: Option<&'a RetrySpec>,
    marks: &'a Marks,
    /// Path of the settings, with its dot.
    prefix: String,
    /// Path of what the settings may be inherited from.
    host_prefix: String,
}

impl<'a> Table<'a> {
    fn new(spec: &'a RouteTableSpec, marks: &'a Marks, short: bool) -> Self {
        let mut items: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let there = |item: &usize| marks.has(&format!("[{item}]"));
        for item in (0..).take_while(there).take_while(|_| short) {
            let host = marks.text(&format!("[{item}].host")).unwrap_or("*").to_ascii_lowercase();
            items.entry(host).or_default().push(item);
        }
        Self { spec, marks, items: short.then_some(items) }
    }

    /// The position in the short form's list of a virtual host's route.
    fn short_item(&self, host: &str, at: usize) -> Option<usize> {
        self.items.as_ref()?.get(host)?.get(at).copied()
    }
}

impl Way<'_> {
    fn seen(&self, paths: &[&str]) -> Seen {
        let prefixes = [&self.prefix, &self.host_prefix];
        let all: Vec<String> = prefixes
            .into_iter()
            .flat_map(|prefix| paths.iter().map(move |path| format!("{prefix}{path}")))
            .map(|path| path.trim_end_matches('.').to_owned())
            .collect();
        self.marks.seen(&all.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn has(&self, path: &str) -> bool {
        [&self.prefix, &self.host_prefix].iter().any(|prefix| self.marks.has(&format!("{prefix}{path}")))
    }

    fn text(&self, path: &str) -> Option<&str> {
        let mut texts = [&self.prefix, &self.host_prefix]
            .into_iter()
            .map(|prefix| self.marks.text(&format!("{prefix}{path}")));
        texts.find_map(|text| text)
    }
}

/// Findings about all specs. Clusters and tables without marks were made from another dialect, which has its own.
pub(crate) fn specs(
    specs: &Specs,
    cluster_marks: &[Option<Marks>],
    table_marks: &[Option<(Marks, bool)>],
    waits: impl Fn(usize) -> bool,
) -> Vec<Finding> {
    let mut out = Out::default();
    let clusters: Vec<Cluster<'_>> = specs
        .clusters
        .iter()
        .zip(cluster_marks)
        .enumerate()
        .filter_map(|(at, (spec, marks))| {
            let groups = &spec.endpoints.localities;
            let addresses: BTreeSet<&str> =
                groups.iter().flat_map(|group| &group.endpoints).map(|host| host.address.as_str()).collect();
            let priorities: BTreeSet<u32> = groups.iter().map(|group| group.priority).collect();
            let unknown = addresses.is_empty() && (waits(at) || spec.kind != ClusterKind::Hosts);
            Some(Cluster {
                spec,
                marks: marks.as_ref()?,
                hosts: (!unknown).then_some(addresses.len()),
                priorities: priorities.len(),
            })
        })
        .collect();
    let known: BTreeSet<&str> = specs.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    let by_name: BTreeMap<&str, &Cluster<'_>> =
        clusters.iter().map(|cluster| (cluster.spec.name.as_str(), cluster)).collect();
    let tables: Vec<Table<'_>> = specs
        .route_tables
        .iter()
        .zip(table_marks)
        .filter_map(|(spec, marks)| {
            let (marks, short) = marks.as_ref()?;
            Some(Table::new(spec, marks, *short))
        })
        .collect();
    for cluster in &clusters {
        clusters::cluster(cluster, &mut out);
        clusters::aggregate(cluster, &by_name, &mut out);
        clusters::composite(cluster, &by_name, &mut out);
    }
    let mut all = Vec::new();
    for table in &tables {
        routes::table(table, &known, &mut out);
        all.extend(routes::ways(table));
    }
    let own: BTreeSet<&str> =
        clusters.iter().filter(|c| c.spec.defaults.is_some()).map(|c| c.spec.name.as_str()).collect();
    routes::disagreements(&all, &own, &mut out);
    let written = |way: &Way<'_>| way.has("retry") || way.has("timeout") || way.has("hash");
    // Routes of the short form take what they do not say from their cluster, where it is told once.
    all.retain(|way| !way.prefix.starts_with('[') || written(way));
    for cluster in &clusters {
        let Some(forward) = &cluster.spec.defaults else { continue };
        let (prefix, host_prefix) = (String::new(), String::new());
        let retry = forward.retry.as_ref();
        all.push(Way { forward, retry, marks: cluster.marks, prefix, host_prefix });
    }
    // A cluster of the short form that no policy is for is asked for by its name.
    let led: BTreeSet<&str> = all.iter().flat_map(|way| routes::names(&way.forward.cluster)).collect();
    let is_short =
        |c: &&Cluster<'_>| ["hosts", "composite", "aggregate"].iter().any(|kind| c.marks.has(kind));
    let alone = clusters.iter().filter(is_short).filter(|c| !led.contains(c.spec.name.as_str()));
    let plain: Vec<(ForwardSpec, &Marks)> = alone
        .map(|c| {
            let cluster = ClusterSource::Name(c.spec.name.clone());
            (ForwardSpec { cluster, ..ForwardSpec::default() }, c.marks)
        })
        .collect();
    all.extend(plain.iter().map(|(forward, marks)| {
        let (prefix, host_prefix) = (String::new(), String::new());
        Way { forward, retry: None, marks, prefix, host_prefix }
    }));
    for way in &all {
        let leads: Vec<&Cluster<'_>> = routes::names(&way.forward.cluster)
            .into_iter()
            .filter_map(|name| by_name.get(name).copied())
            .collect();
        // The cluster's own policy replaces the route's entirely.
        let replaced =
            leads.iter().any(|cluster| cluster.spec.retry.is_some() && cluster.spec.defaults.is_none());
        let own = Way {
            retry: way.retry.filter(|_| !replaced),
            forward: way.forward,
            marks: way.marks,
            prefix: way.prefix.clone(),
            host_prefix: way.host_prefix.clone(),
        };
        retries::way(&own, &leads, &mut out);
    }
    out.0
}
