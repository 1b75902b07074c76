//! RE2's dialect, as Envoy runs it, on top of the `regex` crate.
//!
//! Both are linear-time engines of the same family, but a document written for Envoy may read differently here.
//! Envoy's RE2 works on bytes (Latin-1): `.` is one byte, `é` is two. `\d`, `\w`, `\s` and `\b` know only ASCII, a
//! `[` or `&&` inside a class is plain text, a `{` that starts no counter is plain text, and octal escapes, `\C` and
//! `\Q...\E` exist. The pattern is rewritten before it is compiled; what RE2 refuses is refused here too where that
//! is cheap to see.

use crate::spec::SpecError;
use regex::bytes::{Regex, RegexBuilder};
use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

/// Largest counter in RE2's `x{n,m}`.
const MAX_REPEAT: u32 = 1000;

/// A class of no byte at all.
const NOTHING: &str = "[^\\x00-\\xFF]";

/// A regex that must match the whole text.
pub(crate) fn whole(pattern: &str) -> Result<Regex, SpecError> {
    build(pattern, |body| format!("\\A(?:{body})\\z"))
}

/// A regex that may match anywhere.
pub(crate) fn anywhere(pattern: &str) -> Result<Regex, SpecError> {
    build(pattern, |body| body)
}

fn build(pattern: &str, wrap: impl FnOnce(String) -> String) -> Result<Regex, SpecError> {
    let fault = |reason: String| SpecError::Regex { pattern: pattern.to_owned(), reason };
    let body = translate(pattern).map_err(|reason| fault(reason.to_owned()))?;
    RegexBuilder::new(&wrap(body)).unicode(false).build().map_err(|error| fault(error.to_string()))
}

type Fault = &'static str;

fn translate(pattern: &str) -> Result<String, Fault> {
    let mut out = String::with_capacity(pattern.len() + 8);
    // Each byte of the pattern is a character of its own.
    let latin: String = pattern.bytes().map(char::from).collect();
    let mut rest = latin.chars().peekable();
    let mut open = 0usize;
    while let Some(c) = rest.next() {
        match c {
            '\\' => escape(&mut rest, &mut out)?,
            '[' => class(&mut rest, &mut out)?,
            '(' => {
                out.push('(');
                if group(&mut rest, &mut out)? {
                    open += 1;
                }
            }
            // Wrapping the pattern must not pair up a parenthesis that has no partner.
            ')' => {
                open = open.checked_sub(1).ok_or("unexpected )")?;
                out.push(')');
            }
            '{' if !counter(rest.clone())? => out.push_str("\\{"),
            _ => plain(c, &mut out),
        }
    }
    if open > 0 { Err("missing )") } else { Ok(out) }
}

/// A character as it stands; those above ASCII only work as two-digit escapes.
fn plain(c: char, out: &mut String) {
    if c.is_ascii() { out.push(c) } else { code(u32::from(c), out) }
}

/// A character by its number. What is no byte matches nothing.
fn code(value: u32, out: &mut String) {
    match value {
        0..=0xff => _ = write!(out, "\\x{value:02X}"),
        _ => out.push_str(NOTHING),
    }
}

/// After `(`: copies `?...` and tells whether a group was opened (`(?i)` opens none).
fn group(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<bool, Fault> {
    if rest.next_if_eq(&'?').is_none() {
        return Ok(true);
    }
    out.push('?');
    match rest.peek() {
        Some('P' | '<') => {
            // A name; the compiler checks it.
            for c in rest.by_ref() {
                out.push(c);
                match c {
                    '>' => return Ok(true),
                    'P' | '<' | '_' => {}
                    c if c.is_ascii_alphanumeric() => {}
                    _ => break,
                }
            }
            Err("invalid named capture group")
        }
        _ => {
            for c in rest.by_ref() {
                out.push(c);
                match c {
                    'i' | 'm' | 's' | 'U' | '-' => {}
                    ':' => return Ok(true),
                    ')' => return Ok(false),
                    _ => return Err("invalid perl operator"),
                }
            }
            Err("missing )")
        }
    }
}

/// Whether what follows `{` makes it a counter.
fn counter(rest: Peekable<Chars<'_>>) -> Result<bool, Fault> {
    let inside: String = rest.take_while(|&c| c != '}').take(32).collect();
    let (low, high) = match inside.split_once(',') {
        Some((low, high)) => (low, high),
        None => (&*inside, "0"),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(low) || !(high.is_empty() || digits(high)) {
        return Ok(false);
    }
    let large = |text: &str| !text.is_empty() && text.parse::<u32>().map_or(true, |n| n > MAX_REPEAT);
    if large(low) || large(high) { Err("bad repetition operator") } else { Ok(true) }
}

/// After a backslash outside a class.
fn escape(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), Fault> {
    let c = rest.next().ok_or("trailing \\")?;
    match c {
        'd' | 'w' | 's' => bracket("[", perl_class(c), out),
        'D' | 'W' | 'S' => bracket("[^", perl_class(c), out),
        'b' | 'B' => out.extend(['\\', c]),
        'A' => out.push_str("\\A"),
        'z' => out.push_str("\\z"),
        'C' => out.push_str("(?s:.)"),
        'Q' => {
            let mut text = String::new();
            while let Some(c) = rest.next() {
                if c == '\\' && rest.next_if_eq(&'E').is_some() {
                    break;
                }
                text.push(c);
            }
            regex::escape(&text).chars().for_each(|c| plain(c, out));
        }
        'E' => {}
        _ => single(c, rest, out)?,
    }
    Ok(())
}

/// An escape that names one character or a Unicode class: the same in and outside brackets.
fn single(c: char, rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), Fault> {
    match c {
        'a' | 'f' | 't' | 'n' | 'r' | 'v' => out.extend(['\\', c]),
        'p' | 'P' => property(c == 'P', &name(rest)?, out)?,
        'x' => {
            let digits = match rest.peek() {
                Some('{') => name(rest)?,
                _ => rest.by_ref().take(2).collect(),
            };
            let value = u32::from_str_radix(&digits, 16).ok().filter(|&value| value <= 0x10_ffff);
            code(value.ok_or("invalid escape sequence")?, out);
        }
        '0'..='7' => {
            let mut value = c.to_digit(8).unwrap_or(0);
            let mut more = 0;
            while more < 2
                && let Some(digit) = rest.peek().and_then(|d| d.to_digit(8))
            {
                rest.next();
                value = value * 8 + digit;
                more += 1;
            }
            // `\1` alone would be a back reference, which no linear-time engine has.
            if c != '0' && more == 0 {
                return Err("invalid escape sequence");
            }
            code(value, out);
        }
        // Words for the `regex` crate, plain characters for RE2.
        '<' | '>' | '_' => out.push(c),
        c if c.is_ascii_punctuation() => out.extend(['\\', c]),
        _ => return Err("invalid escape sequence"),
    }
    Ok(())
}

/// `X` or `{XYZ}`.
fn name(rest: &mut Peekable<Chars<'_>>) -> Result<String, Fault> {
    match rest.next().ok_or("invalid escape sequence")? {
        '{' => {
            let mut name = String::new();
            for c in rest.by_ref() {
                match c {
                    '}' => return Ok(name),
                    '^' | '_' => name.push(c),
                    c if c.is_ascii_alphanumeric() => name.push(c),
                    _ => break,
                }
            }
            Err("missing }")
        }
        c if c.is_ascii_alphanumeric() => Ok(c.to_string()),
        _ => Err("invalid character class range"),
    }
}

/// The Latin-1 characters of a Unicode property.
fn property(negated: bool, name: &str, out: &mut String) -> Result<(), Fault> {
    let (negated, name) = name.strip_prefix('^').map_or((negated, name), |rest| (!negated, rest));
    let all =
        regex::Regex::new(&format!("\\A\\p{{{name}}}\\z")).map_err(|_| "invalid character class range")?;
    let mut buffer = [0; 4];
    let mut has = |byte: u8| all.is_match(char::from(byte).encode_utf8(&mut buffer)) != negated;
    let mut items = String::new();
    for byte in (0..=u8::MAX).filter(|&byte| has(byte)) {
        code(byte.into(), &mut items);
    }
    if items.is_empty() {
        out.push_str(NOTHING)
    } else {
        bracket("[", &items, out)
    }
    Ok(())
}

fn bracket(open: &str, items: &str, out: &mut String) {
    out.extend([open, items, "]"]);
}

/// After `[`.
fn class(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), Fault> {
    out.push('[');
    if rest.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut first = true;
    while let Some(c) = rest.next() {
        match c {
            ']' if !first => {
                out.push(']');
                return Ok(());
            }
            ']' | '&' | '~' => out.extend(['\\', c]),
            '-' if rest.peek() == Some(&'-') => out.push_str("\\-"),
            '[' => {
                let ahead: String = rest.clone().take(12).collect();
                match ahead.find(":]") {
                    Some(end) if ahead.starts_with(':') && end > 0 => {
                        out.push('[');
                        out.extend(rest.by_ref().take(end + 2));
                    }
                    _ => out.push_str("\\["),
                }
            }
            '\\' => match rest.next().ok_or("missing ]")? {
                c @ ('d' | 'w' | 's') => out.push_str(perl_class(c)),
                c @ ('D' | 'W' | 'S') => bracket("[^", perl_class(c), out),
                c => single(c, rest, out)?,
            },
            _ => plain(c, out),
        }
        first = false;
    }
    Err("missing ]")
}

/// What stands between the brackets for `\d`, `\w`, `\s` and their negations.
fn perl_class(letter: char) -> &'static str {
    match letter {
        'd' | 'D' => "0-9",
        'w' | 'W' => "0-9A-Za-z_",
        _ => "\\t\\n\\f\\r ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, text: &str) -> bool {
        whole(pattern).unwrap_or_else(|e| panic!("{e}")).is_match(text.as_bytes())
    }

    #[test]
    fn whole_text_only() {
        assert!(matches("a|ab", "ab"));
        assert!(!matches("a", "ab"));
        assert!(!matches("b", "ab"));
        assert!(matches("", ""));
        assert!(!matches("a$", "a\n"));
        assert!(!matches(".*", "a\nb"));
        assert!(matches("(?s).*", "a\nb"));
    }

    #[test]
    fn perl_classes_are_ascii() {
        assert!(matches(r"\d+", "0123") && !matches(r"\d+", "\u{663}"));
        assert!(matches(r"\w+", "aZ_9") && !matches(r"\w+", "é"));
        assert!(matches(r"\s", "\t") && !matches(r"\s", "\u{b}") && !matches(r"\s+", "\u{a0}"));
        assert!(matches(r"[\w.]+", "a.b") && matches(r"[\D]+", "é") && !matches(r"[^\d]", "3"));
    }

    #[test]
    fn bytes_are_characters() {
        assert!(
            matches("..", "é") && matches(r"\W\W", "é") && matches("é", "é") && matches(r"\xC3\x{A9}", "é")
        );
        assert!(matches("[éü]+", "éü") && matches("(?i)é", "é") && !matches("(?i)é", "É"));
        assert!(matches(r"\pL+", "abc") && !matches(r"\pL+", "é") && matches(r"[\p{Lu}\d]+", "A1"));
        assert!(matches(r"\PL+", "12") && matches(r"\p{^L}", "1") && !matches(r"\p{Greek}+", "α"));
        assert!(!matches(r"\x{3b1}|[\x{3b1}\p{Greek}]+", "α"));
        assert!(whole(".").unwrap().is_match(b"\xff"));
    }

    #[test]
    fn brackets_are_plain_inside_classes() {
        assert!(matches("[[]", "[") && matches("[]a]+", "]a") && matches("[^]]", "x"));
        assert!(matches("[a&&b]+", "a&b") && matches("[a~~b]+", "~"));
        assert!(matches("[[:alpha:]_]+", "ab_") && !matches("[[:alpha:]]", "1"));
        assert!(matches("[--/]+", "-./"));
    }

    #[test]
    fn braces_octal_and_quotes() {
        assert!(matches("a{", "a{") && matches("a{,2}", "a{,2}") && matches("{x}", "{x}"));
        assert!(matches("a{2}", "aa") && matches("a{2,}", "aaa") && !matches("a{2,3}", "aaaa"));
        assert!(matches(r"\101\x41\x{41}", "AAA") && matches(r"\0", "\0"));
        assert!(matches(r"\Qa.b(\E+", "a.b((") && !matches(r"\Qa.b\E", "axb"));
        assert!(matches(r"\<\>\/\_", "<>/_") && matches(r"a\bb|c", "c"));
        assert!(matches(r"(?i)AB", "aB") && matches(r"(?P<n>a)(?:b)", "ab"));
    }

    #[test]
    fn refused() {
        let bad = [
            "(",
            ")",
            "a)(b",
            "[",
            "[a",
            "\\",
            r"\1",
            r"\8",
            r"\y",
            "(?x)a",
            "(?=a)",
            "(?u)a",
            "a{1001}",
            "*",
            "(?P<",
            "(?",
            "[z-a]",
            r"\p{Nope}",
            r"\x{",
            "(?P=n)",
        ];
        for pattern in bad {
            let error = whole(pattern).expect_err(pattern);
            assert!(matches!(&error, SpecError::Regex { pattern: p, .. } if p == pattern));
        }
    }

    proptest! {
        #[test]
        fn never_panics(pattern in "[-a-z0-9\\[\\](){}?*+|^$\\\\.:&~<>_éPQE]{0,24}") {
            let _ = whole(&pattern);
            let _ = anywhere(&pattern);
        }
    }
}
