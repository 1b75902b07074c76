//! The raw layer: no handles, no objects, small numbers.

use crate::args;
use crate::engine::Engine;
use crate::error::{self, misuse};
use crate::head;
use nexthop::raw::{self, Asked, Call, Decision, NOW, bits, kind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Stateless choices for one cluster, with one open attempt at a time.
#[pyclass(frozen, module = "nexthop")]
pub(crate) struct Picker {
    engine: Py<Engine>,
    id: u64,
    target: u32,
    /// The open attempt, 0 when there is none. Plain loads and stores: a picker is one caller's, and exchanges
    /// would cost as much as a call.
    attempt: AtomicU64,
}

impl Picker {
    pub(crate) fn new(engine: Py<Engine>, target: u32) -> Self {
        let id = engine.get().id;
        Self { engine, id, target, attempt: AtomicU64::new(0) }
    }

    #[cold]
    fn busy(py: Python<'_>) -> PyErr {
        error::usage(py, raw::Misuse::State, "the last pick is still open; call complete first")
    }

    #[cold]
    fn idle(py: Python<'_>) -> PyErr {
        error::usage(py, raw::Misuse::Ended, "no pick is open; call pick first")
    }
}

impl Picker {
    /// A choice, also for a caller that pyo3 does not know to be attached.
    #[inline]
    pub(crate) fn choose(&self, py: Python<'_>, attempt: u32, key: Option<&[u8]>) -> PyResult<i32> {
        if self.attempt.load(Relaxed) != 0 {
            return Err(Self::busy(py));
        }
        let mut decision = Decision::default();
        let found =
            raw::with_local(|local| raw::pick(local, self.id, self.target, attempt, key, NOW, &mut decision));
        if found.is_ok() && decision.kind == kind::GO {
            self.attempt.store(decision.attempt, Relaxed);
            self.heed(decision.bits);
            return Ok(decision.host as i32);
        }
        Python::attach(|py| self.none(py, attempt, found, &decision))
    }

    /// There is no host, or not yet.
    #[cold]
    fn none(
        &self,
        py: Python<'_>,
        number: u32,
        found: Result<(), raw::Misuse>,
        decision: &Decision,
    ) -> PyResult<i32> {
        found.map_err(|error| misuse(py, &Asked::pick(self.id, self.target, number), error))?;
        self.heed(decision.bits);
        if decision.kind == kind::WAIT {
            // Nothing here can wait: the place in the queue is given back.
            raw::with_local(|local| raw::finish(local, decision.request, raw::finish::CLIENT_GONE, NOW));
            return Ok(-100 - i32::from(decision.refusal));
        }
        Ok(-1 - i32::from(decision.refusal))
    }

    /// The report of the open attempt.
    #[inline]
    pub(crate) fn report(&self, py: Python<'_>, status: u16) -> PyResult<u8> {
        let attempt = self.attempt.load(Relaxed);
        if attempt == 0 {
            return Err(Self::idle(py));
        }
        self.attempt.store(0, Relaxed);
        let verdict = raw::with_local(|local| raw::complete_status(local, attempt, status.into(), NOW));
        self.heed(verdict.bits.into());
        if verdict.code != 0 {
            return Err(self.refuse(py, attempt, status, verdict.code));
        }
        Ok(verdict.action)
    }

    #[inline]
    fn heed(&self, found: u16) {
        if found & (bits::WAKE | bits::WANT_CHANGED) != 0 {
            Python::attach(|py| self.engine.get().heed(py, found));
        }
    }
}

/// What users call is in `fast`; these take every shape.
#[pymethods]
impl Picker {
    #[pyo3(name = "_pick", signature = (attempt=None, key=None, /))]
    fn pick_any(
        &self,
        py: Python<'_>,
        attempt: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyBytes>>,
    ) -> PyResult<i32> {
        self.choose(py, head::attempt_number(attempt)?, key.map(|key| key.as_bytes()))
    }

    #[pyo3(name = "_complete", signature = (status=None, /))]
    fn complete_any(&self, py: Python<'_>, status: Option<&Bound<'_, PyAny>>) -> PyResult<u8> {
        if self.attempt.load(Relaxed) == 0 {
            return Err(Self::idle(py));
        }
        self.report(py, status.map_or(Ok(0), args::status)?)
    }
}

impl Picker {
    #[cold]
    fn refuse(&self, py: Python<'_>, attempt: u64, status: u16, code: i8) -> PyErr {
        let asked = Asked::with(Call::Complete, attempt, status.into());
        if code == raw::Misuse::Invalid as i8 {
            // Nothing changed: the attempt is still open.
            self.attempt.store(attempt, Relaxed);
            return misuse(py, &asked, raw::Misuse::Invalid);
        }
        let closed = code == raw::Misuse::Closed as i8;
        misuse(py, &asked, if closed { raw::Misuse::Closed } else { raw::Misuse::Ended })
    }
}

impl Drop for Picker {
    fn drop(&mut self) {
        let attempt = *self.attempt.get_mut();
        if attempt != 0 {
            let verdict = raw::with_local(|local| raw::cancel(local, attempt, NOW));
            if verdict.bits != 0 {
                Python::try_attach(|py| self.engine.get().heed(py, verdict.bits.into()));
            }
        }
    }
}
