//! Replays recorded facts through every language's face and judges what came out.
//!
//! A converter turns each case of a vector file into a script, each language's runner plays scripts and writes
//! a trace, and one judge compares traces with what the case expects.

pub mod convert;
pub mod coverage;
pub mod json;
pub mod judge;
pub mod record;
pub mod run;
pub mod script;
pub mod trace;
pub mod vectors;
