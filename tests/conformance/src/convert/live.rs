//! `envoy-live`: one recorded case a file.

use super::{Converted, LOCAL, SOURCE, plan};
use crate::json::Json;
use crate::judge;
use crate::object;
use crate::script::{Script, span};
use crate::vectors::Case;

/// So many seeds are played when only runs with a certain first pick count.
const SEEDS: u64 = 48;

pub(super) fn convert(case: &Case) -> Result<Converted, String> {
    let value = &case.value;
    let determinism = value.get("determinism");
    let seeds = if determinism.has("first_pick") { SEEDS } else { 1 };
    let mut scripts = Vec::new();
    for seed in 1..=seeds {
        scripts.push(script(value, seed)?);
    }
    Ok((scripts, judge::live::judge(value.clone())))
}

/// Longer than any request of a recording takes, in nanoseconds.
const BACKGROUND: u64 = 10_000_000_000;

fn script(value: &Json, seed: u64) -> Result<Script, String> {
    let config = value.get("config");
    // Bursts that never wait for a connection need nobody to say that one is up.
    let at_once = ["breaker_max_requests_http1", "breaker_priority_high", "breaker_max_retries"];
    let strict = value.get("topic").str() == Some("circuit_breaker")
        && !at_once.contains(&value.get("name").text().as_str());
    let mut script = Script::default();
    for document in documents(config, strict) {
        script.add(["doc", &document.to_string()]);
    }
    script.add(["open", &seed.to_string(), ""]);
    if strict {
        script.add(["connect", "1000000"]);
    }
    for (cluster, endpoints) in config.get("eds_at_start").entries() {
        assign(&mut script, cluster, endpoints);
    }
    behave(&mut script, value, value.get("behaviours"))?;
    for step in value.get("script").items() {
        match step.get("do").str().unwrap_or("") {
            "requests" => requests(&mut script, step, config.get("hcm").has("internal_address_config"))?,
            "behave" => behave(&mut script, value, step.get("hosts"))?,
            "sleep" => script.add(["sleep", &seconds(step.get("s")).to_string()]),
            "eds" => {
                let policy = step.get("policy");
                if !policy.is_null() {
                    return Err("an eds step with a policy".into());
                }
                assign(&mut script, step.get("cluster").str().unwrap_or(""), step.get("endpoints"));
                script.add(["sleep", "300000000"]);
            }
            "runtime" => return Err("runtime steps are not replayed".into()),
            "stats" | "snapshot" => script.add(["stats", step.get("label").str().unwrap_or("")]),
            "watch" => {}
            other => return Err(format!("unknown step {other}")),
        }
    }
    if value.get("script").items().iter().any(|step| step.get("background").bool() == Some(true)) {
        // The recording ended when the last of them was answered.
        script.add(["sleep", &BACKGROUND.to_string()]);
    }
    script.add(["stats", "end"]);
    script.add(["events", "end"]);
    Ok(script)
}

fn seconds(value: &Json) -> u64 {
    span(&value.text())
}

/// The documents that describe a case.
fn documents(config: &Json, strict: bool) -> Vec<Json> {
    let mut clusters = config.get("clusters").clone();
    if let Json::List(clusters) = &mut clusters {
        for cluster in clusters {
            if config.get("protocol").str() == Some("h2") && !cluster.has("typed_extension_protocol_options")
            {
                cluster.set("typed_extension_protocol_options", http2());
            }
            if strict && !cluster.has("cluster_type") {
                cluster.set("nexthop", object! {"connections" => "strict"});
            }
        }
    }
    let mut bootstrap = object! {};
    if config.has("runtime") {
        bootstrap.set("nexthop", object! {"runtime" => config.get("runtime").clone()});
    }
    for key in ["node", "cluster_manager"] {
        if config.has(key) {
            bootstrap.set(key, config.get(key).clone());
        }
    }
    let mut resources = object! {"clusters" => clusters};
    let routes = object! {
        "name" => "routes",
        "virtual_hosts" => Json::List(vec![config.get("virtual_host").clone()]),
    };
    if !config.has("http_filters") {
        bootstrap.set("static_resources", resources);
        return vec![bootstrap, routes];
    }
    let mut filters = config.get("http_filters").items().to_vec();
    filters.push(object! {
        "name" => "envoy.filters.http.router",
        "typed_config" => object! {"@type" => "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
    });
    resources.set("listeners", Json::List(vec![listener(routes, filters)]));
    bootstrap.set("static_resources", resources);
    vec![bootstrap]
}

/// A listener with one HTTP connection manager.
pub(super) fn listener(routes: Json, filters: Vec<Json>) -> Json {
    let mut manager = object! {
        "@type" => "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix" => "h",
        "route_config" => routes,
    };
    manager.set("http_filters", Json::List(filters));
    let filter =
        object! {"name" => "envoy.filters.network.http_connection_manager", "typed_config" => manager};
    let address = object! {"address" => "127.0.0.1", "port_value" => 10000};
    object! {
        "name" => "in",
        "address" => object! {"socket_address" => address},
        "filter_chains" => Json::List(vec![object! {"filters" => Json::List(vec![filter])}]),
    }
}

/// Upstream HTTP/2.
pub(super) fn http2() -> Json {
    let options = object! {
        "@type" => "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config" => object! {"http2_protocol_options" => object! {}},
    };
    object! {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions" => options}
}

fn assign(script: &mut Script, cluster: &str, endpoints: &Json) {
    let assignment = object! {"cluster_name" => cluster, "endpoints" => endpoints.clone()};
    script.add(["endpoints", cluster, &assignment.to_string()]);
}

fn behave(script: &mut Script, value: &Json, hosts: &Json) -> Result<(), String> {
    for (host, behaviour) in hosts.entries() {
        let address = value.get("hosts").get(host).str().ok_or_else(|| format!("unknown host {host}"))?;
        script.add(["drop", address]);
        plan::rules(script, address, "", behaviour)?;
    }
    Ok(())
}

/// Label, first request and number of requests of each `requests` step.
pub fn phases(value: &Json) -> Vec<(String, usize, usize)> {
    let mut phases = Vec::new();
    let mut start = 0;
    for (i, step) in value.get("script").items().iter().enumerate() {
        if step.get("do").str() == Some("requests") {
            let label = step.get("label").str().map_or_else(|| format!("s{i}"), str::to_owned);
            let count = heads(step).len();
            phases.push((label, start, count));
            start += count;
        }
    }
    phases
}

/// The heads of a `requests` step, one object each.
fn heads(step: &Json) -> Vec<Json> {
    let mut base = object! {};
    for key in ["headers", "path", "source", "method"] {
        if step.has(key) {
            base.set(key, step.get(key).clone());
        }
    }
    if step.has("product") {
        let mut heads = vec![base];
        for (key, values) in step.get("product").entries() {
            let with = |head: &Json, value: &Json| {
                let mut head = head.clone();
                match key.split_once('.') {
                    Some((outer, inner)) => head.get_mut(outer).set(inner, value.clone()),
                    None => head.set(key, value.clone()),
                }
                head
            };
            heads = heads
                .iter()
                .flat_map(|head| values.items().iter().map(move |value| with(head, value)))
                .collect();
        }
        return heads;
    }
    if step.has("each") {
        let mut heads = Vec::new();
        for each in step.get("each").items() {
            let mut head = base.clone();
            for (key, value) in each.entries() {
                if key == "headers" {
                    for (name, value) in value.entries() {
                        head.get_mut("headers").set(name, value.clone());
                    }
                } else {
                    head.set(key, value.clone());
                }
            }
            heads.push(head);
        }
        return heads;
    }
    vec![base; step.get("n").i64().unwrap_or(1) as usize]
}

fn requests(script: &mut Script, step: &Json, internal: bool) -> Result<(), String> {
    for (i, head) in heads(step).iter().enumerate() {
        let fill = |text: &str| text.replace("{i}", &i.to_string());
        let mut words = vec!["request".to_owned(), "authority".into(), "x".into()];
        words.extend(["path".into(), fill(head.get("path").str().unwrap_or("/"))]);
        let source = head.get("source").str().map(fill);
        words.extend(["source".into(), source.map_or_else(|| SOURCE.into(), |ip| format!("{ip}:40000"))]);
        words.extend(["local".into(), LOCAL.into()]);
        if internal {
            words.extend(["internal".into(), "1".into()]);
        }
        if let Some(method) = head.get("method").str() {
            words.extend(["method".into(), method.to_owned()]);
        }
        for (name, value) in head.get("headers").entries() {
            let several = if value.items().is_empty() { std::slice::from_ref(value) } else { value.items() };
            for value in several.iter().filter(|value| !value.is_null()) {
                words.extend([format!("h:{name}"), fill(&value.text())]);
            }
        }
        script.add(words);
    }
    let time = |key: &str| step.get(key).str().map_or(0, span).to_string();
    let clients = step.get("concurrency").i64().unwrap_or(1);
    let clients = if step.has("stagger") { 0 } else { clients };
    let wait = if step.get("background").bool() == Some(true) { "on" } else { "wait" };
    script.add(["run", &clients.to_string(), &time("gap"), &time("stagger"), wait]);
    Ok(())
}
