//! Active health checking without I/O (`spec/breakers-and-health.md` part B): the engine says which check is due
//! against which host and judges what came back; performing checks is the caller's.
//!
//! `session` is what results do to one host under one checker, `delay` when the next check is due, `judge` the rules
//! of the protocols, `board` the sessions and timers of all hosts, `event` the event log, `work` the engine's interface.

mod board;
mod delay;
mod event;
mod judge;
mod members;
mod session;
mod work;

pub(crate) use board::{Board, Hold, Joins};
pub(crate) use delay::Bounds;
pub(crate) use judge::IMMEDIATE_FAIL;
pub use judge::{HttpRules, Judged, WANTED, grpc, grpc_question, in_order};
pub use session::{CheckResult, Transition};
pub use work::{Check, CheckReport};

#[cfg(test)]
mod tests;
