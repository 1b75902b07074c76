//! The recorded facts of `tests/vectors/retry`.

use super::*;
use crate::clock::MILLI;
use crate::outcome::NEVER;
use crate::random::Xoshiro256;
use crate::spec::{RateLimitedSpec, ResetFormat};
use serde_json::Value;

fn vectors(name: &str, count: usize) -> Vec<Value> {
    nexthop_vectors::cases(&format!("retry/{name}.json"), count)
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

#[test]
fn backoff_vectors() {
    let cases = nexthop_vectors::read("retry/backoff.json", 19);
    let rows = &cases.list;
    let mut kinds = [0; 5];
    for row in rows {
        let (id, given, expect) = (&row["id"], &row["given"], &row["expect"]);
        let base_ms = given["base_ms"].as_u64().unwrap_or(0);
        let spec = BackOffSpec { base_ms, max_ms: given["max_ms"].as_u64().unwrap_or(10 * base_ms) };
        let mut back_off = BackOff::new(&spec);
        if given["random_draws"].is_array() {
            let mut random = draws(numbers(&given["random_draws"]));
            let expected = numbers(&expect["delays_ms"]);
            let got: Vec<u64> = expected.iter().map(|_| back_off.next(&mut random)).collect();
            assert_eq!(got, expected, "{id}");
            kinds[0] += 1;
        } else if expect["exclusive_upper_bounds_ms"].is_array() {
            // The largest word whose remainder is the largest: bound - 1.
            for bound in numbers(&expect["exclusive_upper_bounds_ms"]) {
                assert_eq!(back_off.bound_ms(), bound, "{id}");
                assert_eq!(back_off.next(&mut draws(vec![bound * 7 - 1])), bound - 1, "{id}");
            }
            kinds[1] += 1;
        } else if let Some(interval) = given["min_interval_ms"].as_u64() {
            let mut random = draws(vec![given["random_draw"].as_u64().unwrap()]);
            assert_eq!(rate_limited_ms(interval, &mut random), expect["delay_ms"].as_u64(), "{id}");
            kinds[2] += 1;
        } else if let Some(steps) = given["steps"].as_array() {
            for (step, expected) in steps.iter().zip(numbers(&expect["delays_ms"])) {
                let mut random = draws(vec![step["draw"].as_u64().unwrap()]);
                let seconds =
                    step["response"]["retry-after"].as_str().map(|text| text.parse::<u64>().unwrap());
                let limited = rate_limited_ms(seconds.unwrap_or(0) * 1000, &mut random);
                assert_eq!(limited.unwrap_or_else(|| back_off.next(&mut random)), expected, "{id}");
            }
            kinds[3] += 1;
        } else {
            // Measured gaps: their mean is half the bound, the largest not above it but for the clock's grain.
            let mut random = Source::Xoshiro(Xoshiro256::seeded(1, 1));
            let means = numbers(&expect["mean_gap_ms_seen"]);
            for (mean, max) in means.into_iter().zip(numbers(&expect["max_gap_ms_seen"])) {
                let bound = back_off.bound_ms();
                assert!(max < bound + 15 && max * 3 > bound * 2, "{id}: {max} under {bound}");
                let sum: u64 = (0..1000).map(|_| { back_off }.next(&mut random)).sum();
                assert!((sum / 1000).abs_diff(mean) <= 8 + bound / 16, "{id}: {} for {mean}", sum / 1000);
                back_off.next(&mut random);
            }
            kinds[4] += 1;
        }
    }
    assert!(!cases.ours || kinds == [5, 7, 4, 1, 2], "{kinds:?}");
}

#[test]
fn parsing_vectors() {
    let rows = vectors("retry_on_parsing", 15);
    for row in &rows {
        let text = row["given"]["text"].as_str().unwrap();
        let expect = &row["expect"];
        let (bits, valid) = match row["given"]["parser"].as_str().unwrap() {
            "retry_on" => RetryOn::parse_http(text),
            "retry_grpc_on" => RetryOn::parse_grpc(text),
            _ => {
                let unknown: Vec<&str> =
                    text.split(',').filter(|token| !token.is_empty() && !RetryOn::parse(token).1).collect();
                assert_eq!(unknown, words(&expect["unknown_tokens"]), "{text:?}");
                continue;
            }
        };
        assert_eq!(u64::from(bits.0), expect["bits"].as_u64().unwrap(), "{text:?}");
        assert_eq!(valid, expect["all_valid"].as_bool().unwrap(), "{text:?}");
    }
}

/// What the backend of a recorded row did, in the engine's terms.
enum Seen {
    Answer(u16, Vec<(String, String)>, Option<u8>),
    Failed(u8, bool),
    /// Decided before any condition is asked: the response has started.
    Started,
}

fn seen(row: &Value) -> Seen {
    let id = row["id"].as_str().unwrap();
    match id {
        "connect refused" => return Seen::Failed(failure::CONNECT_FAILURE, false),
        "connect timeout" => return Seen::Failed(failure::CONNECT_TIMEOUT, false),
        "overflow (circuit breaker)" => return Seen::Failed(failure::OVERFLOW, false),
        _ => {}
    }
    let plan = row["given"]["backend_plan"].as_str().unwrap();
    let (mut status, mut headers, mut grpc) = (0, Vec::new(), None);
    for step in plan.split(',') {
        match step.split_once(':') {
            Some(("hdr", pair)) => {
                let (name, value) = pair.split_once('=').unwrap();
                headers.push((name.to_owned(), value.to_owned()));
            }
            Some(("grpc", code)) => (status, grpc) = (200, code.parse().ok()),
            // The trailers come after the headers on which the decision falls.
            Some(("grpctrail", _)) => status = 200,
            Some(("rst", _)) => return Seen::Failed(failure::REMOTE_RESET, true),
            _ => match step {
                "partial" | "partialrst" => return Seen::Started,
                "fin" => return Seen::Failed(failure::CONNECTION_TERMINATION, true),
                "hang" => return Seen::Failed(failure::PER_TRY_TIMEOUT, true),
                "refused" => return Seen::Failed(failure::REFUSED_STREAM, true),
                code => status = code.parse().unwrap_or_else(|_| panic!("{id}: {step}")),
            },
        }
    }
    Seen::Answer(status, headers, grpc)
}

#[test]
fn predicate_vectors() {
    let rows = vectors("retry_on_predicates", 38);
    let mut checked = 0;
    for row in &rows {
        let (id, given, expect) = (&row["id"], &row["given"], &row["expect"]);
        let tokens = words(&expect["retried_by"]).into_iter().map(|token| (token, true));
        for (token, retried) in tokens.chain(words(&expect["not_retried_by"]).into_iter().map(|t| (t, false)))
        {
            let (on, known) = RetryOn::parse(token);
            assert!(known, "{token}");
            let policy = policy(&RetrySpec {
                on,
                retriable_status_codes: numbers(&given["retriable_status_codes"])
                    .into_iter()
                    .map(|code| u32::try_from(code).unwrap())
                    .collect(),
                retriable_headers: vec![exact("x-retry-me", "yes")],
                ..RetrySpec::default()
            });
            let answer = match seen(row) {
                Seen::Answer(status, pairs, grpc) => {
                    let pairs: Vec<_> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
                    on_headers(on, &policy, status, grpc, Headers::new(&pairs).view(), false)
                }
                Seen::Failed(failure, sent) => on_reset(on, failure, sent),
                Seen::Started => {
                    // The final headers were a 200 on which no condition holds.
                    assert_eq!(numbers(&expect["final_status_when_not_retried"]), [200], "{id}");
                    on_headers(on, &policy, 200, None, HeaderView::EMPTY, false)
                }
            };
            assert_eq!(answer != Retry::No, retried, "{id} under {token}: {answer:?}");
            assert_eq!(answer == Retry::Immediately, retried && id == "status 425", "{id} under {token}");
            checked += 1;
        }
        if let Seen::Failed(failure, _) = seen(row) {
            assert_eq!(
                numbers(&expect["final_status_when_not_retried"]),
                [u64::from(reply_of(failure).0)],
                "{id}"
            );
        }
    }
    assert_eq!(checked, 38 * 16);
}

/// The headers of a row, lower case as callers hand them in.
fn pairs(value: &Value) -> Vec<(String, String)> {
    let pairs = value.as_object().unwrap().iter();
    pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.as_str().unwrap().to_owned())).collect()
}

fn block(pairs: &[(String, String)]) -> Headers {
    Headers::new(&pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>())
}

#[test]
fn reset_header_vectors() {
    let rows = vectors("reset_header_parse", 13);
    for row in &rows {
        let given = &row["given"];
        let listed = given["reset_headers"].as_array().unwrap().iter().map(|header| {
            let format = match header["format"].as_str().unwrap() {
                "SECONDS" => ResetFormat::Seconds,
                _ => ResetFormat::UnixTimestamp,
            };
            (header["name"].as_str().unwrap().to_owned(), format)
        });
        let max_ms = given["max_interval_ms"].as_u64().unwrap_or(300_000);
        let rate_limited = RateLimitedSpec { reset_headers: listed.collect(), max_ms };
        let policy = policy(&RetrySpec { rate_limited: Some(rate_limited), ..RetrySpec::default() });
        let headers = block(&pairs(&given["response_headers"]));
        let now = given["now_unix_s"].as_u64().unwrap();
        let got = policy.reset.unwrap().interval_ms(headers.view(), now);
        assert_eq!(got, row["expect"]["interval_ms"].as_u64(), "{}", row["id"]);
    }
}

#[test]
fn final_timeout_vectors() {
    let rows = vectors("final_timeouts", 37);
    let nanos = |value: &Value| value.as_u64().filter(|ms| *ms > 0).map_or(NEVER, |ms| ms * MILLI);
    let millis = |nanos: u64| if nanos == NEVER { 0 } else { nanos / MILLI };
    let mut headers_checked = 0;
    for row in &rows {
        let (id, given, expect) = (&row["id"], &row["given"], &row["expect"]);
        let hedges = given["hedge_on_per_try_timeout"].as_bool().unwrap();
        let expected = |timeout, per_try, left| expected_ms(timeout, per_try, hedges, left);
        let wanted = expect["x-envoy-expected-rq-timeout-ms"].as_str().map(str::to_owned);
        if let Some(elapsed) = given["elapsed_ms"].as_u64() {
            let (timeout, per_try) = (nanos(&given["global_ms"]), nanos(&given["per_try_ms"]));
            let left = timeout.saturating_sub(elapsed * MILLI);
            assert_eq!(expected(timeout, per_try, left).map(|ms| ms.to_string()), wanted, "{id}");
            headers_checked += 1;
            continue;
        }
        let route = &given["route"];
        let of = |key: &str| route[key].as_u64().map(|ms| ms * MILLI);
        let limits = RouteLimits {
            timeout: if route["timeout_ms"].is_null() { 15_000 * MILLI } else { nanos(&route["timeout_ms"]) },
            per_try: nanos(&route["per_try_ms"]),
            grpc: of("max_grpc_timeout_ms").map(|max| (max, of("grpc_timeout_offset_ms").unwrap_or(0))),
            respect_expected: given["respect_expected_rq_timeout"].as_bool().unwrap(),
        };
        let headers = block(&pairs(&given["request_headers"]));
        let got = limits.resolve(headers.view(), true, given["grpc"].as_bool().unwrap());
        assert_eq!(millis(got.timeout), expect["global_ms"].as_u64().unwrap(), "{id}");
        assert_eq!(millis(got.per_try), expect["per_try_ms"].as_u64().unwrap(), "{id}");
        let told = expected(got.timeout, got.per_try, got.timeout);
        if wanted.is_some() {
            assert_eq!(told.map(|ms| ms.to_string()), wanted, "{id}");
            headers_checked += 1;
        }
        if let Some(wanted) = expect["grpc-timeout"].as_str() {
            assert!(got.grpc, "{id}");
            assert_eq!(grpc_timeout_text(told.unwrap()), wanted, "{id}");
        }
    }
    assert_eq!(headers_checked, 29);
}

#[test]
fn previous_priority_vectors() {
    let rows = vectors("previous_priorities", 10);
    let mut checked = 0;
    for row in rows.iter().filter(|row| row["expect"]["load_before_first_and_after_each"].is_array()) {
        let given = &row["given"];
        let share = |key: &str| -> Vec<u32> {
            let priorities = given["priorities"].as_array().unwrap().iter();
            let percent =
                |p: &Value| (140 * p[key].as_u64().unwrap() / p["hosts"].as_u64().unwrap()).min(100);
            priorities.map(|p| u32::try_from(percent(p)).unwrap()).collect()
        };
        let (healthy, degraded) = (share("healthy"), share("degraded"));
        let mut plugin =
            PreviousPriorities::new(u32::try_from(given["update_frequency"].as_u64().unwrap()).unwrap());
        let attempts = given["attempted_host_priorities_in_order"].as_array().unwrap();
        let loads = row["expect"]["load_before_first_and_after_each"].as_array().unwrap();
        assert_eq!(loads.len(), attempts.len() + 1);
        for (at, load) in loads.iter().enumerate() {
            if at > 0 {
                plugin.attempted(0, u32::try_from(attempts[at - 1].as_u64().unwrap()).unwrap());
            }
            let got = plugin
                .load(&healthy, &degraded, &|_, priority| Some(priority))
                .map(|load| (load.healthy, load.degraded));
            let load = if at == 0
                || numbers(&load["healthy"]).iter().chain(&numbers(&load["degraded"])).all(|n| *n == 0)
            {
                assert_eq!(got, None, "{}", row["id"]);
                &given["original_load"]
            } else {
                load
            };
            if let Some((healthy, degraded)) = got {
                let wide = |list: Vec<u32>| list.into_iter().map(u64::from).collect::<Vec<_>>();
                assert_eq!(wide(healthy), numbers(&load["healthy"]), "{}", row["id"]);
                assert_eq!(wide(degraded), numbers(&load["degraded"]), "{}", row["id"]);
            } else {
                assert_eq!(load, &given["original_load"], "{}", row["id"]);
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 3 + 2 + 4 + 4 + 4 + 3);
}
