//! Load reports of hosts: `endpoint-load-metrics` as text, JSON or binary (`spec/load-balancing.md` section 23).

use crate::base64;
use crate::headers::HeaderView;
use crate::spec::Value;
use crate::wire::{Field, Reader};
use std::collections::BTreeMap;

/// The response headers, or trailers, that carry a report.
pub(crate) const HEADERS: &[&str] = &["endpoint-load-metrics", "endpoint-load-metrics-bin"];

/// Reads a JSON object.
pub(crate) type ReadJson = fn(&str) -> Result<BTreeMap<String, Value>, String>;

/// What a host says of its load. Numbers that it does not say are 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) cpu: f64,
    pub(crate) memory: f64,
    pub(crate) application: f64,
    /// Errors each second.
    pub(crate) errors: f64,
    /// Requests each second.
    pub(crate) requests: f64,
    /// By `map.name`: `named_metrics`, `utilization`, `request_cost`.
    pub(crate) named: BTreeMap<String, f64>,
}

const MAPS: [&str; 3] = ["named_metrics", "utilization", "request_cost"];

impl Report {
    /// The report in headers or trailers; one that cannot be read is none.
    pub(crate) fn find(headers: HeaderView<'_>, json: ReadJson) -> Option<Self> {
        if let Some(value) = headers.first("endpoint-load-metrics-bin") {
            return Self::binary(value);
        }
        let value = headers.first("endpoint-load-metrics")?;
        if let Some(text) = value.strip_prefix(b"TEXT ") {
            return Self::text(std::str::from_utf8(text).ok()?);
        }
        if let Some(text) = value.strip_prefix(b"JSON ") {
            return Self::json(&json(std::str::from_utf8(text).ok()?).ok()?);
        }
        Self::binary(value.strip_prefix(b"BIN ")?)
    }

    /// `name=value` apart by commas; each name once.
    fn text(text: &str) -> Option<Self> {
        let mut report = Self::default();
        let mut seen = std::collections::BTreeSet::new();
        for pair in text.split(',').map(str::trim_ascii).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=')?;
            let name = name.trim_ascii();
            if !seen.insert(name) {
                return None;
            }
            report.set(name, value.trim_ascii().parse().ok()?)?;
        }
        (!seen.is_empty()).then_some(report)
    }

    fn json(fields: &BTreeMap<String, Value>) -> Option<Self> {
        let mut report = Self::default();
        for (name, value) in fields {
            let name = snake(name);
            match value {
                Value::Number(number) => report.set(&name, *number)?,
                // Numbers of 64 bits may be texts.
                Value::String(text) => report.set(&name, text.parse().ok()?)?,
                Value::Struct(entries) if MAPS.contains(&&*name) => {
                    for (key, value) in entries {
                        let Value::Number(number) = value else { return None };
                        report.set(&format!("{name}.{key}"), *number)?;
                    }
                }
                _ => return None,
            }
        }
        Some(report)
    }

    fn binary(text: &[u8]) -> Option<Self> {
        let bytes = base64::decode(text)?;
        let mut report = Self::default();
        let mut reader = Reader::new(&bytes);
        while let Some((field, value)) = reader.next()? {
            let name = match field {
                1 => "cpu_utilization",
                2 => "mem_utilization",
                4 => "request_cost",
                5 => "utilization",
                6 => "rps_fractional",
                7 => "eps",
                8 => "named_metrics",
                9 => "application_utilization",
                _ => continue,
            };
            match value {
                Field::Fixed64(bits) => report.set(name, f64::from_bits(bits))?,
                Field::Bytes(entry) if MAPS.contains(&name) => {
                    let (key, number) = entry_of(entry)?;
                    report.set(&format!("{name}.{key}"), number)?;
                }
                _ => return None,
            }
        }
        Some(report)
    }

    /// Unknown names and numbers that are none spoil the report.
    fn set(&mut self, name: &str, value: f64) -> Option<()> {
        if !value.is_finite() {
            return None;
        }
        let field = match name {
            "cpu_utilization" => &mut self.cpu,
            "mem_utilization" => &mut self.memory,
            "application_utilization" => &mut self.application,
            "eps" => &mut self.errors,
            "rps_fractional" => &mut self.requests,
            // The older whole number counts for nothing.
            "rps" => return Some(()),
            other => {
                let (map, key) = other.split_once('.')?;
                if !MAPS.contains(&map) || key.is_empty() {
                    return None;
                }
                self.named.insert(other.to_owned(), value);
                return Some(());
            }
        };
        *field = value;
        Some(())
    }

    /// The value of one configured name; of `map.*` the highest.
    fn metric(&self, name: &str) -> Option<f64> {
        Some(match name {
            "cpu_utilization" => self.cpu,
            "mem_utilization" => self.memory,
            "application_utilization" => self.application,
            "eps" => self.errors,
            "rps_fractional" => self.requests,
            other => match other.strip_suffix('*') {
                Some(map) => {
                    let of_map = self.named.iter().filter(|(name, _)| name.starts_with(map));
                    of_map.map(|(_, value)| *value).reduce(f64::max)?
                }
                None => *self.named.get(other)?,
            },
        })
    }

    /// How busy the host is: the highest of the named metrics, else what the application says, else its CPU.
    /// `named_first` is how Envoy does it by default.
    pub(crate) fn utilization(&self, names: &[String], named_first: bool) -> f64 {
        let named = names.iter().filter_map(|name| self.metric(name)).fold(0.0, f64::max);
        let order = if named_first { [named, self.application] } else { [self.application, named] };
        order.into_iter().find(|value| *value > 0.0).unwrap_or(self.cpu)
    }

    /// Requests each second that the host could serve; an error each second counts `penalty` times.
    pub(crate) fn weight(&self, utilization: f64, penalty: f64) -> Result<u32, Useless> {
        if self.requests <= 0.0 {
            return Err(Useless::NoRequests);
        }
        let mut utilization = utilization;
        if penalty > 0.0 {
            utilization += self.errors / self.requests * penalty;
        }
        if utilization <= 0.0 {
            return Err(Useless::NoUtilization);
        }
        Ok((self.requests / utilization).min(f64::from(u32::MAX)) as u32)
    }
}

/// Why a report gives no weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Useless {
    /// It names no requests.
    NoRequests,
    /// The host says that it does nothing.
    NoUtilization,
}

fn entry_of(bytes: &[u8]) -> Option<(String, f64)> {
    let (mut key, mut number) = (String::new(), 0.0);
    let mut reader = Reader::new(bytes);
    while let Some((field, value)) = reader.next()? {
        match (field, value) {
            (1, Field::Bytes(text)) => key = std::str::from_utf8(text).ok()?.to_owned(),
            (2, Field::Fixed64(bits)) => number = f64::from_bits(bits),
            _ => {}
        }
    }
    Some((key, number))
}

/// `namedMetrics` as `named_metrics`.
fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::pack;
    use proptest::prelude::*;

    fn json(text: &str) -> Result<BTreeMap<String, Value>, String> {
        fn value(json: serde_json::Value) -> Value {
            match json {
                serde_json::Value::Number(number) => Value::Number(number.as_f64().unwrap()),
                serde_json::Value::String(text) => Value::String(text),
                serde_json::Value::Object(fields) => {
                    Value::Struct(fields.into_iter().map(|(name, field)| (name, value(field))).collect())
                }
                _ => Value::Null,
            }
        }
        match serde_json::from_str(text).map(value) {
            Ok(Value::Struct(fields)) => Ok(fields),
            _ => Err("no object".into()),
        }
    }

    fn find(index: u16, value: &[u8]) -> Option<Report> {
        let names: Vec<Box<str>> = HEADERS.iter().map(|name| (*name).into()).collect();
        let mut block = Vec::new();
        pack(&mut block, index, value);
        Report::find(HeaderView::new(&names, &block).unwrap(), json)
    }

    fn expected() -> Report {
        Report {
            cpu: 0.5,
            requests: 100.0,
            errors: 10.0,
            named: BTreeMap::from([("named_metrics.foo".into(), 0.5), ("request_cost.x".into(), 3.0)]),
            ..Report::default()
        }
    }

    #[test]
    fn three_forms_of_one_report() {
        let text =
            "TEXT cpu_utilization=0.5, rps_fractional=100,eps=10,named_metrics.foo=0.5,request_cost.x=3";
        assert_eq!(find(0, text.as_bytes()), Some(expected()));
        let text = r#"JSON {"cpu_utilization": 0.5, "rpsFractional": 100, "eps": "10", "named_metrics": {"foo": 0.5}, "requestCost": {"x": 3}}"#;
        assert_eq!(find(0, text.as_bytes()), Some(expected()));
        let mut bytes = Vec::new();
        let mut double = |key: u8, value: f64| {
            bytes.push(key << 3 | 1);
            bytes.extend_from_slice(&value.to_bits().to_le_bytes());
        };
        double(1, 0.5);
        double(6, 100.0);
        double(7, 10.0);
        for (field, key, value) in [(8_u8, "foo", 0.5_f64), (4, "x", 3.0)] {
            let mut entry = vec![0x0a, key.len() as u8];
            entry.extend_from_slice(key.as_bytes());
            entry.push(0x11);
            entry.extend_from_slice(&value.to_bits().to_le_bytes());
            bytes.extend_from_slice(&[field << 3 | 2, entry.len() as u8]);
            bytes.extend_from_slice(&entry);
        }
        // A field of a later version, and the older whole number.
        bytes.extend_from_slice(&[0x78, 1, 0x18, 7]);
        let text = base64::encode(&bytes);
        assert_eq!(find(1, text.as_bytes()), Some(expected()));
        assert_eq!(find(0, format!("BIN {text}").as_bytes()), Some(expected()));
    }

    #[test]
    fn what_cannot_be_read_is_no_report() {
        for bad in [
            "",
            "TEXT",
            "TEXT ",
            "TEXT cpu_utilization",
            "TEXT cpu_utilization=x",
            "TEXT cpu_utilization=NaN",
            "TEXT cpu_utilization=inf",
            "TEXT cpu=1",
            "TEXT named_metrics.=1",
            "TEXT cpu_utilization=1,cpu_utilization=2",
            "text cpu_utilization=1",
            "JSON",
            "JSON [1]",
            "JSON {\"cpu_utilization\": true}",
            "JSON {\"x\": 1}",
            "BIN !",
            "BIN CQ==",
            "cpu_utilization=1",
        ] {
            assert_eq!(find(0, bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(find(1, b"***"), None);
        assert_eq!(find(1, b""), Some(Report::default()));
    }

    #[test]
    fn names_of_whole_maps() {
        let report = Report {
            named: BTreeMap::from([
                ("utilization.a".into(), 0.2),
                ("utilization.b".into(), 0.7),
                ("request_cost.z".into(), 9.0),
            ]),
            ..Report::default()
        };
        assert_eq!(report.utilization(&["utilization.*".into()], true), 0.7);
        assert_eq!(report.utilization(&["utilization.a".into(), "named_metrics.*".into()], true), 0.2);
        assert_eq!(report.utilization(&["utilization.c".into()], true), 0.0);
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80), index in 0..2_u16) {
            if let Some(report) = find(index, &bytes) {
                prop_assert!(report.cpu.is_finite() && report.named.values().all(|value| value.is_finite()));
            }
            let _ = find(1, base64::encode(&bytes).as_bytes());
        }
    }
}
