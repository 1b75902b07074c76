//! Policies that read the load reports of hosts: `ClientSideWeightedRoundRobin`, `WrrLocality`, `LoadAwareLocality`.

use super::policy::{load_balancing_policy, slow_start};
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use nexthop_engine::spec::{ClientWeights, LoadAware, LocalityBalancing, PolicySpec};
use std::sync::Arc;
use std::time::Duration;

const WEIGHTS: Fields = Fields::of(
    "ClientSideWeightedRoundRobin",
    &[
        "blackout_period",
        "weight_expiration_period",
        "weight_update_period",
        "error_utilization_penalty",
        "metric_names_for_computing_utilization",
        "slow_start_config",
    ],
)
.not_available(&["enable_oob_load_report", "oob_reporting_period", "oob_reporting_config"]);
const WRR_LOCALITY: Fields = Fields::of("WrrLocality", &["endpoint_picking_policy"]);
const LOAD_AWARE: Fields = Fields::of(
    "LoadAwareLocality",
    &[
        "endpoint_picking_policy",
        "weight_update_period",
        "metric_names_for_computing_utilization",
        "utilization_variance_threshold",
        "smoothing_time_constant",
        "remote_probe_fraction",
        "weight_expiration_period",
    ],
)
.not_available(&["enable_oob_load_report", "oob_reporting_period", "oob_reporting_config"]);

/// Weights are computed no more often than this.
const LEAST_PERIOD: Duration = Duration::from_millis(100);

/// Reads client_side_weighted_round_robin.
pub(super) fn client_weights(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&WEIGHTS)?;
    let default = ClientWeights::default();
    Ok(PolicySpec::ClientSideWeighted(Arc::new(ClientWeights {
        blackout: msg.or("blackout_period", default.blackout, |d| d.duration())?,
        expiration: msg.or("weight_expiration_period", default.expiration, |d| d.duration())?,
        period: msg.or("weight_update_period", default.period, |d| d.duration())?.max(LEAST_PERIOD),
        error_penalty: msg.or("error_utilization_penalty", default.error_penalty, |n| n.f64())?,
        metric_names: metric_names(&msg)?,
        locality: LocalityBalancing::None,
        slow_start: msg.map("slow_start_config", |s| slow_start(s, f64::MAX))?.flatten(),
    })))
}

/// Reads wrr_locality: the same with localities by their weights.
pub(super) fn wrr_locality(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&WRR_LOCALITY)?;
    let child = msg.need("endpoint_picking_policy")?;
    match load_balancing_policy(&child)? {
        PolicySpec::ClientSideWeighted(mut spec) => {
            Arc::make_mut(&mut spec).locality = LocalityBalancing::Weighted;
            Ok(PolicySpec::ClientSideWeighted(spec))
        }
        _ => Err(child
            .fail("wrr_locality has client_side_weighted_round_robin as its endpoint_picking_policy only")),
    }
}

/// Reads load_aware_locality.
pub(super) fn load_aware_locality(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&LOAD_AWARE)?;
    let child_at = msg.need("endpoint_picking_policy")?;
    let child = load_balancing_policy(&child_at)?;
    match child {
        PolicySpec::LoadAwareLocality(_) => {
            return Err(child_at.fail("load_aware_locality cannot be its own endpoint_picking_policy"));
        }
        PolicySpec::ClusterProvided => {
            return Err(child_at.fail(
                "the endpoint_picking_policy has to choose among hosts, which CLUSTER_PROVIDED does not",
            ));
        }
        _ => {}
    }
    let default = LoadAware::default();
    let bounded = |name, default, allowed: &str, fits: fn(f64) -> bool| {
        msg.or(name, default, |at| {
            let value = at.f64()?;
            if fits(value) { Ok(value) } else { Err(at.expected(allowed)) }
        })
    };
    let period = msg.or("weight_update_period", default.period, |at| match at.duration()? {
        period if period >= LEAST_PERIOD => Ok(period),
        _ => Err(at.expected("a duration of at least 100ms")),
    })?;
    Ok(PolicySpec::LoadAwareLocality(Arc::new(LoadAware {
        period,
        metric_names: metric_names(&msg)?,
        variance_threshold: bounded(
            "utilization_variance_threshold",
            default.variance_threshold,
            "a number from 0 to 1",
            |value| (0.0..=1.0).contains(&value),
        )?,
        smoothing: msg.or("smoothing_time_constant", default.smoothing, |at| at.positive_duration())?,
        probe_fraction: bounded(
            "remote_probe_fraction",
            default.probe_fraction,
            "a number from 0 to below 1",
            |value| (0.0..1.0).contains(&value),
        )?,
        expiration: msg.or("weight_expiration_period", default.expiration, |d| d.duration())?,
        child,
    })))
}

fn metric_names(msg: &Msg<'_>) -> Result<Vec<String>> {
    msg.repeated("metric_names_for_computing_utilization", |name| name.text())
}
