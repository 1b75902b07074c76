//! What outlier detection is told of an attempt (`spec/outlier-detection.md` section 4.3). Every attempt is told on
//! its own host, before the retry decision.
//!
//! Connections are the caller's: an attempt counts as connected unless its failure says otherwise, and the connection
//! is told together with the outcome.

use super::Walk;
use super::state::Attempt;
use crate::headers::HeaderView;
use crate::hosts::flag;
use crate::outcome::failure;
use crate::outlier::{Met, Rules, Told, Watch, connected, external, tell};

impl Walk<'_> {
    /// A final answer. `code`: its status, or what its gRPC status counts as. `good`: the host counts it as served.
    #[inline]
    pub(super) fn tell_answer(
        &mut self,
        attempt: &Attempt,
        status: u16,
        code: u16,
        grpc: bool,
        good: bool,
        headers: HeaderView<'_>,
    ) {
        let Some(rules) = self.snapshot.clusters[attempt.cluster as usize].outlier.as_deref() else { return };
        if !rules.plain {
            return self.tell_answer_fully(rules, attempt, status, code, grpc, good, headers);
        }
        let met = external(rules, &self.core.hosts, attempt.slot, code, good);
        if met != Met::NONE {
            self.fire(rules, attempt, met);
        }
    }

    /// A plain success of a host without failures, where what it did itself is counted apart.
    #[inline]
    pub(super) fn tell_connected(&self, attempt: &Attempt) {
        let rules = self.snapshot.clusters[attempt.cluster as usize].outlier.as_deref();
        if rules.is_some_and(|rules| rules.spec.split_external_local_origin_errors) {
            connected(&self.core.hosts, attempt.slot);
        }
    }

    /// Whether nothing in the headers of an answer speaks against its host.
    #[cold]
    pub(super) fn passes(
        &self,
        attempt: &Attempt,
        status: u16,
        code: u16,
        grpc: bool,
        headers: HeaderView<'_>,
    ) -> bool {
        let rules = self.snapshot.clusters[attempt.cluster as usize].outlier.as_deref();
        let code = match rules.and_then(|rules| rules.errors.as_ref()).filter(|_| !grpc) {
            Some(errors) => errors.code(status, headers),
            None => code,
        };
        let degraded = rules.is_some_and(|rules| rules.spec.detect_degraded_hosts)
            && headers.first("x-envoy-degraded").is_some();
        code < 500 && !degraded
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one answer")]
    #[inline(never)]
    fn tell_answer_fully(
        &mut self,
        rules: &Rules,
        attempt: &Attempt,
        status: u16,
        code: u16,
        grpc: bool,
        good: bool,
        headers: HeaderView<'_>,
    ) {
        let code = match &rules.errors {
            Some(errors) if !grpc => errors.code(status, headers),
            _ => code,
        };
        let told = if code >= 500 {
            Told::ExtFailed
        } else if rules.spec.detect_degraded_hosts && headers.first("x-envoy-degraded").is_some() {
            Told::ExtDegraded
        } else {
            Told::ExtSuccess
        };
        self.tell(rules, attempt, Told::LocalConnectSuccess, None, false);
        self.tell(rules, attempt, told, Some(code), good);
    }

    /// A failure, or a limit that ran out (`alternate`: which is answered 204). Overflow, and what ends a stream without anybody's fault, tell at most of
    /// the connection.
    #[inline(never)]
    pub(super) fn tell_failure(&mut self, attempt: &Attempt, kind: u8, alternate: bool) {
        use failure as f;
        self.measure_failure(attempt, kind);
        let Some(rules) = self.snapshot.clusters[attempt.cluster as usize].outlier.as_deref() else { return };
        let connect =
            matches!(kind, f::CONNECT_FAILURE | f::CONNECT_TIMEOUT | f::LOCAL_CONNECT_FAILURE | f::OVERFLOW);
        if !connect && !attempt.answered {
            self.tell(rules, attempt, Told::LocalConnectSuccess, None, false);
        }
        let told = match kind {
            f::OVERFLOW | f::MAX_STREAM_DURATION | f::NO_ERROR_RESET => return,
            // The limits of the whole request judge nobody once the answer has begun.
            f::GLOBAL_TIMEOUT | f::TIMEOUT if attempt.answered => return,
            f::PER_TRY_TIMEOUT | f::PER_TRY_IDLE_TIMEOUT | f::GLOBAL_TIMEOUT | f::TIMEOUT => {
                Told::LocalTimeout
            }
            _ => Told::LocalConnectFailed,
        };
        let code = if alternate && told == Told::LocalTimeout { Some(204) } else { None };
        self.tell(rules, attempt, told, code, false);
    }

    /// An attempt that nobody waits for any more had its connection all the same.
    pub(super) fn tell_cancelled(&mut self, attempt: &Attempt) {
        let Some(rules) = self.snapshot.clusters[attempt.cluster as usize].outlier.as_deref() else { return };
        if !attempt.answered {
            self.tell(rules, attempt, Told::LocalConnectSuccess, None, false);
        }
    }

    fn tell(&mut self, rules: &Rules, attempt: &Attempt, told: Told, code: Option<u16>, counted: bool) {
        let met = tell(rules, &self.core.hosts, attempt.slot, told, code, counted);
        if met != Met::NONE {
            self.fire(rules, attempt, met);
        }
    }

    #[cold]
    fn fire(&mut self, rules: &Rules, attempt: &Attempt, met: Met) {
        let entry = &self.snapshot.clusters[attempt.cluster as usize];
        let Some(view) = &entry.view else { return };
        if self.core.hosts.flags(attempt.slot) & flag::REMOVED != 0 {
            return;
        }
        let watch = Watch {
            rules,
            detector: &entry.shared.detector,
            hosts: &self.core.hosts,
            counters: &self.clusters[attempt.cluster as usize].counters,
            number_of_hosts: view.members.len() as u32,
        };
        let effects = watch.fire(met, attempt.slot, self.now, self.random);
        self.core.outlier_effects(attempt.cluster, &effects, self.now);
    }
}
