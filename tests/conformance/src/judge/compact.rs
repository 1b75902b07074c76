//! Judges of the compact records.

use super::live::{said, set};
use super::{Judge, any, same, sound};
use crate::json::Json;
use crate::trace::{Seen, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// Recorded times come from a real machine's clock.
const TOLERANCE_MS: f64 = 15.0;
/// Ports that no backend listens on.
const SILENT: [&str; 4] = ["27197", "27198", "27199", "27301"];

/// One or several requests with their attempts, and counters.
/// `recorded` tells which counters its recorder kept.
/// `count`: the attempt count that the client itself sends.
pub fn records(expect: &Json, recorded: BTreeSet<String>, count: Option<String>) -> Judge {
    let expect = expect.clone();
    Box::new(move |traces| {
        any(traces, |trace| {
            let mut out = sound(trace);
            let several = expect.get("requests").items();
            let wanted = if several.is_empty() { std::slice::from_ref(&expect) } else { several };
            same(&mut out, "requests", &wanted.len(), &trace.requests.len());
            for (i, (wanted, seen)) in wanted.iter().zip(&trace.requests).enumerate() {
                request(&mut out, &format!("request {i}"), wanted, seen, count.as_deref());
            }
            counters(&mut out, expect.get("stats_delta"), &recorded, trace);
            out
        })
    })
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

fn request(out: &mut Vec<String>, what: &str, wanted: &Json, seen: &Seen, count: Option<&str>) {
    // The backend sees the client's own count where no other is set.
    let number = |attempt: &crate::trace::Attempt| match count {
        Some(own) => header(&attempt.headers, "x-envoy-attempt-count").unwrap_or(own).to_owned(),
        None => attempt.number.to_string(),
    };
    if let Some(status) = wanted.get("status").i64() {
        same(out, &format!("{what} status"), &status, &i64::from(seen.status));
    }
    if let Some(flags) = wanted.get("response_flags").str() {
        same(out, &format!("{what} flags"), &set(flags), &set(&seen.flags));
    }
    if let Some(details) = wanted.get("details").str() {
        same(out, &format!("{what} details"), &said(details), &said(&seen.details));
    }
    if let Some(body) = wanted.get("body").str() {
        match body.strip_prefix('p').and_then(|body| body.split_once('a')) {
            Some((port, attempt)) if port.parse::<u16>().is_ok() => {
                let winner = seen.attempts.iter().rev().find(|attempt| attempt.action == "forward");
                let got = winner.map(|attempt| (port_of(&attempt.host), number(attempt)));
                same(out, &format!("{what} answer"), &Some((port.to_owned(), attempt.to_owned())), &got);
            }
            // What the client's library said of a body that was cut.
            _ if body.starts_with("READERR") => {}
            _ if seen.body.is_empty() && !seen.details.starts_with("upstream") => {
                same(out, &format!("{what} body"), &body, &seen.body.as_str());
            }
            _ => {}
        }
    }
    if let Some(number) = wanted.get("attempt_count_header").str() {
        let got = header(&seen.headers, "x-envoy-attempt-count")
            .or_else(|| header(&seen.reply_headers, "x-envoy-attempt-count"))
            .map_or_else(|| seen.begun().to_string(), str::to_owned);
        same(out, &format!("{what} attempts begun"), &number, &got.as_str());
        same(out, &format!("{what} attempts counted"), &number, &seen.begun().to_string().as_str());
    }
    if wanted.get("x_envoy_overloaded").str() == Some("true") {
        same(
            out,
            &format!("{what} x-envoy-overloaded"),
            &Some("true"),
            &header(&seen.reply_headers, "x-envoy-overloaded"),
        );
    }
    let listed = wanted.get("upstream_attempts").items();
    if !wanted.has("upstream_attempts") {
        return;
    }
    let reached: Vec<_> =
        seen.attempts.iter().filter(|attempt| !SILENT.contains(&port_of(&attempt.host).as_str())).collect();
    let sequence = |wanted: &Json| format!("{}#{}", wanted.get("port").text(), wanted.get("attempt").text());
    let got: Vec<String> =
        reached.iter().map(|attempt| format!("{}#{}", port_of(&attempt.host), number(attempt))).collect();
    same(out, &format!("{what} attempts"), &listed.iter().map(sequence).collect(), &got);
    let first = reached.first().map(|attempt| (attempt.sent, expected_ms(attempt)));
    for (wanted, attempt) in listed.iter().zip(reached) {
        let what = format!("{what} attempt {}", attempt.number);
        if let Some(wanted) = wanted.get("expected_rq_timeout_ms").str() {
            let got = header(&attempt.headers, "x-envoy-expected-rq-timeout-ms").unwrap_or("none");
            let near = match (wanted.parse::<f64>(), got.parse::<f64>()) {
                // Back-offs are drawn: what is left of the first attempt's time is known all the same.
                (Ok(a), Ok(b)) => {
                    let left =
                        first.and_then(|(sent, whole)| Some(whole? - (attempt.sent - sent) as f64 / 1e6));
                    let drawn = attempt.number > 1 && left.is_some_and(|left| (left - b).abs() <= 1.0);
                    (a - b).abs() <= TOLERANCE_MS || drawn
                }
                _ => wanted == got,
            };
            if !near {
                out.push(format!("{what} expected-rq-timeout-ms: expected about {wanted}, got {got}"));
            }
        }
        if let Some(wanted) = wanted.get("is_timeout_retry").str() {
            let got = header(&attempt.headers, "x-envoy-is-timeout-retry").unwrap_or("none");
            same(out, &format!("{what} is-timeout-retry"), &wanted, &got);
        }
    }
}

fn expected_ms(attempt: &crate::trace::Attempt) -> Option<f64> {
    header(&attempt.headers, "x-envoy-expected-rq-timeout-ms")?.parse().ok()
}

fn port_of(host: &str) -> String {
    host.rsplit_once(':').map_or("", |(_, port)| port).to_owned()
}

/// Listed counters have their value, unlisted ones of the same families did not move.
fn counters(out: &mut Vec<String>, listed: &Json, recorded: &BTreeSet<String>, trace: &Trace) {
    let none = BTreeMap::new();
    let stats = trace.stats.get("end").unwrap_or(&none);
    let get = |name: &str| stats.get(&format!("cluster.{name}")).copied().unwrap_or(0.0);
    let connections = |name: &str| {
        let last = name.split_once('.').map_or(name, |(_, rest)| rest);
        let kept = ["upstream_cx_none_healthy", "upstream_cx_connect_fail", "upstream_cx_connect_timeout"];
        last.starts_with("upstream_cx_") && !kept.contains(&last)
    };
    for (name, wanted) in listed.entries() {
        // Answers to internal requests are counted once more by the proxy's edge.
        if name.starts_with("http.") || name.contains(".internal.") || connections(name) {
            continue;
        }
        same(out, &format!("counter {name}"), &wanted.f64().unwrap_or(f64::NAN), &get(name));
    }
    for (name, value) in stats {
        let Some(short) = name.strip_prefix("cluster.").filter(|short| !listed.has(short)) else { continue };
        let last = short.split_once('.').map_or(short, |(_, rest)| rest);
        if *value != 0.0 && recorded.contains(last) && !connections(short) {
            out.push(format!("counter {short}: expected 0, got {value}"));
        }
    }
}

/// Shares over many requests.
pub fn spread(expect: &Json) -> Judge {
    let expect = expect.clone();
    Box::new(move |traces| {
        any(traces, |trace| {
            let mut out = sound(trace);
            let (mut ports, mut statuses) = (BTreeMap::new(), BTreeMap::new());
            for seen in &trace.requests {
                *statuses.entry(seen.status.to_string()).or_insert(0_i64) += 1;
                for attempt in &seen.attempts {
                    *ports.entry(port_of(&attempt.host)).or_insert(0_i64) += 1;
                }
            }
            let total = trace.requests.len() as f64;
            for (what, wanted, got) in [
                ("hits", expect.get("hits_by_port"), ports),
                ("status", expect.get("status_counts"), statuses),
            ] {
                let names: BTreeSet<&str> = got
                    .keys()
                    .map(String::as_str)
                    .chain(wanted.entries().iter().map(|(name, _)| name.as_str()))
                    .collect();
                for name in names {
                    let wanted = wanted.get(name).f64().unwrap_or(0.0);
                    let got = got.get(name).copied().unwrap_or(0) as f64;
                    let share = wanted / total;
                    let error = 4.5 * (2.0 * total * share * (1.0 - share)).sqrt();
                    if (wanted - got).abs() > error {
                        out.push(format!("{what} {name}: expected {wanted} +- {error:.0}, got {got}"));
                    }
                }
            }
            out
        })
    })
}

/// Which conditions retry an outcome.
pub fn predicates(expect: &Json, tokens: Vec<String>) -> Judge {
    let expect = expect.clone();
    Box::new(move |traces| {
        any(traces, |trace| {
            let mut out = sound(trace);
            same(&mut out, "requests", &tokens.len(), &trace.requests.len());
            for (token, seen) in tokens.iter().zip(&trace.requests) {
                let wanted = expect.get("retried_by").items().iter().any(|item| item.str() == Some(token));
                same(&mut out, &format!("{token} retries"), &wanted, &(seen.attempts.len() > 1));
                let finals = expect.get("final_status_when_not_retried").items();
                if !wanted && !finals.iter().any(|status| status.i64() == Some(seen.status.into())) {
                    out.push(format!("{token} status: expected one of {finals:?}, got {}", seen.status));
                }
            }
            out
        })
    })
}

/// Attempts by the letter of their cluster, statuses, and some counters.
pub fn letters(expect: Json, ports: &'static [(&'static str, i64)]) -> Judge {
    Box::new(move |traces| {
        any(traces, |trace| {
            let mut out = sound(trace);
            let letter = |host: &str| {
                let found = ports.iter().find(|(_, port)| port.to_string() == port_of(host));
                found.map_or_else(|| host.to_owned(), |(letter, _)| (*letter).to_owned())
            };
            let wanted: Vec<Vec<String>> = expect
                .get("attempts")
                .items()
                .iter()
                .map(|attempts| attempts.items().iter().map(Json::text).collect())
                .collect();
            let sent = |seen: &Seen| seen.attempts.iter().map(|attempt| letter(&attempt.host)).collect();
            same(&mut out, "attempts", &wanted, &trace.requests.iter().map(sent).collect());
            let statuses: Vec<i64> = expect.get("status").items().iter().filter_map(Json::i64).collect();
            if !statuses.is_empty() {
                let got = trace.requests.iter().map(|seen| i64::from(seen.status)).collect();
                same(&mut out, "status", &statuses, &got);
            }
            for (name, wanted) in expect.get("counters").entries() {
                let got = trace.stats.get("end").and_then(|stats| stats.get(&format!("cluster.{name}")));
                same(&mut out, name, &wanted.f64(), &got.copied());
            }
            out
        })
    })
}
