//! Backends with fixed behaviours, one port each, in one process.
//!
//! | port | behaviour |
//! |---|---|
//! | 18101 | good: 200 |
//! | 18102 | half-failing: 500 on every second request it gets (the 2nd, 4th, ...) |
//! | 18111, 18112, 18113 | providers 1, 2, 3: provider N answers 500 when the header `x-fail` is N or more |
//!
//! The third provider never fails. Any request may ask for more: `x-delay: MS` answers later, `x-status: N` answers
//! that status, `x-close: 1` closes the connection without an answer. `POST /__lab/reset` starts all counters and
//! patterns again; `GET /__lab/counts` tells how many requests each port has got since.

mod behaviour;
mod serve;

pub use behaviour::{Behaviour, PORTS};
pub use serve::{Lab, Settings};
