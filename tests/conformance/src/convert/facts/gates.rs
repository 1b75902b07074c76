//! Admission control and adaptive concurrency as HTTP filters of a connection manager.

use super::{bootstrap, cluster};
use crate::json::Json;
use crate::object;

/// A bootstrap with one filter before the router.
fn with_filter(kind: &str, fields: Json) -> Vec<Json> {
    let mut typed = object! {"@type" => format!("type.googleapis.com/envoy.extensions.filters.http.{kind}")};
    for (key, value) in fields.entries() {
        typed.set(key, value.clone());
    }
    let filter = object! {"name" => "f", "typed_config" => typed};
    let route = object! {"match" => object! {"prefix" => "/"}, "route" => object! {"cluster" => "c"}};
    let host = object! {
        "name" => "v", "domains" => Json::List(vec!["*".into()]), "routes" => Json::List(vec![route]),
    };
    let manager = object! {
        "@type" => "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix" => "in",
        "route_config" => object! {"virtual_hosts" => Json::List(vec![host])},
        "http_filters" => Json::List(vec![filter]),
    };
    let chain = object! {"filters" => Json::List(vec![object! {"name" => "h", "typed_config" => manager}])};
    let listener = object! {"name" => "l", "filter_chains" => Json::List(vec![chain])};
    let mut document = bootstrap(vec![cluster("c")]);
    document.get_mut("static_resources").set("listeners", Json::List(vec![listener]));
    vec![document]
}

/// Fields that the case names replace those of a filter that Envoy accepts; null = left out.
pub(super) fn admission(given: &Json) -> Result<Vec<Json>, String> {
    let mut fields = object! {};
    let mut criteria = Some(object! {});
    for (name, value) in given.entries() {
        match name.as_str() {
            "success_criteria" => criteria = None,
            "http_success_status" => {
                let range = |pair: &Json| {
                    object! {"start" => pair.items()[0].clone(), "end" => pair.items()[1].clone()}
                };
                let list = Json::List(value.items().iter().map(range).collect());
                criteria = Some(object! {"http_criteria" => object! {"http_success_status" => list}});
            }
            "grpc_success_status" => {
                criteria =
                    Some(object! {"grpc_criteria" => object! {"grpc_success_status" => value.clone()}});
            }
            "sr_threshold_percent" => {
                fields.set("sr_threshold", object! {"default_value" => object! {"value" => value.clone()}});
            }
            "sampling_window" => fields.set(name, value.clone()),
            other => return Err(format!("no field for {other}")),
        }
    }
    if let Some(criteria) = criteria {
        fields.set("success_criteria", criteria);
    }
    Ok(with_filter("admission_control.v3.AdmissionControl", fields))
}

/// The same; an `interval` of measuring is given unless the case says otherwise.
pub(super) fn concurrency(given: &Json) -> Result<Vec<Json>, String> {
    let mut limits = object! {"concurrency_update_interval" => "0.1s"};
    let mut measure = object! {"interval" => "30s"};
    for (name, value) in given.entries() {
        let group = match name.as_str() {
            "min_concurrency_limit" | "max_concurrency_limit" | "concurrency_update_interval" => &mut limits,
            "interval" | "fixed_value" | "request_count" | "min_concurrency" | "jitter" => &mut measure,
            other => return Err(format!("no field for {other}")),
        };
        let value = if name == "jitter" {
            object! {"value" => value.clone()}
        } else {
            value.clone()
        };
        group.set(name, value);
    }
    let gradient = object! {"concurrency_limit_params" => limits, "min_rtt_calc_params" => measure};
    let fields = object! {"gradient_controller_config" => gradient};
    Ok(with_filter("adaptive_concurrency.v3.AdaptiveConcurrency", fields))
}
