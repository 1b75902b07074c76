//! nexthop's decisions: which host, may I, how long, and, when it ended, what now.
//!
//! This crate opens no socket, reads no clock, starts no thread and keeps no global state. Time and randomness
//! come in as arguments; what must happen later is told as a deadline. See `docs/architecture.md`.
// One module has a lock of its own (`request::cell`); nothing else may.
#![deny(unsafe_code)]

mod admission;
mod arena;
pub mod balance;
mod base64;
mod breaker;
pub mod clock;
mod cluster;
pub mod engine;
mod events;
pub mod explain;
pub mod hash;
pub mod headers;
pub mod health;
pub mod hosts;
pub mod ids;
mod inspect;
mod leads;
mod maintain;
pub mod matching;
mod measured;
#[cfg(all(test, loom))]
mod models;
mod opt_in;
mod orca;
pub mod outcome;
mod outlier;
mod policies;
mod publish;
pub mod random;
mod request;
pub mod retry;
pub mod route;
pub mod sets;
mod shed;
mod snapshot;
pub mod spec;
pub mod stats;
pub mod sync;
mod update;
mod wire;
pub mod worker;

pub use balance::StageOutcome;
pub use clock::{Clock, Time};
pub use inspect::{HostState, RequestInfo, Stat, refusal_body, refusal_details};
pub use opt_in::OptCounter;
pub use outcome::{Decision, Head, LocalReply, Misuse, Outcome, Packed, Ready, Verdict};
