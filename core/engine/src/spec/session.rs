//! Sessions that stay at their host (`spec/load-balancing.md` section 25.2; Envoy's stateful_session filter).

use std::time::Duration;

/// How requests name the host of their session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSpec {
    /// That host or none. Defaults to false: any other when it cannot be used.
    pub strict: bool,
    /// Where requests say it.
    pub state: SessionState,
}

/// Where the host of a session is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// In a header: base64 of `ip:port`.
    Header {
        /// Lower case.
        name: String,
    },
    /// In a cookie: base64 of a small message with `ip:port` and, with a time to live, its end.
    Cookie {
        /// Its name.
        name: String,
        /// `Max-Age`; zero = as long as the client lives.
        ttl: Duration,
        /// Only requests to this path and below have a session; empty = all.
        path: String,
    },
}
