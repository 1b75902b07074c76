//! The event log of active checks: Envoy's `HealthCheckEvent` as JSON lines (`spec/breakers-and-health.md` B6). A
//! host's metadata is left out.

use super::CheckResult;
use super::board::Applied;
use crate::events::{Json, timestamp};
use crate::hosts::{HostInfo, flag};
use crate::spec::Probe;

/// One line to be.
enum Line {
    Eject,
    AddHealthy,
    Failure,
    Degraded,
    NoLongerDegraded,
    Success,
}

/// The lines of a result, in order. `status`: of the answer, 0 without one.
pub(super) fn lines(applied: &Applied, info: &HostInfo, status: u16, unix_nanos: u64) -> Vec<String> {
    let spec = &applied.checkers[applied.checker];
    let (before, after) = applied.flags;
    let came = |bit: u32| before & bit == 0 && after & bit != 0;
    let went = |bit: u32| before & bit != 0 && after & bit == 0;
    let mut list = Vec::new();
    if came(flag::FAILED_ACTIVE_HC) {
        list.push(Line::Eject);
    }
    if went(flag::FAILED_ACTIVE_HC) {
        list.push(Line::AddHealthy);
    } else if applied.result.passed() && spec.always_log_success {
        list.push(Line::Success);
    }
    if !applied.result.passed() && (applied.first || spec.always_log_failures) {
        list.push(Line::Failure);
    }
    if came(flag::DEGRADED_ACTIVE_HC) {
        list.push(Line::Degraded);
    }
    if went(flag::DEGRADED_ACTIVE_HC) {
        list.push(Line::NoLongerDegraded);
    }
    list.iter().map(|which| line(which, applied, info, status, unix_nanos)).collect()
}

/// Envoy writes the fields by their numbers, so the event stands before or after the time.
fn line(which: &Line, applied: &Applied, info: &HostInfo, status: u16, unix_nanos: u64) -> String {
    let failure = || Json::new().text("failure_type", failure(applied.result));
    let first = applied.first;
    let mut json = Json::new()
        .text("health_checker_type", kind(&applied.checkers[applied.checker].probe))
        .raw("host", host(info))
        .text("cluster_name", &info.cluster);
    json = match which {
        Line::Eject => json.raw("eject_unhealthy_event", failure().raw("http_status_code", status).end()),
        Line::AddHealthy => json.raw("add_healthy_event", Json::new().raw("first_check", first).end()),
        _ => json,
    };
    json = json.text("timestamp", &timestamp(unix_nanos));
    json = match which {
        Line::Failure => json.raw(
            "health_check_failure_event",
            failure().raw("first_check", first).raw("http_status_code", status).end(),
        ),
        Line::Degraded => json.raw("degraded_healthy_host", "{}"),
        Line::NoLongerDegraded => json.raw("no_longer_degraded_host", "{}"),
        _ => json,
    };
    let locality = Json::new()
        .text("region", &info.locality.region)
        .text("zone", &info.locality.zone)
        .text("sub_zone", &info.locality.sub_zone);
    json = json.raw("locality", locality.end());
    if matches!(which, Line::Success) {
        json = json.raw("successful_health_check_event", "{}");
    }
    json.end()
}

fn kind(probe: &Probe) -> &'static str {
    match probe {
        Probe::Http(_) => "HTTP",
        Probe::Tcp { .. } => "TCP",
        Probe::Grpc { .. } => "GRPC",
        Probe::Custom { name } => match name.rsplit('.').next() {
            Some("redis") => "REDIS",
            Some("thrift") => "THRIFT",
            Some("udp") => "UDP",
            _ => "DYNAMIC_MODULE",
        },
    }
}

fn failure(result: CheckResult) -> &'static str {
    match result {
        CheckResult::Success { .. } | CheckResult::Failed { .. } => "ACTIVE",
        CheckResult::Passive => "PASSIVE",
        CheckResult::Network => "NETWORK",
        CheckResult::Timeout => "NETWORK_TIMEOUT",
    }
}

fn host(info: &HostInfo) -> String {
    if info.port == 0 {
        let pipe = Json::new().text("path", &info.address).raw("mode", 0);
        return Json::new().raw("pipe", pipe.end()).end();
    }
    let name = info.address.rsplit_once(':').map_or(&*info.address, |(name, _)| name);
    let socket = Json::new()
        .text("protocol", "TCP")
        .text("address", name.trim_start_matches('[').trim_end_matches(']'))
        .raw("port_value", info.port)
        .text("resolver_name", "")
        .raw("ipv4_compat", false)
        .text("network_namespace_filepath", "");
    Json::new().raw("socket_address", socket.end()).end()
}
