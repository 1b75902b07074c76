//! Kubernetes: one `EndpointSlice`.

use super::{Condition, Instance, List, ListOptions, id_or, plain};
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use crate::report::What;
use std::collections::{BTreeMap, BTreeSet};

const SLICE: Fields = Fields::of("EndpointSlice", &["kind", "metadata", "ports", "endpoints"]);
const META: Fields = Fields::of("metadata", &["labels", "namespace"]);
const PORT: Fields = Fields::of("ports", &["name", "port"]);
const ENDPOINT: Fields =
    Fields::of("endpoints", &["addresses", "conditions", "zone", "nodeName", "targetRef"]);
const CONDITIONS: Fields = Fields::of("conditions", &["ready", "serving", "terminating"]);
const TARGET: Fields = Fields::of("targetRef", &["kind", "name"]);

pub(super) fn list(at: &At<'_>, options: &ListOptions) -> Result<List> {
    let slice = at.object(&SLICE, |_, _| {})?;
    let kind = slice.need("kind")?;
    if plain(&kind) != "EndpointSlice" {
        return Err(kind.unknown_name("kind", &plain(&kind), ["EndpointSlice"].into_iter()));
    }
    let (service, namespace) = names(&slice)?;
    let mut list = List { service, namespace, ..List::default() };
    list.ports = ports(&slice)?;
    let port = port(&slice, &list.ports, options)?;
    let mut seen = BTreeSet::new();
    let Some(endpoints) = slice.get("endpoints") else { return Ok(list) };
    for item in endpoints.items()? {
        let instance = endpoint(&item, port)?;
        if instance.address.is_empty() || seen.insert(instance.address.clone()) {
            list.push(&item, instance, false);
        }
    }
    Ok(list)
}

/// Of the service: its name and namespace.
fn names(slice: &Msg<'_>) -> Result<(Option<String>, Option<String>)> {
    let Some(meta) = slice.get("metadata") else { return Ok((None, None)) };
    let meta = meta.object(&META, |_, _| {})?;
    let service = meta.or("labels", BTreeMap::new(), super::texts)?.remove("kubernetes.io/service-name");
    Ok((service, meta.get("namespace").map(|at| plain(&at)).filter(|name| !name.is_empty())))
}

fn ports(slice: &Msg<'_>) -> Result<Vec<(String, u16)>> {
    slice.each("ports", |item| {
        let msg = item.object(&PORT, |_, _| {})?;
        let name = msg.get("name").map(|at| plain(&at)).unwrap_or_default();
        Ok((name, msg.or("port", 0, super::port)?))
    })
}

/// The port of the wanted name, or the only one; without any name the one called `http`, else the first.
fn port(slice: &Msg<'_>, ports: &[(String, u16)], options: &ListOptions) -> Result<u16> {
    let Some(at) = slice.get("ports") else { return Ok(0) };
    if let [(_, only)] = ports {
        return Ok(*only);
    }
    if !options.port_name.is_empty() {
        return match ports.iter().find(|(name, _)| *name == options.port_name) {
            Some((_, port)) => Ok(*port),
            None => {
                Err(at.unknown_name("port", &options.port_name, ports.iter().map(|(name, _)| name.as_str())))
            }
        };
    }
    let chosen = ports.iter().find(|(name, _)| name == "http").or_else(|| ports.first());
    if let Some((name, port)) = chosen {
        at.note(What::Default, format!("of several ports {port} ({name:?}) is taken"));
    }
    Ok(chosen.map_or(0, |(_, port)| *port))
}

fn endpoint(at: &At<'_>, port: u16) -> Result<Instance> {
    let msg = at.object(&ENDPOINT, |_, _| {})?;
    let (address, seen) = match msg.get("addresses") {
        Some(list) => list.items()?.next().map(|first| (plain(&first), first.seen())),
        None => None,
    }
    .unwrap_or_else(|| (String::new(), at.seen()));
    let (ready, serving, terminating) = match msg.get("conditions") {
        Some(conditions) => {
            let conditions = conditions.object(&CONDITIONS, |_, _| {})?;
            let flag = |name, default| conditions.or(name, default, |flag| flag.bool());
            (flag("ready", true)?, flag("serving", true)?, flag("terminating", false)?)
        }
        None => (true, true, false),
    };
    let (kind, name) = match msg.get("targetRef") {
        Some(target) => {
            let target = target.object(&TARGET, |_, _| {})?;
            let text = |name| target.get(name).map(|at| plain(&at)).unwrap_or_default();
            (text("kind"), text("name"))
        }
        None => Default::default(),
    };
    let mut metadata = BTreeMap::new();
    if let Some(node) = msg.get("nodeName") {
        metadata.insert("k8s.node".to_owned(), plain(&node));
    }
    if kind == "Pod" && !name.is_empty() {
        metadata.insert("k8s.pod".to_owned(), name.clone());
    }
    Ok(Instance {
        id: id_or(name, &address, port),
        address,
        seen,
        port,
        weight: 1.0,
        health: match (ready, serving && terminating) {
            (true, _) => Condition::Healthy,
            (false, true) => Condition::Draining,
            (false, false) => Condition::Unhealthy,
        },
        zone: msg.get("zone").map(|at| plain(&at)),
        metadata,
        secure: false,
    })
}
