//! Strict JSON to nodes. Apart from speed, JSON needs its own reader for two things YAML does otherwise: pairs of
//! `\u` surrogates, and numbers that stay numbers.

use super::{Entry, Kind, MAX_DEPTH, Node, Place, Style};
use crate::error::Fault;
use std::borrow::Cow;

/// Reads one JSON document.
pub(super) fn parse(text: &str) -> Result<Vec<Node<'_>>, Fault> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = Reader { text, at: 0, line: 1, line_start: 0 };
    let node = reader.document()?;
    reader.blanks();
    match reader.peek() {
        None => Ok(if node.is_null() { Vec::new() } else { vec![node] }),
        Some(_) => Err(reader.fault("the end of the document")),
    }
}

struct Reader<'s> {
    text: &'s str,
    at: usize,
    line: usize,
    line_start: usize,
}

/// A list or mapping that is still open.
enum Open<'s> {
    List(Place, Vec<Node<'s>>),
    Map(Place, Vec<Entry<'s>>, (Cow<'s, str>, Place)),
}

impl<'s> Reader<'s> {
    /// The value, with a stack of its own: nesting cannot exhaust the thread's.
    fn document(&mut self) -> Result<Node<'s>, Fault> {
        let mut open: Vec<Open<'s>> = Vec::new();
        loop {
            self.blanks();
            let place = self.place();
            let mut done = match self.peek() {
                Some(b'[' | b'{') if open.len() >= MAX_DEPTH => return Err(Fault::too_deep(place)),
                Some(b'[') => {
                    self.at += 1;
                    self.blanks();
                    if self.peek() != Some(b']') {
                        open.push(Open::List(place, Vec::new()));
                        continue;
                    }
                    self.at += 1;
                    Node { kind: Kind::List(Vec::new()), place }
                }
                Some(b'{') => {
                    self.at += 1;
                    self.blanks();
                    if self.peek() != Some(b'}') {
                        let key = self.key()?;
                        open.push(Open::Map(place, Vec::new(), key));
                        continue;
                    }
                    self.at += 1;
                    Node { kind: Kind::Map(Vec::new()), place }
                }
                _ => Node { kind: self.scalar()?, place },
            };
            // Close whatever ends here.
            loop {
                self.blanks();
                match open.pop() {
                    None => return Ok(done),
                    Some(Open::List(place, mut items)) => {
                        items.push(done);
                        match self.peek() {
                            Some(b',') => {
                                self.at += 1;
                                open.push(Open::List(place, items));
                                break;
                            }
                            Some(b']') => self.at += 1,
                            _ => return Err(self.fault("`,` or `]`")),
                        }
                        items.shrink_to_fit();
                        done = Node { kind: Kind::List(items), place };
                    }
                    Some(Open::Map(place, mut entries, (key, key_place))) => {
                        entries.push(Entry { key, place: key_place, value: done });
                        match self.peek() {
                            Some(b',') => {
                                self.at += 1;
                                self.blanks();
                                let key = self.key()?;
                                open.push(Open::Map(place, entries, key));
                                break;
                            }
                            Some(b'}') => self.at += 1,
                            _ => return Err(self.fault("`,` or `}`")),
                        }
                        entries.shrink_to_fit();
                        done = Node { kind: Kind::Map(entries), place };
                    }
                }
            }
        }
    }

    fn key(&mut self) -> Result<(Cow<'s, str>, Place), Fault> {
        let place = self.place();
        if self.peek() != Some(b'"') {
            return Err(self.fault("a key in double quotes"));
        }
        let key = self.string()?;
        self.blanks();
        if self.peek() != Some(b':') {
            return Err(self.fault("`:` after the key"));
        }
        self.at += 1;
        Ok((key, place))
    }

    fn scalar(&mut self) -> Result<Kind<'s>, Fault> {
        if self.peek() == Some(b'"') {
            return Ok(Kind::Scalar(self.string()?, Style::Quoted));
        }
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')) {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        match word {
            "null" => Ok(Kind::Null),
            "true" | "false" => Ok(Kind::Scalar(word.into(), Style::Json)),
            _ if is_number(word) => Ok(Kind::Scalar(word.into(), Style::Json)),
            _ => {
                self.at = start;
                Err(self.fault("a JSON value"))
            }
        }
    }

    /// At the opening quote.
    fn string(&mut self) -> Result<Cow<'s, str>, Fault> {
        self.at += 1;
        let mut start = self.at;
        let mut built: Option<String> = None;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let tail = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(match built {
                        None => Cow::Borrowed(tail),
                        Some(head) => Cow::Owned(head + tail),
                    });
                }
                Some(b'\\') => {
                    let mut head = built.take().unwrap_or_default();
                    head.push_str(&self.text[start..self.at]);
                    head.push(self.escape()?);
                    start = self.at;
                    built = Some(head);
                }
                Some(byte) if byte >= 0x20 => self.at += 1,
                _ => return Err(self.fault("the closing quote of the text")),
            }
        }
    }

    /// At the backslash.
    fn escape(&mut self) -> Result<char, Fault> {
        let byte = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match byte {
            Some(b'"' | b'\\' | b'/') => char::from(byte.unwrap_or_default()),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.fault("an escape of JSON")),
        };
        self.at += 2;
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char, Fault> {
        let unit = |at: usize| -> Option<u32> {
            let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
            digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
        };
        let (code, length) = match unit(self.at) {
            Some(high @ 0xd800..=0xdbff) => match unit(self.at + 6) {
                Some(low @ 0xdc00..=0xdfff) => {
                    (Some(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)), 12)
                }
                _ => (None, 6),
            },
            other => (other, 6),
        };
        match code.and_then(char::from_u32) {
            Some(c) => {
                self.at += length;
                Ok(c)
            }
            None => Err(self.fault("`\\u` with four hex digits, surrogates in pairs")),
        }
    }

    fn blanks(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.line_start = self.at + 1;
                }
                b' ' | b'\t' | b'\r' => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Columns are counted only where a value or key starts; on one very long line that is its length each time,
    /// so past 4 KiB bytes stand in for characters.
    fn place(&self) -> Place {
        let before = &self.text.as_bytes()[self.line_start..self.at];
        let column = if before.len() > 4096 {
            before.len()
        } else {
            before.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
        };
        Place::new(self.line, column + 1)
    }

    fn fault(&self, expected: &str) -> Fault {
        let found = match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(c) => format!("{c:?}"),
            None => "the end of the text".into(),
        };
        Fault::new(self.place(), format!("not readable as JSON: expected {expected}, found {found}"))
    }
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`
fn is_number(word: &str) -> bool {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = word.strip_prefix('-').unwrap_or(word);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with('0')) {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    match rest.strip_prefix(['e', 'E']) {
        Some(power) => {
            let power = power.strip_prefix(['+', '-']).unwrap_or(power);
            !power.is_empty() && digits(power) == power.len()
        }
        None => rest.is_empty(),
    }
}
