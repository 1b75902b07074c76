//! Consul: `/v1/health/service/NAME`.

use super::{Condition, Instance, List, ListOptions, address, id_or, nacos::weight_at, plain, port, texts};
use crate::error::Result;
use crate::front::{Kind, Node};
use crate::read::{At, Fields};
use std::collections::BTreeMap;

const ENTRY: Fields = Fields::of("an entry of Consul", &["Node", "Service", "Checks"]);
const NODE: Fields = Fields::of("Node", &["Node", "Address"]);
const SERVICE: Fields = Fields::of("Service", &["ID", "Service", "Address", "Port", "Meta", "Weights"]);
const WEIGHTS: Fields = Fields::of("Weights", &["Passing", "Warning"]);
const CHECK: Fields = Fields::of("Checks", &["Status"]);

pub(super) fn list(at: &At<'_>, options: &ListOptions) -> Result<List> {
    let mut list = List::default();
    for item in at.items()? {
        let entry = item.object(&ENTRY, |_, _| {})?;
        // Without a service there is no port, and so no address to send to.
        let none = Node { kind: Kind::Null, place: item.node.place };
        let service = entry.get("Service").unwrap_or_else(|| item.key("Service", &none));
        let has_service = !service.node.is_null();
        let service = service.object(&SERVICE, |_, _| {})?;
        let text = |name| service.get(name).map(|at| plain(&at)).unwrap_or_default();
        let (mut host, mut seen) = address(&service, "Address");
        if let Some(node) = entry.get("Node").filter(|_| has_service && host.is_empty()) {
            let node = node.object(&NODE, |_, _| {})?;
            (host, seen) = address(&node, "Address");
            if host.is_empty() {
                (host, seen) = address(&node, "Node");
            }
        }
        let port = service.or("Port", 0, port)?;
        let states = entry.each("Checks", |check| {
            let check = check.object(&CHECK, |_, _| {})?;
            Ok(check.get("Status").map(|at| plain(&at)).unwrap_or_default())
        })?;
        let warned = states.iter().any(|state| state == "warning");
        let critical = states.iter().any(|state| state == "critical") || (warned && options.only_passing);
        let (passing, warning) = match service.get("Weights") {
            Some(weights) => {
                let weights = weights.object(&WEIGHTS, |_, _| {})?;
                let weight = |name| weights.get(name).map_or(1.0, |at| weight_at(&at));
                (weight("Passing"), weight("Warning"))
            }
            None => (1.0, 1.0),
        };
        let chosen = if warned { warning } else { passing };
        let metadata = service.or("Meta", BTreeMap::new(), texts)?;
        let name = text("Service");
        if list.service.is_none() && !name.is_empty() {
            list.service = Some(name);
        }
        let instance = Instance {
            id: id_or(text("ID"), &host, port),
            address: host,
            seen,
            port,
            weight: chosen.clamp(1.0, 128.0).trunc(),
            health: if critical || chosen < 1.0 { Condition::Unhealthy } else { Condition::Healthy },
            zone: metadata.get("zone").cloned(),
            secure: metadata.get("secure").is_some_and(|text| text == "true"),
            metadata,
        };
        list.push(&item, instance, false);
    }
    Ok(list)
}
