//! Documents and options, as users give them.

use crate::args::{self, number, text};
use crate::error;
use nexthop::raw::{Document, Options, clock, document_kind};
use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use std::path::PathBuf;

pub(super) fn paths(paths: &Bound<'_, PyTuple>) -> PyResult<Vec<String>> {
    let py = paths.py();
    paths
        .iter()
        .map(|path| {
            let wrong = || error::invalid(py, "a path must be text that UTF-8 can carry");
            let path: PathBuf = path.extract().map_err(|error: PyErr| {
                if error.is_instance_of::<PyUnicodeEncodeError>(py) { wrong() } else { error }
            })?;
            path.into_os_string().into_string().map_err(|_| wrong())
        })
        .collect()
}

/// Documents by reference: text stays where Python holds it, however large it is.
pub(super) fn documents<'a>(given: &'a [Bound<'_, PyAny>], dialect: &'a str) -> PyResult<Vec<Document<'a>>> {
    given
        .iter()
        .map(|document| {
            let bytes = if let Ok(bytes) = document.cast::<PyBytes>() {
                bytes.as_bytes()
            } else if document.is_instance_of::<PyString>() {
                text(document, "a document")?.as_bytes()
            } else {
                return Err(PyTypeError::new_err("a document must be str or bytes"));
            };
            Ok(Document { kind: document_kind::TEXT, dialect, name: "", text: bytes })
        })
        .collect()
}

pub(super) fn files<'a>(paths: &'a [String], dialect: &'a str) -> Vec<Document<'a>> {
    let file =
        |path: &'a String| Document { kind: document_kind::PATH, dialect, name: "", text: path.as_bytes() };
    paths.iter().map(file).collect()
}

pub(super) fn options(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<(Options, String)> {
    let (mut options, mut dialect) = (Options::default(), String::new());
    for (name, value) in keywords.into_iter().flatten() {
        let name: String = name.extract()?;
        match name.as_str() {
            "dialect" => dialect = text(&value, "dialect")?.into(),
            "seed" => options.seed = number(&value, "seed", u64::MAX)?,
            "workers" => options.workers = number(&value, "workers", u32::MAX.into())? as u32,
            "lease" => options.lease = args::seconds(&value, "lease")?.max(1),
            "events" => options.events = number(&value, "events", u64::MAX)?,
            "clock" => {
                let words = ["coarse", "precise", "manual"];
                options.clock = [clock::COARSE, clock::PRECISE, clock::MANUAL]
                    [usize::from(args::word(&value, "clock", &words)?)];
            }
            "draws" => {
                let words = value.try_iter()?.map(|word| number(&word?, "a draw", u64::MAX));
                options.draws = Some(words.collect::<PyResult<_>>()?);
            }
            _ => return Err(args::unexpected(&name)),
        }
    }
    Ok((options, dialect))
}
