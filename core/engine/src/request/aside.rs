//! What answers do to hosts beyond outlier detection: set aside until a time (`cool_down`), proved or not (`half_open`),
//! judged when the body is over (`outcome_at: end`).

use super::Walk;
use super::opt_in::would;
use super::state::{Attempt, State};
use crate::clock::{MILLI, nanos};
use crate::cluster::ClusterView;
use crate::events::Json;
use crate::headers::HeaderView;
use crate::opt_in::half_open::{self, Proved};
use crate::opt_in::{OptCounter, when};
use crate::outcome::{bits, failure};
use crate::spec::{HalfOpen, OutcomeAt};
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};

impl Walk<'_> {
    fn view_of(&self, attempt: &Attempt) -> Option<&ClusterView> {
        self.snapshot.clusters[attempt.cluster as usize].view.as_deref()
    }

    /// Nanoseconds since 1970.
    pub(super) fn unix(&self) -> u64 {
        self.core.settings.unix_base.saturating_add(self.now.0)
    }

    /// An answer of 400 or above: the host may have asked to be left alone. `code`: what its gRPC status counts as.
    pub(super) fn cool_down(&self, attempt: &Attempt, code: u16, headers: HeaderView<'_>) {
        let Some(cool) = self.view_of(attempt).and_then(|view| view.spec.options.cool_down.as_ref()) else {
            return;
        };
        if !cool.on.contains(&code) {
            return;
        }
        let unix = self.unix();
        let named = cool.from_headers.iter().find_map(|name| when::wait_of(name, headers.first(name)?, unix));
        let wait = named.unwrap_or_else(|| nanos(cool.default)).min(nanos(cool.max));
        self.set_aside(attempt, code, wait, cool.dry_run);
    }

    /// Nobody is sent to the host for so many nanoseconds. A shorter time changes nothing.
    pub(super) fn set_aside(&self, attempt: &Attempt, status: u16, wait: u64, dry_run: bool) {
        let until = self.now.plus(wait);
        let before = self.core.hosts.passive(attempt.slot).cool_until.fetch_max(until.0, AcqRel);
        if wait == 0 || before > self.now.0 {
            return;
        }
        let mine = &self.clusters[attempt.cluster as usize];
        let event = if dry_run {
            would("cool_down", &mine.shared.name)
        } else {
            mine.counters.count_opt(OptCounter::CoolDownSetAside);
            Json::new().text("type", "nexthop.cool_down").text("cluster_name", &mine.shared.name)
        };
        let event = event.text("upstream_url", &self.address(attempt)).raw("status", status);
        self.core.events.push(event.raw("for_ms", wait / MILLI).end());
    }

    /// Whether the host of a request that queued was set aside meanwhile.
    pub(super) fn is_set_aside(&self, attempt: &Attempt) -> bool {
        let steer = self.view_of(attempt).and_then(|view| view.steer);
        steer.is_some_and(|steer| steer.cools == Some(false))
            && self.now.0 < self.core.hosts.passive(attempt.slot).cool_until.load(Relaxed)
    }

    fn address(&self, attempt: &Attempt) -> String {
        self.core.hosts.info(attempt.slot).map_or_else(String::new, |(_, info)| info.address.clone())
    }

    /// A probe was answered, well or not; it is one no longer.
    #[cold]
    pub(super) fn probed(&self, attempt: &mut Attempt, good: bool) {
        attempt.bits &= !bits::PROBE;
        let half = self.view_of(attempt).and_then(|view| view.spec.options.half_open);
        let word = &self.core.hosts.passive(attempt.slot).half_open;
        let Some(HalfOpen { probes, interval, max_interval, dry_run }) = half else {
            half_open::close(word);
            return;
        };
        let mine = &self.clusters[attempt.cluster as usize];
        let tell = |state: &str, wait: Option<u64>| {
            let event = if dry_run {
                would("half_open", &mine.shared.name)
            } else {
                Json::new().text("type", "nexthop.half_open").text("cluster_name", &mine.shared.name)
            };
            let event = event.text("upstream_url", &self.address(attempt)).text("state", state);
            let event = wait.into_iter().fold(event, |event, wait| event.raw("next_probe_ms", wait / MILLI));
            self.core.events.push(event.end());
        };
        if good {
            if half_open::succeed(word, attempt.ticket, probes) == Proved::Closed {
                mine.counters.count_opt(OptCounter::HalfOpenClosed);
                tell("closed", None);
            }
        } else if let Some(wait) =
            half_open::fail(word, attempt.ticket, self.now, nanos(interval), nanos(max_interval))
        {
            mine.counters.count_opt(OptCounter::HalfOpenFailed);
            tell("half_open", Some(wait));
        }
    }

    /// An attempt failed without an answer: a probe that says something about its host has failed.
    pub(super) fn probe_failed(&self, attempt: &mut Attempt, kind: u8) {
        let nobodys =
            matches!(kind, failure::OVERFLOW | failure::MAX_STREAM_DURATION | failure::NO_ERROR_RESET);
        if attempt.bits & bits::PROBE != 0 && !nobodys {
            self.probed(attempt, false);
        }
    }

    /// An attempt that was never answered gives the place for its probe back.
    #[inline]
    pub(super) fn unprobed(&self, attempt: &Attempt) {
        if attempt.bits & bits::PROBE != 0 {
            self.give_probe_back(attempt);
        }
    }

    #[cold]
    fn give_probe_back(&self, attempt: &Attempt) {
        // A host that left may have given its slot to another one.
        if self.core.hosts.facts(attempt.slot).birth.load(Relaxed) == attempt.birth {
            half_open::give_back(&self.core.hosts.passive(attempt.slot).half_open, attempt.ticket);
        }
    }

    /// Whether answers of this cluster are judged when their body is over.
    #[inline]
    pub(super) fn judges_at_end(&self, attempt: &Attempt) -> bool {
        self.view_of(attempt).is_some_and(|view| view.spec.options.outcome_at == OutcomeAt::End)
    }

    /// The body of a good answer was cut short where that counts.
    #[cold]
    pub(super) fn cut_short(&self, attempt: &mut Attempt) {
        self.core.hosts.tally(attempt.slot).rq_error.fetch_add(1, Relaxed);
        self.clusters[attempt.cluster as usize].counters.count_opt(OptCounter::OutcomeCut);
        if attempt.bits & bits::PROBE != 0 {
            self.probed(attempt, false);
        }
    }

    /// The body of a good answer is whole. `grpc`: the status in its trailers, with the code that it counts as.
    #[cold]
    pub(super) fn whole(&mut self, st: &mut State, at: usize, grpc: Option<u16>) {
        let attempt = st.attempts[at];
        let code = grpc.unwrap_or(attempt.status);
        let good = code < 500;
        let tally = self.core.hosts.tally(attempt.slot);
        if good {
            tally.rq_success.fetch_add(1, Relaxed);
        } else {
            tally.rq_error.fetch_add(1, Relaxed);
        }
        // As judged by its headers: what a matcher of errors reads was read then.
        self.judge_answer(st, at, attempt.status, code, true, HeaderView::EMPTY);
    }
}
