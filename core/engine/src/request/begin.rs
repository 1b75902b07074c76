//! A new request: its route, cluster, policies, hash and limits.

use super::lead::Answer;
use super::state::{Course, End, State};
use super::trail::Trail;
use super::{Walk, clear};
use crate::balance::Criteria;
use crate::clock::{MILLI, Time};
use crate::engine::Core;
use crate::hash::policy::GeneratedCookie;
use crate::headers::HeaderView;
use crate::ids::Id;
use crate::outcome::{Decision, Head, Misuse, NEVER, flags, head_bits, refusal};
use crate::policies::{ClusterPolicy, Policies, RequestPolicy, Target};
use crate::request::slab::{Slot, Taken};
use crate::retry::{
    Extra, PreviousPriorities, REQUEST_HEADERS, RetryPolicy, RetrySettings, grpc_timeout_ms, ill_formed,
    stream_duration,
};
use crate::route::RequestView;
use crate::spec::RetryOn;
use std::sync::Arc;
use twox_hash::XxHash64;

/// Target number of a name that no document has.
pub const UNKNOWN_TARGET: u32 = u32::MAX;

/// The stateless form of a request.
#[derive(Clone, Copy, Debug)]
pub struct Stateless {
    /// Its attempt number.
    pub number: u32,
}

impl<'a> Walk<'a> {
    /// Takes a slot, fills it from the head and makes the first choice.
    pub(crate) fn begin(
        &mut self,
        head: &Head<'_>,
        stateless: Option<Stateless>,
        out: &mut Decision,
    ) -> Result<(), Misuse> {
        clear(out);
        let snapshot: &'a _ = self.snapshot;
        let policies: &Policies = &snapshot.policies;
        let old;
        let names: &[Box<str>] = if head.headers.is_empty() {
            &[]
        } else if head.want == u32::from(policies.want.0) {
            &policies.want.1
        } else {
            old = self.core.wants.lock().get(head.want).ok_or(Misuse::Invalid)?;
            &old
        };
        let headers = HeaderView::new(names, head.headers).ok_or(Misuse::Invalid)?;
        check(head)?;
        let view = head.view(headers);
        self.begin_checked(policies, head, &view, stateless, out)
    }

    fn begin_checked(
        &mut self,
        policies: &Policies,
        head: &Head<'_>,
        view: &RequestView<'_>,
        stateless: Option<Stateless>,
        out: &mut Decision,
    ) -> Result<(), Misuse> {
        // Read before anything is taken: a text that is no JSON object refuses the head.
        let own_criteria = self.core.own_criteria(head)?;
        let namespaces = self.core.namespaces(head)?;
        let mut word = None;
        let policy = policies.of_head(head, view, &mut word, self.random)?;
        let Taken { index, slot, mut state } = self.take_slot()?;
        let st = &mut *state;
        let unrouted = Course { policies: policies.generation, ..Course::EMPTY };
        st.begin(&unrouted, self.now);
        let grpc = view.headers.first("content-type").is_some_and(is_grpc);
        st.grpc = grpc;
        let id =
            Id { engine: self.core.settings.index, slot: index, generation: slot.generation(), attempt: 0 };
        slot.user_data.store(head.user_data, crate::sync::atomic::Ordering::Relaxed);
        let Some(at) = policy else {
            // Without a route there is no policy either; the first one only fills the field.
            let (why, status, flag) = if head.target == 0 {
                (refusal::NO_ROUTE, 404, flags::NR)
            } else {
                (refusal::NO_CLUSTER, 503, flags::NC)
            };
            self.refuse(id.pack(), slot, st, why, status, flag, out);
            return Ok(());
        };
        st.policy = at;
        let policy = &policies.list[at as usize];
        let trusted = head.bits & head_bits::INTERNAL != 0;
        if trusted && let Some(bad) = policy.strict.iter().find_map(|name| ill_formed(name, view.headers)) {
            st.rare().bad_header = Some(bad);
            self.refuse(id.pack(), slot, st, refusal::INVALID_HEADERS, 400, flags::IH, out);
            return Ok(());
        }
        let number = stateless.map_or(1, |stateless| stateless.number);
        let led = match self.lead(policies, at, head, view, number, &mut word, &namespaces) {
            Ok(led) => led,
            Err(Answer::Direct(status)) => {
                if self.is_stopped(policies, policy, None, id.pack(), slot, st, out) {
                    return Ok(());
                }
                if let Some(route) = policy.route.filter(|_| policy.rewrites) {
                    st.rare().location = policies.tables.location(route as usize, view);
                }
                self.refuse(id.pack(), slot, st, refusal::DIRECT_RESPONSE, status, 0, out);
                return Ok(());
            }
            Err(Answer::NoCluster(status, name)) => {
                if self.is_stopped(policies, policy, None, id.pack(), slot, st, out) {
                    return Ok(());
                }
                st.rare().missing = name;
                self.refuse(id.pack(), slot, st, refusal::NO_CLUSTER, status, flags::NC, out);
                return Ok(());
            }
        };
        let cluster = led.cluster;
        st.begin(&Course::new(policies, at, cluster), self.now);
        st.home = led.home;
        st.grpc = grpc;
        if self.is_stopped(policies, policy, Some(cluster), id.pack(), slot, st, out) {
            return Ok(());
        }
        if trusted || policy.limits.grpc.is_some() {
            Self::own_limits(st, policy, trusted, view);
        }
        self.limits(st, head);
        if stateless.is_none() && policy.hedges(trusted, view) {
            self.may_hedge(policies, st);
        }
        if policy.duration != NEVER
            || policy.grpc_stream.is_some()
            || policies.cluster(cluster).is_some_and(|own| own.streams)
        {
            self.durations(st, policy, view.headers);
        }
        if let Some(own) = policies.cluster(cluster).filter(|own| own.hashes) {
            self.hash(st, policies, policy, own, head, view);
        }
        if let Some(own) = policies.cluster(cluster).filter(|own| own.filtered()) {
            self.bring(st, own, view, own_criteria.as_ref());
        }
        if let Some(own) = policies.cluster(cluster).filter(|own| !own.overrides.is_empty()) {
            Self::overrides(st, &own.overrides, own_criteria.as_ref(), &namespaces, view);
        }
        let again = policy.leads.by_word() && policies.retry(st).refresh_cluster && st.hedge().is_none();
        if again && stateless.is_none() {
            self.prepare_others(policies, st, head, view, own_criteria.as_ref(), &namespaces);
        }
        if again || policies.cluster(cluster).is_some_and(|own| own.subsets) {
            Self::criteria(st, led.criteria.as_ref().or(policy.criteria.as_ref()), own_criteria, again);
        }
        if let Some(session) = &policy.session {
            Self::session(self.core, st, session, view, !head.override_host.is_empty());
        }
        if head.bits & head_bits::EXPLAIN != 0 {
            st.rare().trail = Some(Box::new(Trail { matched: head.target == 0, list: Vec::new() }));
        }
        if !head.override_host.is_empty() {
            let strict = head.override_host.strip_prefix('!');
            st.rare().wanted = Some((strict.unwrap_or(head.override_host).to_owned(), strict.is_some()));
        }
        if policy.rewrites
            && let Some(route) = policy.route
        {
            let (path, authority) = policies.tables.rewrite(route as usize, view);
            if path.is_some() || authority.is_some() {
                let rare = st.rare();
                rare.path = path;
                rare.authority = authority;
            }
        }
        let retry = policies.retry(st);
        if trusted || !retry.is_plain() {
            self.retry_state(st, retry, trusted, view);
        }
        if again {
            st.rare().again = Some(led.again);
        }
        if let Some(Stateless { number }) = stateless {
            self.number(st, number);
            if !head.tried.is_empty() {
                st.rare().tried = head
                    .tried
                    .split(',')
                    .map(|a| a.trim_ascii().to_owned())
                    .filter(|a| !a.is_empty())
                    .collect();
            }
        }
        if !retry.is_plain() && self.is_short_of_time(retry.options.as_deref(), st) {
            self.refuse_short(id.pack(), slot, st, out);
            return Ok(());
        }
        self.first(policies, slot, id.pack(), st, out);
        Ok(())
    }

    /// The `envoy.lb` criteria that a head brings.
    /// Section 4 of `spec/retry-and-timeouts.md`, when the request has a say.
    #[cold]
    fn retry_state(&mut self, st: &mut State, retry: &RetryPolicy, trusted: bool, view: &RequestView<'_>) {
        if let Some(every) = retry.previous_priorities {
            st.rare().priorities = Some(Box::new(PreviousPriorities::new(every)));
        }
        if view.headers.first("early-data").is_some() {
            st.rare().early_data = true;
        }
        match RetrySettings::new(retry, view, trusted) {
            Some(settings) => {
                st.retries = true;
                st.remaining = settings.remaining;
                st.on = settings.bits;
                if st.on != retry.on || settings.extra.is_some() {
                    self.want_more(st, settings.extra.as_deref());
                }
                if settings.extra.is_some() {
                    st.rare().extra = settings.extra;
                }
            }
            None => {
                (st.retries, st.remaining, st.on) = (false, 0, RetryOn::NONE);
            }
        }
        if let Some(options) = &retry.options {
            Self::opt_in(st, options, view);
        }
    }

    /// Conditions of the request's own read headers of answers that its policy does not read.
    fn want_more(&self, st: &mut State, extra: Option<&Extra>) {
        // Each distinct list is kept for ever; requests may not make them without end.
        const SETS: usize = 4096;
        let own = extra.into_iter().flat_map(Extra::header_names);
        let more: Vec<&str> = ["x-envoy-ratelimited", "grpc-status"].into_iter().chain(own).collect();
        let successes = st.on.has(RetryOn::ENVOY_RATELIMITED | RetryOn::GRPC | RetryOn::RETRIABLE_HEADERS)
            || st.on.has(RetryOn::RETRIABLE_STATUS_CODES);
        let mut sets = self.core.wants.lock();
        let mut widened = |number: u16| {
            let mut names: Vec<String> =
                sets.get(u32::from(number))?.iter().map(|name| name.to_string()).collect();
            names.extend(more.iter().map(|name| (*name).to_owned()));
            (sets.len() < SETS).then(|| sets.intern(names).0)
        };
        let wants = &mut st.course.wants;
        wants.err = widened(wants.err).unwrap_or(wants.err);
        if successes {
            wants.ok = widened(wants.ok).unwrap_or(wants.ok);
        }
    }

    /// Limits that are no time-out (section 14.5): the request's, from its start; each attempt's, when it is sent.
    #[cold]
    fn durations(&self, st: &mut State, policy: &RequestPolicy, headers: HeaderView<'_>) {
        let mut duration = policy.duration;
        let asked = || headers.first("grpc-timeout").and_then(grpc_timeout_ms);
        if let Some((max, offset)) = policy.grpc_stream
            && let Some(asked) = asked().map(|ms| ms.saturating_mul(MILLI))
        {
            let capped = if max == 0 { asked } else { asked.min(max) };
            duration = capped.saturating_sub(offset);
            st.marks = true;
            st.rare().grpc_stream = Some(duration / MILLI);
        }
        let until = (duration != NEVER).then(|| self.now.plus(duration));
        st.rare().route_until = until;
        st.deadline = until.map_or(st.deadline, |until| st.deadline.min(until));
    }

    /// Limits that the request's own headers set (section 14.1).
    #[cold]
    fn own_limits(st: &mut State, policy: &RequestPolicy, trusted: bool, view: &RequestView<'_>) {
        let headers = view.headers;
        let grpc = st.grpc;
        let limits = policy.limits.resolve(headers, trusted, grpc);
        (st.timeout, st.per_try) = (limits.timeout, limits.per_try);
        if limits.grpc {
            st.marks = true;
            st.rare().grpc_timeout = true;
        }
        if trusted {
            if let Some(limit) = stream_duration(headers) {
                st.rare().stream_limit = Some(limit);
            }
            st.alternate = headers.first("x-envoy-upstream-rq-timeout-alt-response").is_some();
            let consumed = REQUEST_HEADERS.into_iter();
            let consumed: Vec<_> = consumed.filter(|name| headers.first(name).is_some()).collect();
            if !consumed.is_empty() {
                st.marks = true;
                st.rare().consumed = consumed;
            }
        }
    }

    /// A stateless attempt with its number.
    #[inline]
    fn number(&mut self, st: &mut State, number: u32) {
        st.stateless = true;
        st.number = number;
        if number > 1 {
            st.is_retry = true;
            st.remaining = st.remaining.saturating_sub(number - 1);
            st.back_off.settle(self.snapshot.runtime.base_retry_backoff_ms);
            for _ in 2..number.min(64) {
                st.back_off.skip();
            }
        }
    }

    /// A stateless attempt in a cluster, without a head.
    #[inline]
    pub(crate) fn pick_one(
        &mut self,
        target: u32,
        number: u32,
        key: Option<&[u8]>,
        out: &mut Decision,
    ) -> Result<(), Misuse> {
        let snapshot: &'a _ = self.snapshot;
        let policies: &Policies = &snapshot.policies;
        let at = (target as usize).wrapping_sub(1);
        let Some(Some(Target { start: Some(start), .. })) = policies.targets.get(at) else {
            return self.pick_by_head(target, number, key, out);
        };
        clear(out);
        if key.is_some_and(|key| key.len() > Head::TEXT_LIMIT) {
            return Err(Misuse::Limit);
        }
        let Taken { index, slot, mut state } = self.take_slot()?;
        let st = &mut *state;
        st.begin(&start.course, self.now);
        let id =
            Id { engine: self.core.settings.index, slot: index, generation: slot.generation(), attempt: 0 };
        if start.gated {
            let policy = policies.request(st);
            if self.is_stopped(policies, policy, Some(st.cluster), id.pack(), slot, st, out) {
                return Ok(());
            }
        }
        if st.timeout != NEVER {
            st.deadline = self.now.plus(st.timeout);
        }
        if start.hashes {
            self.hash_key(st, policies, key);
        }
        if !start.plain {
            self.durations(st, policies.request(st), HeaderView::EMPTY);
            self.retry_state(st, policies.retry(st), false, &EMPTY);
            if self.is_short_of_time(policies.retry(st).options.as_deref(), st) {
                self.refuse_short(id.pack(), slot, st, out);
                return Ok(());
            }
        }
        self.number(st, number);
        self.first(policies, slot, id.pack(), st, out);
        Ok(())
    }

    /// The same through a whole head: the target leads to no cluster, to several, or to none that exists.
    #[cold]
    fn pick_by_head(
        &mut self,
        target: u32,
        number: u32,
        key: Option<&[u8]>,
        out: &mut Decision,
    ) -> Result<(), Misuse> {
        let head = Head { target, number, key, ..Head::default() };
        self.begin(&head, Some(Stateless { number }), out)
    }

    #[inline(never)]
    fn hash_key(&mut self, st: &mut State, policies: &Policies, key: Option<&[u8]>) {
        let Some(own) = policies.cluster(st.cluster) else { return };
        let head = Head { key, ..Head::default() };
        self.hash(st, policies, policies.request(st), own, &head, &EMPTY);
    }

    /// Passes the gates of a request, if there are any. Whether one refused, which is answered then.
    #[expect(clippy::too_many_arguments, reason = "the parts of one locked request")]
    #[inline]
    fn is_stopped(
        &mut self,
        policies: &Policies,
        policy: &RequestPolicy,
        cluster: Option<u32>,
        id: u64,
        slot: &Slot,
        st: &mut State,
        out: &mut Decision,
    ) -> bool {
        if !Self::is_gated(policies, policy, cluster) {
            return false;
        }
        let Err((why, status)) = self.pass_gates(policies, policy, cluster, st) else { return false };
        self.refuse(id, slot, st, why, status, 0, out);
        true
    }

    /// A free slot: from the worker's stock, or from the engine's.
    #[inline]
    fn take_slot(&mut self) -> Result<Taken<'a>, Misuse> {
        let core: &'a Core = self.core;
        core.slab.take(self.free, core.settings.first_generation).ok_or(Misuse::Limit)
    }

    /// What the route, or its chosen cluster, and the request itself ask of metadata; the request wins.
    #[cold]
    fn criteria(st: &mut State, route: Option<&Arc<Criteria>>, own: Option<Criteria>, again: bool) {
        let own = own.map(Arc::new);
        let criteria = Criteria::both(route, own.as_ref());
        if criteria.is_some() || again {
            let rare = st.rare();
            rare.criteria = criteria;
            rare.own_criteria = own.filter(|_| again);
        }
    }

    fn limits(&mut self, st: &mut State, head: &Head<'_>) {
        let own = if head.timeout == 0 { NEVER } else { head.timeout };
        st.timeout = st.timeout.min(own);
        if st.timeout != NEVER && st.per_try >= st.timeout {
            st.per_try = NEVER;
        }
        st.body = head.body;
        st.replay = head.bits & head_bits::REPLAY != 0;
        st.upload_open = head.body == 3;
        st.deadline =
            if st.upload_open || st.timeout == NEVER { Time::NEVER } else { self.now.plus(st.timeout) };
        if let 0 | 1 = head.priority {
            st.routing = head.priority as u8;
        }
    }

    /// Section 17 of `spec/load-balancing.md`: the caller's own hash, or the first list that is not empty.
    fn hash(
        &mut self,
        st: &mut State,
        policies: &Policies,
        policy: &RequestPolicy,
        own: &ClusterPolicy,
        head: &Head<'_>,
        view: &RequestView<'_>,
    ) {
        if head.bits & head_bits::HASH != 0 {
            st.hash = Some(head.hash);
            return;
        }
        if let Some(key) = head.key {
            st.hash = Some(XxHash64::oneshot(0, key));
            return;
        }
        let input = head.hash_input(view);
        let list = own.hash_policies(policy);
        let mut cookie: Option<GeneratedCookie> = None;
        if !list.is_empty() {
            st.hash = list.evaluate(&input, &mut cookie);
        }
        for &sub in &own.own_hash_subs {
            if let Some(sub_policy) = policies.cluster(sub) {
                let hash = sub_policy.own_hash.evaluate(&input, &mut cookie);
                st.rare().own_hashes.push((sub, hash));
            }
        }
        if let Some(cookie) = cookie {
            st.rare().cookies = std::iter::once(cookie.set_cookie).chain(cookie.others).collect();
        }
    }

    /// Ends a request with a refusal.
    #[expect(clippy::too_many_arguments, reason = "the parts of one locked request")]
    pub(crate) fn refuse(
        &mut self,
        id: u64,
        slot: &Slot,
        st: &mut State,
        why: u8,
        status: u16,
        flag: u32,
        out: &mut Decision,
    ) {
        if (!st.attempts.is_empty() || st.queued.is_some()) && self.abort_others(slot, id, st, None) {
            out.bits |= crate::outcome::bits::ABORT_OTHERS;
        }
        st.flags |= flag;
        st.end = End::Refused(why);
        st.reply_status = status;
        if st.has_rare {
            self.gates_local(st, status);
        }
        out.kind = crate::outcome::kind::REFUSED;
        out.request = id;
        out.number = st.number;
        out.status = st.wire_status(status);
        out.refusal = why;
        out.resource = st.resource;
        out.flags = st.flags;
        out.wait = NEVER;
        out.try_timeout = NEVER;
        out.remaining = NEVER;
        self.done(id, slot, st);
        out.bits |= self.signals();
    }
}

/// A request without a head.
const EMPTY: RequestView<'static> =
    RequestView { method: "", scheme: "", authority: "", path: "", headers: HeaderView::EMPTY };

/// Whether a content type is that of gRPC.
pub(crate) fn is_grpc(value: &[u8]) -> bool {
    let rest = value.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| rest.first().is_none_or(|next| *next == b'+'))
}

fn check(head: &Head<'_>) -> Result<(), Misuse> {
    if head.text_len() > Head::TEXT_LIMIT {
        return Err(Misuse::Limit);
    }
    if !(-1..=1).contains(&head.priority) || head.body > 3 || head.override_host == "!" {
        return Err(Misuse::Invalid);
    }
    Ok(())
}
