//! The hosts of a cluster by priority and locality (`spec/load-balancing.md` section 2.2). Immutable: an update
//! builds new ones.

use crate::hosts::{Health, HostArena, flag};
use crate::spec::Locality;

/// The hosts of one priority. All lists hold slots of the host arena, in the order of the assignment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSet {
    /// Moves whenever anything of this priority changed that a balancer must see.
    pub version: u64,
    /// Every host.
    pub hosts: Vec<u32>,
    /// Healthy ones.
    pub healthy: Vec<u32>,
    /// Degraded ones.
    pub degraded: Vec<u32>,
    /// How many are excluded from denominators.
    pub excluded: u32,
    /// The same by locality; the local one first when `has_local`, the rest ascending.
    pub localities: Vec<LocalityHosts>,
    /// `localities[0]` is this node's.
    pub has_local: bool,
    /// Percent. 140 unless the assignment says otherwise.
    pub overprovisioning_factor: u32,
    /// Priority load from weights instead of counts.
    pub weighted_priority_health: bool,
}

/// The hosts of one locality in one priority.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalityHosts {
    /// Which.
    pub locality: Locality,
    /// `load_balancing_weight`; absent = 0.
    pub weight: u32,
    /// Every host.
    pub hosts: Vec<u32>,
    /// Healthy ones.
    pub healthy: Vec<u32>,
    /// Degraded ones.
    pub degraded: Vec<u32>,
    /// How many are excluded.
    pub excluded: u32,
}

/// One host with what decides its place.
pub(crate) struct Member<'a> {
    pub(crate) slot: u32,
    pub(crate) locality: &'a Locality,
}

impl HostSet {
    /// Sorts the members of one priority into lists by their present flags.
    /// `weights` are the locality weights given for this priority, the last one of a locality wins.
    pub(crate) fn build(
        hosts: &HostArena,
        members: &[Member<'_>],
        weights: &[(&Locality, u32)],
        local: Option<&Locality>,
        overprovisioning_factor: u32,
        weighted_priority_health: bool,
    ) -> Self {
        let mut set = Self { overprovisioning_factor, weighted_priority_health, ..Self::default() };
        let mut names: Vec<&Locality> = members.iter().map(|m| m.locality).collect();
        // Neighbours mostly are of one locality: few are left to sort.
        names.dedup_by(|a, b| a.is(b));
        names.sort_unstable();
        names.dedup();
        if let Some(at) = local.and_then(|local| names.iter().position(|name| *name == local)) {
            names[..=at].rotate_right(1);
            set.has_local = true;
        }
        set.localities = names
            .iter()
            .map(|name| LocalityHosts {
                locality: (*name).clone(),
                weight: weights.iter().rev().find(|(of, _)| of == name).map_or(0, |(_, weight)| *weight),
                ..LocalityHosts::default()
            })
            .collect();
        let find: std::collections::BTreeMap<&Locality, usize> =
            names.iter().enumerate().map(|(i, name)| (*name, i)).collect();
        set.hosts.reserve_exact(members.len());
        let mut last: Option<(&Locality, usize)> = None;
        for member in members {
            let flags = hosts.flags(member.slot);
            let at = match last {
                Some((name, at)) if name.is(member.locality) => at,
                _ => find[member.locality],
            };
            last = Some((member.locality, at));
            let locality = &mut set.localities[at];
            set.hosts.push(member.slot);
            locality.hosts.push(member.slot);
            match flag::health(flags) {
                Health::Healthy => {
                    set.healthy.push(member.slot);
                    locality.healthy.push(member.slot);
                }
                Health::Degraded => {
                    set.degraded.push(member.slot);
                    locality.degraded.push(member.slot);
                }
                Health::Unhealthy => {}
            }
            if flag::excluded(flags) {
                set.excluded += 1;
                locality.excluded += 1;
            }
        }
        set
    }
}
