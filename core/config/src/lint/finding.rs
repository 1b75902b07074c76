//! One finding, and how it is told.

use crate::read::Seen;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Probably not what was meant.
    Warning,
    /// Requests fail, or a field does nothing at all.
    Error,
}

impl Severity {
    /// The word used in texts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding: what will happen, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Name of the source.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Place inside the document.
    pub path: String,
    /// Stable: `DR-004`, `NX-002`.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence: what will happen.
    pub effect: String,
    /// One sentence: what to do.
    pub advice: String,
}

impl Finding {
    pub(crate) fn new(
        code: &'static str,
        severity: Severity,
        seen: &Seen,
        effect: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            file: seen.file.clone(),
            line: seen.place.line,
            column: seen.place.column,
            path: seen.path.clone(),
            code,
            severity,
            effect: effect.into(),
            advice: advice.into(),
        }
    }
}

/// All findings of a load, by place and then by code, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    pub(crate) fn new(mut list: Vec<Finding>) -> Self {
        list.sort();
        list.dedup();
        Self { list }
    }

    /// The findings.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// The worst severity; `None` = nothing was found.
    pub fn worst(&self) -> Option<Severity> {
        self.list.iter().map(|finding| finding.severity).max()
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = &'a Finding;
    type IntoIter = std::slice::Iter<'a, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
