//! A host as users see it: made once per slot and version, then shared by all attempts that go there.

use crate::once::once;
use nexthop::engine::hosts::HostInfo;
use nexthop::engine::spec::Value;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyMappingProxy, PyString};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An upstream address with what the documents say about it.
#[pyclass(frozen, module = "nexthop")]
pub(crate) struct Host {
    #[pyo3(get)]
    address: Py<PyString>,
    pub(crate) version: u32,
    pub(crate) info: Arc<HostInfo>,
    metadata: PyOnceLock<Py<PyAny>>,
}

impl Host {
    pub(crate) fn new(py: Python<'_>, version: u32, info: Arc<HostInfo>) -> Self {
        let address = PyString::intern(py, &info.address).unbind();
        Self { address, version, info, metadata: PyOnceLock::new() }
    }
}

fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => flag.into_bound_py_any(py)?,
        // Documents know one kind of number; whole ones read better without a fraction.
        Value::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            (*number as i64).into_bound_py_any(py)?
        }
        Value::Number(number) => number.into_bound_py_any(py)?,
        Value::String(text) => text.into_bound_py_any(py)?,
        Value::List(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(object(py, item)?)?;
            }
            list.into_any()
        }
        Value::Struct(fields) => mapping(py, fields)?.into_any(),
    })
}

fn mapping<'py>(py: Python<'py>, fields: &BTreeMap<String, Value>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in fields {
        dict.set_item(name, object(py, value)?)?;
    }
    Ok(dict)
}

#[pymethods]
impl Host {
    #[getter]
    fn port(&self) -> u16 {
        self.info.port
    }
    #[getter]
    fn hostname(&self) -> &str {
        &self.info.hostname
    }
    #[getter]
    fn cluster(&self) -> &str {
        &self.info.cluster
    }
    #[getter]
    fn weight(&self) -> u32 {
        self.info.weight
    }
    #[getter]
    fn priority(&self) -> u32 {
        self.info.priority
    }
    #[getter]
    fn zone(&self) -> &str {
        &self.info.locality.zone
    }
    /// Whether the cluster speaks TLS to it.
    #[getter]
    fn secure(&self) -> bool {
        self.info.secure
    }
    /// Seconds a connection may take; `None` when nothing limits it.
    #[getter]
    fn connect_timeout(&self) -> Option<f64> {
        crate::values::seconds(self.info.connect_timeout)
    }
    /// The `envoy.lb` values, read-only.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = once(py, &self.metadata, || {
            let empty = BTreeMap::new();
            let fields = mapping(py, self.info.metadata.0.get("envoy.lb").unwrap_or(&empty))?;
            Ok(PyMappingProxy::new(py, fields.as_mapping()).into_any().unbind())
        })?;
        Ok(made.bind(py).clone())
    }
    fn __repr__(&self) -> String {
        format!("<Host {} of {}>", self.info.address, self.info.cluster)
    }
}
