//! What deserves a second look in documents that are legal.

mod finding;

pub use finding::{Finding, Findings, Severity};
