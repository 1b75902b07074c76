//! Text and header conditions, compiled once and shared between threads.

pub(crate) mod re2;
pub(crate) mod rewrite;

use crate::spec::{HeaderMatch, SpecError, StringMatch};
use regex::bytes::Regex;
use smallvec::SmallVec;

/// A compiled text condition.
#[derive(Clone, Debug)]
pub struct TextMatcher {
    kind: Kind,
}

/// Compare without case when true.
type IgnoreCase = bool;

#[derive(Clone, Debug)]
enum Kind {
    Present(bool),
    Range(i64, i64),
    Exact(Box<[u8]>, IgnoreCase),
    Prefix(Box<[u8]>, IgnoreCase),
    Suffix(Box<[u8]>, IgnoreCase),
    Contains(Box<[u8]>, IgnoreCase),
    Regex(Regex),
}

impl TextMatcher {
    /// Only a regular expression can fail to compile.
    pub fn compile(condition: &StringMatch) -> Result<Self, SpecError> {
        let bytes = |text: &String| text.as_bytes().into();
        let kind = match condition {
            StringMatch::Present(wanted) => Kind::Present(*wanted),
            StringMatch::Range(start, end) => Kind::Range(*start, *end),
            StringMatch::Exact(text, fold) => Kind::Exact(bytes(text), *fold),
            StringMatch::Prefix(text, fold) => Kind::Prefix(bytes(text), *fold),
            StringMatch::Suffix(text, fold) => Kind::Suffix(bytes(text), *fold),
            StringMatch::Contains(text, fold) => Kind::Contains(bytes(text), *fold),
            StringMatch::Regex(pattern) => Kind::Regex(re2::whole(pattern)?),
        };
        Ok(Self { kind })
    }

    /// Whether the value satisfies the condition. An absent value satisfies only "absent".
    pub fn matches(&self, value: Option<&[u8]>) -> bool {
        if let Kind::Present(wanted) = self.kind {
            return value.is_some() == wanted;
        }
        value.is_some_and(|value| self.matches_value(value))
    }

    fn matches_value(&self, value: &[u8]) -> bool {
        match &self.kind {
            Kind::Present(wanted) => *wanted,
            Kind::Range(start, end) => integer(value).is_some_and(|n| *start <= n && n < *end),
            Kind::Exact(text, fold) => same(value, text, *fold),
            Kind::Prefix(text, fold) => starts_with(value, text, *fold),
            Kind::Suffix(text, fold) => {
                value.len().checked_sub(text.len()).is_some_and(|at| same(&value[at..], text, *fold))
            }
            Kind::Contains(text, fold) => {
                text.is_empty() || value.windows(text.len()).any(|part| same(part, text, *fold))
            }
            Kind::Regex(regex) => regex.is_match(value),
        }
    }
}

fn same(a: &[u8], b: &[u8], fold: IgnoreCase) -> bool {
    if fold { a.eq_ignore_ascii_case(b) } else { a == b }
}

/// Whether this is a regular expression as Envoy reads them.
///
/// # Errors
/// [`SpecError::Regex`] with the reason.
pub fn check_regex(pattern: &str) -> Result<(), SpecError> {
    re2::check(pattern)
}

/// Whether `text` begins with `prefix`, by ASCII case or without it.
pub(crate) fn starts_with(text: &[u8], prefix: &[u8], fold: IgnoreCase) -> bool {
    text.get(..prefix.len()).is_some_and(|head| same(head, prefix, fold))
}

/// A decimal integer as header values carry them: blanks around it and a sign are allowed.
pub(crate) fn integer(value: &[u8]) -> Option<i64> {
    std::str::from_utf8(value.trim_ascii()).ok()?.parse().ok()
}

/// A compiled header condition.
#[derive(Clone, Debug)]
pub struct HeaderMatcher {
    /// Lower case; may be a pseudo header.
    pub name: Box<str>,
    value: TextMatcher,
    invert: bool,
    treat_missing_as_empty: bool,
}

impl HeaderMatcher {
    /// Only a regular expression can fail to compile.
    pub fn compile(condition: &HeaderMatch) -> Result<Self, SpecError> {
        Ok(Self {
            name: condition.name.as_str().into(),
            value: TextMatcher::compile(&condition.value)?,
            invert: condition.invert,
            treat_missing_as_empty: condition.treat_missing_as_empty,
        })
    }

    /// A header that occurs several times counts as one whose values are joined with commas.
    pub fn matches_joined<'v>(&self, mut values: impl Iterator<Item = &'v [u8]>) -> bool {
        let Some(first) = values.next() else { return self.matches_missing() };
        let Some(second) = values.next() else { return self.matches_one(first) };
        let mut joined: SmallVec<[u8; 128]> = SmallVec::from_slice(first);
        for value in std::iter::once(second).chain(values) {
            joined.push(b',');
            joined.extend_from_slice(value);
        }
        self.matches_one(&joined)
    }

    /// A header that occurs several times matches when one of its values does; inverted, when none does. This is
    /// how Envoy tests route and retry conditions since it stopped joining (`match_headers_individually`).
    pub fn matches_any<'v>(&self, values: impl Iterator<Item = &'v [u8]>) -> bool {
        let mut values = values.peekable();
        if values.peek().is_none() {
            return self.matches_missing();
        }
        values.any(|value| self.value.matches_value(value)) != self.invert
    }

    fn matches_one(&self, value: &[u8]) -> bool {
        self.value.matches_value(value) != self.invert
    }

    /// A missing header fails even an inverted condition on its value; only presence can be about absence.
    fn matches_missing(&self) -> bool {
        match self.value.kind {
            Kind::Present(wanted) => (wanted == self.treat_missing_as_empty) != self.invert,
            _ => self.treat_missing_as_empty && self.matches_one(b""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(condition: StringMatch, value: &str) -> bool {
        TextMatcher::compile(&condition).unwrap().matches(Some(value.as_bytes()))
    }

    fn header(value: StringMatch, invert: bool, treat_missing_as_empty: bool) -> HeaderMatcher {
        let name = "x".into();
        HeaderMatcher::compile(&HeaderMatch { name, value, invert, treat_missing_as_empty }).unwrap()
    }

    fn any_of(matcher: &HeaderMatcher, values: &[&str]) -> bool {
        matcher.matches_any(values.iter().map(|value| value.as_bytes()))
    }

    fn joined(matcher: &HeaderMatcher, values: &[&str]) -> bool {
        matcher.matches_joined(values.iter().map(|value| value.as_bytes()))
    }

    #[test]
    fn texts() {
        assert!(text(StringMatch::Exact("a".into(), false), "a"));
        assert!(!text(StringMatch::Exact("a".into(), false), "A"));
        assert!(text(StringMatch::Exact("a".into(), true), "A"));
        assert!(
            text(StringMatch::Prefix("ab".into(), true), "ABc")
                && !text(StringMatch::Prefix("ab".into(), false), "a")
        );
        assert!(
            text(StringMatch::Suffix("bc".into(), true), "aBC")
                && !text(StringMatch::Suffix("bc".into(), false), "c")
        );
        assert!(
            text(StringMatch::Contains("b".into(), false), "abc")
                && !text(StringMatch::Contains("b".into(), false), "")
        );
        assert!(
            text(StringMatch::Contains(String::new(), false), "")
                && text(StringMatch::Prefix(String::new(), false), "")
        );
        assert!(
            text(StringMatch::Regex(r"\d+".into()), "12") && !text(StringMatch::Regex(r"\d+".into()), "12a")
        );
    }

    #[test]
    fn ranges_read_integers_like_headers_do() {
        for (value, fits) in [("-5", true), ("+5", true), (" 9\t", true), ("10", false), ("-6", false)] {
            assert_eq!(text(StringMatch::Range(-5, 10), value), fits, "{value:?}");
        }
        for junk in ["", "a", "5a", "5.0", "0x5", "--5", "99999999999999999999"] {
            assert!(!text(StringMatch::Range(i64::MIN, i64::MAX), junk), "{junk:?}");
        }
    }

    #[test]
    fn presence_of_a_text() {
        let present = |wanted| TextMatcher::compile(&StringMatch::Present(wanted)).unwrap();
        assert!(present(true).matches(Some(b"")) && !present(true).matches(None));
        assert!(!present(false).matches(Some(b"")) && present(false).matches(None));
        assert!(!TextMatcher::compile(&StringMatch::Exact(String::new(), false)).unwrap().matches(None));
    }

    #[test]
    fn several_values() {
        let a = header(StringMatch::Exact("a".into(), false), false, false);
        assert!(any_of(&a, &["b", "a"]) && !joined(&a, &["b", "a"]) && joined(&a, &["a"]));
        let both = header(StringMatch::Exact("a,b,c".into(), false), false, false);
        assert!(joined(&both, &["a", "b", "c"]) && !any_of(&both, &["a", "b", "c"]));
        let not_a = header(StringMatch::Exact("a".into(), false), true, false);
        assert!(!any_of(&not_a, &["b", "a"]) && any_of(&not_a, &["b", "c"]));
    }

    proptest! {
        #[test]
        fn never_panics(value in proptest::collection::vec(any::<u8>(), 0..40), text in ".{0,6}", fold: bool) {
            for kind in [StringMatch::Exact, StringMatch::Prefix, StringMatch::Suffix, StringMatch::Contains] {
                let matcher = TextMatcher::compile(&kind(text.clone(), fold)).unwrap();
                matcher.matches(Some(&value));
            }
            TextMatcher::compile(&StringMatch::Range(0, 5)).unwrap().matches(Some(&value));
        }
    }
}
