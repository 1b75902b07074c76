//! The limits of one request, and what its attempts tell the upstream of them (`spec/retry-and-timeouts.md`
//! sections 14.1 and 14.4).

use crate::clock::MILLI;
use crate::headers::HeaderView;
use crate::outcome::NEVER;

/// What a route says about time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLimits {
    /// NEVER = off.
    pub timeout: u64,
    /// NEVER = off.
    pub per_try: u64,
    /// `max_grpc_timeout` and `grpc_timeout_offset`, 0 = none; the whole is `None` when the first is not set.
    pub grpc: Option<(u64, u64)>,
    /// A trusted `x-envoy-expected-rq-timeout-ms` is the limit.
    pub respect_expected: bool,
}

/// What holds for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nanoseconds, NEVER = off.
    pub timeout: u64,
    /// Nanoseconds, NEVER = off.
    pub per_try: u64,
    /// Attempts carry `grpc-timeout` anew.
    pub grpc: bool,
}

impl RouteLimits {
    /// The limits of a request. `trusted`: its `x-envoy-*` headers count. `grpc`: it is a gRPC request.
    pub fn resolve(&self, headers: HeaderView<'_>, trusted: bool, grpc: bool) -> Limits {
        let mut limits = Limits { timeout: self.timeout, per_try: self.per_try, grpc: false };
        if let Some((max, offset)) = self.grpc.filter(|_| grpc) {
            let mut asked = headers.first("grpc-timeout").and_then(grpc_timeout_ms).unwrap_or(0);
            asked = asked.saturating_mul(MILLI);
            if offset < asked {
                asked -= offset;
            }
            if max != 0 && (asked == 0 || asked > max) {
                asked = max;
            }
            limits.timeout = off(asked);
            limits.grpc = true;
        }
        if trusted {
            let expected = "x-envoy-expected-rq-timeout-ms";
            let name = if self.respect_expected && headers.first(expected).is_some() {
                expected
            } else {
                "x-envoy-upstream-rq-timeout-ms"
            };
            limits.timeout = millis(headers, name).unwrap_or(limits.timeout);
            limits.per_try =
                millis(headers, "x-envoy-upstream-rq-per-try-timeout-ms").unwrap_or(limits.per_try);
        }
        // A limit per try that the global one reaches first, or at once, is ignored.
        if limits.timeout != NEVER && limits.per_try >= limits.timeout {
            limits.per_try = NEVER;
        }
        limits
    }
}

/// Zero is no limit.
const fn off(nanos: u64) -> u64 {
    if nanos == 0 { NEVER } else { nanos }
}

/// The stream duration that a trusted request asks for, in nanoseconds; NEVER = none.
pub fn stream_duration(headers: HeaderView<'_>) -> Option<u64> {
    millis(headers, "x-envoy-upstream-stream-duration-ms")
}

/// A header of milliseconds; what is no whole number counts as absent.
fn millis(headers: HeaderView<'_>, name: &str) -> Option<u64> {
    let text = std::str::from_utf8(headers.first(name)?).ok()?.trim_ascii();
    Some(off(text.parse::<u64>().ok()?.saturating_mul(MILLI)))
}

/// A `grpc-timeout` header in milliseconds, rounded up.
pub fn grpc_timeout_ms(value: &[u8]) -> Option<u64> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => number * 3_600_000,
        b'M' => number * 60_000,
        b'S' => number * 1_000,
        b'm' => number,
        b'u' => number.div_ceil(1_000),
        b'n' => number.div_ceil(1_000_000),
        _ => return None,
    })
}

/// Milliseconds as a `grpc-timeout` header: at most eight digits.
pub fn grpc_timeout_text(mut number: u64) -> String {
    for (unit, next) in [('m', 1_000), ('S', 60), ('M', 60)] {
        if number <= 99_999_999 {
            return format!("{number}{unit}");
        }
        number /= next;
    }
    format!("{}H", number.min(99_999_999))
}

/// `x-envoy-expected-rq-timeout-ms`: how long the upstream may take. `left`: nanoseconds of the global limit.
pub fn expected_ms(timeout: u64, per_try: u64, hedges: bool, left: u64) -> Option<u64> {
    let expected = if per_try == NEVER || hedges { timeout } else { per_try };
    if expected == NEVER {
        return None;
    }
    let left = if timeout == NEVER { NEVER } else { left.div_ceil(MILLI).max(1) };
    Some((expected / MILLI).min(left))
}
