//! What users read: verdicts, waits, local replies. Made once, never changed.

use crate::once::once;
use nexthop::raw::{self, NEVER};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use std::borrow::Cow;

/// Nanoseconds as seconds; `None` is no limit.
pub(crate) fn seconds(ns: u64) -> Option<f64> {
    (ns != NEVER).then(|| ns as f64 / 1e9)
}

/// A number's name; numbers from later versions show as themselves.
pub(crate) fn named(names: &'static [&'static str], number: u8) -> Cow<'static, str> {
    match names.get(usize::from(number)) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("unknown({number})")),
    }
}

fn interned<'py>(py: Python<'py>, text: &str) -> Bound<'py, PyString> {
    PyString::intern(py, text)
}

const ACTIONS: [&str; 4] = ["none", "forward", "retry", "discard"];

/// What to do with an attempt's result.
#[pyclass(frozen, module = "nexthop")]
pub(crate) struct Verdict {
    pub(crate) raw: raw::Verdict,
}

impl Verdict {
    /// A verdict as a Python object; the commonest one is shared.
    #[inline]
    pub(crate) fn object(py: Python<'_>, raw: raw::Verdict) -> PyResult<Py<Self>> {
        static SUCCESS: PyOnceLock<Py<Verdict>> = PyOnceLock::new();
        let plain = raw::Verdict {
            action: raw::action::FORWARD,
            reason: raw::reason::SUCCESS,
            status: 200,
            ..raw::Verdict::default()
        };
        let shown = raw::Verdict { bits: 0, ..raw };
        if shown == plain {
            return Ok(once(py, &SUCCESS, || Py::new(py, Self { raw: plain }))?.clone_ref(py));
        }
        Py::new(py, Self { raw })
    }
}

#[pymethods]
impl Verdict {
    /// Whether to ask for the next attempt.
    #[getter]
    fn retry(&self) -> bool {
        self.raw.action == raw::action::RETRY
    }
    /// Seconds of back-off before the next attempt; choosing waits for them.
    #[getter]
    fn after(&self) -> f64 {
        f64::from(self.raw.after_ms) / 1e3
    }
    #[getter]
    fn action<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        interned(py, &named(&ACTIONS, self.raw.action))
    }
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        interned(py, &named(&raw::reason::NAMES, self.raw.reason))
    }
    /// The upstream's status, or the local reply's.
    #[getter]
    fn status(&self) -> u16 {
        self.raw.status
    }
    /// Envoy's response flags, comma-joined, `-` for none.
    #[getter]
    fn flags(&self) -> String {
        raw::flags::text(self.raw.flags)
    }
    fn __repr__(&self) -> String {
        let (action, reason) =
            (named(&ACTIONS, self.raw.action), named(&raw::reason::NAMES, self.raw.reason));
        let flags = self.flags();
        format!(
            "<Verdict {action} ({reason}) status={} after={} flags={flags}>",
            self.raw.status,
            self.after()
        )
    }
}

/// Nothing now: ask again then.
#[pyclass(frozen, module = "nexthop")]
pub(crate) struct Wait {
    /// Seconds; infinite = only after a report.
    #[pyo3(get)]
    seconds: f64,
    why: u8,
}

impl Wait {
    pub(crate) fn new(decision: &raw::Decision) -> Self {
        Self { seconds: seconds(decision.wait).unwrap_or(f64::INFINITY), why: decision.refusal }
    }
}

#[pymethods]
impl Wait {
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        interned(py, &named(&raw::wait::NAMES, self.why))
    }
    fn __repr__(&self) -> String {
        format!("<Wait {} {:.3} s>", named(&raw::wait::NAMES, self.why), self.seconds)
    }
}

/// What Envoy would answer by itself.
#[pyclass(frozen, module = "nexthop")]
pub(crate) struct LocalReply {
    raw: raw::LocalReply,
}

impl LocalReply {
    pub(crate) fn new(raw: raw::LocalReply) -> Self {
        Self { raw }
    }

    /// A plain 503, for places where a type checker cannot see that there is a reply.
    pub(crate) fn unavailable() -> Self {
        Self::new(raw::LocalReply { status: 503, ..raw::LocalReply::default() })
    }

    /// The reply of a refusal, from its decision alone.
    pub(crate) fn of(decision: &raw::Decision) -> Self {
        let refusal = u32::from(decision.refusal);
        Self::new(raw::LocalReply {
            status: decision.status,
            flags: decision.flags,
            details: raw::name(4, refusal).into(),
            headers: Vec::new(),
            body: raw::name(5, refusal).into(),
        })
    }
}

#[pymethods]
impl LocalReply {
    #[getter]
    fn status(&self) -> u16 {
        self.raw.status
    }
    #[getter]
    fn flags(&self) -> String {
        raw::flags::text(self.raw.flags)
    }
    #[getter]
    fn details(&self) -> &str {
        &self.raw.details
    }
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let headers = PyDict::new(py);
        for (name, value) in &self.raw.headers {
            headers.set_item(name, value)?;
        }
        Ok(headers)
    }
    #[getter]
    fn body(&self) -> &str {
        &self.raw.body
    }
    fn __repr__(&self) -> String {
        format!("<LocalReply {} {} {}>", self.raw.status, self.flags(), self.raw.details)
    }
}

/// An awaitable whose answer is there already.
#[pyclass(frozen, module = "nexthop")]
pub(crate) struct Done {
    pub(crate) value: Py<PyAny>,
}

#[pymethods]
impl Done {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __next__(&self, py: Python<'_>) -> PyResult<()> {
        Err(pyo3::exceptions::PyStopIteration::new_err((self.value.clone_ref(py),)))
    }
}
