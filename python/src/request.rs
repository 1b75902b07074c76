//! One downstream request, and the iteration over its attempts.

use crate::attempt::{Attempt, Origin};
use crate::engine::Engine;
use crate::error::{self, misuse, module};
use crate::head::OwnedHead;
use crate::values::{Done, LocalReply, Wait, seconds};
use crate::waiters;
use nexthop::raw::{self, Asked, Call, Decision, NOW, Verdict, action, kind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyString};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// In place of an id: closed before its first choice.
const CLOSED: u64 = u64::MAX;
/// Of a head: the upload runs; it cannot be sent again.
const STREAMING: u8 = 3;
const ONCE: u8 = 2;

/// One downstream request.
#[pyclass(frozen, weakref, module = "nexthop")]
pub(crate) struct Request {
    pub(crate) engine: Py<Engine>,
    name: Option<Py<PyString>>,
    pub(crate) head: Arc<OwnedHead>,
    /// 0 before the first choice.
    id: AtomicU64,
    /// The upload was over before the first choice.
    uploaded: AtomicBool,
    /// One thread begins.
    beginning: Mutex<()>,
    info: OnceLock<raw::RequestInfo>,
    reply: PyOnceLock<Py<LocalReply>>,
    /// A body has taken over; from then on closing leaves the attempt alone.
    pub(crate) handed: AtomicBool,
}

/// The number of a note's name.
pub(crate) fn note_number(py: Python<'_>, name: &str) -> PyResult<u32> {
    match raw::note::NAMES.iter().position(|known| *known == name) {
        Some(number) if number > 0 => Ok(number as u32),
        _ => {
            let names = raw::note::NAMES[1..].join(", ");
            Err(error::invalid(py, &format!("{name:?} is no note; the notes are {names}")))
        }
    }
}

/// What choosing answered.
pub(crate) enum Step {
    Go(Py<Attempt>),
    Wait(Wait),
    Refused(Py<PyAny>),
}

fn waiting<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyModule>> {
    static WAITING: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    module(py, &WAITING, "nexthop._waiting")
}

fn loops<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyModule>> {
    static LOOPS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    module(py, &LOOPS, "nexthop._loops")
}

impl Step {
    fn object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self {
            Self::Go(attempt) => attempt.into_any(),
            Self::Wait(wait) => Py::new(py, wait)?.into_any(),
            Self::Refused(value) => value,
        })
    }

    /// The attempt; waits in this thread when it must.
    pub(crate) fn wait_for_host(
        self,
        request: &Bound<'_, Request>,
        limit: Option<u64>,
        looped: bool,
    ) -> PyResult<Py<Attempt>> {
        let py = request.py();
        match self {
            Self::Go(attempt) => Ok(attempt),
            Self::Refused(value) => Err(PyErr::from_value(value.into_bound(py))),
            Self::Wait(wait) => {
                let limit = limit.and_then(seconds);
                let attempt = waiting(py)?.getattr("choose")?.call1((request, wait, limit, looped))?;
                Ok(attempt.cast_into::<Attempt>()?.unbind())
            }
        }
    }
}

impl Request {
    pub(crate) fn new(engine: Py<Engine>, name: Option<Py<PyString>>, head: OwnedHead, id: u64) -> Self {
        Self::of(engine, name, Arc::new(head), id)
    }

    /// A request that the engine knows already.
    pub(crate) fn begun(engine: Py<Engine>, head: Arc<OwnedHead>, id: u64) -> Self {
        Self::of(engine, None, head, id)
    }

    fn of(engine: Py<Engine>, name: Option<Py<PyString>>, head: Arc<OwnedHead>, id: u64) -> Self {
        Self {
            engine,
            name,
            head,
            id: AtomicU64::new(id),
            uploaded: AtomicBool::new(false),
            beginning: Mutex::new(()),
            info: OnceLock::new(),
            reply: PyOnceLock::new(),
            handed: AtomicBool::new(false),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id.load(Relaxed)
    }

    fn ask(&self, py: Python<'_>, out: &mut Decision) -> PyResult<()> {
        let engine = self.engine.get().id;
        if self.id() == 0 {
            let _one = self.beginning.lock().unwrap_or_else(PoisonError::into_inner);
            if self.id() == 0 {
                let mut head = self.head.borrowed();
                if head.body == STREAMING && self.uploaded.load(Relaxed) {
                    head.body = ONCE;
                }
                raw::with_local(|local| raw::begin(local, engine, &head, NOW, out))
                    .map_err(|error| error::of_head(py, &head, error))?;
                self.id.store(out.request, Relaxed);
                return Ok(());
            }
        }
        match self.id() {
            CLOSED => {
                Err(error::usage(py, raw::Misuse::Ended, "the request was closed before its first choice"))
            }
            id => raw::with_local(|local| raw::choose(local, id, NOW, out))
                .map_err(|error| misuse(py, &Asked::about(Call::Choose, id), error)),
        }
    }

    /// Asks the engine once.
    pub(crate) fn step(slf: &Bound<'_, Self>, looped: bool) -> PyResult<Step> {
        let py = slf.py();
        let request = slf.get();
        let mut decision = Decision::default();
        request.ask(py, &mut decision)?;
        let engine = request.engine.bind(py);
        engine.get().heed(py, decision.bits);
        match decision.kind {
            kind::GO => Attempt::object(engine, &decision, Origin::Request(slf.clone().unbind(), looped))
                .map(Step::Go),
            kind::WAIT => Ok(Step::Wait(Wait::new(&decision))),
            _ => {
                let (value, reply) = engine.get().refusal(py, &decision, &request.head.missing)?;
                let _ = request.reply.set(py, reply);
                waiters::wake_request(py, request.id());
                Ok(Step::Refused(value.unbind()))
            }
        }
    }

    /// A report of one of its attempts was answered: keeps the local reply while the engine has it, and tells
    /// whoever waits for this request's next attempt.
    pub(crate) fn reported(&self, py: Python<'_>, verdict: Verdict, failed: bool) -> PyResult<()> {
        if failed
            && verdict.action == action::FORWARD
            && let Ok(Some(reply)) = raw::reply(self.id())
        {
            let _ = self.reply.set(py, Py::new(py, LocalReply::new(reply))?);
        }
        waiters::wake_request(py, self.id());
        Ok(())
    }

    /// Ends the request as if its client had gone.
    pub(crate) fn abandon(&self, py: Python<'_>) {
        if self.handed.load(Relaxed) {
            return;
        }
        match self.id.compare_exchange(0, CLOSED, Relaxed, Relaxed) {
            Ok(_) | Err(CLOSED) => {}
            Err(id) => {
                let verdict = raw::with_local(|local| raw::finish(local, id, raw::finish::CLIENT_GONE, NOW));
                self.engine.get().heed(py, verdict.bits.into());
                waiters::wake_request(py, id);
            }
        }
    }

    /// What the request became; empty until it has begun.
    fn info(&self) -> Option<&raw::RequestInfo> {
        match self.id() {
            0 | CLOSED => None,
            id => match self.info.get() {
                Some(info) => Some(info),
                None => raw::request_info(id).ok().map(|info| self.info.get_or_init(|| info)),
            },
        }
    }

    fn tell(&self, py: Python<'_>, what: u32) -> PyResult<()> {
        match self.id() {
            0 | CLOSED => {
                Err(error::usage(py, raw::Misuse::State, "no attempt has begun yet; choose a host first"))
            }
            id => {
                let bits = raw::with_local(|local| raw::note(local, id, what, NOW))
                    .map_err(|error| misuse(py, &Asked::with(Call::Note, id, what), error))?;
                self.engine.get().heed(py, bits);
                Ok(())
            }
        }
    }

    pub(crate) fn idle_timeout(&self) -> Option<f64> {
        self.info().and_then(|info| seconds(info.idle_timeout))
    }
}

#[pymethods]
impl Request {
    /// The cluster; of a request that is matched by routes, empty before the first choice.
    #[getter]
    fn cluster<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        match (self.info(), &self.name) {
            (None, Some(name)) => name.bind(py).clone(),
            (info, _) => PyString::new(py, info.map_or("", |info| &info.cluster)),
        }
    }
    /// The matched route, once there is one.
    #[getter]
    fn route(&self) -> Option<&str> {
        self.info().map(|info| info.route.as_str()).filter(|route| !route.is_empty())
    }
    /// Seconds of the global limit.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.info().and_then(|info| seconds(info.timeout))
    }
    /// What to answer when the upstream could not.
    #[getter]
    fn reply(&self, py: Python<'_>) -> Option<Py<LocalReply>> {
        self.reply.get(py).map(|reply| reply.clone_ref(py))
    }

    /// The next attempt. Waits in this thread, at most `timeout` seconds (then `TimeoutError`; ask again).
    #[pyo3(signature = (timeout=None))]
    fn choose_host(slf: &Bound<'_, Self>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Py<Attempt>> {
        let limit = timeout.map(|timeout| crate::args::seconds(timeout, "timeout")).transpose()?;
        Self::step(slf, false)?.wait_for_host(slf, limit, false)
    }

    /// The next attempt, for asyncio and trio.
    fn choose_host_async<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        waiting(slf.py())?.getattr("choose_async")?.call1((slf,))
    }

    /// An attempt, a wait or a refusal; never waits, never raises these.
    fn try_choose_host(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::step(slf, false)?.object(slf.py())
    }

    fn _step(slf: &Bound<'_, Self>, looped: bool) -> PyResult<Py<PyAny>> {
        Self::step(slf, looped)?.object(slf.py())
    }

    /// Calls `waker` once when this request may go on.
    fn _on_ready(&self, waker: Py<PyAny>) {
        waiters::add(self.id(), waker);
    }

    fn _not_waiting(&self) {
        drop(waiters::remove(self.id()));
    }

    /// Calls `send` with each attempt until its answer is final. Never has two attempts in flight.
    fn run<'py>(slf: &Bound<'py, Self>, send: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        loops(slf.py())?.getattr("run")?.call1((slf, send))
    }

    /// The same for coroutine functions, with hedging: losers are cancelled.
    fn run_async<'py>(slf: &Bound<'py, Self>, send: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        loops(slf.py())?.getattr("run_async")?.call1((slf, send))
    }

    /// Headers to add to the answer for the client.
    fn response_headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let headers = PyDict::new(py);
        match self.id() {
            0 | CLOSED => {}
            id => {
                let found = raw::extra_headers(id).map_err(|error| error::cold(py, &error))?;
                for (name, value) in found {
                    headers.set_item(name, value.unwrap_or_default())?;
                }
            }
        }
        Ok(headers)
    }

    /// The upload is complete: time-outs begin (`body="streaming"`).
    fn body_complete(&self, py: Python<'_>) -> PyResult<()> {
        if self.id() == 0 {
            let _one = self.beginning.lock().unwrap_or_else(PoisonError::into_inner);
            if self.id() == 0 {
                self.uploaded.store(true, Relaxed);
                return Ok(());
            }
        }
        self.tell(py, raw::note::BODY_COMPLETE)
    }

    /// A fact between choices and reports, by its name. Nothing happens when the request has ended.
    fn note(&self, py: Python<'_>, what: &Bound<'_, PyAny>) -> PyResult<()> {
        self.tell(py, note_number(py, crate::args::text(what, "what")?)?)
    }

    /// Ends the request; attempts whose body has taken over go on.
    fn close(&self, py: Python<'_>) {
        self.abandon(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    #[pyo3(signature = (*_exc))]
    fn __exit__(&self, py: Python<'_>, _exc: &Bound<'_, PyAny>) {
        self.abandon(py);
    }
    fn __aenter__(slf: Py<Self>) -> Done {
        Done { value: slf.into_any() }
    }
    #[pyo3(signature = (*_exc))]
    fn __aexit__(&self, py: Python<'_>, _exc: &Bound<'_, PyAny>) -> Done {
        self.abandon(py);
        Done { value: py.None() }
    }
    fn __iter__(slf: Py<Self>) -> Attempts {
        Attempts { request: slf, last: Mutex::new(None) }
    }
    fn __aiter__(slf: Py<Self>) -> Attempts {
        Attempts { request: slf, last: Mutex::new(None) }
    }
    fn __repr__(&self, py: Python<'_>) -> String {
        let cluster = self.cluster(py);
        format!("<Request {cluster} {}>", if self.head.path.is_empty() { "/" } else { &self.head.path })
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // Attempts hold their request, so none of them is open any more.
        let id = *self.id.get_mut();
        if id != 0 && id != CLOSED {
            let verdict = raw::with_local(|local| raw::finish(local, id, raw::finish::CLIENT_GONE, NOW));
            if verdict.bits != 0 {
                Python::try_attach(|py| self.engine.get().heed(py, verdict.bits.into()));
            }
        }
    }
}

/// Walks over a request's attempts while the last one's verdict is retry.
#[pyclass(frozen, module = "nexthop")]
pub(crate) struct Attempts {
    request: Py<Request>,
    last: Mutex<Option<Py<Attempt>>>,
}

impl Attempts {
    /// Whether there is a next attempt; one left unreported is cancelled, one answered ends, and there is none.
    fn go_on(&self, py: Python<'_>) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(last) = last else { return true };
        let attempt = last.get();
        let more = matches!(attempt.verdict_raw().action, action::RETRY | action::DISCARD);
        if !more {
            attempt.left(py);
        }
        more
    }

    fn keep(&self, py: Python<'_>, attempt: &Py<Attempt>) {
        let old = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(attempt.clone_ref(py));
        drop(old);
    }
}

#[pymethods]
impl Attempts {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Attempt>>> {
        if !self.go_on(py) {
            return Ok(None);
        }
        let request = self.request.bind(py);
        let attempt = Request::step(request, true)?.wait_for_host(request, None, true)?;
        self.keep(py, &attempt);
        Ok(Some(attempt))
    }
    fn __anext__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let this = slf.get();
        if !this.go_on(py) {
            return Err(pyo3::exceptions::PyStopAsyncIteration::new_err(()));
        }
        match Request::step(this.request.bind(py), true)? {
            Step::Go(attempt) => {
                this.keep(py, &attempt);
                Ok(Py::new(py, Done { value: attempt.into_any() })?.into_any())
            }
            Step::Refused(value) => Err(PyErr::from_value(value.into_bound(py))),
            Step::Wait(wait) => {
                let next = waiting(py)?.getattr("next_async")?.call1((slf, &this.request, wait))?;
                Ok(next.unbind())
            }
        }
    }
    fn _keep(&self, attempt: &Bound<'_, Attempt>) {
        self.keep(attempt.py(), &attempt.clone().unbind());
    }
}
