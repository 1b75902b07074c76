//! Findings about one cluster: its limits, its detector, its balancing.

use super::Cluster;
use super::out::Out;
use nexthop_engine::spec::{ClusterKind, LocalityBalancing, OutlierSpec, PolicySpec, Protocol, Thresholds};
use std::collections::BTreeMap;

pub(super) fn cluster(cluster: &Cluster<'_>, out: &mut Out) {
    if cluster.spec.kind != ClusterKind::Hosts {
        return;
    }
    limits(cluster, out);
    if let Some(outlier) = &cluster.spec.outlier {
        ejection(cluster, outlier, out);
        thresholds(cluster, outlier, out);
        statistics(cluster, out);
    }
    weights(cluster, out);
    super::hosts::hosts(cluster, out);
    if cluster.hosts == Some(0) {
        out.note(
            "NX-029",
            cluster.marks.seen(&["load_assignment", "hosts"]),
            format!(
                "the cluster {} has no hosts: requests get 503 UH until code gives it some",
                cluster.spec.name
            ),
            "list its hosts, or give them with set_hosts",
        );
    }
}

/// An aggregate reads priorities of its own clusters only: those of clusters below them are not theirs.
pub(super) fn aggregate(cluster: &Cluster<'_>, all: &BTreeMap<&str, &Cluster<'_>>, out: &mut Out) {
    let ClusterKind::Aggregate(names) = &cluster.spec.kind else { return };
    for (at, name) in names.iter().enumerate() {
        let Some(sub) = all.get(name.as_str()).filter(|sub| sub.spec.kind != ClusterKind::Hosts) else {
            continue;
        };
        let effect = format!(
            "{name} gets no request from {}: {} has no priorities",
            cluster.spec.name,
            sub.spec.kind.article()
        );
        let paths = [
            format!("cluster_type.typed_config.clusters[{at}]"),
            format!("aggregate[{at}]"),
            "aggregate".to_owned(),
        ];
        let seen = cluster.marks.seen(&paths.each_ref().map(String::as_str));
        out.warn("NX-044", seen, effect, "list its clusters here, or make this a composite");
    }
}

/// A composite walks on when a cluster has no host to give, and a cluster in panic gives one.
pub(super) fn composite(cluster: &Cluster<'_>, all: &BTreeMap<&str, &Cluster<'_>>, out: &mut Out) {
    let ClusterKind::Composite(names) = &cluster.spec.kind else { return };
    for name in names.split_last().map_or(&[][..], |(_, before)| before) {
        let Some(sub) = all.get(name.as_str()).filter(|sub| sub.spec.kind == ClusterKind::Hosts) else {
            continue;
        };
        let judged = sub.spec.outlier.is_some() || !sub.spec.health_checks.is_empty();
        if judged && sub.spec.panic_threshold > 0 {
            let effect = format!(
                "{} does not walk past {name} when all its hosts are ejected or unhealthy: they get traffic in panic",
                cluster.spec.name
            );
            let paths = [
                "common_lb_config.healthy_panic_threshold",
                "panic",
                "outlier_detection",
                "outlier",
                "health_checks",
                "",
            ];
            out.note("NX-047", sub.marks.seen(&paths), effect, "set healthy_panic_threshold (panic) to 0");
        }
    }
}

fn limits(cluster: &Cluster<'_>, out: &mut Out) {
    let marks = cluster.marks;
    let written = |field: &str, short: &str| {
        (0..2).any(|at| marks.has(&format!("circuit_breakers.thresholds[{at}].{field}")))
            || marks.has(&format!("limits.{short}"))
    };
    let names = [
        ("max_connections", "connections"),
        ("max_pending_requests", "pending"),
        ("max_requests", "requests"),
        ("max_retries", "retries"),
    ];
    if names.iter().any(|(field, short)| written(field, short)) {
        out.note(
            "NX-017",
            marks.seen(&["circuit_breakers", "limits"]),
            "limits count per process: N worker processes allow N times the value",
            "divide the limits by the number of processes",
        );
    }
    for (at, thresholds) in cluster.spec.breakers.thresholds.iter().enumerate() {
        let path = |field: &str| format!("circuit_breakers.thresholds[{at}].{field}");
        if thresholds.retry_budget.is_some() && marks.has(&path("max_retries")) {
            out.warn(
                "NX-006",
                marks.seen(&[&path("max_retries")]),
                "max_retries does nothing: the retry budget takes its place",
                "remove one of the two",
            );
        }
        zeros(cluster, thresholds, at, out);
    }
    let first = &cluster.spec.breakers.thresholds[0];
    let http2 = cluster.spec.protocol == Protocol::Http2;
    let requests =
        first.max_requests != Thresholds::default().max_requests || written("max_requests", "requests");
    if http2 && !requests && written("max_connections", "connections") {
        out.warn(
            "NX-038",
            marks.seen(&["circuit_breakers.thresholds[0].max_connections", "limits.connections"]),
            "for HTTP/2 only max_requests limits requests: one connection carries many",
            "set max_requests",
        );
    }
}

fn zeros(cluster: &Cluster<'_>, thresholds: &Thresholds, at: usize, out: &mut Out) {
    let zero = [
        ("max_connections", "connections", thresholds.max_connections),
        ("max_requests", "requests", thresholds.max_requests),
    ];
    for (field, short, value) in zero {
        if value == 0 {
            let path = format!("circuit_breakers.thresholds[{at}].{field}");
            // A pool without any connection always gets one.
            let (effect, fix) = match field {
                "max_requests" => ("requests are refused with 503 UO", "set a limit above 0"),
                _ => (
                    "each host still gets one connection per worker, so it refuses nothing by itself",
                    "set max_requests to 0 to refuse all requests, else a limit above 0",
                ),
            };
            let seen = cluster.marks.seen(&[&path, &format!("limits.{short}")]);
            let effect = format!("{field} is 0: {effect}");
            out.warn("NX-042", seen, effect, &format!("{fix}, or leave it out for 1024"));
        }
    }
}

fn ejection(cluster: &Cluster<'_>, outlier: &OutlierSpec, out: &mut Out) {
    let marks = cluster.marks;
    let percent = u64::from(outlier.max_ejection_percent);
    let seen = || {
        marks.seen(&[
            "outlier_detection.max_ejection_percent",
            "outlier.max_percent",
            "outlier_detection",
            "outlier",
        ])
    };
    let Some(hosts) = cluster.hosts.filter(|hosts| *hosts > 0).map(|hosts| hosts as u64) else { return };
    let by_share = percent * hosts / 100;
    let most = if outlier.always_eject_one_host { by_share.max(1) } else { by_share };
    if most == 0 {
        let effect = format!("with {} and {percent} percent no host can ever be ejected", counted(hosts));
        let advice = format!(
            "set max_ejection_percent to at least {}, or always_eject_one_host",
            100u64.div_ceil(hosts)
        );
        return out.warn("NX-001", seen(), effect, &advice);
    }
    let panic = u64::from(cluster.spec.panic_threshold);
    if cluster.priorities == 1 {
        let ends = (1..=most.min(hosts)).find(|ejected| (hosts - ejected) * 100 / hosts < panic);
        if let Some(ejected) = ends {
            let healthy = (hosts - ejected) * 100 / hosts;
            let effect = format!(
                "when {ejected} of {hosts} hosts are ejected, {healthy} percent are healthy, below the panic threshold of \
                 {panic}: all hosts get traffic again and the ejection is without effect"
            );
            let advice = "lower healthy_panic_threshold (0 switches panic off) or max_ejection_percent";
            out.warn("NX-002", seen(), effect, advice);
        }
    }
    if most >= hosts && panic == 0 {
        out.note(
            "NX-035",
            seen(),
            "all hosts can be ejected at once, and then requests fail with 503 UH",
            "lower max_ejection_percent, or set healthy_panic_threshold",
        );
    }
}

fn thresholds(cluster: &Cluster<'_>, outlier: &OutlierSpec, out: &mut Out) {
    let marks = cluster.marks;
    let gateway = || {
        marks.seen(&["outlier_detection.consecutive_gateway_failure", "outlier.consecutive_gateway_failure"])
    };
    let given = marks.has("outlier_detection.consecutive_gateway_failure");
    let (enforced, five_xx) =
        (outlier.enforcing_consecutive_gateway_failure > 0, outlier.enforcing_consecutive_5xx > 0);
    if given && !enforced && outlier.consecutive_gateway_failure > 0 {
        out.warn(
            "NX-040",
            gateway(),
            "gateway failures are counted and never eject: enforcing_consecutive_gateway_failure is 0",
            "set enforcing_consecutive_gateway_failure to 100",
        );
    }
    if enforced
        && five_xx
        && outlier.consecutive_5xx > 0
        && outlier.consecutive_gateway_failure >= outlier.consecutive_5xx
    {
        let effect = format!(
            "the gateway threshold {} can never be reached first: the same answers count for the 5xx threshold {}",
            outlier.consecutive_gateway_failure, outlier.consecutive_5xx
        );
        out.warn("NX-039", gateway(), effect, "set it below consecutive_5xx");
    }
    if outlier.interval > outlier.base_ejection_time {
        out.note(
            "NX-034",
            marks.seen(&["outlier_detection.interval", "outlier.interval", "outlier.eject"]),
            "hosts come back only at interval ticks, so ejections last longer than asked",
            "set interval to at most base_ejection_time",
        );
    }
}

/// Detectors that compare hosts need enough of them.
fn statistics(cluster: &Cluster<'_>, out: &mut Out) {
    let marks = cluster.marks;
    let Some(hosts) = cluster.hosts.filter(|hosts| *hosts > 0) else { return };
    let kinds = [
        ("NX-003", "success rate", "success_rate", "enforcing_success_rate", "success_rate_minimum_hosts"),
        (
            "NX-004",
            "failure percentage",
            "failure_percentage",
            "enforcing_failure_percentage",
            "failure_percentage_minimum_hosts",
        ),
    ];
    for (code, words, prefix, enforcing, minimum) in kinds {
        let field = |name: &str| format!("outlier_detection.{name}");
        let enforced = marks.text(&field(enforcing));
        let asked = ["request_volume", "stdev_factor", "threshold", "minimum_hosts"];
        let asked = asked.iter().map(|part| field(&format!("{prefix}_{part}"))).find(|path| marks.has(path));
        let asked = if enforced.is_some() { Some(field(enforcing)) } else { asked };
        let Some(asked) = asked.filter(|_| enforced != Some("0")) else { continue };
        let least: usize = marks.text(&field(minimum)).and_then(|text| text.parse().ok()).unwrap_or(5);
        if hosts < least {
            let effect =
                format!("{words} detection does nothing with {}: it needs {least}", counted(hosts as u64));
            let advice = format!("set {minimum} to at most {hosts}, or use the consecutive detectors");
            out.warn(code, marks.seen(&[&field(minimum), &asked]), effect, &advice);
        }
    }
}

fn weights(cluster: &Cluster<'_>, out: &mut Out) {
    let spec = cluster.spec;
    let marks = cluster.marks;
    let policy = || marks.seen(&["lb_policy", "load_balancing_policy", "policy"]);
    let hosts = || spec.endpoints.localities.iter().flat_map(|group| &group.endpoints);
    let first = hosts().next().map_or(1, |host| host.weight);
    if matches!(spec.policy.chooser(), PolicySpec::Random { .. }) && hosts().any(|host| host.weight != first)
    {
        let effect = "the random policy ignores the weights of hosts: all get the same share";
        out.warn("NX-036", policy(), effect, "use round_robin or least_request");
    }
    let weighted = match &spec.policy {
        PolicySpec::RoundRobin { locality, .. }
        | PolicySpec::LeastRequest { locality, .. }
        | PolicySpec::Random { locality, .. } => *locality == LocalityBalancing::Weighted,
        PolicySpec::RingHash { locality_weighted, .. } | PolicySpec::Maglev { locality_weighted, .. } => {
            *locality_weighted
        }
        _ => true,
    };
    let shares: std::collections::BTreeSet<u32> =
        spec.endpoints.localities.iter().filter_map(|group| group.weight).collect();
    if !weighted && shares.len() > 1 {
        let effect = "the weights of localities are ignored: the policy does not ask for them";
        out.warn("NX-037", policy(), effect, "set common_lb_config.locality_weighted_lb_config");
    }
}

/// A number of hosts in words.
fn counted(hosts: u64) -> String {
    if hosts == 1 { "1 host".to_owned() } else { format!("{hosts} hosts") }
}
