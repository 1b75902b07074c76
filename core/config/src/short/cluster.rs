//! One cluster of the short form.

use super::hosts::hosts;
use super::settings::{hash, limits, outlier, retry};
use crate::block::OwnPolicy;
use crate::envoy::{PolicyMessage, check_sums, is_cluster_field, panic_percent, sub_cluster};
use crate::error::Result;
use crate::read::{At, Fields};
use nexthop_engine::spec::{ClusterKind, ClusterSource, ClusterSpec, ForwardSpec, PolicySpec};

const CLUSTER: Fields = Fields::ours(
    "a cluster of the short form",
    &[
        "hosts",
        "composite",
        "aggregate",
        "policy",
        "hash",
        "retry",
        "timeout",
        "limits",
        "outlier",
        "panic",
        "nexthop",
    ],
)
.one_of(&[&["hosts", "composite", "aggregate"]]);

/// Policies by the names people write.
const POLICIES: &[(&str, PolicyMessage)] = &[
    ("round_robin", PolicyMessage::RoundRobin),
    ("least_request", PolicyMessage::LeastRequest),
    ("random", PolicyMessage::Random),
    ("ring_hash", PolicyMessage::RingHash),
    ("maglev", PolicyMessage::Maglev),
];

/// Reads the cluster `name`.
pub(super) fn cluster(at: &At<'_>, name: &str) -> Result<ClusterSpec> {
    if name.is_empty() {
        return Err(at.fail("a cluster needs a name that is not empty"));
    }
    for entry in at.node.entries().unwrap_or_default() {
        if entry.key != "nexthop" && is_cluster_field(&entry.key) {
            let text = format!(
                "`{}` belongs to Envoy's form, this cluster stands in the short form's mapping; one cluster has one style (Envoy clusters stand in a list)",
                entry.key
            );
            return Err(at.key(&entry.key, &entry.value).fail(text));
        }
    }
    let msg = at.message(&CLUSTER)?;
    let mut spec = ClusterSpec { name: name.to_owned(), ..ClusterSpec::default() };
    if let Some(subs) = msg.get("composite") {
        let names = msg.each("composite", |item| sub_cluster(&item))?;
        if names.is_empty() {
            return Err(subs.fail("a composite cluster needs at least one cluster"));
        }
        if let Some(wrong) = msg.get("policy").or_else(|| msg.get("panic")) {
            return Err(wrong.fail("a composite cluster chooses among clusters; set this on them"));
        }
        spec.kind = ClusterKind::Composite(names);
        spec.policy = PolicySpec::ClusterProvided;
    } else if let Some(subs) = msg.get("aggregate") {
        let names = msg.each("aggregate", |item| sub_cluster(&item))?;
        if names.is_empty() {
            return Err(subs.fail("an aggregate cluster needs at least one cluster"));
        }
        if let Some(wrong) = msg.get("policy") {
            return Err(wrong.fail("an aggregate cluster chooses among clusters; set this on them"));
        }
        spec.kind = ClusterKind::Aggregate(names);
        spec.policy = PolicySpec::ClusterProvided;
    } else {
        let none = || at.fail("a cluster needs `hosts`, `composite` or `aggregate`");
        let list = msg.get("hosts").ok_or_else(none)?;
        spec.policy = msg.or("policy", PolicySpec::default(), policy)?;
        spec.endpoints = hosts(&list)?;
        check_sums(&list.seen(), &spec.policy, &spec.endpoints)?;
    }
    spec.hash_policy = msg.or("hash", Vec::new(), hash)?;
    spec.retry = msg.map("retry", retry)?;
    spec.breakers.thresholds[0] = msg.or("limits", spec.breakers.thresholds[0].clone(), limits)?;
    spec.outlier = msg.map("outlier", outlier)?;
    spec.panic_threshold = msg.or("panic", spec.panic_threshold, |p| {
        let value = p.f64()?;
        match (0.0..=100.0).contains(&value) {
            true => Ok(panic_percent(value)),
            false => Err(p.expected("a percentage from 0 to 100")),
        }
    })?;
    // The conditions act from the cluster; time-outs of a try are read from the route's policy alone, so the same
    // policy stands in both places.
    let forward = ForwardSpec {
        cluster: ClusterSource::Name(name.to_owned()),
        retry: spec.retry.clone(),
        hash_policy: spec.hash_policy.clone(),
        ..ForwardSpec::default()
    };
    let timeout = msg.or("timeout", forward.timeout, |d| d.short_millis())?;
    // A cluster that says nothing of it is treated as the first route that leads to it.
    let says = ["timeout", "retry", "hash"].iter().any(|field| msg.get(field).is_some());
    spec.defaults = says.then_some(ForwardSpec { timeout, ..forward });
    Ok(spec)
}

/// A name, or a mapping from one name to the fields of its message.
fn policy(at: &At<'_>) -> Result<PolicySpec> {
    let names = || POLICIES.iter().map(|(name, _)| *name).chain(OwnPolicy::ALL.iter().map(|(name, _)| *name));
    at.named_fields("ring_hash: {minimum_ring_size: 1024}", |at, name, fields| {
        if let Some((_, message)) = POLICIES.iter().find(|(known, _)| *known == name) {
            return message.read(fields);
        }
        match OwnPolicy::ALL.iter().find(|(known, _)| *known == name) {
            Some((_, own)) => own.read(fields),
            None => Err(at.unknown_name("policy", name, names())),
        }
    })
}
