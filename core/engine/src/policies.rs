//! How requests are treated: compiled from routes and clusters, one entry per route and per cluster name.

use crate::admission::{self, Gate, Gates};
use crate::balance::Criteria;
use crate::clock::nanos;
use crate::hash::policy::HashPolicies;
use crate::headers::HeaderView;
use crate::leads::{Leads, criteria};
use crate::outcome::NEVER;
use crate::outlier::{DetectorWants, Wanted};
use crate::request::Course;
use crate::retry::{REQUEST_HEADERS, RetryPolicy, RouteLimits};
use crate::route::{RequestView, RouteTables};
use crate::spec::{
    ClusterKind, ClusterSource, ClusterSpec, FilterSpec, ForwardSpec, OverrideSource, PolicySpec, RetrySpec,
    RouteAction, SessionSpec, SessionState, SpecError, Specs, WordSource,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All policies of one set of documents.
pub(crate) struct Policies {
    /// Counts document updates; a request keeps the policies it was made with.
    pub(crate) generation: u32,
    pub(crate) list: Vec<RequestPolicy>,
    pub(crate) tables: RouteTables,
    /// Policy by route, in the tables' order.
    pub(crate) by_route: Vec<u32>,
    /// By cluster index; `None` = no such cluster.
    pub(crate) clusters: Vec<Option<ClusterPolicy>>,
    /// By target number minus one; `None` = the name is gone.
    pub(crate) targets: Vec<Option<Target>>,
    /// Cluster index by name, of every name ever seen.
    pub(crate) names: BTreeMap<Box<str>, u32>,
    /// The present set of wanted request headers, and its number.
    pub(crate) want: (u16, Arc<[Box<str>]>),
}

/// What a target number stands for.
pub(crate) struct Target {
    pub(crate) policy: u32,
    /// When it leads to one cluster, and that one exists.
    pub(crate) start: Option<Start>,
}

/// How every request to a target begins.
pub(crate) struct Start {
    pub(crate) course: Course,
    /// The cluster chooses by hash.
    pub(crate) hashes: bool,
    /// No header of a request changes its retry policy, unless the request is trusted.
    pub(crate) plain: bool,
    /// It passes gates first.
    pub(crate) gated: bool,
}

/// How one kind of request is treated.
pub(crate) struct RequestPolicy {
    /// Route index in the tables; `None` for a named cluster without a route.
    pub(crate) route: Option<u32>,
    /// `VHOST/ROUTE`, or empty.
    pub(crate) name: String,
    pub(crate) leads: Leads,
    /// What chooses among several clusters.
    pub(crate) word: WordSource,
    /// Status when the cluster does not exist.
    pub(crate) missing: u16,
    pub(crate) retry: RetryPolicy,
    /// Nanoseconds, NEVER = off.
    pub(crate) timeout: u64,
    /// Nanoseconds, NEVER = off.
    pub(crate) per_try: u64,
    /// Nanoseconds, NEVER = off.
    pub(crate) per_try_idle: u64,
    pub(crate) priority: u8,
    pub(crate) hash: HashPolicies,
    pub(crate) wants: Wants,
    /// The limits before any of them is left out.
    pub(crate) limits: RouteLimits,
    /// Nanoseconds of the whole request from its start, NEVER = off.
    pub(crate) duration: u64,
    /// Attempts say how long the upstream may take.
    pub(crate) expects: bool,
    /// Retries say whether a limit caused them.
    pub(crate) timeout_retry_to_upstream: bool,
    pub(crate) attempt_count_to_upstream: bool,
    pub(crate) attempt_count_to_client: bool,
    /// `hedge_on_per_try_timeout`
    hedges: bool,
    /// `grpc_timeout_header_max` (0 = none) and `grpc_timeout_header_offset`, in nanoseconds.
    pub(crate) grpc_stream: Option<(u64, u64)>,
    /// Headers of a trusted request that must read well.
    pub(crate) strict: Arc<[String]>,
    /// Path or authority are rewritten, or the client is sent elsewhere.
    pub(crate) rewrites: bool,
    /// What the route asks of a host's metadata.
    pub(crate) criteria: Option<Arc<Criteria>>,
    /// Gates of its route table.
    pub(crate) gates: Vec<Arc<Gate>>,
    /// How requests name the host of their session.
    pub(crate) session: Option<Arc<SessionSpec>>,
}

/// What a cluster says about requests to it.
#[derive(Default)]
pub(crate) struct ClusterPolicy {
    /// Replaces the route's.
    pub(crate) retry: Option<(RetryPolicy, Wants)>,
    /// Used before the route's when not empty.
    pub(crate) hash: HashPolicies,
    /// `hash_policy` of the balancing policy itself: used alone.
    pub(crate) own_hash: HashPolicies,
    /// It, or a sub-cluster, chooses by hash.
    pub(crate) hashes: bool,
    /// It, or a sub-cluster, limits the time of an attempt.
    pub(crate) streams: bool,
    /// It, or a sub-cluster, chooses among subsets.
    pub(crate) subsets: bool,
    /// Its filters, or those of sub-clusters, by cluster.
    pub(crate) filters: Vec<(u32, Arc<FilterSpec>)>,
    /// The life of its requests is told in events.
    pub(crate) lifecycle: bool,
    /// Outlier detection, of it or a sub-cluster, looks at more than the status.
    pub(crate) judged: bool,
    /// Successes count as the host's own, too (split outlier detection).
    pub(crate) split: bool,
    /// Where requests list the hosts that they want; of a composite that of the first sub-cluster which has one.
    pub(crate) overrides: Arc<[OverrideSource]>,
    /// Sub-clusters that have an `own_hash`.
    pub(crate) own_hash_subs: Vec<u32>,
    /// Gates of requests to it.
    pub(crate) gates: Vec<Arc<Gate>>,
}

impl ClusterPolicy {
    /// Whether requests bring something to filters, or their life is told.
    pub(crate) fn filtered(&self) -> bool {
        !self.filters.is_empty() || self.lifecycle
    }
}

/// Numbers of the wanted sets of response headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) ok: u16,
    pub(crate) err: u16,
}

/// Every distinct set of header names, numbered from 1; number 1 is the empty set. Old numbers stay valid.
pub(crate) struct WantSets {
    sets: Vec<Arc<[Box<str>]>>,
}

impl Default for WantSets {
    fn default() -> Self {
        Self { sets: vec![Arc::from(Vec::new())] }
    }
}

impl WantSets {
    /// The number of a set; it is made when it is new.
    pub(crate) fn intern(&mut self, mut names: Vec<String>) -> (u16, Arc<[Box<str>]>) {
        names.sort_unstable();
        names.dedup();
        let at = self
            .sets
            .iter()
            .position(|set| set.len() == names.len() && set.iter().zip(&names).all(|(a, b)| **a == **b));
        let at = at.unwrap_or_else(|| {
            self.sets.push(names.into_iter().map(String::into_boxed_str).collect());
            self.sets.len() - 1
        });
        (u16::try_from(at + 1).unwrap_or(1), Arc::clone(&self.sets[at]))
    }

    /// How many sets there are.
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    pub(crate) fn get(&self, number: u32) -> Option<Arc<[Box<str>]>> {
        self.sets.get((number as usize).checked_sub(1)?).cloned()
    }

    fn responses(&mut self, retry: &RetryPolicy, more: Wanted) -> Wants {
        let (mut ok, mut err) = (more.always.clone(), more.always);
        err.extend(more.errors);
        retry.wanted_success_headers(&mut |name| ok.push(name.to_owned()));
        retry.wanted_response_headers(&mut |name| err.push(name.to_owned()));
        Wants { ok: self.intern(ok).0, err: self.intern(err).0 }
    }
}

/// Names that stay numbered for the engine's life.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) clusters: BTreeMap<Box<str>, u32>,
    /// `name` or `route:NAME` to its number, from 1.
    pub(crate) targets: BTreeMap<Box<str>, u32>,
}

impl Names {
    pub(crate) fn cluster(&mut self, name: &str) -> u32 {
        let next = self.clusters.len() as u32;
        *self.clusters.entry(name.into()).or_insert(next)
    }

    fn target(&mut self, name: &str) -> u32 {
        let next = self.targets.len() as u32 + 1;
        *self.targets.entry(name.into()).or_insert(next)
    }
}

impl Policies {
    pub(crate) fn compile(
        specs: &Specs,
        generation: u32,
        names: &mut Names,
        wants: &mut WantSets,
        active_checks: bool,
        gates: &Gates,
    ) -> Result<Self, SpecError> {
        let tables = RouteTables::compile(&specs.route_tables)?;
        let mut built = Self {
            generation,
            list: Vec::new(),
            by_route: Vec::new(),
            clusters: Vec::new(),
            targets: Vec::new(),
            names: BTreeMap::new(),
            want: wants.intern(Vec::new()),
            tables,
        };
        let mut leads_to: BTreeMap<&str, &ForwardSpec> = BTreeMap::new();
        let mut route_retry: BTreeMap<&str, Option<&RetrySpec>> = BTreeMap::new();
        let mut route_of: BTreeMap<&str, u32> = BTreeMap::new();
        let mut targets: BTreeMap<u32, u32> = BTreeMap::new();
        for cluster in &specs.clusters {
            names.cluster(&cluster.name);
        }
        let detectors = DetectorWants::new(&specs.clusters, active_checks);
        let admitted = Admitted::new(specs, gates);
        let no_gates = Vec::new();
        let hosts = specs.route_tables.iter().enumerate();
        let hosts =
            hosts.flat_map(|(of, table)| table.virtual_hosts.iter().map(move |host| (of, table, host)));
        let routes =
            hosts.flat_map(|(of, table, host)| host.routes.iter().map(move |route| (of, table, host, route)));
        for (index, (of, table, host, route)) in routes.enumerate() {
            let table_gates = gates.of_tables.get(of).unwrap_or(&no_gates);
            let label = format!("{}/{}", host.name, route.name);
            let policy = match &route.action {
                RouteAction::Direct { .. } | RouteAction::Redirect(_) => {
                    let (status, body) = match &route.action {
                        RouteAction::Direct { status, body } => (*status, body.clone()),
                        RouteAction::Redirect(to) => (to.status, String::new()),
                        RouteAction::Forward(_) => continue,
                    };
                    let leads = Leads::Direct { status, body };
                    let policy =
                        RequestPolicy::new(&ForwardSpec::default(), None, leads, Wanted::default(), wants)?;
                    RequestPolicy { rewrites: matches!(route.action, RouteAction::Redirect(_)), ..policy }
                }
                RouteAction::Forward(forward) => {
                    let retry = forward.retry.as_ref().or(host.retry.as_ref());
                    for name in forward.cluster.names() {
                        leads_to.entry(name).or_insert(forward);
                        route_retry.entry(name).or_insert(retry);
                        route_of.entry(name).or_insert(index as u32);
                    }
                    let mut more = detectors.of_route(&forward.cluster);
                    admitted.add(&forward.cluster, table_gates, &mut more.always);
                    RequestPolicy::new(forward, retry, Leads::new(forward, names), more, wants)?
                }
            };
            let at = built.list.len() as u32;
            let limits = RouteLimits { respect_expected: table.respect_expected_rq_timeout, ..policy.limits };
            let limited = limits.timeout != NEVER || limits.per_try != NEVER;
            built.list.push(RequestPolicy {
                limits,
                expects: limited && !table.suppress_envoy_headers,
                timeout_retry_to_upstream: host.include_is_timeout_retry_header,
                strict: Arc::from(table.strict_check_headers.as_slice()),
                route: Some(index as u32),
                session: route.session.as_ref().or(host.session.as_ref()).unwrap_or(&table.session).clone(),
                name: label.clone(),
                hedges: match &route.action {
                    RouteAction::Forward(forward) => forward.hedge.or(host.hedge).unwrap_or(false),
                    RouteAction::Direct { .. } | RouteAction::Redirect(_) => false,
                },
                attempt_count_to_upstream: host.include_request_attempt_count,
                attempt_count_to_client: host.include_attempt_count_in_response,
                gates: table_gates.clone(),
                ..policy
            });
            built.by_route.push(at);
            if !route.name.is_empty() {
                targets.entry(names.target(&format!("route:{label}"))).or_insert(at);
                targets.entry(names.target(&format!("route:{}", route.name))).or_insert(at);
            }
        }
        for cluster in &specs.clusters {
            let lead = Leads::Cluster(names.cluster(&cluster.name));
            let name = cluster.name.as_str();
            let mut more = detectors.of(name);
            let like = route_of.get(name).filter(|_| cluster.defaults.is_none());
            let like = like.map(|route| built.by_route[*route as usize] as usize);
            let table_gates = like.map_or(&no_gates, |at| &built.list[at].gates).clone();
            admitted.add(&ClusterSource::Name(name.to_owned()), &table_gates, &mut more.always);
            let mut policy = match (&cluster.defaults, leads_to.get(name)) {
                (Some(own), _) => RequestPolicy::new(own, own.retry.as_ref(), lead, more, wants)?,
                (None, Some(route)) => {
                    let retry = route_retry.get(name).copied().flatten();
                    RequestPolicy::new(route, retry, lead, more, wants)?
                }
                (None, None) => RequestPolicy::new(&ForwardSpec::default(), None, lead, more, wants)?,
            };
            policy.gates = table_gates;
            if let Some(at) = like {
                let like = &built.list[at];
                policy.attempt_count_to_upstream = like.attempt_count_to_upstream;
                policy.attempt_count_to_client = like.attempt_count_to_client;
                policy.timeout_retry_to_upstream = like.timeout_retry_to_upstream;
                policy.hedges = like.hedges;
            }
            targets.insert(names.target(name), built.list.len() as u32);
            built.list.push(policy);
        }
        built.clusters = cluster_policies(specs, names, &detectors, &admitted, wants, gates)?;
        let target = |number| targets.get(&number).map(|&at| built.target(at));
        built.targets = (1..=names.targets.len() as u32).map(target).collect();
        built.names = names.clusters.clone();
        built.want = wants.intern(built.request_headers());
        Ok(built)
    }

    fn target(&self, policy: u32) -> Target {
        let asks = self.list[policy as usize].criteria.is_some();
        let start = match self.list[policy as usize].leads {
            // A request that asks for a subset begins with its whole head.
            Leads::Cluster(cluster) => {
                self.cluster(cluster).filter(|own| !(own.filtered() || asks && own.subsets)).map(|own| {
                    let course = Course::new(self, policy, cluster);
                    let timed = own.streams || self.list[policy as usize].duration != NEVER;
                    let plain = self.retry_of(policy, cluster).is_plain() && !timed;
                    let gated = !own.gates.is_empty() || !self.list[policy as usize].gates.is_empty();
                    Start { course, hashes: own.hashes, plain, gated }
                })
            }
            _ => None,
        };
        Target { policy, start }
    }

    /// Every request header that anything reads.
    fn request_headers(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut add = |name: &str| all.push(name.to_owned());
        REQUEST_HEADERS.into_iter().for_each(&mut add);
        // Tells gRPC requests, whose local replies are different.
        add("content-type");
        if self.list.iter().any(|policy| policy.limits.grpc.is_some() || policy.grpc_stream.is_some()) {
            add("grpc-timeout");
        }
        self.tables.wanted_headers(&mut add);
        for policy in &self.list {
            match policy.session.as_ref().map(|session| &session.state) {
                Some(SessionState::Header { name }) => add(name),
                Some(SessionState::Cookie { .. }) => add("cookie"),
                None => {}
            }
            policy.hash.wanted_headers(&mut add);
            policy.retry.wanted_request_headers(&mut add);
        }
        for cluster in self.clusters.iter().flatten() {
            cluster.hash.wanted_headers(&mut add);
            cluster.own_hash.wanted_headers(&mut add);
            for source in &*cluster.overrides {
                if let OverrideSource::Header(name) = source {
                    add(name);
                }
            }
            if let Some((retry, _)) = &cluster.retry {
                retry.wanted_request_headers(&mut add);
            }
            for (_, filters) in &cluster.filters {
                filters.wanted_headers(&mut add);
            }
        }
        all
    }
}

/// Who has to know whether an answer is a gRPC one: requests that an admission control counts.
struct Admitted<'s> {
    clusters: BTreeSet<&'s str>,
    any: bool,
}

impl<'s> Admitted<'s> {
    fn new(specs: &'s Specs, gates: &Gates) -> Self {
        let own = specs.clusters.iter().filter(|cluster| cluster.admission.is_some());
        let clusters: BTreeSet<&str> = own.map(|cluster| cluster.name.as_str()).collect();
        let any = !clusters.is_empty() || gates.of_tables.iter().any(|table| admission::judge(table));
        Self { clusters, any }
    }

    /// Headers of answers that come from there through these gates.
    fn add(&self, source: &ClusterSource, table: &[Arc<Gate>], always: &mut Vec<String>) {
        let reached = match source.is_open() {
            true => !self.clusters.is_empty(),
            false => source.names().iter().any(|name| self.clusters.contains(name)),
        };
        if reached || admission::judge(table) {
            self.add_all(always);
        }
    }

    /// The same for whatever leads to a cluster.
    fn add_all(&self, always: &mut Vec<String>) {
        if self.any {
            always.extend(admission::WANTED.map(str::to_owned));
        }
    }
}

impl RequestPolicy {
    /// Whether a request may have several attempts under way; a trusted one may say so itself.
    #[inline]
    pub(crate) fn hedges(&self, trusted: bool, request: &RequestView<'_>) -> bool {
        let own = if trusted { request.headers.first("x-envoy-hedge-on-per-try-timeout") } else { None };
        match own {
            Some(b"true") => true,
            Some(b"false") => false,
            _ => self.hedges,
        }
    }

    /// Whether attempts, or the answer for the client, may carry headers of ours.
    pub(crate) fn marks(&self) -> bool {
        self.attempt_count_to_upstream
            || self.attempt_count_to_client
            || self.expects
            || self.timeout_retry_to_upstream
    }

    fn new(
        forward: &ForwardSpec,
        retry: Option<&RetrySpec>,
        leads: Leads,
        more: Wanted,
        wants: &mut WantSets,
    ) -> Result<Self, SpecError> {
        let default = RetrySpec::default();
        let spec = retry.unwrap_or(&default);
        let retry = RetryPolicy::compile(spec)?;
        let limit = |span: std::time::Duration| if span.is_zero() { NEVER } else { nanos(span) };
        let timed = forward.max_stream_duration.is_none();
        let timeout = if timed { limit(forward.timeout) } else { NEVER };
        let grpc = forward
            .max_grpc_timeout
            .filter(|_| timed)
            .map(|max| (nanos(max), nanos(forward.grpc_timeout_offset)));
        let limits =
            RouteLimits { timeout, per_try: limit(spec.per_try_timeout), grpc, respect_expected: false };
        let per_try = limits.resolve(HeaderView::EMPTY, false, false).per_try;
        Ok(Self {
            route: None,
            name: String::new(),
            leads,
            word: forward.word.clone(),
            missing: forward.cluster_not_found_status,
            wants: wants.responses(&retry, more),
            retry,
            timeout,
            per_try,
            per_try_idle: limit(spec.per_try_idle_timeout),
            limits,
            duration: forward.max_stream_duration.map_or(NEVER, limit),
            expects: false,
            timeout_retry_to_upstream: false,
            priority: forward.priority as u8,
            hash: HashPolicies::compile(&forward.hash_policy)?,
            attempt_count_to_upstream: false,
            attempt_count_to_client: false,
            hedges: forward.hedge.unwrap_or(false),
            grpc_stream: forward.grpc_timeout_header.map(|(max, offset)| (nanos(max), nanos(offset))),
            strict: Arc::from([]),
            rewrites: !forward.prefix_rewrite.is_empty()
                || forward.regex_rewrite.is_some()
                || !forward.host_rewrite.is_empty(),
            criteria: criteria(forward.metadata_match.as_ref()).map(Arc::new),
            gates: Vec::new(),
            session: None,
        })
    }
}

fn cluster_policies(
    specs: &Specs,
    names: &mut Names,
    detectors: &DetectorWants<'_>,
    admitted: &Admitted<'_>,
    wants: &mut WantSets,
    gates: &Gates,
) -> Result<Vec<Option<ClusterPolicy>>, SpecError> {
    let own = |cluster: &ClusterSpec| {
        let list = cluster.policy.hashing().map_or(&[][..], |hashing| &hashing.hash_policy);
        HashPolicies::compile(list).map(|own| (cluster.policy.is_by_hash(), own))
    };
    let mut list: Vec<Option<ClusterPolicy>> = Vec::new();
    for (at, cluster) in specs.clusters.iter().enumerate() {
        let index = names.cluster(&cluster.name) as usize;
        let (hashes, own_hash) = own(cluster)?;
        let retry = match &cluster.retry {
            Some(spec) => {
                let retry = RetryPolicy::compile(spec)?;
                let mut more = detectors.of(&cluster.name);
                admitted.add_all(&mut more.always);
                let wanted = wants.responses(&retry, more);
                Some((retry, wanted))
            }
            None => None,
        };
        let policy = ClusterPolicy {
            retry,
            hash: HashPolicies::compile(&cluster.hash_policy)?,
            own_hash,
            hashes,
            streams: !cluster.max_stream_duration.is_zero(),
            subsets: cluster.policy.has_subsets(),
            filters: match &cluster.policy {
                PolicySpec::Filtered(spec) => vec![(index as u32, Arc::clone(spec))],
                _ => Vec::new(),
            },
            lifecycle: cluster.lifecycle_events,
            overrides: cluster.policy.override_sources().into(),
            judged: detectors.judges(&cluster.name),
            split: detectors.splits(&cluster.name),
            own_hash_subs: Vec::new(),
            gates: gates.of_clusters.get(at).cloned().unwrap_or_default(),
        };
        if list.len() <= index {
            list.resize_with(index + 1, || None);
        }
        list[index] = Some(policy);
    }
    // What a composite reaches, through composites, and what an aggregate lists.
    let by_name: BTreeMap<&str, &ClusterSpec> = specs.clusters.iter().map(|c| (c.name.as_str(), c)).collect();
    for cluster in &specs.clusters {
        if cluster.kind == ClusterKind::Hosts {
            continue;
        }
        let mut seen: BTreeMap<&str, ()> = BTreeMap::new();
        let mut open = vec![cluster];
        while let Some(at) = open.pop() {
            for sub in at.kind.subs() {
                if seen.insert(sub, ()).is_none()
                    && let Some(sub) = by_name.get(sub.as_str())
                {
                    open.push(sub);
                }
            }
        }
        let reached: Vec<u32> =
            seen.keys().filter(|name| by_name.contains_key(*name)).map(|name| names.cluster(name)).collect();
        let reaches = |want: fn(&ClusterPolicy) -> bool| -> Vec<u32> {
            reached
                .iter()
                .copied()
                .filter(|i| list.get(*i as usize).and_then(Option::as_ref).is_some_and(want))
                .collect()
        };
        let hashes = !reaches(|p| p.hashes).is_empty();
        let streams = !reaches(|p| p.streams).is_empty();
        let subsets = !reaches(|p| p.subsets).is_empty();
        let own_hash_subs = reaches(|p| !p.own_hash.is_empty());
        let filters = reaches(|p| !p.filters.is_empty())
            .into_iter()
            .filter_map(|sub| Some(list.get(sub as usize)?.as_ref()?.filters.clone()))
            .flatten()
            .collect();
        let overrides = first_overrides(cluster, &by_name);
        let index = names.cluster(&cluster.name) as usize;
        if let Some(policy) = &mut list[index] {
            policy.hashes = hashes;
            policy.streams = streams;
            policy.subsets = subsets;
            policy.own_hash_subs = own_hash_subs;
            policy.filters = filters;
            policy.overrides = overrides;
        }
    }
    Ok(list)
}

/// The override sources of the first cluster that a composite reaches in its order.
fn first_overrides(cluster: &ClusterSpec, by_name: &BTreeMap<&str, &ClusterSpec>) -> Arc<[OverrideSource]> {
    let mut open = vec![cluster];
    while let Some(at) = open.pop() {
        match &at.kind {
            ClusterKind::Composite(subs) => {
                open.extend(subs.iter().rev().filter_map(|sub| by_name.get(sub.as_str())));
            }
            _ if at.policy.override_sources().is_empty() => {}
            _ => return at.policy.override_sources().into(),
        }
    }
    Arc::from([])
}
