//! Spring: a list of service instances.

use super::{
    Condition, Instance, List, address, id_or,
    nacos::{no_weight, weight, weight_at},
    plain, port, texts,
};
use crate::error::Result;
use crate::read::{At, Fields};
use std::collections::BTreeMap;

const INSTANCE: Fields = Fields::of(
    "a service instance of Spring",
    &["serviceId", "instanceId", "host", "port", "secure", "weight", "healthy", "metadata"],
);

pub(super) fn list(at: &At<'_>) -> Result<List> {
    let mut list = List::default();
    for item in at.items()? {
        let msg = item.object(&INSTANCE, |_, _| {})?;
        let text = |name| msg.get(name).map(|at| plain(&at)).unwrap_or_default();
        let (address, seen) = address(&msg, "host");
        let port = msg.or("port", 0, port)?;
        let metadata = msg.or("metadata", BTreeMap::new(), texts)?;
        let weight = match (metadata.get("nacos.weight"), msg.get("weight"), metadata.get("weight")) {
            (Some(text), ..) | (None, None, Some(text)) => weight(&item, text),
            (None, Some(number), _) => weight_at(&number),
            (None, None, None) => {
                if from_nacos(&metadata) {
                    no_weight(&item);
                }
                1.0
            }
        };
        let healthy = match metadata.get("nacos.healthy") {
            Some(text) => text.eq_ignore_ascii_case("true"),
            // Nacos' balancer takes only the word for it.
            None => msg.or("healthy", !from_nacos(&metadata), |flag| flag.bool())?,
        };
        let service = text("serviceId");
        if list.service.is_none() && !service.is_empty() {
            list.service = Some(service);
        }
        let instance = Instance {
            id: id_or(text("instanceId"), &address, port),
            address,
            seen,
            port,
            weight,
            health: if healthy { Condition::Healthy } else { Condition::Unhealthy },
            zone: metadata.get("zone").cloned(),
            secure: msg.or("secure", false, |flag| flag.bool())?,
            metadata,
        };
        list.push(&item, instance, false);
    }
    Ok(list)
}

/// Whether an instance came from Nacos, which tells its state in metadata.
fn from_nacos(metadata: &BTreeMap<String, String>) -> bool {
    metadata.keys().any(|key| key.starts_with("nacos."))
}
