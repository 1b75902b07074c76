//! What decides whether a failed attempt is tried again: policies, conditions, back-off, and the answer a client
//! gets when it is not.

mod backoff;
mod conditions;
mod policy;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use backoff::{BackOff, rate_limited_ms};
pub use conditions::{Retry, on_headers, on_headers_with, on_reset};
pub use policy::RetryPolicy;
pub use reply::{body, details, details_with, reply_of, reset_reason};
pub use request::{Extra, REQUEST_HEADERS, RetrySettings};
