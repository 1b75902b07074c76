//! Instances as hosts of a cluster.

use super::{Condition, Instance, List, Skipped};
use crate::envoy::{HostKey, Names};
use crate::error::Result;
use crate::report::{ReportEntry, What};
use nexthop_engine::spec::{
    EndpointSpec, Endpoints, HealthStatus, Locality, LocalityEndpoints, Metadata, Value,
};
use std::collections::{BTreeMap, BTreeSet};

/// Hosts in the order of the list, of each address the first. When any weight has a fraction, all are hundredths. Instances of one zone that follow each other form a
/// locality. Metadata goes to `envoy.lb`; id, weight and `secure` to `nexthop`.
pub(crate) fn endpoints(lists: &[&List], report: &mut Vec<ReportEntry>) -> Result<Endpoints> {
    let mut endpoints = Endpoints {
        protected: lists.iter().any(|list| list.protected),
        revision: lists.iter().filter_map(|list| list.revision).max(),
        ..Endpoints::default()
    };
    let mut known = BTreeSet::new();
    let all = || lists.iter().flat_map(|list| &list.hosts);
    let fractional = all().any(|host| bounded(host.weight).fract() != 0.0);
    let scale = |weight: f64| if fractional { (bounded(weight) * 100.0).round() } else { bounded(weight) };
    let weights = |host: &Instance| scale(host.weight);
    let sum: f64 = all().map(weights).sum();
    // Envoy's weights of a list add up to a number of 32 bits.
    let room = f64::from(u32::MAX) - all().count() as f64;
    let part = if sum > room { room / sum.min(f64::MAX) } else { 1.0 };
    for Skipped { seen, id, reason, named } in lists.iter().flat_map(|list| &list.skipped) {
        let which = if *named { format!("the instance {id}") } else { "the instance".to_owned() };
        report.push(seen.entry(What::NotUsed, format!("{which} is left out: {reason}")));
    }
    for instance in all() {
        let Some(key) = HostKey::new(bare(&instance.address), instance.port, Names::Allowed) else {
            let text =
                format!("expected an IP address or a name in {}, found {:?}", instance.id, instance.address);
            return Err(instance.seen.fail(text));
        };
        if !known.insert(key.key.clone()) {
            let text = format!("{} is listed twice; the first entry counts", key.key);
            report.push(instance.seen.entry(What::NotUsed, text));
            continue;
        }
        let locality =
            instance.zone.as_ref().map(|zone| Locality { zone: zone.clone(), ..Locality::default() });
        let named = EndpointSpec { hostname: key.name.unwrap_or_default(), ..EndpointSpec::default() };
        let host = EndpointSpec {
            address: key.key,
            port: key.port,
            weight: whole(weights(instance) * part),
            health: match instance.health {
                Condition::Healthy => HealthStatus::Healthy,
                Condition::Unhealthy => HealthStatus::Unhealthy,
                Condition::Draining => HealthStatus::Draining,
            },
            metadata: metadata(instance),
            ..named
        };
        match endpoints.localities.last_mut().filter(|last| last.locality == locality) {
            Some(last) => last.endpoints.push(host.into()),
            None => endpoints.localities.push(LocalityEndpoints {
                locality,
                endpoints: vec![host.into()],
                ..LocalityEndpoints::default()
            }),
        }
    }
    Ok(endpoints)
}

/// Registries write IPv6 addresses with and without brackets.
fn bare(address: &str) -> &str {
    let inside = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inside.filter(|inside| inside.contains(':')).unwrap_or(address)
}

/// An infinite weight counts as 10,000.
fn bounded(weight: f64) -> f64 {
    if weight.is_infinite() { 10_000.0 } else { weight }
}

/// A whole weight.
fn whole(weight: f64) -> u32 {
    // The cast saturates.
    (weight as u32).max(1)
}

fn metadata(instance: &Instance) -> Metadata {
    let texts = instance.metadata.iter().map(|(key, value)| (key.clone(), Value::String(value.clone())));
    let mut own = BTreeMap::from([
        ("id".to_owned(), Value::String(instance.id.clone())),
        ("weight".to_owned(), Value::Number(instance.weight)),
    ]);
    if instance.secure {
        own.insert("secure".into(), Value::Bool(true));
    }
    Metadata(BTreeMap::from([("envoy.lb".into(), texts.collect()), ("nexthop".into(), own)]))
}
