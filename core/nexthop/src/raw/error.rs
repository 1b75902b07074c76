//! Errors of cold calls, and the last sentence per thread.

use nexthop_config::ConfigError;
use nexthop_engine::Misuse;
use std::cell::RefCell;

/// Why a cold call did nothing.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Wrong use; the sentence says what was found and what to do.
    #[error("{1}")]
    Misuse(Misuse, String),
    /// A document was refused whole.
    #[error("{0}")]
    Config(Box<ConfigError>),
    /// A file could not be read.
    #[error("{file}: {reason}")]
    Io {
        /// Its path.
        file: String,
        /// What the system said.
        reason: String,
    },
}

impl From<Misuse> for Error {
    fn from(misuse: Misuse) -> Self {
        Self::misuse(misuse, super::sentence(misuse))
    }
}

impl Error {
    /// Wrong use, with its sentence.
    pub(super) fn misuse(misuse: Misuse, sentence: impl Into<String>) -> Self {
        Self::Misuse(misuse, sentence.into())
    }

    /// What only shows when all documents are seen together, and no reader of documents found.
    pub(super) fn from_spec(error: nexthop_engine::spec::SpecError) -> Self {
        Self::Config(Box::new(ConfigError { message: error.to_string(), ..ConfigError::default() }))
    }

    /// The C status: -1 invalid, -2 ended, -3 state, -4 closed, -5 config, -6 io, -7 not found, -8 limit, -11 panic.
    pub fn status(&self) -> i32 {
        match self {
            Self::Misuse(misuse, _) => *misuse as i32,
            Self::Config(_) => -5,
            Self::Io { .. } => -6,
        }
    }
}

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The sentence of this thread's last failed call: what was wrong, what was found, what to do.
pub fn last_error() -> String {
    LAST.with_borrow(Clone::clone)
}

/// Sets the sentence; for faces that reject arguments before a call.
pub fn set_last_error(sentence: &str) {
    LAST.with_borrow_mut(|last| {
        last.clear();
        last.push_str(sentence);
    });
}
