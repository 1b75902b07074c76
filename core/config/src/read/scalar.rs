//! Envoy's scalar rules: what a written scalar is worth for a field of a given type.
//!
//! Envoy reads YAML into a protobuf `Value` and that as JSON. A plain scalar becomes a boolean when it is one of
//! YAML 1.1's words, else a number when it is an integer (octal and hex too) of 32 bits, else text; a quoted one is
//! text. JSON then takes numbers and booleans from text as well.

use super::At;
use crate::error::Result;
use crate::front::{Kind, Style};

/// What Envoy's first step makes of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum First<'a> {
    Bool(bool),
    Int(i64),
    /// A number of JSON, as written.
    Number(&'a str),
    Text(&'a str),
}

pub(super) fn first_step(text: &str, style: Style) -> First<'_> {
    match style {
        Style::Quoted => First::Text(text),
        Style::Json => match text {
            "true" => First::Bool(true),
            "false" => First::Bool(false),
            number => First::Number(number),
        },
        Style::Plain => match (yaml_bool(text), yaml_int(text)) {
            (Some(flag), _) => First::Bool(flag),
            (None, Some(int)) => First::Int(int),
            (None, None) => First::Text(text),
        },
    }
}

impl At<'_> {
    fn first(&self) -> Option<First<'_>> {
        match &self.node.resolve().kind {
            Kind::Scalar(text, style) => Some(first_step(text, *style)),
            _ => None,
        }
    }

    /// Text. Plain numbers and boolean words are refused, as they would lose their spelling.
    pub(crate) fn text(&self) -> Result<String> {
        match self.first() {
            Some(First::Text(text)) => Ok(text.to_owned()),
            // Wider than 32 bits: Envoy's first step makes these text, in decimal.
            Some(First::Int(int)) if i32::try_from(int).is_err() => Ok(int.to_string()),
            Some(_) => Err(self.expected("text (put it in quotes)")),
            None => Err(self.expected("text")),
        }
    }

    /// Text that is not empty.
    pub(crate) fn filled(&self) -> Result<String> {
        let text = self.text()?;
        if text.is_empty() { Err(self.expected("text that is not empty")) } else { Ok(text) }
    }

    /// Text that may stand in a header line.
    pub(crate) fn header_value(&self) -> Result<String> {
        let text = self.text()?;
        if text.contains(['\0', '\r', '\n']) {
            return Err(self.expected("text without line ends and NUL"));
        }
        Ok(text)
    }

    pub(crate) fn bool(&self) -> Result<bool> {
        let allowed = "true or false";
        match self.first() {
            Some(First::Bool(flag)) => Ok(flag),
            Some(First::Text(text)) => text_bool(text).ok_or_else(|| self.expected(allowed)),
            _ => Err(self.expected(allowed)),
        }
    }

    /// An integer of 32 bits without sign.
    pub(crate) fn u32(&self) -> Result<u32> {
        self.within(0, u64::from(u32::MAX)).map(narrow)
    }

    /// An integer of 64 bits without sign.
    pub(crate) fn u64(&self) -> Result<u64> {
        self.within(0, u64::MAX)
    }

    /// An integer of 32 bits within bounds.
    pub(crate) fn u32_in(&self, low: u32, high: u32) -> Result<u32> {
        self.within(u64::from(low), u64::from(high)).map(narrow)
    }

    /// An integer within bounds.
    pub(crate) fn within(&self, low: u64, high: u64) -> Result<u64> {
        let allowed = || format!("a whole number from {low} to {high}");
        let number = self.integer().ok_or_else(|| self.expected(&allowed()))?;
        match u64::try_from(number) {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(self.expected(&allowed())),
        }
    }

    /// An integer of 64 bits with sign.
    pub(crate) fn i64(&self) -> Result<i64> {
        let number = self.integer().and_then(|n| i64::try_from(n).ok());
        number.ok_or_else(|| self.expected("a whole number of 64 bits"))
    }

    fn integer(&self) -> Option<i128> {
        match self.first()? {
            First::Int(int) => Some(i128::from(int)),
            First::Number(text) | First::Text(text) => integer_of(text),
            First::Bool(_) => None,
        }
    }

    /// A double; `NaN` and infinities are numbers too.
    pub(crate) fn f64(&self) -> Result<f64> {
        let number = match self.first() {
            Some(First::Int(int)) => Some(int as f64),
            Some(First::Number(text) | First::Text(text)) => double_of(text),
            Some(First::Bool(_)) | None => None,
        };
        number.ok_or_else(|| self.expected("a number"))
    }

    /// An enum by name in any case, or by number; unknown numbers are refused.
    pub(crate) fn enumeration(&self, words: &[(&'static str, i32)]) -> Result<i32> {
        let number = self.open_enumeration(words)?;
        if words.iter().any(|&(_, known)| known == number) {
            return Ok(number);
        }
        Err(self.expected(&names(words)))
    }

    /// An enum whose unknown numbers are legal.
    pub(crate) fn open_enumeration(&self, words: &[(&'static str, i32)]) -> Result<i32> {
        let number = match self.first() {
            Some(First::Int(int)) => i32::try_from(int).ok(),
            Some(First::Number(text)) => text.parse().ok(),
            Some(First::Text(text)) => {
                let named = words.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
                named.map(|&(_, number)| number).or_else(|| text.parse().ok())
            }
            Some(First::Bool(_)) | None => None,
        };
        number.ok_or_else(|| match self.node.text() {
            Some(text) => self.unknown_name("value", text, words.iter().map(|(name, _)| *name)),
            None => self.expected(&names(words)),
        })
    }
}

fn names(words: &[(&'static str, i32)]) -> String {
    let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
    format!("one of {}", names.join(", "))
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// `y n yes no on off true false`, in lower case, upper case or with a capital.
fn yaml_bool(text: &str) -> Option<bool> {
    let rest = text.get(1..)?;
    let lower = |t: &str| t.bytes().all(|b| b.is_ascii_lowercase());
    let upper = |t: &str| t.bytes().all(|b| b.is_ascii_uppercase());
    if text.len() > 5 || !(lower(text) || (upper(&text[..1]) && (lower(rest) || upper(rest)))) {
        return None;
    }
    match text.to_ascii_lowercase().as_str() {
        "y" | "yes" | "on" | "true" => Some(true),
        "n" | "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

/// The words that text may use for a boolean field, in any case.
fn text_bool(text: &str) -> Option<bool> {
    if text.len() > 5 {
        return None;
    }
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "1" => Some(true),
        "false" | "f" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// An integer as C reads it with base 0: a sign, then hex after `0x`, octal after `0`, else decimal.
fn yaml_int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || digits.len() > 64 || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -value } else { value }).ok()
}

/// An integer as JSON takes it from text: decimal, `0x` hex without sign, or a double without fraction.
fn integer_of(text: &str) -> Option<i128> {
    if text.len() <= 40 && !text.is_empty() {
        if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            let hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
            return hex.then(|| i128::from_str_radix(digits, 16).ok())?;
        }
        if let Ok(number) = text.parse::<i128>() {
            return Some(number);
        }
    }
    let number = decimal(text)?;
    // Within 2^64 the cast is exact; whatever lies beyond is out of every range anyway.
    (number.fract() == 0.0 && number.abs() <= 1.8e19).then_some(number as i128)
}

fn double_of(text: &str) -> Option<f64> {
    match text {
        "NaN" | "nan" => Some(f64::NAN),
        "Infinity" | "inf" => Some(f64::INFINITY),
        "-Infinity" | "-inf" => Some(f64::NEG_INFINITY),
        _ => decimal(text).or_else(|| integer_of(text).map(|n| n as f64)),
    }
}

/// A finite decimal number.
fn decimal(text: &str) -> Option<f64> {
    let starts = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plausible = starts.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    if !plausible {
        return None;
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boolean_words_of_yaml() {
        for word in ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"] {
            assert_eq!(yaml_bool(word), Some(true), "{word}");
        }
        for word in ["n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"] {
            assert_eq!(yaml_bool(word), Some(false), "{word}");
        }
        for word in ["yEs", "tRUE", "oN", "t", "f", "1", "0", "", "ä", "yesno", "Y "] {
            assert_eq!(yaml_bool(word), None, "{word}");
        }
    }

    #[test]
    fn integers_of_yaml() {
        let cases = [
            ("0", 0),
            ("00", 0),
            ("-0", 0),
            ("+5", 5),
            ("010", 8),
            ("-010", -8),
            ("0x10", 16),
            ("0XfF", 255),
            ("-0x10", -16),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ];
        for (text, value) in cases {
            assert_eq!(yaml_int(text), Some(value), "{text}");
        }
        for text in [
            "",
            "-",
            "+",
            "0x",
            "08",
            "0o10",
            "0b11",
            "1_000",
            "1e1",
            "1.0",
            " 1",
            "1 ",
            "9223372036854775808",
            "é",
        ] {
            assert_eq!(yaml_int(text), None, "{text}");
        }
    }

    #[test]
    fn integers_of_text() {
        let cases = [
            ("10", 10),
            ("010", 10),
            ("0x10", 16),
            ("0X64", 100),
            ("1e1", 10),
            ("10.0", 10),
            ("-0", 0),
            ("+5", 5),
        ];
        for (text, value) in cases {
            assert_eq!(integer_of(text), Some(value), "{text}");
        }
        for text in ["", " 10", "10 ", "1_0", "0x", "-0x1", "10.5", "1e400", "abc", ".5", "NaN", "0o10"] {
            assert_eq!(integer_of(text), None, "{text}");
        }
    }
}
