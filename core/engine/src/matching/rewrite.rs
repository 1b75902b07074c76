//! `regex_rewrite` of hash policies and routes: every match gives way to a text with `\N` groups.

use super::re2;
use crate::spec::{RegexRewrite, SpecError};
use regex::bytes::Regex;

/// A compiled rewrite.
#[derive(Debug)]
pub(crate) struct Rewrite {
    pattern: Regex,
    pieces: Vec<Piece>,
    /// The substitution names a group that the pattern lacks: then nothing is rewritten, as in RE2.
    inert: bool,
}

#[derive(Debug)]
enum Piece {
    Literal(Vec<u8>),
    Group(usize),
}

impl Rewrite {
    /// Compiles pattern and substitution.
    pub(crate) fn compile(spec: &RegexRewrite) -> Result<Self, SpecError> {
        let pattern = re2::anywhere(&spec.pattern)?;
        let pieces = pieces(spec.substitution.as_bytes());
        let groups = pattern.captures_len();
        let inert = pieces.iter().any(|piece| matches!(piece, Piece::Group(group) if *group >= groups));
        Ok(Self { pattern, pieces, inert })
    }

    /// The rewritten text; `None` when it stays as it is.
    pub(crate) fn apply(&self, text: &[u8]) -> Option<Vec<u8>> {
        if self.inert {
            return None;
        }
        let mut result = Vec::new();
        let mut copied = 0;
        let mut matched = false;
        for captures in self.pattern.captures_iter(text) {
            let Some(whole) = captures.get(0) else { continue };
            matched = true;
            result.extend_from_slice(&text[copied..whole.start()]);
            copied = whole.end();
            for piece in &self.pieces {
                match piece {
                    Piece::Literal(bytes) => result.extend_from_slice(bytes),
                    Piece::Group(group) => {
                        result.extend_from_slice(captures.get(*group).map_or(&[], |found| found.as_bytes()));
                    }
                }
            }
        }
        result.extend_from_slice(&text[copied..]);
        matched.then_some(result)
    }
}

/// Takes a substitution apart. What follows an unknown escape is left out, as in RE2.
fn pieces(substitution: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut literal = Vec::new();
    let mut rest = substitution.iter();
    while let Some(byte) = rest.next() {
        let escaped = if *byte == b'\\' { rest.next() } else { None };
        match (byte, escaped) {
            (b'\\', Some(b'\\')) => literal.push(b'\\'),
            (b'\\', Some(digit)) if digit.is_ascii_digit() => {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                pieces.push(Piece::Group(usize::from(digit - b'0')));
            }
            (b'\\', _) => break,
            _ => literal.push(*byte),
        }
    }
    pieces.push(Piece::Literal(literal));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(pattern: &str, substitution: &str, text: &str) -> Option<String> {
        let spec = RegexRewrite { pattern: pattern.into(), substitution: substitution.into() };
        let rewrite = Rewrite::compile(&spec).unwrap();
        rewrite.apply(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn groups_and_literals() {
        assert_eq!(rewrite("(a)(b)?", r"<\2\1\0>", "abxa").as_deref(), Some("<baab>x<aa>"));
        assert_eq!(rewrite("a", r"$1\\$0", "a").as_deref(), Some(r"$1\$0"));
        assert_eq!(rewrite("a*", "X", "baac").as_deref(), Some("XbXcX"));
        assert_eq!(rewrite("a", "b", "xyz"), None);
    }

    #[test]
    fn faulty_substitutions_act_as_in_re2() {
        assert_eq!(rewrite("(a)", r"\2", "a"), None);
        assert_eq!(rewrite("a", r"x\qy", "za").as_deref(), Some("zx"));
        assert_eq!(rewrite("a", r"x\", "za").as_deref(), Some("zx"));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let spec = RegexRewrite { pattern: "(".into(), substitution: String::new() };
        let Err(SpecError::Regex { pattern, .. }) = Rewrite::compile(&spec) else { panic!() };
        assert_eq!(pattern, "(");
    }
}
