//! `OutlierDetection`, and the error matcher of the protocol options.

use super::matcher::header_matches;
use crate::error::Result;
use crate::read::{At, Fields};
use crate::report::What;
use nexthop_engine::spec::{ErrorMatch, OutlierSpec};
use std::time::Duration;

const OUTLIER: Fields = Fields::of(
    "OutlierDetection",
    &[
        "consecutive_5xx",
        "interval",
        "base_ejection_time",
        "max_ejection_percent",
        "enforcing_consecutive_5xx",
        "enforcing_success_rate",
        "success_rate_minimum_hosts",
        "success_rate_request_volume",
        "success_rate_stdev_factor",
        "consecutive_gateway_failure",
        "enforcing_consecutive_gateway_failure",
        "split_external_local_origin_errors",
        "consecutive_local_origin_failure",
        "enforcing_consecutive_local_origin_failure",
        "enforcing_local_origin_success_rate",
        "failure_percentage_threshold",
        "enforcing_failure_percentage",
        "enforcing_failure_percentage_local_origin",
        "failure_percentage_minimum_hosts",
        "failure_percentage_request_volume",
        "max_ejection_time",
        "max_ejection_time_jitter",
        "successful_active_health_check_uneject_host",
        "always_eject_one_host",
        "detect_degraded_hosts",
    ],
)
// No release has an implementation of one.
.not_used(&["monitors"]);
const PROTOCOL: Fields = Fields::of("OutlierDetection of HttpProtocolOptions", &["error_matcher"]);
const PREDICATES: &[&str] = &[
    "or_match",
    "and_match",
    "not_match",
    "any_match",
    "http_request_headers_match",
    "http_request_trailers_match",
    "http_response_headers_match",
    "http_response_trailers_match",
    "http_request_generic_body_match",
    "http_response_generic_body_match",
];
const PREDICATE: Fields = Fields::of("MatchPredicate", PREDICATES).one_of(&[PREDICATES]);
const SET: Fields = Fields::of("MatchSet", &["rules"]);
const HEADERS: Fields = Fields::of("HttpHeadersMatch", &["headers"]);
const BODY: Fields = Fields::of("HttpGenericBodyMatch", &["patterns"]).not_used(&["bytes_limit"]);

/// Reads `outlier_detection`.
pub(super) fn outlier(at: &At<'_>) -> Result<OutlierSpec> {
    let msg = at.message(&OUTLIER)?;
    let default = OutlierSpec::default();
    let percent = |name, default| msg.or(name, default, |p| p.u32_in(0, 100));
    let number = |name, default| msg.or(name, default, |n| n.u32());
    let flag = |name, default| msg.or(name, default, |flag| flag.bool());
    let base = msg.or("base_ejection_time", default.base_ejection_time, |d| d.positive_millis())?;
    let max_default = Duration::from_secs(300).max(base);
    let max = msg.or("max_ejection_time", max_default, |d| d.positive_millis())?;
    if let Some(at) = msg.get("max_ejection_time").filter(|_| max < base) {
        return Err(at.expected(&format!("at least base_ejection_time ({base:?})")));
    }
    Ok(OutlierSpec {
        consecutive_5xx: number("consecutive_5xx", default.consecutive_5xx)?,
        enforcing_consecutive_5xx: percent("enforcing_consecutive_5xx", default.enforcing_consecutive_5xx)?,
        consecutive_gateway_failure: number(
            "consecutive_gateway_failure",
            default.consecutive_gateway_failure,
        )?,
        enforcing_consecutive_gateway_failure: percent(
            "enforcing_consecutive_gateway_failure",
            default.enforcing_consecutive_gateway_failure,
        )?,
        split_external_local_origin_errors: flag("split_external_local_origin_errors", false)?,
        consecutive_local_origin_failure: number(
            "consecutive_local_origin_failure",
            default.consecutive_local_origin_failure,
        )?,
        enforcing_consecutive_local_origin_failure: percent(
            "enforcing_consecutive_local_origin_failure",
            default.enforcing_consecutive_local_origin_failure,
        )?,
        enforcing_success_rate: percent("enforcing_success_rate", default.enforcing_success_rate)?,
        enforcing_local_origin_success_rate: percent(
            "enforcing_local_origin_success_rate",
            default.enforcing_local_origin_success_rate,
        )?,
        success_rate_minimum_hosts: number("success_rate_minimum_hosts", default.success_rate_minimum_hosts)?,
        success_rate_request_volume: number(
            "success_rate_request_volume",
            default.success_rate_request_volume,
        )?,
        success_rate_stdev_factor: number("success_rate_stdev_factor", default.success_rate_stdev_factor)?,
        failure_percentage_threshold: percent(
            "failure_percentage_threshold",
            default.failure_percentage_threshold,
        )?,
        enforcing_failure_percentage: percent(
            "enforcing_failure_percentage",
            default.enforcing_failure_percentage,
        )?,
        enforcing_failure_percentage_local_origin: percent(
            "enforcing_failure_percentage_local_origin",
            default.enforcing_failure_percentage_local_origin,
        )?,
        failure_percentage_minimum_hosts: number(
            "failure_percentage_minimum_hosts",
            default.failure_percentage_minimum_hosts,
        )?,
        failure_percentage_request_volume: number(
            "failure_percentage_request_volume",
            default.failure_percentage_request_volume,
        )?,
        interval: msg.or("interval", default.interval, |d| d.positive_millis())?,
        base_ejection_time: base,
        max_ejection_time: max,
        max_ejection_time_jitter: msg.or("max_ejection_time_jitter", Duration::ZERO, |d| d.millis())?,
        max_ejection_percent: percent("max_ejection_percent", default.max_ejection_percent)?,
        always_eject_one_host: flag("always_eject_one_host", false)?,
        successful_active_health_check_uneject_host: flag(
            "successful_active_health_check_uneject_host",
            true,
        )?,
        detect_degraded_hosts: flag("detect_degraded_hosts", false)?,
        error_matcher: None,
    })
}

/// Reads `HttpProtocolOptions.outlier_detection`.
pub(super) fn error_matcher(at: &At<'_>) -> Result<ErrorMatch> {
    predicate(&at.message(&PROTOCOL)?.need("error_matcher")?)
}

/// Depth is bounded by the front.
fn predicate(at: &At<'_>) -> Result<ErrorMatch> {
    let msg = at.message(&PREDICATE)?;
    if let Some(set) = msg.get("or_match") {
        return Ok(ErrorMatch::Or(rules(&set)?));
    }
    if let Some(set) = msg.get("and_match") {
        return Ok(ErrorMatch::And(rules(&set)?));
    }
    if let Some(inner) = msg.get("not_match") {
        return Ok(ErrorMatch::Not(Box::new(predicate(&inner)?)));
    }
    if let Some(any) = msg.get("any_match") {
        return if any.bool()? { Ok(ErrorMatch::Any) } else { Err(any.expected("true")) };
    }
    if let Some(headers) = msg.get("http_response_headers_match") {
        return Ok(ErrorMatch::Headers(header_matches(&headers.message(&HEADERS)?, "headers")?));
    }
    const UNSEEN: &str = "not used here: only the headers of answers are looked at, so this never matches";
    for name in ["http_request_headers_match", "http_request_trailers_match", "http_response_trailers_match"]
    {
        if let Some(headers) = msg.get(name) {
            header_matches(&headers.message(&HEADERS)?, "headers")?;
            headers.note(What::NotUsed, UNSEEN);
            return Ok(ErrorMatch::Never);
        }
    }
    for name in ["http_request_generic_body_match", "http_response_generic_body_match"] {
        if let Some(body) = msg.get(name) {
            let body_msg = body.message(&BODY)?;
            if body_msg.need("patterns")?.repeated().is_empty() {
                return Err(body.expected("at least one of `patterns`"));
            }
            body.note(What::NotUsed, UNSEEN);
            return Ok(ErrorMatch::Never);
        }
    }
    Err(at.expected(&format!("one of {}", PREDICATES.join(", "))))
}

fn rules(at: &At<'_>) -> Result<Vec<ErrorMatch>> {
    let list = at.message(&SET)?.repeated("rules", |item| predicate(&item))?;
    if list.len() < 2 {
        return Err(at.expected("at least two rules"));
    }
    Ok(list)
}
