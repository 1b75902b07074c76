//! The `nexthop:` mapping: what Envoy's model cannot say.

use crate::envoy::flatten;
use crate::error::Result;
use crate::read::{At, Fields};
use nexthop_engine::spec::{ConnectionStyle, Value};

const CLUSTER: Fields = Fields::of("nexthop", &["connections"]).refused(&[
    "policy",
    "subset_size",
    "filters",
    "protect_threshold",
    "exclude_tried",
    "prefer_below_limit",
    "half_open",
    "cool_down",
    "outcome_at",
    "admission",
    "concurrency",
    "zone",
]);
const RETRY: Fields = Fields::of("nexthop", &[]).refused(&[
    "deadline_first",
    "retry_after",
    "idempotency",
    "layers",
    "classes",
]);
const DOCUMENT: Fields = Fields::of("nexthop", &["version", "runtime", "defaults"]);

const STYLES: &[(&str, i32)] = &[("queue", 0), ("count", 1), ("strict", 2)];

/// Reads the block of a cluster.
pub(crate) fn cluster_block(at: &At<'_>) -> Result<Option<ConnectionStyle>> {
    at.message(&CLUSTER)?.map("connections", |style| {
        Ok(match style.enumeration(STYLES)? {
            1 => ConnectionStyle::Count,
            2 => ConnectionStyle::Strict,
            _ => ConnectionStyle::Queue,
        })
    })
}

/// Reads the block of a retry policy.
pub(crate) fn retry_block(at: &At<'_>) -> Result<()> {
    at.message(&RETRY).map(|_| ())
}

/// What the block at the top of a document sets.
#[derive(Default)]
pub(crate) struct DocumentBlock {
    pub(crate) runtime: Vec<(String, Value)>,
    /// For clusters without a style of their own.
    pub(crate) connections: Option<ConnectionStyle>,
}

/// Reads the block at the top of a document.
pub(crate) fn document_block(at: &At<'_>) -> Result<DocumentBlock> {
    let msg = at.message(&DOCUMENT)?;
    if let Some(version) = msg.get("version") {
        version.u32_in(1, 1)?;
    }
    let mut block = DocumentBlock::default();
    if let Some(runtime) = msg.get("runtime") {
        block.runtime = flatten(&runtime)?;
    }
    if let Some(defaults) = msg.get("defaults") {
        block.connections = cluster_block(&defaults)?;
    }
    Ok(block)
}
