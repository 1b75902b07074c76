//! Metadata values as Envoy's documents carry them.

use std::collections::BTreeMap;

/// A protobuf `Value`: types matter (`"1"` is not `1`), numbers are doubles.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// Any number.
    Number(f64),
    /// Text.
    String(String),
    /// A list.
    List(Vec<Self>),
    /// A mapping.
    Struct(BTreeMap<String, Self>),
}

impl Value {
    /// The text, when this is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, when this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            _ => None,
        }
    }
}

/// `filter_metadata`: namespace to its values. Balancing reads `envoy.lb`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata(pub BTreeMap<String, BTreeMap<String, Value>>);

impl Metadata {
    /// A value of the namespace `envoy.lb`.
    pub fn lb(&self, key: &str) -> Option<&Value> {
        self.0.get("envoy.lb")?.get(key)
    }

    /// Whether nothing is there at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
