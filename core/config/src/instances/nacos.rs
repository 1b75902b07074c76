//! Nacos: the instance list of v1, v2 and v3.

use super::java::{double, double_text};
use super::{Condition, Instance, List, address, id_or, plain, port, texts};
use crate::error::Result;
use crate::lint::{Finding, Severity};
use crate::read::{At, Fields};
use crate::report::What;

const ANSWER: Fields =
    Fields::of("Nacos' answer", &["data", "hosts", "name", "lastRefTime", "reachProtectionThreshold"]);
const INSTANCE: Fields = Fields::of(
    "a Nacos instance",
    &[
        "instanceId",
        "ip",
        "port",
        "weight",
        "healthy",
        "enabled",
        "ephemeral",
        "clusterName",
        "serviceName",
        "metadata",
    ],
);

/// `hosts`, `data.hosts` or `data`.
pub(super) fn list(at: &At<'_>) -> Result<List> {
    if at.is_list() {
        return instances(at);
    }
    let answer = at.object(&ANSWER, |_, _| {})?;
    if let Some(data) = answer.get("data") {
        return list(&data);
    }
    let hosts = answer.need("hosts")?;
    let mut list = instances(&hosts)?;
    let name = answer.get("name").map(|name| plain(&name)).filter(|name| !name.is_empty());
    list.service = name.map(|name| service(&name)).or(list.service);
    if let Some(flag) = answer.get("reachProtectionThreshold").filter(|flag| flag.bool().unwrap_or(false)) {
        flag.note(What::Used, "protection is active: Nacos answers with all instances as healthy");
        list.protected = true;
    }
    list.revision = answer.map("lastRefTime", |at| at.i64())?;
    Ok(list)
}

/// The name after the group.
fn service(name: &str) -> String {
    name.split_once("@@").map_or(name, |(_, name)| name).to_owned()
}

fn instances(at: &At<'_>) -> Result<List> {
    let mut list = List::default();
    for item in at.items()? {
        let msg = item.object(&INSTANCE, |_, _| {})?;
        let text = |name| msg.get(name).map(|at| plain(&at)).unwrap_or_default();
        let flag = |name| msg.or(name, true, |flag| flag.bool());
        let (address, seen) = address(&msg, "ip");
        let port = msg.or("port", 0, port)?;
        let own = msg.or("metadata", std::collections::BTreeMap::new(), texts)?;
        let given = msg.get("weight").map_or(1.0, |at| weight_at(&at));
        let healthy = flag("healthy")?;
        let id = id_or(text("instanceId"), &address, port);
        let cluster = msg.get("clusterName").map_or_else(|| "DEFAULT".to_owned(), |at| plain(&at));
        let mut metadata = std::collections::BTreeMap::from([
            ("nacos.instanceId".to_owned(), id.clone()),
            ("nacos.weight".to_owned(), double_text(given)),
            ("nacos.healthy".to_owned(), healthy.to_string()),
            ("nacos.cluster".to_owned(), cluster),
        ]);
        metadata.extend(own.clone());
        metadata.insert("nacos.ephemeral".to_owned(), flag("ephemeral")?.to_string());
        let weight = match own.get("nacos.weight") {
            Some(text) => weight(&item, text),
            None => given,
        };
        let healthy = own.get("nacos.healthy").map_or(healthy, |text| text.eq_ignore_ascii_case("true"));
        if let Some(name) = msg.get("serviceName").map(|at| plain(&at)).filter(|_| list.service.is_none()) {
            list.service = Some(service(&name)).filter(|name| !name.is_empty());
        }
        let instance = Instance {
            id,
            address,
            seen,
            port,
            weight,
            health: if healthy { Condition::Healthy } else { Condition::Unhealthy },
            zone: metadata.get("zone").cloned(),
            secure: metadata.get("secure").is_some_and(|text| text.eq_ignore_ascii_case("true")),
            metadata,
        };
        list.push(&item, instance, !flag("enabled")?);
    }
    Ok(list)
}

/// A weight written as a number; what is none counts as 1.
pub(super) fn weight_at(at: &At<'_>) -> f64 {
    at.f64().ok().filter(|weight| weight.is_finite()).unwrap_or_else(|| weight(at, &plain(at)))
}

/// A weight written as text; what is none counts as 1.
pub(super) fn weight(at: &At<'_>, text: &str) -> f64 {
    let number = double(text).filter(|number| !number.is_nan());
    if number.is_none_or(f64::is_infinite) {
        let counts = if number.is_some() { "10000" } else { "1" };
        let effect = format!("the weight {text:?} is no finite number: it counts as {counts}");
        let advice = "register the instance with a number from 0 to 10000";
        let finding = Finding::new("W-BAD-WEIGHT", Severity::Warning, &at.seen(), effect, advice);
        at.sink().borrow_mut().findings.push(finding);
    }
    number.unwrap_or(1.0)
}

/// An instance of Nacos without a weight counts as 1.
pub(super) fn no_weight(at: &At<'_>) {
    let advice = "register the instance with a number from 0 to 10000";
    let effect = "the instance has no nacos.weight: it counts as 1";
    let finding = Finding::new("W-BAD-WEIGHT", Severity::Warning, &at.seen(), effect, advice);
    at.sink().borrow_mut().findings.push(finding);
}
