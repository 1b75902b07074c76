//! What a trusted request's own headers change in its policy (`spec/retry-and-timeouts.md` section 4).

use super::policy::RetryPolicy;
use crate::headers::HeaderView;
use crate::route::RequestView;
use crate::spec::RetryOn;

/// The request headers read here, for requests whose `x-envoy-*` headers count.
pub const REQUEST_HEADERS: [&str; 11] = [
    "x-envoy-retry-on",
    "x-envoy-retry-grpc-on",
    "x-envoy-max-retries",
    "x-envoy-retriable-status-codes",
    "x-envoy-retriable-header-names",
    "x-envoy-upstream-rq-timeout-ms",
    "x-envoy-upstream-rq-per-try-timeout-ms",
    "x-envoy-upstream-rq-timeout-alt-response",
    "x-envoy-hedge-on-per-try-timeout",
    "x-envoy-expected-rq-timeout-ms",
    "x-envoy-upstream-stream-duration-ms",
];

/// Status codes and header names that a request added to its policy's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    status_codes: Vec<u32>,
    header_names: Vec<Box<str>>,
}

impl Extra {
    pub(super) fn lists(&self, status: u16) -> bool {
        self.status_codes.contains(&u32::from(status))
    }

    pub(super) fn has_header(&self, headers: HeaderView<'_>) -> bool {
        self.header_names.iter().any(|name| headers.first(name).is_some())
    }

    /// Lower-case names of response headers that must be handed in for this request.
    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        self.header_names.iter().map(|name| &**name)
    }
}

/// What one request starts its retries with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// May be empty although a retry state exists; then only a hedge can happen.
    pub bits: RetryOn,
    /// Retries left.
    pub remaining: u32,
    /// `None` for nearly all requests.
    pub extra: Option<Box<Extra>>,
}

impl RetrySettings {
    /// `None` when no retry state comes to exist. `trusted`: the request's `x-envoy-*` headers count.
    pub fn new(policy: &RetryPolicy, request: &RequestView<'_>, trusted: bool) -> Option<Self> {
        let header = |name| if trusted { request.headers.first(name).map(text) } else { None };
        let (on, grpc_on) = (header("x-envoy-retry-on"), header("x-envoy-retry-grpc-on"));
        if !policy.acts() && on.is_none() && grpc_on.is_none() {
            return None;
        }
        let mut settings = Self { bits: policy.on, remaining: policy.num_retries, extra: None };
        if let Some(tokens) = on {
            settings.bits |= RetryOn::parse_http(tokens).0;
        }
        if let Some(tokens) = grpc_on {
            settings.bits |= RetryOn::parse_grpc(tokens).0;
        }
        if !policy.allows(request) {
            settings.bits = RetryOn::default();
        }
        if settings.bits.is_empty() {
            return Some(settings);
        }
        if let Some(count) =
            header("x-envoy-max-retries").and_then(|value| value.trim_ascii().parse::<u64>().ok())
        {
            // Envoy keeps the low half of the number.
            #[expect(clippy::cast_possible_truncation, reason = "that is the rule")]
            {
                settings.remaining = count as u32;
            }
        }
        let items = |name| header(name).into_iter().flat_map(|list| list.split(',')).map(str::trim_ascii);
        let extra = Extra {
            status_codes: items("x-envoy-retriable-status-codes")
                .filter_map(|item| item.parse().ok())
                .collect(),
            header_names: items("x-envoy-retriable-header-names")
                .filter(|item| !item.is_empty())
                .map(|item| item.to_ascii_lowercase().into())
                .collect(),
        };
        if extra != Extra::default() {
            settings.extra = Some(Box::new(extra));
        }
        Some(settings)
    }
}

/// A header that `strict_check_headers` names and that does not read as it must: its name and value.
pub fn ill_formed(name: &str, headers: HeaderView<'_>) -> Option<(Box<str>, String)> {
    let value = headers.first(name)?;
    let read = text(value);
    let good = match name {
        "x-envoy-retry-on" => RetryOn::parse_http(read).1,
        "x-envoy-retry-grpc-on" => RetryOn::parse_grpc(read).1,
        _ => read.trim_ascii().parse::<u64>().is_ok(),
    };
    (!good).then(|| (name.into(), String::from_utf8_lossy(value).into_owned()))
}

/// Header text; bytes that are no UTF-8 are no token or number either.
fn text(value: &[u8]) -> &str {
    std::str::from_utf8(value).unwrap_or("")
}
