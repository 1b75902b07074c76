//! Retry, hash, limits and outlier settings of the short form.

use crate::envoy::header_name;
use crate::error::Result;
use crate::read::{At, Fields};
use nexthop_engine::spec::{
    BackOffSpec, HashPolicySpec, HashSource, OutlierSpec, RetryOn, RetryOptions, RetrySpec, Thresholds,
};
use std::time::Duration;

const RETRY: Fields =
    Fields::ours("retry of the short form", &["on", "times", "avoid_tried", "per_try", "backoff", "nexthop"]);
const BACK_OFF: Fields = Fields::ours("backoff of the short form", &["base", "max"]);
const LIMITS: Fields =
    Fields::ours("limits of the short form", &["connections", "pending", "requests", "retries"]);
const OUTLIER: Fields = Fields::ours(
    "outlier of the short form",
    &["consecutive_5xx", "consecutive_gateway_failure", "interval", "eject", "max_percent"],
);
const HASH: Fields = Fields::ours(
    "hash of the short form",
    &["header", "cookie", "query", "source_ip", "ttl", "path", "terminal"],
)
.one_of(&[&["header", "cookie", "query", "source_ip"]]);

/// Draws after which a retry takes a tried host after all.
const AVOID_TRIED_DRAWS: u32 = 5;

/// Reads `retry`.
pub(super) fn retry(at: &At<'_>) -> Result<RetrySpec> {
    let msg = at.message(&RETRY)?;
    let default = RetrySpec::default();
    let avoid_tried = msg.or("avoid_tried", false, |flag| flag.bool())?;
    Ok(RetrySpec {
        on: conditions(&msg.need("on")?)?,
        num_retries: msg.or("times", default.num_retries, |n| n.u32())?,
        per_try_timeout: msg.or("per_try", Duration::ZERO, |d| d.short_millis())?,
        back_off: msg.map("backoff", back_off)?,
        previous_hosts: avoid_tried,
        host_selection_retry_max_attempts: match avoid_tried {
            true => AVOID_TRIED_DRAWS,
            false => default.host_selection_retry_max_attempts,
        },
        options: msg.or("nexthop", RetryOptions::default(), crate::block::retry_block)?,
        ..default
    })
}

/// A list of conditions, or one text with commas. Unlike Envoy's field, an unknown word is refused.
fn conditions(at: &At<'_>) -> Result<RetryOn> {
    let one = |at: &At<'_>| {
        let text = at.text()?;
        match RetryOn::parse(&text) {
            (on, true) => Ok(on),
            (_, false) => Err(at.expected("retry conditions such as 5xx, connect-failure, reset")),
        }
    };
    if !at.is_list() {
        return one(at);
    }
    let mut all = RetryOn::default();
    for item in at.items()? {
        all |= one(&item)?;
    }
    Ok(all)
}

fn back_off(at: &At<'_>) -> Result<BackOffSpec> {
    let msg = at.message(&BACK_OFF)?;
    let millis = |at: &At<'_>| match at.short_millis()? {
        Duration::ZERO => Err(at.expected("a duration of at least 1ms")),
        duration => Ok(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
    };
    let base_ms = millis(&msg.need("base")?)?;
    let max_ms = msg.or("max", base_ms.saturating_mul(10), millis)?;
    match msg.get("max").filter(|_| max_ms < base_ms) {
        Some(max) => Err(max.expected(&format!("at least the base ({base_ms} ms)"))),
        None => Ok(BackOffSpec { base_ms, max_ms }),
    }
}

/// Reads `limits`.
pub(super) fn limits(at: &At<'_>) -> Result<Thresholds> {
    let msg = at.message(&LIMITS)?;
    let default = Thresholds::default();
    let number = |name, default| msg.or(name, default, |n| n.u32());
    Ok(Thresholds {
        max_connections: number("connections", default.max_connections)?,
        max_pending_requests: number("pending", default.max_pending_requests)?,
        max_requests: number("requests", default.max_requests)?,
        max_retries: number("retries", default.max_retries)?,
        ..default
    })
}

/// Reads `outlier`.
pub(super) fn outlier(at: &At<'_>) -> Result<OutlierSpec> {
    let msg = at.message(&OUTLIER)?;
    let default = OutlierSpec::default();
    let positive = |at: &At<'_>| match at.short_millis()? {
        Duration::ZERO => Err(at.expected("a duration of at least 1ms")),
        duration => Ok(duration),
    };
    let base_ejection_time = msg.or("eject", default.base_ejection_time, positive)?;
    let gateway = msg.map("consecutive_gateway_failure", |n| n.u32())?;
    Ok(OutlierSpec {
        consecutive_5xx: msg.or("consecutive_5xx", default.consecutive_5xx, |n| n.u32())?,
        consecutive_gateway_failure: gateway.unwrap_or(default.consecutive_gateway_failure),
        // Off by default; who sets the number means it.
        enforcing_consecutive_gateway_failure: if gateway.is_some() { 100 } else { 0 },
        interval: msg.or("interval", default.interval, positive)?,
        base_ejection_time,
        max_ejection_time: default.max_ejection_time.max(base_ejection_time),
        max_ejection_percent: msg.or("max_percent", default.max_ejection_percent, |p| p.u32_in(0, 100))?,
        ..default
    })
}

/// Reads `hash`: `source_ip`, or one of header, cookie and query with a name.
pub(super) fn hash(at: &At<'_>) -> Result<Vec<HashPolicySpec>> {
    at.items()?.map(|item| hash_source(&item)).collect()
}

fn hash_source(at: &At<'_>) -> Result<HashPolicySpec> {
    if at.node.text() == Some("source_ip") {
        return Ok(HashPolicySpec { source: HashSource::SourceIp, terminal: false });
    }
    if !at.is_map() {
        return Err(at.expected("`source_ip`, or one of header, cookie, query with a name"));
    }
    let msg = at.message(&HASH)?;
    let source = if let Some(header) = msg.get("header") {
        HashSource::Header { name: header_name(&header)?, rewrite: None }
    } else if let Some(cookie) = msg.get("cookie") {
        HashSource::Cookie {
            name: cookie.filled()?,
            ttl: msg.map("ttl", |d| d.short_millis())?,
            path: msg.or("path", String::new(), |p| p.text())?,
            attributes: Vec::new(),
        }
    } else if let Some(query) = msg.get("query") {
        HashSource::QueryParameter { name: query.filled()? }
    } else if msg.or("source_ip", false, |flag| flag.bool())? {
        HashSource::SourceIp
    } else {
        return Err(at.expected("one of header, cookie, query, source_ip"));
    };
    if let Some(extra) = msg.get("ttl").or_else(|| msg.get("path")).filter(|_| !msg.has("cookie")) {
        return Err(extra.fail("only a cookie has this"));
    }
    Ok(HashPolicySpec { source, terminal: msg.or("terminal", false, |flag| flag.bool())? })
}
