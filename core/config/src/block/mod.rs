//! The `nexthop:` mapping: what Envoy's model cannot say (`spec/nexthop-block.md`).

mod options;
mod parts;
mod policy;
mod retry;

use crate::envoy::{admission, concurrency, flatten};
use crate::error::Result;
use crate::filters::{Filters, filters};
use crate::read::{At, Fields};
use nexthop_engine::spec::{
    AdmissionSpec, ClusterKind, ClusterSpec, ConcurrencySpec, ConnectionStyle, PolicySpec, Value,
};
use std::sync::Arc;

use options::Options;
pub(crate) use policy::OwnPolicy;
pub(crate) use retry::retry_block;

const CLUSTER: Fields = Fields::ours(
    "nexthop",
    &[
        "connections",
        "policy",
        "subset_size",
        "exclude_tried",
        "prefer_below_limit",
        "half_open",
        "cool_down",
        "outcome_at",
        "admission",
        "concurrency",
        "filters",
        "protect_threshold",
        "lifecycle_events",
    ],
)
.refused(&["zone"]);
const DOCUMENT: Fields = Fields::ours("nexthop", &["version", "runtime", "defaults"]);

const STYLES: &[(&str, i32)] = &[("queue", 0), ("count", 1), ("strict", 2)];

/// The block of a cluster; where it says nothing the defaults of the documents do.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterBlock {
    connections: Option<ConnectionStyle>,
    policy: Option<PolicySpec>,
    subset_size: Option<u32>,
    exclude_tried: Option<bool>,
    admission: Option<AdmissionSpec>,
    concurrency: Option<ConcurrencySpec>,
    /// `Some(None)` = an empty list, which wins over defaults.
    filters: Option<Option<Filters>>,
    protect_threshold: Option<f32>,
    lifecycle_events: Option<bool>,
    options: Options,
}

impl ClusterBlock {
    /// This, and `defaults` where it says nothing.
    pub(crate) fn or(self, defaults: &Self) -> Self {
        Self {
            connections: self.connections.or(defaults.connections),
            policy: self.policy.or_else(|| defaults.policy.clone()),
            subset_size: self.subset_size.or(defaults.subset_size),
            exclude_tried: self.exclude_tried.or(defaults.exclude_tried),
            admission: self.admission.or_else(|| defaults.admission.clone()),
            concurrency: self.concurrency.or_else(|| defaults.concurrency.clone()),
            filters: self.filters.or_else(|| defaults.filters.clone()),
            protect_threshold: self.protect_threshold.or(defaults.protect_threshold),
            lifecycle_events: self.lifecycle_events.or(defaults.lifecycle_events),
            options: self.options.or(&defaults.options),
        }
    }

    /// Whether hosts come back through probes.
    pub(crate) fn is_half_open(&self) -> bool {
        self.options.is_half_open()
    }

    /// Sets what it says. A policy takes the place of the one that chooses hosts, in subsets, too.
    pub(crate) fn apply(self, spec: &mut ClusterSpec) {
        spec.connections = self.connections;
        spec.admission = self.admission;
        spec.concurrency = self.concurrency;
        spec.lifecycle_events = self.lifecycle_events.unwrap_or(false);
        if spec.kind != ClusterKind::Hosts {
            return;
        }
        let named = self.policy.is_some();
        if let Some(policy) = self.policy {
            match &mut spec.policy {
                PolicySpec::Subset(subset) => Arc::make_mut(subset).child = policy,
                whole => *whole = policy,
            }
        }
        spec.subset_size = self.subset_size;
        spec.exclude_tried = self.exclude_tried.unwrap_or(false);
        spec.protect_threshold = self.protect_threshold;
        if let Some(filters) = self.filters.flatten() {
            let own = std::mem::take(&mut spec.policy);
            spec.policy = filters.before(own, named);
        }
        spec.options = self.options.resolve();
    }
}

/// Reads the block of a cluster. `composite`: it has no hosts of its own.
pub(crate) fn cluster_block(at: &At<'_>, composite: bool) -> Result<ClusterBlock> {
    let msg = at.message(&CLUSTER)?;
    let of_hosts = [
        "policy",
        "subset_size",
        "exclude_tried",
        "filters",
        "protect_threshold",
        "prefer_below_limit",
        "half_open",
        "cool_down",
        "outcome_at",
    ];
    if let Some(wrong) = of_hosts.iter().find_map(|name| msg.get(name)).filter(|_| composite) {
        return Err(wrong.fail("a composite cluster chooses among clusters; set this on them"));
    }
    let connections = msg.map("connections", |style| {
        Ok(match style.enumeration(STYLES)? {
            1 => ConnectionStyle::Count,
            2 => ConnectionStyle::Strict,
            _ => ConnectionStyle::Queue,
        })
    })?;
    Ok(ClusterBlock {
        connections,
        policy: msg.map("policy", policy::policy)?,
        subset_size: msg.map("subset_size", |n| n.u32_in(1, u32::MAX))?,
        exclude_tried: msg.map("exclude_tried", |flag| flag.bool())?,
        admission: msg.map("admission", |at| admission(at, false))?,
        concurrency: msg.map("concurrency", |at| concurrency(at, false))?,
        filters: msg.map("filters", |at| filters(at, msg.has("policy")))?,
        protect_threshold: msg.map("protect_threshold", part)?,
        lifecycle_events: msg.map("lifecycle_events", |flag| flag.bool())?,
        options: Options::read(&msg)?,
    })
}

/// A part of the hosts.
fn part(at: &At<'_>) -> Result<f32> {
    let value = at.f64()?;
    match (0.0..=1.0).contains(&value) {
        true => Ok(value as f32),
        false => Err(at.expected("a part of the hosts, from 0 to 1")),
    }
}

/// What the block at the top of a document sets.
#[derive(Default)]
pub(crate) struct DocumentBlock {
    pub(crate) runtime: Vec<(String, Value)>,
    /// For clusters that do not say it themselves.
    pub(crate) defaults: ClusterBlock,
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
        block.defaults = cluster_block(&defaults, false)?;
    }
    Ok(block)
}
