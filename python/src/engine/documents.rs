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

/// A document's name, when it was given as a pair, and its text.
pub(super) struct Given<'py>(Option<Bound<'py, PyAny>>, Bound<'py, PyAny>);

pub(super) fn unpack<'py>(given: Vec<Bound<'py, PyAny>>) -> PyResult<Vec<Given<'py>>> {
    let one = |document: Bound<'py, PyAny>| {
        let Ok(pair) = document.cast::<PyTuple>() else { return Ok(Given(None, document)) };
        if pair.len() != 2 {
            return Err(PyTypeError::new_err("a named document must be a pair of a name and str or bytes"));
        }
        Ok(Given(Some(pair.get_item(0)?), pair.get_item(1)?))
    };
    given.into_iter().map(one).collect()
}

/// Documents by reference: text stays where Python holds it, however large it is.
pub(super) fn documents<'a>(
    given: &'a [Given<'_>],
    dialect: &'a str,
    runtime: Option<&'a str>,
) -> PyResult<Vec<Document<'a>>> {
    let read = given.iter().map(|Given(name, document)| {
        let name = args::text_or_none(name.as_ref(), "the name of a document")?;
        Ok(Document { kind: document_kind::TEXT, dialect, name, text: content(document)? })
    });
    read.chain(runtime.map(overlay).map(Ok)).collect()
}

fn content<'a>(document: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    if let Ok(bytes) = document.cast::<PyBytes>() {
        return Ok(bytes.as_bytes());
    }
    if !document.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(
            "a document must be str or bytes, or a pair of a name and one of them",
        ));
    }
    Ok(text(document, "a document")?.as_bytes())
}

pub(super) fn files<'a>(
    paths: &'a [String],
    dialect: &'a str,
    runtime: Option<&'a str>,
) -> Vec<Document<'a>> {
    let file =
        |path: &'a String| Document { kind: document_kind::PATH, dialect, name: "", text: path.as_bytes() };
    paths.iter().map(file).chain(runtime.map(overlay)).collect()
}

fn overlay(json: &str) -> Document<'_> {
    Document { kind: document_kind::RUNTIME, dialect: "", name: "", text: json.as_bytes() }
}

/// Runtime keys: a mapping, or its JSON text.
pub(super) fn runtime(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyString>() {
        return text(value, "runtime").map(str::to_owned);
    }
    crate::head::json(value, "runtime")
}

/// Options, the dialect, runtime keys.
pub(super) fn options(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<(Options, String, Option<String>)> {
    let (mut options, mut dialect, mut keys) = (Options::default(), String::new(), None);
    for (name, value) in keywords.into_iter().flatten() {
        let name: String = name.extract()?;
        match name.as_str() {
            "runtime" if value.is_none() => {}
            "runtime" => keys = Some(runtime(&value)?),
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
    Ok((options, dialect, keys))
}
