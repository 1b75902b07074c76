//! Conditions, tokens and back-off against recorded facts.

use super::*;
use crate::headers::{HeaderView, pack};
use crate::outcome::{failure, flags};
use crate::random::{Draws, Source, Xoshiro256};
use crate::route::RequestView;
use crate::spec::{BackOffSpec, HeaderMatch, RetryOn, RetrySpec, StringMatch};
use proptest::prelude::*;
use serde_json::Value;

fn vectors(name: &str) -> Vec<Value> {
    let path = format!("{}/../../tests/vectors/retry/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

fn draws(words: Vec<u64>) -> Source {
    Source::Draws(Draws::new(words))
}

/// Headers with the block that carries them.
struct Headers {
    names: Vec<Box<str>>,
    block: Vec<u8>,
}

impl Headers {
    fn new(pairs: &[(&str, &str)]) -> Self {
        let (mut names, mut block) = (Vec::<Box<str>>::new(), Vec::new());
        for (name, value) in pairs {
            let at = names.iter().position(|n| **n == **name).unwrap_or_else(|| {
                names.push((*name).into());
                names.len() - 1
            });
            pack(&mut block, u16::try_from(at).unwrap(), value.as_bytes());
        }
        Self { names, block }
    }

    fn view(&self) -> HeaderView<'_> {
        HeaderView::new(&self.names, &self.block).unwrap()
    }
}

fn request<'a>(headers: &'a Headers) -> RequestView<'a> {
    RequestView { method: "GET", scheme: "http", authority: "a", path: "/", headers: headers.view() }
}

fn policy(spec: &RetrySpec) -> RetryPolicy {
    RetryPolicy::compile(spec).unwrap()
}

fn exact(name: &str, value: &str) -> HeaderMatch {
    HeaderMatch {
        name: name.into(),
        value: StringMatch::Exact(value.into(), false),
        invert: false,
        treat_missing_as_empty: false,
    }
}

#[test]
fn backoff_vectors() {
    let rows = vectors("backoff");
    assert_eq!(rows.len(), 19);
    let mut kinds = [0; 5];
    for row in &rows {
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
    assert_eq!(kinds, [5, 7, 4, 1, 2]);
}

#[test]
fn an_interval_below_two_milliseconds_draws_nothing() {
    let mut random = Source::Draws(Draws::new(vec![5]));
    assert_eq!(rate_limited_ms(0, &mut random), None);
    assert_eq!(rate_limited_ms(1, &mut random), None);
    assert_eq!(rate_limited_ms(2, &mut random), Some(2));
    assert_eq!(rate_limited_ms(u64::MAX, &mut draws(vec![9])), Some(u64::MAX));
}

#[test]
fn parsing_vectors() {
    let rows = vectors("retry_on_parsing");
    assert_eq!(rows.len(), 15);
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
    let rows = vectors("retry_on_predicates");
    assert_eq!(rows.len(), 38);
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

#[test]
fn early_data_is_not_repeated_for_425() {
    let on = RetryOn::RETRIABLE_STATUS_CODES | RetryOn::RETRIABLE_HEADERS;
    let spec = RetrySpec {
        on,
        retriable_status_codes: vec![425],
        retriable_headers: vec![exact("x", "1")],
        ..RetrySpec::default()
    };
    let policy = policy(&spec);
    assert_eq!(on_headers(on, &policy, 425, None, HeaderView::EMPTY, false), Retry::Immediately);
    assert_eq!(on_headers(on, &policy, 425, None, HeaderView::EMPTY, true), Retry::No);
    // The scan goes on behind it.
    let headers = Headers::new(&[("x", "0"), ("x", "1")]);
    assert_eq!(on_headers(on, &policy, 425, None, headers.view(), true), Retry::WithBackoff);
}

#[test]
fn header_conditions_see_status_and_grpc_status() {
    let on = RetryOn::RETRIABLE_HEADERS;
    let policy =
        policy(&RetrySpec { on, retriable_headers: vec![exact(":status", "507")], ..RetrySpec::default() });
    for (status, expected) in [(507, Retry::WithBackoff), (50, Retry::No), (65535, Retry::No), (0, Retry::No)]
    {
        assert_eq!(on_headers(on, &policy, status, None, HeaderView::EMPTY, false), expected, "{status}");
    }
    let on = RetryOn::GRPC_UNAVAILABLE;
    for (value, expected) in
        [("14", Retry::WithBackoff), ("4", Retry::No), ("x", Retry::No), ("270", Retry::No)]
    {
        let headers = Headers::new(&[("grpc-status", value)]);
        assert_eq!(on_headers(on, &policy, 200, None, headers.view(), false), expected, "{value}");
        assert_eq!(on_headers(on, &policy, 200, Some(0), headers.view(), false), Retry::No, "{value}");
    }
}

#[test]
fn resets_that_never_retry_and_those_that_count_as_local() {
    let all = RetryOn(0xffff);
    for failure in 0..=u8::MAX {
        let never = matches!(failure, 0 | 11 | 14 | 18) || failure > 18;
        assert_eq!(on_reset(all, failure, false) == Retry::No, never, "{failure}");
        assert_eq!(on_reset(RetryOn::default(), failure, false), Retry::No);
        let connect = matches!(failure, 1 | 2 | 7);
        assert_eq!(on_reset(RetryOn::CONNECT_FAILURE, failure, false) != Retry::No, connect, "{failure}");
        assert_eq!(on_reset(RetryOn::REFUSED_STREAM, failure, false) != Retry::No, failure == 5, "{failure}");
        assert_eq!(on_reset(RetryOn::RESET_BEFORE_REQUEST, failure, true), Retry::No);
        assert_eq!(on_reset(RetryOn::RESET_BEFORE_REQUEST, failure, false) == Retry::No, never, "{failure}");
    }
}

#[test]
fn policies() {
    let with = |attempts| {
        policy(&RetrySpec { host_selection_retry_max_attempts: attempts, ..RetrySpec::default() }).candidates
    };
    assert_eq!([with(0), with(1), with(5), with(u32::MAX)], [2, 2, 6, u32::MAX]);
    let wanted = |spec: RetrySpec| {
        let (policy, mut lists) = (policy(&spec), [Vec::new(), Vec::new(), Vec::new()]);
        policy.wanted_request_headers(&mut |name| lists[0].push(name.to_owned()));
        policy.wanted_response_headers(&mut |name| lists[1].push(name.to_owned()));
        policy.wanted_success_headers(&mut |name| lists[2].push(name.to_owned()));
        lists.map(|list| list.join(" "))
    };
    assert_eq!(wanted(RetrySpec::default()), ["", "", ""]);
    assert_eq!(
        wanted(RetrySpec { on: RetryOn::FIVE_XX, ..RetrySpec::default() }),
        ["", "x-envoy-ratelimited", ""]
    );
    let spec = RetrySpec {
        on: RetryOn::RETRIABLE_HEADERS | RetryOn::RETRIABLE_STATUS_CODES | RetryOn::GRPC_CANCELLED,
        retriable_status_codes: vec![503, 425],
        retriable_headers: vec![exact("x-a", "1"), exact(":status", "2")],
        retriable_request_headers: vec![exact("x-b", "1"), exact(":path", "/")],
        ..RetrySpec::default()
    };
    let answer = "x-envoy-ratelimited x-a grpc-status";
    assert_eq!(wanted(spec), ["x-b early-data", answer, answer]);
}

#[test]
fn request_headers_change_the_policy_only_when_trusted() {
    let base = policy(&RetrySpec { on: RetryOn::RETRIABLE_4XX, num_retries: 3, ..RetrySpec::default() });
    let start = |policy: &RetryPolicy, pairs: &[(&str, &str)], trusted| {
        RetrySettings::new(policy, &request(&Headers::new(pairs)), trusted)
    };
    let on = [("x-envoy-retry-on", "5xx,unavailable"), ("x-envoy-retry-grpc-on", "cancelled,5xx")];
    assert_eq!(start(&base, &on, true).unwrap().bits, RetryOn(0x29));
    assert_eq!(start(&base, &on, false).unwrap().bits, RetryOn(0x8));
    let none = policy(&RetrySpec::default());
    assert_eq!(start(&none, &[], true), None);
    assert_eq!(start(&none, &on, false), None);
    let unknown = start(&none, &[("x-envoy-retry-on", "what")], true).unwrap();
    assert!(unknown.bits.is_empty() && unknown.remaining == 1);
    let counts = [
        ("1", 1),
        ("0", 0),
        ("+3", 3),
        ("4294967297", 1),
        ("abc", 3),
        ("-1", 3),
        ("3.0", 3),
        ("0x3", 3),
        ("18446744073709551616", 3),
    ];
    for (text, expected) in counts {
        let settings = start(&base, &[("x-envoy-max-retries", text)], true).unwrap();
        assert_eq!(settings.remaining, expected, "{text}");
        assert_eq!(settings.extra, None);
    }
}

#[test]
fn request_headers_add_codes_and_names() {
    let policy = policy(&RetrySpec {
        on: RetryOn::RETRIABLE_STATUS_CODES | RetryOn::RETRIABLE_HEADERS,
        retriable_status_codes: vec![404],
        ..RetrySpec::default()
    });
    let headers = Headers::new(&[
        ("x-envoy-retriable-status-codes", " 409, 418 junk,xxx200,429 "),
        ("x-envoy-retriable-header-names", "X-One, x-two,"),
    ]);
    let settings = RetrySettings::new(&policy, &request(&headers), true).unwrap();
    let extra = settings.extra.as_deref();
    assert_eq!(extra.unwrap().header_names().collect::<Vec<_>>(), ["x-one", "x-two"]);
    for (status, expected) in [(404, true), (409, true), (418, false), (200, false), (429, true)] {
        let answer = on_headers_with(settings.bits, &policy, extra, status, None, HeaderView::EMPTY, false);
        assert_eq!(answer != Retry::No, expected, "{status}");
    }
    let answer = Headers::new(&[("x-two", "")]);
    let answer = on_headers_with(settings.bits, &policy, extra, 200, None, answer.view(), false);
    assert_eq!(answer, Retry::WithBackoff);
}

#[test]
fn a_request_that_no_matcher_allows_is_not_retried() {
    let policy = policy(&RetrySpec {
        on: RetryOn::FIVE_XX,
        retriable_request_headers: vec![exact("x", "1"), exact(":method", "POST")],
        ..RetrySpec::default()
    });
    let headers = Headers::new(&[("x", "2"), ("x", "1")]);
    assert!(policy.allows(&request(&headers)));
    let headers = Headers::new(&[("x-envoy-retry-on", "reset"), ("x-envoy-max-retries", "9")]);
    let settings = RetrySettings::new(&policy, &request(&headers), true).unwrap();
    assert!(settings.bits.is_empty() && settings.remaining == 1);
    assert!(policy.allows(&RequestView { method: "POST", ..request(&headers) }));
}

#[test]
fn replies() {
    assert_eq!(reply_of(failure::CONNECT_FAILURE), (503, flags::UF));
    assert_eq!(reply_of(failure::PROTOCOL_ERROR), (502, flags::UPE));
    assert_eq!(reply_of(failure::MAX_STREAM_DURATION), (504, flags::UMSDR));
    assert_eq!(flags::text(reply_of(failure::OVERLOAD_MANAGER).1), "OM");
    for failure in 1..=18 {
        let (reason, details) = (reset_reason(failure), details(failure));
        let inner = details.strip_prefix("upstream_reset_before_response_started{");
        let inner = inner.and_then(|rest| rest.strip_suffix('}')).unwrap_or("");
        assert_eq!(inner, reason.replace(' ', "_"), "{failure}");
        assert_eq!(
            reason.is_empty(),
            body(failure, false).starts_with("upstream request") || failure == failure::MAX_STREAM_DURATION
        );
    }
    assert_eq!(
        details_with(failure::CONNECT_FAILURE, "delayed connect error: Connection refused"),
        "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}"
    );
    assert_eq!(details_with(failure::GLOBAL_TIMEOUT, "x"), "response_timeout");
    assert_eq!(
        body(failure::CONNECT_FAILURE, true),
        "upstream connect error or disconnect/reset before headers. \
         retried and the latest reset reason: remote connection failure"
    );
    assert_eq!(body(failure::PER_TRY_TIMEOUT, true), "upstream request timeout");
}

proptest! {
    #[test]
    fn delays_stay_below_their_bound(base_ms in 0u64.., max_ms in 0u64.., words: [u64; 6]) {
        let mut back_off = BackOff::new(&BackOffSpec { base_ms, max_ms });
        let mut random = draws(words.to_vec());
        for _ in words {
            let bound = back_off.bound_ms();
            prop_assert!(back_off.next(&mut random) < bound);
        }
    }

    #[test]
    fn conditions_never_panic(bits: u32, status: u16, grpc: Option<u8>, failure: u8, sent: bool, value in ".{0,8}") {
        let on = RetryOn(bits);
        let policy = policy(&RetrySpec { on, retriable_status_codes: vec![status.into()], ..RetrySpec::default() });
        let headers = Headers::new(&[("grpc-status", &value), ("x-envoy-max-retries", &value)]);
        on_headers(on, &policy, status, grpc, headers.view(), sent);
        on_reset(on, failure, sent);
        RetrySettings::new(&policy, &request(&headers), true);
    }
}
