//! The outlier event log: Envoy's JSON lines (`spec/outlier-detection.md` section 14).

use crate::events::{Json, timestamp};

/// Which detector fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Consecutive5xx,
    ConsecutiveGatewayFailure,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Consecutive5xx => "CONSECUTIVE_5XX",
            Self::ConsecutiveGatewayFailure => "CONSECUTIVE_GATEWAY_FAILURE",
        }
    }
}

/// One line to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// `None` = un-ejection.
    pub(crate) eject: Option<Kind>,
    pub(crate) num_ejections: u32,
    pub(crate) enforced: bool,
    pub(crate) secs_since_last_action: Option<u64>,
}

impl Record {
    pub(crate) fn eject(kind: Kind, num_ejections: u32, enforced: bool, since: Option<u64>) -> Self {
        Self { eject: Some(kind), num_ejections, enforced, secs_since_last_action: since }
    }

    /// Envoy writes every un-ejection as CONSECUTIVE_5XX, not enforced.
    pub(crate) fn uneject(num_ejections: u32, since: Option<u64>) -> Self {
        Self { eject: None, num_ejections, enforced: false, secs_since_last_action: since }
    }
}

/// The line of a record.
pub(crate) fn line(record: &Record, cluster: &str, address: &str, unix_nanos: u64) -> String {
    let kind = record.eject.unwrap_or(Kind::Consecutive5xx);
    let mut json = Json::new().text("type", kind.name()).text("timestamp", &timestamp(unix_nanos));
    if let Some(seconds) = record.secs_since_last_action {
        json = json.text("secs_since_last_action", &seconds.to_string());
    }
    json = json
        .text("cluster_name", cluster)
        .text("upstream_url", address)
        .text("action", if record.eject.is_some() { "EJECT" } else { "UNEJECT" })
        .raw("num_ejections", record.num_ejections)
        .raw("enforced", record.enforced);
    if record.eject.is_some() {
        json = json.raw("eject_consecutive_event", "{}");
    }
    json.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_as_envoy_writes_them() {
        let eject = Record::eject(Kind::Consecutive5xx, 1, true, None);
        assert_eq!(
            line(&eject, "fake_cluster", "10.0.0.1:443", 1_545_123_600_000_000_000),
            "{\"type\":\"CONSECUTIVE_5XX\",\"timestamp\":\"2018-12-18T09:00:00.000Z\",\"cluster_name\":\"fake_cluster\",\
             \"upstream_url\":\"10.0.0.1:443\",\"action\":\"EJECT\",\"num_ejections\":1,\"enforced\":true,\
             \"eject_consecutive_event\":{}}"
        );
        let back = Record::uneject(1, Some(30));
        assert_eq!(
            line(&back, "c", "h", 0),
            "{\"type\":\"CONSECUTIVE_5XX\",\"timestamp\":\"1970-01-01T00:00:00.000Z\",\
             \"secs_since_last_action\":\"30\",\"cluster_name\":\"c\",\"upstream_url\":\"h\",\"action\":\"UNEJECT\",\
             \"num_ejections\":1,\"enforced\":false}"
        );
    }
}
