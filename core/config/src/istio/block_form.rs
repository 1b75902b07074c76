//! Limits, protocol options and outlier detection in Envoy's form.

use super::outlier::Outlier;
use super::policy::Budget;
use super::pool::Pool;
use crate::form::{Form, duration, flag, list, number, percent, text};
use crate::front::{Node, Place};

pub(super) fn breakers(pool: Option<&Pool>, budget: Option<&Budget>, place: Place) -> Node<'static> {
    let mut form = Form::new(pool.map_or(place, |pool| pool.block.seen.place));
    let limits = [
        ("max_connections", "tcp.maxConnections", pool.map_or(0, |p| p.max_connections)),
        ("max_pending_requests", "http.http1MaxPendingRequests", pool.map_or(0, |p| p.max_pending)),
        ("max_requests", "http.http2MaxRequests", pool.map_or(0, |p| p.max_requests)),
        ("max_retries", "http.maxRetries", pool.map_or(0, |p| p.max_retries)),
    ];
    for (name, field, limit) in limits {
        let at = pool.map_or(place, |pool| pool.block.place(field));
        form.put(name, number(at, if limit == 0 { u32::MAX } else { limit }));
    }
    if let Some(budget) = budget {
        let place = budget.seen.place;
        let mut config = Form::new(place).with("budget_percent", percent(place, budget.percent));
        if let Some(interval) = budget.interval {
            config.put("budget_interval", duration(place, interval));
        }
        config.put("min_retry_concurrency", number(place, budget.min_concurrency));
        form.put("retry_budget", config.node());
    }
    Form::new(place).with("thresholds", list(place, vec![form.node()])).node()
}

pub(super) fn common_options(pool: &Pool) -> Option<Node<'static>> {
    let idle = pool.http_idle.map(|idle| (idle, "http.idleTimeout"));
    let idle = idle.or_else(|| pool.tcp_idle.map(|idle| (idle, "tcp.idleTimeout")));
    let mut form = Form::new(pool.block.seen.place);
    if let Some((idle, field)) = idle {
        form.put("idle_timeout", duration(pool.block.place(field), idle));
    }
    if let Some(age) = pool.max_connection_duration {
        form.put("max_connection_duration", duration(pool.block.place("tcp.maxConnectionDuration"), age));
    }
    if pool.max_per_connection > 0 {
        let place = pool.block.place("http.maxRequestsPerConnection");
        form.put("max_requests_per_connection", number(place, pool.max_per_connection));
    }
    let asked = !form.is_empty() || pool.max_streams > 0 || pool.ping.is_some();
    asked.then(|| form.node())
}

pub(super) fn http2_options(pool: Option<&Pool>, place: Place) -> Node<'static> {
    let mut form = Form::new(place);
    if let Some(pool) = pool.filter(|pool| pool.max_streams > 0) {
        let at = pool.block.place("http.maxConcurrentStreams");
        form.put("max_concurrent_streams", number(at, pool.max_streams));
    }
    if let Some((pool, (interval, timeout))) = pool.and_then(|pool| Some((pool, pool.ping?))) {
        let at = pool.block.place("http.http2KeepAlive");
        let ping =
            Form::new(at).with("interval", duration(at, interval)).with("timeout", duration(at, timeout));
        form.put("connection_keepalive", ping.node());
    }
    form.node()
}

pub(super) fn detector(outlier: &Outlier) -> Node<'static> {
    let at = |name: &str| outlier.block.place(name);
    let mut form = Form::new(outlier.block.seen.place);
    let mut threshold = |field: &'static str, enforcing: &'static str, name: &str, value: Option<u32>| {
        if let Some(value) = value {
            form.put(field, number(at(name), value));
            form.put(enforcing, number(at(name), if value > 0 { 100u32 } else { 0 }));
        }
    };
    threshold("consecutive_5xx", "enforcing_consecutive_5xx", "consecutive5xxErrors", outlier.five_xx);
    threshold(
        "consecutive_gateway_failure",
        "enforcing_consecutive_gateway_failure",
        "consecutiveGatewayErrors",
        outlier.gateway,
    );
    let local = outlier.local_origin.filter(|&n| n > 0 && outlier.split);
    threshold(
        "consecutive_local_origin_failure",
        "enforcing_consecutive_local_origin_failure",
        "consecutiveLocalOriginFailures",
        local,
    );
    if let Some(interval) = outlier.interval {
        form.put("interval", duration(at("interval"), interval));
    }
    if let Some(base) = outlier.base {
        form.put("base_ejection_time", duration(at("baseEjectionTime"), base));
    }
    if outlier.max_percent > 0 {
        form.put("max_ejection_percent", number(at("maxEjectionPercent"), outlier.max_percent));
    }
    form.put("enforcing_success_rate", number(outlier.block.seen.place, 0));
    if outlier.split {
        let place = at("splitExternalLocalOriginErrors");
        form.put("split_external_local_origin_errors", flag(place, true));
        form.put("enforcing_local_origin_success_rate", number(place, 0));
    }
    form.node()
}

pub(super) fn error_matcher(outlier: &Outlier) -> Node<'static> {
    let place = outlier.block.place("outlierDetectionHttpErrorCodes");
    let rule = |code: &u32| {
        let exact = Form::new(place).with("exact", text(place, code.to_string()));
        let header = Form::new(place).with("name", text(place, ":status")).with("string_match", exact.node());
        let headers = Form::new(place).with("headers", list(place, vec![header.node()]));
        Form::new(place).with("http_response_headers_match", headers.node()).node()
    };
    let mut rules: Vec<Node<'static>> = outlier.codes.iter().map(rule).collect();
    let matcher = match rules.len() {
        1 => rules.remove(0),
        _ => {
            let any = Form::new(place).with("rules", list(place, rules));
            Form::new(place).with("or_match", any.node()).node()
        }
    };
    Form::new(place).with("error_matcher", matcher).node()
}
