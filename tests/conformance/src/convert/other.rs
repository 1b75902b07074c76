//! `composite/other_live`: cases told in sentences; the documents are written by hand.

use super::{Converted, plan};
use crate::json::Json;
use crate::judge;
use crate::object;
use crate::script::Script;
use crate::vectors::Case;

/// Hosts by the letter of their cluster.
const PORTS: [(&str, i64); 3] = [("A", 27101), ("B", 27102), ("C", 27103)];
const FLAG: &str = "envoy.reloadable_features.composite_cluster_skip_clusters_without_hosts";

pub(super) fn convert(case: &Case) -> Result<Converted, String> {
    let expect = case.expect();
    let mut script = Script::default();
    match case.id.as_str() {
        "runtime flag changed while running" => {
            let values = case.given().get("flag_values_in_order").items();
            for (at, value) in values.iter().enumerate() {
                documents(&mut script, &["E", "B", "C"], &object! {}, value);
                script.add(if at == 0 { ["open", "1", ""].as_slice() } else { ["update"].as_slice() });
                if at == 0 {
                    backends(&mut script, "200")?;
                }
                script.add(["request", "authority", "x", "path", "/"]);
                script.add(["run", "1", "0", "0", "wait"]);
            }
            let kinds = expect
                .get("port_kind")
                .items()
                .iter()
                .map(|kind| Json::List(if kind.is_null() { Vec::new() } else { vec![kind.clone()] }));
            let expect =
                object! {"attempts" => Json::List(kinds.collect()), "status" => expect.get("status").clone()};
            Ok((vec![script], judge::compact::letters(expect, &PORTS)))
        }
        "self reference" => {
            documents(&mut script, &["X", "A"], &object! {}, &Json::Null);
            script.add(["open", "1", ""]);
            Ok((vec![script], judge::accept(false)))
        }
        "sub-cluster host ejected, default panic threshold"
        | "sub-cluster host ejected, panic threshold 0" => {
            let mut extra = object! {
                "outlier_detection" => object! {"consecutive_5xx" => 2, "max_ejection_percent" => 100},
            };
            if case.id.ends_with('0') {
                extra.set("common_lb_config", object! {"healthy_panic_threshold" => object! {"value" => 0}});
            }
            documents(&mut script, &["A", "B", "C"], &extra, &Json::Null);
            script.add(["open", "1", ""]);
            plan::rule(&mut script, "127.0.0.1:27101", "0", "", "last", &[plan::backend("500")?])?;
            backends(&mut script, "200")?;
            for _ in 0..case.given().get("requests").i64().unwrap_or(0) {
                script.add(["request", "authority", "x", "path", "/"]);
            }
            script.add(["run", "1", "0", "0", "wait"]);
            script.add(["stats", "end"]);
            let mut wanted = object! {"attempts" => expect.get("attempts_per_request").clone()};
            for (key, counter) in [
                ("lb_healthy_panic_on_A", "A.lb_healthy_panic"),
                ("ejections", "A.outlier_detection.ejections_enforced_total"),
            ] {
                if expect.has(key) {
                    wanted.get_mut("counters").set(counter, expect.get(key).clone());
                }
            }
            Ok((vec![script], judge::compact::letters(wanted, &PORTS)))
        }
        other => Err(format!("no document for {other}")),
    }
}

fn backends(script: &mut Script, words: &str) -> Result<(), String> {
    plan::rule(script, "", "0", "", "last", &[plan::backend(words)?])
}

/// A cluster with one host, or none at port 0.
fn cluster(name: &str, port: i64) -> Json {
    let socket = object! {"address" => "127.0.0.1", "port_value" => port};
    let host = object! {"endpoint" => object! {"address" => object! {"socket_address" => socket}}};
    let group = object! {"lb_endpoints" => Json::List(if port == 0 { Vec::new() } else { vec![host] })};
    let assignment = object! {"cluster_name" => name, "endpoints" => Json::List(vec![group])};
    object! {"name" => name, "connect_timeout" => "1s", "load_assignment" => assignment}
}

/// A composite X of these clusters; `extra` goes into A. E has no endpoints.
fn documents(script: &mut Script, subs: &[&str], extra: &Json, flag: &Json) {
    let mut clusters = Vec::new();
    for (name, port) in PORTS.iter().chain(&[("E", 0)]) {
        let mut cluster = cluster(name, *port);
        for (key, value) in extra.entries().iter().filter(|_| *name == "A") {
            cluster.set(key, value.clone());
        }
        clusters.push(cluster);
    }
    let entries = subs.iter().map(|name| object! {"name" => *name}).collect();
    let typed = object! {
        "@type" => "type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig",
        "clusters" => Json::List(entries),
    };
    clusters.push(object! {
        "name" => "X",
        "connect_timeout" => "1s",
        "lb_policy" => "CLUSTER_PROVIDED",
        "cluster_type" => object! {"name" => "envoy.clusters.composite", "typed_config" => typed},
    });
    let mut bootstrap = object! {"static_resources" => object! {"clusters" => Json::List(clusters)}};
    if !flag.is_null() {
        bootstrap.set("nexthop", object! {"runtime" => object! {FLAG => flag.clone()}});
    }
    let policy = object! {"retry_on" => "5xx", "num_retries" => 1, "retry_back_off" => object! {"base_interval" => "0.001s"}};
    let route = object! {
        "match" => object! {"prefix" => "/"},
        "route" => object! {"cluster" => "X", "retry_policy" => policy},
    };
    let host = object! {
        "name" => "v",
        "domains" => Json::List(vec!["*".into()]),
        "routes" => Json::List(vec![route]),
    };
    script.add(["doc", &bootstrap.to_string()]);
    script.add(["doc", &object! {"name" => "routes", "virtual_hosts" => Json::List(vec![host])}.to_string()]);
}

/// Weighted clusters of one failing host each. The word that chooses is the recorded first choice's.
pub(super) fn weighted(case: &Case) -> Result<Converted, String> {
    let given = case.given();
    let wanted = case.expect().get("cluster_sequences_seen").items().first().ok_or("no sequence")?.clone();
    let mut script = Script::default();
    let mut clusters = Vec::new();
    let (mut word, mut below) = (0, 0);
    for entry in given.get("weighted_clusters").items() {
        let name = entry.get("name").text();
        let port = PORTS.iter().find(|(letter, _)| *letter == name).ok_or("an unknown cluster")?.1;
        clusters.push(cluster(&name, port));
        if wanted.items().first().is_some_and(|first| first.text() == name) {
            word = below;
        }
        below += entry.get("weight").i64().unwrap_or(0);
    }
    let retry = object! {
        "retry_on" => given.get("retry_on").clone(),
        "num_retries" => given.get("num_retries").clone(),
        "refresh_cluster_on_retry" => given.get("refresh_cluster_on_retry").clone(),
    };
    let mut route = object! {
        "weighted_clusters" => object! {"clusters" => given.get("weighted_clusters").clone()},
        "retry_policy" => retry,
    };
    if given.get("hedge_on_per_try_timeout").bool() == Some(true) {
        route.set("hedge_policy", object! {"hedge_on_per_try_timeout" => true});
    }
    let route = object! {"match" => object! {"prefix" => "/"}, "route" => route};
    let host = object! {
        "name" => "v",
        "domains" => Json::List(vec!["*".into()]),
        "routes" => Json::List(vec![route]),
    };
    let bootstrap = object! {"static_resources" => object! {"clusters" => Json::List(clusters)}};
    script.add(["doc", &bootstrap.to_string()]);
    let routes = object! {"name" => "routes", "virtual_hosts" => Json::List(vec![host])};
    script.add(["doc", &routes.to_string()]);
    script.add(["open", "1", &vec![word.to_string(); 64].join(",")]);
    backends(&mut script, "500")?;
    script.add(["request", "authority", "x", "path", "/"]);
    script.add(["run", "1", "0", "0", "wait"]);
    let expect = object! {"attempts" => Json::List(vec![wanted])};
    Ok((vec![script], judge::compact::letters(expect, &PORTS)))
}
