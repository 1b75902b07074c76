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
    #[error("{file}{}{reason}", if file.is_empty() { "" } else { ": " })]
    Io {
        /// Its path; empty when that is what is wrong.
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

/// A thread's last failed call: one sentence, and the parts of it.
#[derive(Clone, Debug, Default)]
pub struct LastError {
    sentence: String,
    parts: Option<Box<ConfigError>>,
}

thread_local! {
    static LAST: RefCell<LastError> = const { RefCell::new(LastError { sentence: String::new(), parts: None }) };
}

impl LastError {
    /// That of this thread.
    pub fn of_thread() -> Self {
        LAST.with_borrow(Clone::clone)
    }

    /// What was wrong, what was found, what to do.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Place, what was found, what may stand there. A file that could not be read has a file and no line; wrong use
    /// has a message only.
    pub fn parts(&self) -> ConfigError {
        match &self.parts {
            Some(parts) => (**parts).clone(),
            None => ConfigError { message: self.sentence.clone(), ..ConfigError::default() },
        }
    }

    /// Makes it the last one again.
    pub fn put_back(self) {
        LAST.set(self);
    }
}

/// The sentence of this thread's last failed call: what was wrong, what was found, what to do.
pub fn last_error() -> String {
    LAST.with_borrow(|last| last.sentence.clone())
}

/// Sets the sentence; for faces that reject arguments before a call.
pub fn set_last_error(sentence: &str) {
    LAST.with_borrow_mut(|last| {
        last.parts = None;
        last.sentence.clear();
        last.sentence.push_str(sentence);
    });
}

/// Keeps an error of a cold call, with its parts.
pub fn keep_error(error: &Error) {
    let parts = match error {
        Error::Misuse(..) => None,
        Error::Config(config) => Some(config.clone()),
        Error::Io { file, reason } => Some(Box::new(ConfigError {
            file: file.clone(),
            message: reason.clone(),
            ..ConfigError::default()
        })),
    };
    LastError { sentence: error.to_string(), parts }.put_back();
}
