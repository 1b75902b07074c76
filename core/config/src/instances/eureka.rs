//! Eureka: `/eureka/apps`, or one application of it.

use super::{Condition, Instance, List, ListOptions, address, id_or, nacos::weight, plain, port, texts};
use crate::error::Result;
use crate::read::{At, Fields};
use std::collections::BTreeMap;

const ANSWER: Fields = Fields::of("Eureka's answer", &["applications", "application"]);
const APPLICATIONS: Fields = Fields::of("applications", &["application"]);
const APPLICATION: Fields = Fields::of("application", &["name", "instance"]);
const INSTANCE: Fields = Fields::of(
    "an instance of Eureka",
    &["instanceId", "hostName", "ipAddr", "status", "port", "securePort", "dataCenterInfo", "metadata"],
);
const PORT: Fields = Fields::of("port", &["$", "@enabled"]);
const CENTER: Fields = Fields::of("dataCenterInfo", &["metadata"]);

/// One list per application, named in lower case as Spring names it.
pub(super) fn lists(at: &At<'_>, options: &ListOptions) -> Result<Vec<List>> {
    let answer = at.object(&ANSWER, |_, _| {})?;
    let mut lists = Vec::new();
    if let Some(all) = answer.get("applications") {
        let all = all.object(&APPLICATIONS, |_, _| {})?;
        if let Some(apps) = all.get("application") {
            one_or_many(&apps, |app| {
                lists.push(application(app, options)?);
                Ok(())
            })?;
        }
    } else {
        lists.push(application(&answer.need("application")?, options)?);
    }
    Ok(lists)
}

/// Old servers send a single object where others send a list.
fn one_or_many(at: &At<'_>, mut each: impl FnMut(&At<'_>) -> Result<()>) -> Result<()> {
    match at.is_list() {
        true => at.items()?.try_for_each(|item| each(&item)),
        false => each(at),
    }
}

fn application(at: &At<'_>, options: &ListOptions) -> Result<List> {
    let app = at.object(&APPLICATION, |_, _| {})?;
    let name = app.get("name").map(|at| plain(&at).to_lowercase()).filter(|name| !name.is_empty());
    let mut list = List { service: name, ..List::default() };
    if let Some(instances) = app.get("instance") {
        one_or_many(&instances, |item| {
            let instance = instance(item, options)?;
            list.push(item, instance, false);
            Ok(())
        })?;
    }
    Ok(list)
}

fn instance(at: &At<'_>, options: &ListOptions) -> Result<Instance> {
    let msg = at.object(&INSTANCE, |_, _| {})?;
    let text = |name| msg.get(name).map(|at| plain(&at)).unwrap_or_default();
    let name = text("hostName");
    let field = if options.ip_address || name.is_empty() { "ipAddr" } else { "hostName" };
    let (address, seen) = address(&msg, field);
    let (plain_port, _) = msg.or("port", (0, true), numbered)?;
    let (secure_port, secure) = msg.or("securePort", (0, false), numbered)?;
    let port = if secure { secure_port } else { plain_port };
    let mut metadata = msg.or("metadata", BTreeMap::new(), texts)?;
    metadata.remove("@class");
    let zone = match (metadata.get("zone"), msg.get("dataCenterInfo")) {
        (Some(zone), _) => Some(zone.clone()),
        (None, Some(center)) => {
            let center = center.object(&CENTER, |_, _| {})?;
            center.or("metadata", BTreeMap::new(), texts)?.remove("availability-zone")
        }
        (None, None) => None,
    };
    Ok(Instance {
        id: id_or(text("instanceId"), &name, port),
        address,
        seen,
        port,
        weight: metadata.get("weight").map_or(1.0, |text| weight(at, text)),
        health: match text("status").as_str() {
            "UP" => Condition::Healthy,
            "OUT_OF_SERVICE" => Condition::Draining,
            _ => Condition::Unhealthy,
        },
        zone,
        metadata,
        secure,
    })
}

/// Number and whether it is enabled, which is text or a boolean.
fn numbered(at: &At<'_>) -> Result<(u16, bool)> {
    let msg = at.object(&PORT, |_, _| {})?;
    let enabled = msg.get("@enabled").is_some_and(|at| plain(&at) == "true");
    Ok((msg.or("$", 0, port)?, enabled))
}
