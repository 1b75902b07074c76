//! The engine as an object.

use crate::builder::Builder;
use crate::choice::{Choice, nanos};
use crate::raw::{
    self, Asked, Decision, Document, Error, Head, HostChange, HostInfo, Metric, Misuse, NEVER, Ready, Stat,
};
use crate::request::{Request, choice};
use crate::verdict::{Signals, explained};
use crate::wakers::Wakers;
use nexthop_engine::Time;
use nexthop_engine::outcome::{bits, finish, kind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The number of a cluster or route: valid and unique for the engine's life, also across removal and return.
/// 0 = match the route tables.
pub type Target = u32;

/// Where a host is found, and the version of what may be shown of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostRef {
    /// Slot.
    pub slot: u32,
    /// Moves when anything shown changes; 0 = any.
    pub version: u32,
}

/// Texts of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Text<'a> {
    /// Numbers under Envoy's names, a JSON object.
    Stats,
    /// The same for Prometheus.
    Prometheus,
    /// The same with kinds and attributes, a JSON array.
    Metrics,
    /// Fields that were read and do nothing, JSON.
    LoadReport,
    /// The load report field by field, JSON: used, absent and whose default acts, not used here and why.
    LoadReportWhole,
    /// Every number in force for a cluster (`NAME`) or route (`route:NAME`), and where it came from, JSON.
    Effective(&'a str),
    /// What would be decided for a head, given as a JSON object of its fields, and why, JSON. Decides and counts nothing.
    Explain(&'a str),
    /// Why the attempts of a request went where they went, JSON: one line, and the whole trail where its head asked for
    /// it ([`head_bits::EXPLAIN`](raw::head_bits)).
    ExplainAttempt(u64),
    /// What deserves a second look in the documents, for people.
    Lint,
    /// The same as JSON.
    LintJson,
    /// The same as SARIF 2.1.0.
    LintSarif,
    /// All hosts, or those of the named cluster, JSON.
    Hosts(&'a str),
    /// The host with this address, JSON.
    Host(&'a str),
}

/// Clusters, routes, what was learned about hosts, one clock. Share it by reference or [`Arc`]; every method may be
/// called from any thread. Dropping it ends all that is left of it.
pub struct Engine {
    id: u64,
    manual: bool,
    pub(crate) wakers: Wakers,
}

impl Engine {
    /// Documents and options of an engine to be.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// An engine from a document (YAML or JSON; Envoy's or the short form).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().file(path).build()
    }

    /// An engine from a document's text.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        Self::builder().text(text).build()
    }

    pub(crate) fn of(id: u64, manual: bool) -> Self {
        Self { id, manual, wakers: Wakers::default() }
    }

    /// The engine's handle, for [`raw`].
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the clock moves only by [`advance`](Self::advance).
    pub fn is_manual(&self) -> bool {
        self.manual
    }

    /// Replaces all documents, whole or not at all. Returns the epoch: how many updates were applied.
    pub fn update(&self, documents: &[Document<'_>]) -> Result<u64, Error> {
        let epoch = raw::update(self.id, documents)?;
        self.wakers.wake(self.id);
        Ok(epoch)
    }

    /// Re-reads the files that changed; whether anything did. Bad content is no error: the old documents go on
    /// serving, and an event tells.
    pub fn reload(&self) -> bool {
        let swapped = raw::reload(self.id).is_ok_and(|(swapped, _)| swapped);
        self.wakers.wake(self.id);
        swapped
    }

    /// Changes hosts of one cluster, whole or not at all. Returns the epoch.
    pub fn apply(&self, cluster: &str, changes: &[HostChange<'_>]) -> Result<u64, Error> {
        let epoch = raw::apply(self.id, cluster, changes)?;
        self.wakers.wake(self.id);
        Ok(epoch)
    }

    /// The number of a cluster (`"web"`) or route (`"route:NAME"`); the error names the nearest name. Keep it.
    pub fn resolve(&self, name: &str) -> Result<Target, Error> {
        raw::resolve(self.id, name)
    }

    /// A stateless attempt: the caller counts. `key` replaces the cluster's hash policies.
    pub fn pick(
        &self,
        target: Target,
        number: u32,
        key: Option<&[u8]>,
        now: Time,
    ) -> Result<Choice<&Self>, Misuse> {
        self.stateless(now, |local, out| raw::pick(local, self.id, target, number, key, now.0, out))
            .map_err(|misuse| explained(&Asked::pick(self.id, target, number), misuse))
    }

    /// A stateless attempt with a whole head; its `number` (from 1) and `tried` say what was before.
    pub fn pick_for(&self, head: &Head<'_>, now: Time) -> Result<Choice<&Self>, Misuse> {
        if head.number == 0 {
            return Err(explained(&Asked::pick(self.id, raw::NO_SUCH_TARGET, 0), Misuse::Invalid));
        }
        self.stateless(now, |local, out| raw::begin(local, self.id, head, now.0, out))
            .inspect_err(|misuse| raw::set_last_error(&raw::sentence_of_head(head, *misuse)))
    }

    fn stateless(
        &self,
        now: Time,
        ask: impl FnOnce(&mut raw::Local, &mut Decision) -> Result<(), Misuse>,
    ) -> Result<Choice<&Self>, Misuse> {
        let mut out = Decision::default();
        raw::with_local(|local| ask(local, &mut out))?;
        self.signal(out.bits);
        if out.kind == kind::WAIT {
            // Nobody holds the request: its place in the queue is given up.
            let verdict =
                raw::with_local(|local| raw::finish(local, out.request, finish::CLIENT_GONE, now.0));
            self.signal(verdict.bits.into());
        }
        Ok(choice(&self, &out))
    }

    /// A request. Its first choice is made right here, with the head at hand; `choose_host` hands it out.
    pub fn request(&self, head: &Head<'_>, now: Time) -> Request<&Self> {
        Request::begin(self, head, now)
    }

    /// The same, sharing the engine: for tasks that outlive the caller.
    pub fn request_arc(self: &Arc<Self>, head: &Head<'_>, now: Time) -> Request<Arc<Self>> {
        Request::begin(Arc::clone(self), head, now)
    }

    /// Requests whose wait is over, each handed out once. Those that a thread or a `Driver` waits for are not among
    /// them.
    pub fn take_ready(&self, out: &mut Vec<Ready>) {
        self.wakers.take(self.id, out);
    }

    /// When maintenance is due, counted from `now`; `None` = nothing is to be done. Calls past it run it.
    pub fn poll_deadline(&self, now: Time) -> Option<Duration> {
        match raw::poll_deadline(self.id, now.0) {
            Ok(span) if span != NEVER => Some(Duration::from_nanos(span)),
            _ => None,
        }
    }

    /// Runs due maintenance: sweeps, un-ejection, lost attempts. Servers with traffic need not call it.
    pub fn maintain(&self, now: Time) -> Signals {
        self.signal(raw::maintain(self.id, now.0).unwrap_or(0))
    }

    /// The oldest event, one JSON object.
    pub fn poll_event(&self) -> Option<String> {
        raw::poll_event(self.id).ok().flatten()
    }

    /// What is shown of a host.
    pub fn host(&self, host: HostRef) -> Option<Arc<HostInfo>> {
        raw::host(self.id, host.slot, host.version).ok().map(|(_, info)| info)
    }

    /// The names of a numbered set of wanted headers, in lower case; 0 = the request headers wanted now.
    pub fn wanted(&self, set: u32) -> Option<(u32, raw::WantedNames)> {
        raw::want(self.id, set).ok()
    }

    /// Visits every number under Envoy's name.
    pub fn stats(&self, visit: &mut dyn FnMut(&str, Stat)) {
        // The engine lives as long as this does.
        let _ = raw::stats(self.id, visit);
    }

    /// Visits every number with its kind and attributes, as OpenTelemetry and others want them.
    pub fn metrics(&self, visit: &mut dyn FnMut(&Metric<'_>)) {
        let _ = raw::metrics(self.id, visit);
    }

    /// A text.
    pub fn text(&self, what: Text<'_>) -> Result<String, Error> {
        let id;
        let (number, argument) = match what {
            Text::Stats => (1, ""),
            Text::Prometheus => (2, ""),
            Text::Metrics => (12, ""),
            Text::LoadReport => (4, ""),
            Text::LoadReportWhole => (4, "all"),
            Text::Effective(name) => (3, name),
            Text::Explain(head) => (8, head),
            Text::ExplainAttempt(attempt) => {
                id = attempt.to_string();
                (9, id.as_str())
            }
            Text::Lint => (5, ""),
            Text::LintJson => (6, ""),
            Text::LintSarif => (7, ""),
            Text::Hosts(cluster) => (10, cluster),
            Text::Host(address) => (11, address),
        };
        raw::text(self.id, number, argument)
    }

    /// What would be decided for a head, and why, as JSON (`docs/schemas/explain.json`). Decides and counts nothing.
    ///
    /// # Errors
    /// A head that no request could have.
    pub fn explain_head(&self, head: &Head<'_>) -> Result<String, Error> {
        raw::explain_head(self.id, head)
    }

    /// One line about an attempt or request, while it lives and until its slot is taken again.
    pub fn explain(&self, id: u64) -> Option<String> {
        let text = raw::text(self.id, 9, &id.to_string()).ok()?;
        let json: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(json.get("line")?.as_str()?.to_owned())
    }

    /// The engine's clock.
    pub fn now(&self) -> Time {
        Time(raw::now(self.id))
    }

    /// Moves a manual clock.
    pub fn advance(&self, span: Duration) -> Result<(), Error> {
        raw::advance(self.id, nanos(span))?;
        self.wakers.wake_all();
        Ok(())
    }

    /// Wakes whom a call's bits tell to wake.
    #[inline]
    pub(crate) fn signal(&self, signals: u16) -> Signals {
        if signals & bits::WAKE != 0 {
            self.wakers.wake(self.id);
        }
        Signals(signals)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Only this object frees the engine.
        let _ = raw::engine_free(self.id);
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("id", &self.id).finish_non_exhaustive()
    }
}
