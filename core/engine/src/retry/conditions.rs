//! Which outcomes a policy retries (`spec/retry-and-timeouts.md` sections 6 and 7).

use super::policy::RetryPolicy;
use super::request::Extra;
use crate::headers::HeaderView;
use crate::outcome::failure;
use crate::spec::RetryOn;

/// The status that asks to repeat the request once the connection is complete.
pub(super) const TOO_EARLY: u16 = 425;

/// What the conditions say; limits and breakers come later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not retriable.
    No,
    /// After a back-off.
    WithBackoff,
    /// Without one.
    Immediately,
}

impl Retry {
    fn when(retriable: bool) -> Self {
        if retriable { Self::WithBackoff } else { Self::No }
    }
}

/// An answer whose headers arrived. `grpc_status` is the one of the headers, never of trailers; without it the
/// header `grpc-status` is read. `early_data`: the request itself came as early data.
pub fn on_headers(
    bits: RetryOn,
    policy: &RetryPolicy,
    status: u16,
    grpc_status: Option<u8>,
    headers: HeaderView<'_>,
    early_data: bool,
) -> Retry {
    on_headers_with(bits, policy, None, status, grpc_status, headers, early_data)
}

/// As [`on_headers`], with what the request's own headers added to the policy.
pub fn on_headers_with(
    bits: RetryOn,
    policy: &RetryPolicy,
    extra: Option<&Extra>,
    status: u16,
    grpc_status: Option<u8>,
    headers: HeaderView<'_>,
    early_data: bool,
) -> Retry {
    if bits.is_empty() {
        return Retry::No;
    }
    // Whoever limits the rate decides alone: not even a 500 is retried by `5xx` then.
    if headers.first("x-envoy-ratelimited").is_some() {
        return Retry::when(bits.has(RetryOn::ENVOY_RATELIMITED));
    }
    let by_status = (bits.has(RetryOn::FIVE_XX) && matches!(status, 500..=599))
        || (bits.has(RetryOn::GATEWAY_ERROR) && matches!(status, 502..=504))
        || (bits.has(RetryOn::RETRIABLE_4XX) && status == 409);
    if by_status {
        return Retry::WithBackoff;
    }
    if bits.has(RetryOn::RETRIABLE_STATUS_CODES)
        && (policy.lists(status) || extra.is_some_and(|extra| extra.lists(status)))
    {
        if status != TOO_EARLY {
            return Retry::WithBackoff;
        }
        if !early_data {
            return Retry::Immediately;
        }
    }
    let by_header = bits.has(RetryOn::RETRIABLE_HEADERS)
        && (has_retriable_header(policy, status, headers)
            || extra.is_some_and(|extra| extra.has_header(headers)));
    Retry::when(by_header || (bits.has(RetryOn::GRPC) && is_retriable_grpc(bits, grpc_status, headers)))
}

fn has_retriable_header(policy: &RetryPolicy, status: u16, headers: HeaderView<'_>) -> bool {
    policy.response_headers.iter().any(|header| match &*header.name {
        ":status" => {
            let mut digits = [0; 5];
            header.matches_any(std::iter::once(decimal(status, &mut digits)))
        }
        name => header.matches_any(headers.values(name)),
    })
}

fn decimal(mut number: u16, digits: &mut [u8; 5]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 || at == 0 {
            return &digits[at..];
        }
    }
}

fn is_retriable_grpc(bits: RetryOn, status: Option<u8>, headers: HeaderView<'_>) -> bool {
    let from_header = || {
        let value = headers.first("grpc-status")?;
        std::str::from_utf8(value.trim_ascii()).ok()?.parse::<u8>().ok()
    };
    let bit = match status.or_else(from_header) {
        Some(1) => RetryOn::GRPC_CANCELLED,
        Some(4) => RetryOn::GRPC_DEADLINE_EXCEEDED,
        Some(8) => RetryOn::GRPC_RESOURCE_EXHAUSTED,
        Some(13) => RetryOn::GRPC_INTERNAL,
        Some(14) => RetryOn::GRPC_UNAVAILABLE,
        _ => return false,
    };
    bits.has(bit)
}

/// A failure before any response header (numbers of [`failure`]). `request_bytes_sent` is sticky over the
/// attempts of a request.
pub fn on_reset(bits: RetryOn, failure: u8, request_bytes_sent: bool) -> Retry {
    use failure::{CONNECT_FAILURE, CONNECT_TIMEOUT, LOCAL_CONNECT_FAILURE};
    let connect = matches!(failure, CONNECT_FAILURE | CONNECT_TIMEOUT | LOCAL_CONNECT_FAILURE);
    // Overflow would only meet the same full limit again; the other two ended the request.
    let never = matches!(
        failure,
        failure::NONE | failure::OVERFLOW | failure::NO_ERROR_RESET | failure::GLOBAL_TIMEOUT
    );
    let known = usize::from(failure) < failure::NAMES.len();
    Retry::when(
        known
            && !never
            && ((connect && bits.has(RetryOn::CONNECT_FAILURE))
                || (bits.has(RetryOn::RESET_BEFORE_REQUEST) && !request_bytes_sent)
                || bits.has(RetryOn::RESET | RetryOn::FIVE_XX | RetryOn::GATEWAY_ERROR)
                || (bits.has(RetryOn::REFUSED_STREAM) && failure == failure::REFUSED_STREAM)),
    )
}
