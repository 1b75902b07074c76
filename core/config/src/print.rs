//! Value trees as JSON and YAML.

use crate::front::{Kind, Node, Style};
#[cfg(test)]
use serde_json::Value;
use std::fmt::Write;

/// A tree as JSON.
#[cfg(test)]
pub(crate) fn json(node: &Node<'_>) -> Value {
    match &node.resolve().kind {
        Kind::Null | Kind::Shared(_) => Value::Null,
        Kind::Scalar(text, Style::Json) => match text.as_ref() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            number => serde_json::from_str(number).unwrap_or(Value::Null),
        },
        Kind::Scalar(text, _) => Value::String(text.to_string()),
        Kind::List(items) => Value::Array(items.iter().map(json).collect()),
        Kind::Map(entries) => {
            Value::Object(entries.iter().map(|entry| (entry.key.to_string(), json(&entry.value))).collect())
        }
    }
}

/// A tree as one YAML document, without a mark at its beginning.
pub(crate) fn yaml(node: &Node<'_>) -> String {
    let mut out = String::new();
    match &node.resolve().kind {
        Kind::Map(_) | Kind::List(_) if !is_empty(node) => block(node, 0, &mut out),
        _ => {
            inline(node, &mut out);
            out.push('\n');
        }
    }
    out
}

fn is_empty(node: &Node<'_>) -> bool {
    match &node.resolve().kind {
        Kind::Map(entries) => entries.is_empty(),
        Kind::List(items) => items.is_empty(),
        _ => true,
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', depth * 2));
}

/// A mapping or list that is not empty. The first line is already indented.
fn block(node: &Node<'_>, depth: usize, out: &mut String) {
    match &node.resolve().kind {
        Kind::Map(entries) => {
            for (at, entry) in entries.iter().enumerate() {
                if at > 0 {
                    indent(depth, out);
                }
                scalar(&entry.key, out);
                out.push(':');
                value(&entry.value, depth, out);
            }
        }
        Kind::List(items) => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    indent(depth, out);
                }
                out.push('-');
                if is_empty(item) {
                    out.push(' ');
                    inline(item, out);
                    out.push('\n');
                } else {
                    out.push(' ');
                    block(item, depth + 1, out);
                }
            }
        }
        _ => {
            inline(node, out);
            out.push('\n');
        }
    }
}

/// What follows a key.
fn value(node: &Node<'_>, depth: usize, out: &mut String) {
    if is_empty(node) {
        out.push(' ');
        inline(node, out);
        out.push('\n');
        return;
    }
    out.push('\n');
    let deeper = if matches!(node.resolve().kind, Kind::Map(_)) { depth + 1 } else { depth };
    indent(deeper, out);
    block(node, deeper, out);
}

fn inline(node: &Node<'_>, out: &mut String) {
    match &node.resolve().kind {
        Kind::Null | Kind::Shared(_) => out.push_str("null"),
        Kind::Scalar(text, Style::Json) => out.push_str(text),
        Kind::Scalar(text, _) => scalar(text, out),
        Kind::List(_) => out.push_str("[]"),
        Kind::Map(_) => out.push_str("{}"),
    }
}

/// Text that reads as text again: plain when nothing else could be meant, else quoted.
fn scalar(text: &str, out: &mut String) {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./|".contains(&b))
        && text.len() > 1
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "yes" | "no" | "on" | "off" | "true" | "false" | "null" | "nan" | "inf" | "infinity"
        );
    if plain {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 || c == '\u{7f}' || (0x80..0xa0).contains(&(c as u32)) => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::parse;
    use proptest::prelude::*;

    fn same(text: &str) {
        let before = parse(text.as_bytes()).unwrap();
        let printed = yaml(&before[0]);
        let after = parse(printed.as_bytes()).unwrap();
        assert_eq!(words(&json(&before[0])), words(&json(&after[0])), "{printed}");
    }

    /// Numbers as text: the type of a number of YAML is its field's business.
    fn words(value: &Value) -> Value {
        match value {
            Value::Number(number) => Value::String(number.to_string()),
            Value::Array(items) => items.iter().map(words).collect(),
            Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), words(value))).collect(),
            other => other.clone(),
        }
    }

    #[test]
    fn what_is_printed_reads_the_same() {
        same(
            r##"{"a": [], "b": {}, "c": [{"d": [1, [2, "x"]], "e": {"f": "yes"}}, "5", ""], "": "g: h", "|": "# no"}"##,
        );
        same(
            r#"{"@type": "type.googleapis.com/x", "n": "é\u0001\u0085\"\\", "l": ["- x", ": y", "0x1", "~"]}"#,
        );
    }

    proptest! {
        #[test]
        fn any_text_survives(text in "\\PC*", key in "[ -~]{1,20}") {
            let value = serde_json::json!({ key: [{"x": text}, "y"] });
            same(&value.to_string());
        }
    }
}
