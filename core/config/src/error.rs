//! What is said about a document that is refused.

use crate::front::{MAX_DEPTH, Place};
use std::fmt;

/// Why documents were refused. Nothing was changed by them.
///
/// `Display` gives one sentence: `FILE:LINE:COLUMN: PATH: what is wrong`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigError {
    /// Name of the source.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Place inside the document: `clusters[3].outlier_detection.interval`. Empty = the document itself.
    pub path: String,
    /// What stands there; empty when that is not the point.
    pub found: String,
    /// What may stand there; empty when that is not the point.
    pub allowed: String,
    /// The known name nearest to an unknown one.
    pub nearest: Option<String>,
    /// The complaint, without the place.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What spans documents has no place.
        if !self.file.is_empty() {
            write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

/// Errors travel boxed inside the crate: readers return small values.
pub(crate) type Result<T> = std::result::Result<T, Box<ConfigError>>;

/// A complaint of the front, which knows places but no paths.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) place: Place,
    pub(crate) message: String,
    /// No other reader would do better.
    pub(crate) is_final: bool,
}

impl Fault {
    pub(crate) fn new(place: Place, message: String) -> Self {
        Self { place, message, is_final: false }
    }

    pub(crate) fn too_deep(place: Place) -> Self {
        let message = format!("values are nested more than {MAX_DEPTH} levels deep");
        Self { place, message, is_final: true }
    }

    /// With the name of its source.
    pub(crate) fn in_file(self, file: &str) -> Box<ConfigError> {
        Box::new(ConfigError {
            file: file.into(),
            line: self.place.line,
            column: self.place.column,
            message: self.message,
            ..ConfigError::default()
        })
    }
}
