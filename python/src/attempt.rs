//! One upstream try. The decision lives inside; a report crosses as one number when it can.

use crate::args;
use crate::engine::Engine;
use crate::error::{self, misuse, module};
use crate::head::OwnedHead;
use crate::host::Host;
use crate::once::once;
use crate::request::{Request, note_number};
use crate::values::{Done, Verdict, seconds};
use nexthop::raw::{self, Asked, Call, Decision, Misuse, NEVER, NOW, Outcome, action, bits, failure};
use pyo3::exceptions::{PyBaseException, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyMappingProxy, PyModule, PyString};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

/// Where an attempt came from.
pub(crate) enum Origin {
    /// A choice with an explicit number; its head when one was given.
    Stateless(Option<Arc<OwnedHead>>),
    /// A request; whether an iteration asked.
    Request(Py<Request>, bool),
}

const OPEN: u8 = 0;
const ANSWERED: u8 = 1;
const ENDED: u8 = 2;

/// The empty set of wanted headers.
const NOTHING: u16 = 1;

/// One upstream try: host, time-outs, and where to report.
#[pyclass(frozen, module = "nexthop")]
pub(crate) struct Attempt {
    #[pyo3(get)]
    host: Py<Host>,
    engine: Py<Engine>,
    origin: Origin,
    decision: Decision,
    state: AtomicU8,
    /// A body has taken over.
    handed: AtomicBool,
    /// The last verdict, in two words.
    verdict: [AtomicU64; 2],
    headers: PyOnceLock<Py<PyAny>>,
}

impl Attempt {
    #[inline]
    pub(crate) fn object(
        engine: &Bound<'_, Engine>,
        decision: &Decision,
        origin: Origin,
    ) -> PyResult<Py<Self>> {
        let py = engine.py();
        let host = match engine.get().host(py, decision.host, decision.host_version) {
            Ok(host) => host,
            Err(error) => {
                raw::with_local(|local| raw::cancel(local, decision.attempt, NOW));
                return Err(error);
            }
        };
        Py::new(
            py,
            Self {
                host,
                engine: engine.clone().unbind(),
                origin,
                decision: *decision,
                state: AtomicU8::new(OPEN),
                handed: AtomicBool::new(false),
                verdict: [AtomicU64::new(0), AtomicU64::new(0)],
                headers: PyOnceLock::new(),
            },
        )
    }

    fn request(&self) -> Option<&Request> {
        match &self.origin {
            Origin::Request(request, _) => Some(request.get()),
            Origin::Stateless(_) => None,
        }
    }

    fn head(&self) -> Option<&OwnedHead> {
        match &self.origin {
            Origin::Request(request, _) => Some(&request.get().head),
            Origin::Stateless(head) => head.as_deref(),
        }
    }

    /// Whether nothing has been reported.
    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Relaxed) == OPEN
    }

    pub(crate) fn verdict_raw(&self) -> raw::Verdict {
        let [first, second] = [self.verdict[0].load(Relaxed), self.verdict[1].load(Relaxed)];
        raw::Verdict {
            code: 0,
            action: (first >> 8) as u8,
            reason: (first >> 16) as u8,
            bits: (first >> 24) as u8,
            flags: (first >> 32) as u32,
            status: second as u16,
            reserved: 0,
            after_ms: (second >> 32) as u32,
        }
    }

    /// Books the answer of a report.
    #[inline]
    fn settle(
        &self,
        py: Python<'_>,
        call: Call,
        number: u16,
        verdict: raw::Verdict,
        next: u8,
    ) -> PyResult<Py<Verdict>> {
        if verdict.code != 0 {
            let asked = Asked::with(call, self.decision.attempt, number.into());
            return Err(self.refuse(py, &asked, verdict.code));
        }
        self.state.store(next, Relaxed);
        let first = u64::from(verdict.action) << 8
            | u64::from(verdict.reason) << 16
            | u64::from(verdict.bits) << 24
            | u64::from(verdict.flags) << 32;
        self.verdict[0].store(first, Relaxed);
        self.verdict[1].store(u64::from(verdict.status) | u64::from(verdict.after_ms) << 32, Relaxed);
        self.engine.get().heed(py, verdict.bits.into());
        if let Some(request) = self.request() {
            request.reported(py, verdict, call == Call::Fail)?;
        }
        Verdict::object(py, verdict)
    }

    /// A whole report of a status alone, for a caller that pyo3 does not know to be attached.
    #[inline]
    pub(crate) fn complete_status(&self, py: Python<'_>, status: u16) -> PyResult<Py<Verdict>> {
        let id = self.decision.attempt;
        let verdict = raw::with_local(|local| raw::complete_status(local, id, status.into(), NOW));
        if verdict.code == 0 && verdict.bits == 0 && matches!(self.origin, Origin::Stateless(_)) {
            return self.settle(py, Call::Complete, status, verdict, ENDED);
        }
        Python::attach(|py| self.settle(py, Call::Complete, status, verdict, ENDED))
    }

    #[cold]
    fn refuse(&self, py: Python<'_>, asked: &Asked, code: i8) -> PyErr {
        let kind = Misuse::from_code(code);
        if matches!(kind, Misuse::Ended | Misuse::Closed) {
            self.state.store(ENDED, Relaxed);
        }
        misuse(py, asked, kind)
    }

    /// An iteration has gone past it.
    pub(crate) fn left(&self, py: Python<'_>) {
        if self.handed.load(Relaxed) {
            return;
        }
        if self.state.load(Relaxed) == ANSWERED {
            let verdict = raw::with_local(|local| raw::end(local, self.decision.attempt, None, NOW));
            self.state.store(ENDED, Relaxed);
            self.engine.get().heed(py, verdict.bits.into());
        } else {
            self.release(py);
        }
    }

    fn block(&self, py: Python<'_>, headers: &Bound<'_, PyAny>, status: u16) -> PyResult<Vec<u8>> {
        let set = if status < 400 { self.decision.want_ok } else { self.decision.want_err };
        if set == NOTHING {
            return Ok(Vec::new());
        }
        crate::headers::block(headers, &self.engine.get().wanted(py, set.into())?)
    }

    /// Gives the attempt back without a report.
    pub(crate) fn release(&self, py: Python<'_>) {
        if self.state.swap(ENDED, Relaxed) != ENDED {
            let verdict = raw::with_local(|local| raw::cancel(local, self.decision.attempt, NOW));
            self.engine.get().heed(py, verdict.bits.into());
            if let Some(request) = self.request() {
                crate::waiters::wake_request(py, request.id());
            }
        }
    }

    fn fail_with(&self, py: Python<'_>, kind: u8, detail: &str) -> PyResult<Py<Verdict>> {
        let outcome = Outcome { detail: clipped(detail), ..Outcome::failed(kind) };
        let verdict = raw::with_local(|local| raw::fail_with(local, self.decision.attempt, &outcome, NOW));
        self.settle(py, Call::Fail, kind.into(), verdict, ENDED)
    }

    /// Reports what an exception says. Those that are not the upstream's fault cancel.
    fn fail_by(&self, error: &Bound<'_, PyAny>, detail: &str) -> PyResult<Py<Verdict>> {
        let py = error.py();
        let (kind, said): (Bound<'_, PyAny>, String) =
            failures(py)?.getattr("classify")?.call1((error,))?.extract()?;
        let detail = if detail.is_empty() { &said } else { detail };
        if let Ok(name) = kind.cast::<PyString>() {
            return match name.to_str()? {
                "gone" => {
                    match self.request().filter(|_| !self.handed.load(Relaxed)) {
                        Some(request) => request.abandon(py),
                        None => self.release(py),
                    }
                    self.state.store(ENDED, Relaxed);
                    Verdict::object(py, self.verdict_raw())
                }
                name => self.fail_with(py, failure_number(py, name)?, detail),
            };
        }
        if self.is_open() && !kind.is_none() {
            let outcome = Outcome { detail, ..Outcome::status(args::status(&kind)?) };
            let verdict = raw::with_local(|local| raw::complete(local, self.decision.attempt, &outcome, NOW));
            return self.settle(py, Call::Complete, outcome.status, verdict, ENDED);
        }
        self.release(py);
        Verdict::object(py, self.verdict_raw())
    }

    /// The end of a scope. Returns whether the exception goes no further.
    fn leave(&self, py: Python<'_>, error: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let state = self.state.load(Relaxed);
        if state == ENDED || self.handed.load(Relaxed) {
            return Ok(false);
        }
        let Some(error) = error else {
            if state == ANSWERED {
                self.end(py, None, None)?;
                return Ok(false);
            }
            self.release(py);
            return error::warn_unreported(py).map(|()| false);
        };
        match self.fail_by(error, "") {
            Ok(verdict) => {
                let looped = matches!(self.origin, Origin::Request(_, true));
                Ok(state == OPEN && looped && verdict.get().raw.action == action::RETRY)
            }
            // The user's own exception matters more than a report that came too late.
            Err(late) if late.is_instance_of::<pyo3::exceptions::PyRuntimeError>(py) => Ok(false),
            Err(other) => Err(other),
        }
    }
}

pub(crate) fn failures<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyModule>> {
    static FAILURES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    module(py, &FAILURES, "nexthop._failures")
}

fn bodies<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyModule>> {
    static BODIES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    module(py, &BODIES, "nexthop._bodies")
}

pub(crate) fn failure_number(py: Python<'_>, name: &str) -> PyResult<u8> {
    match failure::NAMES.iter().position(|known| *known == name) {
        Some(number) if number > 0 => Ok(number as u8),
        _ => {
            let names = failure::NAMES[1..].join(", ");
            Err(error::invalid(py, &format!("{name:?} is no failure; the failures are {names}")))
        }
    }
}

fn optional<'a, 'py>(value: Option<&'a Bound<'py, PyAny>>) -> Option<&'a Bound<'py, PyAny>> {
    value.filter(|value| !value.is_none())
}

#[pymethods]
impl Attempt {
    #[getter]
    fn number(&self) -> u32 {
        self.decision.number
    }
    /// The cluster that owns the host: of a composite, the sub-cluster.
    #[getter]
    fn cluster(&self) -> &str {
        &self.host.get().info.cluster
    }
    /// Seconds to the response headers; `None` = no limit.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        seconds(self.decision.try_timeout)
    }
    /// Seconds of the global limit, to the end of the body.
    #[getter]
    fn remaining(&self) -> Option<f64> {
        seconds(self.decision.remaining)
    }
    /// Seconds without a byte after which a try is over.
    #[getter]
    fn idle_timeout(&self) -> Option<f64> {
        match self.request() {
            Some(request) => request.idle_timeout(),
            None => raw::request_info(self.decision.request).ok().and_then(|info| seconds(info.idle_timeout)),
        }
    }
    /// Seconds after which to ask for another attempt although this one is in flight.
    #[getter]
    fn hedge_after(&self) -> Option<f64> {
        (self.decision.wait != NEVER).then(|| self.decision.wait as f64 / 1e9)
    }
    /// The last verdict; `None` while nothing is reported.
    #[getter]
    fn verdict(&self, py: Python<'_>) -> PyResult<Option<Py<Verdict>>> {
        let verdict = self.verdict_raw();
        (verdict.action != action::NONE).then(|| Verdict::object(py, verdict)).transpose()
    }
    /// Headers to add to the upstream request; `None` = remove. Read them while the attempt is open.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = once(py, &self.headers, || {
            let dict = PyDict::new(py);
            for (name, value) in self.extra(py)? {
                match name.as_str() {
                    ":path" => {}
                    ":authority" => dict.set_item("host", value)?,
                    _ => dict.set_item(name, value)?,
                }
            }
            Ok(PyMappingProxy::new(py, dict.as_mapping()).into_any().unbind())
        })?;
        Ok(made.bind(py).clone())
    }

    /// Where to send it. Without `path`, the request's own, rewritten as its route says.
    #[pyo3(signature = (path=None))]
    fn url(&self, py: Python<'_>, path: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let path = path.map(|path| args::text(path, "path")).transpose()?;
        let info = &self.host.get().info;
        if info.port == 0 {
            let sentence =
                format!("{} is a pipe, it has no URL; connect to host.address yourself", info.address);
            return Err(error::usage(py, Misuse::State, &sentence));
        }
        let rewritten = if path.is_none() && self.decision.bits & bits::REWRITE != 0 {
            self.extra(py)?.into_iter().find(|(name, _)| name == ":path").and_then(|(_, value)| value)
        } else {
            None
        };
        let own = self.head().map_or("", |head| head.path.as_str());
        let path = path.or(rewritten.as_deref()).unwrap_or(own);
        let (scheme, usual) = if info.secure { ("https", ":443") } else { ("http", ":80") };
        let authority = info.address.strip_suffix(usual).unwrap_or(&info.address);
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(format!("{scheme}://{authority}{slash}{path}"))
    }

    /// The whole report: answer and end at once. What users call is in `fast`.
    #[pyo3(name = "_complete", signature = (status=None, headers=None, *, grpc_status=None, latency=None, detail=None))]
    fn complete(
        &self,
        py: Python<'_>,
        status: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        grpc_status: Option<&Bound<'_, PyAny>>,
        latency: Option<&Bound<'_, PyAny>>,
        detail: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Verdict>> {
        let status = status.map_or(Ok(0), args::status)?;
        let id = self.decision.attempt;
        let bare = headers.is_none() && grpc_status.is_none() && latency.is_none() && detail.is_none();
        let verdict = if bare {
            raw::with_local(|local| raw::complete_status(local, id, status.into(), NOW))
        } else {
            let block = headers.map_or_else(|| Ok(Vec::new()), |headers| self.block(py, headers, status))?;
            let outcome = Outcome {
                headers: &block,
                grpc_status: args::grpc_status(grpc_status)?,
                latency: latency.map_or(Ok(0), |latency| args::seconds(latency, "latency"))?,
                detail: detail.map_or(Ok(""), |detail| args::text(detail, "detail").map(clipped))?,
                ..Outcome::status(status)
            };
            raw::with_local(|local| raw::complete(local, id, &outcome, NOW))
        };
        self.settle(py, Call::Complete, status, verdict, ENDED)
    }

    /// Response headers are there: retry, or pass the answer on?
    #[pyo3(signature = (status, headers=None, *, grpc_status=None, detail=None))]
    fn on_headers(
        &self,
        py: Python<'_>,
        status: &Bound<'_, PyAny>,
        headers: Option<&Bound<'_, PyAny>>,
        grpc_status: Option<&Bound<'_, PyAny>>,
        detail: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Verdict>> {
        let status = args::status(status)?;
        let block = headers.map_or_else(|| Ok(Vec::new()), |headers| self.block(py, headers, status))?;
        let outcome = Outcome {
            headers: &block,
            grpc_status: args::grpc_status(grpc_status)?,
            detail: detail.map_or(Ok(""), |detail| args::text(detail, "detail").map(clipped))?,
            ..Outcome::status(status)
        };
        let verdict = raw::with_local(|local| raw::headers(local, self.decision.attempt, &outcome, NOW));
        let next = match verdict.action {
            action::NONE => OPEN,
            action::FORWARD => ANSWERED,
            _ => ENDED,
        };
        self.settle(py, Call::Headers, status, verdict, next)
    }

    /// The stream of an answered attempt is over.
    #[pyo3(signature = (*, trailers=None, grpc_status=None))]
    fn end(
        &self,
        py: Python<'_>,
        trailers: Option<&Bound<'_, PyAny>>,
        grpc_status: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let block = trailers.map_or_else(|| Ok(Vec::new()), |trailers| self.block(py, trailers, 0))?;
        let outcome =
            Outcome { headers: &block, grpc_status: args::grpc_status(grpc_status)?, ..Outcome::default() };
        let given = (trailers.is_some() || grpc_status.is_some()).then_some(&outcome);
        let verdict = raw::with_local(|local| raw::end(local, self.decision.attempt, given, NOW));
        if verdict.code != 0 {
            return Err(self.refuse(py, &Asked::about(Call::End, self.decision.attempt), verdict.code));
        }
        self.state.store(ENDED, Relaxed);
        self.engine.get().heed(py, verdict.bits.into());
        Ok(())
    }

    /// The attempt failed: a failure's name, or the exception that the HTTP client raised.
    #[pyo3(signature = (failure, detail=None), text_signature = "($self, failure, detail='')")]
    fn fail(
        &self,
        py: Python<'_>,
        failure: &Bound<'_, PyAny>,
        detail: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Verdict>> {
        let detail = args::text_or_none(detail, "detail")?;
        if failure.is_instance_of::<PyString>() {
            let kind = failure_number(py, args::text(failure, "failure")?)?;
            return self.fail_with(py, kind, detail);
        }
        if failure.is_instance_of::<PyBaseException>() {
            return self.fail_by(failure, detail);
        }
        Err(PyTypeError::new_err("failure must be a failure's name or an exception"))
    }

    /// A fact before the report, by its name. Nothing happens when the attempt has ended.
    fn note(&self, py: Python<'_>, what: &Bound<'_, PyAny>) -> PyResult<()> {
        let what = note_number(py, args::text(what, "what")?)?;
        let bits = raw::with_local(|local| raw::note(local, self.decision.attempt, what, NOW))
            .map_err(|error| misuse(py, &Asked::with(Call::Note, self.decision.attempt, what), error))?;
        self.engine.get().heed(py, bits);
        Ok(())
    }

    /// Drops the attempt: no report to outlier detection, no retry. Harmless when it has ended.
    fn cancel(&self, py: Python<'_>) {
        self.release(py);
    }

    fn _is_open(&self) -> bool {
        self.is_open()
    }

    /// Hands the attempt over to its response stream: its end, error or early close is the report.
    #[pyo3(signature = (chunks, close=None))]
    fn body<'py>(
        slf: &Bound<'py, Self>,
        chunks: &Bound<'py, PyAny>,
        close: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.get().hand_over(slf.py())?;
        bodies(slf.py())?.getattr("stream")?.call1((slf, chunks, close))
    }

    /// The same for plain iterators.
    #[pyo3(signature = (chunks, close=None))]
    fn body_sync<'py>(
        slf: &Bound<'py, Self>,
        chunks: &Bound<'py, PyAny>,
        close: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.get().hand_over(slf.py())?;
        bodies(slf.py())?.getattr("stream_sync")?.call1((slf, chunks, close))
    }

    /// Why this host: one line always, the whole trail for a request with `explain=True`.
    fn explain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::engine::texts::json(py, self.engine.get().id, 9, &self.decision.attempt.to_string())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.leave(py, optional(Some(error)))
    }
    fn __aenter__(slf: Py<Self>) -> Done {
        Done { value: slf.into_any() }
    }
    fn __aexit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<Done> {
        let swallow = self.leave(py, optional(Some(error)))?;
        Ok(Done { value: swallow.into_pyobject(py)?.to_owned().into_any().unbind() })
    }
    fn __repr__(&self) -> String {
        let state = match self.state.load(Relaxed) {
            OPEN => "open",
            ANSWERED => "answered",
            _ => "ended",
        };
        format!("<Attempt {} to {} {state}>", self.decision.number, self.host.get().info.address)
    }
}

impl Attempt {
    fn extra(&self, py: Python<'_>) -> PyResult<Vec<(String, Option<String>)>> {
        if self.decision.bits & (bits::HEADERS | bits::REWRITE) == 0 {
            return Ok(Vec::new());
        }
        raw::extra_headers(self.decision.attempt).map_err(|error| error::cold(py, &error))
    }

    fn hand_over(&self, py: Python<'_>) -> PyResult<()> {
        match self.state.load(Relaxed) {
            ANSWERED => {
                self.handed.store(true, Relaxed);
                if let Some(request) = self.request() {
                    request.handed.store(true, Relaxed);
                }
                Ok(())
            }
            OPEN => {
                let sentence =
                    "the attempt has no response yet; report its headers before handing over the body";
                Err(error::usage(py, Misuse::State, sentence))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if *self.state.get_mut() != ENDED {
            let verdict = raw::with_local(|local| raw::cancel(local, self.decision.attempt, NOW));
            if verdict.bits != 0 {
                Python::try_attach(|py| self.engine.get().heed(py, verdict.bits.into()));
            }
        }
    }
}

/// At most 256 bytes of free text, whole characters.
fn clipped(detail: &str) -> &str {
    let end = detail.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= 256).last();
    &detail[..end.unwrap_or(0)]
}
