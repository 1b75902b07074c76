//! Metadata that callers hand over as JSON.

use crate::error::ConfigError;
use crate::front;
use crate::read::struct_of;
use nexthop_engine::spec::Value;
use std::collections::BTreeMap;

/// Reads a JSON object into spec values: numbers stay numbers, texts stay texts.
///
/// # Errors
/// One sentence with line and column.
pub fn parse_metadata_json(text: &str) -> Result<BTreeMap<String, Value>, String> {
    let nodes = front::parse_json(text)
        .map_err(|fault| format!("{}:{}: {}", fault.place.line, fault.place.column, fault.message))?;
    match nodes.first() {
        Some(node) if node.entries().is_some() => {
            struct_of(node).ok_or_else(|| "expected a JSON object".into())
        }
        Some(node) => Err(format!("expected a JSON object, found {}", node.describe())),
        None => Err("expected a JSON object, found null".into()),
    }
}

/// Reads a document of runtime keys, a JSON object, named `file` in errors.
///
/// # Errors
/// The place, what was found, what may stand there.
pub fn parse_runtime_json(file: &str, text: &[u8]) -> Result<BTreeMap<String, Value>, Box<ConfigError>> {
    let text = front::utf8(text).map_err(|fault| fault.in_file(file))?;
    let nodes = front::parse_json(text).map_err(|fault| fault.in_file(file))?;
    if let Some(values) = nodes.first().filter(|node| node.entries().is_some()).and_then(struct_of) {
        return Ok(values);
    }
    let (place, found, shown) = match nodes.first() {
        Some(node) => (node.place, node.bare(), node.describe()),
        None => (front::Place { line: 1, column: 1 }, "nothing".to_owned(), "nothing".to_owned()),
    };
    let allowed = "a JSON object of runtime keys";
    Err(Box::new(ConfigError {
        file: file.into(),
        line: place.line,
        column: place.column,
        message: format!("expected {allowed}, found {shown}"),
        found,
        allowed: allowed.into(),
        ..ConfigError::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_only() {
        let values =
            parse_metadata_json(r#"{"a": 1.5, "b": "1", "c": [true, null], "d": {"\ud83d\ude00": 3}}"#)
                .unwrap();
        assert_eq!(values["a"], Value::Number(1.5));
        assert_eq!(values["b"], Value::String("1".into()));
        assert_eq!(values["c"], Value::List(vec![Value::Bool(true), Value::Null]));
        assert_eq!(values["d"], Value::Struct(BTreeMap::from([("😀".into(), Value::Number(3.0))])));
        for bad in ["", "[]", "1", "null", "{", "{a: 1}", "{\"a\": 01}", "{} x", "{\"a\": \"\\ud800\"}"] {
            assert!(parse_metadata_json(bad).is_err(), "{bad}");
        }
    }
}
