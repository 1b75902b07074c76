//! `CircuitBreakers`.

use super::policy::percent;
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use nexthop_engine::spec::{Breakers, RetryBudget, RoutingPriority, Thresholds};

const BREAKERS: Fields = Fields::of("CircuitBreakers", &["thresholds", "per_host_thresholds"]);
const THRESHOLDS: Fields = Fields::of(
    "CircuitBreakers.Thresholds",
    &[
        "priority",
        "max_connections",
        "max_pending_requests",
        "max_requests",
        "max_retries",
        "retry_budget",
        "track_remaining",
        "max_connection_pools",
    ],
);
const BUDGET: Fields =
    Fields::of("RetryBudget", &["budget_percent", "min_retry_concurrency", "budget_interval"]);

/// Words of `RoutingPriority`.
pub(super) const PRIORITIES: &[(&str, i32)] = &[("DEFAULT", 0), ("HIGH", 1)];

/// Reads a `RoutingPriority`.
pub(super) fn routing_priority(at: &At<'_>) -> Result<RoutingPriority> {
    Ok(if at.enumeration(PRIORITIES)? == 1 { RoutingPriority::High } else { RoutingPriority::Default })
}

/// Reads `circuit_breakers`: the first entry of a routing priority counts, later ones are read and dropped.
pub(super) fn breakers(at: &At<'_>) -> Result<Breakers> {
    let msg = at.message(&BREAKERS)?;
    let mut breakers = Breakers::default();
    let mut taken = [false; 2];
    for (priority, thresholds) in msg.repeated("thresholds", |item| {
        let entry = item.message(&THRESHOLDS)?;
        Ok((priority_of(&entry)?, thresholds(&entry)?))
    })? {
        if !std::mem::replace(&mut taken[priority as usize], true) {
            breakers.thresholds[priority as usize] = thresholds;
        }
    }
    let mut taken = [false; 2];
    for (priority, limit) in msg.repeated("per_host_thresholds", |item| per_host(&item))? {
        if !std::mem::replace(&mut taken[priority as usize], true) {
            breakers.per_host_max_connections[priority as usize] = limit;
        }
    }
    Ok(breakers)
}

fn priority_of(msg: &Msg<'_>) -> Result<RoutingPriority> {
    msg.or("priority", RoutingPriority::Default, routing_priority)
}

fn thresholds(msg: &Msg<'_>) -> Result<Thresholds> {
    Ok(Thresholds {
        max_connections: msg.or("max_connections", 1024, |n| n.u32())?,
        max_pending_requests: msg.or("max_pending_requests", 1024, |n| n.u32())?,
        max_requests: msg.or("max_requests", 1024, |n| n.u32())?,
        max_retries: msg.or("max_retries", 3, |n| n.u32())?,
        retry_budget: msg.map("retry_budget", retry_budget)?,
        track_remaining: msg.or("track_remaining", false, |flag| flag.bool())?,
        max_connection_pools: msg.map("max_connection_pools", |n| n.u32().map(u64::from))?,
    })
}

fn retry_budget(at: &At<'_>) -> Result<RetryBudget> {
    let msg = at.message(&BUDGET)?;
    let budget_percent = msg.or("budget_percent", 20.0, |p| percent(p, 100.0))?;
    Ok(RetryBudget {
        budget_percent,
        min_retry_concurrency: msg.or("min_retry_concurrency", 3, |n| n.u32())?,
        interval: msg.or("budget_interval", std::time::Duration::ZERO, |d| d.millis())?,
    })
}

fn per_host(at: &At<'_>) -> Result<(RoutingPriority, Option<u32>)> {
    let msg = at.message(&THRESHOLDS)?;
    for name in msg.names() {
        if !matches!(name, "priority" | "max_connections" | "track_remaining") {
            return Err(msg.need(name)?.fail("only `max_connections` is a limit per host"));
        }
    }
    msg.map("track_remaining", |flag| flag.bool())?;
    Ok((priority_of(&msg)?, msg.map("max_connections", |n| n.u32())?))
}
