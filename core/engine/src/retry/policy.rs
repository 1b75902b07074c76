//! A retry policy, compiled.

use super::backoff::BackOff;
use super::reset::ResetHeaders;
use crate::clock::nanos;
use crate::matching::HeaderMatcher;
use crate::route::{RequestView, is_pseudo};
use crate::spec::{RetryOn, RetryOptions, RetrySpec, SpecError, Value};

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
    /// Do not choose a canary host.
    pub omit_canary_hosts: bool,
    omit_host_metadata: Box<[Vec<(String, Value)>]>,
    /// Attempts after which the priorities tried are left out.
    pub previous_priorities: Option<u32>,
    /// Answers that say when to come back.
    pub reset: Option<ResetHeaders>,
    /// A retry chooses among weighted clusters again.
    pub refresh_cluster: bool,
    /// Hosts examined per selection of a retry, the last one taken whatever the predicates say.
    pub candidates: u32,
    /// Mechanisms beyond Envoy; `None` for nearly all policies.
    pub options: Option<Box<RetryOptions>>,
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
            back_off: spec.back_off.as_ref().map_or(BackOff::OPEN, BackOff::new),
            status_codes: status_codes.into(),
            response_headers: compile(&spec.retriable_headers)?,
            request_headers: compile(&spec.retriable_request_headers)?,
            previous_hosts: spec.previous_hosts,
            omit_canary_hosts: spec.omit_canary_hosts,
            omit_host_metadata: spec.omit_host_metadata.clone().into(),
            previous_priorities: spec.previous_priorities,
            reset: spec.rate_limited.as_ref().map(ResetHeaders::compile),
            refresh_cluster: spec.refresh_cluster_on_retry,
            // 0 acts as 1, and one more is looked at than redraws are allowed.
            candidates: spec.host_selection_retry_max_attempts.max(1).saturating_add(1),
            options: (!spec.options.is_empty()).then(|| Box::new(spec.options.clone())),
        })
    }

    /// Whether nothing of a request that is not trusted changes this policy, and none of its plugins keeps
    /// anything of a request.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.request_headers.is_empty()
            && self.previous_priorities.is_none()
            && !self.reads_early_data()
            && self.options.is_none()
    }

    /// Whether an outcome could be retried at all.
    pub fn acts(&self) -> bool {
        let sends_on = |options: &RetryOptions| options.classes.iter().any(|class| class.next.is_some());
        !self.on.is_empty() || self.options.as_deref().is_some_and(sends_on)
    }

    /// Whether `retriable_request_headers` lets requests like this one be retried.
    pub fn allows(&self, request: &RequestView<'_>) -> bool {
        self.request_headers.is_empty() || self.request_headers.iter().any(|header| request.satisfies(header))
    }

    fn reads_early_data(&self) -> bool {
        self.on.has(RetryOn::RETRIABLE_STATUS_CODES) && self.lists(super::conditions::TOO_EARLY)
    }

    /// Whether any host predicate may reject.
    pub fn rejects(&self) -> bool {
        self.previous_hosts || self.omit_canary_hosts || !self.omit_host_metadata.is_empty()
    }

    /// Whether `omit_host_metadata` rejects a host with these `envoy.lb` values.
    pub fn omits(&self, values: Option<&std::collections::BTreeMap<String, Value>>) -> bool {
        let has = |(key, wanted): &(String, Value)| match values.and_then(|values| values.get(key)) {
            Some(Value::List(several)) => several.contains(wanted) || Value::List(several.clone()) == *wanted,
            Some(value) => value == wanted,
            None => false,
        };
        self.omit_host_metadata.iter().any(|pairs| !pairs.is_empty() && pairs.iter().all(has))
    }

    /// Whether `omit_host_metadata` has to be asked at all.
    pub fn omits_by_metadata(&self) -> bool {
        !self.omit_host_metadata.is_empty()
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
        if self.reads_early_data() {
            visit("early-data");
        }
        if let Some(options) = &self.options {
            options.layers.iter().for_each(|layers| visit(&layers.header));
            if options.idempotency.is_some() {
                visit("idempotency-key");
            }
        }
    }

    /// Lower-case names of the headers that the policy reads of an answer whatever its status; a name may come
    /// twice.
    pub fn wanted_response_headers(&self, visit: &mut dyn FnMut(&str)) {
        if let Some(options) = &self.options {
            let names = options.classes.iter().flat_map(|class| &class.when.headers);
            names.for_each(|(name, _)| visit(name));
        }
        if !self.acts() {
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
        self.reset.iter().flat_map(ResetHeaders::names).for_each(&mut *visit);
        if self.options.as_deref().is_some_and(|options| options.retry_after.is_some()) {
            ["retry-after-ms", "retry-after"].into_iter().for_each(&mut *visit);
        }
        if self.on.has(RetryOn::RETRIABLE_HEADERS) {
            let names = self.response_headers.iter().map(|header| &*header.name);
            names.filter(|name| !is_pseudo(name)).for_each(&mut *visit);
        }
        if self.on.has(RetryOn::GRPC) {
            visit("grpc-status");
        }
    }
}
