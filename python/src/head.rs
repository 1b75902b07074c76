//! What a request is made from, read from keywords and kept until its first choice.

use crate::args::{self, flag, octets, text, word};
use crate::engine::Engine;
use crate::error::invalid;
use nexthop::raw::{self, head_bits};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyString};

/// A target that no document names: the engine answers `no_cluster`.
pub(crate) const UNKNOWN: u32 = raw::NO_SUCH_TARGET;

/// A head that owns its text.
pub(crate) struct OwnedHead {
    pub(crate) target: u32,
    pub(crate) number: u32,
    pub(crate) tried: String,
    pub(crate) scheme: String,
    pub(crate) path: String,
    /// Why `target` is unknown, with the nearest name.
    pub(crate) missing: String,
    bits: u32,
    want: u32,
    priority: i8,
    body: u8,
    method: String,
    authority: String,
    headers: Vec<u8>,
    source: String,
    local: String,
    key: Option<Vec<u8>>,
    override_host: String,
    metadata: String,
    filter_metadata: String,
    timeout: u64,
}

impl OwnedHead {
    pub(crate) fn new(target: u32) -> Self {
        let text = String::new;
        Self {
            target,
            number: 0,
            tried: text(),
            scheme: text(),
            path: text(),
            missing: if target == UNKNOWN { raw::last_error() } else { text() },
            bits: 0,
            want: 1,
            priority: -1,
            body: 0,
            method: text(),
            authority: text(),
            headers: Vec::new(),
            source: text(),
            local: text(),
            key: None,
            override_host: text(),
            metadata: text(),
            filter_metadata: text(),
            timeout: 0,
        }
    }

    /// Reads the keywords of `request`. `target` 0 = match, unless a route is named.
    pub(crate) fn read(engine: &Engine, target: u32, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut head = Self::new(target);
        for (name, value) in keywords.into_iter().flatten() {
            head.set(engine, text(name.as_any(), "a keyword")?, &value)?;
        }
        Ok(head)
    }

    fn set(&mut self, engine: &Engine, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        if value.is_none() && FIELDS.contains(&name) {
            return Ok(());
        }
        match name {
            "method" => self.method = text(value, name)?.into(),
            "scheme" => self.scheme = text(value, name)?.into(),
            "authority" => self.authority = text(value, name)?.into(),
            "path" => self.path = text(value, name)?.into(),
            "headers" => {
                let (want, names) = engine.wanted_of_requests(py)?;
                self.headers = crate::headers::block(value, &names)?;
                self.want = want;
            }
            "route" if self.target != 0 => {
                return Err(invalid(py, "both a cluster and a route are named; name one of them"));
            }
            "route" => {
                self.target = engine.target_of(&format!("route:{}", text(value, name)?));
                if self.target == UNKNOWN {
                    self.missing = raw::last_error();
                }
            }
            "source" => self.source = text(value, name)?.into(),
            "local" => self.local = text(value, name)?.into(),
            "key" => self.key = Some(octets(value, name)?.into_owned()),
            "override_host" => self.override_host = text(value, name)?.into(),
            "metadata" => self.metadata = json(value, name)?,
            "filter_metadata" => self.filter_metadata = json(value, name)?,
            // Zero is no limit; less than a nanosecond is not.
            "timeout" => {
                let ns = args::seconds(value, name)?;
                self.timeout = if ns == 0 && value.is_truthy()? { 1 } else { ns };
            }
            "priority" => self.priority = word(value, name, &["default", "high"])? as i8,
            "body" => self.body = word(value, name, &["none", "replayable", "once", "streaming"])?,
            "internal" => self.bit(head_bits::INTERNAL, flag(value, name)?),
            "explain" => self.bit(head_bits::EXPLAIN, flag(value, name)?),
            _ => return Err(args::unexpected(name)),
        }
        Ok(())
    }

    fn bit(&mut self, bit: u32, on: bool) {
        if on {
            self.bits |= bit;
        }
    }

    /// Addresses tried before, and the attempt number, of a stateless choice.
    pub(crate) fn stateless(
        &mut self,
        py: Python<'_>,
        attempt: u32,
        tried: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if attempt == 0 {
            // A whole head with number 0 would be a request of more attempts.
            return Err(wrong_number(py, "0"));
        }
        self.number = attempt;
        if let Some(one) = tried.filter(|tried| tried.is_instance_of::<PyString>()) {
            return Err(PyTypeError::new_err(format!(
                "tried must be a list of addresses, not the text {one}"
            )));
        }
        for address in tried.map(|tried| tried.try_iter()).transpose()?.into_iter().flatten() {
            let address = address?;
            if !self.tried.is_empty() {
                self.tried.push(',');
            }
            self.tried.push_str(text(&address, "an address in tried")?);
        }
        Ok(())
    }

    /// The same, borrowed, as calls take it.
    pub(crate) fn borrowed(&self) -> raw::Head<'_> {
        raw::Head {
            bits: self.bits,
            target: self.target,
            number: self.number,
            want: self.want,
            priority: self.priority,
            body: self.body,
            method: &self.method,
            scheme: &self.scheme,
            authority: &self.authority,
            path: &self.path,
            headers: &self.headers,
            source: &self.source,
            local: &self.local,
            key: self.key.as_deref(),
            tried: &self.tried,
            override_host: &self.override_host,
            metadata: &self.metadata,
            filter_metadata: &self.filter_metadata,
            timeout: self.timeout,
            ..raw::Head::default()
        }
    }
}

const FIELDS: [&str; 17] = [
    "method",
    "scheme",
    "authority",
    "path",
    "headers",
    "route",
    "source",
    "local",
    "key",
    "override_host",
    "metadata",
    "filter_metadata",
    "timeout",
    "priority",
    "body",
    "internal",
    "explain",
];

pub(crate) fn json(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    let py = value.py();
    let options = PyDict::new(py);
    options.set_item("allow_nan", false)?;
    let object = if value.is_instance_of::<PyDict>() {
        value.clone()
    } else {
        let wrong = |_| PyTypeError::new_err(format!("{name} must be a mapping of names to values"));
        py.get_type::<PyDict>().call1((value,)).map_err(wrong)?
    };
    PyModule::import(py, "json")?
        .call_method("dumps", (object,), Some(&options))
        .and_then(|text| text.extract())
        .map_err(|error| invalid(py, &format!("{name} does not fit into JSON: {error}")))
}

fn wrong_number(py: Python<'_>, found: &str) -> PyErr {
    let last = raw::LAST_NUMBER;
    invalid(py, &format!("the attempt number is {found}; attempts count from 1 to {last}"))
}

/// An attempt number; the first one when none is given, 0 when the caller does not know it.
#[inline]
pub(crate) fn attempt_number(value: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
    let Some(value) = value else { return Ok(1) };
    match value.extract::<u32>() {
        Ok(number) if number <= raw::LAST_NUMBER => Ok(number),
        Err(error) if !error.is_instance_of::<PyOverflowError>(value.py()) => Err(error),
        _ => Err(wrong_number(value.py(), &args::shown(value))),
    }
}
