//! Which host: one file per policy behind [`Scheduler`], shared parts each in a file of its own.
//!
//! A new policy is a file with a `Policy` and a line in the list of `policies!`; one that arranges hosts
//! beforehand has a kind in `prepared`, too.

mod aperture;
pub(crate) mod client_weights;
mod consistent;
mod criteria;
mod edf;
mod filters;
mod least_request;
mod linear;
mod load_aware;
mod locality_weighted;
mod modulus;
mod override_host;
mod peak_ewma;
mod per_list;
mod prepared;
mod priority;
mod random;
mod round_robin;
mod routing;
mod slow_start;
mod subset;
mod subsets;
mod weighted;
mod weighted_random;
mod zone;

#[cfg(test)]
pub(crate) mod properties;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod vectors;

pub use crate::hash::Sizes;
pub use criteria::Criteria;
pub use filters::{FilterCall, StageOutcome};
pub(crate) use filters::{Told as FilterTold, text as filter_text, walk_filters};
pub(crate) use linear::{Linear, Parts};
pub(crate) use override_host::Overrides;
pub use prepared::Prepared;
pub use priority::PriorityLoad;
use routing::Routing;
pub(crate) use subsets::SubsetCounts;
pub use zone::{Local, ZoneRuntime};

use crate::clock::Time;
use crate::hosts::HostArena;
use crate::random::{Random as _, Source};
use crate::sets::HostSet;
use crate::spec::PolicySpec;
use crate::stats::ClusterCounters;

/// A cluster as a balancer sees it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The policy.
    pub policy: &'a PolicySpec,
    /// By priority.
    pub sets: &'a [HostSet],
    /// Of the same snapshot as `sets`.
    pub prepared: &'a Prepared,
    /// Where slots lead.
    pub hosts: &'a HostArena,
    /// When this cluster began to be balanced by this policy.
    pub since: Time,
}

/// One selection: what the request brings, what the balancer leaves.
pub struct Selection<'a> {
    /// The request's hash, if any.
    pub hash: Option<u64>,
    /// What it asks of metadata, if anything.
    pub criteria: Option<&'a Criteria>,
    /// What it brings to filters, under that policy.
    pub filters: Option<&'a FilterCall<'a>>,
    /// Hosts that it lists by address.
    pub(crate) overrides: Option<&'a Overrides>,
    /// Words for this selection.
    pub random: &'a mut Source,
    /// Now.
    pub now: Time,
    /// Candidates to examine: 1 on first attempts, `host_selection_retry_max_attempts` + 1 on retries.
    pub candidates: u32,
    /// Whether a retry predicate rejects a host; not asked on first attempts.
    pub reject: Option<&'a dyn Fn(u32) -> bool>,
    /// Active requests of the cluster (bounded load).
    pub cluster_active: u32,
    /// Divides the load over priorities instead of the cluster's own division (retry priorities).
    pub load: Option<&'a PriorityLoad>,
    /// The cluster's counters in this worker.
    pub counters: &'a ClusterCounters,
    /// Left by the balancer: the priority of the last candidate.
    pub priority: u32,
    /// Left by the balancer: that priority panicked.
    pub panic: bool,
    /// Left by the balancer: a degraded host was chosen as such.
    pub degraded: bool,
}

impl<'a> Selection<'a> {
    /// The same selection for a shorter while.
    fn reborrow(&mut self) -> Selection<'_> {
        Selection { random: &mut *self.random, ..*self }
    }

    /// Examines candidates until one is not rejected (section 8.1): the last one when all are, none as soon as
    /// there is none. `candidate` gets the number of the candidate, from 0.
    #[inline]
    fn examine(&mut self, mut candidate: impl FnMut(&mut Self, u32) -> Option<u32>) -> Option<u32> {
        match self.reject {
            None => candidate(self, 0),
            Some(reject) => self.examine_each(reject, &mut candidate),
        }
    }

    /// Apart, so that the frequent case is laid out without a loop.
    #[inline(never)]
    fn examine_each(
        &mut self,
        reject: &dyn Fn(u32) -> bool,
        candidate: &mut dyn FnMut(&mut Self, u32) -> Option<u32>,
    ) -> Option<u32> {
        let mut last = None;
        for number in 0..self.candidates {
            let slot = candidate(self, number)?;
            if !reject(slot) {
                return Some(slot);
            }
            last = Some(slot);
        }
        last
    }
}

/// Which hosts a search may end with.
type Accept<'a> = &'a dyn Fn(u32) -> bool;

/// A policy's own state in one worker. What may be shared is in [`Prepared`].
trait Policy: Sized {
    /// Draws in the order of section 4.
    fn new(view: View<'_>, random: &mut Source, now: Time) -> Self;

    /// Takes over a newer snapshot of the same cluster under the same policy (section 3.2).
    fn refresh(&mut self, view: View<'_>, random: &mut Source, now: Time);

    /// One whole selection. Not to be inlined: the frame of one policy would be every policy's.
    fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32>;

    /// How this policy comes from a draw to a list of hosts; `None` = by a way of its own.
    fn routing(&self) -> Option<&Routing> {
        None
    }

    /// A host that `accept` takes among all that a selection may end with; `None` only when there is none. By
    /// default each is as likely as any other.
    fn search(&mut self, view: View<'_>, selection: &mut Selection<'_>, accept: Accept<'_>) -> Option<u32> {
        let found = self.routing()?.search(view, selection, accept)?;
        let at = selection.random.next_u64().checked_rem(found.hosts.len() as u64)?;
        found.hosts.get(at as usize).copied()
    }
}

/// Makes the one place that knows every policy: a variant of [`PolicySpec`] and the type that balances for it.
macro_rules! policies {
    ($($variant:ident => $policy:ty,)*) => {
        enum State { $($variant($policy),)* }

        impl State {
            fn new(view: View<'_>, random: &mut Source, now: Time) -> Self {
                match view.policy {
                    $(PolicySpec::$variant { .. } => Self::$variant(<$policy>::new(view, random, now)),)*
                }
            }

            fn refresh(&mut self, view: View<'_>, random: &mut Source, now: Time) {
                match self {
                    $(Self::$variant(policy) => policy.refresh(view, random, now),)*
                }
            }

            #[inline]
            fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
                match self {
                    $(Self::$variant(policy) => policy.choose(view, selection),)*
                }
            }

            fn search(
                &mut self,
                view: View<'_>,
                selection: &mut Selection<'_>,
                accept: Accept<'_>,
            ) -> Option<u32> {
                match self {
                    $(Self::$variant(policy) => policy.search(view, selection, accept),)*
                }
            }
        }
    };
}

policies! {
    RoundRobin => weighted::Weighted<round_robin::RoundRobin>,
    LeastRequest => weighted::Weighted<least_request::LeastRequest>,
    Random => random::Random,
    RingHash => consistent::Consistent<crate::hash::ring::Ring>,
    Maglev => consistent::Consistent<crate::hash::maglev::Table>,
    PeakEwma => peak_ewma::PeakEwma,
    RendezvousHash => consistent::Consistent<crate::hash::rendezvous::Scores>,
    DeterministicAperture => aperture::Aperture,
    WeightedRandom => weighted_random::WeightedRandom,
    Filtered => filters::Filtered,
    Subset => subset::Subset,
    ClientSideWeighted => weighted::Weighted<round_robin::RoundRobin>,
    LoadAwareLocality => load_aware::LoadAware,
    OverrideHost => override_host::OverrideHost,
    ClusterProvided => Nothing,
}

/// Chooses hosts of one cluster in one worker.
pub struct Scheduler {
    state: State,
    policy: PolicySpec,
}

impl Scheduler {
    /// A scheduler at its start; draws in the order of section 4.
    pub fn new(view: View<'_>, random: &mut Source, now: Time) -> Self {
        Self { state: State::new(view, random, now), policy: view.policy.clone() }
    }

    /// Takes over a newer snapshot of the same cluster. Only priorities whose [`HostSet::version`] moved are
    /// rebuilt; what survives that and what restarts is in section 3.2. Another policy, or the same one
    /// configured differently, starts anew.
    pub fn refresh(&mut self, view: View<'_>, random: &mut Source, now: Time) {
        if self.policy == *view.policy {
            self.state.refresh(view, random, now);
        } else {
            *self = Self::new(view, random, now);
        }
    }

    /// The slot of the chosen host; `None` when there is no host to choose.
    ///
    /// `view` is the one of the last [`Scheduler::new`] or [`Scheduler::refresh`].
    #[inline]
    pub fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        self.state.choose(view, selection)
    }

    /// See [`Policy::search`].
    fn search(&mut self, view: View<'_>, selection: &mut Selection<'_>, accept: Accept<'_>) -> Option<u32> {
        self.state.search(view, selection, accept)
    }

    /// The same for a retry that shall not meet a tried host while any other can be had. What draws miss is searched
    /// for: first among hosts that no predicate rejects, then among all.
    #[cold]
    pub fn choose_untried(
        &mut self,
        view: View<'_>,
        selection: &mut Selection<'_>,
        tried: &dyn Fn(u32) -> bool,
    ) -> Option<u32> {
        let reject = selection.reject;
        let refuses = |slot: u32| tried(slot) || reject.is_some_and(|reject| reject(slot));
        let mut attempt = Selection { reject: Some(&refuses), ..selection.reborrow() };
        let drawn = self.choose(view, &mut attempt);
        let place = (attempt.priority, attempt.panic, attempt.degraded);
        let found = match drawn {
            Some(slot) if !tried(slot) => drawn,
            _ => {
                let whole = self.search(view, &mut attempt, &|slot| !refuses(slot));
                whole.or_else(|| self.search(view, &mut attempt, &|slot| !tried(slot)))
            }
        };
        let found_at = (attempt.priority, attempt.panic, attempt.degraded);
        (selection.priority, selection.panic, selection.degraded) =
            if found.is_some() { found_at } else { place };
        found.or(drawn)
    }
}

/// `ClusterProvided`: hosts are chosen in the clusters that a composite or aggregate names, never here.
struct Nothing;

impl Policy for Nothing {
    fn new(_: View<'_>, _: &mut Source, _: Time) -> Self {
        Self
    }

    fn refresh(&mut self, _: View<'_>, _: &mut Source, _: Time) {}

    fn choose(&mut self, _: View<'_>, _: &mut Selection<'_>) -> Option<u32> {
        None
    }
}
