//! `retry/retry_on_predicates`: one outcome against every retry condition.

use super::{Converted, plan};
use crate::json::Json;
use crate::judge;
use crate::object;
use crate::script::{Act, Script};
use crate::vectors::Case;

pub(super) fn convert(case: &Case) -> Result<Converted, String> {
    let (given, expect) = (case.given(), case.expect());
    let tokens: Vec<String> = [expect.get("retried_by"), expect.get("not_retried_by")]
        .iter()
        .flat_map(|list| list.items())
        .map(Json::text)
        .collect();
    let outcome = given.get("outcome").text();
    let mut routes = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let back_off = object! {"base_interval" => "0.001s", "max_interval" => "0.001s"};
        let mut policy = object! {
            "retry_on" => token.as_str(),
            "num_retries" => given.get("num_retries").clone(),
            "per_try_timeout" => "0.1s",
            "retry_back_off" => back_off,
        };
        match token.as_str() {
            "retriable-status-codes" => {
                policy.set("retriable_status_codes", given.get("retriable_status_codes").clone())
            }
            "retriable-headers" => {
                let headers = given.get("retriable_headers").items().iter().map(|header| {
                    let exact = object! {"exact" => header.get("exact").clone()};
                    object! {"name" => header.get("name").clone(), "string_match" => exact}
                });
                policy.set("retriable_headers", Json::List(headers.collect()));
            }
            _ => {}
        }
        let matches = object! {"path" => format!("/{i}")};
        routes.push(
            object! {"match" => matches, "route" => object! {"cluster" => "X", "retry_policy" => policy}},
        );
    }
    let host = object! {
        "name" => "v",
        "domains" => Json::List(vec!["*".into()]),
        "routes" => Json::List(routes),
    };
    let socket = object! {"address" => "127.0.0.1", "port_value" => 27101};
    let endpoint = object! {"endpoint" => object! {"address" => object! {"socket_address" => socket}}};
    let group = object! {"lb_endpoints" => Json::List(vec![endpoint])};
    let mut cluster = object! {
        "name" => "X",
        "connect_timeout" => "0.05s",
        "load_assignment" => object! {"cluster_name" => "X", "endpoints" => Json::List(vec![group])},
    };
    if outcome.starts_with("overflow") {
        let limit = object! {"max_requests" => 0};
        cluster.set("circuit_breakers", object! {"thresholds" => Json::List(vec![limit])});
    }
    let mut script = Script::default();
    let resources = object! {"clusters" => Json::List(vec![cluster])};
    script.add(["doc", &object! {"static_resources" => resources}.to_string()]);
    let routes = object! {"name" => "routes", "virtual_hosts" => Json::List(vec![host])};
    script.add(["doc", &routes.to_string()]);
    script.add(["open", "1", ""]);
    let acts = match outcome.as_str() {
        "connect refused" => vec![Act::new(0, ["fail", "connect_failure"])],
        "connect timeout" => vec![Act::new(50_000_000, ["fail", "connect_timeout"])],
        _ => plan::backend(&given.get("backend_plan").text())?,
    };
    plan::rule(&mut script, "", "0", "", "last", &[acts])?;
    for i in 0..tokens.len() {
        script.add(["request", "authority", "x", "path", &format!("/{i}")]);
    }
    script.add(["run", "1", "0", "0", "wait"]);
    Ok((vec![script], judge::compact::predicates(expect, tokens)))
}
