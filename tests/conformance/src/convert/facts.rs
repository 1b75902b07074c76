//! Configuration facts: accepted or refused. Where a case is a sentence, its document stands here, written by
//! hand from the sentence.

use super::Converted;
use crate::json::Json;
use crate::judge;
use crate::object;
use crate::script::Script;
use crate::vectors::Case;

mod composite;
mod gates;
mod health;
mod lb;
mod retry;

pub(super) fn convert(case: &Case) -> Result<Converted, String> {
    let given = case.given();
    let mut accepted = case.expect().get("accepted").bool();
    let documents = match case.file.as_str() {
        "composite/config_validation.json" => composite::composite(&case.id)?,
        "aggregate/config_validation.json" => composite::aggregate(&case.id)?,
        "retry/config_validation.json" => retry::documents(&case.id)?,
        "breakers/config.json" => breakers(given),
        "outlier/config.json" => outlier(given)?,
        "health/config.json" => health::documents(&case.id, given)?,
        "concurrency/admission_criteria.json" => gates::admission(given)?,
        "concurrency/gradient_behaviour.json" => gates::concurrency(given)?,
        "lb/maglev.json" => {
            accepted = Some(false);
            lb::documents("", &object! {"typed" => object! {"maglev" => given.clone()}})?
        }
        "lb/config_validation.json" => {
            let result = case.expect().get("result").text();
            accepted = Some(result.starts_with("accepted"));
            lb::documents(&case.id, given)?
        }
        other => return Err(format!("no documents for {other}")),
    };
    // What Envoy accepts and then crashes or fails with at the first request is refused at load.
    let crashes = [
        "references itself",
        "host_selection_retry_max_attempts -1",
        "previous_priorities update_frequency 0 or unset",
    ];
    if crashes.contains(&case.id.as_str()) && case.file != "aggregate/config_validation.json" {
        accepted = Some(false);
    }
    let mut script = Script::default();
    for document in &documents {
        script.add(["doc", &document.to_string()]);
    }
    script.add(["open", "1", ""]);
    Ok((vec![script], judge::accept(accepted.ok_or("the case does not say whether it is accepted")?)))
}

/// One endpoint at this port.
fn endpoint(port: i64) -> Json {
    let socket = object! {"address" => "127.0.0.1", "port_value" => port};
    object! {"endpoint" => object! {"address" => object! {"socket_address" => socket}}}
}

/// A static cluster with one host.
fn cluster(name: &str) -> Json {
    let group = object! {"lb_endpoints" => Json::List(vec![endpoint(80)])};
    object! {
        "name" => name,
        "connect_timeout" => "1s",
        "load_assignment" => object! {"cluster_name" => name, "endpoints" => Json::List(vec![group])},
    }
}

/// A bootstrap of these clusters.
fn bootstrap(clusters: Vec<Json>) -> Json {
    object! {"static_resources" => object! {"clusters" => Json::List(clusters)}}
}

/// Percents are messages; the cases write the number alone.
fn percents(value: &Json) -> Json {
    const FIELDS: [&str; 4] =
        ["routing_enabled", "min_weight_percent", "healthy_panic_threshold", "budget_percent"];
    let entry = |(key, value): &(String, Json)| {
        let percent = FIELDS.contains(&key.as_str());
        (
            key.clone(),
            if percent {
                object! {"value" => value.clone()}
            } else {
                percents(value)
            },
        )
    };
    match value {
        Json::Object(entries) => Json::Object(entries.iter().map(entry).collect()),
        Json::List(items) => Json::List(items.iter().map(percents).collect()),
        other => other.clone(),
    }
}

fn breakers(given: &Json) -> Vec<Json> {
    let mut cluster = cluster("c");
    let breakers = if given.has("retry_budget") {
        object! {"thresholds" => Json::List(vec![given.clone()])}
    } else {
        given.clone()
    };
    cluster.set("circuit_breakers", percents(&breakers));
    vec![bootstrap(vec![cluster])]
}

fn outlier(given: &Json) -> Result<Vec<Json>, String> {
    let mut cluster = cluster("c");
    cluster.set("outlier_detection", given.clone());
    Ok(vec![bootstrap(vec![cluster])])
}
