//! What one update computes for all workers.

use super::filters::Index;
use super::load_aware::{LoadCounts, Zones};
use super::priority::{Division, Loads, PriorityLoad, is_below};
use super::subsets::{SubsetCounts, Subsets};
use super::zone::Zone;
use super::{Local, Sizes};
use crate::clock::Time;
use crate::hash::Structure;
use crate::hash::maglev::{Table, TableSize};
use crate::hash::members::Members;
use crate::hash::rendezvous::Scores;
use crate::hash::ring::{Ring, RingParams};
use crate::hosts::HostArena;
use crate::sets::HostSet;
use crate::spec::{ConsistentHashing, PolicySpec};
use crate::stats::{ClusterCounters, Counter};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// What is computed once per update and shared by all workers: priority loads, panic flags, rings, tables.
pub struct Prepared {
    loads: Loads,
    division: Division,
    /// All traffic goes to healthy hosts of priority 0.
    simple: bool,
    arranged: Arranged,
    /// Zone-aware routing of priority 0; `None` without a local cluster.
    zone: Option<Box<Zone>>,
    /// Slot and priority by address, once somebody asks.
    addresses: OnceLock<BTreeMap<String, (u32, u32)>>,
}

/// Hosts as a hash policy arranges them, by priority.
enum Arranged {
    /// Not under this policy.
    No,
    Rings(Arrangement<Ring>),
    Tables(Arrangement<Table>),
    Scores(Arrangement<Scores>),
    Subsets(Box<Subsets>),
    Filters(Box<Index>),
    Zones(Box<Zones>),
}

/// Every priority's structure.
pub(super) struct Arrangement<S: Structure> {
    params: S::Params,
    priorities: Vec<Place<S>>,
}

/// One priority's structure and the hosts that its numbers stand for.
pub(super) struct Place<S> {
    pub(super) members: Members,
    pub(super) structure: Arc<S>,
}

/// A structure that some policy keeps in [`Prepared`].
pub(super) trait Kept: Structure {
    /// The structures of all priorities, when the policy has this kind.
    fn of(prepared: &Prepared) -> Option<&Arrangement<Self>>;
}

/// Makes the one place that says where each kind is kept.
macro_rules! kept {
    ($($structure:ty => $variant:ident,)*) => {
        $(impl Kept for $structure {
            #[inline]
            fn of(prepared: &Prepared) -> Option<&Arrangement<Self>> {
                match &prepared.arranged {
                    Arranged::$variant(arrangement) => Some(arrangement),
                    _ => None,
                }
            }
        })*
    };
}

kept! {
    Ring => Rings,
    Table => Tables,
    Scores => Scores,
}

impl Prepared {
    /// Computes everything anew. `panic_threshold` is in percent, above 100 acts as 100. `previous` is what held
    /// before this update: loads that section 6.4 keeps come from it, and so does every ring or table whose
    /// hosts are the same. `local`: the local cluster, when there is one and this is another.
    pub fn build(
        policy: &PolicySpec,
        panic_threshold: u32,
        sets: &[HostSet],
        hosts: &HostArena,
        local: Option<Local<'_>>,
        previous: Option<&Self>,
    ) -> Self {
        let policy = policy.below_overrides();
        let loads = Loads::compute(sets, panic_threshold, hosts, previous.map(|previous| &previous.loads));
        let division = Division::new(&loads.healthy, &loads.degraded);
        let members = |hashing: &ConsistentHashing, locality_weighted: bool| {
            let members = |(set, panic): (&HostSet, &bool)| {
                Members::collect(set, *panic, locality_weighted, hashing.use_hostname, hosts)
            };
            sets.iter().zip(&loads.panics).map(members).collect::<Vec<_>>()
        };
        let arranged = match policy {
            PolicySpec::RingHash {
                hash_function,
                minimum_ring_size,
                maximum_ring_size,
                hashing,
                locality_weighted,
            } => {
                let params = RingParams {
                    function: *hash_function,
                    minimum: *minimum_ring_size,
                    maximum: *maximum_ring_size,
                };
                let members = members(hashing, *locality_weighted);
                Arranged::Rings(Arrangement::build(params, members, previous.and_then(Ring::of)))
            }
            PolicySpec::Maglev { table_size, hashing, locality_weighted } => {
                let members = members(hashing, *locality_weighted);
                let previous = previous.and_then(Table::of);
                Arranged::Tables(Arrangement::build(TableSize(*table_size), members, previous))
            }
            PolicySpec::RendezvousHash => {
                let members = members(&ConsistentHashing::default(), false);
                Arranged::Scores(Arrangement::build((), members, previous.and_then(Scores::of)))
            }
            PolicySpec::Subset(spec) => {
                let previous = previous.and_then(Self::subsets);
                let subsets = Subsets::build(spec, panic_threshold, sets, hosts, local, previous);
                Arranged::Subsets(Box::new(subsets))
            }
            PolicySpec::Filtered(spec) => {
                let previous = previous.and_then(Self::filters);
                Arranged::Filters(Box::new(Index::build(spec, sets, hosts, previous)))
            }
            PolicySpec::LoadAwareLocality(spec) => {
                let previous = previous.and_then(Self::zones);
                Arranged::Zones(Box::new(Zones::build(spec, sets, hosts, local, previous)))
            }
            PolicySpec::RoundRobin { .. }
            | PolicySpec::LeastRequest { .. }
            | PolicySpec::Random { .. }
            | PolicySpec::PeakEwma(_)
            | PolicySpec::DeterministicAperture(_)
            | PolicySpec::WeightedRandom
            | PolicySpec::ClientSideWeighted(_)
            | PolicySpec::OverrideHost(_)
            | PolicySpec::ClusterProvided => Arranged::No,
        };
        let zone = local.zip(sets.first()).and_then(|(local, upstream)| {
            let below = is_below(local.set, panic_threshold.min(100));
            let previous = previous.and_then(|previous| previous.zone.as_deref());
            Zone::build(policy, upstream, local, below, hosts, previous).map(Box::new)
        });
        let plain = loads.healthy.first() == Some(&100) && !loads.panics.contains(&true);
        let simple = plain && !zone.as_ref().is_some_and(|zone| zone.acts());
        Self { loads, division, simple, arranged, zone, addresses: OnceLock::new() }
    }

    /// Which computation of zone-aware routing this holds; 0 = none. Every balancer counts each once.
    pub(crate) fn zone_serial(&self) -> u64 {
        let own = self.zone.as_ref().map_or(0, |zone| zone.table().serial);
        let inner = self.subsets().into_iter().flat_map(|subsets| &subsets.children);
        inner.map(|child| child.prepared.zone_serial()).fold(own, u64::wrapping_add)
    }

    /// Counts one computation of zone-aware routing.
    pub(crate) fn count_zone(&self, counters: &ClusterCounters) {
        for child in self.subsets().into_iter().flat_map(|subsets| &subsets.children) {
            child.prepared.count_zone(counters);
        }
        let Some(zone) = &self.zone else { return };
        counters.count(Counter::LbRecalculateZoneStructures);
        if let Some(counter) = zone.table().counted {
            counters.count(counter);
        }
    }

    /// Every subset, under that policy.
    pub(super) fn subsets(&self) -> Option<&Subsets> {
        match &self.arranged {
            Arranged::Subsets(subsets) => Some(subsets),
            _ => None,
        }
    }

    /// The hosts as filters see them, under that policy.
    pub(crate) fn filters(&self) -> Option<&Index> {
        match &self.arranged {
            Arranged::Filters(index) => Some(index),
            _ => None,
        }
    }

    /// Localities by load, under that policy.
    pub(super) fn zones(&self) -> Option<&Zones> {
        match &self.arranged {
            Arranged::Zones(zones) => Some(zones),
            _ => None,
        }
    }

    /// How often load-aware weights were computed, and with what result.
    pub(crate) fn load_counts(&self) -> Option<LoadCounts> {
        self.zones().map(Zones::counts)
    }

    /// Computes load-aware weights anew, for the first time only unless `again`.
    pub(crate) fn weigh_zones(&mut self, sets: &[HostSet], hosts: &HostArena, now: Time, again: bool) {
        match &mut self.arranged {
            Arranged::Zones(zones) if again || !zones.has_ticked() => zones.tick(sets, hosts, now),
            Arranged::Subsets(subsets) => {
                for child in &mut subsets.children {
                    child.prepared.weigh_zones(&child.sets, hosts, now, again);
                }
            }
            _ => {}
        }
    }

    /// How often subsets came and went, how many there are, and how many hosts those of one host leave out.
    pub(crate) fn subset_counts(&self) -> Option<SubsetCounts> {
        self.subsets().map(Subsets::counts)
    }

    /// The first host at an address, in any priority: its slot and priority.
    pub(crate) fn at_address(
        &self,
        sets: &[HostSet],
        hosts: &HostArena,
        address: &str,
    ) -> Option<(u32, u32)> {
        let addresses = self.addresses.get_or_init(|| {
            let mut addresses = BTreeMap::new();
            for (priority, set) in (0..).zip(sets) {
                for slot in &set.hosts {
                    if let Some((_, info)) = hosts.info(*slot) {
                        addresses.entry(info.address.clone()).or_insert((*slot, priority));
                    }
                }
            }
            addresses
        });
        addresses.get(address).copied()
    }

    /// Zone-aware routing of priority 0.
    pub(super) fn zone(&self) -> Option<&Zone> {
        self.zone.as_deref()
    }

    /// Percent of the traffic that healthy hosts of each priority get.
    pub fn healthy_load(&self) -> &[u32] {
        &self.loads.healthy
    }

    /// Percent of the traffic that degraded hosts of each priority get.
    pub fn degraded_load(&self) -> &[u32] {
        &self.loads.degraded
    }

    /// Percent of its full share that each priority could take with healthy hosts, 0..=100.
    pub fn healthy_availability(&self) -> &[u32] {
        &self.loads.healthy_availability
    }

    /// Percent of its full share that each priority could take with degraded hosts, 0..=100.
    pub fn degraded_availability(&self) -> &[u32] {
        &self.loads.degraded_availability
    }

    /// Which priorities use all hosts whatever their health.
    pub fn panics(&self) -> &[bool] {
        &self.loads.panics
    }

    /// Values for the gauges of ring_hash or maglev: of the last priority that has hosts, as each build
    /// overwrites them. `None` without such a policy or hosts.
    pub fn sizes(&self) -> Option<Sizes> {
        match &self.arranged {
            Arranged::No | Arranged::Scores(_) | Arranged::Filters(_) | Arranged::Zones(_) => None,
            Arranged::Rings(rings) => rings.sizes(),
            Arranged::Tables(tables) => tables.sizes(),
            Arranged::Subsets(subsets) => {
                subsets.children.iter().rev().find_map(|child| child.prepared.sizes())
            }
        }
    }

    /// Whether every draw and hash leads to healthy hosts of priority 0.
    #[inline]
    pub(super) fn is_simple(&self) -> bool {
        self.simple
    }

    /// Where a draw or hash leads: the priority, and whether its degraded hosts are meant.
    #[inline]
    pub(super) fn priority_for(&self, word: u64) -> (u32, bool) {
        self.division.choose(word)
    }

    /// Every place that gets a part of the load: a priority, and whether its degraded hosts are meant.
    pub(super) fn places(&self, load: Option<&PriorityLoad>) -> Vec<(u32, bool)> {
        let own = (&self.loads.healthy, &self.loads.degraded);
        let (healthy, degraded) = load.map_or(own, |load| (&load.healthy, &load.degraded));
        let with_load = |loads: &[u32], degraded: bool| {
            let each = (0..).zip(loads.to_vec());
            each.filter(|(_, load)| *load > 0).map(move |(at, _)| (at, degraded))
        };
        let mut places: Vec<(u32, bool)> =
            with_load(healthy, false).chain(with_load(degraded, true)).collect();
        // What no load covers leads to the first.
        let covered: u32 = healthy.iter().chain(degraded).sum();
        if covered < 100 && !places.contains(&(0, false)) {
            places.push((0, false));
        }
        places
    }

    #[inline]
    pub(crate) fn panic_at(&self, priority: u32) -> bool {
        self.loads.panics.get(priority as usize).is_some_and(|panics| *panics)
    }
}

impl<S: Structure> Arrangement<S> {
    fn build(params: S::Params, members: Vec<Members>, previous: Option<&Self>) -> Self {
        let previous = previous.filter(|previous| previous.params == params);
        let place = |(priority, members): (usize, Members)| {
            let same = previous
                .and_then(|previous| previous.priorities.get(priority))
                .filter(|place| place.members.same_shape(&members));
            let structure = match same {
                Some(place) => Arc::clone(&place.structure),
                None => Arc::new(S::build(&params, &members.keys(), &members.weights)),
            };
            Place { members, structure }
        };
        let priorities = members.into_iter().enumerate().map(place).collect();
        Self { params, priorities }
    }

    #[inline]
    pub(super) fn get(&self, priority: u32) -> Option<&Place<S>> {
        self.priorities.get(priority as usize)
    }

    /// Hosts of the largest priority.
    pub(super) fn most_members(&self) -> usize {
        self.priorities.iter().map(|place| place.members.slots.len()).max().unwrap_or(0)
    }

    fn sizes(&self) -> Option<Sizes> {
        self.priorities.iter().rev().find_map(|place| place.structure.sizes())
    }
}
