//! Questions about requests, hosts and numbers; none of them decides or counts anything.

use crate::breaker::{self, Members};
use crate::clock::Time;
use crate::engine::Core;
use crate::explain::Explanation;
use crate::hosts::{Health, HostInfo, flag};
use crate::ids::{GENERATIONS, Id, attempt_mark};
use crate::leads::Leads;
use crate::opt_in::half_open;
use crate::outcome::{LocalReply, Misuse, NEVER, bits, flags, refusal, resource};
use crate::outlier::Side;
use crate::policies::Policies;
use crate::request::{End, Phase, State};
use crate::retry;
use crate::stats::{COUNTERS, Counter};
use crate::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::fmt::Write;
use std::sync::Arc;

/// What faces may ask about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Cluster the route or caller named; empty when there is none.
    pub cluster: String,
    /// Matched route, `VHOST/NAME`; empty when the cluster was named.
    pub route: String,
    /// Nanoseconds of the global limit, NEVER when off.
    pub timeout: u64,
    /// Nanoseconds of the per-try idle limit, NEVER when off.
    pub idle_timeout: u64,
}

/// A number under Envoy's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    /// Only grows.
    Counter(u64),
    /// Present value.
    Gauge(u64),
}

/// A host as the operator's list shows it.
#[derive(Clone, Debug)]
pub struct HostState {
    /// Its slot.
    pub slot: u32,
    /// What faces show.
    pub info: Arc<HostInfo>,
    /// See [`flag`].
    pub flags: u32,
    /// Requests attached.
    pub active: u32,
    /// Good answers.
    pub rq_success: u64,
    /// Bad answers and failures.
    pub rq_error: u32,
    /// Time-outs.
    pub rq_timeout: u32,
    /// Success rates of the last interval in percent, -1 when there is none: of answers, and of this side.
    pub success_rate: [f64; 2],
    /// Set aside until then (`cool_down`).
    pub cool_until: Time,
    /// Back from an ejection with nothing proved (`half_open`).
    pub half_open: bool,
}

impl Core {
    /// The state of a request, also of one that is done while its slot was not taken again.
    fn with_state<R>(&self, id: u64, ask: impl FnOnce(&State, &Policies) -> R) -> Result<R, Misuse> {
        let id = Id::unpack(id);
        if id.engine != self.settings.index {
            return Err(Misuse::Invalid);
        }
        if self.slot_lost(id.slot) {
            return Err(Misuse::Ended);
        }
        let slot = self.slab.get(id.slot).ok_or(Misuse::Ended)?;
        let state = slot.state.lock().ok_or(Misuse::Ended)?;
        let done = state.phase == Phase::Done && (id.generation + 1) % GENERATIONS == slot.generation();
        if !done && (slot.generation() != id.generation || !state.phase.is_live()) {
            return Err(Misuse::Ended);
        }
        let present = Arc::clone(&self.current.lock().policies);
        let policies = if present.generation == state.policies {
            Some(present)
        } else {
            self.earlier_policies(state.policies)
        };
        let policies = policies.ok_or(Misuse::Ended)?;
        Ok(ask(&state, &policies))
    }

    fn cluster_name(&self, index: u32) -> String {
        let current = self.current.lock();
        current.clusters.get(index as usize).map_or_else(String::new, |entry| entry.shared.name.to_string())
    }

    /// What a request became.
    pub fn request_info(&self, request: u64) -> Result<RequestInfo, Misuse> {
        let (mut info, cluster) = self.with_state(request, |state, policies| {
            let unrouted = matches!(
                state.end,
                End::Refused(refusal::NO_ROUTE | refusal::NO_CLUSTER | refusal::DIRECT_RESPONSE)
            ) && state.number == 0;
            let policy = policies.list.get(state.policy as usize);
            let info = RequestInfo {
                cluster: String::new(),
                route: match policy {
                    Some(policy) if !matches!(state.end, End::Refused(refusal::NO_ROUTE)) => {
                        policy.name.clone()
                    }
                    _ => String::new(),
                },
                timeout: state.timeout,
                idle_timeout: policy.map_or(NEVER, |policy| policy.per_try_idle),
            };
            (info, (!unrouted).then_some(state.cluster))
        })?;
        if let Some(cluster) = cluster {
            info.cluster = self.cluster_name(cluster);
        }
        Ok(info)
    }

    /// The local reply of a request that was refused or failed for good; `None` while there is none.
    pub fn reply(&self, request: u64) -> Result<Option<LocalReply>, Misuse> {
        self.with_state(request, |state, policies| {
            let mut reply = match state.end {
                End::None => return None,
                End::Refused(refusal::DIRECT_RESPONSE) => {
                    let policy = policies.list.get(state.policy as usize);
                    match policy.map(|policy| &policy.leads) {
                        Some(Leads::Direct { status, body }) => {
                            let rare = state.rare.as_deref().filter(|_| state.has_rare);
                            let location = rare.and_then(|rare| rare.location.clone());
                            LocalReply {
                                status: *status,
                                flags: 0,
                                details: "direct_response".into(),
                                headers: location.map(|to| ("location".into(), to)).into_iter().collect(),
                                body: body.clone(),
                            }
                        }
                        _ => LocalReply { status: state.reply_status, ..LocalReply::default() },
                    }
                }
                End::Refused(why) => {
                    let mut reply = refused(why, state.reply_status, state.resource);
                    let rare = state.rare.as_deref().filter(|_| state.has_rare);
                    if let Some(rare) = rare.filter(|_| why == refusal::COOLING) {
                        let wait = rare.opted.cools_until.since(state.last);
                        reply.headers.push(("retry-after".into(), wait.div_ceil(1_000_000_000).to_string()));
                    }
                    reply
                }
                End::Failed(kind) => LocalReply {
                    status: state.reply_status,
                    details: retry::details(kind).into(),
                    body: retry::body(kind, state.is_retry),
                    headers: overloaded(kind == crate::outcome::failure::OVERFLOW),
                    flags: 0,
                },
            };
            reply.flags = state.flags;
            // Envoy's connection manager answers this one, which knows of no attempt.
            let over = state.has_rare && state.rare.as_deref().is_some_and(|rare| rare.route_over);
            if over {
                reply.details = "max_duration_timeout".into();
                reply.body = "downstream duration timeout".into();
            }
            let bad =
                state.rare.as_deref().filter(|_| state.has_rare).and_then(|rare| rare.bad_header.as_ref());
            if let Some((name, value)) = bad {
                reply.details.push_str(&format!("{{{name}}}"));
                reply.body = format!("invalid header '{name}' with value '{value}'");
            }
            if state.grpc {
                retry::speak_grpc(&mut reply, over);
            }
            if !reply.body.is_empty() && !reply.headers.iter().any(|(name, _)| name == "content-type") {
                reply.headers.push(("content-type".into(), "text/plain".into()));
            }
            let counted =
                !over && policies.list.get(state.policy as usize).is_some_and(|p| p.attempt_count_to_client);
            if counted && state.number > 0 {
                reply.headers.push(("x-envoy-attempt-count".into(), state.number.to_string()));
            }
            Some(reply)
        })
    }

    /// Headers to add to an attempt, or to the answer for the client (the request's own id); `None` = remove.
    pub fn extra_headers(&self, id: u64) -> Result<Vec<(String, Option<String>)>, Misuse> {
        let mark = Id::unpack(id).attempt;
        self.with_state(id, |state, policies| {
            let mut headers = Vec::new();
            let Some(policy) = policies.list.get(state.policy as usize) else { return headers };
            let rare = state.rare.as_deref().filter(|_| state.has_rare);
            let count = |number: u32| ("x-envoy-attempt-count".into(), Some(number.to_string()));
            if mark == 0 {
                if policy.attempt_count_to_client && state.number > 0 {
                    headers.push(count(state.number));
                }
                for cookie in rare.iter().flat_map(|rare| &rare.cookies) {
                    headers.push(("set-cookie".into(), Some(cookie.clone())));
                }
                if let Some(session) = rare.and_then(|rare| rare.session.as_ref()) {
                    let seconds = self.settings.unix_base.saturating_add(state.last.0) / 1_000_000_000;
                    let told = session.header(&self.hosts, seconds);
                    headers.extend(told.map(|(name, value)| (name, Some(value))));
                }
                return headers;
            }
            if policy.attempt_count_to_upstream {
                let number =
                    state.attempts.iter().find(|a| a.mark == mark).map_or(state.number, |a| a.number);
                headers.push(count(number));
            }
            let attempt_number =
                state.attempts.iter().find(|a| a.mark == mark).map_or(state.number, |a| a.number);
            if policy.timeout_retry_to_upstream && attempt_number > 1 {
                let value = state.timeout_retry.to_string();
                headers.push(("x-envoy-is-timeout-retry".into(), Some(value)));
            }
            let left =
                if state.deadline == Time::NEVER { state.timeout } else { state.deadline.since(state.last) };
            let hedges = rare.is_some_and(|rare| rare.hedge.is_some());
            let expected = retry::expected_ms(state.timeout, state.per_try, hedges, left);
            if policy.expects
                && let Some(expected) = expected
            {
                headers.push(("x-envoy-expected-rq-timeout-ms".into(), Some(expected.to_string())));
            }
            if let Some(expected) = expected.filter(|_| rare.is_some_and(|rare| rare.grpc_timeout)) {
                headers.push(("grpc-timeout".into(), Some(retry::grpc_timeout_text(expected))));
            }
            if let Some(limit) = rare.and_then(|rare| rare.grpc_stream) {
                headers.push(("grpc-timeout".into(), Some(retry::grpc_timeout_text(limit))));
            }
            for name in rare.iter().flat_map(|rare| &rare.consumed) {
                if !headers.iter().any(|(set, _)| set == name) {
                    headers.push(((*name).into(), None));
                }
            }
            if let Some(path) = rare.and_then(|rare| rare.path.clone()) {
                headers.push((":path".into(), Some(path)));
            }
            if let Some(authority) = rare.and_then(|rare| rare.authority.clone()) {
                headers.push((":authority".into(), Some(authority)));
            }
            headers
        })
    }

    /// The whole trail up to this attempt, or of a request, when its head asked for one; else nothing.
    pub fn explain_trail(&self, id: u64) -> Result<Vec<Explanation>, Misuse> {
        let mark = Id::unpack(id).attempt;
        self.with_state(id, |state, _| {
            let kept = state.rare.as_deref().filter(|_| state.has_rare).and_then(|rare| rare.trail.as_ref());
            let list = kept.map_or(&[][..], |trail| &trail.list);
            let upto = list.iter().rposition(|why| mark == 0 || attempt_mark(why.number) == mark);
            upto.map_or_else(Vec::new, |at| list[..=at].to_vec())
        })
    }

    /// One line about a decision, from what is kept anyway.
    pub fn explain(&self, id: u64) -> Result<String, Misuse> {
        let mark = Id::unpack(id).attempt;
        let (line, cluster) = self.with_state(id, |state, policies| {
            let retry = policies.list.get(state.policy as usize).map(|_| policies.retry(state));
            let mut line = String::new();
            match state.attempts.iter().find(|attempt| attempt.mark == mark || mark == 0) {
                Some(attempt) => {
                    let host = self.hosts.info(attempt.slot).map_or_else(String::new, |(_, info)| {
                        format!("{} of cluster {}", info.address, info.cluster)
                    });
                    let _ = write!(
                        line,
                        "attempt {} went to {host}, priority {}",
                        attempt.number, attempt.priority
                    );
                    for (bit, text) in [
                        (bits::PANIC, "the priority panics, so health was not looked at"),
                        (bits::DEGRADED, "a degraded host"),
                        (bits::FALLBACK, "an earlier sub-cluster had no host"),
                        (bits::RETRY, "a retry"),
                        (bits::PROBE, "a probe after an ejection"),
                        (bits::DRY_RUN, "a mechanism in dry run would have passed it over"),
                    ] {
                        if attempt.bits & bit != 0 {
                            let _ = write!(line, "; {text}");
                        }
                    }
                }
                None => {
                    let _ = write!(line, "attempts begun: {}", state.number);
                    if let End::Refused(why) = state.end {
                        let _ = write!(line, "; refused: {}", refusal::NAMES[usize::from(why)]);
                        if state.resource != resource::NONE {
                            let _ = write!(line, " ({})", resource::name(state.resource));
                        }
                    }
                }
            }
            if let Some(retry) = retry.filter(|_| state.retries) {
                let _ = write!(
                    line,
                    "; on failure: {} of {} retries left{}",
                    state.remaining,
                    retry.num_retries,
                    if retry.previous_hosts { ", avoiding tried hosts" } else { "" }
                );
            }
            if state.flags != 0 {
                let _ = write!(line, "; flags {}", flags::text(state.flags));
            }
            (line, state.cluster)
        })?;
        Ok(format!("cluster {}: {line}", self.cluster_name(cluster)))
    }

    /// Every number under Envoy's name, cluster by cluster in the order in which they appeared.
    pub fn stats(&self, visit: &mut dyn FnMut(&str, Stat)) {
        let snapshot = self.current.lock().clone();
        let mut name = String::new();
        for (number, entry) in (0..).zip(&snapshot.clusters) {
            let Some(view) = &entry.view else { continue };
            let mut put = |leaf: &str, stat: Stat| {
                name.clear();
                let _ = write!(name, "cluster.{}.{leaf}", entry.shared.name);
                visit(&name, stat);
            };
            let total = entry.shared.total();
            for counter in Counter::ALL.iter().take(COUNTERS) {
                put(counter.name(), Stat::Counter(total.get(*counter)));
            }
            total.statuses(&mut |status, retried, count| {
                let prefix = if retried { "retry." } else { "" };
                put(&format!("{prefix}upstream_rq_{status}"), Stat::Counter(count));
            });
            total.opted(&mut |counter, count| put(counter.name(), Stat::Counter(count)));
            if let Some(counts) = view.prepared.load_counts() {
                for (leaf, count) in counts.each() {
                    put(&format!("load_aware_locality.{leaf}_total"), Stat::Counter(count));
                }
            }
            let ledgers = &entry.shared.ledgers;
            let sum =
                |of: fn(&breaker::Ledger) -> u32| u64::from(of(&ledgers[0])) + u64::from(of(&ledgers[1]));
            let members = Members { hosts: &self.hosts, list: &view.members };
            let active = [0, 1].map(|p| ledgers[p].active(members, p));
            put("upstream_rq_active", Stat::Gauge(active.iter().map(|n| u64::from(*n)).sum()));
            put("upstream_rq_pending_active", Stat::Gauge(sum(|l| l.pending.load(Relaxed))));
            put("upstream_cx_active", Stat::Gauge(sum(|l| l.connections.load(Relaxed))));
            for (p, priority) in ["default", "high"].into_iter().enumerate() {
                let limits = &view.limits[p];
                let count = |count: &AtomicU32| count.load(Relaxed);
                let pools = {
                    let queues = entry.shared.queues.lock();
                    breaker::pools(&self.hosts, &view.members, &queues, p as u8)
                };
                let no_budget = limits.retry_budget.is_none();
                for (leaf, remaining, count, max) in [
                    (
                        "cx_open",
                        "remaining_cx",
                        count(&ledgers[p].connections).into(),
                        limits.max_connections.into(),
                    ),
                    (
                        "rq_pending_open",
                        "remaining_pending",
                        count(&ledgers[p].pending).into(),
                        limits.max_pending_requests.into(),
                    ),
                    ("rq_open", "remaining_rq", active[p].into(), limits.max_requests.into()),
                    (
                        "rq_retry_open",
                        "remaining_retries",
                        count(&ledgers[p].retries).into(),
                        limits.max_retries.into(),
                    ),
                    (
                        "cx_pool_open",
                        "remaining_cx_pools",
                        pools,
                        limits.max_connection_pools.unwrap_or(u64::MAX),
                    ),
                ] {
                    // Never taken = not open, even with a limit of 0.
                    let open = count >= max && count > 0;
                    put(&format!("circuit_breakers.{priority}.{leaf}"), Stat::Gauge(u64::from(open)));
                    if limits.track_remaining {
                        // Under a budget nothing can be told of retries.
                        let told = no_budget || leaf != "rq_retry_open";
                        let left = if told { u64::saturating_sub(max, count) } else { 0 };
                        put(&format!("circuit_breakers.{priority}.{remaining}"), Stat::Gauge(left));
                    }
                }
            }
            let count = |of: fn(&crate::sets::HostSet) -> usize| -> u64 {
                view.sets.iter().map(|set| of(set) as u64).sum()
            };
            put("membership_total", Stat::Gauge(count(|set| set.hosts.len())));
            put("membership_healthy", Stat::Gauge(count(|set| set.healthy.len())));
            put("membership_degraded", Stat::Gauge(count(|set| set.degraded.len())));
            for (stage, fallback, refused) in
                view.prepared.filters().into_iter().flat_map(|index| index.counts())
            {
                put(&format!("nexthop.filters.{stage}.fallback"), Stat::Counter(fallback));
                put(&format!("nexthop.filters.{stage}.refused"), Stat::Counter(refused));
            }
            if view.spec.protect_threshold.is_some() || view.told_protected {
                let active = view.protected || view.told_protected;
                put("nexthop.protection_active", Stat::Gauge(u64::from(active)));
            }
            if let Some(subsets) = view.prepared.subset_counts() {
                // Every balancer has its own: the engine's, and one for each worker.
                let balancers = entry.shared.counters.lock().workers.len() as u64 + 1;
                put("lb_subsets_active", Stat::Gauge(subsets.active * balancers));
                put("lb_subsets_single_host_per_subset_duplicate", Stat::Gauge(subsets.duplicates));
            }
            put("membership_excluded", Stat::Gauge(count(|set| set.excluded as usize)));
            let (counts, found) = (self.board.counts(number), self.board.found(number));
            let several = counts.len() > 1;
            for ((name, counts), (healthy, degraded)) in counts.iter().zip(&found) {
                let own = if name.is_empty() { String::new() } else { format!("name.{name}.") };
                for (leaf, count) in [
                    ("attempt", counts.attempt),
                    ("success", counts.success),
                    ("failure", counts.failure),
                    ("network_failure", counts.network_failure),
                    ("passive_failure", counts.passive_failure),
                    ("verify_cluster", counts.verify_cluster),
                ] {
                    put(&format!("health_check.{own}{leaf}"), Stat::Counter(count));
                }
                put(&format!("health_check.{own}healthy"), Stat::Gauge(*healthy));
                put(&format!("health_check.{own}degraded"), Stat::Gauge(*degraded));
            }
            if several {
                let with = |bit: u32, wanted: bool| {
                    let hosts = view.members.iter().filter(|member| self.board.knows(member.slot));
                    hosts.filter(|member| (self.hosts.flags(member.slot) & bit != 0) == wanted).count() as u64
                };
                put("health_check.healthy", Stat::Gauge(with(flag::FAILED_ACTIVE_HC, false)));
                put("health_check.degraded", Stat::Gauge(with(flag::DEGRADED_ACTIVE_HC, true)));
            }
            if view.spec.outlier.is_some() {
                let active = u64::from(entry.shared.detector.ejections_active());
                put("outlier_detection.ejections_active", Stat::Gauge(active));
            }
        }
        let gates = self.gates.lock().clone();
        for gate in &*gates {
            gate.stats(visit);
        }
    }

    /// The hosts of a cluster (of all clusters when `cluster` is empty), in their order.
    pub fn host_states(&self, cluster: &str) -> Vec<HostState> {
        let snapshot = self.current.lock().clone();
        let entries = snapshot.clusters.iter().filter(|e| cluster.is_empty() || *e.shared.name == *cluster);
        let members = entries.filter_map(|entry| Some((&entry.shared.detector, entry.view.as_ref()?)));
        members
            .flat_map(|(detector, view)| view.members.iter().map(move |member| (detector, member)))
            .filter_map(|(detector, member)| {
                let (_, info) = self.hosts.info(member.slot)?;
                let tally = self.hosts.tally(member.slot);
                Some(HostState {
                    slot: member.slot,
                    info,
                    flags: self.hosts.flags(member.slot),
                    active: self.hosts.load(member.slot).active(),
                    rq_success: self.hosts.rq_success(member.slot),
                    rq_error: tally.rq_error.load(Relaxed),
                    rq_timeout: tally.rq_timeout.load(Relaxed),
                    success_rate: [Side::External, Side::Local]
                        .map(|side| detector.success_rate(member.slot, side).unwrap_or(-1.0)),
                    cool_until: Time(self.hosts.passive(member.slot).cool_until.load(Relaxed)),
                    half_open: half_open::is_open(&self.hosts.passive(member.slot).half_open),
                })
            })
            .collect()
    }
}

impl HostState {
    /// Envoy's coarse health.
    pub fn health(&self) -> Health {
        flag::health(self.flags)
    }

    /// Envoy's admin text: `healthy`, or the flags in a row.
    pub fn health_flags(&self) -> String {
        flag_names(self.flags)
    }
}

/// Envoy's admin text of health flags: `healthy`, or the flags in a row.
pub(crate) fn flag_names(flags: u32) -> String {
    const NAMES: [(u32, &str); 11] = [
        (flag::FAILED_ACTIVE_HC, "/failed_active_hc"),
        (flag::FAILED_OUTLIER_CHECK, "/failed_outlier_check"),
        (flag::FAILED_EDS_HEALTH, "/failed_eds_health"),
        (flag::DEGRADED_ACTIVE_HC, "/degraded_active_hc"),
        (flag::DEGRADED_EDS_HEALTH, "/degraded_eds_health"),
        (flag::PENDING_DYNAMIC_REMOVAL, "/pending_dynamic_removal"),
        (flag::PENDING_ACTIVE_HC, "/pending_active_hc"),
        (flag::EXCLUDED_VIA_IMMEDIATE_HC_FAIL, "/excluded_via_immediate_hc_fail"),
        (flag::ACTIVE_HC_TIMEOUT, "/active_hc_timeout"),
        (flag::EDS_STATUS_DRAINING, "/eds_status_draining"),
        (flag::DEGRADED_OUTLIER_DETECTION, "/degraded_outlier_detection"),
    ];
    let text: String = NAMES.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect();
    if text.is_empty() { "healthy".into() } else { text }
}

/// Envoy's response code details of a refusal; empty for unknown numbers.
pub const fn refusal_details(why: u8) -> &'static str {
    match why {
        refusal::NO_HEALTHY_UPSTREAM => "no_healthy_upstream",
        refusal::OVERFLOW => "upstream_reset_before_response_started{overflow}",
        refusal::TIMEOUT => "response_timeout",
        refusal::NO_ROUTE => "route_not_found",
        refusal::NO_CLUSTER => "cluster_not_found",
        refusal::DROP_OVERLOAD => "drop_overload",
        refusal::UNCONDITIONAL_DROP_OVERLOAD => "unconditional_drop_overload",
        refusal::MAINTENANCE => "maintenance_mode",
        refusal::INVALID_HEADERS => "request_headers_failed_strict_check",
        refusal::DIRECT_RESPONSE => "direct_response",
        refusal::ADMISSION => "denied_by_admission_control",
        refusal::CONCURRENCY => "reached_concurrency_limit",
        refusal::BODY_TOO_LARGE => "request_payload_exceeded_retry_buffer_limit",
        _ => "",
    }
}

/// Envoy's body of a refusal.
pub const fn refusal_body(why: u8) -> &'static str {
    match why {
        refusal::NO_HEALTHY_UPSTREAM => "no healthy upstream",
        refusal::OVERFLOW => {
            "upstream connect error or disconnect/reset before headers. reset reason: overflow"
        }
        refusal::TIMEOUT => "upstream request timeout",
        refusal::DROP_OVERLOAD => "drop overload",
        refusal::UNCONDITIONAL_DROP_OVERLOAD => "unconditional drop overload",
        refusal::MAINTENANCE => "maintenance mode",
        refusal::CONCURRENCY => "reached concurrency limit",
        refusal::BODY_TOO_LARGE => "exceeded request buffer limit while retrying upstream",
        _ => "",
    }
}

/// The header that tells why, if any.
fn told(why: u8, which: u8) -> Vec<(String, String)> {
    let name = match why {
        refusal::DROP_OVERLOAD => "x-envoy-drop-overload",
        refusal::UNCONDITIONAL_DROP_OVERLOAD => "x-envoy-unconditional-drop-overload",
        refusal::OVERFLOW => return overloaded(which != resource::POOLS),
        _ => return overloaded(why == refusal::MAINTENANCE),
    };
    vec![(name.into(), "true".into())]
}

fn overloaded(yes: bool) -> Vec<(String, String)> {
    if yes { vec![("x-envoy-overloaded".into(), "true".into())] } else { Vec::new() }
}

fn refused(why: u8, status: u16, which: u8) -> LocalReply {
    LocalReply {
        status,
        flags: 0,
        details: refusal_details(why).into(),
        headers: told(why, which),
        body: refusal_body(if which == resource::POOLS { refusal::NO_HEALTHY_UPSTREAM } else { why }).into(),
    }
}
