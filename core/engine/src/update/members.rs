//! The hosts of a cluster over its updates: what is the same host stays, the rest comes or goes
//! (`spec/load-balancing.md` section 3.1).

use super::{Master, MasterCluster, protection};
use crate::breaker::host_gone;
use crate::clock::{Time, nanos};
use crate::engine::Core;
use crate::hash::xxh64;
use crate::health::Joins;
use crate::hosts::{HostEntry, HostInfo, flag};
use crate::request::Waiters;
use crate::spec::{ClusterSpec, EndpointSpec, Endpoints, Locality, Value};
use crate::stats::{ClusterCounters, Counter};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

/// A host with what decides whether a new endpoint is the same host.
pub(crate) struct HostMember {
    pub(crate) entry: Arc<HostEntry>,
    pub(crate) spec: EndpointSpec,
    pub(crate) priority: u32,
    pub(crate) locality: Locality,
}

impl HostMember {
    /// Whether an assignment lists this very host. `checked`: how it is checked is part of what it is.
    fn is_host(&self, item: &Listed<'_>, checked: bool) -> bool {
        self.locality == *item.locality
            && self.spec.hostname == item.spec.hostname
            && (!checked || self.spec.checks == item.spec.checks)
    }

    pub(super) fn listed(&self) -> Listed<'_> {
        Listed { spec: &self.spec, priority: self.priority, locality: &self.locality }
    }
}

/// A host as an assignment lists it.
pub(super) struct Listed<'a> {
    spec: &'a EndpointSpec,
    priority: u32,
    locality: &'a Locality,
}

impl Core {
    /// Applies a new list of hosts: what is the same host stays, the rest goes or comes. Returns the priorities
    /// that changed, `None` when nothing did (a mere reorder is nothing).
    pub(super) fn diff(
        &self,
        master: &mut Master,
        index: usize,
        new: &Endpoints,
        now: Time,
    ) -> Option<Vec<u32>> {
        if self.is_outdated(&master.clusters[index], new, now) {
            return None;
        }
        let mut weights = Vec::new();
        let mut listed = Vec::new();
        for group in &new.localities {
            let locality = group.locality.as_ref().unwrap_or(NOWHERE);
            if let (Some(weight), Some(_)) = (group.weight, &group.locality) {
                weights.push((group.priority, locality.clone(), weight));
            }
            for spec in &group.endpoints {
                listed.push(Listed { spec, priority: group.priority, locality });
            }
        }
        let mut changed: BTreeSet<u32> = BTreeSet::new();
        let cluster = &mut master.clusters[index];
        let priorities = |weights: &[(u32, Locality, u32)]| -> BTreeSet<u32> {
            weights.iter().map(|(priority, _, _)| *priority).collect()
        };
        if cluster.weights != weights {
            changed.extend(priorities(&cluster.weights));
            changed.extend(priorities(&weights));
        }
        if cluster.factor != new.overprovisioning_factor
            || cluster.weighted_health != new.weighted_priority_health
        {
            changed.extend(cluster.members.iter().map(|member| member.priority));
            changed.extend(listed.iter().map(|listed| listed.priority));
        }
        cluster.weights = weights;
        cluster.factor = new.overprovisioning_factor;
        cluster.weighted_health = new.weighted_priority_health;
        cluster.drop_ratio = new.drop_ratio;
        let told = protection::Told { protected: new.protected, revision: new.revision };
        let told = std::mem::replace(&mut cluster.told, told).protected != new.protected;
        let checked = self.board.checks(index as u32);
        let spec = cluster.spec.clone()?;
        let old = std::mem::take(&mut cluster.members);
        // The first hosts of a cluster serve until they are judged, unless hosts are checked from the start.
        let how =
            if old.is_empty() && !self.settings.active_checks { Joins::Serving } else { Joins::Flagged };
        if is_same_list(&old, &listed, checked) {
            // Most updates: nobody came or went, so nobody is looked up.
            let cluster = &master.clusters[index];
            let keep = |(member, item)| self.keep_host(cluster, &spec, index, member, item, &mut changed);
            let members = old.into_iter().zip(&listed).map(keep).collect();
            master.clusters[index].members = members;
            return (told || !changed.is_empty()).then(|| changed.into_iter().collect());
        }
        let mut membership: BTreeSet<u32> = BTreeSet::new();
        let old_order: Vec<(u32, u32)> = old.iter().map(|m| (m.priority, m.entry.slot)).collect();
        let mut by_address: BTreeMap<String, VecDeque<HostMember>> = BTreeMap::new();
        for member in old {
            by_address.entry(member.spec.address.clone()).or_default().push_back(member);
        }
        let mut members = Vec::with_capacity(listed.len());
        // A host made anew at its address replaces the old one at once.
        let addresses: BTreeSet<String> = match checked {
            true => listed.iter().map(|item| item.spec.address.clone()).collect(),
            false => BTreeSet::new(),
        };
        for item in listed {
            let same = by_address.get_mut(&item.spec.address).and_then(|queue| {
                let at = queue.iter().position(|m| m.is_host(&item, checked))?;
                queue.remove(at)
            });
            match same {
                Some(member) => {
                    let cluster = &master.clusters[index];
                    members.push(self.keep_host(cluster, &spec, index, member, &item, &mut changed));
                }
                None => {
                    membership.insert(item.priority);
                    changed.insert(item.priority);
                    let cluster = &master.clusters[index];
                    let before = by_address.get(&item.spec.address).and_then(VecDeque::front);
                    let flags = flag::of_status(item.spec.health)
                        | canary(item.spec)
                        | self.unchecked(index, &spec, item.spec, before, how);
                    let slot = self.hosts.add(info(cluster, &spec, index, &item), flags);
                    let member = HostMember {
                        entry: Arc::new(HostEntry::new(slot, Arc::clone(&self.hosts))),
                        spec: item.spec.clone(),
                        priority: item.priority,
                        locality: item.locality.clone(),
                    };
                    self.check_host(index, &member, how);
                    members.push(member);
                }
            }
        }
        for member in by_address.into_values().flatten() {
            if !addresses.contains(&member.spec.address) && self.stays(&spec, &member) {
                members.push(member);
                continue;
            }
            membership.insert(member.priority);
            changed.insert(member.priority);
            self.remove_host(&master.clusters[index], member.entry.slot);
        }
        let cluster = &mut master.clusters[index];
        if !changed.is_empty() {
            // Priorities that did not change keep their old order.
            let place: BTreeMap<u32, usize> =
                old_order.iter().enumerate().map(|(at, (_, slot))| (*slot, at)).collect();
            let mut still: Vec<usize> =
                (0..members.len()).filter(|at| !changed.contains(&members[*at].priority)).collect();
            let slots = still.clone();
            still.sort_by_key(|at| place.get(&members[*at].entry.slot).copied().unwrap_or(usize::MAX));
            let mut taken: Vec<Option<HostMember>> = members.into_iter().map(Some).collect();
            let mut ordered: Vec<Option<HostMember>> = (0..taken.len()).map(|_| None).collect();
            for (to, from) in slots.iter().zip(&still) {
                ordered[*to] = taken[*from].take();
            }
            members = ordered.into_iter().zip(taken).filter_map(|(kept, rest)| kept.or(rest)).collect();
        } else {
            let place: BTreeMap<u32, usize> =
                old_order.iter().enumerate().map(|(at, (_, slot))| (*slot, at)).collect();
            members.sort_by_key(|member| place.get(&member.entry.slot).copied().unwrap_or(usize::MAX));
        }
        cluster.members = members;
        // Once per priority that hosts joined or left.
        for _ in membership {
            cluster.shared.counters.lock().base.count(Counter::MembershipChange);
        }
        (told || !changed.is_empty()).then(|| changed.into_iter().collect())
    }

    fn keep_host(
        &self,
        cluster: &MasterCluster,
        spec: &ClusterSpec,
        index: usize,
        mut member: HostMember,
        item: &Listed<'_>,
        changed: &mut BTreeSet<u32>,
    ) -> HostMember {
        let slot = member.entry.slot;
        let facts = self.hosts.facts(slot);
        facts.flags.fetch_and(!flag::PENDING_DYNAMIC_REMOVAL, AcqRel);
        if member.spec == *item.spec && member.priority == item.priority {
            return member;
        }
        let eds =
            flag::FAILED_EDS_HEALTH | flag::DEGRADED_EDS_HEALTH | flag::EDS_STATUS_DRAINING | flag::CANARY;
        let before = facts.flags.load(Relaxed);
        let wanted = flag::of_status(item.spec.health) | canary(item.spec);
        facts.flags.fetch_and(!eds, AcqRel);
        let after = facts.flags.fetch_or(wanted, AcqRel) | wanted;
        if member.priority != item.priority
            || member.spec.weight != item.spec.weight
            || member.spec.metadata != item.spec.metadata
            || flag::health(before) != flag::health(after)
            || flag::excluded(before) != flag::excluded(after)
        {
            changed.insert(member.priority);
            changed.insert(item.priority);
        }
        member.spec = item.spec.clone();
        member.priority = item.priority;
        self.hosts.set_info(slot, info(cluster, spec, index, item));
        member
    }

    pub(crate) fn remove_host(&self, cluster: &MasterCluster, slot: u32) {
        self.hosts.facts(slot).flags.fetch_or(flag::REMOVED, AcqRel);
        self.board.leave(slot);
        cluster.shared.detector.remove(&self.hosts, slot);
        let spec = cluster.view.as_ref().map(|view| Arc::clone(&view.spec));
        let counters = ClusterCounters::default();
        let waiters = Waiters { slab: &self.slab, ready: &self.ready };
        for priority in 0..2u8 {
            host_gone(&self.ask_of(cluster, spec.as_deref(), slot, priority, &counters), &waiters);
        }
    }
}

/// Where hosts without a locality are.
const NOWHERE: &Locality = &Locality { region: String::new(), zone: String::new(), sub_zone: String::new() };

/// Whether an assignment lists the very hosts that are there, in their order.
fn is_same_list(members: &[HostMember], listed: &[Listed<'_>], checked: bool) -> bool {
    let is_same = |(member, item): (&HostMember, &Listed<'_>)| {
        member.spec.address == item.spec.address && member.is_host(item, checked)
    };
    members.len() == listed.len() && members.iter().zip(listed).all(is_same)
}

/// The `size` hosts with the highest scores of address and seed, in their order. So the parts of many engines are
/// spread over all hosts, and a host that comes or goes changes one place of a part at most.
pub(super) fn part_of(mut listed: Vec<&HostMember>, size: Option<u32>, seed: u64) -> Vec<&HostMember> {
    let Some(size) = size.map(|size| size as usize).filter(|size| *size < listed.len()) else {
        return listed;
    };
    let score = |member: &&HostMember| xxh64(member.spec.address.as_bytes(), seed);
    let mut scores: Vec<u64> = listed.iter().map(score).collect();
    let (_, least, _) = scores.select_nth_unstable_by(size - 1, |a, b| b.cmp(a));
    let least = *least;
    listed.retain(|member| score(member) >= least);
    listed.truncate(size);
    listed
}

fn canary(spec: &EndpointSpec) -> u32 {
    if spec.metadata.lb("canary").and_then(Value::as_bool) == Some(true) { flag::CANARY } else { 0 }
}

pub(super) fn info(cluster: &MasterCluster, spec: &ClusterSpec, index: usize, item: &Listed<'_>) -> HostInfo {
    HostInfo {
        address: protection::shown_address(spec, item.spec),
        port: item.spec.port,
        hostname: item.spec.hostname.clone(),
        cluster: Arc::clone(&cluster.shared.name),
        cluster_index: index as u32,
        weight: item.spec.weight,
        priority: item.priority,
        locality: item.locality.clone(),
        metadata: item.spec.metadata.clone(),
        health: item.spec.health,
        connect_timeout: nanos(spec.connect_timeout),
        secure: spec.secure,
    }
}
