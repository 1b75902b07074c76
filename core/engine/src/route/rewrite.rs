//! What a route changes in a forwarded request.

use super::condition::Condition;
use super::path_part;
use crate::matching::re2;
use crate::spec::{ForwardSpec, RegexRewrite, SpecError};
use regex::bytes::Regex;

/// A compiled regex and its substitution.
#[derive(Debug)]
pub(super) struct Substitution {
    regex: Regex,
    parts: Box<[Part]>,
}

#[derive(Debug)]
enum Part {
    Text(Box<[u8]>),
    Group(usize),
}

impl Substitution {
    pub(super) fn compile(spec: &RegexRewrite) -> Result<Self, SpecError> {
        let regex = re2::anywhere(&spec.pattern)?;
        let (mut parts, mut text) = (Vec::new(), Vec::new());
        let mut rest = spec.substitution.bytes();
        while let Some(byte) = rest.next() {
            let group = match byte {
                b'\\' => match rest.next() {
                    Some(digit @ b'0'..=b'9') => usize::from(digit - b'0'),
                    Some(b'\\') => {
                        text.push(b'\\');
                        continue;
                    }
                    other => return Err(fault(spec, &format!("bad escape {:?}", other.map(char::from)))),
                },
                _ => {
                    text.push(byte);
                    continue;
                }
            };
            if group >= regex.captures_len() {
                return Err(fault(spec, &format!("there is no group {group}")));
            }
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text).into()));
            }
            parts.push(Part::Group(group));
        }
        if !text.is_empty() {
            parts.push(Part::Text(text.into()));
        }
        Ok(Self { regex, parts: parts.into() })
    }

    /// Replaces every match.
    pub(super) fn apply(&self, text: &str) -> String {
        let replaced = self.regex.replace_all(text.as_bytes(), |captures: &regex::bytes::Captures<'_>| {
            let mut out = Vec::new();
            for part in &self.parts {
                match part {
                    Part::Text(text) => out.extend_from_slice(text),
                    Part::Group(group) => {
                        out.extend_from_slice(captures.get(*group).map_or(&b""[..], |m| m.as_bytes()));
                    }
                }
            }
            out
        });
        String::from_utf8_lossy(&replaced).into_owned()
    }
}

fn fault(spec: &RegexRewrite, reason: &str) -> SpecError {
    SpecError::Regex {
        pattern: spec.pattern.clone(),
        reason: format!("substitution {:?}: {reason}", spec.substitution),
    }
}

/// The new path, query kept; `None` when it stays as it is.
pub(super) fn path(
    forward: &ForwardSpec,
    substitution: Option<&Substitution>,
    condition: &Condition,
    path: &str,
) -> Option<String> {
    let before = path_part(path);
    let rewritten = if !forward.prefix_rewrite.is_empty() {
        let tail = path.get(condition.matched_length(before)..)?;
        [forward.prefix_rewrite.as_str(), tail].concat()
    } else {
        let mut new = substitution?.apply(before);
        new.push_str(&path[before.len()..]);
        new
    };
    (rewritten != path).then_some(rewritten)
}
