//! RE2's dialect, as Envoy runs it, on top of the `regex` crate.
//!
//! Both are linear-time engines of the same family, but a document written for Envoy may read differently here.
//! Envoy's RE2 works on bytes (Latin-1): `.` is one byte, `é` is two. `\d`, `\w`, `\s` and `\b` know only ASCII, a
//! `[` or `&&` inside a class is plain text, a `{` that starts no counter is plain text, and octal escapes, `\C` and
//! `\Q...\E` exist. The pattern is rewritten before it is compiled; what RE2 refuses is refused here too where that
//! is cheap to see.

mod repeats;

use crate::spec::SpecError;
use regex::bytes::{Regex, RegexBuilder};
use repeats::Repeats;
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

/// Whether Envoy could use this expression, too, as a match of the whole text and as one anywhere.
pub(crate) fn check(pattern: &str) -> Result<(), SpecError> {
    whole(pattern)?;
    anywhere(pattern).map(|_| ())
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
    let mut seen = Repeats::default();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match escape(&mut rest, &mut out)? {
                true => seen.one(1),
                false => seen.repeated = false,
            },
            '[' => {
                class(&mut rest, &mut out)?;
                seen.one(1);
            }
            '(' => {
                out.push('(');
                match group(&mut rest, &mut out)? {
                    true => seen.open(),
                    false => seen.apart(),
                }
            }
            // Wrapping the pattern must not pair up a parenthesis that has no partner.
            ')' => {
                seen.close()?;
                out.push(')');
            }
            '|' => {
                seen.apart();
                out.push(c);
            }
            '*' | '+' | '?' => {
                seen.again(None)?;
                out.push(c);
                out.extend(rest.next_if_eq(&'?'));
            }
            '{' => match counter(rest.clone())? {
                Some(range) => {
                    seen.again(Some(range))?;
                    out.push(c);
                    out.extend(rest.by_ref().take_while(|&c| c != '}'));
                    out.push('}');
                    out.extend(rest.next_if_eq(&'?'));
                }
                None => {
                    out.push_str("\\{");
                    seen.one(1);
                }
            },
            _ => {
                plain(c, &mut out);
                seen.one(1);
            }
        }
    }
    seen.end()?;
    Ok(out)
}

/// A character as it stands; those above ASCII only work as two-digit escapes.
fn plain(c: char, out: &mut String) {
    match u8::try_from(c) {
        Ok(byte) if !c.is_ascii() => code(byte, out),
        _ => out.push(c),
    }
}

/// A character by its number.
fn code(value: u8, out: &mut String) {
    _ = write!(out, "\\x{value:02X}");
}

/// After `(`: copies `?...` and tells whether a group was opened (`(?i)` opens none). Names mean nothing: groups have
/// numbers.
fn group(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<bool, Fault> {
    const FAULT: Fault = "invalid named capture group";
    if rest.next_if_eq(&'?').is_none() {
        return Ok(true);
    }
    let long = rest.next_if_eq(&'P').is_some();
    match rest.next_if_eq(&'<') {
        Some(_) => {
            let mut name = 0;
            for c in rest.by_ref() {
                match c {
                    '>' if name > 0 => return Ok(true),
                    c if c.is_ascii_alphanumeric() || c == '_' => name += 1,
                    _ => break,
                }
            }
            return Err(FAULT);
        }
        None if long => return Err("invalid perl operator"),
        None => out.push('?'),
    }
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

/// The counter that follows `{`, if it is one: from, and to, which may be open.
fn counter(rest: Peekable<Chars<'_>>) -> Result<Option<(u32, Option<u32>)>, Fault> {
    const FAULT: Fault = "invalid repetition size";
    let inside: String = rest.take_while(|&c| c != '}').take(32).collect();
    let (low, high) = match inside.split_once(',') {
        Some((low, high)) => (low, Some(high)),
        None => (&*inside, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(low) || high.is_some_and(|high| !high.is_empty() && !digits(high)) {
        return Ok(None);
    }
    let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n <= MAX_REPEAT).ok_or(FAULT);
    let low = number(low)?;
    let high = match high {
        None => Some(low),
        Some("") => None,
        Some(high) => Some(number(high)?),
    };
    if high.is_some_and(|high| high < low) { Err(FAULT) } else { Ok(Some((low, high))) }
}

/// After a backslash outside a class. Whether there is something to repeat.
fn escape(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<bool, Fault> {
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
            return Ok(!text.is_empty());
        }
        'E' => return Ok(false),
        _ => single(c, rest, out)?,
    }
    Ok(true)
}

/// An escape that names one character or a Unicode class: the same in and outside brackets.
fn single(c: char, rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), Fault> {
    match c {
        'a' | 'f' | 't' | 'n' | 'r' | 'v' => out.extend(['\\', c]),
        'p' | 'P' => property(c == 'P', &name(rest)?, out)?,
        'x' => {
            let braced = rest.peek() == Some(&'{');
            let digits: String = match braced {
                true => name(rest)?,
                false => rest.by_ref().take(2).collect(),
            };
            let whole = digits.len() >= 2 || braced;
            let digits = Some(digits).filter(|digits| whole && digits.bytes().all(|d| d.is_ascii_hexdigit()));
            let value = digits.and_then(|digits| u8::from_str_radix(&digits, 16).ok());
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
            code(u8::try_from(value).map_err(|_| "invalid escape sequence")?, out);
        }
        // Words for the `regex` crate, plain characters for RE2.
        '<' | '>' | '_' => out.push(c),
        c if c.is_ascii_punctuation() => out.extend(['\\', c]),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => out.push(c),
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
        code(byte, &mut items);
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

/// Names in `[[:name:]]`.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

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
                        let name = &ahead[1..end];
                        if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                            return Err("invalid character class range");
                        }
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
mod tests;
