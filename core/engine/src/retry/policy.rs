//! A retry policy, compiled.

use super::backoff::BackOff;
use crate::clock::nanos;
use crate::matching::HeaderMatcher;
use crate::route::{RequestView, is_pseudo};
use crate::spec::{RetryOn, RetrySpec, SpecError};

/// A compiled [`RetrySpec`].
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// Conditions; empty = never.
    pub on: RetryOn,
    /// Retries after the first attempt.
    pub num_retries: u32,
    /// Nanoseconds, 0 = off.
    pub per_try_timeout: u64,
    /// Nanoseconds, 0 = off.
    pub per_try_idle_timeout: u64,
    /// What every request starts with.
    pub back_off: BackOff,
    /// For the condition `retriable-status-codes`, ascending.
    pub(super) status_codes: Box<[u32]>,
    pub(super) response_headers: Box<[HeaderMatcher]>,
    request_headers: Box<[HeaderMatcher]>,
    /// Do not choose a host that this request has tried.
    pub previous_hosts: bool,
    /// Hosts examined per selection of a retry, the last one taken whatever the predicates say.
    pub candidates: u32,
}

impl RetryPolicy {
    /// Only a regular expression can fail to compile.
    pub fn compile(spec: &RetrySpec) -> Result<Self, SpecError> {
        let compile = |headers: &[_]| headers.iter().map(HeaderMatcher::compile).collect::<Result<_, _>>();
        let mut status_codes = spec.retriable_status_codes.clone();
        status_codes.sort_unstable();
        status_codes.dedup();
        Ok(Self {
            on: spec.on,
            num_retries: spec.num_retries,
            per_try_timeout: nanos(spec.per_try_timeout),
            per_try_idle_timeout: nanos(spec.per_try_idle_timeout),
            back_off: BackOff::new(&spec.back_off),
            status_codes: status_codes.into(),
            response_headers: compile(&spec.retriable_headers)?,
            request_headers: compile(&spec.retriable_request_headers)?,
            previous_hosts: spec.previous_hosts,
            // 0 acts as 1, and one more is looked at than redraws are allowed.
            candidates: spec.host_selection_retry_max_attempts.max(1).saturating_add(1),
        })
    }

    /// Whether nothing of a request that is not trusted changes this policy.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.request_headers.is_empty()
    }

    /// Whether `retriable_request_headers` lets requests like this one be retried.
    pub fn allows(&self, request: &RequestView<'_>) -> bool {
        self.request_headers.is_empty() || self.request_headers.iter().any(|header| request.satisfies(header))
    }

    /// Whether the status stands in the list of retriable ones.
    pub(super) fn lists(&self, status: u16) -> bool {
        self.status_codes.binary_search(&u32::from(status)).is_ok()
    }

    /// Whether no condition, configured or asked for by name, could meet an answer below 400 without headers.
    pub fn ignores_success(&self) -> bool {
        self.response_headers.is_empty() && self.status_codes.first().is_none_or(|&code| code >= 400)
    }

    /// Lower-case names of the request headers that the policy reads; a name may come twice.
    pub fn wanted_request_headers(&self, visit: &mut dyn FnMut(&str)) {
        self.request_headers
            .iter()
            .map(|header| &*header.name)
            .filter(|name| !is_pseudo(name))
            .for_each(&mut *visit);
        if self.on.has(RetryOn::RETRIABLE_STATUS_CODES) && self.lists(super::conditions::TOO_EARLY) {
            visit("early-data");
        }
    }

    /// Lower-case names of the headers that the policy reads of an answer whatever its status; a name may come
    /// twice.
    pub fn wanted_response_headers(&self, visit: &mut dyn FnMut(&str)) {
        if self.on.is_empty() {
            return;
        }
        visit("x-envoy-ratelimited");
        self.wanted_conditions(visit);
    }

    /// The same for answers below 400: nothing unless such an answer could be retried, so that an ordinary
    /// success needs no header at all.
    pub fn wanted_success_headers(&self, visit: &mut dyn FnMut(&str)) {
        let listed = self.status_codes.first().is_some_and(|&code| code < 400);
        if self.on.has(RetryOn::ENVOY_RATELIMITED | RetryOn::GRPC)
            || (self.on.has(RetryOn::RETRIABLE_HEADERS) && !self.response_headers.is_empty())
            || (self.on.has(RetryOn::RETRIABLE_STATUS_CODES) && listed)
        {
            visit("x-envoy-ratelimited");
            self.wanted_conditions(visit);
        }
    }

    fn wanted_conditions(&self, visit: &mut dyn FnMut(&str)) {
        if self.on.has(RetryOn::RETRIABLE_HEADERS) {
            let names = self.response_headers.iter().map(|header| &*header.name);
            names.filter(|name| !is_pseudo(name)).for_each(&mut *visit);
        }
        if self.on.has(RetryOn::GRPC) {
            visit("grpc-status");
        }
    }
}
