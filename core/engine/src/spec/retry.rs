//! Retry policies (`spec/retry-and-timeouts.md` sections 3 to 12).

use super::{HeaderMatch, RetryOptions, Value};
use std::ops::{BitOr, BitOrAssign};
use std::time::Duration;

/// The bit set of `retry_on` (section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryOn(pub u32);

/// Token and bit, HTTP tokens first.
const HTTP_TOKENS: [(&str, RetryOn); 11] = [
    ("5xx", RetryOn::FIVE_XX),
    ("gateway-error", RetryOn::GATEWAY_ERROR),
    ("connect-failure", RetryOn::CONNECT_FAILURE),
    ("retriable-4xx", RetryOn::RETRIABLE_4XX),
    ("refused-stream", RetryOn::REFUSED_STREAM),
    ("retriable-status-codes", RetryOn::RETRIABLE_STATUS_CODES),
    ("reset", RetryOn::RESET),
    ("retriable-headers", RetryOn::RETRIABLE_HEADERS),
    ("envoy-ratelimited", RetryOn::ENVOY_RATELIMITED),
    ("http3-post-connect-failure", RetryOn::HTTP3_POST_CONNECT_FAILURE),
    ("reset-before-request", RetryOn::RESET_BEFORE_REQUEST),
];
const GRPC_TOKENS: [(&str, RetryOn); 5] = [
    ("cancelled", RetryOn::GRPC_CANCELLED),
    ("deadline-exceeded", RetryOn::GRPC_DEADLINE_EXCEEDED),
    ("resource-exhausted", RetryOn::GRPC_RESOURCE_EXHAUSTED),
    ("unavailable", RetryOn::GRPC_UNAVAILABLE),
    ("internal", RetryOn::GRPC_INTERNAL),
];

#[expect(missing_docs, reason = "Envoy's words")]
impl RetryOn {
    /// No condition.
    pub const NONE: Self = Self(0);
    pub const FIVE_XX: Self = Self(0x1);
    pub const GATEWAY_ERROR: Self = Self(0x2);
    pub const CONNECT_FAILURE: Self = Self(0x4);
    pub const RETRIABLE_4XX: Self = Self(0x8);
    pub const REFUSED_STREAM: Self = Self(0x10);
    pub const GRPC_CANCELLED: Self = Self(0x20);
    pub const GRPC_DEADLINE_EXCEEDED: Self = Self(0x40);
    pub const GRPC_RESOURCE_EXHAUSTED: Self = Self(0x80);
    pub const GRPC_UNAVAILABLE: Self = Self(0x100);
    pub const GRPC_INTERNAL: Self = Self(0x200);
    pub const RETRIABLE_STATUS_CODES: Self = Self(0x400);
    pub const RESET: Self = Self(0x800);
    pub const RETRIABLE_HEADERS: Self = Self(0x1000);
    pub const ENVOY_RATELIMITED: Self = Self(0x2000);
    pub const HTTP3_POST_CONNECT_FAILURE: Self = Self(0x4000);
    pub const RESET_BEFORE_REQUEST: Self = Self(0x8000);
    /// The five gRPC conditions.
    pub const GRPC: Self = Self(0x3e0);

    /// The tokens of the conditions that are set, as documents have them.
    pub fn names(self) -> Vec<&'static str> {
        let all = HTTP_TOKENS.iter().chain(&GRPC_TOKENS);
        all.filter(|(_, bit)| self.has(*bit)).map(|(name, _)| *name).collect()
    }

    /// Whether any bit of `other` is set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no bit is set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Splits at commas, trims blanks, matches exactly. Returns the bits and whether every token was known.
    pub fn parse(text: &str) -> (Self, bool) {
        Self::parse_with(text, &[&HTTP_TOKENS, &GRPC_TOKENS])
    }

    /// Only the HTTP tokens, as the header `x-envoy-retry-on` allows.
    pub fn parse_http(text: &str) -> (Self, bool) {
        Self::parse_with(text, &[&HTTP_TOKENS])
    }

    /// Only the gRPC tokens, as the header `x-envoy-retry-grpc-on` allows.
    pub fn parse_grpc(text: &str) -> (Self, bool) {
        Self::parse_with(text, &[&GRPC_TOKENS])
    }

    fn parse_with(text: &str, tables: &[&[(&str, Self)]]) -> (Self, bool) {
        let (mut bits, mut known) = (Self::default(), true);
        for token in text.split(',') {
            let token = token.trim_matches([' ', '\t']);
            match tables.iter().flat_map(|table| table.iter()).find(|(name, _)| *name == token) {
                Some((_, bit)) => bits |= *bit,
                None => known = false,
            }
        }
        (bits, known)
    }
}

impl BitOr for RetryOn {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for RetryOn {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// A whole retry policy; there is no field-wise merge between levels.
#[derive(Clone, Debug, PartialEq)]
pub struct RetrySpec {
    /// Conditions. Empty = never.
    pub on: RetryOn,
    /// Retries after the first attempt. Defaults to 1; 0 counts retriable outcomes as limit exceeded.
    pub num_retries: u32,
    /// Zero = off (the default).
    pub per_try_timeout: Duration,
    /// Zero = off (the default).
    pub per_try_idle_timeout: Duration,
    /// Exponential back-off. `None`: from the runtime's `upstream.base_retry_backoff_ms` (default 25) to ten times that.
    pub back_off: Option<BackOffSpec>,
    /// For the condition `retriable-status-codes`.
    pub retriable_status_codes: Vec<u32>,
    /// For the condition `retriable-headers`; any match counts.
    pub retriable_headers: Vec<HeaderMatch>,
    /// When not empty and none matches the request, nothing is retried.
    pub retriable_request_headers: Vec<HeaderMatch>,
    /// Host predicate `previous_hosts`: do not choose a host that this request has tried.
    pub previous_hosts: bool,
    /// Host predicate `omit_canary_hosts`: do not choose a host whose `envoy.lb` metadata says `canary: true`.
    pub omit_canary_hosts: bool,
    /// Host predicates `omit_host_metadata`: do not choose a host that has all pairs of one of these lists.
    pub omit_host_metadata: Vec<Vec<(String, Value)>>,
    /// Retry priority `previous_priorities`: after this many attempts the tried priorities are left out.
    pub previous_priorities: Option<u32>,
    /// Back-off by what an answer says; `None` = the exponential one always.
    pub rate_limited: Option<RateLimitedSpec>,
    /// A retry chooses among weighted clusters again. Defaults to false.
    pub refresh_cluster_on_retry: bool,
    /// Redraws while predicates reject; candidates examined = this + 1. Defaults to 1; 0 acts as 1.
    pub host_selection_retry_max_attempts: u32,
    /// Mechanisms beyond Envoy.
    pub options: RetryOptions,
}

impl Default for RetrySpec {
    fn default() -> Self {
        Self {
            on: RetryOn::default(),
            num_retries: 1,
            per_try_timeout: Duration::ZERO,
            per_try_idle_timeout: Duration::ZERO,
            back_off: None,
            retriable_status_codes: Vec::new(),
            retriable_headers: Vec::new(),
            retriable_request_headers: Vec::new(),
            previous_hosts: false,
            omit_canary_hosts: false,
            omit_host_metadata: Vec::new(),
            previous_priorities: None,
            rate_limited: None,
            refresh_cluster_on_retry: false,
            host_selection_retry_max_attempts: 1,
            options: RetryOptions::default(),
        }
    }
}

/// `retry_back_off` (section 9); whole milliseconds, at least 1 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOffSpec {
    /// Milliseconds. Defaults to 25.
    pub base_ms: u64,
    /// Milliseconds, not below `base_ms`. Defaults to 10 times the base.
    pub max_ms: u64,
}

impl Default for BackOffSpec {
    fn default() -> Self {
        Self { base_ms: 25, max_ms: 250 }
    }
}

/// `rate_limited_retry_back_off` (section 10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimitedSpec {
    /// Header names in the order in which they are looked at; at least one.
    pub reset_headers: Vec<(String, ResetFormat)>,
    /// Milliseconds; longer intervals are not believed. Defaults to 300,000.
    pub max_ms: u64,
}

/// What a reset header counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetFormat {
    /// Seconds from now.
    Seconds,
    /// Seconds since 1970.
    UnixTimestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        assert_eq!(RetryOn::parse("5xx, reset,unavailable"), (RetryOn(0x901), true));
        assert_eq!(RetryOn::parse("5XX"), (RetryOn(0), false));
        assert_eq!(RetryOn::parse_http("5xx,unavailable"), (RetryOn(1), false));
        assert_eq!(RetryOn::parse_grpc("5xx,unavailable"), (RetryOn(0x100), false));
    }
}
