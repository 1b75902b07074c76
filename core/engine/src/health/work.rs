//! The engine's side of active checks: what is due, what came back, what time alone does.

use super::board::{Applied, Handed, Pending};
use super::{CheckResult, WANTED, event, grpc, grpc_question, in_order};
use crate::clock::{Time, nanos};
use crate::engine::Core;
use crate::headers::HeaderView;
use crate::hosts::flag;
use crate::outcome::{Misuse, Outcome, failure, outcome_bits};
use crate::random::Random;
use crate::spec::{HealthCheckSpec, Probe};
use crate::stats::{ClusterCounters, Counter};
use crate::worker::Worker;
use std::sync::Arc;

/// A check to perform now, handed out once. When nobody reports it within its time, it has timed out.
#[derive(Clone, Debug)]
pub struct Check {
    /// Names it in [`Core::check_result`].
    pub id: u64,
    /// Slot of the host.
    pub host: u32,
    /// Version of what a face may show of that host.
    pub host_version: u32,
    /// Name of the host's cluster.
    pub cluster: Arc<str>,
    /// TLS towards the host.
    pub secure: bool,
    /// Where to connect: the host's address, with the port that the check wants.
    pub address: String,
    /// What the request is addressed to (HTTP and gRPC).
    pub authority: String,
    /// Bytes to send: a body, a framed gRPC message, or plain bytes.
    pub payload: Vec<u8>,
    /// Nanoseconds until an answer has to be there.
    pub timeout: u64,
    /// Number of the set of headers that [`CheckReport::Answer`] reads.
    pub want: u16,
    /// Bytes of a response's body that are looked at; read what comes behind them, too, and drop it.
    pub body_limit: u64,
    /// Method, path, headers, and whether the connection may be used again.
    pub spec: Arc<HealthCheckSpec>,
}

/// Who asks, as Envoy says it.
const USER_AGENT: (&str, &str) = ("user-agent", "Envoy/HC");

impl Check {
    /// Method of the request; empty unless HTTP or gRPC.
    pub fn method(&self) -> &str {
        match &self.spec.probe {
            Probe::Http(probe) => &probe.method,
            Probe::Grpc { .. } => "POST",
            _ => "",
        }
    }

    /// Path of the request, with its query; empty unless HTTP or gRPC.
    pub fn path(&self) -> &str {
        match &self.spec.probe {
            Probe::Http(probe) => &probe.path,
            Probe::Grpc { .. } => "/grpc.health.v1.Health/Check",
            _ => "",
        }
    }

    /// Whether it is asked over HTTP/2.
    pub fn is_http2(&self) -> bool {
        match &self.spec.probe {
            Probe::Http(probe) => probe.http2,
            Probe::Grpc { .. } => true,
            _ => false,
        }
    }

    /// Headers of the request besides its authority, in lower case.
    pub fn headers(&self) -> Vec<(&str, &str)> {
        match &self.spec.probe {
            Probe::Http(probe) => {
                let added = probe.headers_to_add.iter().map(|(name, value)| (&**name, &**value));
                let all = std::iter::once(USER_AGENT).chain(added);
                all.filter(|(name, _)| !probe.headers_to_remove.iter().any(|gone| gone == name)).collect()
            }
            Probe::Grpc { .. } => {
                vec![("content-type", "application/grpc"), ("te", "trailers"), USER_AGENT]
            }
            _ => Vec::new(),
        }
    }
}

/// What came of a check.
#[derive(Clone, Copy, Debug)]
pub enum CheckReport<'a> {
    /// Judged by whoever performed it.
    Result(CheckResult),
    /// An HTTP or gRPC answer, everything that has come over a TCP connection so far, or a failure in an
    /// [`Outcome`]: judged here. The header block is over [`WANTED`].
    Answer(&'a Outcome<'a>, &'a [u8]),
    /// Everything that has come over a TCP connection so far.
    Data(&'a [u8]),
}

impl Core {
    /// The checks that are due, each handed out once. The first call (of this or of [`Core::poll_check`]) begins
    /// active checking; before, hosts count as if no cluster had checks.
    pub fn checks(&self, worker: &mut Worker, now: Time) -> Vec<Check> {
        self.take_checks(worker, usize::MAX, now)
    }

    /// The next check that is due.
    pub fn poll_check(&self, worker: &mut Worker, now: Time) -> Option<Check> {
        self.take_checks(worker, 1, now).pop()
    }

    /// A check that could not be handed over is due again.
    pub fn put_back(&self, check: &Check, now: Time) {
        self.board.take_back(check.id, now);
    }

    fn take_checks(&self, worker: &mut Worker, most: usize, now: Time) -> Vec<Check> {
        if !self.is_checking() {
            self.begin_checks(now);
        }
        self.expire_checks(worker, now);
        let handed = self.board.take_due(now, &mut worker.random, most);
        let checks: Vec<Check> = handed.into_iter().filter_map(|handed| self.check_of(handed)).collect();
        self.due_by(self.board.end_of_time());
        checks
    }

    /// Whether a check of this number was ever handed out.
    pub fn knows_check(&self, id: u64) -> bool {
        !matches!(self.board.pending(id), Err(false))
    }

    /// When [`Core::checks`] has something to do next; [`Time::NEVER`] before its first call.
    pub fn checks_deadline(&self) -> Time {
        self.board.deadline()
    }

    fn check_of(&self, handed: Handed) -> Option<Check> {
        let Handed { id, slot, checkers, checker, endpoint } = handed;
        let (host_version, info) = self.hosts.info(slot)?;
        let spec = Arc::new(checkers[checker].clone());
        let own = info.address.rsplit_once(':').map_or(&*info.address, |(name, _)| name);
        let name = if endpoint.address.is_empty() { own } else { &*endpoint.address };
        // The endpoint's word on a port counts before the checker's.
        let port = match (endpoint.port, spec.alt_port) {
            (0, None) => info.port,
            (0, Some(port)) | (port, _) => port,
        };
        let address = if info.port == 0 { info.address.clone() } else { format!("{name}:{port}") };
        let named = |text: &str| match (&*endpoint.hostname, text) {
            ("", "") => info.cluster.to_string(),
            ("", text) => text.to_owned(),
            (hostname, _) => hostname.to_owned(),
        };
        let (authority, payload) = match &spec.probe {
            Probe::Http(probe) => (named(&probe.host), probe.send.clone()),
            Probe::Grpc { service, authority } => (named(authority), grpc_question(service)),
            Probe::Tcp { send, .. } => (String::new(), send.clone()),
            Probe::Custom { .. } => (String::new(), Vec::new()),
        };
        Some(Check {
            id,
            host: slot,
            host_version,
            cluster: Arc::clone(&info.cluster),
            secure: info.secure,
            want: self.wants.lock().intern(WANTED.map(str::to_owned).to_vec()).0,
            body_limit: body_limit(&spec.probe),
            address,
            authority,
            payload,
            timeout: nanos(spec.timeout),
            spec,
        })
    }

    /// What came of a check. `Ok(false)`: it is still out, since the data do not say yet, or the report was about
    /// data traffic ([`CheckResult::Passive`]). [`Misuse::Ended`]: it was reported, its time was over, or its host
    /// is gone; nothing has changed. [`Misuse::Invalid`]: no such check, or a report of another protocol.
    pub fn check_result(
        &self,
        worker: &mut Worker,
        id: u64,
        report: CheckReport<'_>,
        now: Time,
    ) -> Result<bool, Misuse> {
        self.expire_checks(worker, now);
        let pending =
            self.board.pending(id).map_err(|known| if known { Misuse::Ended } else { Misuse::Invalid })?;
        let (judged, status) = match report {
            CheckReport::Result(CheckResult::Passive) => {
                self.immediate_fail(pending.slot, now);
                return Ok(false);
            }
            CheckReport::Result(result) => ((result, false, false), 0),
            CheckReport::Data(data) => match &pending.checkers[pending.checker].probe {
                Probe::Tcp { receive, .. } if in_order(receive, data) => {
                    ((CheckResult::Success { degraded: false }, false, false), 0)
                }
                Probe::Tcp { .. } => return Ok(false),
                _ => return Err(Misuse::Invalid),
            },
            CheckReport::Answer(outcome, data) if pending.is_tcp() && !is_broken(outcome) => {
                return self.check_result(worker, id, CheckReport::Data(data), now);
            }
            CheckReport::Answer(outcome, body) => {
                let judged = self.judge(worker, &pending, outcome, body)?;
                (judged, if outcome.failure == failure::NONE { outcome.status } else { 0 })
            }
        };
        self.checked(worker, &pending, id, judged, status, now);
        Ok(true)
    }

    fn judge(
        &self,
        worker: &mut Worker,
        pending: &Pending,
        outcome: &Outcome<'_>,
        body: &[u8],
    ) -> Result<(CheckResult, bool, bool), Misuse> {
        let timed_out = matches!(
            outcome.failure,
            failure::TIMEOUT
                | failure::PER_TRY_TIMEOUT
                | failure::PER_TRY_IDLE_TIMEOUT
                | failure::GLOBAL_TIMEOUT
                | failure::CONNECT_TIMEOUT
        );
        if timed_out {
            return Ok((CheckResult::Timeout, false, false));
        }
        if is_broken(outcome) {
            return Ok((CheckResult::Network, false, false));
        }
        if !(100..=999).contains(&outcome.status) {
            return Err(Misuse::Invalid);
        }
        let names: Vec<Box<str>> = WANTED.map(Box::from).to_vec();
        let headers = HeaderView::new(&names, outcome.headers).ok_or(Misuse::Invalid)?;
        match (&pending.checkers[pending.checker].probe, &pending.rules) {
            (Probe::Http(probe), Some(rules)) => {
                let percent = self.current.lock().runtime.verify_cluster;
                let verify = percent >= 100 || (percent > 0 && worker.random.next_u64() % 100 < percent);
                let judged = rules.judge(probe, outcome.status, headers, body, verify);
                Ok((judged.result, judged.immediate, judged.verified))
            }
            (Probe::Grpc { .. }, _) => {
                let told = headers
                    .first("grpc-status")
                    .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
                let status = u8::try_from(outcome.grpc_status).ok().or(told);
                Ok((grpc(outcome.status, status, body), false, false))
            }
            _ => Err(Misuse::Invalid),
        }
    }

    fn checked(
        &self,
        worker: &mut Worker,
        pending: &Pending,
        id: u64,
        judged: (CheckResult, bool, bool),
        status: u16,
        now: Time,
    ) {
        let had_traffic = self.had_traffic(pending.cluster);
        let applied = self.board.finish(&self.hosts, id, judged, had_traffic, now, &mut worker.random);
        if let Some(applied) = applied {
            self.apply(&applied, status, now);
        }
        self.due_by(self.board.end_of_time());
    }

    /// A response to a request said `x-envoy-immediate-health-check-fail`: the host fails at once, if it is checked.
    /// Responses whose headers are reported with an attempt say so by themselves.
    pub fn immediate_fail(&self, host: u32, now: Time) {
        for applied in self.board.passive(&self.hosts, host) {
            self.apply(&applied, 0, now);
        }
    }

    fn apply(&self, applied: &Applied, status: u16, now: Time) {
        if let Some((_, info)) = self.hosts.info(applied.slot) {
            let unix = self.settings.unix_base.saturating_add(now.0);
            for line in event::lines(applied, &info, status, unix) {
                self.events.push(line);
            }
        }
        let (_, flags) = applied.flags;
        if flags & flag::PENDING_DYNAMIC_REMOVAL != 0 && flags & flag::FAILED_ACTIVE_HC != 0 {
            self.drop_kept(applied.cluster, applied.slot, now);
        } else if applied.changed {
            self.health_changed(applied.cluster, &[applied.slot], now);
        }
        if applied.result.passed() {
            self.uneject(applied, now);
        }
    }

    /// Every passed check is offered to outlier detection.
    fn uneject(&self, applied: &Applied, now: Time) {
        let snapshot = self.current.lock().clone();
        let Some(entry) = snapshot.clusters.get(applied.cluster as usize) else { return };
        let (Some(view), Some(rules)) = (&entry.view, &entry.outlier) else { return };
        let counters = ClusterCounters::default();
        let watch = crate::outlier::Watch {
            rules,
            detector: &entry.shared.detector,
            hosts: &self.hosts,
            counters: &counters,
            number_of_hosts: view.members.len() as u32,
        };
        let effects = watch.check_passed(applied.slot, now);
        self.outlier_effects(applied.cluster, &effects, now);
    }

    /// Whether the cluster has ever opened a connection for a request.
    fn had_traffic(&self, cluster: u32) -> bool {
        let snapshot = self.current.lock().clone();
        let entry = snapshot.clusters.get(cluster as usize);
        entry.is_some_and(|entry| entry.shared.total().get(Counter::CxTotal) > 0)
    }

    /// Checks whose time is over count as timed out.
    pub(crate) fn expire_checks(&self, worker: &mut Worker, now: Time) {
        for id in self.board.take_late(now) {
            if let Ok(pending) = self.board.pending(id) {
                self.checked(worker, &pending, id, (CheckResult::Timeout, false, false), 0, now);
            }
        }
    }
}

impl Pending {
    fn is_tcp(&self) -> bool {
        matches!(self.checkers[self.checker].probe, Probe::Tcp { .. })
    }
}

/// No answer, or not all of it.
fn is_broken(outcome: &Outcome<'_>) -> bool {
    outcome.failure != failure::NONE || outcome.bits & outcome_bits::CUT != 0
}

/// Longest answer of a gRPC check that is looked at: it has a few bytes.
const GRPC_ANSWER: u64 = 4096;

fn body_limit(probe: &Probe) -> u64 {
    match probe {
        Probe::Http(probe) if probe.receive.is_empty() => 0,
        Probe::Http(probe) if probe.response_buffer_size > 0 => probe.response_buffer_size,
        Probe::Http(_) | Probe::Tcp { .. } => u64::MAX,
        Probe::Grpc { .. } => GRPC_ANSWER,
        Probe::Custom { .. } => 0,
    }
}
