//! How Istio's objects are written: fields that are dropped, durations in Go's syntax, problems that are collected.

use crate::error::Result;
use crate::front::{Entry, Place};
use crate::lint::{Finding, Severity};
use crate::read::{At, Fields, Msg, Seen, nearest};
use crate::report::What;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

/// A rule of Istio's validation that an object breaks, or a warning of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    pub(crate) code: &'static str,
    pub(crate) seen: Seen,
    pub(crate) text: String,
}

/// What validation finds while objects are read.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    pub(crate) errors: RefCell<Vec<Problem>>,
    pub(crate) warnings: RefCell<Vec<Problem>>,
}

impl Problems {
    pub(super) fn error(&self, at: &At<'_>, code: &'static str, text: impl Into<String>) {
        self.errors.borrow_mut().push(Problem { code, seen: at.seen(), text: text.into() });
    }

    pub(super) fn warn(&self, at: &At<'_>, code: &'static str, text: impl Into<String>) {
        self.warnings.borrow_mut().push(Problem { code, seen: at.seen(), text: text.into() });
    }

    /// A duration in Go's syntax that Istio does not check further.
    pub(super) fn span(at: &At<'_>) -> Result<Duration> {
        let nanos = nanos(at)?.max(0);
        u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| at.expected(ALLOWED))
    }

    /// A duration in Go's syntax: at least a millisecond (or zero where that is legal), whole milliseconds.
    pub(super) fn duration(&self, at: &At<'_>, zero: bool) -> Result<Duration> {
        let nanos = nanos(at)?;
        let text = at.node.describe();
        let legal_zero = zero && nanos == 0;
        if nanos < 1_000_000 && !legal_zero {
            self.error(at, "E-DURATION-RANGE", format!("expected a duration of at least 1ms, found {text}"));
        } else if nanos % 1_000_000 != 0 {
            self.error(at, "E-DURATION-PRECISION", format!("expected whole milliseconds, found {text}"));
        }
        Self::span(at)
    }

    /// A number that may not be negative.
    pub(super) fn count(&self, at: &At<'_>, code: &'static str) -> Result<u32> {
        let number = int32(at)?;
        if number < 0 {
            self.error(at, code, format!("expected a number that is not negative, found {number}"));
        }
        Ok(u32::try_from(number).unwrap_or(0))
    }
}

const ALLOWED: &str = "a duration such as \"250ms\", \"1.5s\" or \"1h30m\"";

fn nanos(at: &At<'_>) -> Result<i128> {
    let text = at.text().map_err(|_| at.expected(ALLOWED))?;
    go_duration(&text).ok_or_else(|| at.expected(ALLOWED))
}

/// A number of 32 bits with sign.
pub(super) fn int32(at: &At<'_>) -> Result<i32> {
    at.i64().ok().and_then(|n| i32::try_from(n).ok()).ok_or_else(|| at.expected("a whole number of 32 bits"))
}

/// One of the words of an enumeration. Istio reads them in their one spelling; Envoy does not mind case.
pub(super) fn word(at: &At<'_>, words: &[(&'static str, i32)]) -> Result<i32> {
    let number = at.enumeration(words)?;
    let text = at.node.text().unwrap_or_default();
    let same = |(word, _): &&(&str, i32)| word.eq_ignore_ascii_case(text);
    if words.iter().any(|(word, _)| *word == text) || !words.iter().any(|known| same(&known)) {
        return Ok(number);
    }
    Err(at.unknown_name("value", text, words.iter().map(|(word, _)| *word)))
}

/// A list of texts.
pub(super) fn texts(at: &At<'_>) -> Result<Vec<String>> {
    at.items()?.map(|item| item.text()).collect()
}

/// A mapping of texts, as labels are.
pub(super) fn labels(at: &At<'_>) -> Result<BTreeMap<String, String>> {
    at.entries()?.into_iter().map(|(entry, value)| Ok((entry.key.to_string(), value.text()?))).collect()
}

/// Reads an object; unknown fields are dropped, as Istio does, and said to be.
pub(super) fn object<'a>(at: At<'a>, fields: &'static Fields) -> Result<Msg<'a>> {
    at.object(fields, |at, entry| dropped(at, entry, fields))
}

fn dropped(at: &At<'_>, entry: &Entry<'_>, fields: &'static Fields) {
    let names = || fields.names().map(|(name, _)| name);
    let near = nearest(&entry.key, names()).or_else(|| {
        let part = |name: &&str| {
            let (name, key) = (name.to_ascii_lowercase(), entry.key.to_ascii_lowercase());
            key.len() > 4 && (name.contains(&key) || key.contains(&name))
        };
        names().find(part).map(str::to_owned)
    });
    let value = at.key(&entry.key, &entry.value);
    value.note(What::NotUsed, format!("unknown field of {}: Istio drops it", fields.message));
    let advice = match near {
        Some(name) => format!("write `{name}`, or remove the field"),
        None => {
            let names: Vec<&str> = names().collect();
            format!("remove the field; {} has {}", fields.message, names.join(", "))
        }
    };
    let seen = Seen { place: entry.place, ..value.seen() };
    let effect =
        format!("`{}` is no field of {}: Istio drops it and it does nothing", entry.key, fields.message);
    let finding = Finding::new("DR-031", Severity::Error, &seen, effect, advice);
    at.sink().borrow_mut().findings.push(finding);
}

/// A block of settings: where it stands and which of its fields are given, so that what is made of it has places.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) seen: Seen,
    fields: BTreeMap<&'static str, Seen>,
    /// It is the mesh's default, not a rule's own.
    pub(crate) from_mesh: bool,
}

impl Block {
    pub(super) fn new(at: &At<'_>) -> Self {
        Self { seen: at.seen(), fields: BTreeMap::new(), from_mesh: false }
    }

    pub(super) fn mark(&mut self, name: &'static str, at: &At<'_>) {
        self.fields.insert(name, at.seen());
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// The names of the fields that are given.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.keys().copied()
    }

    /// Where a field stands; where the block stands if the field is absent.
    pub(super) fn seen(&self, name: &str) -> &Seen {
        self.fields.get(name).unwrap_or(&self.seen)
    }

    pub(super) fn place(&self, name: &str) -> Place {
        self.seen(name).place
    }
}

/// Nanoseconds of a chain of numbers with units: `1h30m`, `-1.5s`.
fn go_duration(text: &str) -> Option<i128> {
    const UNITS: [(&str, i128); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest.is_empty() || rest.len() > 64 {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || whole.len() > 18 || fraction.contains('.') {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total += whole * scale;
        let mut scale = *scale;
        for digit in fraction.bytes() {
            scale /= 10;
            total += i128::from(digit - b'0') * scale;
        }
        rest = tail;
    }
    i64::try_from(total).ok()?;
    Some(sign * total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go() {
        let cases = [
            ("1h30m", 5_400_000_000_000),
            ("250ms", 250_000_000),
            ("1.5s", 1_500_000_000),
            ("1m1.5s", 61_500_000_000),
            ("500us", 500_000),
            ("1µs", 1_000),
            ("-2s", -2_000_000_000),
            ("0s", 0),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1ns", 1),
        ];
        for (text, nanos) in cases {
            assert_eq!(go_duration(text), Some(nanos), "{text}");
        }
        for text in ["", "1", "s", "-", "1 s", "1.2.3s", "1d", "1s2", ".s", "9999999999999h", "1e3s", "é"] {
            assert_eq!(go_duration(text), None, "{text}");
        }
    }
}
