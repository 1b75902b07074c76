//! Metadata as JSON, for faces.

use nexthop_engine::spec::{Metadata, Value};
use serde_json::{Map, Number, Value as Json};

/// Metadata as a JSON object of namespaces; empty text when there is none. Whole numbers are written as such.
pub fn metadata_json(metadata: &Metadata) -> String {
    if metadata.is_empty() {
        return String::new();
    }
    let namespaces = metadata.0.iter().map(|(namespace, values)| {
        let values: Map<String, Json> = values.iter().map(|(key, value)| (key.clone(), json(value))).collect();
        (namespace.clone(), Json::Object(values))
    });
    Json::Object(namespaces.collect()).to_string()
}

fn json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Number(number) => self::number(*number),
        Value::String(text) => Json::String(text.clone()),
        Value::List(items) => Json::Array(items.iter().map(json).collect()),
        Value::Struct(fields) => {
            Json::Object(fields.iter().map(|(key, value)| (key.clone(), json(value))).collect())
        }
    }
}

/// Doubles hold integers exactly up to 2^53; beyond, and for fractions, they stay doubles.
fn number(number: f64) -> Json {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and small enough")]
        return Json::Number(Number::from(number as i64));
    }
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_kept() {
        let mut metadata = Metadata::default();
        assert_eq!(metadata_json(&metadata), "");
        let lb = metadata.0.entry("envoy.lb".into()).or_default();
        lb.insert("a".into(), Value::Number(1.0));
        lb.insert("b".into(), Value::String("1".into()));
        lb.insert("c".into(), Value::List(vec![Value::Bool(true), Value::Null, Value::Number(0.5)]));
        assert_eq!(metadata_json(&metadata), r#"{"envoy.lb":{"a":1,"b":"1","c":[true,null,0.5]}}"#);
    }
}
