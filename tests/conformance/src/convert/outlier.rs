//! `outlier/outcome_mapping`: what one attempt does to counters and windows, seen through thresholds; and
//! `outlier/panic`: where requests go while hosts are ejected.

use super::{Converted, plan};
use crate::json::Json;
use crate::judge::outlier;
use crate::judge::outlier::{Seen, Tried};
use crate::object;
use crate::script::{Act, Script};
use crate::vectors::Case;

const HOST: i64 = 27101;
/// The detector's interval, and a little more than it.
const INTERVAL: &str = "10s";
const SWEPT: &str = "10001000000";

pub(super) fn convert(case: &Case) -> Result<Converted, String> {
    match case.file.as_str() {
        "outlier/panic.json" => panic(case),
        _ => outcome(case),
    }
}

fn endpoint(port: i64) -> Json {
    let socket = object! {"address" => "127.0.0.1", "port_value" => port};
    object! {"endpoint" => object! {"address" => object! {"socket_address" => socket}}}
}

fn cluster(ports: impl Iterator<Item = i64>, detector: Json) -> Json {
    let group = object! {"lb_endpoints" => Json::List(ports.map(endpoint).collect())};
    object! {
        "name" => "c",
        "connect_timeout" => "0.05s",
        "load_assignment" => object! {"cluster_name" => "c", "endpoints" => Json::List(vec![group])},
        "outlier_detection" => detector,
    }
}

fn ask(script: &mut Script, paths: &[&str]) {
    for path in paths {
        script.add(["request", "authority", "x", "path", path]);
    }
    script.add(["run", "1", "0", "0", "wait"]);
}

/// One script for the counters, then some for the windows, all for both modes.
fn outcome(case: &Case) -> Result<Converted, String> {
    let (mut scripts, mut seen) = (Vec::new(), Vec::new());
    for (mode, split) in [("split_false", false), ("split_true", true)] {
        let tried = Tried::new(case.expect().get(mode), case.given());
        let detector = |threshold: u32, volume: usize| {
            object! {
                "split_external_local_origin_errors" => split,
                "interval" => INTERVAL,
                "max_ejection_percent" => 100,
                "consecutive_5xx" => 2,
                "consecutive_gateway_failure" => 2,
                "consecutive_local_origin_failure" => 2,
                "enforcing_consecutive_5xx" => 0,
                "enforcing_consecutive_local_origin_failure" => 0,
                "failure_percentage_minimum_hosts" => 1,
                "failure_percentage_threshold" => i64::from(threshold),
                "failure_percentage_request_volume" => volume as i64,
            }
        };
        // Every counter stands at one before, and is raised once more after: so a reset shows.
        let mut script = documents(case, detector(100, 1000));
        backend(&mut script, case)?;
        ask(&mut script, if split { &["/503", "/refused"] } else { &["/503"] });
        attempt(&mut script, case);
        script.add(["stats", "mid"]);
        ask(&mut script, if split { &["/refused", "/503"] } else { &["/503"] });
        script.add(["stats", "end"]);
        scripts.push(script);
        seen.push(Seen::Counters(tried.clone(), split));
        for (threshold, volume) in tried.probes() {
            let mut script = documents(case, detector(threshold, volume));
            backend(&mut script, case)?;
            attempt(&mut script, case);
            script.add(["sleep", SWEPT]);
            script.add(["stats", "end"]);
            scripts.push(script);
            seen.push(Seen::Window(tried.clone(), threshold, volume));
        }
    }
    Ok((scripts, outlier::outcome(seen)))
}

/// The attempt has a routing priority, and with it a pool, of its own.
fn documents(case: &Case, detector: Json) -> Script {
    let mut cluster = cluster(std::iter::once(HOST), detector);
    match case.id.as_str() {
        "pending-overflow" => {
            let limits = object! {"priority" => "HIGH", "max_requests" => 0};
            cluster.set("circuit_breakers", object! {"thresholds" => Json::List(vec![limits])});
        }
        "route-timeout-while-queued" => cluster.set("nexthop", object! {"connections" => "strict"}),
        _ => {}
    }
    let policy = match case.id.as_str() {
        "two-retries-of-503" => object! {"retry_on" => "5xx", "num_retries" => 2},
        "per-try-timeout" => {
            object! {"retry_on" => "connect-failure", "num_retries" => 0, "per_try_timeout" => "0.2s"}
        }
        _ => object! {"retry_on" => "connect-failure", "num_retries" => 0},
    };
    let tried = object! {
        "match" => object! {"path" => "/tried"},
        "route" => object! {"cluster" => "c", "timeout" => "0.5s", "priority" => "HIGH", "retry_policy" => policy},
    };
    let rest = object! {"match" => object! {"prefix" => "/"}, "route" => object! {"cluster" => "c"}};
    let host = object! {
        "name" => "v",
        "domains" => Json::List(vec!["*".into()]),
        "routes" => Json::List(vec![tried, rest]),
    };
    let mut script = Script::default();
    let resources = object! {"clusters" => Json::List(vec![cluster])};
    script.add(["doc", &object! {"static_resources" => resources}.to_string()]);
    script.add(["doc", &object! {"name" => "routes", "virtual_hosts" => Json::List(vec![host])}.to_string()]);
    script.add(["open", "1", ""]);
    script.add(["connect", "1000000"]);
    script
}

fn attempt(script: &mut Script, case: &Case) {
    if case.id == "route-timeout-while-queued" {
        script.add(["connect", "1000000000"]);
    }
    ask(script, &["/tried"]);
    script.add(["connect", "1000000"]);
}

fn backend(script: &mut Script, case: &Case) -> Result<(), String> {
    let given = case.given();
    let acts = match case.id.as_str() {
        "connect-refused" => plan::backend("refuse")?,
        "connect-timeout" => vec![Act::new(50_000_000, ["fail", "connect_timeout"])],
        "reset-before-headers" => plan::backend("reset")?,
        "reset-after-headers-200" => plan::backend("partial")?,
        "route-timeout" | "per-try-timeout" => plan::backend("hang")?,
        "client-cancel" => vec![Act::new(100_000_000, ["gone"])],
        "grpc-14-in-trailers" => plan::backend("grpctrail:14")?,
        "two-retries-of-503" => plan::backend("503")?,
        "pending-overflow" | "route-timeout-while-queued" => plan::backend("200")?,
        _ if given.has("grpc_status_in_headers") => {
            let (status, grpc) =
                (given.get("http_status").text(), given.get("grpc_status_in_headers").text());
            vec![Act::new(0, ["complete", &status, &grpc])]
        }
        _ if given.has("status") => plan::backend(&given.get("status").text())?,
        other => return Err(format!("no backend for {other}")),
    };
    plan::rule(script, "", "0", "/503", "last", &[plan::backend("503")?])?;
    plan::rule(script, "", "0", "/refused", "last", &[plan::backend("refuse")?])?;
    plan::rule(script, "", "0", "/tried", "last", &[acts])
}

fn panic(case: &Case) -> Result<Converted, String> {
    let given = case.given();
    let port = |name: &str| HOST + name.trim_start_matches('h').parse::<i64>().unwrap_or(0);
    let hosts: Vec<String> = given.get("hosts").items().iter().map(Json::text).collect();
    let bad: Vec<String> = given.get("ejected").items().iter().map(Json::text).collect();
    let merged = given.has("update_merge_window");
    let detector =
        object! {"consecutive_5xx" => 1, "max_ejection_percent" => given.get("max_ejection_percent").clone()};
    let mut cluster = cluster(hosts.iter().map(|name| port(name)), detector);
    let threshold = object! {"value" => given.get("healthy_panic_threshold").clone()};
    let mut common = object! {"healthy_panic_threshold" => threshold};
    if !merged {
        common.set("update_merge_window", Json::from("0s"));
    }
    if given.get("fail_traffic_on_panic").bool() == Some(true) {
        common.set("zone_aware_lb_config", object! {"fail_traffic_on_panic" => true});
    }
    cluster.set("common_lb_config", common);
    let mut script = Script::default();
    plan::open_one(&mut script, cluster);
    for name in &bad {
        let address = format!("127.0.0.1:{}", port(name));
        plan::rule(&mut script, &address, "0", "", "last", &[plan::backend("500")?])?;
    }
    plan::rule(&mut script, "", "0", "", "last", &[plan::backend("200")?])?;
    // Enough for round robin to meet every bad host, also when a merge window hides the first ejection.
    let rounds = 2 * hosts.len();
    for _ in 0..rounds {
        ask(&mut script, &["/"]);
        script.add(["sleep", if merged { "50000000" } else { "1000000" }]);
    }
    for name in &bad {
        script.add(["drop", &format!("127.0.0.1:{}", port(name))]);
    }
    script.add(["stats", "before"]);
    let requests = given.get("requests").i64().unwrap_or(0) as usize;
    ask(&mut script, &vec!["/"; requests]);
    script.add(["stats", "end"]);
    let names = hosts.iter().map(|name| (port(name).to_string(), name.clone())).collect();
    Ok((vec![script], outlier::panic(case.expect().clone(), names, bad.len(), requests)))
}
