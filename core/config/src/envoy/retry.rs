//! `RetryPolicy` and `HedgePolicy`.

use super::hash_policy::header_name;
use super::matcher::header_matches;
use crate::error::Result;
use crate::read::{At, Fields};
use crate::report::What;
use nexthop_engine::spec::{BackOffSpec, RateLimitedSpec, ResetFormat, RetryOn, RetryOptions, RetrySpec};
use std::time::Duration;

const RETRY: Fields = Fields::of(
    "RetryPolicy",
    &[
        "retry_on",
        "num_retries",
        "per_try_timeout",
        "per_try_idle_timeout",
        "retry_host_predicate",
        "host_selection_retry_max_attempts",
        "retriable_status_codes",
        "retry_back_off",
        "retriable_headers",
        "retriable_request_headers",
        "rate_limited_retry_back_off",
        "refresh_cluster_on_retry",
        "retry_priority",
        "nexthop",
    ],
)
.refused(&["retry_options_predicates"]);
const RATE_LIMITED: Fields = Fields::of("RateLimitedRetryBackOff", &["reset_headers", "max_interval"]);
const RESET_HEADER: Fields = Fields::of("ResetHeader", &["name", "format"]);
const PREVIOUS_PRIORITIES: Fields = Fields::of("PreviousPrioritiesConfig", &["update_frequency"]);
const OMIT_CANARY_HOSTS: Fields = Fields::of("OmitCanaryHostsPredicate", &[]);
const OMIT_HOST_METADATA: Fields = Fields::of("OmitHostMetadataConfig", &["metadata_match"]);
const BACK_OFF: Fields = Fields::of("RetryBackOff", &["base_interval", "max_interval"]);
const PREVIOUS_HOSTS: Fields = Fields::of("PreviousHostsPredicate", &[]);
const HEDGE: Fields =
    Fields::of("HedgePolicy", &["initial_requests", "additional_request_chance", "hedge_on_per_try_timeout"]);

/// Reads a `RetryPolicy`.
pub(super) fn retry_policy(at: &At<'_>) -> Result<RetrySpec> {
    let msg = at.message(&RETRY)?;
    let default = RetrySpec::default();
    let mut spec = RetrySpec::default();
    if let Some(list) = msg.get("retry_host_predicate") {
        for item in list.repeated() {
            predicate(&item, &mut spec)?;
        }
    }
    Ok(RetrySpec {
        on: msg.or("retry_on", RetryOn::default(), retry_on)?,
        num_retries: msg.or("num_retries", default.num_retries, |n| n.u32())?,
        per_try_timeout: msg.or("per_try_timeout", Duration::ZERO, |d| d.millis())?,
        per_try_idle_timeout: msg.or("per_try_idle_timeout", Duration::ZERO, |d| d.millis())?,
        back_off: msg.map("retry_back_off", back_off)?,
        retriable_status_codes: msg.repeated("retriable_status_codes", |item| item.u32())?,
        retriable_headers: header_matches(&msg, "retriable_headers")?,
        retriable_request_headers: header_matches(&msg, "retriable_request_headers")?,
        previous_priorities: msg.map("retry_priority", priorities)?,
        rate_limited: msg.map("rate_limited_retry_back_off", rate_limited)?,
        refresh_cluster_on_retry: msg.or("refresh_cluster_on_retry", false, |flag| flag.bool())?,
        host_selection_retry_max_attempts: msg.or(
            "host_selection_retry_max_attempts",
            default.host_selection_retry_max_attempts,
            attempts,
        )?,
        options: msg.or("nexthop", RetryOptions::default(), crate::block::retry_block)?,
        ..spec
    })
}

/// The conditions of a comma list. Envoy ignores words it does not know.
fn retry_on(at: &At<'_>) -> Result<RetryOn> {
    let text = at.text()?;
    let (on, known) = RetryOn::parse(&text);
    if !known && !text.is_empty() {
        at.note(
            What::NotUsed,
            format!("{text:?} holds words that are no retry conditions; they are ignored"),
        );
    }
    Ok(on)
}

/// Envoy accepts a negative number, and every retry then fails without a host.
fn attempts(at: &At<'_>) -> Result<u32> {
    match at.i64()? {
        number @ 0.. => Ok(u32::try_from(number).unwrap_or(u32::MAX - 1).min(u32::MAX - 1)),
        _ => Err(at.expected("a whole number that is not negative")),
    }
}

/// A host predicate; several add up.
fn predicate(at: &At<'_>, spec: &mut RetrySpec) -> Result<()> {
    at.extension(|name, type_name, config| {
        let known = type_name.strip_prefix("envoy.extensions.retry.host.");
        match (known, config) {
            (Some("previous_hosts.v3.PreviousHostsPredicate"), Some(config)) => {
                config.message(&PREVIOUS_HOSTS)?;
                spec.previous_hosts = true;
                Ok(())
            }
            (Some("omit_canary_hosts.v3.OmitCanaryHostsPredicate"), Some(config)) => {
                config.message(&OMIT_CANARY_HOSTS)?;
                spec.omit_canary_hosts = true;
                Ok(())
            }
            (Some("omit_host_metadata.v3.OmitHostMetadataConfig"), Some(config)) => {
                let msg = config.message(&OMIT_HOST_METADATA)?;
                let metadata = msg.map("metadata_match", |at| at.metadata())?.unwrap_or_default();
                let pairs = metadata.0.get("envoy.lb").into_iter().flatten();
                let pairs: Vec<_> = pairs.map(|(key, value)| (key.clone(), value.clone())).collect();
                if pairs.is_empty() {
                    config.note(What::NotUsed, "no pairs under `envoy.lb`: no host is left out");
                } else {
                    spec.omit_host_metadata.push(pairs);
                }
                Ok(())
            }
            (_, Some(_)) => Err(at.fail(format!("there is no host predicate of type {type_name}"))),
            (_, None) => Err(at.fail(format!("the host predicate {name:?} needs its `typed_config`"))),
        }
    })
}

/// The only retry priority there is. Envoy loads a frequency of 0 and dies at the first request.
fn priorities(at: &At<'_>) -> Result<u32> {
    at.extension(|name, type_name, config| {
        let known =
            type_name == "envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig";
        match config {
            Some(config) if known => {
                config.message(&PREVIOUS_PRIORITIES)?.need("update_frequency")?.u32_in(1, i32::MAX as u32)
            }
            Some(_) => Err(at.fail(format!("there is no retry priority of type {type_name}"))),
            None => Err(at.fail(format!("the retry priority {name:?} needs its `typed_config`"))),
        }
    })
}

fn rate_limited(at: &At<'_>) -> Result<RateLimitedSpec> {
    const FORMATS: &[(&str, i32)] = &[("SECONDS", 0), ("UNIX_TIMESTAMP", 1)];
    let msg = at.message(&RATE_LIMITED)?;
    let reset_headers = msg.repeated("reset_headers", |item| {
        let header = item.message(&RESET_HEADER)?;
        let format = match header.or("format", 0, |format| format.enumeration(FORMATS))? {
            1 => ResetFormat::UnixTimestamp,
            _ => ResetFormat::Seconds,
        };
        Ok((header_name(&header.need("name")?)?, format))
    })?;
    if reset_headers.is_empty() {
        return Err(msg.missing("reset_headers"));
    }
    let max_ms = msg.or("max_interval", 300_000, positive_ms)?;
    Ok(RateLimitedSpec { reset_headers, max_ms })
}

/// Whole milliseconds, at least 1.
fn positive_ms(at: &At<'_>) -> Result<u64> {
    Ok(u64::try_from(at.positive_millis()?.as_millis()).unwrap_or(u64::MAX))
}

fn back_off(at: &At<'_>) -> Result<BackOffSpec> {
    let msg = at.message(&BACK_OFF)?;
    let base_ms = positive_ms(&msg.need("base_interval")?)?;
    let max_ms = msg.or("max_interval", base_ms.saturating_mul(10), positive_ms)?;
    match msg.get("max_interval").filter(|_| max_ms < base_ms) {
        Some(at) => Err(at.expected(&format!("at least base_interval ({base_ms} ms)"))),
        None => Ok(BackOffSpec { base_ms, max_ms }),
    }
}

/// Reads a `HedgePolicy`: `hedge_on_per_try_timeout`.
pub(super) fn hedge_policy(at: &At<'_>) -> Result<bool> {
    let msg = at.message(&HEDGE)?;
    msg.map("initial_requests", |n| n.u32_in(1, u32::MAX))?;
    msg.map("additional_request_chance", super::route::fraction)?;
    for name in ["initial_requests", "additional_request_chance"] {
        if let Some(at) = msg.get(name) {
            at.note(What::NotUsed, "not used: Envoy reads it and never acts on it");
        }
    }
    msg.or("hedge_on_per_try_timeout", false, |flag| flag.bool())
}
