//! Consul: `/v1/health/service/NAME`.

use super::{Condition, Instance, List, ListOptions, id_or, plain, port, texts};
use crate::error::Result;
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
        let service = entry.need("Service")?.object(&SERVICE, |_, _| {})?;
        let text = |name| service.get(name).map(|at| plain(&at)).unwrap_or_default();
        let mut address = text("Address");
        if address.is_empty()
            && let Some(node) = entry.get("Node")
        {
            let node = node.object(&NODE, |_, _| {})?;
            address = node.get("Address").map(|at| plain(&at)).unwrap_or_default();
            if address.is_empty() {
                address = node.get("Node").map(|at| plain(&at)).unwrap_or_default();
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
                (weights.or("Passing", 1, |n| n.i64())?, weights.or("Warning", 1, |n| n.i64())?)
            }
            None => (1, 1),
        };
        let chosen = if warned { warning } else { passing };
        let metadata = service.or("Meta", BTreeMap::new(), texts)?;
        let name = text("Service");
        if list.service.is_none() && !name.is_empty() {
            list.service = Some(name);
        }
        let instance = Instance {
            id: id_or(text("ID"), &address, port),
            address,
            port,
            weight: chosen.clamp(1, 128) as f64,
            health: if critical || chosen < 1 { Condition::Unhealthy } else { Condition::Healthy },
            zone: metadata.get("zone").cloned(),
            secure: metadata.get("secure").is_some_and(|text| text == "true"),
            metadata,
        };
        list.push(instance, false);
    }
    Ok(list)
}
