//! What a request remembers of the gates it went through.

use super::control::is_success;
use super::{Entered, Gate, Kind};
use crate::clock::Time;
use crate::opt_in::OptCounter;
use crate::random::Random;
use std::mem::discriminant;
use std::sync::Arc;

/// The gates that a request passed.
#[derive(Default)]
pub(crate) struct Pass {
    /// Those that count it, and whether an admission control still waits for the outcome.
    gates: Vec<(Arc<Gate>, bool)>,
    since: Time,
    /// The answer is a gRPC one whose status has not come yet.
    awaits_status: bool,
    /// Gates in a dry run that would have refused.
    would: Vec<(&'static str, OptCounter)>,
    /// The request ended by itself, with an answer of an upstream or of ours.
    complete: bool,
}

impl Pass {
    /// Passes the gates of a route table and of a cluster, of which the cluster's replace the table's of their kind.
    /// `Err`: which one refused, by number and status; those before it know already.
    pub(super) fn through(
        table: &[Arc<Gate>],
        cluster: &[Arc<Gate>],
        now: Time,
        random: &mut dyn Random,
    ) -> (Self, Result<(), (u8, u16)>) {
        let mut pass = Self { since: now, ..Self::default() };
        let same = |a: &Arc<Gate>, b: &Arc<Gate>| discriminant(&a.kind) == discriminant(&b.kind);
        let first = table.iter().filter(|gate| !cluster.iter().any(|own| same(own, gate)));
        for gate in first.chain(cluster) {
            match gate.enter(now, random) {
                Entered::Passed(true) => pass.gates.push((Arc::clone(gate), gate.is_admission())),
                Entered::Passed(false) => {}
                Entered::Would => {
                    pass.would.push(gate.dry_run());
                    pass.gates.push((Arc::clone(gate), gate.is_admission()));
                }
                Entered::Refused(why, status) => return (pass, Err((why, status))),
            }
        }
        (pass, Ok(()))
    }

    /// What dry runs would have refused, once.
    pub(super) fn take_would(&mut self) -> Vec<(&'static str, OptCounter)> {
        std::mem::take(&mut self.would)
    }

    /// No gate counts this request.
    pub(super) fn is_empty(&self) -> bool {
        self.gates.is_empty()
    }

    /// The final answer's headers. `grpc`: its gRPC status; `is_grpc`: it has one, or will have in its trailers.
    pub(super) fn answered(&mut self, status: u16, grpc: Option<u8>, is_grpc: bool, now: Time) {
        if is_grpc && grpc.is_none() {
            self.awaits_status = true;
            return;
        }
        self.record(|spec| is_success(spec, status, grpc), now);
    }

    /// The answer is over, with what its trailers said. A gRPC answer without any status failed.
    pub(super) fn completed(&mut self, grpc: Option<u8>, now: Time) {
        if std::mem::take(&mut self.awaits_status) {
            self.record(|spec| grpc.is_some_and(|grpc| is_success(spec, 200, Some(grpc))), now);
        }
        self.complete = true;
    }

    fn record(&mut self, success: impl Fn(&crate::spec::AdmissionSpec) -> bool, now: Time) {
        for (gate, waits) in &mut self.gates {
            if std::mem::take(waits)
                && let Kind::Admission(spec, control) = &gate.kind
            {
                control.record(success(spec), now);
            }
        }
    }

    /// The request is done. Returns when a gate is due if that changed.
    pub(super) fn leave(self, now: Time, random: &mut dyn Random) -> Option<Time> {
        let since = self.complete.then_some(self.since);
        let mut due = None;
        for (gate, _) in &self.gates {
            if let Kind::Concurrency(_, gradient) = &gate.kind
                && gradient.leave(since, now, random)
            {
                due = Some(gradient.deadline().min(due.unwrap_or(Time::NEVER)));
            }
        }
        due
    }
}
