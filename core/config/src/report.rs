//! What was read but does nothing: the load report.

use serde_json::{Value, json};

/// What a load did with fields that are known but not acted on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// In the order they were met.
    pub entries: Vec<ReportEntry>,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportEntry {
    /// Name of the source.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Place inside the document.
    pub path: String,
    /// What became of it.
    pub what: What,
    /// One sentence.
    pub text: String,
}

/// What became of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// Acted on.
    Used,
    /// Absent; its default acts.
    Default,
    /// Known to Envoy, without meaning for a library that owns no socket.
    NotUsed,
    /// Known to Envoy, not available in this version.
    NotAvailable,
}

impl What {
    /// The word used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Default => "default",
            Self::NotUsed => "not_used",
            Self::NotAvailable => "not_available",
        }
    }
}

impl LoadReport {
    /// `{"entries": [{"file", "line", "path", "what", "text"}]}`
    pub fn to_json(&self) -> Value {
        let entries: Vec<Value> = self
            .entries
            .iter()
            .map(|entry| {
                json!({
                    "file": entry.file,
                    "line": entry.line,
                    "path": entry.path,
                    "what": entry.what.as_str(),
                    "text": entry.text,
                })
            })
            .collect();
        json!({ "entries": entries })
    }
}
