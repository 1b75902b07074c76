//! Gates before the choice of a host: admission control and adaptive concurrency (`spec/breakers-and-health.md` parts
//! C and D). A request passes the gates of its route table and of the cluster it is sent to, once, before anything
//! is chosen; its final answer, not its attempts', is what they learn of.
//!
//! `control` is admission control, `gradient` adaptive concurrency over `samples`, `overlay` runtime values, `pass`
//! what a request remembers of the gates it went through, `walk` where requests meet them.

mod control;
mod gradient;
mod overlay;
mod pass;
mod samples;
mod walk;

#[cfg(test)]
mod tests;

pub(crate) use overlay::Overlay;
pub(crate) use pass::Pass;

use crate::clock::Time;
use crate::inspect::Stat;
use crate::opt_in::OptCounter;
use crate::outcome::refusal;
use crate::random::Random;
use crate::spec::{AdmissionSpec, ClusterSpec, ConcurrencySpec, GateSpec, RouteTableSpec, Specs};
use crate::sync::atomic::Ordering::Relaxed;
use control::Control;
use gradient::Gradient;
use std::sync::Arc;

/// Response headers that admission control reads to know gRPC.
pub(crate) const WANTED: [&str; 2] = ["content-type", "grpc-status"];

/// One controller and what it learned.
pub(crate) struct Gate {
    /// Before the names of its numbers.
    prefix: String,
    kind: Kind,
}

enum Kind {
    Admission(AdmissionSpec, Control),
    Concurrency(ConcurrencySpec, Gradient),
}

/// A gate, held over a fork.
pub(crate) struct Hold<'a> {
    _control: Option<control::Hold<'a>>,
    _gradient: Option<gradient::Hold<'a>>,
}

/// The answer of a gate.
pub(crate) enum Entered {
    /// Pass; whether it wants to hear how the request ends.
    Passed(bool),
    /// Pass, for it is in a dry run; it wants to hear the end.
    Would,
    /// No: a number of [`refusal`] and a status.
    Refused(u8, u16),
}

impl Gate {
    fn new(prefix: String, spec: &GateSpec, runtime: &Overlay<'_>, now: Time) -> Self {
        let kind = match spec {
            GateSpec::Admission(spec) => Kind::Admission(spec.clone(), Control::new(spec, runtime)),
            GateSpec::Concurrency(spec) => Kind::Concurrency(spec.clone(), Gradient::new(spec, runtime, now)),
        };
        Self { prefix, kind }
    }

    fn is(&self, prefix: &str, spec: &GateSpec) -> bool {
        self.prefix == prefix
            && match (&self.kind, spec) {
                (Kind::Admission(own, _), GateSpec::Admission(spec)) => own == spec,
                (Kind::Concurrency(own, _), GateSpec::Concurrency(spec)) => own == spec,
                _ => false,
            }
    }

    /// What a dry run of it is called, and counted by.
    fn dry_run(&self) -> (&'static str, OptCounter) {
        match &self.kind {
            Kind::Admission(..) => ("admission", OptCounter::AdmissionDryRun),
            Kind::Concurrency(..) => ("concurrency", OptCounter::ConcurrencyDryRun),
        }
    }

    fn is_admission(&self) -> bool {
        matches!(self.kind, Kind::Admission(..))
    }

    /// Whether latency is measured.
    pub(crate) fn measures(&self) -> bool {
        matches!(self.kind, Kind::Concurrency(..))
    }

    /// A request asks to pass.
    fn enter(&self, now: Time, random: &mut dyn Random) -> Entered {
        match &self.kind {
            Kind::Admission(spec, control) if spec.dry_run => {
                control.decide(now, random).map_or(Entered::Would, Entered::Passed)
            }
            Kind::Concurrency(spec, gradient) if spec.dry_run => match gradient.admit_anyway() {
                (_, false) => Entered::Would,
                (counts, true) => Entered::Passed(counts),
            },
            Kind::Admission(_, control) => match control.admit(now, random) {
                Some(counts) => Entered::Passed(counts),
                None => Entered::Refused(refusal::ADMISSION, 503),
            },
            Kind::Concurrency(spec, gradient) => match gradient.admit() {
                Some(counts) => Entered::Passed(counts),
                None => Entered::Refused(refusal::CONCURRENCY, spec.exceeded_status),
            },
        }
    }

    /// Runtime values changed.
    pub(crate) fn set_runtime(&self, runtime: &Overlay<'_>) {
        match &self.kind {
            Kind::Admission(spec, control) => control.set_runtime(spec, runtime),
            Kind::Concurrency(spec, gradient) => gradient.set_runtime(spec, runtime),
        }
    }

    /// When time alone does something to it.
    pub(crate) fn deadline(&self) -> Time {
        match &self.kind {
            Kind::Admission(..) => Time::NEVER,
            Kind::Concurrency(_, gradient) => gradient.deadline(),
        }
    }

    /// Runs what is due.
    pub(crate) fn tick(&self, now: Time) {
        if let Kind::Concurrency(_, gradient) = &self.kind {
            gradient.tick(now);
        }
    }

    pub(crate) fn hold(&self) -> Hold<'_> {
        match &self.kind {
            Kind::Admission(_, control) => Hold { _control: Some(control.hold()), _gradient: None },
            Kind::Concurrency(_, gradient) => Hold { _control: None, _gradient: Some(gradient.hold()) },
        }
    }

    /// In a forked child none of the parent's requests is under way.
    pub(crate) fn after_fork(&self) {
        if let Kind::Concurrency(_, gradient) = &self.kind {
            gradient.forget();
        }
    }

    /// Its numbers under Envoy's names.
    pub(crate) fn stats(&self, visit: &mut dyn FnMut(&str, Stat)) {
        let mut put = |leaf: &str, stat| visit(&format!("{}{leaf}", self.prefix), stat);
        match &self.kind {
            Kind::Admission(_, control) => {
                for (leaf, count) in [
                    ("rq_rejected", &control.rejected),
                    ("rq_success", &control.succeeded),
                    ("rq_failure", &control.failed),
                ] {
                    put(&format!("admission_control.{leaf}"), Stat::Counter(count.load(Relaxed)));
                }
            }
            Kind::Concurrency(_, gradient) => {
                let gauges = gradient.gauges();
                let mut put = |leaf: &str, stat| {
                    put(&format!("adaptive_concurrency.gradient_controller.{leaf}"), stat);
                };
                put("rq_blocked", Stat::Counter(gradient.blocked.load(Relaxed)));
                for (leaf, value) in [
                    ("concurrency_limit", u64::from(gradient.limit())),
                    ("gradient", gauges.gradient),
                    ("burst_queue_size", gauges.headroom),
                    ("min_rtt_calculation_active", u64::from(gauges.measuring)),
                    ("min_rtt_msecs", gauges.min_rtt_ms),
                    ("sample_rtt_msecs", gauges.sample_rtt_ms),
                    ("nexthop_rq_active", u64::from(gradient.under_way())),
                ] {
                    put(leaf, Stat::Gauge(value));
                }
            }
        }
    }
}

/// The gates of one set of documents, by table and by cluster in their order.
#[derive(Default)]
pub(crate) struct Gates {
    pub(crate) of_tables: Vec<Vec<Arc<Gate>>>,
    pub(crate) of_clusters: Vec<Vec<Arc<Gate>>>,
}

impl Gates {
    /// Those of `specs`. A gate whose settings stayed goes on with what it learned; runtime values reach it by
    /// [`Gate::set_runtime`].
    pub(crate) fn build(specs: &Specs, old: &[Arc<Gate>], now: Time) -> Self {
        let runtime = Overlay::new(&specs.runtime);
        let mut old: Vec<&Arc<Gate>> = old.iter().collect();
        let mut make = |prefix: &str, spec: &GateSpec| match old.iter().position(|gate| gate.is(prefix, spec))
        {
            Some(at) => Arc::clone(old.remove(at)),
            None => Arc::new(Gate::new(prefix.to_owned(), spec, &runtime, now)),
        };
        let of_table = |table: &RouteTableSpec, make: &mut dyn FnMut(&str, &GateSpec) -> Arc<Gate>| {
            let prefix = format!("http.{}.", table.stat_prefix);
            table.gates.iter().map(|spec| make(&prefix, spec)).collect()
        };
        let of_cluster = |cluster: &ClusterSpec, make: &mut dyn FnMut(&str, &GateSpec) -> Arc<Gate>| {
            let prefix = format!("cluster.{}.", cluster.name);
            let admission = cluster.admission.clone().map(GateSpec::Admission);
            let concurrency = cluster.concurrency.clone().map(GateSpec::Concurrency);
            admission.into_iter().chain(concurrency).map(|spec| make(&prefix, &spec)).collect()
        };
        let of_tables = specs.route_tables.iter().map(|table| of_table(table, &mut make)).collect();
        let of_clusters = specs.clusters.iter().map(|cluster| of_cluster(cluster, &mut make)).collect();
        Self { of_tables, of_clusters }
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Gate>> {
        self.of_tables.iter().chain(&self.of_clusters).flatten()
    }
}

/// Whether an answer of these gates has to be known as gRPC or not.
pub(crate) fn judge(gates: &[Arc<Gate>]) -> bool {
    gates.iter().any(|gate| gate.is_admission())
}
