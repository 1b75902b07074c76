//! Findings about a retry policy and the clusters it leads to.

use super::out::Out;
use super::{Cluster, Way};
use nexthop_engine::spec::{ClusterKind, ClusterSource, PolicySpec, RetryOn, RetrySpec, RoutingPriority};
use std::time::Duration;

/// Findings about the way of a request: route or cluster settings, and where they lead.
pub(super) fn way(way: &Way<'_>, clusters: &[&Cluster<'_>], out: &mut Out) {
    let active = way.retry.filter(|retry| !retry.on.is_empty() && retry.num_retries > 0);
    if let Some(retry) = way.retry {
        conditions(way, retry, out);
    }
    groups(way, out);
    if let Some(retry) = active {
        times(way, retry, out);
        hosts(way, retry, clusters, out);
        reset_headers(way, out);
        if retry.on.has(RetryOn::FIVE_XX)
            || retry.on.has(RetryOn::GATEWAY_ERROR)
            || retry.on.has(RetryOn::RESET)
        {
            out.note(
                "NX-027",
                way.seen(&["retry_policy.retry_on", "retry.on"]),
                "requests may be repeated that the server already acted on",
                "keep such conditions to requests that may run twice",
            );
        }
    }
    connecting(way, active, clusters, out);
    for cluster in clusters {
        if let ClusterKind::Composite(names) = &cluster.spec.kind {
            composite(way, active, cluster, names.len(), out);
        }
        if way.forward.priority == RoutingPriority::High
            && cluster.marks.has("circuit_breakers.thresholds")
            && !(0..4).any(|at| {
                let path = format!("circuit_breakers.thresholds[{at}].priority");
                cluster.marks.text(&path).is_some_and(|word| word.eq_ignore_ascii_case("HIGH") || word == "1")
            })
        {
            let effect =
                format!("the limits of {} do not hold for priority HIGH: 1024 and 3 act", cluster.spec.name);
            let advice = "add thresholds with `priority: HIGH` to the cluster";
            out.warn("NX-019", way.seen(&["priority"]), effect, advice);
        }
        hashing(way, active, cluster, out);
    }
}

fn conditions(way: &Way<'_>, retry: &RetrySpec, out: &mut Out) {
    let at = |field: &str| way.seen(&[&format!("retry_policy.{field}"), "retry_policy", "retry.on"]);
    if retry.on.is_empty() {
        let effect = "nothing is ever retried: the retry policy has no condition";
        out.warn("NX-024", at("retry_on"), effect, "set retry_on");
    }
    let by_code = retry.on.has(RetryOn::RETRIABLE_STATUS_CODES);
    if !retry.retriable_status_codes.is_empty() && !by_code {
        let effect = "the status codes do nothing: retry_on has no retriable-status-codes";
        out.warn("NX-025", at("retriable_status_codes"), effect, "add it to retry_on");
    }
    if by_code && retry.retriable_status_codes.is_empty() {
        let effect = "retriable-status-codes retries nothing by itself: there are no codes";
        out.note("NX-026", at("retry_on"), effect, "list retriable_status_codes");
    }
    if !retry.retriable_headers.is_empty() && !retry.on.has(RetryOn::RETRIABLE_HEADERS) {
        let effect = "the headers do nothing: retry_on has no retriable-headers";
        out.warn("NX-025", at("retriable_headers"), effect, "add it to retry_on");
    }
}

fn times(way: &Way<'_>, retry: &RetrySpec, out: &mut Out) {
    let (timeout, per_try) = (way.forward.timeout, retry.per_try_timeout);
    let tries = u32::saturating_add(retry.num_retries, 1);
    let seen = || way.seen(&["retry_policy.per_try_timeout", "retry.per_try", "retry_policy", "retry"]);
    if timeout.is_zero() {
        if per_try.is_zero() {
            let effect =
                "a try that hangs is never given up, so it is never retried: there is no time-out at all";
            out.warn(
                "NX-020",
                way.seen(&["timeout", "retry_policy", "retry"]),
                effect,
                "set per_try_timeout",
            );
        }
        return;
    }
    if per_try.is_zero() {
        let effect = format!("one slow try uses up the whole {timeout:?}, and nothing is left for a retry");
        out.note("NX-014", seen(), effect, "set per_try_timeout");
    } else if per_try >= timeout {
        let effect = format!("the request ends after {timeout:?}, before the first retry of a slow try");
        out.warn("NX-012", seen(), effect, "set per_try_timeout well below timeout");
    } else if per_try.saturating_mul(tries) > timeout {
        let effect = format!("not every try fits: {tries} tries of {per_try:?} take longer than {timeout:?}");
        out.note("NX-013", seen(), effect, "lower per_try_timeout or num_retries, or raise timeout");
    }
}

fn connecting(way: &Way<'_>, active: Option<&RetrySpec>, clusters: &[&Cluster<'_>], out: &mut Out) {
    let per_try = active.map(|retry| retry.per_try_timeout).filter(|limit| !limit.is_zero());
    let timeout = Some(way.forward.timeout).filter(|limit| !limit.is_zero());
    let Some(limit) = per_try.or(timeout) else { return };
    let connect: Option<Duration> = clusters
        .iter()
        .filter(|cluster| cluster.spec.kind == ClusterKind::Hosts)
        .map(|cluster| cluster.spec.connect_timeout)
        .max();
    if let Some(connect) = connect.filter(|connect| *connect >= limit) {
        let seen = way.seen(&["retry_policy.per_try_timeout", "retry.per_try", "timeout"]);
        let effect =
            format!("a dead host costs the entire try: connecting may take {connect:?}, a try {limit:?}");
        out.note("NX-015", seen, effect, "set connect_timeout below the time of a try");
    }
}

/// Groups of clusters that no attempt ever reaches.
fn groups(way: &Way<'_>, out: &mut Out) {
    let ClusterSource::Groups(groups) = &way.forward.cluster else { return };
    let unused = groups.list.len() > 1 && !way.retry.is_some_and(|retry| retry.refresh_cluster_on_retry);
    if unused {
        let seen = way.seen(&["inline_cluster_specifier_plugin", "cluster_specifier_plugin", ""]);
        let effect = "every attempt stays with the first priority group: nothing asks for a cluster again";
        out.warn("NX-045", seen, effect, "set refresh_cluster_on_retry in the retry policy");
    }
}

/// How tried hosts are avoided.
fn hosts(way: &Way<'_>, retry: &RetrySpec, clusters: &[&Cluster<'_>], out: &mut Out) {
    for cluster in clusters.iter().filter(|cluster| cluster.spec.kind == ClusterKind::Hosts) {
        let name = &cluster.spec.name;
        let limits = &cluster.spec.breakers.thresholds[way.forward.priority as usize];
        let given = |at: usize| cluster.marks.has(&format!("circuit_breakers.thresholds[{at}].max_retries"));
        if limits.retry_budget.is_none() && limits.max_retries == 3 && !given(0) && !given(1) {
            let effect = format!("at most 3 retries to {name} run at a time; more are given up with flag UO");
            let advice = "set max_retries (limits: retries) or a retry_budget";
            if !cluster.marks.has("limits.retries") {
                out.note("NX-018", way.seen(&["retry_policy", "retry"]), effect, advice);
            }
        }
        if cluster.hosts == Some(0) {
            let effect = format!("{name} has no host, and what finds no host is not tried again");
            out.warn(
                "NX-046",
                way.seen(&["retry_policy", "retry"]),
                effect,
                "give it hosts, by document or code",
            );
        }
        let Some(hosts) = cluster.hosts.filter(|hosts| *hosts > 0 && retry.previous_hosts) else { continue };
        let seen = || {
            way.seen(&[
                "retry_policy.host_selection_retry_max_attempts",
                "retry_policy.retry_host_predicate",
                "retry.avoid_tried",
            ])
        };
        if hosts == 1 {
            let effect = format!("{name} has one host: retries go to it although it was tried");
            out.warn("NX-007", seen(), effect, "add a host, or leave the predicate out");
            continue;
        }
        let drawn =
            matches!(cluster.spec.policy, PolicySpec::Random { .. } | PolicySpec::LeastRequest { .. });
        let draws = retry.host_selection_retry_max_attempts.max(1).saturating_add(1);
        let again = 100.0 * (1.0 / hosts as f64).powi(i32::try_from(draws).unwrap_or(i32::MAX));
        if drawn && again > 1.0 && !cluster.spec.exclude_tried {
            let enough = (2..).find(|n| 100.0 * (1.0 / hosts as f64).powi(*n) <= 1.0).unwrap_or(7);
            let effect = format!(
                "about {again:.0} percent of the first retries to {name} go to the tried host again: {draws} draws among \
                 {hosts} hosts"
            );
            let advice = format!("set host_selection_retry_max_attempts to at least {}", enough - 1);
            out.warn("NX-008", seen(), effect, &advice);
        }
    }
}

fn hashing(way: &Way<'_>, active: Option<&RetrySpec>, cluster: &Cluster<'_>, out: &mut Out) {
    let spec = cluster.spec;
    if !spec.policy.is_by_hash() {
        return;
    }
    let name = &spec.name;
    let own = spec.policy.hashing().is_some_and(|hashing| !hashing.hash_policy.is_empty());
    if !own && spec.hash_policy.is_empty() && way.forward.hash_policy.is_empty() {
        let effect = format!("{name} hashes without a hash policy: each request goes to a random host");
        return out.warn("NX-011", way.seen(&["cluster", ""]), effect, "add hash_policy to the route");
    }
    let Some(retry) = active else { return };
    let seen = way.seen(&["retry_policy", "retry"]);
    if retry.previous_hosts || spec.exclude_tried {
        let effect = format!("a retry to {name} leaves the host that its key belongs to");
        out.note("NX-010", seen, effect, "remove previous_hosts if the host matters more than the retry");
    } else {
        let effect = format!(
            "each retry to {name} goes to the same host: the hash decides, tried hosts are not avoided"
        );
        out.warn("NX-009", seen, effect, "add the host predicate previous_hosts");
    }
}

fn composite(way: &Way<'_>, active: Option<&RetrySpec>, cluster: &Cluster<'_>, length: usize, out: &mut Out) {
    let tries = active.map_or(1, |retry| u64::from(retry.num_retries) + 1);
    let length = length as u64;
    let seen = way.seen(&["retry_policy.num_retries", "retry.times", "retry_policy", "retry", "cluster"]);
    let name = &cluster.spec.name;
    if tries < length {
        let effect = format!("only the first {tries} of the {length} clusters of {name} are ever used");
        out.warn("NX-016", seen, effect, &format!("set num_retries to {}", length - 1));
    } else if tries > length {
        let effect = format!("attempts after the {length}. to {name} find no cluster: the answer is 503 UH");
        out.warn("NX-016", seen, effect, &format!("set num_retries to {}", length - 1));
    }
}

/// A reset header beyond the maximum is not honoured at all.
fn reset_headers(way: &Way<'_>, out: &mut Out) {
    let path = "retry_policy.rate_limited_retry_back_off";
    if !way.has(path) {
        return;
    }
    let maximum = way.text(&format!("{path}.max_interval")).unwrap_or("300s").to_owned();
    out.note(
        "NX-023",
        way.seen(&[&format!("{path}.max_interval"), path]),
        format!("a Retry-After above {maximum} is dropped: the retry comes after the usual back-off, much too early"),
        "raise max_interval",
    );
}
