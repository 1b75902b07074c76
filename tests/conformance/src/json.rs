//! JSON with ordered objects: the order of keys in a vector file is part of a case.

use std::fmt;

/// A JSON value; numbers keep their text.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number as it was written.
    Number(String),
    /// A string.
    String(String),
    /// A list.
    List(Vec<Self>),
    /// An object; keys in their order.
    Object(Vec<(String, Self)>),
}

/// What every missing key answers.
static NULL: Json = Json::Null;

impl Json {
    /// Reads one document.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { rest: text, whole: text.len() };
        let value = reader.value()?;
        reader.space();
        if reader.rest.is_empty() { Ok(value) } else { reader.fail("end of document") }
    }

    /// Value of a key; `null` when this is no object or has no such key.
    pub fn get(&self, key: &str) -> &Self {
        self.entries().iter().find(|(k, _)| k == key).map_or(&NULL, |(_, v)| v)
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.entries().iter().any(|(k, _)| k == key)
    }

    /// Entries of an object, none otherwise.
    pub fn entries(&self) -> &[(String, Self)] {
        match self {
            Self::Object(entries) => entries,
            _ => &[],
        }
    }

    /// Items of a list, none otherwise.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// Text of a string.
    pub fn str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Text of a string, a number or a truth value; empty otherwise.
    pub fn text(&self) -> String {
        match self {
            Self::String(text) | Self::Number(text) => text.clone(),
            Self::Bool(value) => value.to_string(),
            _ => String::new(),
        }
    }

    /// A number.
    pub fn f64(&self) -> Option<f64> {
        match self {
            Self::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// A whole number.
    pub fn i64(&self) -> Option<i64> {
        self.f64().filter(|n| n.fract() == 0.0).map(|n| n as i64)
    }

    /// A truth value.
    pub fn bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether this is `null` (or was missing).
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Sets a key of an object in place.
    pub fn set(&mut self, key: &str, value: Self) {
        if !matches!(self, Self::Object(_)) {
            *self = Self::Object(Vec::new());
        }
        if let Self::Object(entries) = self {
            match entries.iter_mut().find(|(k, _)| k == key) {
                Some(entry) => entry.1 = value,
                None => entries.push((key.to_owned(), value)),
            }
        }
    }

    /// The value of a key for changing; made `null` when it was missing.
    pub fn get_mut(&mut self, key: &str) -> &mut Self {
        if !self.has(key) {
            self.set(key, Self::Null);
        }
        match self {
            Self::Object(entries) => {
                let at = entries.iter().position(|(k, _)| k == key).expect("just set");
                &mut entries[at].1
            }
            _ => unreachable!("set made it an object"),
        }
    }

    /// Adds an item to a list in place.
    pub fn push(&mut self, value: Self) {
        if !matches!(self, Self::List(_)) {
            *self = Self::List(Vec::new());
        }
        if let Self::List(items) = self {
            items.push(value);
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self::Number(value.to_string())
    }
}

/// Builds an object from key and value pairs.
#[macro_export]
macro_rules! object {
    ($($key:expr => $value:expr),* $(,)?) => {
        $crate::json::Json::Object(vec![$(($key.to_string(), $crate::json::Json::from($value))),*])
    };
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(text) => f.write_str(text),
            Self::String(text) => f.write_str(&quote(text)),
            Self::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(entries) => {
                f.write_str("{")?;
                for (i, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{}:{value}", if i == 0 { "" } else { "," }, quote(key))?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A JSON string literal.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

struct Reader<'a> {
    rest: &'a str,
    whole: usize,
}

impl Reader<'_> {
    fn fail<T>(&self, wanted: &str) -> Result<T, String> {
        let found: String = self.rest.chars().take(20).collect();
        Err(format!("byte {}: {wanted} wanted, found {found:?}", self.whole - self.rest.len()))
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
    }

    fn eat(&mut self, token: &str) -> bool {
        self.space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Result<Json, String> {
        if self.eat("null") {
            Ok(Json::Null)
        } else if self.eat("true") {
            Ok(Json::Bool(true))
        } else if self.eat("false") {
            Ok(Json::Bool(false))
        } else if self.rest.starts_with('"') {
            Ok(Json::String(self.string()?))
        } else if self.eat("[") {
            let mut items = Vec::new();
            while !self.eat("]") {
                if !items.is_empty() && !self.eat(",") {
                    return self.fail("',' or ']'");
                }
                items.push(self.value()?);
            }
            Ok(Json::List(items))
        } else if self.eat("{") {
            let mut entries = Vec::new();
            while !self.eat("}") {
                if !entries.is_empty() && !self.eat(",") {
                    return self.fail("',' or '}'");
                }
                self.space();
                let key = self.string()?;
                if !self.eat(":") {
                    return self.fail("':'");
                }
                entries.push((key, self.value()?));
            }
            Ok(Json::Object(entries))
        } else {
            let end = self
                .rest
                .find(|c: char| !c.is_ascii_digit() && !matches!(c, '-' | '+' | '.' | 'e' | 'E'))
                .unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(end);
            if number.parse::<f64>().is_err() {
                return self.fail("a value");
            }
            self.rest = rest;
            Ok(Json::Number(number.to_owned()))
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let Some(mut rest) = self.rest.strip_prefix('"') else { return self.fail("a string") };
        let mut out = String::new();
        loop {
            let Some(at) = rest.find(['"', '\\']) else { return self.fail("a closing quote") };
            out.push_str(&rest[..at]);
            let escaped = rest.as_bytes()[at] == b'\\';
            rest = &rest[at + 1..];
            if !escaped {
                self.rest = rest;
                return Ok(out);
            }
            let Some(c) = rest.chars().next() else { return self.fail("an escape") };
            rest = &rest[c.len_utf8()..];
            match c {
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                'u' => {
                    let unit = |rest: &mut &str| {
                        let code = rest.get(..4).and_then(|h| u32::from_str_radix(h, 16).ok());
                        *rest = rest.get(4..).unwrap_or("");
                        code
                    };
                    let Some(mut code) = unit(&mut rest) else { return self.fail("four hex digits") };
                    if (0xd800..0xdc00).contains(&code)
                        && let Some(low) = rest.strip_prefix("\\u")
                    {
                        rest = low;
                        let low = unit(&mut rest).unwrap_or(0);
                        code = 0x10000 + ((code - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff);
                    }
                    out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                }
                c => out.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_and_writes_the_same() {
        let text = r#"{"b":[1,-2.5e3,true,null],"a":"x\"\n\u00e9\ud83d\ude00","c":{}}"#;
        let value = Json::parse(text).unwrap();
        assert_eq!(
            value.to_string(),
            "{\"b\":[1,-2.5e3,true,null],\"a\":\"x\\\"\\n\u{e9}\u{1f600}\",\"c\":{}}"
        );
        assert_eq!(Json::parse(&value.to_string()).unwrap(), value);
        assert_eq!(value.get("b").items()[1].f64(), Some(-2500.0));
        for broken in ["", "{", "[1,]x", "\"abc", "{\"a\" 1}", "[1 2]", "nul", "1 2"] {
            assert!(Json::parse(broken).is_err(), "{broken}");
        }
    }
}
