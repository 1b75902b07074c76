//! Text to value trees: YAML and JSON in, [`Node`]s with their places out.
//!
//! No scalar is interpreted here. Envoy's scalar rules need the field's type, so a scalar stays what was written
//! plus how it was written ([`Style`]).

mod json;
mod node;
mod yaml;

pub(crate) use node::{Entry, Kind, Node, Place, Style};

use crate::error::Fault;

/// Deepest nesting, aliases expanded. Envoy's own documents stay below 40.
pub(crate) const MAX_DEPTH: usize = 128;

/// Nodes that aliases may add to a stream, so that a few lines cannot stand for billions.
pub(crate) const MAX_ALIASED: u64 = 1_000_000;

/// Reads a stream of documents. Strict JSON is read as JSON; everything else is YAML, of which JSON is nearly a
/// part, so a document that only looks like JSON still gets its chance.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<Node<'_>>, Fault> {
    let text = utf8(text)?;
    let body = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    if !body.starts_with(['{', '[']) {
        return yaml::parse(text);
    }
    match json::parse(text) {
        Ok(nodes) => Ok(nodes),
        Err(fault) if fault.is_final => Err(fault),
        // The reader that understood more has the more helpful complaint.
        Err(from_json) => yaml::parse(text)
            .map_err(|from_yaml| if from_json.place > from_yaml.place { from_json } else { from_yaml }),
    }
}

/// Reads one document of strict JSON.
pub(crate) fn parse_json(text: &str) -> Result<Vec<Node<'_>>, Fault> {
    json::parse(text)
}

/// The text, when it is UTF-8 without NUL (which the YAML scanner would take for the end).
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, Fault> {
    let (valid, problem) = match std::str::from_utf8(bytes) {
        Ok(text) => match bytes.iter().position(|&byte| byte == 0) {
            None => return Ok(text),
            Some(at) => (&bytes[..at], "a NUL byte"),
        },
        Err(error) => (&bytes[..error.valid_up_to()], "bytes that are not UTF-8"),
    };
    let hint = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => " (the file looks like UTF-16)",
        _ => "",
    };
    let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
    let start = valid.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let column = 1 + String::from_utf8_lossy(&valid[start..]).chars().count();
    Err(Fault::new(Place::new(line, column), format!("expected UTF-8 text, found {problem}{hint}")))
}

#[cfg(test)]
mod tests;
