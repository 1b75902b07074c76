//! The exceptions are plain Python classes in `nexthop._errors`; here they are made.

use crate::once::once;
use nexthop::raw::{self, Misuse};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule};

/// The `code` of a misuse, as users see it.
fn code(misuse: Misuse) -> &'static str {
    match misuse {
        Misuse::Invalid => "invalid",
        Misuse::Ended => "ended",
        Misuse::State => "state",
        Misuse::Closed => "closed",
        Misuse::NotFound => "not_found",
        Misuse::Limit => "limit",
        Misuse::Panic => "panic",
        _ => "misuse",
    }
}

/// A module of the Python package, imported once.
pub(crate) fn module<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyModule>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyModule>> {
    Ok(once(py, cell, || PyModule::import(py, name).map(Bound::unbind))?.bind(py))
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    module(py, &ERRORS, "nexthop._errors")?.getattr(name)
}

fn build(py: Python<'_>, name: &str, message: &str, code: &str) -> PyErr {
    match class(py, name).and_then(|class| class.call1((message, code))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// Wrong use with a sentence of our own.
pub(crate) fn usage(py: Python<'_>, misuse: Misuse, sentence: &str) -> PyErr {
    let name = if misuse == Misuse::Panic { "InternalError" } else { "UsageError" };
    build(py, name, sentence, code(misuse))
}

/// A bad argument.
pub(crate) fn invalid(py: Python<'_>, sentence: &str) -> PyErr {
    usage(py, Misuse::Invalid, sentence)
}

/// What a hot call answered.
#[cold]
pub(crate) fn misuse(py: Python<'_>, asked: &raw::Asked, misuse: Misuse) -> PyErr {
    usage(py, misuse, &raw::sentence_of(asked, misuse))
}

/// What a `begin` answered.
#[cold]
pub(crate) fn of_head(py: Python<'_>, head: &raw::Head<'_>, error: Misuse) -> PyErr {
    usage(py, error, &raw::sentence_of_head(head, error))
}

/// What a cold call answered.
pub(crate) fn cold(py: Python<'_>, error: &raw::Error) -> PyErr {
    match error {
        raw::Error::Misuse(kind, sentence) => usage(py, *kind, sentence),
        raw::Error::Config(config) => {
            let place = PyDict::new(py);
            let texts = [
                ("file", &config.file),
                ("path", &config.path),
                ("found", &config.found),
                ("allowed", &config.allowed),
            ];
            let filled = texts
                .iter()
                .try_for_each(|(name, value)| place.set_item(name, value))
                .and_then(|()| place.set_item("line", config.line))
                .and_then(|()| place.set_item("column", config.column))
                .and_then(|()| place.set_item("nearest", &config.nearest));
            filled.map_or_else(|error| error, |()| config_error(py, &error.to_string(), "config", &place))
        }
        raw::Error::Io { file, .. } => {
            let place = PyDict::new(py);
            place
                .set_item("file", file)
                .map_or_else(|error| error, |()| config_error(py, &error.to_string(), "io", &place))
        }
        _ => usage(py, Misuse::Invalid, &error.to_string()),
    }
}

fn config_error(py: Python<'_>, message: &str, code: &str, place: &Bound<'_, PyDict>) -> PyErr {
    match class(py, "ConfigError").and_then(|class| class.call((message, code), Some(place))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The value that says: there will be no attempt.
pub(crate) fn refused<'py>(
    py: Python<'py>,
    decision: &raw::Decision,
    reply: &Bound<'py, PyAny>,
    host: Option<Bound<'py, PyAny>>,
    detail: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let refusal = crate::values::named(&raw::refusal::NAMES, decision.refusal);
    let resource = Some(raw::resource::name(decision.resource)).filter(|name| !name.is_empty());
    let retry_after = crate::values::seconds(decision.wait).filter(|after| *after > 0.0);
    class(py, "Refused")?.call1((refusal, resource, retry_after, reply, host, detail))
}

/// `UnreportedWarning` at the caller's line.
pub(crate) fn warn_unreported(py: Python<'_>) -> PyResult<()> {
    let class = class(py, "UnreportedWarning")?;
    let text = c"the block ended without a report: the attempt counts as cancelled; call complete(), on_headers() or fail()";
    PyErr::warn(py, &class, text, 1)
}
