//! How clusters change: documents, endpoints, health. All of it builds a new snapshot off the decision path and
//! swaps it in whole (`spec/load-balancing.md` section 3).

mod loads;
mod members;
mod patch;
mod protection;
mod roster;
#[cfg(test)]
mod tests;
mod windows;

use crate::admission::Gates;
use crate::balance::client_weights::reweigh;
use crate::balance::{Linear, Local, Prepared};
use crate::breaker::{self, Ask, serve_waiting};
use crate::clock::Time;
use crate::cluster::{ClusterShared, ClusterView, Subs};
use crate::engine::Core;
use crate::health::{Board, Bounds, Joins};
use crate::hosts::flag;
use crate::opt_in::Steer;
use crate::outlier::{Overrides, Rules};
use crate::policies::{Names, Policies};
use crate::request::Waiters;
use crate::sets::{HostSet, Member};
use crate::shed::Sheds;
use crate::snapshot::{Runtime, maintenance};
use crate::spec::{ClusterKind, ClusterSpec, Endpoints, Locality, SpecError, Specs, Value, check};
use crate::stats::ClusterCounters;
use std::collections::BTreeMap;
use std::sync::Arc;

use members::{Changes, info, part_of};
use roster::Roster;
use windows::Window;

pub(crate) use loads::period;
pub use patch::{HostPatch, PatchError};
pub(crate) use roster::HostMember;

/// What the snapshots are made from; one lock over it all.
#[derive(Default)]
pub(crate) struct Master {
    pub(crate) names: Names,
    pub(crate) clusters: Vec<MasterCluster>,
    pub(crate) policies: Option<Arc<Policies>>,
    pub(crate) runtime: Runtime,
    /// Clusters in maintenance, in percent.
    pub(crate) maintenance: BTreeMap<String, u8>,
    outlier_runtime: Overrides,
    limit_runtime: breaker::Overrides,
    pub(crate) epoch: u64,
    /// Gives versions to host sets and cluster views.
    versions: u64,
    /// Where this node is.
    locality: Option<Locality>,
    /// Index of the cluster that this node belongs to.
    local: Option<usize>,
    /// Classes of retry policies set hosts aside.
    cools: bool,
    /// What policies are compiled from again once somebody performs the checks that it asks for.
    pub(crate) unchecked: Option<Box<Specs>>,
}

/// One known cluster name.
pub(crate) struct MasterCluster {
    pub(crate) shared: Arc<ClusterShared>,
    /// `None` = not there now.
    pub(crate) spec: Option<Arc<ClusterSpec>>,
    pub(crate) members: Roster,
    /// Hosts may be among them that nobody lists any more.
    keeps: bool,
    pub(crate) view: Option<Arc<ClusterView>>,
    pub(crate) outlier: Option<Arc<Rules>>,
    /// What an aggregate chooses by.
    pub(crate) linear: Option<Arc<Linear>>,
    /// Locality weights of the present assignment: priority, locality, weight.
    weights: Vec<(u32, Locality, u32)>,
    factor: u32,
    weighted_health: bool,
    /// Share of new requests that the present assignment drops.
    drop_ratio: f32,
    /// What the runtime lowered it to when the assignment came.
    drop_limit: Option<u64>,
    /// What the registry said with the list in force.
    pub(crate) told: protection::Told,
    /// Health changes on their way to the balancers, by priority.
    windows: Vec<Window>,
    /// Load-aware weights are to be computed with the next view.
    loads_due: bool,
}

impl Master {
    fn version(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    /// Takes over the runtime values of limits. Whether they changed.
    fn set_limit_runtime(&mut self, values: &[(String, Value)]) -> bool {
        let new = breaker::Overrides::read(values);
        let changed = new != self.limit_runtime;
        self.limit_runtime = new;
        changed
    }

    /// What a cluster turns away now.
    pub(crate) fn sheds(&self, cluster: &MasterCluster) -> Option<Sheds> {
        let maintenance = self.maintenance.get(&*cluster.shared.name).copied().unwrap_or(0);
        Sheds::new(maintenance, cluster.drop_ratio, cluster.drop_limit)
    }

    pub(crate) fn cluster(&self, name: &str) -> Option<usize> {
        let index = *self.names.clusters.get(name)? as usize;
        self.clusters.get(index).filter(|cluster| cluster.spec.is_some()).map(|_| index)
    }
}

impl Core {
    /// Replaces all documents: whole, or not at all. Returns the new epoch.
    pub fn update(&self, specs: &Specs, now: Time) -> Result<u64, SpecError> {
        check(specs)?;
        let mut master = self.master.lock();
        let generation = master.policies.as_ref().map_or(0, |policies| policies.generation + 1);
        let mut names =
            Names { clusters: master.names.clusters.clone(), targets: master.names.targets.clone() };
        let gates = Gates::build(specs, &self.gates.lock().clone(), now);
        let policies = {
            let mut wants = self.wants.lock();
            Policies::compile(specs, generation, &mut names, &mut wants, self.is_checking(), &gates)?
        };
        let overrides = Overrides::read(&specs.runtime);
        let mut outlier = Vec::with_capacity(specs.clusters.len());
        for spec in &specs.clusters {
            Board::check(&spec.health_checks)?;
            let half_open = spec.options.half_open.is_some();
            let rules = spec.outlier.as_ref().map(|outlier| Rules::new(outlier, &overrides)).transpose()?;
            let rules = rules.map(|rules| Rules { half_open, ..rules });
            outlier.push(rules.map(Arc::new));
        }
        // Nothing can fail from here on.
        *self.gates.lock() = gates.all().cloned().collect();
        self.set_gates(&specs.runtime);
        master.names = names;
        for name in ordered(&master.names.clusters).into_iter().skip(master.clusters.len()) {
            master.clusters.push(MasterCluster::new(&name));
        }
        master.runtime = Runtime::read(&specs.runtime);
        master.maintenance = maintenance(&specs.runtime);
        master.outlier_runtime = overrides;
        let limited = master.set_limit_runtime(&specs.runtime);
        self.board.set_bounds(Bounds::read(&specs.runtime));
        let mut given = vec![None; master.clusters.len()];
        for (spec, outlier) in specs.clusters.iter().zip(outlier) {
            let index = master.names.clusters[spec.name.as_str()] as usize;
            given[index] = Some(spec);
            master.clusters[index].outlier = outlier;
        }
        // Clusters name others that may not exist: their names get numbers too.
        for sub in specs.clusters.iter().flat_map(|spec| spec.kind.subs()) {
            let index = master.names.cluster(sub) as usize;
            if index == master.clusters.len() {
                master.clusters.push(MasterCluster::new(sub));
                given.push(None);
            }
        }
        let moved = master.locality != specs.locality;
        master.locality.clone_from(&specs.locality);
        let local = specs.local_cluster.as_ref().and_then(|name| master.names.clusters.get(name.as_str()));
        let local = local.map(|index| *index as usize);
        let cools = specs.set_hosts_aside();
        let relocated = moved || master.local != local || master.cools != cools;
        (master.local, master.cools) = (local, cools);
        let drop_limit = master.runtime.drop_limit;
        master.clusters.iter_mut().for_each(|cluster| cluster.drop_limit = drop_limit);
        let mut changed = Vec::new();
        for (index, spec) in given.into_iter().enumerate() {
            match spec {
                Some(spec) if self.set_cluster(&mut master, index, spec, now) => changed.push(index),
                Some(_) if limited => {
                    self.rebuild(&mut master, index, &[], now);
                    changed.push(index);
                }
                Some(_) => {}
                None => self.remove_cluster(&mut master, index),
            }
        }
        if relocated {
            let all: Vec<u32> = (0..=128).collect();
            let changed = if moved { &all[..] } else { &[] };
            for index in 0..master.clusters.len() {
                if master.clusters[index].view.is_some() {
                    self.rebuild(&mut master, index, changed, now);
                }
            }
        }
        if let Some(old) = master.policies.replace(Arc::new(policies)) {
            self.old_policies.lock().push(old);
        }
        master.unchecked = if self.is_checking() { None } else { unchecked(specs) };
        let epoch = self.publish(&mut master);
        // Whoever asks from here on sees the new limits; whoever queued under the old ones is served now.
        for index in changed {
            self.serve_waiting(&master.clusters[index]);
        }
        self.forget_policies();
        drop(master);
        self.arm(now);
        Ok(epoch)
    }

    /// Replaces the runtime layer alone.
    pub fn set_runtime(&self, values: &[(String, Value)], now: Time) -> u64 {
        let mut master = self.master.lock();
        let runtime = Runtime::read(values);
        let before = master.runtime;
        let balancing =
            runtime.healthy_panic_threshold != before.healthy_panic_threshold || runtime.zone != before.zone;
        master.runtime = runtime;
        master.maintenance = maintenance(values);
        self.board.set_bounds(Bounds::read(values));
        self.set_gates(values);
        let overrides = Overrides::read(values);
        if overrides != master.outlier_runtime {
            for cluster in &mut master.clusters {
                let spec = cluster.spec.as_ref().and_then(|spec| spec.outlier.as_ref());
                if let (Some(rules), Some(spec)) = (&mut cluster.outlier, spec) {
                    *rules = Arc::new(rules.again(spec, &overrides));
                }
            }
            master.outlier_runtime = overrides;
        }
        let limited = master.set_limit_runtime(values);
        if balancing || limited {
            for index in 0..master.clusters.len() {
                self.rebuild(&mut master, index, &[], now);
            }
        }
        let epoch = self.publish(&mut master);
        if limited {
            master.clusters.iter().for_each(|cluster| self.serve_waiting(cluster));
        }
        epoch
    }

    /// Changes one cluster's endpoints as an EDS update does. `None` = no such cluster.
    pub fn set_endpoints(&self, cluster: &str, endpoints: &Endpoints, now: Time) -> Option<u64> {
        let mut master = self.master.lock();
        let index = master.cluster(cluster)?;
        if master.clusters[index].spec.as_ref()?.kind != ClusterKind::Hosts {
            return None;
        }
        master.clusters[index].drop_limit = master.runtime.drop_limit;
        if let Some(changes) = self.diff(&mut master, index, endpoints, now) {
            self.rebuild_for(&mut master, index, &changes, now);
        }
        Some(self.publish(&mut master))
    }

    /// The endpoints a cluster has now, in their present order. `None` = no such cluster with hosts.
    pub fn endpoints(&self, cluster: &str) -> Option<Endpoints> {
        let master = self.master.lock();
        let cluster = &master.clusters[master.cluster(cluster)?];
        if cluster.spec.as_ref()?.kind != ClusterKind::Hosts {
            return None;
        }
        let mut endpoints = Endpoints {
            localities: Vec::new(),
            overprovisioning_factor: cluster.factor,
            weighted_priority_health: cluster.weighted_health,
            drop_ratio: cluster.drop_ratio,
            protected: cluster.told.protected,
            revision: cluster.told.revision,
        };
        let listed = |m: &&HostMember| self.hosts.flags(m.entry.slot) & flag::PENDING_DYNAMIC_REMOVAL == 0;
        for member in cluster.members.iter().filter(listed) {
            let same = |l: &crate::spec::LocalityEndpoints| {
                l.priority == member.priority && l.locality.as_ref() == Some(&*member.locality)
            };
            if !endpoints.localities.last().is_some_and(same) {
                let weight = cluster
                    .weights
                    .iter()
                    .rev()
                    .find(|(p, l, _)| *p == member.priority && *l == *member.locality);
                endpoints.localities.push(crate::spec::LocalityEndpoints {
                    locality: Some(member.locality.as_ref().clone()),
                    priority: member.priority,
                    weight: weight.map(|(_, _, weight)| *weight),
                    endpoints: Vec::new(),
                });
            }
            if let Some(last) = endpoints.localities.last_mut() {
                last.endpoints.push(member.spec.clone());
            }
        }
        Some(endpoints)
    }

    /// Gives those who queue at a cluster what its present limits allow.
    fn serve_waiting(&self, cluster: &MasterCluster) {
        let Some(view) = &cluster.view else { return };
        let counters = Arc::clone(&cluster.shared.counters.lock().base);
        let waiters = Waiters { slab: &self.slab, ready: &self.ready };
        let ask = |(slot, priority): (u32, u8)| {
            let limits = &view.spec.breakers;
            Ask {
                per_host: limits.per_host_max_connections[usize::from(priority)].unwrap_or(u32::MAX),
                strict: view.strict,
                ..self.ask_of(cluster, Some(&view.spec), slot, priority, &counters)
            }
        };
        serve_waiting(&cluster.shared.queues, ask, &waiters);
    }

    /// Whether anything of the cluster changed.
    fn set_cluster(&self, master: &mut Master, index: usize, spec: &ClusterSpec, now: Time) -> bool {
        let before = master.clusters[index].spec.clone();
        if before.as_deref() == Some(spec) {
            return false;
        }
        let same_endpoints = before.as_ref().is_some_and(|old| old.endpoints == spec.endpoints);
        let facts = before
            .as_ref()
            .is_some_and(|old| old.connect_timeout != spec.connect_timeout || old.secure != spec.secure);
        let detected = before.as_ref().is_some_and(|old| old.outlier.is_some());
        if detected && spec.outlier.is_none() {
            master.clusters[index].shared.detector.clear(&self.hosts);
        }
        master.clusters[index].spec = Some(Arc::new(spec.clone()));
        let checking = self.is_checking();
        if checking {
            self.board.configure(&self.hosts, index as u32, &spec.health_checks);
        }
        // An update that leaves a cluster's endpoints as they were leaves its hosts alone.
        if !same_endpoints {
            self.diff(master, index, &spec.endpoints, now);
        }
        if !detected && spec.outlier.is_some() {
            let cluster = &master.clusters[index];
            let slots = cluster.members.iter().map(|member| member.entry.slot);
            cluster.shared.detector.start(&self.hosts, slots);
        }
        if checking {
            // Those that joined just now are known already.
            for member in master.clusters[index].members.iter() {
                self.check_host(index, member, Joins::Serving);
            }
        }
        if facts {
            self.refresh_infos(master, index);
        }
        if before.as_ref().is_some_and(|old| old.policy.client_weights().is_some()) {
            // Another policy goes by the configured weights again; the same one computes its own anew.
            for member in master.clusters[index].members.iter() {
                self.hosts.set_weight(member.entry.slot, member.spec.weight);
            }
        }
        let all: Vec<u32> = (0..=128).collect();
        self.rebuild(master, index, &all, now);
        true
    }

    /// Names under which an assignment may bring a cluster's hosts: its own, and that of its service. Empty = no
    /// such cluster.
    pub fn assignment_names(&self, cluster: &str) -> Vec<String> {
        let master = self.master.lock();
        let spec = master.cluster(cluster).and_then(|index| master.clusters[index].spec.as_ref());
        let Some(spec) = spec else { return Vec::new() };
        [&spec.name, &spec.service_name].into_iter().filter(|name| !name.is_empty()).cloned().collect()
    }

    /// Whether a cluster's policy turns weights into shares of their sum, which must fit 32 bits.
    pub fn shares_weights(&self, cluster: &str) -> bool {
        let master = self.master.lock();
        let spec = master.cluster(cluster).and_then(|index| master.clusters[index].spec.as_ref());
        spec.is_some_and(|spec| spec.policy.hashing().is_some())
    }

    /// What a cluster without hosts of its own stands for; `None` for all others.
    pub fn sub_clusters(&self, cluster: &str) -> Option<ClusterKind> {
        let master = self.master.lock();
        let kind = &master.clusters[master.cluster(cluster)?].spec.as_ref()?.kind;
        (*kind != ClusterKind::Hosts).then(|| kind.clone())
    }

    fn refresh_infos(&self, master: &Master, index: usize) {
        let cluster = &master.clusters[index];
        let Some(spec) = &cluster.spec else { return };
        for member in cluster.members.iter() {
            let HostMember { entry, spec: endpoint, locality, priority } = member;
            self.hosts.set_info(entry.slot, info(cluster, spec, index, endpoint, *priority, locality));
        }
    }

    fn remove_cluster(&self, master: &mut Master, index: usize) {
        if master.clusters[index].spec.take().is_none() {
            return;
        }
        let members = std::mem::take(&mut master.clusters[index].members);
        for member in members.iter() {
            self.remove_host(&master.clusters[index], member.entry.slot);
        }
        let cluster = &mut master.clusters[index];
        cluster.shared.detector.clear(&self.hosts);
        self.board.configure(&self.hosts, index as u32, &[]);
        cluster.view = None;
        cluster.outlier = None;
        cluster.linear = None;
        cluster.weights.clear();
        cluster.drop_ratio = 0.0;
        cluster.windows.clear();
    }

    fn ask_of<'a>(
        &'a self,
        cluster: &'a MasterCluster,
        spec: Option<&'a ClusterSpec>,
        slot: u32,
        priority: u8,
        counters: &'a ClusterCounters,
    ) -> Ask<'a> {
        let p = usize::from(priority);
        Ask {
            hosts: &self.hosts,
            slot,
            priority,
            members: cluster.view.as_ref().map_or(&[], |view| &view.members),
            ledger: &cluster.shared.ledgers[p],
            limits: cluster.view.as_ref().map_or(&self.no_limits, |view| &view.limits[p]),
            per_host: u32::MAX,
            streams: spec.map_or(1, ClusterView::streams_of),
            queues: &cluster.shared.queues,
            counters,
            strict: false,
            both_overflows: false,
        }
    }

    /// Builds a cluster's view anew; only the given priorities get new host sets.
    pub(crate) fn rebuild(&self, master: &mut Master, index: usize, changed: &[u32], now: Time) {
        let changes = Changes { lists: changed.iter().copied().collect(), ..Changes::default() };
        self.rebuild_for(master, index, &changes, now);
    }

    /// The same; what hosts weigh and tell is read anew where the lists are the same.
    fn rebuild_for(&self, master: &mut Master, index: usize, changes: &Changes, now: Time) {
        let Some(spec) = master.clusters[index].spec.clone() else { return };
        let old = master.clusters[index].view.clone();
        let numbers = spec.kind.subs().iter().map(|sub| master.names.cluster(sub)).collect();
        let subs = match &spec.kind {
            ClusterKind::Hosts => None,
            ClusterKind::Composite(_) => Some(Subs::Composite(numbers)),
            ClusterKind::Aggregate(_) => Some(Subs::Aggregate(numbers)),
        };
        let highest = master.clusters[index].members.highest();
        let count = (highest as usize + 1).max(old.as_ref().map_or(1, |old| old.sets.len()));
        let protected = protection::acts(&spec, &master.clusters[index], &self.hosts);
        let flipped = old.as_ref().is_some_and(|old| old.protected != protected);
        let mut sets = Vec::with_capacity(count);
        for priority in 0..count as u32 {
            let before = old.as_ref().and_then(|old| old.sets.get(priority as usize));
            match before {
                Some(set) if !changes.lists.contains(&priority) && !flipped => {
                    let mut set = set.clone();
                    if changes.facts.contains(&priority) {
                        set.version = master.version();
                    }
                    sets.push(set);
                }
                _ => {
                    let version = master.version();
                    let cluster = &master.clusters[index];
                    let mut set = self.host_set(cluster, priority, master.locality.as_ref());
                    set.version = version;
                    if protected {
                        set.protect();
                    }
                    sets.push(set);
                }
            }
        }
        // Hosts that serve before their first result are seen here; a passed check tells the others.
        let checked = self.settings.active_checks && !spec.health_checks.is_empty();
        if spec.policy.slow_start().is_some() && !checked {
            for slot in sets.iter().flat_map(|set| &set.healthy) {
                self.hosts.seen_healthy(*slot, now);
            }
        }
        let since = match &old {
            Some(old) if old.spec.policy == spec.policy => old.since,
            _ => now,
        };
        let threshold = master.runtime.healthy_panic_threshold.unwrap_or(spec.panic_threshold);
        if let Some(weights) = spec.policy.client_weights() {
            for set in &mut sets {
                if reweigh(weights, &set.hosts, &self.hosts, now) {
                    set.version = master.version();
                }
            }
        }
        let local = master.local.filter(|local| *local != index).map(|local| &master.clusters[local]);
        let local = local.and_then(|local| local.view.as_ref()?.sets.first());
        let mut prepared = Prepared::build(
            &spec.policy,
            threshold,
            &sets,
            &self.hosts,
            local.map(|set| Local { set, runtime: master.runtime.zone }),
            old.as_ref().map(|old| &old.prepared),
        );
        let due = std::mem::take(&mut master.clusters[index].loads_due);
        prepared.weigh_zones(&sets, &self.hosts, now, due);
        if prepared.zone_serial() != old.as_ref().map_or(0, |old| old.prepared.zone_serial()) {
            prepared.count_zone(&master.clusters[index].shared.counters.lock().base);
        }
        if let Some(subsets) = prepared.subset_counts() {
            let before = old.as_ref().and_then(|old| old.prepared.subset_counts()).unwrap_or_default();
            subsets.count(before, &master.clusters[index].shared.counters.lock().base);
        }
        let version = master.version();
        let cools = master.cools;
        let cluster = &mut master.clusters[index];
        cluster.windows.resize(sets.len(), Window::default());
        let bounded = ClusterView::bounds(&spec);
        let measures = ClusterView::measures_of(&spec);
        if measures.is_some() {
            cluster.members.iter().for_each(|member| self.hosts.measure(member.entry.slot));
        }
        let limits = master.limit_runtime.over(&spec.name, &spec.breakers.thresholds);
        for (ledger, limits) in cluster.shared.ledgers.iter().zip(&limits) {
            ledger.set_limits(limits, bounded);
        }
        let looks_back = ClusterView::looks_back(&limits);
        let steer = subs.is_none().then(|| Steer::of(&spec.options, cools)).flatten();
        cluster.view = Some(Arc::new(ClusterView {
            version,
            limits,
            made: now,
            since,
            streams: ClusterView::streams_of(&spec),
            strict: spec.connections == Some(crate::spec::ConnectionStyle::Strict),
            bounded,
            measures,
            protected,
            told_protected: cluster.told.protected,
            steer,
            direct: subs.is_none() && steer.is_none(),
            looks_back,
            spec,
            subs,
            sets,
            prepared,
            members: cluster.members.entries(),
        }));
        if master.local == Some(index) {
            self.rebuild_zones(master, index, now);
        }
    }

    /// The local cluster changed: every other cluster that has hosts routes by zone anew.
    #[cold]
    fn rebuild_zones(&self, master: &mut Master, local: usize, now: Time) {
        for index in (0..master.clusters.len()).filter(|index| *index != local) {
            if master.clusters[index].view.is_some() {
                self.rebuild(master, index, &[], now);
            }
        }
    }

    fn host_set<'a>(
        &self,
        cluster: &'a MasterCluster,
        priority: u32,
        local: Option<&'a Locality>,
    ) -> HostSet {
        let listed = cluster.members.iter().filter(|member| member.priority == priority);
        let place = |member: &'a HostMember| Member { slot: member.entry.slot, locality: &member.locality };
        let size = cluster.spec.as_ref().and_then(|spec| spec.subset_size);
        let members: Vec<Member<'_>> = match size {
            None => listed.map(place).collect(),
            Some(size) => {
                part_of(listed.collect(), size, self.settings.seed).into_iter().map(place).collect()
            }
        };
        let weights: Vec<(&Locality, u32)> = cluster
            .weights
            .iter()
            .filter(|(of, _, _)| *of == priority)
            .map(|(_, locality, weight)| (locality, *weight))
            .collect();
        HostSet::build(&self.hosts, &members, &weights, local, cluster.factor, cluster.weighted_health)
    }
}

impl MasterCluster {
    fn new(name: &str) -> Self {
        Self {
            shared: Arc::new(ClusterShared::new(name)),
            spec: None,
            members: Roster::default(),
            keeps: false,
            view: None,
            outlier: None,
            linear: None,
            weights: Vec::new(),
            factor: 140,
            weighted_health: false,
            drop_ratio: 0.0,
            drop_limit: None,
            told: protection::Told::default(),
            windows: Vec::new(),
            loads_due: false,
        }
    }
}

/// What policies depend on, when there are checks that nobody performs yet.
fn unchecked(specs: &Specs) -> Option<Box<Specs>> {
    if specs.clusters.iter().all(|cluster| cluster.health_checks.is_empty()) {
        return None;
    }
    let without_hosts = |cluster: &ClusterSpec| {
        let mut cluster = cluster.clone();
        cluster.endpoints = Endpoints::default();
        cluster
    };
    let clusters = specs.clusters.iter().map(without_hosts).collect();
    let Specs { route_tables, runtime, .. } = specs;
    Some(Box::new(Specs {
        clusters,
        route_tables: route_tables.clone(),
        runtime: runtime.clone(),
        ..Specs::default()
    }))
}

/// Names in the order of their numbers.
fn ordered(names: &BTreeMap<Box<str>, u32>) -> Vec<String> {
    let mut list: Vec<(&str, u32)> = names.iter().map(|(name, index)| (&**name, *index)).collect();
    list.sort_by_key(|(_, index)| *index);
    list.into_iter().map(|(name, _)| name.to_owned()).collect()
}
