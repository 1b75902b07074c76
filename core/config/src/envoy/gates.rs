//! `AdmissionControl` and `AdaptiveConcurrency`.

use super::policy::percent;
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use nexthop_engine::spec::{AdmissionSpec, ConcurrencySpec, MinRtt, Switch, Tunable};

const ADMISSION: Fields = Fields::of(
    "AdmissionControl",
    &[
        "enabled",
        "success_criteria",
        "sampling_window",
        "aggression",
        "sr_threshold",
        "rps_threshold",
        "max_rejection_probability",
    ],
);
/// The same in a cluster's block.
const OWN_ADMISSION: Fields = ADMISSION.extended("admission", &["dry_run"]);
const CRITERIA: Fields = Fields::of("SuccessCriteria", &["http_criteria", "grpc_criteria"]);
const HTTP: Fields = Fields::of("HttpCriteria", &["http_success_status"]);
const RANGE: Fields = Fields::of("Int32Range", &["start", "end"]);
const GRPC: Fields = Fields::of("GrpcCriteria", &["grpc_success_status"]);
/// A number, flag or percentage that a runtime value may replace.
const RUNTIME: Fields = Fields::of("a value with a runtime key", &["default_value", "runtime_key"]);

const CONCURRENCY: Fields = Fields::of(
    "AdaptiveConcurrency",
    &["gradient_controller_config", "enabled", "concurrency_limit_exceeded_status"],
);
/// The same in a cluster's block.
const OWN_CONCURRENCY: Fields = CONCURRENCY.extended("concurrency", &["dry_run"]);
const GRADIENT: Fields = Fields::of(
    "GradientControllerConfig",
    &["sample_aggregate_percentile", "concurrency_limit_params", "min_rtt_calc_params"],
);
const LIMITS: Fields = Fields::of(
    "ConcurrencyLimitCalculationParams",
    &["max_concurrency_limit", "concurrency_update_interval", "min_concurrency_limit"],
);
const MIN_RTT: Fields = Fields::of(
    "MinimumRTTCalculationParams",
    &["interval", "request_count", "jitter", "min_concurrency", "buffer", "fixed_value"],
);
const STATUS: Fields = Fields::of("HttpStatus", &["code"]);

/// Words of `StatusCode`, which are all the codes that it knows.
const CODES: &[(&str, i32)] = &[
    ("Continue", 100),
    ("OK", 200),
    ("Created", 201),
    ("Accepted", 202),
    ("NonAuthoritativeInformation", 203),
    ("NoContent", 204),
    ("ResetContent", 205),
    ("PartialContent", 206),
    ("MultiStatus", 207),
    ("AlreadyReported", 208),
    ("IMUsed", 226),
    ("MultipleChoices", 300),
    ("MovedPermanently", 301),
    ("Found", 302),
    ("SeeOther", 303),
    ("NotModified", 304),
    ("UseProxy", 305),
    ("TemporaryRedirect", 307),
    ("PermanentRedirect", 308),
    ("BadRequest", 400),
    ("Unauthorized", 401),
    ("PaymentRequired", 402),
    ("Forbidden", 403),
    ("NotFound", 404),
    ("MethodNotAllowed", 405),
    ("NotAcceptable", 406),
    ("ProxyAuthenticationRequired", 407),
    ("RequestTimeout", 408),
    ("Conflict", 409),
    ("Gone", 410),
    ("LengthRequired", 411),
    ("PreconditionFailed", 412),
    ("PayloadTooLarge", 413),
    ("URITooLong", 414),
    ("UnsupportedMediaType", 415),
    ("RangeNotSatisfiable", 416),
    ("ExpectationFailed", 417),
    ("MisdirectedRequest", 421),
    ("UnprocessableEntity", 422),
    ("Locked", 423),
    ("FailedDependency", 424),
    ("UpgradeRequired", 426),
    ("PreconditionRequired", 428),
    ("TooManyRequests", 429),
    ("RequestHeaderFieldsTooLarge", 431),
    ("InternalServerError", 500),
    ("NotImplemented", 501),
    ("BadGateway", 502),
    ("ServiceUnavailable", 503),
    ("GatewayTimeout", 504),
    ("HTTPVersionNotSupported", 505),
    ("VariantAlsoNegotiates", 506),
    ("InsufficientStorage", 507),
    ("LoopDetected", 508),
    ("NotExtended", 510),
    ("NetworkAuthenticationRequired", 511),
];

/// Reads admission control. `filter`: an HTTP filter, which must say what a success is, and is never in a dry run.
pub(crate) fn admission(at: &At<'_>, filter: bool) -> Result<AdmissionSpec> {
    let msg = at.message(if filter { &ADMISSION } else { &OWN_ADMISSION })?;
    let mut spec =
        AdmissionSpec { enabled: msg.or("enabled", Switch::default(), switch)?, ..AdmissionSpec::default() };
    spec.dry_run = !filter && msg.or("dry_run", false, |flag| flag.bool())?;
    if filter {
        msg.need("success_criteria")?;
    }
    if let Some(criteria) = msg.get("success_criteria") {
        let criteria = criteria.message(&CRITERIA)?;
        spec.http_success = criteria.map("http_criteria", http_success)?;
        spec.grpc_success = criteria.or("grpc_criteria", spec.grpc_success, grpc_success)?;
    }
    spec.sampling_window = msg.or("sampling_window", spec.sampling_window, |d| d.duration())?;
    spec.aggression = msg.or("aggression", spec.aggression, |at| tunable(at, |value| value.f64()))?;
    spec.rps_threshold =
        msg.or("rps_threshold", spec.rps_threshold, |at| tunable(at, |value| value.u32().map(f64::from)))?;
    let percentage = |at: &At<'_>| tunable(at, |value| percent(value, 100.0));
    spec.max_rejection_probability =
        msg.or("max_rejection_probability", spec.max_rejection_probability, percentage)?;
    if let Some(threshold) = msg.get("sr_threshold") {
        spec.sr_threshold = percentage(&threshold)?;
        if spec.sr_threshold.value < 1.0 {
            return Err(threshold.expected("a default of at least 1 %"));
        }
    }
    Ok(spec)
}

fn http_success(at: &At<'_>) -> Result<Vec<(u16, u16)>> {
    let ranges = at.message(&HTTP)?.repeated("http_success_status", |item| {
        let range = item.message(&RANGE)?;
        let bound = |name| range.or(name, 0, |n| n.i64());
        let (start, end) = (bound("start")?, bound("end")?);
        if !(100..600).contains(&start) || !(start..=600).contains(&end) {
            return Err(item.expected("a range of statuses, 100 <= start <= end <= 600, start below 600"));
        }
        Ok((start as u16, end as u16))
    })?;
    if ranges.is_empty() {
        return Err(at.expected("at least one range in `http_success_status`"));
    }
    Ok(ranges)
}

fn grpc_success(at: &At<'_>) -> Result<Vec<u8>> {
    let codes = at.message(&GRPC)?.repeated("grpc_success_status", |item| Ok(item.u32_in(0, 16)? as u8))?;
    if codes.is_empty() {
        return Err(at.expected("at least one code in `grpc_success_status`"));
    }
    Ok(codes)
}

fn switch(at: &At<'_>) -> Result<Switch> {
    let msg = at.message(&RUNTIME)?;
    Ok(Switch {
        on: msg.need("default_value")?.bool()?,
        key: msg.or("runtime_key", String::new(), |key| key.text())?,
    })
}

fn tunable(at: &At<'_>, value: impl FnOnce(&At<'_>) -> Result<f64>) -> Result<Tunable> {
    let msg = at.message(&RUNTIME)?;
    Ok(Tunable {
        value: msg.or("default_value", 0.0, value)?,
        key: msg.or("runtime_key", String::new(), |key| key.text())?,
    })
}

/// Reads adaptive concurrency. `filter`: an HTTP filter, which is never in a dry run.
pub(crate) fn concurrency(at: &At<'_>, filter: bool) -> Result<ConcurrencySpec> {
    let msg = at.message(if filter { &CONCURRENCY } else { &OWN_CONCURRENCY })?;
    let controller = msg.need("gradient_controller_config")?;
    let gradient = controller.message(&GRADIENT)?;
    let limits = gradient.need("concurrency_limit_params")?.message(&LIMITS)?;
    let measure = gradient.need("min_rtt_calc_params")?.message(&MIN_RTT)?;
    let update = limits.need("concurrency_update_interval")?.positive_millis()?;
    let mut spec = ConcurrencySpec::new(update, min_rtt(&measure)?);
    spec.enabled = msg.or("enabled", spec.enabled, switch)?;
    spec.dry_run = !filter && msg.or("dry_run", false, |flag| flag.bool())?;
    if let Some(status) = msg.get("concurrency_limit_exceeded_status") {
        let code = status.message(&STATUS)?.need("code")?.enumeration(CODES)?;
        // A refusal is an error, whatever is written.
        spec.exceeded_status = if code < 400 { 503 } else { code as u16 };
    }
    let percentage = |msg: &Msg<'_>, name, default| msg.or(name, default, |at| percent(at, 100.0));
    let count = |msg: &Msg<'_>, name, default| msg.or(name, default, |at| at.u32_in(1, u32::MAX));
    spec.percentile = percentage(&gradient, "sample_aggregate_percentile", spec.percentile)?;
    spec.max_limit = count(&limits, "max_concurrency_limit", spec.max_limit)?;
    spec.min_limit = limits.map("min_concurrency_limit", |at| at.u32_in(1, u32::MAX))?;
    spec.request_count = count(&measure, "request_count", spec.request_count)?;
    spec.jitter = percentage(&measure, "jitter", spec.jitter)?;
    spec.min_concurrency = count(&measure, "min_concurrency", spec.min_concurrency)?;
    spec.buffer = percentage(&measure, "buffer", spec.buffer)?;
    Ok(spec)
}

/// A value given in whole milliseconds counts before any measuring.
fn min_rtt(msg: &Msg<'_>) -> Result<MinRtt> {
    let interval = msg.map("interval", |at| match at.millis()? {
        every if every.is_zero() => Err(at.expected("at least 1 ms")),
        every => Ok(every),
    })?;
    let fixed = msg.map("fixed_value", |at| {
        at.positive_duration()?;
        at.millis()
    })?;
    match (fixed.filter(|fixed| !fixed.is_zero()), interval) {
        (Some(fixed), _) => Ok(MinRtt::Fixed(fixed)),
        (None, Some(every)) => Ok(MinRtt::Measured(every)),
        (None, None) => Err(msg.at.expected("`interval`, or a `fixed_value` of at least 1 ms")),
    }
}
