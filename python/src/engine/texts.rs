//! Texts of the engine, parsed.

use crate::error::{self, cold};
use crate::fork::detached;
use nexthop::raw;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

/// A text of the engine, parsed.
pub(crate) fn json<'py>(py: Python<'py>, engine: u64, what: u32, arg: &str) -> PyResult<Bound<'py, PyAny>> {
    loads(py, &read(py, engine, what, arg)?)
}

pub(super) fn read(py: Python<'_>, engine: u64, what: u32, arg: &str) -> PyResult<String> {
    detached(py, || raw::text(engine, what, arg)).map_err(|error| cold(py, &error))
}

pub(super) fn loads<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    static JSON: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    error::module(py, &JSON, "json")?.call_method1("loads", (text,))
}
