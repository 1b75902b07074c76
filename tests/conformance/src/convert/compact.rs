//! Live records of the `retry`, `composite` and `aggregate` folders: compact clusters, a plan by port.

use super::live::{http2, listener};
use super::{Converted, LOCAL, SOURCE, plan};
use crate::json::Json;
use crate::judge;
use crate::object;
use crate::script::{Act, Script, span};
use crate::vectors::Case;
use std::collections::BTreeSet;

/// Ports without a listener.
const REFUSING: [&str; 3] = ["27197", "27198", "27199"];
/// The port whose connections hang.
const HANGING: &str = "27301";
/// Longer than any limit of a case.
const HANG: &str = "60000000000";
/// So many seeds are played when the first host is random.
const SEEDS: u64 = 24;

pub(super) fn convert(case: &Case) -> Result<Converted, String> {
    convert_as(case, case.given(), case.expect())
}

/// The same for what a sentence stands for.
pub(super) fn convert_as(case: &Case, given: &Json, expect: &Json) -> Result<Converted, String> {
    let spread = expect.has("hits_by_port");
    let random = given.get("clusters").items().iter().any(|cluster| {
        let several = |priority: &Json| priority.get("hosts").items().len() > 1;
        cluster.get("type").str() == Some("aggregate")
            || cluster.get("priorities").items().iter().any(several)
    });
    // A long back-off is drawn as well.
    let back_off = given.get("route").get("retry_policy").get("retry_back_off").get("base_interval");
    let long = back_off.str().is_some_and(|base| span(base) > 50_000_000);
    let seeds = if (random || long) && !spread { SEEDS } else { 1 };
    let scripts: Result<Vec<Script>, String> = (1..=seeds).map(|seed| script(given, expect, seed)).collect();
    let judge = if spread {
        judge::compact::spread(expect)
    } else {
        let count = given.get("request_headers").get("x-envoy-attempt-count");
        judge::compact::records(expect, recorded(case)?, count.str().map(str::to_owned))
    };
    Ok((scripts?, judge))
}

/// Counters that the recorder of this case kept: those that moved in any case of the same file and shape.
fn recorded(case: &Case) -> Result<BTreeSet<String>, String> {
    let text = std::fs::read_to_string(&case.path).map_err(|error| error.to_string())?;
    let mut names = BTreeSet::new();
    let shape = |expect: &Json| (expect.has("requests"), expect.has("details"));
    for other in Json::parse(&text)?.items().iter().map(|other| other.get("expect")) {
        if shape(other) == shape(case.expect()) {
            let moved = other.get("stats_delta").entries().iter();
            names.extend(moved.filter_map(|(name, _)| Some(name.split_once('.')?.1.to_owned())));
        }
    }
    Ok(names)
}

fn script(given: &Json, expect: &Json, seed: u64) -> Result<Script, String> {
    let mut script = Script::default();
    let mut clusters = Vec::new();
    for cluster in given.get("clusters").items() {
        clusters.push(cluster_document(cluster)?);
    }
    let resources = object! {"clusters" => Json::List(clusters)};
    let mut bootstrap = object! {"static_resources" => resources};
    let runtime = given.get("runtime");
    let runtime = if runtime.items().is_empty() { runtime } else { &runtime.items()[0] };
    if !runtime.entries().is_empty() {
        bootstrap.set("nexthop", object! {"runtime" => runtime.clone()});
    }
    let router = given.get("extra").get("router");
    if router.is_null() {
        script.add(["doc", &bootstrap.to_string()]);
        script.add(["doc", &routes(given)?.to_string()]);
    } else {
        let mut filter =
            object! {"@type" => "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"};
        for (key, value) in router.entries() {
            filter.set(key, value.clone());
        }
        let filter = object! {"name" => "envoy.filters.http.router", "typed_config" => filter};
        let listener = listener(routes(given)?, vec![filter]);
        bootstrap.get_mut("static_resources").set("listeners", Json::List(vec![listener]));
        script.add(["doc", &bootstrap.to_string()]);
    }
    script.add(["open", &seed.to_string(), ""]);
    if given.get("clusters").items().iter().any(strict) || hangs(given) {
        script.add(["connect", if hangs(given) { HANG } else { "1000000" }]);
    }
    rules(&mut script, given)?;
    let several =
        given.get("requests").i64().unwrap_or_else(|| expect.get("requests").items().len().max(1) as i64);
    for _ in 0..several {
        script.add(request(given));
    }
    script.add(["run", "1", "0", "0", "wait"]);
    script.add(["stats", "end"]);
    Ok(script)
}

fn request(given: &Json) -> Vec<String> {
    let mut words: Vec<String> = ["request", "authority", "x", "path", "/", "source", SOURCE, "local", LOCAL]
        .map(str::to_owned)
        .to_vec();
    let method = given.get("method").str().unwrap_or("GET");
    let grpc = method == "GRPC";
    words.extend(["method".into(), if grpc { "POST" } else { method }.into()]);
    if grpc {
        words.extend(["h:content-type".into(), "application/grpc".into()]);
    }
    for (name, value) in given.get("request_headers").entries() {
        if name == "x-forwarded-for" && value.text().starts_with("10.") {
            words.extend(["internal".into(), "1".into()]);
        }
        words.extend([format!("h:{name}"), value.text()]);
    }
    words
}

fn routes(given: &Json) -> Result<Json, String> {
    let route = object! {"match" => object! {"prefix" => "/"}, "route" => route(given)};
    let mut host = object! {
        "name" => "v",
        "domains" => Json::List(vec!["*".into()]),
        "routes" => Json::List(vec![route]),
        "include_request_attempt_count" => true,
        "include_attempt_count_in_response" => true,
        "include_is_timeout_retry_header" => true,
    };
    let extra = given.get("extra");
    for (key, value) in extra.get("vhost").entries() {
        host.set(key, value.clone());
    }
    let known = |key: &str| {
        let hcm = extra.get("hcm");
        key == "vhost"
            || key == "router"
            || key == "hcm" && (hcm.has("internal_address_config") || hcm.has("proxy_100_continue"))
    };
    if let Some((key, _)) = extra.entries().iter().find(|(key, _)| !known(key)) {
        return Err(format!("extra {key} is not replayed"));
    }
    Ok(object! {"name" => "routes", "virtual_hosts" => Json::List(vec![host])})
}

fn route(given: &Json) -> Json {
    if given.has("route") {
        typed(given.get("route"))
    } else {
        object! {"cluster" => "X"}
    }
}

/// The records shorten the types of plugins.
const TYPES: [(&str, &str); 4] = [
    ("PreviousHostsPredicate", "retry.host.previous_hosts"),
    ("PreviousPrioritiesConfig", "retry.priority.previous_priorities"),
    ("OmitCanaryHostsPredicate", "retry.host.omit_canary_hosts"),
    ("OmitHostMetadataConfig", "retry.host.omit_host_metadata"),
];

fn typed(value: &Json) -> Json {
    match value {
        Json::Object(entries) => {
            Json::Object(entries.iter().map(|(key, value)| (key.clone(), typed(value))).collect())
        }
        Json::List(items) => Json::List(items.iter().map(typed).collect()),
        Json::String(text) => match TYPES.iter().find(|(short, _)| text == short) {
            Some((short, package)) => {
                format!("type.googleapis.com/envoy.extensions.{package}.v3.{short}").into()
            }
            None => value.clone(),
        },
        other => other.clone(),
    }
}

fn address(host: &Json) -> (String, String) {
    (host.get("addr").str().unwrap_or("127.0.0.1").to_owned(), host.get("port").text())
}

fn endpoint(host: &Json) -> Json {
    let (ip, port) = address(host);
    let socket = object! {"address" => ip, "port_value" => Json::Number(port)};
    let mut endpoint = object! {"endpoint" => object! {"address" => object! {"socket_address" => socket}}};
    if host.has("health") {
        endpoint.set("health_status", host.get("health").clone());
    }
    if host.has("metadata") {
        endpoint.set("metadata", object! {"filter_metadata" => host.get("metadata").clone()});
    }
    endpoint
}

/// Whether a cluster's only host takes longer to connect than the request may take.
fn hangs_in(cluster: &Json) -> bool {
    let slow = span(cluster.get("connect_timeout").str().unwrap_or("0s")) > 1_000_000_000;
    let hosts = cluster.get("priorities").items().iter().flat_map(|priority| priority.get("hosts").items());
    slow && hosts.into_iter().any(|host| host.get("port").text() == HANGING)
}

fn hangs(given: &Json) -> bool {
    given.get("clusters").items().iter().any(hangs_in)
}

/// Whether a limit of a cluster only acts while connections are being made.
fn strict(cluster: &Json) -> bool {
    if hangs_in(cluster) {
        return true;
    }
    let thresholds = cluster.get("circuit_breakers").get("thresholds").items();
    thresholds.iter().any(|limits| limits.has("max_pending_requests") || limits.has("max_connections"))
}

fn cluster_document(cluster: &Json) -> Result<Json, String> {
    let name = cluster.get("name").text();
    let mut document = object! {"name" => name.as_str(), "connect_timeout" => "0.25s"};
    let kind = cluster.get("type").str().unwrap_or("");
    for (key, value) in cluster.entries() {
        match key.as_str() {
            "name" | "type" | "priorities" | "clusters" => {}
            "own_load_assignment" => {
                let host = object! {"port" => 27199};
                let group = object! {"lb_endpoints" => Json::List(vec![endpoint(&host)])};
                let own = object! {"cluster_name" => name.as_str(), "endpoints" => Json::List(vec![group])};
                document.set("load_assignment", own);
            }
            "http_protocol_options" => {
                let mut options = http2();
                let options_key = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
                for (inner, value) in value.entries() {
                    options.get_mut(options_key).set(inner, value.clone());
                }
                document.set("typed_extension_protocol_options", options);
            }
            _ => document.set(key, value.clone()),
        }
    }
    if strict(cluster) {
        document.set("nexthop", object! {"connections" => "strict"});
    }
    if kind == "static" {
        let mut groups = Vec::new();
        for priority in cluster.get("priorities").items() {
            let hosts = priority.get("hosts").items().iter().map(endpoint).collect();
            groups.push(
                object! {"priority" => priority.get("priority").clone(), "lb_endpoints" => Json::List(hosts)},
            );
        }
        document.set("load_assignment", object! {"cluster_name" => name, "endpoints" => Json::List(groups)});
        return Ok(document);
    }
    let names = cluster.get("clusters").items().iter();
    let entries: Vec<Json> = match kind {
        "composite" => names.map(|name| object! {"name" => name.clone()}).collect(),
        "aggregate" => names.cloned().collect(),
        other => return Err(format!("a cluster of type {other}")),
    };
    let config = object! {
        "@type" => format!("type.googleapis.com/envoy.extensions.clusters.{kind}.v3.ClusterConfig"),
        "clusters" => Json::List(entries),
    };
    document.set("lb_policy", "CLUSTER_PROVIDED".into());
    document
        .set("cluster_type", object! {"name" => format!("envoy.clusters.{kind}"), "typed_config" => config});
    Ok(document)
}

/// Every host of a case as `ip:port`, port and connect time-out of its cluster.
fn hosts(given: &Json) -> Vec<(String, String, u64)> {
    let mut hosts = Vec::new();
    for cluster in given.get("clusters").items() {
        let connect = span(cluster.get("connect_timeout").str().unwrap_or("0.25s"));
        for host in
            cluster.get("priorities").items().iter().flat_map(|priority| priority.get("hosts").items())
        {
            let (ip, port) = address(host);
            let host = (format!("{ip}:{port}"), port, connect);
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
    }
    hosts
}

/// Bytes of a body that are kept for a retry.
fn buffer(given: &Json) -> i64 {
    given.get("extra").get("vhost").get("request_body_buffer_limit").i64().unwrap_or(1 << 20)
}

fn rules(script: &mut Script, given: &Json) -> Result<(), String> {
    let hosts = hosts(given);
    for (host, port, connect) in &hosts {
        let acts = match port.as_str() {
            HANGING => vec![Act::new(*connect, ["fail", "connect_timeout"])],
            port if REFUSING.contains(&port) => vec![Act::new(0, ["fail", "connect_failure"])],
            _ => continue,
        };
        plan::rule(script, host, "0", "", "last", &[acts])?;
    }
    if given.get("plan").entries().is_empty() {
        return plan::rule(script, "", "0", "", "last", &[plan::backend("200")?]);
    }
    let entries = given.get("plan").entries();
    let large = given.get("body_bytes").i64().unwrap_or(0) > buffer(given);
    for order in 0..4 {
        for (key, value) in entries {
            let (port, attempt) = key.split_once('#').unwrap_or((key, ""));
            let rank = match (port, attempt) {
                ("*", _) => 3,
                (_, "") => 2,
                ("", _) => 1,
                _ => 0,
            };
            if rank != order {
                continue;
            }
            let mut acts = plan::backend(value.str().ok_or("a plan is a text")?)?;
            if large {
                acts.insert(0, Act::new(0, ["note", "retry_abandoned"]));
            }
            let attempt = if attempt.is_empty() { "0" } else { attempt };
            if matches!(port, "" | "*") {
                plan::rule(script, "", attempt, "", "last", &[acts])?;
                continue;
            }
            for (host, _, _) in hosts.iter().filter(|(_, p, _)| p == port) {
                plan::rule(script, host, attempt, "", "last", std::slice::from_ref(&acts))?;
            }
        }
    }
    // A backend without a plan serves.
    plan::rule(script, "", "0", "", "last", &[plan::backend("200")?])
}
