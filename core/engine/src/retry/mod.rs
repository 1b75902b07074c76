//! What decides whether a failed attempt is tried again: policies, conditions, back-off, and the answer a client
//! gets when it is not.

mod backoff;
mod conditions;
mod limits;
mod policy;
mod priorities;
mod reply;
mod request;
mod reset;
#[cfg(test)]
mod tests;

pub use backoff::{BackOff, rate_limited_ms};
pub use conditions::{Retry, on_headers, on_headers_with, on_reset};
pub use limits::{Limits, RouteLimits, expected_ms, grpc_timeout_ms, grpc_timeout_text, stream_duration};
pub use policy::RetryPolicy;
pub use priorities::PreviousPriorities;
pub use reply::{body, details, details_with, reply_of, reset_reason, speak_grpc};
pub use request::{Extra, REQUEST_HEADERS, RetrySettings, ill_formed};
pub use reset::ResetHeaders;
