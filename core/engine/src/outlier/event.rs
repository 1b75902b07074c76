//! The outlier event log: Envoy's JSON lines (`spec/outlier-detection.md` section 14).

use super::Kind;
use crate::events::{Json, timestamp};

/// One line to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) event: Event,
    pub(crate) num_ejections: u32,
    pub(crate) enforced: bool,
    /// Whole seconds since the opposite action.
    pub(crate) secs_since_last_action: Option<u64>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// With the rates that led to it.
    Eject(Kind, Rates),
    Uneject,
}

/// Success rates in percent, -1 = not computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    pub(crate) host: f64,
    pub(crate) average: f64,
    pub(crate) threshold: f64,
}

impl Rates {
    pub(crate) const NONE: Self = Self { host: -1.0, average: -1.0, threshold: -1.0 };
}

/// The line of a record.
pub(crate) fn line(record: &Record, cluster: &str, address: &str, unix_nanos: u64) -> String {
    // Envoy writes every un-ejection as CONSECUTIVE_5XX, not enforced.
    let (kind, action) = match record.event {
        Event::Eject(kind, _) => (kind, "EJECT"),
        Event::Uneject => (Kind::Consecutive5xx, "UNEJECT"),
    };
    let mut json = Json::new().text("type", kind.name()).text("timestamp", &timestamp(unix_nanos));
    if let Some(seconds) = record.secs_since_last_action {
        json = json.text("secs_since_last_action", &seconds.to_string());
    }
    json = json
        .text("cluster_name", cluster)
        .text("upstream_url", address)
        .text("action", action)
        .raw("num_ejections", record.num_ejections)
        .raw("enforced", record.enforced);
    let Event::Eject(kind, rates) = record.event else { return json.end() };
    // Rates are cut to whole percents.
    let whole = |rate: f64| rate as u32;
    let json = match kind {
        Kind::SuccessRate | Kind::LocalOriginSuccessRate => json.raw(
            "eject_success_rate_event",
            Json::new()
                .raw("host_success_rate", whole(rates.host))
                .raw("cluster_average_success_rate", whole(rates.average))
                .raw("cluster_success_rate_ejection_threshold", whole(rates.threshold))
                .end(),
        ),
        Kind::FailurePercentage | Kind::LocalOriginFailurePercentage => json.raw(
            "eject_failure_percentage_event",
            Json::new().raw("host_success_rate", whole(rates.host)).end(),
        ),
        _ => json.raw("eject_consecutive_event", "{}"),
    };
    json.end()
}
