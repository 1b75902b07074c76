//! Regular expressions, text matchers, header and query matchers.

use super::hash_policy::header_name;
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use nexthop_engine::matching::check_regex;
use nexthop_engine::spec::{HeaderMatch, QueryMatch, RegexRewrite, SpecError, StringMatch};

const REGEX: Fields = Fields::of("RegexMatcher", &["regex", "google_re2"]);
const RE2: Fields = Fields::of("GoogleRE2", &[]).not_available(&["max_program_size"]);
const REWRITE: Fields = Fields::of("RegexMatchAndSubstitute", &["pattern", "substitution"]);
const STRING: Fields =
    Fields::of("StringMatcher", &["exact", "prefix", "suffix", "safe_regex", "contains", "ignore_case"])
        .refused(&["custom"])
        .one_of(&[&["exact", "prefix", "suffix", "safe_regex", "contains", "custom"]]);
const HEADER: Fields = Fields::of(
    "HeaderMatcher",
    &[
        "name",
        "string_match",
        "range_match",
        "present_match",
        "exact_match",
        "safe_regex_match",
        "prefix_match",
        "suffix_match",
        "contains_match",
        "invert_match",
        "treat_missing_header_as_empty",
    ],
)
.one_of(&[&[
    "string_match",
    "range_match",
    "present_match",
    "exact_match",
    "safe_regex_match",
    "prefix_match",
    "suffix_match",
    "contains_match",
]]);
const RANGE: Fields = Fields::of("Int64Range", &["start", "end"]);
const QUERY: Fields = Fields::of("QueryParameterMatcher", &["name", "string_match", "present_match"])
    .one_of(&[&["string_match", "present_match"]]);

/// A `RegexMatcher` whose expression compiles.
pub(super) fn regex_matcher(at: &At<'_>) -> Result<String> {
    let msg = at.message(&REGEX)?;
    msg.map("google_re2", |re2| re2.message(&RE2).map(|_| ()))?;
    regex(&msg.need("regex")?)
}

/// An expression that compiles, alone and as a match of the whole text.
pub(crate) fn regex(at: &At<'_>) -> Result<String> {
    let pattern = at.filled()?;
    match check_regex(&pattern) {
        Ok(()) => Ok(pattern),
        Err(SpecError::Regex { reason, .. }) => {
            // The last line of a long message is the reason; the lines before it draw the place.
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Err(at.fail(format!("not a regular expression: {reason}")))
        }
        Err(other) => Err(at.fail(other.to_string())),
    }
}

/// A `RegexMatchAndSubstitute`.
pub(super) fn regex_rewrite(at: &At<'_>) -> Result<RegexRewrite> {
    let msg = at.message(&REWRITE)?;
    Ok(RegexRewrite {
        pattern: regex_matcher(&msg.need("pattern")?)?,
        substitution: msg.or("substitution", String::new(), |s| s.header_value())?,
    })
}

pub(super) fn string_match(at: &At<'_>) -> Result<StringMatch> {
    let msg = at.message(&STRING)?;
    let ignore_case = msg.or("ignore_case", false, |flag| flag.bool())?;
    if let Some(exact) = msg.get("exact") {
        return Ok(StringMatch::Exact(exact.text()?, ignore_case));
    }
    if let Some(prefix) = msg.get("prefix") {
        return Ok(StringMatch::Prefix(prefix.filled()?, ignore_case));
    }
    if let Some(suffix) = msg.get("suffix") {
        return Ok(StringMatch::Suffix(suffix.filled()?, ignore_case));
    }
    if let Some(contains) = msg.get("contains") {
        return Ok(StringMatch::Contains(contains.filled()?, ignore_case));
    }
    match msg.get("safe_regex") {
        Some(regex) => Ok(StringMatch::Regex(regex_matcher(&regex)?)),
        None => Err(at.expected("a match: one of exact, prefix, suffix, contains, safe_regex")),
    }
}

/// A list of header matchers.
pub(super) fn header_matches(msg: &Msg<'_>, name: &'static str) -> Result<Vec<HeaderMatch>> {
    msg.repeated(name, |item| header_match(&item))
}

fn header_match(at: &At<'_>) -> Result<HeaderMatch> {
    let msg = at.message(&HEADER)?;
    let value = if let Some(at) = msg.get("string_match") {
        string_match(&at)?
    } else if let Some(at) = msg.get("range_match") {
        range_match(&at)?
    } else if let Some(at) = msg.get("present_match") {
        StringMatch::Present(at.bool()?)
    } else if let Some(at) = msg.get("exact_match") {
        StringMatch::Exact(at.text()?, false)
    } else if let Some(at) = msg.get("safe_regex_match") {
        StringMatch::Regex(regex_matcher(&at)?)
    } else if let Some(at) = msg.get("prefix_match") {
        StringMatch::Prefix(at.filled()?, false)
    } else if let Some(at) = msg.get("suffix_match") {
        StringMatch::Suffix(at.filled()?, false)
    } else if let Some(at) = msg.get("contains_match") {
        StringMatch::Contains(at.filled()?, false)
    } else {
        StringMatch::Present(true)
    };
    Ok(HeaderMatch {
        name: header_name(&msg.need("name")?)?,
        value,
        invert: msg.or("invert_match", false, |flag| flag.bool())?,
        treat_missing_as_empty: msg.or("treat_missing_header_as_empty", false, |flag| flag.bool())?,
    })
}

fn range_match(at: &At<'_>) -> Result<StringMatch> {
    let msg = at.message(&RANGE)?;
    Ok(StringMatch::Range(msg.or("start", 0, |n| n.i64())?, msg.or("end", 0, |n| n.i64())?))
}

/// A list of query parameter matchers.
pub(super) fn query_matches(msg: &Msg<'_>) -> Result<Vec<QueryMatch>> {
    msg.repeated("query_parameters", |item| {
        let msg = item.message(&QUERY)?;
        let value = match (msg.get("string_match"), msg.get("present_match")) {
            (Some(at), _) => string_match(&at)?,
            (None, Some(at)) => StringMatch::Present(at.bool()?),
            (None, None) => StringMatch::Present(true),
        };
        Ok(QueryMatch { name: msg.need("name")?.filled()?, value })
    })
}
