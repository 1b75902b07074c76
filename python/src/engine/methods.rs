//! What users call on an engine. Cold calls let other threads run.

use super::{Engine, changes, documents, texts};
use crate::args::{self, text};
use crate::attempt::{Attempt, Origin};
use crate::check::{self, Check};
use crate::error::{self, cold, misuse};
use crate::fork::detached;
use crate::head::{self, OwnedHead};
use crate::picker::Picker;
use crate::request::{Request, Step};
use crate::values::Done;
use nexthop::raw::{self, Asked, Decision, Document, HostChange, NOW, Options, bits, host_op, kind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyModule, PyString, PyTuple, PyType};
use std::sync::Arc;

/// A loop of `nexthop._event_log`; every second when nothing else is said.
fn event_log<'py>(
    engine: &Bound<'py, Engine>,
    how: &str,
    sink: &Bound<'py, PyAny>,
    every: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    static LOGS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let py = engine.py();
    let module = error::module(py, &LOGS, "nexthop._event_log")?;
    match every {
        Some(every) => module.call_method1(how, (engine, sink, every)),
        None => module.call_method1(how, (engine, sink, 1.0)),
    }
}

impl Engine {
    fn made(py: Python<'_>, options: &Options, documents: &[Document<'_>]) -> PyResult<Self> {
        let id = detached(py, || raw::engine_new(options, documents)).map_err(|error| cold(py, &error))?;
        Ok(Self::with_id(py, id))
    }

    fn replace<'py>(&self, py: Python<'py>, documents: &[Document<'_>]) -> PyResult<Bound<'py, PyAny>> {
        detached(py, || raw::update(self.id, documents)).map_err(|error| cold(py, &error))?;
        crate::waiters::wake(py, self.id);
        texts::json(py, self.id, 4, "")
    }

    fn change(&self, py: Python<'_>, cluster: &str, changes: &[HostChange<'_>]) -> PyResult<u64> {
        let epoch =
            detached(py, || raw::apply(self.id, cluster, changes)).map_err(|error| cold(py, &error))?;
        crate::waiters::wake(py, self.id);
        Ok(epoch)
    }

    /// A stateless choice without a head.
    fn picked<'py>(
        slf: &Bound<'py, Self>,
        target: u32,
        number: u32,
        wait: Option<u64>,
    ) -> PyResult<Py<Attempt>> {
        let id = slf.get().id;
        let mut decision = Decision::default();
        let found = raw::with_local(|local| raw::pick(local, id, target, number, None, NOW, &mut decision));
        Self::after_pick(slf, target, number, found, &decision, wait)
    }

    /// The same, once, for a caller that pyo3 does not know to be attached.
    #[inline]
    pub(crate) fn choose_one(slf: &Bound<'_, Self>, target: u32) -> PyResult<Py<Attempt>> {
        let id = slf.get().id;
        let mut decision = Decision::default();
        let found = raw::with_local(|local| raw::pick(local, id, target, 1, None, NOW, &mut decision));
        if found.is_ok()
            && decision.kind == kind::GO
            && decision.bits & (bits::WAKE | bits::WANT_CHANGED) == 0
        {
            return Attempt::object(slf, &decision, Origin::Stateless(None));
        }
        Python::attach(|_| Self::after_pick(slf, target, 1, found, &decision, None))
    }

    fn after_pick(
        slf: &Bound<'_, Self>,
        target: u32,
        number: u32,
        found: Result<(), raw::Misuse>,
        decision: &Decision,
        wait: Option<u64>,
    ) -> PyResult<Py<Attempt>> {
        found.map_err(|error| misuse(slf.py(), &Asked::pick(slf.get().id, target, number), error))?;
        if decision.kind == kind::GO {
            slf.get().heed(slf.py(), decision.bits);
            return Attempt::object(slf, decision, Origin::Stateless(None));
        }
        Self::not_yet(slf, decision, Arc::new(OwnedHead::new(target)), wait)
    }

    /// A stateless choice with keywords.
    fn choose_with<'py>(
        slf: &Bound<'py, Self>,
        target: u32,
        given: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<Attempt>> {
        let py = slf.py();
        let engine = slf.get();
        let keywords = given.map_or_else(|| Ok(PyDict::new(py)), |given| given.copy())?;
        let take = |name: &str| -> PyResult<Option<Bound<'py, PyAny>>> {
            let value = keywords.get_item(name)?;
            if value.is_some() {
                keywords.del_item(name)?;
            }
            Ok(value.filter(|value| !value.is_none()))
        };
        let number = head::attempt_number(take("attempt")?.as_ref())?;
        let tried = take("tried")?;
        let wait = take("wait")?.map(|wait| args::seconds(&wait, "wait")).transpose()?;
        if keywords.is_empty() && tried.is_none() && target != head::UNKNOWN {
            return Self::picked(slf, target, number, wait);
        }
        let mut head = OwnedHead::read(engine, target, Some(&keywords))?;
        head.stateless(py, number, tried.as_ref())?;
        let mut decision = Decision::default();
        raw::with_local(|local| raw::begin(local, engine.id, &head.borrowed(), NOW, &mut decision))
            .map_err(|error| error::of_head(py, &head.borrowed(), error))?;
        let head = Arc::new(head);
        if decision.kind == kind::GO {
            engine.heed(py, decision.bits);
            return Attempt::object(slf, &decision, Origin::Stateless(Some(head)));
        }
        Self::not_yet(slf, &decision, head, wait)
    }

    /// A stateless choice that was not answered with a host.
    #[cold]
    fn not_yet<'py>(
        slf: &Bound<'py, Self>,
        decision: &Decision,
        head: Arc<OwnedHead>,
        wait: Option<u64>,
    ) -> PyResult<Py<Attempt>> {
        let py = slf.py();
        let engine = slf.get();
        engine.heed(py, decision.bits);
        if decision.kind == kind::WAIT {
            let request = Request::begun(slf.clone().unbind(), head, decision.request);
            let step = Step::Wait(crate::values::Wait::new(decision));
            return step.wait_for_host(&Bound::new(py, request)?, wait, false);
        }
        Err(PyErr::from_value(engine.refusal(py, decision, &head.missing)?.0))
    }
}

#[pymethods]
impl Engine {
    /// An engine from files; `reload` reads them again.
    #[classmethod]
    #[pyo3(signature = (*paths, **options))]
    fn from_file(
        cls: &Bound<'_, PyType>,
        paths: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (options, dialect, runtime) = documents::options(options)?;
        let paths = documents::paths(paths)?;
        Self::made(cls.py(), &options, &documents::files(&paths, &dialect, runtime.as_deref()))
    }

    /// An engine from texts.
    #[classmethod]
    #[pyo3(signature = (*documents, **options))]
    fn from_str(
        cls: &Bound<'_, PyType>,
        documents: Vec<Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (options, dialect, runtime) = documents::options(options)?;
        let given = documents::unpack(documents)?;
        let read = documents::documents(&given, &dialect, runtime.as_deref())?;
        Self::made(cls.py(), &options, &read)
    }

    /// Replaces all documents by these files, whole or not at all; the load report.
    #[pyo3(
        signature = (*paths, dialect=None, runtime=None),
        text_signature = "($self, *paths, dialect='', runtime=None)"
    )]
    fn update_file<'py>(
        &self,
        py: Python<'py>,
        paths: &Bound<'py, PyTuple>,
        dialect: Option<&Bound<'py, PyAny>>,
        runtime: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dialect = args::text_or_none(dialect, "dialect")?;
        let runtime = runtime.map(documents::runtime).transpose()?;
        self.replace(py, &documents::files(&documents::paths(paths)?, dialect, runtime.as_deref()))
    }

    /// Replaces all documents by these texts, whole or not at all; the load report.
    #[pyo3(
        signature = (*documents, dialect=None, runtime=None),
        text_signature = "($self, *documents, dialect='', runtime=None)"
    )]
    fn update_str<'py>(
        &self,
        py: Python<'py>,
        documents: Vec<Bound<'py, PyAny>>,
        dialect: Option<&Bound<'py, PyAny>>,
        runtime: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dialect = args::text_or_none(dialect, "dialect")?;
        let runtime = runtime.map(documents::runtime).transpose()?;
        let given = documents::unpack(documents)?;
        self.replace(py, &documents::documents(&given, dialect, runtime.as_deref())?)
    }

    /// Reads the engine's files again where they changed; whether anything was swapped. Bad content is an event.
    fn reload(&self, py: Python<'_>) -> PyResult<bool> {
        let (swapped, _) = detached(py, || raw::reload(self.id)).map_err(|error| cold(py, &error))?;
        crate::waiters::wake(py, self.id);
        Ok(swapped)
    }

    /// Replaces the hosts of a cluster: addresses, or mappings with an address and more. The new epoch.
    fn set_hosts(
        &self,
        py: Python<'_>,
        cluster: &Bound<'_, PyAny>,
        hosts: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let cluster = text(cluster, "cluster")?;
        let read = changes::changes(hosts, host_op::SET)?;
        if let Some(other) = read.iter().find(|change| change.op != host_op::SET) {
            let op = changes::OPS[usize::from(other.op)];
            return Err(error::invalid(py, &format!("op {op:?} among the hosts of set_hosts; use apply")));
        }
        if read.is_empty() {
            // A batch of no changes changes nothing; an assignment without endpoints takes every host away.
            let name = PyDict::new(py);
            name.set_item("cluster_name", cluster)?;
            let metadata = &*head::json(name.as_any(), "cluster")?;
            let all = HostChange { op: host_op::ENDPOINTS, metadata, ..HostChange::default() };
            return self.change(py, cluster, &[all]);
        }
        self.change(py, cluster, &read.iter().map(changes::Change::borrowed).collect::<Vec<_>>())
    }

    /// Changes hosts of a cluster, whole or not at all; each has an `op`: set, add, remove, change. The new epoch.
    fn apply(&self, py: Python<'_>, cluster: &Bound<'_, PyAny>, changes: &Bound<'_, PyAny>) -> PyResult<u64> {
        let cluster = text(cluster, "cluster")?;
        let read = changes::changes(changes, host_op::ADD)?;
        self.change(py, cluster, &read.iter().map(changes::Change::borrowed).collect::<Vec<_>>())
    }

    /// Endpoints for one cluster as Envoy sends them (a `ClusterLoadAssignment` with its `cluster_name`), or an instance
    /// list of Nacos, Spring, Consul, Eureka or Kubernetes; JSON or YAML. The new epoch.
    fn apply_endpoints(
        &self,
        py: Python<'_>,
        cluster: &Bound<'_, PyAny>,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let cluster = text(cluster, "cluster")?;
        let metadata = text(document, "document")?;
        self.change(py, cluster, &[HostChange { op: host_op::ENDPOINTS, metadata, ..HostChange::default() }])
    }

    /// Counters and gauges under Envoy's names.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        texts::json(py, self.id, 1, "")
    }

    /// The same with kinds and attributes, as OpenTelemetry and others want them.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        texts::json(py, self.id, 12, "")
    }

    /// The same as Prometheus reads it.
    fn prometheus(&self, py: Python<'_>) -> PyResult<String> {
        texts::read(py, self.id, 2, "")
    }

    /// What of the documents does nothing here; with `whole` every field: used, absent and whose default acts.
    #[pyo3(signature = (*, whole=false))]
    fn load_report<'py>(&self, py: Python<'py>, whole: bool) -> PyResult<Bound<'py, PyAny>> {
        texts::json(py, self.id, 4, if whole { "all" } else { "" })
    }

    /// Every number in force for a cluster (`name`) or route (`route:name`), and where it came from.
    fn effective<'py>(&self, py: Python<'py>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        texts::json(py, self.id, 3, text(name, "name")?)
    }

    /// What would be decided for a request, and why; decides and counts nothing. Takes the keywords of `request`, and
    /// `attempt` and `tried`.
    #[pyo3(
        signature = (cluster=None, *, attempt=None, tried=None, **head),
        text_signature = "($self, cluster=None, *, attempt=1, tried=(), **head)"
    )]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        cluster: Option<&Bound<'py, PyAny>>,
        attempt: Option<&Bound<'py, PyAny>>,
        tried: Option<&Bound<'py, PyAny>>,
        head: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let target = cluster.map_or(Ok(0), |name| text(name, "cluster").map(|name| self.target_of(name)))?;
        let mut head = OwnedHead::read(self, target, head)?;
        head.stateless(py, head::attempt_number(attempt)?, tried)?;
        let told = detached(py, || raw::explain_head(self.id, &head.borrowed()));
        texts::loads(py, &told.map_err(|error| cold(py, &error))?)
    }

    /// What deserves a second look in the documents.
    fn lint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        texts::json(py, self.id, 6, "")
    }

    /// The hosts of a cluster, or of all, with health and counts.
    #[pyo3(signature = (cluster=None), text_signature = "($self, cluster='')")]
    fn hosts<'py>(
        &self,
        py: Python<'py>,
        cluster: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        texts::json(py, self.id, 10, args::text_or_none(cluster, "cluster")?)
    }

    /// What happened since the last call, oldest first.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut events = Vec::new();
        while let Some(line) = raw::poll_event(self.id).map_err(|error| cold(py, &error))? {
            events.push(texts::loads(py, &line)?);
        }
        Ok(events)
    }

    /// The active checks that are due, each handed out once. The first call begins active checking.
    fn checks(slf: &Bound<'_, Self>) -> PyResult<Vec<Check>> {
        check::due(slf)
    }

    /// Seconds until checks are due; `None` when nothing is checked, or before the first `checks`.
    fn checks_deadline(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        check::deadline(py, self.id)
    }

    /// Performs active checks in the running asyncio loop until it is cancelled or the engine closed.
    #[pyo3(signature = (*, others=None, ssl=None))]
    fn run_checks<'py>(
        slf: &Bound<'py, Self>,
        others: Option<Bound<'py, PyAny>>,
        ssl: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check::loops(slf.py())?.getattr("run_checks")?.call1((slf, others, ssl))
    }

    /// The same in a daemon thread, which `close` of the answer ends.
    #[pyo3(signature = (*, others=None, ssl=None))]
    fn start_checks<'py>(
        slf: &Bound<'py, Self>,
        others: Option<Bound<'py, PyAny>>,
        ssl: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check::loops(slf.py())?.getattr("start_checks")?.call1((slf, others, ssl))
    }

    /// The oldest event as a line of JSON.
    fn _event(&self, py: Python<'_>) -> PyResult<Option<String>> {
        raw::poll_event(self.id).map_err(|error| cold(py, &error))
    }

    #[getter]
    fn _logs(&self, py: Python<'_>) -> Py<PyList> {
        self.logs.clone_ref(py)
    }

    /// A thread that hands each event to a sink.
    #[pyo3(signature = (sink, *, every=None), text_signature = "($self, sink, *, every=1.0)")]
    fn log_events<'py>(
        slf: &Bound<'py, Self>,
        sink: &Bound<'py, PyAny>,
        every: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        event_log(slf, "start", sink, every)
    }

    /// The same in a task.
    #[pyo3(signature = (sink, *, every=None), text_signature = "($self, sink, *, every=1.0)")]
    fn log_events_async<'py>(
        slf: &Bound<'py, Self>,
        sink: &Bound<'py, PyAny>,
        every: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        event_log(slf, "run", sink, every)
    }

    /// Runs due maintenance; seconds until it is due again, `None` when nothing is.
    fn maintain(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let bits = detached(py, || raw::maintain(self.id, NOW)).map_err(|error| cold(py, &error))?;
        self.heed(py, bits);
        let due = raw::poll_deadline(self.id, NOW).map_err(|error| cold(py, &error))?;
        Ok(crate::values::seconds(due))
    }

    /// Moves a manual clock.
    fn advance(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let ns = args::seconds(seconds, "seconds")?;
        raw::advance(self.id, ns).map_err(|error| match error {
            raw::Error::Misuse(raw::Misuse::State, _) => {
                let sentence = "only a manual clock can be moved; make the engine with clock=\"manual\"";
                error::usage(py, raw::Misuse::State, sentence)
            }
            raw::Error::Misuse(raw::Misuse::Invalid, _) => {
                error::invalid(py, "seconds would take the clock past its end, 292 years after its start")
            }
            error => cold(py, &error),
        })?;
        crate::waiters::wake_all(py);
        Ok(())
    }

    /// Counts applied updates.
    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u64> {
        raw::engine_info(self.id).map(|info| info.epoch).map_err(|error| cold(py, &error))
    }

    /// A request: nothing is decided before its first choice.
    #[pyo3(signature = (cluster=None, **head))]
    fn request(
        slf: &Bound<'_, Self>,
        cluster: Option<&Bound<'_, PyString>>,
        head: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Request> {
        let engine = slf.get();
        let target = cluster.map_or(Ok(0), |name| engine.target(name))?;
        let read = OwnedHead::read(engine, target, head)?;
        Ok(Request::new(slf.clone().unbind(), cluster.map(|name| name.clone().unbind()), read, 0))
    }

    /// A stateless attempt: its number is yours, and it waits only where the cluster says that it queues.
    #[pyo3(name = "_choose_host", signature = (cluster, **given))]
    fn choose_host<'py>(
        slf: &Bound<'py, Self>,
        cluster: &Bound<'py, PyString>,
        given: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<Attempt>> {
        let target = slf.get().target(cluster)?;
        match given {
            None if target != head::UNKNOWN => Self::picked(slf, target, 1, None),
            _ => Self::choose_with(slf, target, given),
        }
    }

    /// The raw layer: one open attempt, small numbers.
    fn picker(slf: &Bound<'_, Self>, cluster: &Bound<'_, PyString>) -> PyResult<Picker> {
        let py = slf.py();
        let target = slf.get().target(cluster)?;
        if target == head::UNKNOWN {
            return Err(error::usage(py, raw::Misuse::NotFound, &raw::last_error()));
        }
        Ok(Picker::new(slf.clone().unbind(), target))
    }

    /// Ends the engine: every request and attempt of it is over.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        // What their sinks say is in their `error`.
        for log in self.logs.bind(py).get_slice(0, self.logs.bind(py).len()) {
            log.call_method0("close")?;
        }
        let freed = detached(py, || raw::engine_free(self.id));
        crate::waiters::wake_all(py);
        match freed {
            Ok(()) | Err(raw::Error::Misuse(raw::Misuse::Closed, _)) => Ok(()),
            Err(error) => Err(cold(py, &error)),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exc))]
    fn __exit__(&self, py: Python<'_>, _exc: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __aenter__(slf: Py<Self>) -> Done {
        Done { value: slf.into_any() }
    }

    #[pyo3(signature = (*_exc))]
    fn __aexit__(&self, py: Python<'_>, _exc: &Bound<'_, PyAny>) -> PyResult<Done> {
        self.close(py)?;
        Ok(Done { value: py.None() })
    }

    fn __repr__(&self) -> String {
        match raw::engine_info(self.id) {
            Ok(info) => format!("<Engine epoch={} live_requests={}>", info.epoch, info.live_requests),
            Err(_) => "<Engine closed>".into(),
        }
    }
}
