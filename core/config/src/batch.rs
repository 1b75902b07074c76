//! What many documents give together, and the checks that need all of them.

use crate::block::{ClusterBlock, cluster_block, document_block};
use crate::effective::Origin;
use crate::envoy::check_sums;
use crate::error::Result;
use crate::instances::{Destination, Destinations, List, endpoints};
use crate::istio::World;
use crate::lint::{self, Findings, Marks};
use crate::read::{At, Reference, Seen, Sink, nearest};
use crate::report::{LoadReport, ReportEntry, What};
use crate::{ConfigError, Loaded};
use nexthop_engine::spec::{
    ClusterKind, ClusterSpec, Endpoints, Locality, RouteTableSpec, Specs, Value, composite_cycle,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Specs as they come in, and where they came from.
#[derive(Default)]
pub(crate) struct Batch {
    /// Istio's objects, which are read when all are there.
    pub(crate) istio: World,
    specs: Specs,
    /// Of each cluster, in the order of `specs.clusters`.
    places: Vec<Seen>,
    by_name: BTreeMap<String, usize>,
    /// Where the fields of each cluster and table stand, unless they were made from another dialect.
    marks: Vec<Option<Marks>>,
    table_places: Vec<(Seen, bool)>,
    table_marks: Vec<Option<(Marks, bool)>>,
    /// Clusters that wait for a separate assignment, by the name it must have.
    waiting: BTreeMap<String, Vec<usize>>,
    assignments: Vec<(Seen, String, Endpoints)>,
    /// Instance lists, and the name of their source.
    lists: Vec<(Seen, String, Vec<List>)>,
    /// Clusters made from Istio's objects.
    destinations: Destinations,
    runtime: BTreeMap<String, Value>,
    /// Of each cluster, and what holds where they say nothing.
    blocks: Vec<ClusterBlock>,
    defaults: ClusterBlock,
}

/// The lists of one cluster.
struct Parts<'a> {
    seen: &'a Seen,
    lists: Vec<Cow<'a, List>>,
    /// What is wrong with the instances is not yet told.
    tells: bool,
}

impl<'a> Parts<'a> {
    fn new(seen: &'a Seen) -> Self {
        Self { seen, lists: Vec::new(), tells: false }
    }

    fn add(&mut self, list: Cow<'a, List>, tells: bool) {
        self.lists.push(list);
        self.tells |= tells;
    }
}

/// Why a cluster gets no host of a list that has some.
fn left_out(destination: &Destination) -> String {
    let Destination { cluster, port, labels, .. } = destination;
    let labels = labels.iter().flatten().map(|(key, value)| format!("{key}={value}"));
    let labels = labels.collect::<Vec<_>>().join(", ");
    match labels.is_empty() {
        true => format!("the cluster {cluster} gets no host: no instance is for its port {port}"),
        false => format!("the cluster {cluster} gets no host: no instance on its port carries {labels}"),
    }
}

impl Batch {
    /// Adds a cluster; `waits` is the name of the assignment that may bring its hosts.
    pub(crate) fn add_cluster(
        &mut self,
        at: &At<'_>,
        spec: ClusterSpec,
        waits: Option<String>,
    ) -> Result<()> {
        let index = self.specs.clusters.len();
        if let Some(first) = self.by_name.insert(spec.name.clone(), index) {
            let Seen { file, place, .. } = &self.places[first];
            let text = format!("the cluster name `{}` is already used at {file}:{}", spec.name, place.line);
            return Err(at.fail(text));
        }
        if let Some(service) = waits {
            self.waiting.entry(service).or_default().push(index);
        }
        let block = at.raw("nexthop").filter(|block| !block.node.is_null());
        let composite = spec.kind != ClusterKind::Hosts;
        let block = block.map(|block| cluster_block(&block, composite)).transpose()?;
        let block = block.unwrap_or_default();
        if block.is_half_open() && spec.outlier.is_none() {
            at.note(What::NotUsed, "`half_open` is not used: without outlier detection no host is ejected");
        }
        self.blocks.push(block);
        self.places.push(at.seen());
        self.marks.push((!at.is_made()).then(|| Marks::of(at)));
        self.specs.clusters.push(spec);
        Ok(())
    }

    /// Where clusters and routes stand.
    fn origins(&self) -> Vec<Origin> {
        let origin = |name: String, (seen, made): &(Seen, bool), below: String| Origin {
            name,
            file: seen.file.clone(),
            line: seen.place.line,
            // A document that is the table has no path itself.
            path: match seen.path.as_str() {
                "" => below.trim_start_matches('.').to_owned(),
                path => format!("{path}{below}"),
            },
            made: *made,
        };
        let clusters = self.specs.clusters.iter().zip(&self.places).zip(&self.marks);
        let clusters = clusters.map(|((cluster, seen), marks)| {
            origin(cluster.name.clone(), &(seen.clone(), marks.is_none()), String::new())
        });
        let tables = self.specs.route_tables.iter().zip(&self.table_places).zip(&self.table_marks);
        let routes = tables.flat_map(|((table, place), marks)| {
            let short = marks.as_ref().is_some_and(|(_, short)| *short);
            let hosts = table.virtual_hosts.iter().enumerate();
            hosts.flat_map(move |(at, host)| {
                host.routes.iter().enumerate().map(move |(number, route)| {
                    let below = match short {
                        true => format!("[{number}]"),
                        false => format!(".virtual_hosts[{at}].routes[{number}]"),
                    };
                    origin(format!("route:{}/{}", host.name, route.name), place, below)
                })
            })
        });
        clusters.chain(routes).collect()
    }

    /// Adds a route table; `short`: it stands in the short form.
    pub(crate) fn add_table(&mut self, at: &At<'_>, table: RouteTableSpec, short: bool) {
        self.table_places.push((at.seen(), at.is_made()));
        self.table_marks.push((!at.is_made()).then(|| (Marks::of(at), short)));
        self.specs.route_tables.push(table);
    }

    /// Adds the hosts of a cluster that another document describes.
    pub(crate) fn add_assignment(&mut self, at: &At<'_>, name: String, endpoints: Endpoints) {
        self.assignments.push((at.seen(), name, endpoints));
    }

    /// Adds the instance lists of a document: the hosts of one cluster, or of several by their services' names.
    pub(crate) fn add_lists(&mut self, at: &At<'_>, lists: Vec<List>) {
        let seen = at.seen();
        let source = seen.file.clone();
        self.lists.push((seen, source, lists));
    }

    /// Adds what a cluster made from Istio's objects holds.
    pub(crate) fn add_destination(&mut self, destination: Destination) {
        self.destinations.add(destination);
    }

    /// Later values win.
    pub(crate) fn add_runtime(&mut self, values: Vec<(String, Value)>) {
        self.runtime.extend(values);
    }

    /// Where this node is; the last document wins.
    pub(crate) fn set_locality(&mut self, locality: Locality) {
        self.specs.locality = Some(locality);
    }

    /// The cluster that this node belongs to; the last document wins.
    pub(crate) fn set_local_cluster(&mut self, name: String) {
        self.specs.local_cluster = Some(name);
    }

    /// Adds the `nexthop` block of a document.
    pub(crate) fn add_block(&mut self, at: &At<'_>) -> Result<()> {
        let block = document_block(at)?;
        self.add_runtime(block.runtime);
        self.defaults = block.defaults.or(&self.defaults);
        Ok(())
    }

    /// Checks what spans documents and hands everything over.
    pub(crate) fn finish(mut self, mut sink: Sink) -> Result<Loaded> {
        self.assign_lists(&mut sink.report)?;
        self.assign()?;
        for reference in &sink.references {
            if !self.by_name.contains_key(&reference.cluster) {
                return Err(self.unknown_cluster(&reference.seen, &reference.cluster));
            }
        }
        if let Some(way) = composite_cycle(&self.specs.clusters) {
            let first = way.first().and_then(|name| self.by_name.get(name)).copied().unwrap_or(0);
            let text = format!("composite clusters lead back to themselves: {}", way.join(" -> "));
            return Err(self.places[first].fail(text));
        }
        for sub in std::mem::take(&mut sink.subs) {
            if !self.by_name.contains_key(&sub.cluster) {
                sink.report.push(self.missing_sub(sub));
            }
        }
        for (cluster, block) in self.specs.clusters.iter_mut().zip(std::mem::take(&mut self.blocks)) {
            block.or(&self.defaults).apply(cluster);
        }
        if self.specs.local_cluster.is_none() {
            sink.report.extend(std::mem::take(&mut sink.zones).into_iter().map(|seen| {
                ReportEntry {
                    file: seen.file,
                    line: seen.place.line,
                    path: seen.path,
                    what: What::NotUsed,
                    text: "not used: routing by zone needs `cluster_manager.local_cluster_name`; only \
                       `fail_traffic_on_panic` acts without"
                        .into(),
                }
            }));
        }
        self.specs.runtime = std::mem::take(&mut self.runtime).into_iter().collect();
        let waiting: BTreeSet<usize> = self.waiting.values().flatten().copied().collect();
        sink.findings
            .extend(lint::specs(&self.specs, &self.marks, &self.table_marks, |at| waiting.contains(&at)));
        let origins = self.origins();
        let mut told = BTreeSet::new();
        if sink.detail {
            // What is read twice is told once.
            let key = |e: &ReportEntry| (e.file.clone(), e.line, e.path.clone(), e.text.clone());
            sink.report.retain(|entry| told.insert(key(entry)));
        }
        Ok(Loaded {
            specs: self.specs,
            origins,
            report: LoadReport { entries: sink.report },
            findings: Findings::new(sink.findings),
        })
    }

    fn assign(&mut self) -> Result<()> {
        let mut done: BTreeMap<&str, &Seen> = BTreeMap::new();
        for (seen, name, endpoints) in &self.assignments {
            if let Some(first) = done.insert(name, seen) {
                let text =
                    format!("the hosts of `{name}` are already given at {}:{}", first.file, first.place.line);
                return Err(seen.fail(text));
            }
            let Some(clusters) = self.waiting.get(name) else {
                let mut error = seen.fail(format!("no EDS cluster waits for the hosts of `{name}`"));
                error.found.clone_from(name);
                error.nearest = nearest(name, self.waiting.keys().map(String::as_str));
                return Err(error);
            };
            for &index in clusters {
                let cluster = &mut self.specs.clusters[index];
                check_sums(seen, &cluster.policy, endpoints)?;
                cluster.endpoints = endpoints.clone();
            }
        }
        Ok(())
    }

    fn missing_sub(&self, Reference { cluster, seen }: Reference) -> ReportEntry {
        let nearest = nearest(&cluster, self.by_name.keys().map(String::as_str));
        let hint = nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        let text = format!(
            "there is no cluster `{cluster}`; as in Envoy it is legal, and no attempt goes there{hint}"
        );
        ReportEntry { file: seen.file, line: seen.place.line, path: seen.path, what: What::NotUsed, text }
    }

    /// The hosts of clusters by instance lists; lists of one cluster are one list. With them: all are spoken to over
    /// TLS.
    pub(crate) fn listed(
        &self,
        report: &mut Vec<ReportEntry>,
    ) -> Result<Vec<(String, Seen, Endpoints, bool)>> {
        let mut by_cluster: BTreeMap<String, Parts<'_>> = BTreeMap::new();
        for (seen, source, lists) in &self.lists {
            for list in lists {
                let name = self.name_of(source, list, lists.len() == 1);
                let to = self.destinations_of(seen, &name, list)?;
                if to.is_empty() {
                    let parts = by_cluster.entry(name).or_insert_with(|| Parts::new(seen));
                    parts.add(Cow::Borrowed(list), true);
                    continue;
                }
                for (number, destination) in to.into_iter().enumerate() {
                    let mut part = self.destinations.part(destination, list);
                    if part.hosts.is_empty() && !list.hosts.is_empty() {
                        report.push(seen.entry(What::NotUsed, left_out(destination)));
                    }
                    if number == 0 {
                        part.skipped.clone_from(&list.skipped);
                    }
                    let cluster = destination.cluster.clone();
                    let parts = by_cluster.entry(cluster).or_insert_with(|| Parts::new(seen));
                    parts.add(Cow::Owned(part), number == 0);
                }
            }
        }
        let hosts = |(name, parts): (String, Parts<'_>)| {
            let lists: Vec<&List> = parts.lists.iter().map(Cow::as_ref).collect();
            // What is wrong with an instance is told once, not for each cluster that has it.
            let mut again = Vec::new();
            let hosts = endpoints(&lists, if parts.tells { report } else { &mut again })?;
            let any = hosts.localities.iter().any(|group| !group.endpoints.is_empty());
            let secure = any && lists.iter().flat_map(|list| &list.hosts).all(|host| host.secure);
            Ok((name, parts.seen.clone(), hosts, secure))
        };
        by_cluster.into_iter().map(hosts).collect()
    }

    /// Gives clusters the hosts of instance lists. A cluster that no document defines is made.
    fn assign_lists(&mut self, report: &mut Vec<ReportEntry>) -> Result<()> {
        for (name, seen, hosts, secure) in self.listed(report)? {
            if self.waiting.contains_key(&name) {
                if !self.destinations.of_cluster(&name).is_empty() {
                    // A ServiceEntry without endpoints says nothing of hosts.
                    let says = |hosts: &Endpoints| hosts.localities.iter().any(|g| !g.endpoints.is_empty());
                    self.assignments.retain(|(_, other, hosts)| *other != name || says(hosts));
                }
                self.assignments.push((seen, name, hosts));
                continue;
            }
            let Some(&index) = self.by_name.get(&name) else {
                report.push(
                    seen.entry(What::Default, format!("the cluster {name} is made with Envoy's defaults")),
                );
                self.by_name.insert(name.clone(), self.specs.clusters.len());
                self.places.push(seen);
                self.marks.push(None);
                self.blocks.push(ClusterBlock::default());
                self.specs.clusters.push(ClusterSpec {
                    name,
                    secure,
                    endpoints: hosts,
                    ..ClusterSpec::default()
                });
                continue;
            };
            let cluster = &mut self.specs.clusters[index];
            if cluster.kind != ClusterKind::Hosts || !cluster.endpoints.localities.is_empty() {
                let Seen { file, place, .. } = &self.places[index];
                let text = format!("the cluster `{name}` has its hosts from {file}:{}", place.line);
                return Err(seen.fail(text));
            }
            check_sums(&seen, &cluster.policy, &hosts)?;
            cluster.endpoints = hosts;
        }
        Ok(())
    }

    /// What a list is for: the cluster or host of Istio that the source is named after, else the service's, else the
    /// one that the file is named after.
    fn name_of(&self, source: &str, list: &List, alone: bool) -> String {
        let known = |name: &str| {
            self.is_known(name) || !self.destinations.hosts(name, list.namespace.as_deref()).is_empty()
        };
        let is_name = !source.is_empty() && !source.contains(['/', '\\', '.', '<']);
        if alone && (known(source) || is_name) {
            return source.to_owned();
        }
        if let Some(service) = &list.service {
            return service.clone();
        }
        let file = source.rsplit(['/', '\\']).next().unwrap_or(source);
        file.split('.').next().unwrap_or(file).to_owned()
    }

    /// Whether documents define a cluster, or one waits for the hosts of that name.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.waiting.contains_key(name) || self.by_name.contains_key(name)
    }

    /// The clusters of Istio that a name stands for; none = it is the name of a cluster as it is.
    fn destinations_of(&self, seen: &Seen, name: &str, list: &List) -> Result<Vec<&Destination>> {
        if self.is_known(name) {
            return Ok(self.destinations.of_cluster(name));
        }
        let hosts = self.destinations.hosts(name, list.namespace.as_deref());
        if hosts.len() > 1 {
            let hosts: Vec<&str> = hosts.into_iter().collect();
            let text = format!("the list `{name}` may be for {}; write its host in full", hosts.join(" or "));
            return Err(seen.fail(text));
        }
        Ok(hosts.first().map_or_else(Vec::new, |host| self.destinations.of_host(host)))
    }

    fn unknown_cluster(&self, seen: &Seen, name: &str) -> Box<ConfigError> {
        let nearest = nearest(name, self.by_name.keys().map(String::as_str));
        let hint = nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        let mut error = seen.fail(format!("unknown cluster `{name}`{hint}"));
        (error.found, error.nearest) = (name.to_owned(), nearest);
        error
    }
}
