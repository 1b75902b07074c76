//! Numbers and lists as text.

use super::error::Error;
use super::metrics;
use super::registry::Engine;
use nexthop_engine::hosts::Health;
use nexthop_engine::spec::Value;
use nexthop_engine::{HostState, Misuse, Stat, Time};
use serde_json::{Map, Value as Json, json};
use std::sync::atomic::Ordering::Relaxed;

/// One text, see `raw::text`.
pub(super) fn render(engine: &Engine, what: u32, arg: &str) -> Result<String, Error> {
    match what {
        1 => Ok(stats(engine)),
        2 => Ok(metrics::to_prometheus(engine)),
        4 if arg == "all" => super::effective::load_report(engine),
        4 => Ok(engine.report.lock().to_json().to_string()),
        5 => Ok(engine.findings.lock().to_human()),
        6 => Ok(engine.findings.lock().to_json().to_string()),
        7 => Ok(engine.findings.lock().to_sarif().to_string()),
        3 => super::effective::effective(engine, arg),
        8 => super::explain::head(engine, arg),
        9 => {
            let id = arg.parse().map_err(|_| {
                Error::misuse(Misuse::Invalid, format!("{arg:?} is not the id of an attempt in decimal"))
            })?;
            super::explain::attempt(engine, id)
        }
        10 => {
            let (states, now) = (engine.core.host_states(arg), engine.at(super::NOW));
            if states.is_empty() && !arg.is_empty() && engine.core.assignment_names(arg).is_empty() {
                let hint = super::changes::nearest(arg, &engine.core.target_names());
                return Err(Error::misuse(Misuse::NotFound, format!("no cluster {arg:?}{hint}")));
            }
            Ok(Json::Array(states.iter().map(|state| host(state, now)).collect()).to_string())
        }
        11 => {
            let states = engine.core.host_states("");
            let found = states.iter().find(|state| state.info.address == arg);
            found
                .map(|state| host(state, engine.at(super::NOW)).to_string())
                .ok_or_else(|| Error::misuse(Misuse::NotFound, format!("no host has the address {arg:?}")))
        }
        12 => Ok(metrics::to_json(engine)),
        _ => Err(Error::misuse(Misuse::NotFound, format!("there is no text {what}; there are 1 to 12"))),
    }
}

/// A JSON object: name to number.
fn stats(engine: &Engine) -> String {
    let mut all = Map::new();
    engine.core.stats(&mut |name, stat| {
        let (Stat::Counter(value) | Stat::Gauge(value)) = stat;
        all.insert(name.to_owned(), value.into());
    });
    all.insert("nexthop.panics".into(), engine.panics.load(Relaxed).into());
    all.insert("nexthop.live_requests".into(), engine.core.live_requests().into());
    Json::Object(all).to_string()
}

fn host(state: &HostState, now: Time) -> Json {
    let info = &state.info;
    json!({
        "address": info.address,
        "hostname": info.hostname,
        "cluster": &*info.cluster,
        "weight": info.weight,
        "priority": info.priority,
        "region": info.locality.region,
        "zone": info.locality.zone,
        "sub_zone": info.locality.sub_zone,
        "metadata": metadata(info),
        "health": match state.health() {
            Health::Healthy => "healthy",
            Health::Degraded => "degraded",
            Health::Unhealthy => "unhealthy",
        },
        "health_flags": state.health_flags(),
        "rq_active": state.active,
        "rq_success": state.rq_success,
        "rq_error": state.rq_error,
        "rq_timeout": state.rq_timeout,
        "success_rate": state.success_rate[0],
        "local_origin_success_rate": state.success_rate[1],
        "set_aside_ms": state.cool_until.since(now).div_ceil(1_000_000),
        "half_open": state.half_open,
    })
}

/// All metadata namespaces of a host.
fn metadata(info: &nexthop_engine::hosts::HostInfo) -> Json {
    let namespaces = info.metadata.0.iter().map(|(namespace, values)| {
        let fields = values.iter().map(|(key, value)| (key.clone(), to_json(value))).collect();
        (namespace.clone(), Json::Object(fields))
    });
    Json::Object(namespaces.collect())
}

/// The `envoy.lb` metadata of a host as a JSON object; `{}` for none.
pub fn metadata_json(info: &nexthop_engine::hosts::HostInfo) -> String {
    match info.metadata.0.get("envoy.lb") {
        None => "{}".into(),
        Some(values) => {
            let fields = values.iter().map(|(key, value)| (key.clone(), to_json(value))).collect();
            Json::Object(fields).to_string()
        }
    }
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => {
            let whole = *number as i64;
            // Whole numbers read as such: 80, not 80.0.
            if whole as f64 == *number { whole.into() } else { (*number).into() }
        }
        Value::String(text) => text.as_str().into(),
        Value::List(list) => Json::Array(list.iter().map(to_json).collect()),
        Value::Struct(fields) => {
            Json::Object(fields.iter().map(|(key, value)| (key.clone(), to_json(value))).collect())
        }
    }
}
