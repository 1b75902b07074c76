//! What a request asks of its host's metadata (section 22.3).

use crate::spec::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Names with values, and one text that is the same for equal ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Criteria {
    fields: BTreeMap<String, Value>,
    key: String,
}

impl Criteria {
    /// Of these names and values.
    pub fn new(fields: BTreeMap<String, Value>) -> Self {
        let mut key = String::new();
        for (name, value) in &fields {
            push(&mut key, name, value);
        }
        Self { fields, key }
    }

    /// Names with values.
    pub fn fields(&self) -> &BTreeMap<String, Value> {
        &self.fields
    }

    /// These over those; `self` wins by name.
    pub fn over(&self, base: &BTreeMap<String, Value>) -> Self {
        let mut fields = base.clone();
        fields.extend(self.fields.clone());
        Self::new(fields)
    }

    /// What a route asks for, and what the request itself asks for, which wins; `None` when neither does.
    pub(crate) fn both(route: Option<&Arc<Self>>, own: Option<&Arc<Self>>) -> Option<Arc<Self>> {
        match (route, own) {
            (Some(route), Some(own)) => Some(Arc::new(own.over(route.fields()))),
            (one, other) => one.or(other).cloned(),
        }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Names alone, in one text.
    pub(super) fn names(&self) -> String {
        names(self.fields.keys())
    }

    pub(super) fn has(&self, names: &[String]) -> bool {
        names.iter().all(|name| self.fields.contains_key(name))
    }

    /// Only what these names say.
    pub(super) fn only(&self, names: &[String]) -> Self {
        let fields = self.fields.iter().filter(|(name, _)| names.contains(name));
        Self::new(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
    }
}

/// Names in one text that is the same for the same names.
pub(super) fn names<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let mut text = String::new();
    for name in names {
        push_text(&mut text, name);
    }
    text
}

/// Adds one name and its value to a key.
pub(super) fn push(key: &mut String, name: &str, value: &Value) {
    push_text(key, name);
    push_value(key, value);
}

fn push_text(key: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = write!(key, "{}:{text}", text.len());
}

fn push_value(key: &mut String, value: &Value) {
    match value {
        Value::Null => key.push('n'),
        Value::Bool(flag) => key.push(if *flag { 't' } else { 'f' }),
        Value::Number(number) => {
            // Both zeros are equal.
            let bits = if *number == 0.0 { 0 } else { number.to_bits() };
            let _ = write!(key, "#{bits:x};");
        }
        Value::String(text) => {
            key.push('s');
            push_text(key, text);
        }
        Value::List(items) => {
            key.push('[');
            items.iter().for_each(|item| push_value(key, item));
            key.push(']');
        }
        Value::Struct(fields) => {
            key.push('{');
            fields.iter().for_each(|(name, value)| push(key, name, value));
            key.push('}');
        }
    }
}
