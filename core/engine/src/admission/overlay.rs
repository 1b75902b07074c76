//! Runtime values over a gate's settings.

use crate::snapshot::integer;
use crate::spec::{Switch, Tunable, Value};
use std::collections::BTreeMap;

/// All runtime values, the last one of a key.
pub(crate) struct Overlay<'a>(BTreeMap<&'a str, &'a Value>);

impl<'a> Overlay<'a> {
    pub(crate) fn new(values: &'a [(String, Value)]) -> Self {
        Self(values.iter().map(|(key, value)| (key.as_str(), value)).collect())
    }

    /// What is neither a flag nor the name of one is not there, as in Envoy.
    pub(super) fn flag(&self, switch: &Switch) -> bool {
        match self.0.get(switch.key.as_str()) {
            Some(Value::Bool(on)) => *on,
            Some(Value::String(text)) => text.parse().unwrap_or(switch.on),
            _ => switch.on,
        }
    }

    fn double(&self, key: &str) -> Option<f64> {
        match self.0.get(key)? {
            Value::Number(number) => Some(*number),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
        .filter(|number| number.is_finite())
    }

    pub(super) fn number(&self, tunable: &Tunable) -> f64 {
        self.double(&tunable.key).unwrap_or(tunable.value)
    }

    /// Percent; a runtime value that is none counts as absent.
    pub(super) fn percent(&self, tunable: &Tunable) -> f64 {
        self.double(&tunable.key).filter(|number| (0.0..=100.0).contains(number)).unwrap_or(tunable.value)
    }

    /// A fraction from a percentage that is cut to 0..=100.
    pub(super) fn fraction(&self, key: &str, percent: f64) -> f64 {
        self.double(key).unwrap_or(percent).clamp(0.0, 100.0) / 100.0
    }

    pub(super) fn whole(&self, key: &str, value: u32) -> u32 {
        self.millis(key).map_or(value, |number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    pub(super) fn millis(&self, key: &str) -> Option<u64> {
        integer(self.0.get(key)?)
    }
}
