//! Hosts from code: changes become a whole new list of endpoints, which the engine applies as an EDS update.

use super::error::Error;
use super::registry::Engine;
use super::types::{HostChange, host_fields, host_op};
use nexthop_config::{ListOptions, Source};
use nexthop_engine::Misuse;
use nexthop_engine::engine::HostPatch;
use nexthop_engine::spec::{
    Endpoint, EndpointSpec, Endpoints, HealthStatus, Locality, LocalityEndpoints, Metadata,
};
use std::collections::{BTreeMap, BTreeSet};

/// Applies a batch to one cluster: whole, or not at all.
pub(super) fn apply(engine: &Engine, cluster: &str, changes: &[HostChange<'_>]) -> Result<u64, Error> {
    let missing = || {
        let known = engine.core.target_names();
        Error::misuse(Misuse::NotFound, format!("no cluster {cluster:?}{}", nearest(cluster, &known)))
    };
    if let Some(kind) = engine.core.sub_clusters(cluster) {
        return Err(invalid(&format!(
            "the cluster {cluster:?} is {} without hosts of its own; change those of its sub-clusters {:?}",
            kind.article(),
            kind.subs()
        )));
    }
    if let [HostChange { op: host_op::ENDPOINTS, metadata, address, hostname, .. }] = changes {
        let names = engine.core.assignment_names(cluster);
        if names.is_empty() {
            return Err(missing());
        }
        let dialect = super::documents::dialect(address)?;
        let source = Source { name: "<endpoints>", text: metadata.as_bytes(), dialect };
        let (named, endpoints) = nexthop_config::load_hosts(&source, &options(hostname)?, cluster)
            .map_err(|error| Error::Config(Box::new(error)))?;
        if let Some(named) = named.filter(|named| !names.contains(named)) {
            return Err(invalid(&format!(
                "the assignment is for the cluster {named:?} and was applied to {cluster:?}; its cluster_name must be \
                 one of {names:?}"
            )));
        }
        let held = engine.core.endpoints(cluster).and_then(|held| held.revision);
        if let (Some(held), Some(given)) = (held, endpoints.revision)
            && given < held
        {
            return Err(invalid(&format!(
                "the list is older (lastRefTime {given}) than the one in force ({held}); it was not taken over"
            )));
        }
        return set(engine, cluster, &endpoints)?.ok_or_else(missing);
    }
    if changes.iter().any(|change| change.op == host_op::ENDPOINTS) {
        return Err(invalid(&format!(
            "endpoints of a whole assignment stand alone in their call, and there are {} changes; apply them first or \
             afterwards",
            changes.len()
        )));
    }
    if let Some(epoch) = patch(engine, cluster, changes) {
        return Ok(epoch);
    }
    let mut endpoints = engine.core.endpoints(cluster).ok_or_else(missing)?;
    if changes.iter().any(|change| change.op == host_op::SET) {
        if changes.iter().any(|change| change.op != host_op::SET) {
            return Err(invalid("SET changes stand alone: they replace the whole list"));
        }
        endpoints.localities.clear();
        endpoints.protected = false;
        let mut seen = BTreeSet::new();
        let key = |change: &HostChange<'_>| match place(change.address) {
            Ok((key, _)) => key,
            Err(_) => change.address.to_owned(),
        };
        if let Some(twice) = changes.iter().find(|change| !seen.insert(key(change))) {
            return Err(invalid(&format!(
                "the address {:?} is given twice; each host counts once",
                twice.address
            )));
        }
    }
    for (at, change) in changes.iter().enumerate() {
        one(&mut endpoints, change)
            .map_err(|reason| invalid(&format!("change {at} ({:?}): {reason}", change.address)))?;
    }
    set(engine, cluster, &endpoints)?.ok_or_else(missing)
}

/// Changes of weight, health and metadata alone leave every host where it is: no list is made. `None` = it takes one, or
/// something is wrong with a change.
fn patch(engine: &Engine, cluster: &str, changes: &[HostChange<'_>]) -> Option<u64> {
    let own = host_fields::WEIGHT | host_fields::HEALTH | host_fields::METADATA;
    let simple = |change: &HostChange<'_>| change.op == host_op::CHANGE && change.fields & !own == 0;
    // The sum of weights is a whole list's.
    if changes.is_empty() || !changes.iter().all(simple) || engine.core.shares_weights(cluster) {
        return None;
    }
    let addresses: Vec<String> =
        changes.iter().map(|change| Some(place(change.address).ok()?.0)).collect::<Option<_>>()?;
    let patches: Vec<HostPatch<'_>> = changes
        .iter()
        .zip(&addresses)
        .map(|(change, address)| patch_of(change, address))
        .collect::<Option<_>>()?;
    engine.core.patch_hosts(cluster, &patches, engine.at(0)).ok()
}

fn patch_of<'a>(change: &HostChange<'_>, address: &'a str) -> Option<HostPatch<'a>> {
    let given = |field: u32| change_has(change, field);
    Some(HostPatch {
        address,
        weight: given(host_fields::WEIGHT).then(|| weight(change)),
        health: if given(host_fields::HEALTH) { Some(health(change.health).ok()?) } else { None },
        metadata: if given(host_fields::METADATA) { Some(metadata(change.metadata).ok()?) } else { None },
    })
}

fn change_has(change: &HostChange<'_>, field: u32) -> bool {
    change.fields & field != 0
}

/// Hands the endpoints to the engine. Documents are checked for the same by their reader.
fn set(engine: &Engine, cluster: &str, endpoints: &Endpoints) -> Result<Option<u64>, Error> {
    let (mut hosts, mut localities) = (BTreeMap::<u32, u64>::new(), BTreeMap::<u32, u64>::new());
    for group in &endpoints.localities {
        let sum: u64 = group.endpoints.iter().map(|host| u64::from(host.weight)).sum();
        *hosts.entry(group.priority).or_default() += sum;
        *localities.entry(group.priority).or_default() += u64::from(group.weight.unwrap_or(0));
    }
    let most = hosts.values().chain(localities.values()).copied().max().unwrap_or(0);
    if most > u64::from(u32::MAX) && engine.core.shares_weights(cluster) {
        return Err(invalid(&format!(
            "the weights of one priority add up to {most}; for a hash policy {} are possible",
            u32::MAX
        )));
    }
    Ok(engine.core.set_endpoints(cluster, endpoints, engine.at(0)))
}

/// `port_name=http`, `only_passing`, `ip_address`, apart by `&`.
fn options(text: &str) -> Result<ListOptions, Error> {
    let mut options = ListOptions::default();
    for part in text.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=').unwrap_or((part, "true")) {
            ("port_name", name) => name.clone_into(&mut options.port_name),
            ("only_passing", "true") => options.only_passing = true,
            ("ip_address", "true") => options.ip_address = true,
            _ => {
                let known = "port_name=NAME, only_passing, ip_address";
                return Err(invalid(&format!(
                    "unknown option {part:?} of an instance list; there are {known}"
                )));
            }
        }
    }
    Ok(options)
}

fn one(endpoints: &mut Endpoints, change: &HostChange<'_>) -> Result<(), String> {
    let (address, port) = place(change.address)?;
    match change.op {
        host_op::SET => insert(endpoints, build(change, &address, port)?, change),
        host_op::ADD => {
            take(endpoints, &address);
            insert(endpoints, build(change, &address, port)?, change)
        }
        host_op::REMOVE => match take(endpoints, &address) {
            Some(_) => Ok(()),
            None => Err("no such host to remove".into()),
        },
        host_op::CHANGE => {
            let (group, at) = find(endpoints, &address).ok_or("no such host to change")?;
            let held = &mut endpoints.localities[group];
            let mut spec = held.endpoints[at].clone();
            let given = |field: u32| change_has(change, field);
            if given(host_fields::WEIGHT) {
                spec.weight = weight(change);
            }
            if given(host_fields::HEALTH) {
                spec.health = health(change.health)?;
            }
            if given(host_fields::METADATA) {
                spec.metadata = metadata(change.metadata)?;
            }
            if given(host_fields::HOSTNAME) {
                change.hostname.clone_into(&mut spec.hostname);
            }
            let locality = held.locality.clone().unwrap_or_default();
            let mut to = HostChange {
                priority: if given(host_fields::PRIORITY) { change.priority } else { held.priority },
                region: &locality.region,
                zone: &locality.zone,
                sub_zone: &locality.sub_zone,
                ..HostChange::default()
            };
            if given(host_fields::LOCALITY) {
                (to.region, to.zone, to.sub_zone) = (change.region, change.zone, change.sub_zone);
            }
            // A host that stays in its group keeps its place there.
            if to.priority == held.priority && locality_of(&to) == locality {
                held.endpoints[at] = spec;
                return Ok(());
            }
            held.endpoints.remove(at);
            insert(endpoints, spec, &to)
        }
        op => Err(format!("unknown operation {op}; use 0 set, 1 add, 2 remove, 3 change or 4 endpoints")),
    }
}

fn build(change: &HostChange<'_>, address: &str, port: u16) -> Result<Endpoint, String> {
    Ok(EndpointSpec {
        address: address.to_owned(),
        port,
        hostname: change.hostname.to_owned(),
        weight: weight(change),
        health: health(change.health)?,
        metadata: metadata(change.metadata)?,
        ..EndpointSpec::default()
    }
    .into())
}

fn weight(change: &HostChange<'_>) -> u32 {
    change.weight.max(1)
}

fn health(number: u8) -> Result<HealthStatus, String> {
    HealthStatus::from_number(number.into())
        .ok_or_else(|| format!("health is {number}; EDS has 0 UNKNOWN to 5 DEGRADED"))
}

fn metadata(text: &str) -> Result<Metadata, String> {
    let mut metadata = Metadata::default();
    if !text.is_empty() {
        let values =
            nexthop_config::parse_metadata_json(text).map_err(|reason| format!("metadata: {reason}"))?;
        metadata.0.insert("envoy.lb".into(), values);
    }
    Ok(metadata)
}

/// Group and place of the first host at an address.
fn find(endpoints: &Endpoints, address: &str) -> Option<(usize, usize)> {
    let here = |group: &LocalityEndpoints| group.endpoints.iter().position(|spec| spec.address == address);
    endpoints.localities.iter().enumerate().find_map(|(at, group)| Some((at, here(group)?)))
}

/// Takes a host out; its empty locality stays for the order of the rest.
fn take(endpoints: &mut Endpoints, address: &str) -> Option<Endpoint> {
    let (group, at) = find(endpoints, address)?;
    Some(endpoints.localities[group].endpoints.remove(at))
}

fn locality_of(change: &HostChange<'_>) -> Locality {
    Locality {
        region: change.region.to_owned(),
        zone: change.zone.to_owned(),
        sub_zone: change.sub_zone.to_owned(),
    }
}

fn insert(endpoints: &mut Endpoints, spec: Endpoint, at: &HostChange<'_>) -> Result<(), String> {
    if at.priority > 128 {
        return Err(format!("priority is {}; 0 to 128 are possible", at.priority));
    }
    let locality = locality_of(at);
    let last = endpoints
        .localities
        .iter_mut()
        .rev()
        .find(|group| group.priority == at.priority && group.locality.as_ref() == Some(&locality));
    match last {
        Some(group) => group.endpoints.push(spec),
        None => endpoints.localities.push(LocalityEndpoints {
            locality: Some(locality),
            priority: at.priority,
            weight: None,
            endpoints: vec![spec],
        }),
    }
    Ok(())
}

/// The canonical form of `ip:port`, `[v6]:port` or `name:port`, and its port.
fn place(address: &str) -> Result<(String, u16), String> {
    nexthop_config::parse_address(address)
        .ok_or_else(|| "an address is ip:port, [v6]:port or name:port with a port up to 65535".to_owned())
}

fn invalid(sentence: &str) -> Error {
    Error::misuse(Misuse::Invalid, sentence)
}

/// `; did you mean "x"?` for the nearest known name.
pub(super) fn nearest(name: &str, known: &[String]) -> String {
    let best = known
        .iter()
        .filter(|other| !other.starts_with("route:"))
        .map(|other| (distance(name, other), other))
        .min();
    match best {
        Some((far, other)) if far <= name.chars().count().div_ceil(2) => format!("; did you mean {other:?}?"),
        _ => String::new(),
    }
}

/// Edits from one text to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (corner + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}
