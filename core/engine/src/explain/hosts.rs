//! The hosts of one cluster in the eyes of one choice.

use crate::balance::{Criteria, StageOutcome, walk_filters};
use crate::breaker::Doors;
use crate::cluster::ClusterView;
use crate::hosts::{Health, HostArena, flag};
use crate::inspect::flag_names;
use crate::outcome::resource;
use crate::request::Judge;
use crate::retry::RetryPolicy;
use crate::spec::{FilterPick, PolicySpec, StageRule, WhenAbsent};
use crate::sync::atomic::Ordering::Relaxed;

/// Hosts that one explanation names; the rest is counted.
const MOST: usize = 200;

/// The hosts of a cluster and why each may be chosen, or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostsWhy {
    /// How one is chosen.
    pub policy: &'static str,
    /// By priority.
    pub priorities: Vec<PriorityWhy>,
    /// What each filter did.
    pub filters: Vec<FilterWhy>,
    /// Nacos' protection acts: all count as healthy.
    pub protected: bool,
    /// In their order.
    pub candidates: Vec<CandidateWhy>,
    /// Hosts that are not listed here.
    pub more: usize,
    /// A host would be there if it were not set aside.
    pub cooling: bool,
}

impl HostsWhy {
    /// Whether one can be chosen of those that are listed.
    pub fn any(&self) -> bool {
        self.choosable().next().is_some()
    }

    fn choosable(&self) -> impl Iterator<Item = &CandidateWhy> {
        self.candidates.iter().filter(|host| host.left_out.is_empty() || host.at_last)
    }

    /// The limit that refuses a request whichever host is chosen, see `outcome::resource`. Hosts that come at last
    /// count when there are no others.
    pub(super) fn closed_by(&self) -> u8 {
        if self.more > 0 {
            return resource::NONE;
        }
        let first = self.choosable().any(|host| !host.at_last);
        let mut limits = self.choosable().filter(|host| !first || !host.at_last).map(|host| host.closed_by);
        let limit = limits.next().unwrap_or(resource::NONE);
        if limits.all(|other| other != resource::NONE) { limit } else { resource::NONE }
    }
}

/// One priority.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriorityWhy {
    /// Its number.
    pub priority: u32,
    /// Hosts in all.
    pub hosts: usize,
    /// Healthy ones.
    pub healthy: usize,
    /// Degraded ones.
    pub degraded: usize,
    /// Percent of the traffic that its healthy hosts get.
    pub load: u32,
    /// Percent that its degraded hosts get.
    pub degraded_load: u32,
    /// Health is not looked at.
    pub panic: bool,
}

/// One filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterWhy {
    /// Name of the stage.
    pub stage: String,
    /// The request's value; empty without one.
    pub value: String,
    /// What it did.
    pub outcome: StageOutcome,
    /// The request has no value: it kept the hosts without one.
    pub untagged: bool,
    /// Hosts left after it.
    pub left: usize,
}

/// One host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CandidateWhy {
    /// Its address.
    pub address: String,
    /// Its priority.
    pub priority: u32,
    /// Its zone; may be empty.
    pub zone: String,
    /// Its weight.
    pub weight: u32,
    /// Requests under way there.
    pub active: u32,
    /// `healthy`, or health flags as Envoy writes them.
    pub health: String,
    /// Why it cannot be chosen; empty = it can.
    pub left_out: String,
    /// It can while no other can.
    pub at_last: bool,
    /// The limit that refuses a request once it is chosen, see `outcome::resource`.
    pub closed_by: u8,
}

/// What a choice asks of hosts.
pub(super) struct Asked<'a> {
    pub(super) criteria: Option<&'a Criteria>,
    pub(super) values: &'a [Option<String>],
    pub(super) previous: Option<u32>,
    /// What a retry passes over.
    pub(super) retry: Option<Predicates<'a>>,
    /// The limits of the cluster, with the routing priority.
    pub(super) doors: (Doors<'a>, usize),
    /// Who passes hosts over that are healthy.
    pub(super) judge: &'a Judge<'a>,
}

/// The predicates of a retry, with the hosts tried.
#[derive(Clone, Copy)]
pub(super) struct Predicates<'a> {
    pub(super) policy: &'a RetryPolicy,
    /// Slot and birth.
    pub(super) tried: &'a [(u32, u32)],
    /// Addresses.
    pub(super) named: &'a [String],
}

/// Looks at every host of a cluster.
pub(super) fn hosts(view: &ClusterView, arena: &HostArena, asked: &Asked<'_>) -> HostsWhy {
    let prepared = &view.prepared;
    let at = |list: &[u32], at: usize| list.get(at).copied().unwrap_or(0);
    let priorities: Vec<PriorityWhy> = (0..)
        .zip(&view.sets)
        .map(|(priority, set)| PriorityWhy {
            priority,
            hosts: set.hosts.len(),
            healthy: set.healthy.len(),
            degraded: set.degraded.len(),
            load: at(prepared.healthy_load(), priority as usize),
            degraded_load: at(prepared.degraded_load(), priority as usize),
            panic: prepared.panics().get(priority as usize).is_some_and(|panics| *panics),
        })
        .collect();
    let walked = walk_filters(prepared, asked.values, asked.previous);
    let value = |at: usize| asked.values.get(at).cloned().flatten().filter(|value| !value.is_empty());
    let wants_none =
        |rule: &StageRule| matches!(rule, StageRule::Match(rule) if rule.absent == WhenAbsent::RequireAbsent);
    let filters: Vec<FilterWhy> = match (&view.spec.policy, &walked) {
        (PolicySpec::Filtered(spec), Some(walked)) => {
            let each = spec.stages.iter().zip(&walked.outcomes).enumerate();
            each.map(|(at, (stage, (outcome, left)))| FilterWhy {
                stage: stage.name.clone(),
                value: value(at).unwrap_or_default(),
                outcome: *outcome,
                untagged: *outcome == StageOutcome::Matched && wants_none(&stage.rule) && value(at).is_none(),
                left: *left,
            })
            .collect()
        }
        _ => Vec::new(),
    };
    let filtered = walked.is_some();
    let mut why = HostsWhy {
        policy: policy_name(&view.spec.policy),
        filters,
        protected: view.protected,
        ..HostsWhy::default()
    };
    for (set, priority) in view.sets.iter().zip(&priorities) {
        for slot in &set.hosts {
            if why.candidates.len() == MOST {
                why.more += 1;
                continue;
            }
            let Some((_, info)) = arena.info(*slot) else { continue };
            let flags = arena.flags(*slot);
            let health = flag::health(flags);
            let is_healthy = set.healthy.contains(slot);
            let by_filter = walked.as_ref().and_then(|walked| walked.dropped.get(slot));
            let by_filter = by_filter.map(|stage| format!("the filter {stage} left it out"));
            let by_subset = asked.criteria.filter(|_| has_subsets(&view.spec.policy)).and_then(|criteria| {
                let fields = criteria.fields().iter();
                let misses = fields.into_iter().find(|(key, wanted)| info.metadata.lb(key) != Some(wanted));
                misses.map(|(key, _)| format!("its metadata {key} is not what the request asks for"))
            });
            let by_health = match health {
                _ if is_healthy || (priority.panic && !filtered) => None,
                Health::Degraded if filtered || priority.degraded_load > 0 => None,
                Health::Degraded => Some("degraded, and healthy hosts can take the load".to_owned()),
                Health::Unhealthy | Health::Healthy => Some(format!("unhealthy: {}", flag_names(flags))),
            };
            let by_load = (priority.load == 0 && priority.degraded_load == 0 && !priority.panic && !filtered)
                .then(|| format!("priority {} gets no traffic now", priority.priority));
            let by_retry = asked.retry.and_then(|Predicates { policy: retry, tried, named }| {
                let birth = arena.facts(*slot).birth.load(Relaxed);
                let was = tried.contains(&(*slot, birth)) || named.contains(&info.address);
                if view.spec.exclude_tried && was {
                    return Some("this request tried it; taken again only when there is no other".to_owned());
                }
                if retry.previous_hosts && was {
                    return Some("this request tried it; taken again only when no other is drawn".to_owned());
                }
                let canary = retry.omit_canary_hosts && flags & flag::CANARY != 0;
                let omitted = canary || retry.omits(info.metadata.0.get("envoy.lb"));
                omitted.then(|| "a predicate of the retry policy omits it".to_owned())
            });
            let (by_steer, at_last) = match asked.judge.words(*slot) {
                Some((words, at_last)) => (Some(words), at_last),
                None => (None, false),
            };
            let never = by_filter.or(by_subset).or(by_health).or(by_load);
            let hard = by_steer.clone().filter(|_| !at_last);
            why.cooling |= never.is_none() && hard.is_some();
            let never = never.or(hard);
            let at_last = never.is_none() && (by_steer.is_some() || by_retry.is_some());
            why.candidates.push(CandidateWhy {
                address: info.address.clone(),
                priority: priority.priority,
                zone: info.locality.zone.clone(),
                weight: info.weight,
                active: arena.load(*slot).active(),
                health: flag_names(flags),
                left_out: never.or(by_retry).or(by_steer).unwrap_or_default(),
                at_last,
                closed_by: asked.doors.0.closed_by(*slot, asked.doors.1),
            });
        }
    }
    why.priorities = priorities;
    why
}

fn has_subsets(policy: &PolicySpec) -> bool {
    match policy {
        PolicySpec::Subset(_) => true,
        PolicySpec::Filtered(spec) => {
            matches!(&spec.pick, FilterPick::Policy(inner) if has_subsets(inner))
        }
        _ => false,
    }
}

/// The name by which documents know a policy.
pub fn policy_name(policy: &PolicySpec) -> &'static str {
    match policy {
        PolicySpec::RoundRobin { .. } => "round_robin",
        PolicySpec::LeastRequest { .. } => "least_request",
        PolicySpec::Random { .. } => "random",
        PolicySpec::RingHash { .. } => "ring_hash",
        PolicySpec::Maglev { .. } => "maglev",
        PolicySpec::WeightedRandom => "weighted_random",
        PolicySpec::PeakEwma(_) => "peak_ewma",
        PolicySpec::RendezvousHash => "rendezvous_hash",
        PolicySpec::DeterministicAperture(_) => "deterministic_aperture",
        PolicySpec::ClientSideWeighted(_) => "client_side_weighted_round_robin",
        PolicySpec::LoadAwareLocality(_) => "load_aware_locality",
        PolicySpec::OverrideHost(_) => "override_host",
        PolicySpec::Subset(subset) => policy_name(&subset.child),
        PolicySpec::Filtered(spec) => match &spec.pick {
            FilterPick::Policy(policy) => policy_name(policy),
            FilterPick::Rotation => "rotation",
            FilterPick::Interleave => "interleave",
        },
        PolicySpec::ClusterProvided => "composite",
    }
}
