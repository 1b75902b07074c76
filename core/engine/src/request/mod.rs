//! One downstream request: its attempts, its budget of time and retries (`spec/retry-and-timeouts.md`).

pub(crate) mod cell;
pub(crate) mod slab;
pub(crate) mod state;

mod aside;
mod begin;
mod choose;
mod close;
mod filters;
mod head;
mod hedge;
mod lead;
mod measure;
mod opt_in;
mod pick;
mod report;
mod session;
mod steer;
mod tell;
#[cfg(test)]
mod tests;
mod trail;
mod wanted;

use crate::breaker::{Ask, Grant, Promotions};
use crate::clock::Time;
use crate::engine::Core;
use crate::ids::Id;
use crate::outcome::{Decision, Misuse, bits};
use crate::policies::{ClusterPolicy, Policies, RequestPolicy};
use crate::random::Source;
use crate::retry::RetryPolicy;
use crate::snapshot::Snapshot;
use crate::worker::WorkerCluster;
use slab::{Slab, Slot, Stock};

pub(crate) use begin::is_grpc;
pub use begin::{Stateless, UNKNOWN_TARGET};
pub(crate) use measure::Measures;
pub(crate) use opt_in::would;
use report::Decided;
pub use report::Report;
#[cfg(test)]
pub(crate) use report::grpc_to_http;
pub(crate) use session::Session;

pub(crate) use filters::{previous as filter_previous, values as filter_values};
pub(crate) use lead::Again;
pub(crate) use state::{Course, End, Phase, State};
use std::sync::Arc;
pub(crate) use steer::{Asks, Judge};

/// One call on its way through the engine: the worker's parts, taken apart so that they can be used together.
pub(crate) struct Walk<'a> {
    pub(crate) core: &'a Core,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) random: &'a mut Source,
    pub(crate) clusters: &'a mut [WorkerCluster],
    pub(crate) free: &'a mut Stock,
    pub(crate) now: Time,
}

impl Policies {
    #[inline]
    pub(crate) fn request(&self, state: &State) -> &RequestPolicy {
        &self.list[state.policy as usize]
    }

    #[inline]
    pub(crate) fn cluster(&self, index: u32) -> Option<&ClusterPolicy> {
        self.clusters.get(index as usize)?.as_ref()
    }

    /// The retry policy in force: the cluster's own replaces the route's.
    #[inline]
    pub(crate) fn retry(&self, state: &State) -> &RetryPolicy {
        self.retry_of(state.policy, state.home)
    }

    pub(crate) fn retry_of(&self, policy: u32, cluster: u32) -> &RetryPolicy {
        match self.cluster(cluster).and_then(|own| own.retry.as_ref()) {
            Some((retry, _)) => retry,
            None => &self.list[policy as usize].retry,
        }
    }
}

impl<'a> Walk<'a> {
    /// The policies a request was made with. Those of an earlier update are found under a lock, and `kept`.
    #[inline]
    pub(crate) fn made<'k>(
        &self,
        state: &State,
        kept: &'k mut Option<Arc<Policies>>,
    ) -> Result<&'k Policies, Misuse>
    where
        'a: 'k,
    {
        let snapshot: &'a Snapshot = self.snapshot;
        if snapshot.policies.generation == state.policies {
            return Ok(&snapshot.policies);
        }
        *kept = self.core.earlier_policies(state.policies);
        kept.as_deref().ok_or(Misuse::Ended)
    }

    /// What it takes to ask for, or give back, a permit at a host.
    #[inline]
    pub(crate) fn ask(&self, cluster: u32, slot: u32, routing: u8) -> Ask<'_> {
        let entry = &self.snapshot.clusters[cluster as usize];
        let p = usize::from(routing);
        let (members, limits, per_host, streams, strict) = match &entry.view {
            Some(view) => (
                &view.members[..],
                &view.limits[p],
                view.spec.breakers.per_host_max_connections[p].unwrap_or(u32::MAX),
                view.streams,
                view.strict,
            ),
            None => (&[][..], &self.core.no_limits, u32::MAX, 1, false),
        };
        Ask {
            hosts: &self.core.hosts,
            slot,
            priority: routing,
            members,
            ledger: &entry.shared.ledgers[p],
            limits,
            per_host,
            streams,
            queues: &entry.shared.queues,
            counters: &self.clusters[cluster as usize].counters,
            strict,
            both_overflows: self.snapshot.runtime.both_overflows,
        }
    }

    /// The slot of a live request, with its state locked.
    #[inline]
    pub(crate) fn find(core: &'a Core, id: Id) -> Result<&'a Slot, Misuse> {
        if id.engine != core.settings.index {
            return Err(Misuse::Invalid);
        }
        if core.slot_lost(id.slot) {
            return Err(Misuse::Ended);
        }
        core.slab.get(id.slot).ok_or(Misuse::Ended)
    }

    #[inline]
    pub(crate) fn signals(&self) -> u16 {
        let mut signals = 0;
        if self.core.ready.any() {
            signals |= bits::WAKE;
        }
        if self.core.events.pending() {
            signals |= bits::EVENTS;
        }
        signals
    }
}

/// Grants reach waiters through their slots.
pub(crate) struct Waiters<'a> {
    pub(crate) slab: &'a Slab,
    pub(crate) ready: &'a crate::engine::ReadyList,
}

impl Promotions for Waiters<'_> {
    fn grant(&self, request: u64) -> Option<&Grant> {
        Some(&self.slab.get(Id::unpack(request).slot)?.grant)
    }

    fn wake(&self, request: u64) {
        self.ready.push(request);
    }
}

/// An answer to be, empty but for the size its caller gave.
#[inline]
pub(crate) fn clear(out: &mut Decision) {
    *out = Decision { struct_size: out.struct_size, ..Decision::default() };
}
