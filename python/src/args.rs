//! Arguments: numbers, times and text as Python users write them, checked before anything happens.

use crate::error::invalid;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::borrow::Cow;

/// A whole number in `0..=max`.
pub(crate) fn number(value: &Bound<'_, PyAny>, name: &str, max: u64) -> PyResult<u64> {
    let py = value.py();
    match value.extract::<u64>() {
        Ok(number) if number <= max => Ok(number),
        Err(error) if !error.is_instance_of::<PyOverflowError>(py) => Err(error),
        _ => Err(invalid(py, &format!("{name} is {}; allowed are 0 to {max}", shown(value)))),
    }
}

/// A status: none, or 100..=999.
pub(crate) fn status(value: &Bound<'_, PyAny>) -> PyResult<u16> {
    match value.extract::<i64>() {
        Ok(status @ (0 | 100..=999)) => Ok(status as u16),
        Err(error) if !error.is_instance_of::<PyOverflowError>(value.py()) => Err(error),
        _ => Err(invalid(
            value.py(),
            &format!(
                "the status is {}; it is 100 to 999, or 0 or None for a success without one",
                shown(value)
            ),
        )),
    }
}

/// A gRPC status; what does not fit is invalid but legal, like any number above 16.
pub(crate) fn grpc_status(value: Option<&Bound<'_, PyAny>>) -> PyResult<i8> {
    let Some(value) = value else { return Ok(-1) };
    match value.extract::<i64>() {
        Ok(status @ 0..=16) => Ok(status as i8),
        Err(error) if !error.is_instance_of::<PyOverflowError>(value.py()) => Err(error),
        _ => Ok(i8::MAX),
    }
}

/// Seconds as nanoseconds; infinity is no limit.
pub(crate) fn seconds(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let seconds: f64 = value.extract()?;
    if seconds.is_nan() || seconds < 0.0 {
        return Err(invalid(value.py(), &format!("{name} is {seconds}; allowed are seconds from 0 on")));
    }
    let ns = seconds * 1e9;
    Ok(if ns >= u64::MAX as f64 { nexthop::raw::NEVER } else { ns.round() as u64 })
}

/// Text that must be UTF-8.
pub(crate) fn text<'a>(value: &'a Bound<'_, PyAny>, name: &str) -> PyResult<&'a str> {
    let string = value
        .cast::<PyString>()
        .map_err(|_| PyTypeError::new_err(format!("{name} must be a str, not {}", kind(value))))?;
    string.to_str().map_err(|_| {
        invalid(value.py(), &format!("{name} has lone surrogates; it must be text that UTF-8 can carry"))
    })
}

/// Text that may be missing: empty then.
pub(crate) fn text_or_none<'a>(value: Option<&'a Bound<'_, PyAny>>, name: &str) -> PyResult<&'a str> {
    value.map_or(Ok(""), |value| text(value, name))
}

/// Bytes, or text: Latin-1 where every character fits, else UTF-8.
pub(crate) fn octets<'a>(value: &'a Bound<'_, PyAny>, name: &str) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if !value.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!("{name} must be str or bytes, not {}", kind(value))));
    }
    let text = text(value, name)?;
    Ok(if text.is_ascii() {
        Cow::Borrowed(text.as_bytes())
    } else if text.chars().all(|c| u32::from(c) <= 0xff) {
        Cow::Owned(text.chars().map(|c| u32::from(c) as u8).collect())
    } else {
        Cow::Borrowed(text.as_bytes())
    })
}

/// A truth value.
pub(crate) fn flag(value: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    value.extract().map_err(|_| PyTypeError::new_err(format!("{name} must be a bool, not {}", kind(value))))
}

/// One of a few words, as its index.
pub(crate) fn word(value: &Bound<'_, PyAny>, name: &str, words: &[&str]) -> PyResult<u8> {
    let found = text(value, name)?;
    words
        .iter()
        .position(|word| *word == found)
        .map(|index| index as u8)
        .ok_or_else(|| invalid(value.py(), &format!("{name} is {found:?}; allowed are {}", words.join(", "))))
}

/// A value as an error tells it.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "something else".into(), |text| text.to_string());
    if text.chars().count() > 60 { text.chars().take(60).chain("...".chars()).collect() } else { text }
}

/// An unexpected keyword, as Python says it.
pub(crate) fn unexpected(name: &str) -> PyErr {
    PyTypeError::new_err(format!("got an unexpected keyword argument '{name}'"))
}

fn kind(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string())
}
