//! Active checks as Python users see them.

use crate::args;
use crate::attempt::{failure_number, failures};
use crate::engine::Engine;
use crate::error::{cold, module};
use crate::fork::detached;
use crate::headers;
use crate::host::Host;
use crate::values::named;
use nexthop::raw::{self, NOW, Outcome, check_bits, check_protocol, check_results, failure};
use pyo3::exceptions::{PyBaseException, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyModule, PyString};

/// A check to perform now, handed out once; what is not reported within `timeout` counts as timed out.
#[pyclass(frozen, module = "nexthop")]
pub(crate) struct Check {
    engine: Py<Engine>,
    raw: raw::Check,
}

/// The checks that are due.
pub(crate) fn due(slf: &Bound<'_, Engine>) -> PyResult<Vec<Check>> {
    let (py, id) = (slf.py(), slf.get().id);
    let polled: Result<Vec<raw::Check>, raw::Error> = detached(py, || {
        let next = || raw::with_local(|local| raw::poll_check(local, id, NOW)).transpose();
        std::iter::from_fn(next).collect()
    });
    let polled = polled.map_err(|error| cold(py, &error))?;
    Ok(polled.into_iter().map(|raw| Check { engine: slf.clone().unbind(), raw }).collect())
}

impl Check {
    fn report(&self, py: Python<'_>, result: u32, outcome: &Outcome<'_>, body: &[u8]) -> PyResult<bool> {
        let engine = self.engine.get();
        let told = detached(py, || {
            raw::with_local(|local| {
                raw::check_result(local, engine.id, self.raw.id, result, outcome, body, NOW)
            })
        });
        crate::waiters::wake(py, engine.id);
        told.map_err(|error| cold(py, &error))
    }

    fn has(&self, bit: u8) -> bool {
        raw::bits_of(&self.raw) & bit != 0
    }
}

#[pymethods]
impl Check {
    #[getter]
    fn id(&self) -> u64 {
        self.raw.id
    }
    /// Whom it is about.
    #[getter]
    fn host(&self, py: Python<'_>) -> PyResult<Py<Host>> {
        self.engine.get().host(py, self.raw.host, self.raw.host_version)
    }
    #[getter]
    fn cluster(&self) -> &str {
        &self.raw.cluster
    }
    /// Name of the checker; empty when its cluster has one.
    #[getter]
    fn name(&self) -> &str {
        &self.raw.spec.name
    }
    #[getter]
    fn protocol<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::intern(py, &named(&check_protocol::NAMES, raw::protocol_of(&self.raw)))
    }
    /// Whether it is asked over HTTP/2.
    #[getter]
    fn http2(&self) -> bool {
        self.has(check_bits::HTTP2)
    }
    /// Whether the host speaks TLS.
    #[getter]
    fn secure(&self) -> bool {
        self.has(check_bits::SECURE)
    }
    /// Whether one connection may carry many checks.
    #[getter]
    fn may_reuse(&self) -> bool {
        self.has(check_bits::REUSE)
    }
    /// Extension name of a custom check; empty for others.
    #[getter]
    fn extension(&self) -> &str {
        raw::extension_of(&self.raw)
    }
    /// Where to connect.
    #[getter]
    fn address(&self) -> &str {
        &self.raw.address
    }
    #[getter]
    fn method(&self) -> &str {
        self.raw.method()
    }
    #[getter]
    fn path(&self) -> &str {
        self.raw.path()
    }
    #[getter]
    fn authority(&self) -> &str {
        &self.raw.authority
    }
    #[getter]
    fn headers(&self) -> Vec<(&str, &str)> {
        self.raw.headers()
    }
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.raw.payload)
    }
    /// Seconds.
    #[getter]
    fn timeout(&self) -> f64 {
        self.raw.timeout as f64 / 1e9
    }
    /// Bytes of a response's body that are looked at; `None` = all.
    #[getter]
    fn body_limit(&self) -> Option<u64> {
        Some(self.raw.body_limit).filter(|limit| *limit != u64::MAX)
    }

    /// A result that the caller judged.
    fn result(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        // The first name is the engine's own judgement, which has methods of its own.
        let number = args::word(result, "result", &check_results::NAMES[1..])?;
        self.report(py, u32::from(number) + 1, &Outcome::default(), &[]).map(|_| ())
    }

    /// An answer over HTTP or gRPC, judged by the engine.
    #[pyo3(signature = (status, headers=None, body=None, *, grpc_status=None), text_signature = "($self, status, headers=None, body=b'', *, grpc_status=None)")]
    fn answer(
        &self,
        py: Python<'_>,
        status: &Bound<'_, PyAny>,
        headers: Option<&Bound<'_, PyAny>>,
        body: Option<&Bound<'_, PyAny>>,
        grpc_status: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let names = self.engine.get().wanted(py, self.raw.want.into())?;
        let block = match headers.filter(|headers| !headers.is_none()) {
            Some(headers) => headers::block(headers, &names)?,
            None => Vec::new(),
        };
        let outcome = Outcome {
            headers: &block,
            grpc_status: args::grpc_status(grpc_status.filter(|status| !status.is_none()))?,
            ..Outcome::status(args::status(status)?)
        };
        let body = body.map(|body| args::octets(body, "body")).transpose()?.unwrap_or_default();
        self.report(py, check_results::JUDGE, &outcome, &body).map(|_| ())
    }

    /// Everything that a TCP connection has brought so far. Whether that decides the check.
    fn data(&self, py: Python<'_>, received: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.report(py, check_results::JUDGE, &Outcome::default(), &args::octets(received, "received")?)
    }

    /// No (whole) answer: a failure's name, or the exception that the client raised.
    fn fail(&self, py: Python<'_>, failure: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut outcome = Outcome::failed(failure::REMOTE_RESET);
        if failure.is_instance_of::<PyString>() {
            outcome = Outcome::failed(failure_number(py, args::text(failure, "failure")?)?);
        } else if failure.is_instance_of::<PyBaseException>() {
            let (kind, _): (Bound<'_, PyAny>, String) =
                failures(py)?.getattr("classify")?.call1((failure,))?.extract()?;
            // What says nothing about the upstream says that there was no answer.
            if let Ok(name) = kind.cast::<PyString>()
                && name != "gone"
            {
                outcome = Outcome::failed(failure_number(py, name.to_str()?)?);
            }
        } else {
            return Err(PyTypeError::new_err("failure must be a failure's name or an exception"));
        }
        self.report(py, check_results::JUDGE, &outcome, &[]).map(|_| ())
    }

    fn __repr__(&self) -> String {
        let protocol = named(&check_protocol::NAMES, raw::protocol_of(&self.raw));
        format!("<Check {} {protocol} {} of {}>", self.raw.id, self.raw.address, self.raw.cluster)
    }
}

/// Seconds until checks are due, `None` when nothing is checked.
pub(crate) fn deadline(py: Python<'_>, engine: u64) -> PyResult<Option<f64>> {
    raw::checks_deadline(engine, NOW).map(crate::values::seconds).map_err(|error| cold(py, &error))
}

/// The ready-made loops.
pub(crate) fn loops<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyModule>> {
    static CHECKS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    module(py, &CHECKS, "nexthop._checks")
}
