//! The hosts of a cluster over its updates: what is the same host stays, the rest comes or goes
//! (`spec/load-balancing.md` section 3.1).

use super::roster::{HostMember, Index};
use super::{Master, MasterCluster, protection};
use crate::breaker::host_gone;
use crate::clock::{Time, nanos};
use crate::engine::Core;
use crate::hash::xxh64;
use crate::health::Joins;
use crate::hosts::{HostEntry, HostInfo, flag};
use crate::request::Waiters;
use crate::spec::{ClusterSpec, Endpoint, EndpointSpec, Endpoints, Locality, LocalityEndpoints, Value};
use crate::stats::{ClusterCounters, Counter};
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What an update changed, by priority.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Hosts came, went, moved, or are of another health.
    pub(crate) lists: BTreeSet<u32>,
    /// Hosts weigh or tell something else; the lists are the same.
    pub(crate) facts: BTreeSet<u32>,
    /// Something else that a view shows.
    pub(super) told: bool,
}

impl Changes {
    pub(super) fn any(&self) -> bool {
        self.told || !self.lists.is_empty() || !self.facts.is_empty()
    }

    fn has(&self, priority: u32) -> bool {
        self.lists.contains(&priority) || self.facts.contains(&priority)
    }
}

impl HostMember {
    /// Whether an assignment lists this very host. `checked`: how it is checked is part of what it is.
    fn is_host(&self, spec: &EndpointSpec, locality: &Locality, checked: bool) -> bool {
        self.locality.is(locality)
            && self.spec.is_named(&spec.hostname)
            && (!checked || self.spec.checks == spec.checks)
    }
}

/// Where hosts without a locality are.
const NOWHERE: &Locality = &Locality { region: String::new(), zone: String::new(), sub_zone: String::new() };

fn locality(group: &LocalityEndpoints) -> &Locality {
    group.locality.as_ref().unwrap_or(NOWHERE)
}

impl Core {
    /// Applies a new list of hosts: what is the same host stays, the rest goes or comes. `None` when nothing changed
    /// (a mere reorder is nothing).
    pub(super) fn diff(
        &self,
        master: &mut Master,
        index: usize,
        new: &Endpoints,
        now: Time,
    ) -> Option<Changes> {
        if self.is_outdated(&master.clusters[index], new, now) {
            return None;
        }
        let mut changes = Changes::default();
        let cluster = &mut master.clusters[index];
        let spec = cluster.spec.clone()?;
        cluster.take_policy(new, &mut changes);
        let checked = self.board.checks(index as u32);
        match same_hosts(&cluster.members, new, checked) {
            // Most updates: nobody came or went, so nobody is looked up.
            Some(other) => {
                if cluster.keeps {
                    cluster.members.iter().for_each(|member| self.listed_again(member.entry.slot));
                    cluster.keeps = false;
                }
                for (at, endpoint, priority) in other {
                    self.relist(
                        &mut master.clusters[index],
                        &spec,
                        index,
                        at,
                        endpoint,
                        priority,
                        &mut changes,
                    );
                }
            }
            None => self.muster(master, index, &spec, new, checked, &mut changes),
        }
        changes.any().then_some(changes)
    }

    /// Finds the listed hosts among those there are; makes the others, and lets go who is not listed.
    fn muster(
        &self,
        master: &mut Master,
        index: usize,
        spec: &ClusterSpec,
        new: &Endpoints,
        checked: bool,
        changes: &mut Changes,
    ) {
        let (old, places) = master.clusters[index].members.take_indexed();
        // The first hosts of a cluster serve until they are judged, unless hosts are checked from the start.
        let how =
            if old.is_empty() && !self.settings.active_checks { Joins::Serving } else { Joins::Flagged };
        let mut search = Search { places, taken: vec![false; old.len()], next: 0 };
        let mut membership: BTreeSet<u32> = BTreeSet::new();
        // Who stays comes from where, who is new from nowhere.
        let mut from: Vec<usize> = Vec::with_capacity(old.len());
        let mut fresh: Vec<(usize, HostMember)> = Vec::new();
        let mut other: Vec<(usize, &Endpoint, u32)> = Vec::new();
        for group in &new.localities {
            let here = locality(group);
            let mut shared: Option<Arc<Locality>> = None;
            for endpoint in &group.endpoints {
                if let Some(at) = search.host(&old, endpoint, here, checked) {
                    let member = &old[at];
                    shared.get_or_insert_with(|| Arc::clone(&member.locality));
                    if member.spec != *endpoint || member.priority != group.priority {
                        other.push((from.len(), endpoint, group.priority));
                    }
                    from.push(at);
                    continue;
                }
                membership.insert(group.priority);
                changes.lists.insert(group.priority);
                let cluster = &master.clusters[index];
                let place = shared.get_or_insert_with(|| Arc::new(here.clone()));
                let before = search.left(&old, &endpoint.address).map(|at| &old[at]);
                let flags = flag::of_status(endpoint.health)
                    | canary(endpoint)
                    | self.unchecked(index, spec, endpoint, before, how);
                let slot = self.hosts.add(info(cluster, spec, index, endpoint, group.priority, place), flags);
                let member = HostMember {
                    entry: Arc::new(HostEntry::new(slot, Arc::clone(&self.hosts))),
                    spec: endpoint.clone(),
                    locality: Arc::clone(place),
                    priority: group.priority,
                };
                self.check_host(index, &member, how);
                fresh.push((from.len(), member));
                from.push(usize::MAX);
            }
        }
        // A host made anew at its address replaces the old one at once.
        let addresses: BTreeSet<&str> = match checked {
            true => {
                new.localities.iter().flat_map(|group| &group.endpoints).map(|e| e.address.as_str()).collect()
            }
            false => BTreeSet::new(),
        };
        let keeps = master.clusters[index].keeps;
        master.clusters[index].keeps = false;
        let listed = from.len();
        for (at, member) in old.iter().enumerate() {
            if search.taken[at] {
                if keeps {
                    self.listed_again(member.entry.slot);
                }
                continue;
            }
            if !addresses.contains(member.spec.address.as_str()) && self.stays(spec, member) {
                master.clusters[index].keeps = true;
                from.push(at);
                continue;
            }
            membership.insert(member.priority);
            changes.lists.insert(member.priority);
            self.remove_host(&master.clusters[index], member.entry.slot);
        }
        let mut old: Vec<Option<HostMember>> = old.into_iter().map(Some).collect();
        let mut fresh = fresh.into_iter().peekable();
        let mut members = Vec::with_capacity(from.len());
        for (at, from) in from.iter().enumerate() {
            match fresh.next_if(|(place, _)| *place == at) {
                Some((_, member)) => members.push(member),
                None => members.extend(old[*from].take()),
            }
        }
        let cluster = &mut master.clusters[index];
        cluster.members.set(members);
        for (at, endpoint, priority) in other {
            debug_assert!(at < listed);
            self.relist(&mut master.clusters[index], spec, index, at, endpoint, priority, changes);
        }
        master.clusters[index].keep_order(&from, changes);
        // Hosts may stand elsewhere.
        changes.lists.append(&mut changes.facts);
        // Once per priority that hosts joined or left.
        let counters = &master.clusters[index].shared.counters;
        for _ in membership {
            counters.lock().base.count(Counter::MembershipChange);
        }
    }

    /// A host that was kept although nobody listed it is listed again.
    fn listed_again(&self, slot: u32) {
        let flags = &self.hosts.facts(slot).flags;
        if flags.load(Relaxed) & flag::PENDING_DYNAMIC_REMOVAL != 0 {
            flags.fetch_and(!flag::PENDING_DYNAMIC_REMOVAL, AcqRel);
        }
    }

    /// The same host is listed with something else.
    #[expect(clippy::too_many_arguments, reason = "a host with all that it belongs to")]
    pub(super) fn relist(
        &self,
        cluster: &mut MasterCluster,
        spec: &ClusterSpec,
        index: usize,
        at: usize,
        endpoint: &Endpoint,
        priority: u32,
        changes: &mut Changes,
    ) {
        let member = &cluster.members[at];
        let facts = self.hosts.facts(member.entry.slot);
        let eds =
            flag::FAILED_EDS_HEALTH | flag::DEGRADED_EDS_HEALTH | flag::EDS_STATUS_DRAINING | flag::CANARY;
        let before = facts.flags.load(Relaxed);
        let wanted = flag::of_status(endpoint.health) | canary(endpoint);
        facts.flags.fetch_and(!eds, AcqRel);
        let after = facts.flags.fetch_or(wanted, AcqRel) | wanted;
        if member.priority != priority
            || flag::health(before) != flag::health(after)
            || flag::excluded(before) != flag::excluded(after)
        {
            changes.lists.extend([member.priority, priority]);
        } else if member.spec.weight != endpoint.weight || member.spec.metadata != endpoint.metadata {
            changes.facts.insert(priority);
        }
        self.hosts
            .set_info(member.entry.slot, info(cluster, spec, index, endpoint, priority, &member.locality));
        cluster.members.relist(at, endpoint.clone(), priority);
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

impl MasterCluster {
    /// What an assignment says besides its hosts.
    fn take_policy(&mut self, new: &Endpoints, changes: &mut Changes) {
        let weight = |group: &LocalityEndpoints| {
            let place = group.locality.as_ref()?;
            Some((group.priority, place.clone(), group.weight?))
        };
        let weights: Vec<(u32, Locality, u32)> = new.localities.iter().filter_map(weight).collect();
        if self.weights != weights {
            changes.lists.extend(self.weights.iter().chain(&weights).map(|(priority, _, _)| *priority));
        }
        if self.factor != new.overprovisioning_factor || self.weighted_health != new.weighted_priority_health
        {
            changes.lists.extend(self.members.iter().map(|member| member.priority));
            let listed = new.localities.iter().filter(|group| !group.endpoints.is_empty());
            changes.lists.extend(listed.map(|group| group.priority));
        }
        self.weights = weights;
        self.factor = new.overprovisioning_factor;
        self.weighted_health = new.weighted_priority_health;
        self.drop_ratio = new.drop_ratio;
        let told = protection::Told { protected: new.protected, revision: new.revision };
        changes.told = std::mem::replace(&mut self.told, told).protected != new.protected;
    }

    /// Priorities that did not change keep their old order: a reorder alone is no change. `from` says where each member
    /// stood before.
    fn keep_order(&mut self, from: &[usize], changes: &Changes) {
        let still = |at: &usize| !changes.has(self.members[*at].priority);
        let places: Vec<usize> = (0..from.len()).filter(still).collect();
        if places.is_sorted_by_key(|at| from[*at]) {
            return;
        }
        let mut ordered = places.clone();
        ordered.sort_by_key(|at| from[*at]);
        let mut taken: Vec<Option<HostMember>> = self.members.take().into_iter().map(Some).collect();
        let moved: Vec<Option<HostMember>> = ordered.iter().map(|at| taken[*at].take()).collect();
        for (place, member) in places.into_iter().zip(moved) {
            taken[place] = member;
        }
        self.members.set(taken.into_iter().flatten().collect());
    }
}

/// Who of the hosts that are there is listed.
struct Search {
    places: Index,
    taken: Vec<bool>,
    /// Behind the one found last: mostly who is listed next stands next.
    next: usize,
}

impl Search {
    /// The host that a list names, which is then taken.
    fn host(
        &mut self,
        old: &[HostMember],
        endpoint: &Endpoint,
        locality: &Locality,
        checked: bool,
    ) -> Option<usize> {
        let stands = |at: usize| old.get(at).is_some_and(|member| member.spec.address == endpoint.address);
        let free = |at: &usize| !self.taken[*at] && old[*at].is_host(endpoint, locality, checked);
        let found = match self.places.has_twins() || !stands(self.next) {
            false => Some(self.next).filter(free),
            true => self.places.find(old, &endpoint.address).find(free),
        };
        if let Some(at) = found {
            self.taken[at] = true;
            self.next = at + 1;
        }
        found
    }

    /// The first host at an address that nobody took.
    fn left(&self, old: &[HostMember], address: &str) -> Option<usize> {
        self.places.find(old, address).find(|at| !self.taken[*at])
    }
}

/// Whether an assignment lists the very hosts that are there, in their order: then those that it lists otherwise.
fn same_hosts<'e>(
    members: &[HostMember],
    new: &'e Endpoints,
    checked: bool,
) -> Option<Vec<(usize, &'e Endpoint, u32)>> {
    let mut other = Vec::new();
    let mut rest = members.iter().enumerate();
    for group in &new.localities {
        let here = locality(group);
        // Neighbours share their locality: it is compared once.
        let mut seen: Option<&Arc<Locality>> = None;
        for endpoint in &group.endpoints {
            let (at, member) = rest.next()?;
            if !seen.is_some_and(|seen| Arc::ptr_eq(seen, &member.locality)) {
                if !member.locality.is(here) {
                    return None;
                }
                seen = Some(&member.locality);
            }
            let same = member.spec == *endpoint;
            if !same && (member.spec.address != endpoint.address || !member.is_host(endpoint, here, checked))
            {
                return None;
            }
            if !same || member.priority != group.priority {
                other.push((at, endpoint, group.priority));
            }
        }
    }
    rest.next().is_none().then_some(other)
}

/// The `size` hosts with the highest scores of address and seed, in their order. So the parts of many engines are
/// spread over all hosts, and a host that comes or goes changes one place of a part at most.
pub(super) fn part_of(mut listed: Vec<&HostMember>, size: u32, seed: u64) -> Vec<&HostMember> {
    let size = size as usize;
    if size >= listed.len() {
        return listed;
    }
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

pub(super) fn info(
    cluster: &MasterCluster,
    spec: &ClusterSpec,
    index: usize,
    endpoint: &Endpoint,
    priority: u32,
    locality: &Arc<Locality>,
) -> HostInfo {
    HostInfo {
        spec: protection::shown(spec, endpoint),
        cluster: Arc::clone(&cluster.shared.name),
        cluster_index: index as u32,
        priority,
        locality: Arc::clone(locality),
        connect_timeout: nanos(spec.connect_timeout),
        secure: spec.secure,
    }
}
