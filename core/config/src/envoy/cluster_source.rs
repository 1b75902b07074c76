//! Where a route leads: a cluster, one that a header names, or one of several (`WeightedCluster`,
//! `ClusterSpecifierPlugin`).

use super::hash_policy::header_name;
use crate::error::Result;
use crate::read::{At, Fields, Msg, Reference};
use crate::report::What;
use nexthop_engine::spec::{ClusterSource, PriorityGroup, PriorityGroups, WeightedCluster, WordSource};
use std::collections::BTreeMap;

const WEIGHTED: Fields = Fields::of("WeightedCluster", &["clusters", "header_name", "use_hash_policy"])
    .not_used(&["total_weight"])
    .not_available(&["runtime_key_prefix"])
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
const PLUGIN: Fields = Fields::of("ClusterSpecifierPlugin", &["extension", "is_optional"]);
const GROUPS: Fields = Fields::of(
    "PriorityGroupClusterSpecifier",
    &["priority_groups", "override_metadata_namespace", "header_name", "use_hash_policy"],
)
.one_of(&[&["header_name", "use_hash_policy"]]);
const GROUP: Fields = Fields::of("PriorityGroup", &["name", "clusters"]);
const GROUP_CLUSTER: Fields = Fields::of("ClusterWeight", &["cluster_name", "weight"]);

const PRIORITY_GROUP: &str =
    "envoy.extensions.router.cluster_specifiers.priority_group.v3.PriorityGroupClusterSpecifier";

/// Where a route leads, and what chooses when it leads to several clusters.
pub(super) type Source = (ClusterSource, WordSource);

/// What the routes of one table share.
#[derive(Default)]
pub(super) struct Scope {
    /// Clusters that are named must exist.
    pub(super) checked: bool,
    /// Cluster specifiers by name; `None` = optional, and of a type that is not known.
    plugins: BTreeMap<String, Option<Source>>,
}

impl Scope {
    /// Reads `cluster_specifier_plugins` of a table.
    pub(super) fn new(msg: &Msg<'_>, checked: bool) -> Result<Self> {
        let mut scope = Self { checked, plugins: BTreeMap::new() };
        msg.repeated("cluster_specifier_plugins", |item| {
            let (name, source) = plugin(&item, checked)?;
            match scope.plugins.insert(name.clone(), source) {
                Some(_) => Err(item.fail(format!("there is a cluster specifier {name:?} already"))),
                None => Ok(()),
            }
        })?;
        Ok(scope)
    }

    /// Reads where a route leads.
    pub(super) fn source(&self, at: &At<'_>, msg: &Msg<'_>) -> Result<Source> {
        let drawn = |source| (source, WordSource::Drawn);
        if let Some(name) = msg.get("cluster") {
            return Ok(drawn(ClusterSource::Name(named(&name, self.checked)?)));
        }
        if let Some(header) = msg.get("cluster_header") {
            return Ok(drawn(ClusterSource::Header(header_name(&header)?)));
        }
        if let Some(name) = msg.get("cluster_specifier_plugin") {
            return match self.plugins.get(&name.filled()?) {
                Some(Some(source)) => Ok(source.clone()),
                Some(None) => Err(name.unavailable("this cluster specifier")),
                None => Err(name.expected("the name of one of the table's `cluster_specifier_plugins`")),
            };
        }
        if let Some(inline) = msg.get("inline_cluster_specifier_plugin") {
            return match plugin(&inline, self.checked)? {
                (_, Some(source)) => Ok(source),
                (_, None) => Err(inline.unavailable("this cluster specifier")),
            };
        }
        let Some(weighted) = msg.get("weighted_clusters") else {
            return Err(at.expected(
                "a route with one of cluster, cluster_header, weighted_clusters, cluster_specifier_plugin",
            ));
        };
        self.weighted(&weighted)
    }

    fn weighted(&self, at: &At<'_>) -> Result<Source> {
        let msg = at.message(&WEIGHTED)?;
        let entries = msg.repeated("clusters", |item| {
            let entry = item.message(&WEIGHT)?;
            Ok(WeightedCluster {
                name: named(&entry.need("name")?, self.checked)?,
                weight: entry.need("weight")?.u32()?,
                metadata_match: entry.map("metadata_match", |m| m.metadata())?,
            })
        })?;
        if entries.is_empty() {
            return Err(at.fail("the list of weighted clusters is empty"));
        }
        check_weights(at, &entries)?;
        Ok((ClusterSource::Weighted(entries), word(&msg)?))
    }
}

/// What chooses among several clusters.
fn word(msg: &Msg<'_>) -> Result<WordSource> {
    let header = msg.get("header_name").filter(|name| name.text().is_ok_and(|name| !name.is_empty()));
    Ok(match header {
        Some(header) => WordSource::Header(header_name(&header)?),
        None if msg.or("use_hash_policy", false, |flag| flag.bool())? => WordSource::HashPolicy,
        None => WordSource::Drawn,
    })
}

/// A `ClusterSpecifierPlugin` and its name.
fn plugin(at: &At<'_>, checked: bool) -> Result<(String, Option<Source>)> {
    let msg = at.message(&PLUGIN)?;
    let optional = msg.or("is_optional", false, |flag| flag.bool())?;
    let extension = msg.need("extension")?;
    extension.extension(|name, type_name, config| {
        let source = match config {
            Some(config) if type_name == PRIORITY_GROUP => Some(priority_groups(&config, checked)?),
            Some(config) if optional => {
                config.note(What::NotAvailable, "a cluster specifier of a type that is not available");
                None
            }
            Some(_) => return Err(extension.unavailable(&format!("a cluster specifier of type {type_name}"))),
            None => return Err(extension.fail(format!("the cluster specifier {name:?} needs its `typed_config`"))),
        };
        Ok((name.to_owned(), source))
    })
}

fn priority_groups(at: &At<'_>, checked: bool) -> Result<Source> {
    let msg = at.message(&GROUPS)?;
    let list = msg.repeated("priority_groups", |item| {
        let group = item.message(&GROUP)?;
        let clusters = group.repeated("clusters", |item| {
            let entry = item.message(&GROUP_CLUSTER)?;
            let name = named(&entry.need("cluster_name")?, checked)?;
            let weight = entry.need("weight")?.u32_in(1, u32::MAX)?;
            Ok(WeightedCluster { name, weight, metadata_match: None })
        })?;
        if clusters.is_empty() {
            return Err(group.missing("clusters"));
        }
        Ok(PriorityGroup { name: group.need("name")?.filled()?, clusters })
    })?;
    if list.is_empty() {
        return Err(msg.missing("priority_groups"));
    }
    let override_namespace = msg.or("override_metadata_namespace", String::new(), |name| name.text())?;
    Ok((ClusterSource::Groups(Box::new(PriorityGroups { list, override_namespace })), word(&msg)?))
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
