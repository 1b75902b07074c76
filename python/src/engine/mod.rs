//! The engine: what decisions need of it. What users call is in `methods`.

mod changes;
mod documents;
mod methods;
pub(crate) mod texts;

use crate::error;
use crate::head;
use crate::host::Host;
use crate::values::LocalReply;
use crate::waiters;
use nexthop::raw::{self, Decision, bits};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

type Names = Arc<[Box<str>]>;

/// Addresses of user space leave this many bits of a word.
const NUMBER_BITS: u32 = 16;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// Clusters, routes and everything learned about them.
#[pyclass(frozen, weakref, module = "nexthop")]
pub(crate) struct Engine {
    pub(crate) id: u64,
    /// Name to number, for names that resolved; numbers never change.
    targets: Py<PyDict>,
    /// The name asked for last and its number in one word; a name kept by `targets` never moves.
    last: AtomicU64,
    /// Slot to host, filled as hosts are used.
    hosts: Py<PyList>,
    /// Number of the present set of wanted request headers; 0 = ask.
    want: AtomicU32,
    /// Sets by number; they never change.
    sets: Mutex<Vec<Option<Names>>>,
    /// Event logs that run; closed with the engine.
    logs: Py<PyList>,
}

impl Engine {
    pub(crate) fn with_id(py: Python<'_>, id: u64) -> Self {
        Self {
            id,
            targets: PyDict::new(py).unbind(),
            last: AtomicU64::new(0),
            hosts: PyList::empty(py).unbind(),
            want: AtomicU32::new(0),
            sets: Mutex::default(),
            logs: PyList::empty(py).unbind(),
        }
    }

    /// The number of the name asked for last, when it is this very text.
    #[inline]
    pub(crate) fn last_target(&self, name: &Bound<'_, PyAny>) -> Option<u32> {
        let word = self.last.load(Relaxed);
        (word >> NUMBER_BITS == name.as_ptr() as u64).then_some((word & NUMBER_MASK) as u32)
    }

    /// The number of a cluster or route; `UNKNOWN` when no document names it.
    pub(crate) fn target(&self, name: &Bound<'_, PyString>) -> PyResult<u32> {
        let py = name.py();
        if let Some(number) = self.last_target(name) {
            return Ok(number);
        }
        if let Some(number) = self.targets.bind(py).get_item(name)? {
            return number.extract();
        }
        let number = self.target_of(crate::args::text(name, "a name")?);
        if number != head::UNKNOWN {
            self.targets.bind(py).set_item(name, number)?;
            let place = name.as_ptr() as u64;
            let fits = u64::from(number) <= NUMBER_MASK && place << NUMBER_BITS >> NUMBER_BITS == place;
            if fits && name.is_exact_instance_of::<PyString>() {
                self.last.store(place << NUMBER_BITS | u64::from(number), Relaxed);
            }
        }
        Ok(number)
    }

    /// The same for text.
    pub(crate) fn target_of(&self, name: &str) -> u32 {
        raw::resolve(self.id, name).unwrap_or(head::UNKNOWN)
    }

    /// The host of a decision: ours when its version is the same, else read anew.
    #[inline]
    pub(crate) fn host(&self, py: Python<'_>, slot: u32, version: u32) -> PyResult<Py<Host>> {
        let list = self.hosts.bind(py);
        if (slot as usize) < list.len() {
            let item = list.get_item(slot as usize)?;
            if let Ok(host) = item.cast_into_exact::<Host>()
                && host.get().version == version
            {
                return Ok(host.unbind());
            }
        }
        self.read_host(py, slot, version)
    }

    #[cold]
    fn read_host(&self, py: Python<'_>, slot: u32, version: u32) -> PyResult<Py<Host>> {
        let (version, info) = raw::host(self.id, slot, version).map_err(|error| error::cold(py, &error))?;
        let host = Py::new(py, Host::new(py, version, info))?;
        let list = self.hosts.bind(py);
        while list.len() <= slot as usize {
            list.append(py.None())?;
        }
        list.set_item(slot as usize, &host)?;
        Ok(host)
    }

    /// The names of a set.
    pub(crate) fn wanted(&self, py: Python<'_>, set: u32) -> PyResult<Names> {
        let sets = || self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(names)) = sets().get(set as usize) {
            return Ok(Arc::clone(names));
        }
        let (number, names) = raw::want(self.id, set).map_err(|error| error::cold(py, &error))?;
        let mut sets = sets();
        if sets.len() <= number as usize {
            sets.resize(number as usize + 1, None);
        }
        sets[number as usize] = Some(Arc::clone(&names));
        if set == 0 {
            self.want.store(number, Relaxed);
        }
        Ok(names)
    }

    /// The present set of wanted request headers.
    pub(crate) fn wanted_of_requests(&self, py: Python<'_>) -> PyResult<(u32, Names)> {
        let names = self.wanted(py, self.want.load(Relaxed))?;
        Ok((self.want.load(Relaxed), names))
    }

    /// What the bits of a decision or verdict ask of us.
    #[inline]
    pub(crate) fn heed(&self, py: Python<'_>, found: u16) {
        if found & (bits::WAKE | bits::WANT_CHANGED) != 0 {
            if found & bits::WANT_CHANGED != 0 {
                self.want.store(0, Relaxed);
            }
            if found & bits::WAKE != 0 {
                waiters::wake(py, self.id);
            }
        }
    }

    /// The value of a REFUSED decision.
    pub(crate) fn refusal<'py>(
        &self,
        py: Python<'py>,
        decision: &Decision,
        detail: &str,
    ) -> PyResult<(Bound<'py, PyAny>, Py<LocalReply>)> {
        let reply = match raw::reply(decision.request) {
            Ok(Some(reply)) => LocalReply::new(reply),
            _ => LocalReply::of(decision),
        };
        let reply = Py::new(py, reply)?;
        let host = match decision.host_version {
            0 => None,
            version => self.host(py, decision.host, version).ok().map(|host| host.into_bound(py).into_any()),
        };
        let value = error::refused(py, decision, reply.bind(py).as_any(), host, detail)?;
        Ok((value, reply))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Nobody holds an attempt or request of it any more; closing twice is harmless.
        let _ = raw::engine_free(self.id);
    }
}
