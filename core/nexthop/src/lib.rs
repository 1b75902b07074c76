//! nexthop: Envoy's upstream decisions as a library. Which host, may I, how long may it take, and, when the attempt
//! has ended, what now. It owns the decisions and no socket: the HTTP client stays yours.
//!
//! A script that keeps its own loop passes the attempt number:
//!
//! ```
//! use nexthop::{Choice, Engine, Outcome};
//!
//! let mesh = Engine::from_text(
//!     "clusters: {first: {hosts: [10.0.0.1:80]}, second: {hosts: [10.0.0.2:80]}, \
//!      providers: {composite: [first, second]}}",
//! )?;
//! // The second attempt of a composite goes to its second sub-cluster.
//! if let Choice::Attempt(attempt) = mesh.pick(mesh.resolve("providers")?, 2, None, mesh.now())? {
//!     assert_eq!(attempt.host().address, "10.0.0.2:80");
//!     attempt.complete(&Outcome::status(200), mesh.now())?;
//! }
//! # Ok::<(), nexthop::Error>(())
//! ```
//!
//! A request keeps count by itself: ask, send, report, and ask again while the verdict says retry.
//!
//! ```
//! use nexthop::{Action, Choice, Engine, Error, Outcome, RequestHead};
//! # fn http_get(address: &str) -> Result<u16, u8> {
//! #     Ok(if address == "10.0.0.1:80" { 503 } else { 200 })
//! # }
//!
//! fn get(mesh: &Engine) -> Result<u16, Error> {
//!     let head = RequestHead { target: mesh.resolve("checkout")?, path: "/pay", ..RequestHead::default() };
//!     let mut call = mesh.request(&head, mesh.now());
//!     loop {
//!         match call.choose_host(mesh.now())? {
//!             Choice::Attempt(attempt) => {
//!                 let outcome = match http_get(&attempt.host().address) {
//!                     Ok(status) => Outcome::status(status),
//!                     Err(failure) => Outcome::failed(failure),
//!                 };
//!                 let verdict = attempt.complete(&outcome, mesh.now())?;
//!                 if verdict.action != Action::Retry {
//!                     return Ok(verdict.status);
//!                 }
//!             }
//!             Choice::Wait(wait) => wait.sleep(),
//!             Choice::Refused(refusal) => return Ok(refusal.status),
//!         }
//!     }
//! }
//!
//! let mesh = Engine::from_text(
//!     "clusters: {checkout: {hosts: [10.0.0.1:80, 10.0.0.2:80], retry: {on: [5xx], times: 2, avoid_tried: true}}}",
//! )?;
//! assert_eq!(get(&mesh)?, 200);
//! # Ok::<(), Error>(())
//! ```
//!
//! With feature `tokio`, `Driver` is that loop for asynchronous code; with feature `tower`, `NexthopLayer` puts it
//! around a client; with feature `checks`, `Checker` performs the active health checks. [`raw`] is the level that every other language's face is built on: numbers in, numbers out.

#[cfg(feature = "cli")]
pub mod program;
#[cfg(feature = "tokio")]
mod race;
pub mod raw;

mod attempt;
mod builder;
mod check;
#[cfg(feature = "checks")]
mod checker;
mod choice;
#[cfg(feature = "tokio")]
mod driver;
mod engine_face;
pub mod event_log;
mod failures;
mod header_block;
#[cfg(feature = "tower")]
mod layer;
mod request;
mod verdict;
mod wakers;
mod words;

pub use nexthop_config as config;
pub use nexthop_engine as engine;

pub use attempt::{Attempt, Plan};
pub use builder::{Builder, Clock};
pub use check::{Check, CheckProtocol};
#[cfg(feature = "checks")]
pub use checker::{Checker, OtherCheck};
pub use choice::{Choice, Refusal, Wait};
#[cfg(feature = "tokio")]
pub use driver::{Declined, Driver, Reply, Upstream};
pub use engine_face::{Engine, HostRef, Target, Text};
pub use event_log::EventLog;
pub use failures::{AsFailure, failure_of};
pub use header_block::HeaderBlock;
#[cfg(feature = "tower")]
pub use layer::{NexthopBody, NexthopLayer, NexthopService};
pub use nexthop_config::ConfigError;
pub use nexthop_engine::Time;
pub use nexthop_engine::health::CheckResult;
pub use raw::{
    Document, Error, Head as RequestHead, HostChange, HostInfo, LocalReply, Metric, Misuse, NO_SUCH_TARGET,
    Outcome, Ready, RequestInfo, Stat, document_kind, failure, head_bits, host_fields, host_op, last_error,
    outcome_bits,
};
pub use request::Request;
pub use verdict::{Action, Finish, Note, Signals, Verdict};
pub use words::{Reason, RefusalKind, Resource, ResponseFlags, WaitReason};
