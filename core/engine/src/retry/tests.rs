//! Conditions, policies, back-off and replies; `vectors` holds the recorded facts.

use super::*;
use crate::headers::{HeaderView, pack};
use crate::outcome::{failure, flags};
use crate::random::{Draws, Source};
use crate::route::RequestView;
use crate::spec::{BackOffSpec, HeaderMatch, RetryOn, RetrySpec, StringMatch};
use proptest::prelude::*;

mod vectors;

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
fn an_interval_below_two_milliseconds_draws_nothing() {
    let mut random = Source::Draws(Draws::new(vec![5]));
    assert_eq!(rate_limited_ms(0, &mut random), None);
    assert_eq!(rate_limited_ms(1, &mut random), None);
    assert_eq!(rate_limited_ms(2, &mut random), Some(2));
    assert_eq!(rate_limited_ms(u64::MAX, &mut draws(vec![9])), Some(u64::MAX));
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
