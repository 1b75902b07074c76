//! Protobuf `Struct` and `Value`, and metadata made of them.

use super::scalar::{First, first_step};
use super::{At, Fields};
use crate::error::Result;
use crate::front::{Kind, Node};
use nexthop_engine::spec::{Metadata, Value};
use std::collections::BTreeMap;

const METADATA: Fields =
    Fields::of("Metadata", &["filter_metadata"]).not_available(&["typed_filter_metadata"]);

impl At<'_> {
    /// A message `Metadata`.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        let msg = self.message(&METADATA)?;
        let mut metadata = Metadata::default();
        if let Some(spaces) = msg.get("filter_metadata") {
            for (entry, at) in spaces.entries()? {
                let Some(values) = struct_of(at.node) else { return Err(at.expected("a mapping")) };
                metadata.0.insert(entry.key.to_string(), values);
            }
        }
        Ok(metadata)
    }
}

/// A mapping as a `Struct`; `None` when it is something else.
pub(crate) fn struct_of(node: &Node<'_>) -> Option<BTreeMap<String, Value>> {
    match value_of(node) {
        Value::Struct(values) => Some(values),
        Value::Null => Some(BTreeMap::new()),
        _ => None,
    }
}

/// Any node as a `Value`. Envoy's first step decides the types: a plain YAML integer of 32 bits is a number, wider
/// ones and decimals are text; numbers of JSON stay numbers. Depth is bounded by the front.
fn value_of(node: &Node<'_>) -> Value {
    match &node.resolve().kind {
        Kind::Null | Kind::Shared(_) => Value::Null,
        Kind::Scalar(text, style) => match first_step(text, *style) {
            First::Bool(flag) => Value::Bool(flag),
            First::Int(int) => match i32::try_from(int) {
                Ok(int) => Value::Number(f64::from(int)),
                Err(_) => Value::String(int.to_string()),
            },
            First::Number(number) => Value::Number(number.parse().unwrap_or(f64::INFINITY)),
            First::Text(text) => Value::String(text.to_owned()),
        },
        Kind::List(items) => Value::List(items.iter().map(value_of).collect()),
        Kind::Map(entries) => Value::Struct(
            entries.iter().map(|entry| (entry.key.to_string(), value_of(&entry.value))).collect(),
        ),
    }
}
