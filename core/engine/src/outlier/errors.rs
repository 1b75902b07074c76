//! The HTTP error matcher (`spec/outlier-detection.md` section 4.4).

use crate::headers::HeaderView;
use crate::matching::HeaderMatcher;
use crate::spec::{ErrorMatch, SpecError};

/// A compiled [`ErrorMatch`].
#[derive(Debug)]
pub(crate) enum Errors {
    Always(bool),
    Or(Vec<Self>),
    And(Vec<Self>),
    Not(Box<Self>),
    Headers(Vec<HeaderMatcher>),
}

impl Errors {
    /// Only a regular expression can fail to compile.
    pub(crate) fn compile(spec: &ErrorMatch) -> Result<Self, SpecError> {
        let all = |list: &[ErrorMatch]| list.iter().map(Self::compile).collect::<Result<_, _>>();
        Ok(match spec {
            ErrorMatch::Any => Self::Always(true),
            ErrorMatch::Never => Self::Always(false),
            ErrorMatch::Or(list) => Self::Or(all(list)?),
            ErrorMatch::And(list) => Self::And(all(list)?),
            ErrorMatch::Not(inner) => Self::Not(Box::new(Self::compile(inner)?)),
            ErrorMatch::Headers(list) => {
                Self::Headers(list.iter().map(HeaderMatcher::compile).collect::<Result<_, _>>()?)
            }
        })
    }

    /// The code to report for an answer that is not gRPC.
    pub(crate) fn code(&self, status: u16, headers: HeaderView<'_>) -> u16 {
        if self.matches(status.to_string().as_bytes(), headers) { status.max(500) } else { 200 }
    }

    fn matches(&self, status: &[u8], headers: HeaderView<'_>) -> bool {
        match self {
            Self::Always(yes) => *yes,
            Self::Or(list) => list.iter().any(|one| one.matches(status, headers)),
            Self::And(list) => list.iter().all(|one| one.matches(status, headers)),
            Self::Not(inner) => !inner.matches(status, headers),
            Self::Headers(list) => list.iter().all(|header| match &*header.name {
                ":status" => header.matches_any(std::iter::once(status)),
                name => header.matches_any(headers.values(name)),
            }),
        }
    }

    /// Lower-case names of the response headers that it reads; a name may come twice.
    pub(crate) fn wanted_headers(spec: &ErrorMatch, visit: &mut dyn FnMut(&str)) {
        match spec {
            ErrorMatch::Any | ErrorMatch::Never => {}
            ErrorMatch::Or(list) | ErrorMatch::And(list) => {
                list.iter().for_each(|one| Self::wanted_headers(one, visit));
            }
            ErrorMatch::Not(inner) => Self::wanted_headers(inner, visit),
            ErrorMatch::Headers(list) => {
                let names = list.iter().map(|header| header.name.as_str());
                names.filter(|name| !name.starts_with(':')).for_each(&mut *visit);
            }
        }
    }
}
