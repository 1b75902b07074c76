//! The short form: for people and scripts, turned into the same specs as Envoy's documents.

mod cluster;
mod hosts;
mod routes;
mod settings;

use crate::batch::Batch;
use crate::envoy;
use crate::error::Result;
use crate::read::{At, Fields};
use nexthop_engine::spec::ForwardSpec;
use std::collections::BTreeMap;

const DOCUMENT: Fields = Fields::ours("the short form", &["clusters", "routes", "nexthop"]);

/// Reads a document with `clusters` and `routes` at its top. Clusters in a mapping are of the short form, clusters
/// in a list are Envoy's.
pub(crate) fn document(at: &At<'_>, batch: &mut Batch) -> Result<()> {
    let msg = at.message(&DOCUMENT)?;
    let mut defaults: BTreeMap<String, ForwardSpec> = BTreeMap::new();
    if let Some(clusters) = msg.get("clusters") {
        if clusters.is_list() {
            for item in clusters.items()? {
                let (spec, waits) = envoy::cluster(&item)?;
                batch.add_cluster(&item, spec, waits)?;
            }
        } else if clusters.is_map() {
            for (entry, item) in clusters.entries()? {
                let spec = cluster::cluster(&item, &entry.key)?;
                if let Some(forward) = &spec.defaults {
                    defaults.insert(spec.name.clone(), forward.clone());
                }
                batch.add_cluster(&item, spec, None)?;
            }
        } else {
            return Err(clusters.expected("a mapping of clusters by name, or a list of Envoy clusters"));
        }
    }
    if let Some(list) = msg.get("routes") {
        let table = routes::routes(&list, &defaults)?;
        batch.add_table(&list, table, true);
    }
    if let Some(block) = msg.get("nexthop") {
        batch.add_block(&block)?;
    }
    Ok(())
}
