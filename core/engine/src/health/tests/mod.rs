//! The tables of `tests/vectors/health`, and hosts under checks on a whole engine.

mod begin;
mod hosts;
mod mesh;
mod tables;

use serde_json::Value as Json;

/// Flags by Envoy's words.
fn flags_of(list: &Json) -> u32 {
    use crate::hosts::flag;
    list.as_array().unwrap().iter().fold(0, |all, name| {
        all | match name.as_str().unwrap() {
            "failed_active_hc" => flag::FAILED_ACTIVE_HC,
            "failed_outlier_check" => flag::FAILED_OUTLIER_CHECK,
            "failed_eds_health" => flag::FAILED_EDS_HEALTH,
            "degraded_active_hc" => flag::DEGRADED_ACTIVE_HC,
            "degraded_eds_health" => flag::DEGRADED_EDS_HEALTH,
            "pending_dynamic_removal" => flag::PENDING_DYNAMIC_REMOVAL,
            "pending_active_hc" => flag::PENDING_ACTIVE_HC,
            "excluded_via_immediate_hc_fail" => flag::EXCLUDED_VIA_IMMEDIATE_HC_FAIL,
            "active_hc_timeout" => flag::ACTIVE_HC_TIMEOUT,
            "eds_status_draining" => flag::EDS_STATUS_DRAINING,
            "degraded_outlier_detection" => flag::DEGRADED_OUTLIER_DETECTION,
            other => panic!("no flag {other}"),
        }
    })
}
