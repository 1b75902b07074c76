//! `gray`: what filters leave of a registry's instances, and whom the draw or the position takes of these.

use super::{Converted, plan};
use crate::json::Json;
use crate::judge::gray;
use crate::object;
use crate::script::Script;
use crate::vectors::Case;

/// Draws after the given ones, evenly apart: they meet everybody who may be drawn.
const SPREAD: u64 = 64;
/// Rounds of a list after the given picks, for the same.
const ROUNDS: usize = 2;

pub(super) fn convert(case: &Case) -> Result<Converted, String> {
    let (value, input) = (&case.value, case.value.get("input"));
    let kind = value.get("kind").text();
    let mut filters = Vec::new();
    match kind.as_str() {
        "gray_filter" => {
            let mut preset = object! {"preset" => "gray"};
            if input.has("local_hostname") {
                preset.set("hostname", input.get("local_hostname").clone());
            }
            filters.push(preset);
        }
        "nacos_lb" => {
            let ipv6 = !input.get("local_ipv6").is_null();
            let cluster = input.get("cluster").clone();
            filters.push(
                object! {"preset" => "nacos", "cluster" => cluster, "ipv6" => ipv6, "ipv6_rewrite" => ipv6},
            );
        }
        "spring_chain" => {
            for stage in input.get("stages").items() {
                filters.push(spring(stage, input)?);
            }
        }
        other => return Err(format!("no request shows a case of kind {other}")),
    }
    if filters.is_empty() {
        return Err("no stage, so no preset".into());
    }
    let rotates = kind == "spring_chain";
    let instances = input.get("instances").items();
    let given = match rotates {
        true => input.get("picks").i64().unwrap_or(0) as usize,
        false => input.get("draws").items().len(),
    };
    let more = if rotates { ROUNDS * 8 * instances.len() } else { SPREAD as usize };
    let draws: Vec<String> = match rotates {
        // The position that a worker begins at.
        true => vec![input.get("round_robin_seed").i64().unwrap_or(0).to_string()],
        false => {
            let units = input.get("draws").items().iter().filter_map(Json::f64);
            let spread = (0..SPREAD).map(|n| n as f64 / SPREAD as f64);
            units.chain(spread).map(word).map(|word| word.to_string()).collect()
        }
    };
    let mut script = Script::default();
    let block = object! {"filters" => Json::List(filters)};
    let web = object! {"hosts" => Json::List(Vec::new()), "nexthop" => block};
    script.add(["doc", &object! {"clusters" => object! {"web" => web}}.to_string()]);
    script.add(["open", "1", &draws.join(",")]);
    if !instances.is_empty() {
        script.add(["endpoints", "web", &Json::List(instances.iter().map(listed).collect()).to_string()]);
    }
    plan::rule(&mut script, "", "0", "", "last", &[plan::backend("200")?])?;
    for _ in 0..given + more {
        script.add(request(input));
    }
    script.add(["run", "1", "0", "0", "wait"]);
    script.add(["stats", "end"]);
    Ok((vec![script], gray::judge(value.clone(), given)))
}

fn spring(stage: &Json, input: &Json) -> Result<Json, String> {
    Ok(match stage.get("type").text().as_str() {
        "zone" => object! {"preset" => "spring-zone", "zone" => stage.get("zone").clone()},
        "hint" => object! {"preset" => "spring-hint", "hint" => input.get("hint").clone()},
        "sticky" => object! {"preset" => "spring-sticky"},
        "weighted" => object! {"preset" => "spring-weighted"},
        "subset" => object! {
            "preset" => "spring-subset",
            "size" => stage.get("size").clone(),
            "id" => stage.get("instance_id").clone(),
        },
        other => return Err(format!("a stage {other} looks back within a request")),
    })
}

/// As a registry lists it.
fn listed(instance: &Json) -> Json {
    object! {
        "instanceId" => instance.get("id").clone(),
        "host" => instance.get("host").clone(),
        "port" => instance.get("port").clone(),
        "metadata" => instance.get("metadata").clone(),
    }
}

/// A double in [0, 1) as the word that gives it.
fn word(unit: f64) -> u64 {
    ((unit * (1_u64 << 53) as f64) as u64) << 11
}

fn request(input: &Json) -> Vec<String> {
    let mut words = vec!["request".to_owned(), "cluster".into(), "web".into()];
    for (name, value) in input.get("headers").entries() {
        let several = if value.items().is_empty() { std::slice::from_ref(value) } else { value.items() };
        for value in several {
            words.extend([format!("h:{name}"), value.text()]);
        }
    }
    for (name, value) in input.get("cookies").entries() {
        words.extend(["h:cookie".to_owned(), format!("{name}={}", value.text())]);
    }
    words
}
