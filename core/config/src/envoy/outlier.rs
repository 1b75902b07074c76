//! `OutlierDetection`. All fields are checked against Envoy's ranges; those of detectors that this version lacks are
//! noted.

use crate::error::Result;
use crate::read::{At, Fields, Msg};
use crate::report::What;
use nexthop_engine::spec::OutlierSpec;
use std::time::Duration;

const OUTLIER: Fields = Fields::of(
    "OutlierDetection",
    &[
        "consecutive_5xx",
        "interval",
        "base_ejection_time",
        "max_ejection_percent",
        "enforcing_consecutive_5xx",
        "consecutive_gateway_failure",
        "enforcing_consecutive_gateway_failure",
        "max_ejection_time",
        "max_ejection_time_jitter",
        "always_eject_one_host",
        // Read for their ranges only.
        "enforcing_success_rate",
        "success_rate_minimum_hosts",
        "success_rate_request_volume",
        "success_rate_stdev_factor",
        "split_external_local_origin_errors",
        "consecutive_local_origin_failure",
        "enforcing_consecutive_local_origin_failure",
        "enforcing_local_origin_success_rate",
        "failure_percentage_threshold",
        "enforcing_failure_percentage",
        "enforcing_failure_percentage_local_origin",
        "failure_percentage_minimum_hosts",
        "failure_percentage_request_volume",
        "successful_active_health_check_uneject_host",
        "detect_degraded_hosts",
    ],
)
.not_used(&["monitors"]);

/// Percentages of detectors that this version lacks.
const ABSENT_PERCENTS: &[&str] = &[
    "enforcing_success_rate",
    "enforcing_consecutive_local_origin_failure",
    "enforcing_local_origin_success_rate",
    "failure_percentage_threshold",
    "enforcing_failure_percentage",
    "enforcing_failure_percentage_local_origin",
];
const ABSENT_NUMBERS: &[&str] = &[
    "success_rate_minimum_hosts",
    "success_rate_request_volume",
    "success_rate_stdev_factor",
    "consecutive_local_origin_failure",
    "failure_percentage_minimum_hosts",
    "failure_percentage_request_volume",
];
const ABSENT_FLAGS: &[&str] = &[
    "split_external_local_origin_errors",
    "successful_active_health_check_uneject_host",
    "detect_degraded_hosts",
];

/// Reads `outlier_detection`.
pub(super) fn outlier(at: &At<'_>) -> Result<OutlierSpec> {
    let msg = at.message(&OUTLIER)?;
    absent_detectors(&msg)?;
    let spec = OutlierSpec::default();
    let percent = |name, default| msg.or(name, default, |p| p.u32_in(0, 100));
    let number = |name, default| msg.or(name, default, |n| n.u32());
    let base = msg.or("base_ejection_time", spec.base_ejection_time, |d| d.positive_millis())?;
    let max_default = Duration::from_secs(300).max(base);
    let max = msg.or("max_ejection_time", max_default, |d| d.positive_millis())?;
    if let Some(at) = msg.get("max_ejection_time").filter(|_| max < base) {
        return Err(at.expected(&format!("at least base_ejection_time ({base:?})")));
    }
    Ok(OutlierSpec {
        consecutive_5xx: number("consecutive_5xx", spec.consecutive_5xx)?,
        enforcing_consecutive_5xx: percent("enforcing_consecutive_5xx", spec.enforcing_consecutive_5xx)?,
        consecutive_gateway_failure: number("consecutive_gateway_failure", spec.consecutive_gateway_failure)?,
        enforcing_consecutive_gateway_failure: percent(
            "enforcing_consecutive_gateway_failure",
            spec.enforcing_consecutive_gateway_failure,
        )?,
        interval: msg.or("interval", spec.interval, |d| d.positive_millis())?,
        base_ejection_time: base,
        max_ejection_time: max,
        max_ejection_time_jitter: msg.or("max_ejection_time_jitter", Duration::ZERO, |d| d.millis())?,
        max_ejection_percent: percent("max_ejection_percent", spec.max_ejection_percent)?,
        always_eject_one_host: msg.or("always_eject_one_host", false, |flag| flag.bool())?,
    })
}

fn absent_detectors(msg: &Msg<'_>) -> Result<()> {
    let note = |at: &At<'_>| at.note(What::NotAvailable, "known, but not available in this version");
    for &name in ABSENT_PERCENTS {
        if let Some(at) = msg.get(name) {
            // Zero switches a detector off, which is what happens.
            if at.u32_in(0, 100)? != 0 || !name.starts_with("enforcing_") {
                note(&at);
            }
        }
    }
    for &name in ABSENT_NUMBERS {
        if let Some(at) = msg.get(name) {
            at.u32()?;
            note(&at);
        }
    }
    for &name in ABSENT_FLAGS {
        if let Some(at) = msg.get(name)
            && at.bool()?
        {
            note(&at);
        }
    }
    Ok(())
}
