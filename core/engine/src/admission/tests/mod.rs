//! The tables of `tests/vectors/concurrency`, and requests that pass gates on a whole engine.

mod admission;
mod gradient;
mod requests;
