//! Active checks: what is due, and what came of it.

use crate::engine_face::{Engine, HostRef};
use crate::raw::{self, Error, HostInfo, Misuse, Outcome, check_bits, check_protocol, check_results};
use nexthop_engine::Time;
use nexthop_engine::health::CheckResult;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// What a check speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CheckProtocol {
    /// One request over HTTP/1.1.
    Http,
    /// One request over HTTP/2.
    Http2,
    /// A connection, and perhaps bytes.
    Tcp,
    /// `grpc.health.v1.Health/Check`.
    Grpc,
    /// Something that only the caller knows; see [`Check::extension`].
    Custom,
}

/// A check to perform now: connect to `address`, ask, and report what came of it within `timeout`. It is handed out
/// once; what is not reported in time counts as timed out, so dropping it is no report.
#[must_use = "a check that is not reported counts as timed out"]
pub struct Check<E: Deref<Target = Engine>> {
    engine: E,
    check: raw::Check,
}

impl<E: Deref<Target = Engine>> Check<E> {
    /// Its number.
    pub fn id(&self) -> u64 {
        self.check.id
    }

    /// The engine that wants to know.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Whom it is about.
    pub fn host_ref(&self) -> HostRef {
        HostRef { slot: self.check.host, version: self.check.host_version }
    }

    /// What is shown of the host; `None` when it is gone.
    pub fn host(&self) -> Option<Arc<HostInfo>> {
        self.engine.host(HostRef { version: 0, ..self.host_ref() })
    }

    /// Name of the host's cluster.
    pub fn cluster(&self) -> &str {
        &self.check.cluster
    }

    /// Name of the checker in its cluster; empty when there is one.
    pub fn name(&self) -> &str {
        &self.check.spec.name
    }

    /// What to speak.
    pub fn protocol(&self) -> CheckProtocol {
        match raw::protocol_of(&self.check) {
            check_protocol::HTTP if self.check.is_http2() => CheckProtocol::Http2,
            check_protocol::HTTP => CheckProtocol::Http,
            check_protocol::TCP => CheckProtocol::Tcp,
            check_protocol::GRPC => CheckProtocol::Grpc,
            _ => CheckProtocol::Custom,
        }
    }

    /// Extension name of a custom check (`envoy.health_checkers.redis`); empty for others.
    pub fn extension(&self) -> &str {
        raw::extension_of(&self.check)
    }

    /// Where to connect, `ip:port`: the host's address unless the documents name another port or address to check.
    pub fn address(&self) -> &str {
        &self.check.address
    }

    /// Whether the host speaks TLS.
    pub fn secure(&self) -> bool {
        self.check.secure
    }

    /// Whether one connection may carry many checks.
    pub fn may_reuse(&self) -> bool {
        raw::bits_of(&self.check) & check_bits::REUSE != 0
    }

    /// Method of the request; empty unless HTTP or gRPC.
    pub fn method(&self) -> &str {
        self.check.method()
    }

    /// Path of the request with its query; empty unless HTTP or gRPC.
    pub fn path(&self) -> &str {
        self.check.path()
    }

    /// Host header or `:authority`; empty unless HTTP or gRPC.
    pub fn authority(&self) -> &str {
        &self.check.authority
    }

    /// The other headers of the request, names in lower case.
    pub fn headers(&self) -> Vec<(&str, &str)> {
        self.check.headers()
    }

    /// What to send: a body, a framed gRPC message, or plain bytes; empty = nothing.
    pub fn payload(&self) -> &[u8] {
        &self.check.payload
    }

    /// How long it may take in all.
    pub fn timeout(&self) -> Duration {
        Duration::from_nanos(self.check.timeout)
    }

    /// How many bytes of a response's body are looked at; what comes behind them may be dropped.
    pub fn body_limit(&self) -> u64 {
        self.check.body_limit
    }

    /// Number of the headers (and trailers) that [`answer`](Self::answer) wants, for
    /// [`HeaderBlock::over`](crate::HeaderBlock::over).
    pub fn want(&self) -> u32 {
        self.check.want.into()
    }

    /// A result that the caller judged. [`CheckResult::Passive`] is about data traffic: the check goes on.
    ///
    /// # Errors
    /// [`Misuse::Ended`]: out of time, or its host has left; nothing has changed. So for every report.
    pub fn result(self, result: CheckResult, now: Time) -> Result<(), Misuse> {
        let number = match result {
            CheckResult::Success { degraded: false } => check_results::SUCCESS,
            CheckResult::Success { degraded: true } => check_results::DEGRADED,
            CheckResult::Failed { retriable: false } => check_results::FAILED,
            CheckResult::Failed { retriable: true } => check_results::RETRIABLE,
            CheckResult::Network => check_results::NETWORK,
            CheckResult::Timeout => check_results::TIMEOUT,
            CheckResult::Passive => check_results::PASSIVE,
        };
        self.report(number, &Outcome::default(), &[], now).map(|_| ())
    }

    /// An answer over HTTP or gRPC, judged by the engine: status, headers over [`want`](Self::want) (trailers, too),
    /// and the body up to [`body_limit`](Self::body_limit).
    pub fn answer(self, outcome: &Outcome<'_>, body: &[u8], now: Time) -> Result<(), Misuse> {
        self.report(check_results::JUDGE, outcome, body, now).map(|_| ())
    }

    /// Everything that a TCP connection has brought so far (nothing, once it is up). Whether that decides the check;
    /// otherwise read on.
    pub fn data(&self, received: &[u8], now: Time) -> Result<bool, Misuse> {
        self.report(check_results::JUDGE, &Outcome::default(), received, now)
    }

    /// No (whole) answer: one of [`failure`](mod@crate::failure). Time-outs count as such, everything else as a matter
    /// of the network.
    pub fn fail(self, failure: u8, now: Time) -> Result<(), Misuse> {
        self.report(check_results::JUDGE, &Outcome::failed(failure), &[], now).map(|_| ())
    }

    fn report(&self, result: u32, outcome: &Outcome<'_>, body: &[u8], now: Time) -> Result<bool, Misuse> {
        let done = raw::with_local(|local| {
            raw::check_result(local, self.engine.id(), self.check.id, result, outcome, body, now.0)
        });
        self.engine.wakers.wake(self.engine.id());
        done.map_err(|error| match error {
            Error::Misuse(misuse, _) => misuse,
            _ => Misuse::Panic,
        })
    }
}

impl<E: Deref<Target = Engine>> std::fmt::Debug for Check<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check")
            .field("id", &self.check.id)
            .field("cluster", &self.check.cluster)
            .field("protocol", &self.protocol())
            .field("address", &self.check.address)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// The next active check that is due, each handed out once. The first call begins active checking; before it, hosts
    /// count as if no cluster had `health_checks`. Hosts that serve at that moment go on until their first result.
    pub fn poll_check(&self, now: Time) -> Option<Check<&Self>> {
        // The engine lives as long as this does.
        let check = raw::with_local(|local| raw::poll_check(local, self.id(), now.0)).ok().flatten()?;
        Some(Check { engine: self, check })
    }

    /// The same, sharing the engine: for tasks that outlive the caller.
    pub fn poll_check_arc(self: &Arc<Self>, now: Time) -> Option<Check<Arc<Self>>> {
        let check = raw::with_local(|local| raw::poll_check(local, self.id(), now.0)).ok().flatten()?;
        Some(Check { engine: Arc::clone(self), check })
    }

    /// How long until [`poll_check`](Self::poll_check) has something to do, counted from `now`; `None` = nothing is
    /// checked, or nobody has asked yet. An update of documents or hosts may bring checks that are due at once.
    pub fn checks_deadline(&self, now: Time) -> Option<Duration> {
        match raw::checks_deadline(self.id(), now.0) {
            Ok(span) if span != raw::NEVER => Some(Duration::from_nanos(span)),
            _ => None,
        }
    }
}
