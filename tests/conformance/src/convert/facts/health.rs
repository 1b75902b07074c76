//! Active checks.

use super::{bootstrap, cluster};
use crate::json::Json;
use crate::object;

const TCP: &str = "tcp_health_check";
const HTTP: &str = "http_health_check";

fn minimal() -> Json {
    object! {"timeout" => "1s", "interval" => "1s", "unhealthy_threshold" => 2, "healthy_threshold" => 2, TCP => object! {}}
}

fn without(check: &Json, key: &str) -> Json {
    let kept = check.entries().iter().filter(|(k, _)| k != key);
    Json::Object(kept.cloned().collect())
}

/// The minimal check over HTTP with these fields.
fn http(fields: Json) -> Json {
    let mut check = without(&minimal(), TCP);
    check.set(HTTP, fields);
    check
}

fn ranges(given: &Json) -> Json {
    let range = |pair: &Json| object! {"start" => pair.items()[0].clone(), "end" => pair.items()[1].clone()};
    Json::List(given.items().iter().map(range).collect())
}

pub(super) fn documents(id: &str, given: &Json) -> Result<Vec<Json>, String> {
    let check = |name: &str| {
        let mut check = minimal();
        if let Some(("minimal", name)) = name.split_once(' ') {
            check.set("name", name.into());
        }
        check
    };
    let checks = match id {
        "minimal-tcp" => vec![given.clone()],
        "grpc-on-http1-cluster" => {
            let mut check = without(&minimal(), TCP);
            check.set("grpc_health_check", object! {});
            vec![check]
        }
        "http-without-path" => vec![http(object! {})],
        "empty-range" | "range-below-100" => {
            vec![http(object! {"path" => "/", "expected_statuses" => ranges(given.get("expected_statuses"))})]
        }
        "range-above-600" => {
            vec![http(
                object! {"path" => "/", "retriable_statuses" => ranges(given.get("retriable_statuses"))},
            )]
        }
        "method-connect" => vec![http(object! {"path" => "/", "method" => "CONNECT"})],
        "get-with-body" => {
            vec![http(
                object! {"path" => "/", "method" => "GET", "send" => object! {"text" => given.get("send").clone()}},
            )]
        }
        "udp-checker" => {
            let mut check = without(&minimal(), TCP);
            let typed = object! {
                "@type" => "type.googleapis.com/envoy.extensions.health_checkers.udp.v3.Udp",
                "send" => object! {"text" => "00"},
                "receive" => Json::List(vec![object! {"text" => "00"}]),
            };
            let checker =
                object! {"name" => given.get("custom_health_check").clone(), "typed_config" => typed};
            check.set("custom_health_check", checker);
            vec![check]
        }
        _ if given.has("health_checks") => {
            given.get("health_checks").items().iter().map(|name| check(&name.text())).collect()
        }
        _ if given.has("without") => {
            let key = given.get("without").text();
            vec![without(&minimal(), if key == "health_checker" { TCP } else { &key })]
        }
        _ if given.has("minimal") => {
            let mut check = minimal();
            for (key, value) in given.entries().iter().filter(|(key, _)| key != "minimal") {
                check.set(key, value.clone());
            }
            vec![check]
        }
        other => return Err(format!("no document for {other}")),
    };
    let mut cluster = cluster("c");
    cluster.set("health_checks", Json::List(checks));
    Ok(vec![bootstrap(vec![cluster])])
}
