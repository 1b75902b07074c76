//! Collects findings.

use super::finding::{Finding, Severity};
use crate::read::Seen;
use std::borrow::Borrow;

/// The findings so far.
#[derive(Debug, Default)]
pub(crate) struct Out(pub(crate) Vec<Finding>);

impl Out {
    pub(crate) fn error(
        &mut self,
        code: &'static str,
        at: impl Borrow<Seen>,
        effect: impl Into<String>,
        advice: &str,
    ) {
        self.0.push(Finding::new(code, Severity::Error, at.borrow(), effect, advice));
    }

    pub(crate) fn warn(
        &mut self,
        code: &'static str,
        at: impl Borrow<Seen>,
        effect: impl Into<String>,
        advice: &str,
    ) {
        self.0.push(Finding::new(code, Severity::Warning, at.borrow(), effect, advice));
    }

    pub(crate) fn note(
        &mut self,
        code: &'static str,
        at: impl Borrow<Seen>,
        effect: impl Into<String>,
        advice: &str,
    ) {
        self.0.push(Finding::new(code, Severity::Note, at.borrow(), effect, advice));
    }
}
