//! `health/eds_status`: what the statuses of endpoints do to panic, membership and use.

use super::Converted;
use crate::convert::plan;
use crate::json::Json;
use crate::judge::statuses;
use crate::object;
use crate::script::Script;
use crate::vectors::Case;

const HOST: i64 = 27101;

fn endpoints(statuses: &[Json], weight: i64) -> Json {
    let last = statuses.len().saturating_sub(1);
    let one = |(at, status): (usize, &Json)| {
        let socket = object! {"address" => "127.0.0.1", "port_value" => HOST + at as i64};
        let mut host = object! {"endpoint" => object! {"address" => object! {"socket_address" => socket}}};
        if !status.is_null() {
            host.set("health_status", status.clone());
        }
        if at == last && weight > 1 {
            host.set("load_balancing_weight", Json::from(weight));
        }
        host
    };
    Json::List(vec![object! {"lb_endpoints" => Json::List(statuses.iter().enumerate().map(one).collect())}])
}

pub(super) fn convert(case: &Case) -> Result<Converted, String> {
    let given = case.given();
    let mut script = Script::default();
    let mut threshold = given.get("healthy_panic_threshold").clone();
    let mut requests = given.get("requests").i64().unwrap_or(24) as usize;
    let mut listed = given.get("eds_health_status").items().to_vec();
    // The sequel of the case before it, whose statuses are repeated here.
    let sequel = case.id == "update-next-rebuild-notices-draining";
    if sequel {
        threshold = Json::from(50);
        requests = 16;
        listed = ["UNHEALTHY", "UNHEALTHY", "UNHEALTHY"].map(Json::from).to_vec();
        listed.push(Json::Null);
    }
    if listed.is_empty() {
        return Err("no statuses".into());
    }
    // Enough of them for a share.
    let rounds = if case.expect().has("healthy_load_percent") { 100 } else { 1 };
    let assignment = object! {"cluster_name" => "c", "endpoints" => endpoints(&listed, 1)};
    let cluster = object! {
        "name" => "c",
        "connect_timeout" => "1s",
        "load_assignment" => assignment,
        "common_lb_config" => object! {
            "healthy_panic_threshold" => object! {"value" => threshold},
            "update_merge_window" => "0s",
        },
    };
    plan::open_one(&mut script, cluster);
    plan::rule(&mut script, "", "0", "", "last", &[plan::backend("200")?])?;
    if sequel {
        for status in listed.iter_mut().filter(|status| !status.is_null()) {
            *status = Json::from("DRAINING");
        }
        for weight in [1, 2] {
            let assignment = object! {"cluster_name" => "c", "endpoints" => endpoints(&listed, weight)};
            script.add(["endpoints", "c", &assignment.to_string()]);
        }
    }
    for _ in 0..requests * rounds {
        script.add(["request", "authority", "x", "path", "/"]);
    }
    script.add(["run", "1", "0", "0", "wait"]);
    script.add(["stats", "end"]);
    Ok((vec![script], statuses::judge(case.expect().clone(), HOST, listed.len())))
}
