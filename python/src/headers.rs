//! Only wanted headers cross the boundary: their values as a block over a numbered set of names.

use crate::args::octets;
use crate::once::once;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

struct Block<'a> {
    names: &'a [Box<str>],
    bytes: Vec<u8>,
}

impl Block<'_> {
    fn entry(&mut self, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let found = if let Ok(bytes) = name.cast::<PyBytes>() {
            self.index(bytes.as_bytes())
        } else if name.is_instance_of::<PyString>() {
            self.index(crate::args::text(name, "a header name")?.as_bytes())
        } else {
            return Err(PyTypeError::new_err("header names must be str or bytes"));
        };
        found.map_or(Ok(()), |index| self.push(index, &octets(value, "a header value")?))
    }

    fn index(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().position(|wanted| wanted.as_bytes().eq_ignore_ascii_case(name))
    }

    fn push(&mut self, index: usize, value: &[u8]) -> PyResult<()> {
        let length = u32::try_from(value.len())
            .map_err(|_| PyTypeError::new_err("a header value of 4 GiB or more"))?;
        self.bytes.extend_from_slice(&(index as u16).to_le_bytes());
        self.bytes.extend_from_slice(&[0, 0]);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(value);
        Ok(())
    }

    fn pairs(&mut self, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        for pair in pairs.try_iter()? {
            let pair = pair?;
            if let Ok(tuple) = pair.cast_exact::<PyTuple>()
                && tuple.len() == 2
            {
                self.entry(&tuple.get_item(0)?, &tuple.get_item(1)?)?;
            } else {
                if pair.is_instance_of::<PyString>() || pair.len()? != 2 {
                    return Err(PyTypeError::new_err(
                        "headers must be a mapping, or pairs of name and value",
                    ));
                }
                self.entry(&pair.get_item(0)?, &pair.get_item(1)?)?;
            }
        }
        Ok(())
    }

    /// A mapping that finds names in any case is asked for those we want, every other is read through.
    fn mapping(&mut self, headers: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = headers.py();
        if ignores_case(headers)? {
            for (index, name) in self.names.iter().enumerate() {
                let value = headers.call_method1(pyo3::intern!(py, "get"), (&**name,))?;
                if !value.is_none() {
                    let value = octets(&value, "a header value")?;
                    self.push(index, &value)?;
                }
            }
            return Ok(());
        }
        self.pairs(&headers.call_method0(pyo3::intern!(py, "items"))?)
    }
}

/// Whether this type of mapping finds a name in another case; asked of the first filled one of each type.
fn ignores_case(headers: &Bound<'_, PyAny>) -> PyResult<bool> {
    static KNOWN: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    const MOST: usize = 64;
    let py = headers.py();
    let known = once(py, &KNOWN, || Ok(PyDict::new(py).unbind()))?.bind(py);
    let kind = headers.get_type();
    if let Some(answer) = known.get_item(&kind)? {
        return answer.extract();
    }
    let Some(first) = headers.try_iter()?.next() else { return Ok(false) };
    let first = first?;
    let Ok(name) = first.cast::<PyString>() else { return Ok(false) };
    let other = name.call_method0(pyo3::intern!(py, "swapcase"))?;
    if name.as_any().eq(&other)? {
        return Ok(false);
    }
    let answer = !headers.call_method1(pyo3::intern!(py, "get"), (other,))?.is_none();
    if known.len() < MOST {
        known.set_item(kind, answer)?;
    }
    Ok(answer)
}

/// The values of `names` among `headers`.
pub(crate) fn block(headers: &Bound<'_, PyAny>, names: &[Box<str>]) -> PyResult<Vec<u8>> {
    let mut block = Block { names, bytes: Vec::new() };
    if names.is_empty() {
        return Ok(block.bytes);
    }
    let py = headers.py();
    if let Ok(dict) = headers.cast::<PyDict>() {
        for (name, value) in dict.iter() {
            block.entry(&name, &value)?;
        }
    } else if headers.is_exact_instance_of::<PyList>() || headers.is_exact_instance_of::<PyTuple>() {
        block.pairs(headers)?;
    } else if let Some(raw) = headers.getattr_opt(pyo3::intern!(py, "raw"))?
        && raw.is_instance_of::<PyList>()
    {
        block.pairs(&raw)?;
    } else if headers.hasattr(pyo3::intern!(py, "get"))? {
        block.mapping(headers)?;
    } else {
        block.pairs(headers)?;
    }
    Ok(block.bytes)
}
