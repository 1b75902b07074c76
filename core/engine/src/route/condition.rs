//! When one route applies.

use super::RequestView;
use crate::matching::{HeaderMatcher, TextMatcher, re2, starts_with};
use crate::spec::{MatchSpec, PathMatch, SpecError};
use regex::bytes::Regex;

/// A compiled [`MatchSpec`].
#[derive(Debug)]
pub(super) struct Condition {
    path: PathCondition,
    ignore_case: bool,
    grpc: bool,
    pub(super) headers: Box<[HeaderMatcher]>,
    query: Box<[(Box<str>, TextMatcher)]>,
    fraction: Option<(u32, u32)>,
}

#[derive(Debug)]
enum PathCondition {
    Prefix(Box<str>),
    Exact(Box<str>),
    SeparatedPrefix(Box<str>),
    Regex(Regex),
}

impl Condition {
    pub(super) fn compile(spec: &MatchSpec) -> Result<Self, SpecError> {
        let path = match &spec.path {
            PathMatch::Prefix(text) => PathCondition::Prefix(text.as_str().into()),
            PathMatch::Exact(text) => PathCondition::Exact(text.as_str().into()),
            PathMatch::SeparatedPrefix(text) => PathCondition::SeparatedPrefix(text.as_str().into()),
            PathMatch::Regex(pattern) => PathCondition::Regex(re2::whole(pattern)?),
        };
        let query = spec.query.iter().map(|q| Ok((q.name.as_str().into(), TextMatcher::compile(&q.value)?)));
        Ok(Self {
            path,
            ignore_case: spec.case_insensitive,
            grpc: spec.grpc,
            headers: spec.headers.iter().map(HeaderMatcher::compile).collect::<Result<_, _>>()?,
            query: query.collect::<Result<_, SpecError>>()?,
            fraction: spec.fraction,
        })
    }

    pub(super) fn needs_content_type(&self) -> bool {
        self.grpc
    }

    /// `path` is the request's without query and fragment. `draw` gives the request's random word; it is asked
    /// last, so a route that could not match anyway costs no draw.
    pub(super) fn matches(
        &self,
        request: &RequestView<'_>,
        path: &str,
        draw: &mut dyn FnMut() -> u64,
    ) -> bool {
        self.matches_path(path)
            && (!self.grpc || is_grpc(request))
            && self.headers.iter().all(|header| request.satisfies(header))
            && self.query.iter().all(|(name, value)| value.matches(parameter(request.path, name)))
            && self.fraction.is_none_or(|(share, whole)| draw() % u64::from(whole.max(1)) < u64::from(share))
    }

    fn matches_path(&self, path: &str) -> bool {
        let begins = |text: &str| starts_with(path.as_bytes(), text.as_bytes(), self.ignore_case);
        match &self.path {
            PathCondition::Prefix(text) => begins(text),
            PathCondition::Exact(text) => path.len() == text.len() && begins(text),
            PathCondition::SeparatedPrefix(text) => {
                begins(text) && path.as_bytes().get(text.len()).is_none_or(|&next| next == b'/')
            }
            // Envoy ignores `case_sensitive` here; a pattern says it by itself.
            PathCondition::Regex(regex) => regex.is_match(path.as_bytes()),
        }
    }

    /// How much of the matched path a prefix rewrite replaces.
    pub(super) fn matched_length(&self, path: &str) -> usize {
        match &self.path {
            PathCondition::Prefix(text) | PathCondition::SeparatedPrefix(text) => text.len(),
            PathCondition::Exact(_) | PathCondition::Regex(_) => path.len(),
        }
    }
}

/// `application/grpc`, alone or with a `+` suffix. Parameters and `application/grpc-web` are something else.
fn is_grpc(request: &RequestView<'_>) -> bool {
    let mut values = request.headers.values("content-type");
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    value.strip_prefix(b"application/grpc").is_some_and(|rest| matches!(rest.first(), None | Some(b'+')))
}

/// The first query parameter of that name, as sent; without `=` it is empty.
fn parameter<'p>(path: &'p str, name: &str) -> Option<&'p [u8]> {
    let (_, query) = path.split_once('?')?;
    let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.as_bytes())
}
