//! `retries` of a route (`spec/istio-destination-rule.md` section 11).

use super::read::{Block, Problems, int32, object};
use crate::error::Result;
use crate::form::{Form, duration, extension, list, number, text, typed};
use crate::front::{Node, Place};
use crate::read::{At, Fields};
use std::time::Duration;

const RETRY: Fields = Fields::of(
    "retries",
    &["attempts", "perTryTimeout", "retryOn", "retryRemoteLocalities", "retryIgnorePreviousHosts", "backoff"],
);
const WORDS: [&str; 16] = [
    "5xx",
    "gateway-error",
    "reset",
    "reset-before-request",
    "connect-failure",
    "retriable-4xx",
    "refused-stream",
    "retriable-status-codes",
    "retriable-headers",
    "envoy-ratelimited",
    "http3-post-connect-failure",
    "cancelled",
    "deadline-exceeded",
    "internal",
    "resource-exhausted",
    "unavailable",
];
const DEFAULT_ON: &str = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes";
const BY_CODE: &str = "retriable-status-codes";

/// One `retries`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Retry {
    pub(crate) block: Block,
    pub(crate) attempts: u32,
    pub(crate) per_try: Option<Duration>,
    /// Empty = absent.
    pub(crate) on: String,
    pub(crate) remote: bool,
    pub(crate) ignore_previous: Option<bool>,
    pub(crate) backoff: Option<Duration>,
}

pub(super) fn retry(at: &At<'_>, problems: &Problems) -> Result<Retry> {
    let msg = object(*at, &RETRY)?;
    let mut block = Block::new(at);
    for name in msg.names() {
        if let Some(at) = msg.get(name) {
            block.mark(name, &at);
        }
    }
    let attempts = msg.or("attempts", 0, int32)?;
    if let Some(at) = msg.get("attempts").filter(|_| attempts < 0) {
        problems.error(
            &at,
            "E-RETRY-NEG",
            format!("expected a number that is not negative, found {attempts}"),
        );
    }
    let retry = Retry {
        block,
        attempts: u32::try_from(attempts).unwrap_or(0),
        per_try: msg.map("perTryTimeout", |d| problems.duration(d, false))?,
        on: msg.or("retryOn", String::new(), |on| on.text())?,
        remote: msg.or("retryRemoteLocalities", false, |flag| flag.bool())?,
        ignore_previous: msg.map("retryIgnorePreviousHosts", |flag| flag.bool())?,
        backoff: msg.map("backoff", |d| problems.duration(d, false))?,
    };
    if attempts == 0 && msg.names().any(|name| name != "attempts") {
        problems.error(at, "E-RETRY-ZERO-WITH-FIELDS", "with attempts 0 no other field of retries has a use");
    }
    if let Some(at) = msg.get("retryOn").filter(|_| !retry.on.is_empty()) {
        for word in retry.on.split(',') {
            if !WORDS.contains(&word) && code(word).is_none() {
                let text = format!(
                    "{word:?} is no retry condition and no HTTP status; conditions: {}",
                    WORDS.join(", ")
                );
                problems.error(&at, "E-RETRY-ON", text);
            }
        }
    }
    Ok(retry)
}

/// A status that HTTP knows.
fn code(word: &str) -> Option<u32> {
    let code: u32 = word.parse().ok().filter(|_| word.bytes().all(|b| b.is_ascii_digit()))?;
    let known = matches!(code, 100..=103 | 200..=208 | 226 | 300..=305 | 307 | 308 | 400..=418 | 421..=426 | 428 | 429
        | 431 | 451 | 500..=508 | 510 | 511);
    known.then_some(code)
}

/// Conditions and codes of a `retryOn`.
pub(super) fn conditions(on: &str) -> (Vec<&str>, Vec<u32>) {
    let (mut words, mut codes) = (Vec::new(), Vec::new());
    for part in on.split(',').map(str::trim) {
        match code(part) {
            Some(code) => codes.push(code),
            None => words.push(part),
        }
    }
    (words, codes)
}

/// The retry policy of a route; `None` = no retries. `own`: the route's or the mesh's `retries`; `hashed`: its one
/// destination is chosen by a hash.
pub(super) fn retry_policy(own: Option<&Retry>, hashed: bool, place: Place) -> Option<Node<'static>> {
    if own.is_some_and(|retry| retry.attempts == 0) {
        return None;
    }
    let at = |name: &str| own.map_or(place, |retry| retry.block.place(name));
    let (on, codes) = match own.map(|retry| retry.on.as_str()).filter(|on| !on.is_empty()) {
        None => (DEFAULT_ON.to_owned(), Vec::new()),
        Some(on) => {
            let (words, codes) = conditions(on);
            let mut joined = words.join(",");
            if !codes.is_empty() && !words.contains(&BY_CODE) {
                joined = format!("{joined},{BY_CODE}");
            }
            (joined, codes)
        }
    };
    let mut form = Form::new(at(""))
        .with("retry_on", text(at("retryOn"), on))
        .with("num_retries", number(at("attempts"), own.map_or(2, |retry| retry.attempts)));
    if let Some(per_try) = own.and_then(|retry| retry.per_try) {
        form.put("per_try_timeout", duration(at("perTryTimeout"), per_try));
    }
    if own.is_some_and(|retry| retry.remote) {
        let place = at("retryRemoteLocalities");
        let config =
            typed(place, "envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig")
                .with("update_frequency", number(place, 2));
        form.put("retry_priority", extension(place, "envoy.retry_priorities.previous_priorities", config));
    }
    if own.and_then(|retry| retry.ignore_previous).unwrap_or(!hashed) {
        let place = at("retryIgnorePreviousHosts");
        let config = typed(place, "envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate");
        let predicate = extension(place, "envoy.retry_host_predicates.previous_hosts", config);
        form.put("retry_host_predicate", list(place, vec![predicate]));
    }
    form.put("host_selection_retry_max_attempts", number(at("attempts"), 5));
    if !codes.is_empty() {
        let place = at("retryOn");
        form.put(
            "retriable_status_codes",
            list(place, codes.into_iter().map(|n| number(place, n)).collect()),
        );
    }
    if let Some(base) = own.and_then(|retry| retry.backoff) {
        let place = at("backoff");
        let backoff = Form::new(place).with("base_interval", duration(place, base));
        form.put("retry_back_off", backoff.node());
    }
    Some(form.node())
}
