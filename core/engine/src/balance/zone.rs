//! Zone-aware routing (section 12): how much of the traffic of this node stays in its own zone.

use super::Selection;
use crate::hosts::HostArena;
use crate::random::Random;
use crate::sets::{HostSet, LocalityHosts};
use crate::spec::{LocalityBalancing, PolicySpec, ZoneAware};
use crate::stats::Counter;
use std::sync::Arc;

/// Shares are in parts of this.
const WHOLE: u64 = 10_000;

/// The local cluster, as updates of another cluster see it.
#[derive(Clone, Copy, Debug)]
pub struct Local<'a> {
    /// Its priority 0.
    pub set: &'a HostSet,
    /// Runtime values that win over every cluster's own.
    pub runtime: ZoneRuntime,
}

/// `upstream.zone_routing.*`; `None` = not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneRuntime {
    /// `enabled`, percent.
    pub enabled: Option<u64>,
    /// `min_cluster_size`.
    pub min_cluster_size: Option<u64>,
    /// `force_local_zone.min_size`; 0 is as if it were not set.
    pub force_local_zone: Option<u32>,
}

/// Routing by zone as one cluster does it now.
pub(super) struct Zone {
    /// Percent of the picks that are routed by zone at all.
    enabled: u64,
    fail_traffic_on_panic: bool,
    /// Too few hosts of the local cluster are usable.
    local_panics: bool,
    table: Arc<Table>,
}

/// What one computation gave.
pub(super) struct Table {
    from: From,
    pub(super) state: Option<State>,
    /// Counted once by every balancer that takes this over.
    pub(super) counted: Option<Counter>,
    /// Tells one computation from the next.
    pub(super) serial: u64,
}

/// What a table was computed from.
#[derive(PartialEq)]
struct From {
    upstream: u64,
    local: u64,
    params: ZoneAware,
    runtime: ZoneRuntime,
}

/// Where picks go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    /// All to the own zone.
    Direct,
    /// Part to the own zone, the rest to where there is room.
    Residual {
        /// Of [`WHOLE`].
        to_local: u64,
        /// By locality, added up from the first one on.
        room: Vec<u64>,
    },
}

/// What became of a pick.
pub(super) enum Routed {
    /// Not routed by zone: any host of the priority.
    Flat,
    /// No host.
    Refused,
    /// A host of this locality.
    Locality(u32),
}

impl Zone {
    /// Looks at a cluster's priority 0. `below`: the local cluster has too few usable hosts. What held before is
    /// kept while nothing changed.
    pub(super) fn build(
        policy: &PolicySpec,
        upstream: &HostSet,
        local: Local<'_>,
        local_panics: bool,
        hosts: &HostArena,
        previous: Option<&Self>,
    ) -> Option<Self> {
        let params = params(policy)?;
        let from = From {
            upstream: upstream.version,
            local: local.set.version,
            params: params.clone(),
            runtime: local.runtime,
        };
        let previous = previous.map(|previous| &previous.table);
        let table = match previous.filter(|table| table.from == from) {
            Some(table) => Arc::clone(table),
            None => {
                let (state, counted) = match compute(&params, local.runtime, upstream, local.set, hosts) {
                    Ok(state) => (Some(state), None),
                    Err(counted) => (None, counted),
                };
                let serial = previous.map_or(1, |table| table.serial + 1);
                Arc::new(Table { from, state, counted, serial })
            }
        };
        let enabled = local.runtime.enabled.unwrap_or_else(|| u64::from(params.routing_enabled));
        Some(Self { enabled, fail_traffic_on_panic: params.fail_traffic_on_panic, local_panics, table })
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// Whether picks of priority 0 are routed by zone at all.
    pub(super) fn acts(&self) -> bool {
        self.table.state.is_some()
    }

    /// Whether picks go to the own zone alone; `None` when they are not routed by zone, or none begin there.
    pub(super) fn own(&self) -> Option<bool> {
        if self.enabled == 0 || self.local_panics {
            return None;
        }
        match self.table.state.as_ref()? {
            State::Direct => Some(self.enabled >= 100),
            State::Residual { to_local, .. } => (*to_local > 0).then_some(false),
        }
    }

    /// One pick (sections 9 and 12.4).
    pub(super) fn route(&self, selection: &mut Selection<'_>) -> Routed {
        let Some(state) = &self.table.state else { return Routed::Flat };
        let enabled =
            self.enabled >= 100 || (self.enabled > 0 && selection.random.next_u64() % 100 < self.enabled);
        if !enabled {
            return Routed::Flat;
        }
        if self.local_panics {
            selection.counters.count(Counter::LbLocalClusterNotOk);
            return if self.fail_traffic_on_panic { Routed::Refused } else { Routed::Flat };
        }
        Routed::Locality(state.pick(selection))
    }
}

impl State {
    fn pick(&self, selection: &mut Selection<'_>) -> u32 {
        let Self::Residual { to_local, room } = self else {
            selection.counters.count(Counter::LbZoneRoutingAllDirectly);
            return 0;
        };
        if selection.random.next_u64() % WHOLE < *to_local {
            selection.counters.count(Counter::LbZoneRoutingSampled);
            return 0;
        }
        selection.counters.count(Counter::LbZoneRoutingCrossZone);
        let total = room.last().copied().unwrap_or(0);
        if total == 0 {
            selection.counters.count(Counter::LbZoneNoCapacityLeft);
            return selection.random.next_u64().checked_rem(room.len() as u64).unwrap_or(0) as u32;
        }
        let at = selection.random.next_u64() % total;
        room.partition_point(|upto| *upto <= at) as u32
    }
}

/// The zone settings of a policy; `None` = it never routes by zone.
fn params(policy: &PolicySpec) -> Option<ZoneAware> {
    let locality = match policy {
        PolicySpec::RoundRobin { locality, .. }
        | PolicySpec::LeastRequest { locality, .. }
        | PolicySpec::Random { locality } => locality,
        PolicySpec::PeakEwma(_) => &LocalityBalancing::None,
        PolicySpec::ClientSideWeighted(spec) => &spec.locality,
        PolicySpec::RingHash { .. }
        | PolicySpec::Maglev { .. }
        | PolicySpec::RendezvousHash
        | PolicySpec::DeterministicAperture(_)
        | PolicySpec::WeightedRandom
        | PolicySpec::Filtered(_)
        | PolicySpec::Subset(_)
        | PolicySpec::OverrideHost(_)
        | PolicySpec::LoadAwareLocality(_)
        | PolicySpec::ClusterProvided => return None,
    };
    Some(match locality {
        LocalityBalancing::ZoneAware(zone) => zone.clone(),
        LocalityBalancing::None | LocalityBalancing::Weighted => ZoneAware::default(),
    })
}

/// Section 12.2; the error is what is counted instead.
pub(super) fn compute(
    params: &ZoneAware,
    runtime: ZoneRuntime,
    upstream: &HostSet,
    local: &HostSet,
    hosts: &HostArena,
) -> Result<State, Option<Counter>> {
    let force = runtime.force_local_zone.filter(|size| *size > 0).or(params.force_local_zone);
    if upstream.localities.len() < 2 || (force.is_none() && local.localities.len() < 2) {
        return Err(None);
    }
    if !local.has_local || local.localities.first().is_none_or(|zone| zone.hosts.is_empty()) {
        return Err(Some(Counter::LbLocalClusterNotOk));
    }
    if (upstream.healthy.len() as u64) < runtime.min_cluster_size.unwrap_or(params.min_cluster_size) {
        return Err(Some(Counter::LbZoneClusterTooSmall));
    }
    let shares = shares(params, upstream, local, hosts);
    let own = shares.first().filter(|_| upstream.has_local);
    let forced = force.is_some_and(|size| {
        upstream.has_local && upstream.localities[0].healthy.len() as u64 >= u64::from(size)
    });
    if forced || own.is_some_and(|share| share.upstream > 0 && share.upstream >= share.local) {
        return Ok(State::Direct);
    }
    let to_local = own.and_then(|share| (share.upstream * WHOLE).checked_div(share.local)).unwrap_or(0);
    let mut sum = 0;
    let room = shares.iter().enumerate().map(|(at, share)| {
        if at > 0 || !upstream.has_local {
            sum += share.upstream.saturating_sub(share.local);
        }
        sum
    });
    let room = room.collect();
    Ok(State::Residual { to_local, room })
}

/// What part of the hosts a locality has, in parts of [`WHOLE`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) upstream: u64,
    pub(super) local: u64,
}

/// By locality of the upstream cluster.
pub(super) fn shares(
    params: &ZoneAware,
    upstream: &HostSet,
    local: &HostSet,
    hosts: &HostArena,
) -> Vec<Share> {
    let count = |list: &[u32]| {
        if params.by_weight {
            list.iter().map(|slot| u64::from(hosts.weight(*slot))).sum::<u64>()
        } else {
            list.len() as u64
        }
    };
    let (all, all_local) = (count(&upstream.healthy), count(&local.healthy));
    let share = |part: u64, all: u64| (part * WHOLE).checked_div(all).unwrap_or(0);
    let of = |zone: &LocalityHosts| {
        if zone.healthy.is_empty() {
            return Share { upstream: 0, local: 0 };
        }
        let same = local.localities.iter().find(|other| other.locality == zone.locality);
        Share {
            upstream: share(count(&zone.healthy), all),
            local: share(same.map_or(0, |zone| count(&zone.healthy)), all_local),
        }
    };
    upstream.localities.iter().map(of).collect()
}
