//! What is legal in routes and probably not meant (`spec/istio-destination-rule.md` section 13).

use super::retry::{Retry, conditions};
use super::route::{Action, Destination, HttpRoute};
use super::route_form::Routing;
use super::rule::find;
use super::translation::View;
use crate::lint::Out;
use std::time::Duration;

/// Findings about one HTTP route.
pub(super) fn route(route: &HttpRoute, routing: &Routing<'_>, views: &[View<'_>], out: &mut Out) {
    let Action::Route(destinations) = &route.action else { return };
    let retry = route.retries.as_ref().or(routing.mesh.retry.as_ref());
    // Of several destinations those without weight are left out.
    for to in destinations.iter().filter(|to| to.weight > 0 || destinations.len() == 1) {
        subset(to, routing, out);
    }
    hashing(destinations, retry, routing, out);
    if route.retries.is_none() && routing.mesh.retry.is_none() {
        let effect = "two retries happen all the same: Istio's default retry policy acts";
        out.note("VS-010", &route.seen, effect, "write `retries: {attempts: 0}` for none");
    }
    if let Some(retry) = retry.filter(|retry| retry.attempts > 0) {
        repeated(retry, out);
        times(route, retry, out);
        bounds(destinations, retry, routing, views, out);
        if let Some(fault) = route.fault.as_ref().filter(|_| route.retries.is_some()) {
            out.warn(
                "VS-012",
                fault,
                "injected aborts are not retried",
                "test retries with a backend that fails",
            );
        }
    }
    let per_try = retry.filter(|retry| retry.attempts > 0).and_then(|retry| retry.per_try);
    let timeout = route.timeout.as_ref().map(|(timeout, _)| *timeout);
    if let Some(limit) = per_try.or(timeout) {
        let connect = destinations
            .iter()
            .filter_map(|to| view(to, routing, views))
            .map(|view| {
                let pool = view.effective.blocks.pool.as_ref();
                let own = pool.and_then(|pool| pool.connect_timeout);
                own.or(routing.mesh.connect_timeout).unwrap_or(Duration::from_secs(10))
            })
            .max();
        if let Some(connect) = connect.filter(|connect| *connect > limit) {
            let seen = match (per_try, retry, &route.timeout) {
                (Some(_), Some(retry), _) => retry.block.seen("perTryTimeout"),
                (_, _, Some((_, seen))) => seen,
                _ => &route.seen,
            };
            let effect =
                format!("a dead host costs the entire try: connecting may take {connect:?}, a try {limit:?}");
            out.note("VS-009", seen, effect, "set connectionPool.tcp.connectTimeout below the time of a try");
        }
    }
}

fn view<'a, 'b>(to: &Destination, routing: &Routing<'_>, views: &'b [View<'a>]) -> Option<&'b View<'a>> {
    let name = routing.cluster_of(to);
    views.iter().find(|view| view.name == name)
}

fn subset(to: &Destination, routing: &Routing<'_>, out: &mut Out) {
    if to.subset.is_empty() {
        return;
    }
    let rule = find(routing.rules, &to.host);
    let defined = |rule: &super::rule::Rule| rule.subsets.iter().any(|subset| subset.name == to.subset);
    if !rule.is_some_and(defined) {
        let effect = format!("no rule defines the subset {} of {}: requests get 503 NC", to.subset, to.host);
        out.error(
            "DR-022",
            &to.seen,
            effect,
            "define the subset in a DestinationRule, or route to one that exists",
        );
    }
}

fn hashing(destinations: &[Destination], retry: Option<&Retry>, routing: &Routing<'_>, out: &mut Out) {
    let hashed = |to: &Destination| routing.hash_of(to).is_some_and(|(hash, _)| hash.key.is_some());
    match destinations {
        [only] => {
            let retried = retry.is_none_or(|retry| retry.attempts > 0 && retry.ignore_previous.is_none());
            if retried && hashed(only) {
                let effect = "a retry goes to the same host: the hash decides, tried hosts are not avoided";
                let advice = "set retryIgnorePreviousHosts to say which you want";
                out.note("VS-008", &only.seen, effect, advice);
            }
        }
        many => {
            for to in many.iter().filter(|to| to.weight > 0 && hashed(to)) {
                let effect =
                    "the draw between destinations ignores the hash key; affinity holds only inside one";
                out.warn(
                    "DR-010",
                    &to.seen,
                    effect,
                    "choose the subset by a header match if clients must stay",
                );
            }
        }
    }
}

/// What is retried.
fn repeated(retry: &Retry, out: &mut Out) {
    let (words, codes) = conditions(&retry.on);
    let unsafe_words = ["5xx", "gateway-error", "reset"];
    if words.iter().any(|word| unsafe_words.contains(word)) || codes.iter().any(|code| *code >= 500) {
        out.warn(
            "VS-004",
            retry.block.seen("retryOn"),
            "requests may be repeated that the server already acted on",
            "keep such conditions to requests that may run twice",
        );
    }
    if !codes.is_empty() && words.is_empty() {
        let effect = "connection failures and resets are not retried: there are only status codes";
        out.warn("VS-005", retry.block.seen("retryOn"), effect, "add connect-failure,refused-stream");
    }
}

fn times(route: &HttpRoute, retry: &Retry, out: &mut Out) {
    let Some((timeout, at)) = &route.timeout else { return };
    let Some(per_try) = retry.per_try else {
        let effect = "one slow try uses up the whole time, and nothing is left for a retry";
        return out.note("VS-002", at, effect, "set retries.perTryTimeout");
    };
    let at = retry.block.seen("perTryTimeout");
    if per_try >= *timeout {
        let effect = format!("the request ends after {timeout:?}, before the first retry");
        out.warn("VS-001", at, effect, "set perTryTimeout well below timeout");
    } else if per_try.saturating_mul(retry.attempts + 1) > *timeout {
        let effect = format!(
            "not every try fits: {} tries of {per_try:?} take longer than {timeout:?}",
            retry.attempts + 1
        );
        out.note("VS-003", at, effect, "lower perTryTimeout or attempts, or raise timeout");
    }
}

fn bounds(
    destinations: &[Destination],
    retry: &Retry,
    routing: &Routing<'_>,
    views: &[View<'_>],
    out: &mut Out,
) {
    let unbounded = destinations.iter().filter_map(|to| view(to, routing, views)).find(|view| {
        let pool = view.effective.blocks.pool.as_ref();
        pool.is_none_or(|pool| pool.max_retries == 0) && view.effective.extras.budget.is_none()
    });
    if let Some(view) = unbounded {
        let effect = format!("concurrent retries to {} are not bounded", view.name);
        let advice = "set connectionPool.http.maxRetries or retryBudget";
        out.warn("DR-037", &retry.block.seen, effect, advice);
    }
}
