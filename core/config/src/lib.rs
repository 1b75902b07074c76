//! Reads the documents people have into nexthop's specs.

/// Why a document was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{file}:{line}:{column}: {path}: {message}")]
pub struct ConfigError {
    /// Name of the document.
    pub file: String,
    /// 1-based.
    pub line: u32,
    /// 1-based.
    pub column: u32,
    /// Path inside the document.
    pub path: String,
    /// What was found.
    pub found: String,
    /// What is allowed.
    pub allowed: String,
    /// Nearest known name.
    pub nearest: Option<String>,
    /// One sentence.
    pub message: String,
}
