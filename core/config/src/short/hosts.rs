//! Hosts of the short form.

use crate::envoy::HostKey;
use crate::error::Result;
use crate::read::{At, Fields, struct_of};
use nexthop_engine::spec::{EndpointSpec, Endpoints, HealthStatus, Locality, LocalityEndpoints, Metadata};
use std::collections::BTreeMap;

const HOST: Fields = Fields::ours(
    "a host of the short form",
    &["address", "weight", "region", "zone", "metadata", "priority", "hostname", "health"],
);

const HEALTH: &[(&str, i32)] =
    &[("unknown", 0), ("healthy", 1), ("unhealthy", 2), ("draining", 3), ("timeout", 4), ("degraded", 5)];

/// Reads a list of hosts: `address:port`, or a mapping with more about it. Hosts of one priority and zone form a
/// locality, in the order in which they first appear.
pub(super) fn hosts(at: &At<'_>) -> Result<Endpoints> {
    let mut groups: Vec<LocalityEndpoints> = Vec::new();
    let mut index: BTreeMap<(u32, Option<Locality>), usize> = BTreeMap::new();
    for item in at.items()? {
        let (priority, locality, host) = host(&item)?;
        let group = *index.entry((priority, locality.clone())).or_insert_with(|| {
            groups.push(LocalityEndpoints { locality, priority, ..LocalityEndpoints::default() });
            groups.len() - 1
        });
        groups[group].endpoints.push(host.into());
    }
    Ok(Endpoints { localities: groups, ..Endpoints::default() })
}

fn host(at: &At<'_>) -> Result<(u32, Option<Locality>, EndpointSpec)> {
    if !at.is_map() {
        return Ok((0, None, address(at)?));
    }
    let msg = at.message(&HOST)?;
    let mut host = address(&msg.need("address")?)?;
    host.weight = msg.or("weight", 1, |w| w.u32_in(1, u32::MAX))?;
    host.hostname = msg.or("hostname", host.hostname, |name| name.text())?;
    let health = msg.or("health", 0, |h| h.enumeration(HEALTH))?;
    host.health = HealthStatus::from_number(health).unwrap_or_default();
    if let Some(metadata) = msg.get("metadata") {
        let values = metadata.is_map().then(|| struct_of(metadata.node)).flatten();
        let values = values.ok_or_else(|| metadata.expected("a mapping"))?;
        host.metadata = Metadata(BTreeMap::from([("envoy.lb".to_owned(), values)]));
    }
    let part = |name| msg.or(name, String::new(), |p| p.text());
    let locality = Locality { region: part("region")?, zone: part("zone")?, sub_zone: String::new() };
    let locality = (locality != Locality::default()).then_some(locality);
    Ok((msg.or("priority", 0, |p| p.u32_in(0, 128))?, locality, host))
}

fn address(at: &At<'_>) -> Result<EndpointSpec> {
    let text = at.text()?;
    let Some(HostKey { key, port, name }) = HostKey::parse(&text) else {
        return Err(at.expected("an address such as 10.0.0.1:80, [::1]:80 or name:80"));
    };
    Ok(EndpointSpec { address: key, port, hostname: name.unwrap_or_default(), ..EndpointSpec::default() })
}
