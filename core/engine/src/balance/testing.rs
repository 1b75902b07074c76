//! A cluster for tests, and the files of expectations.

use super::{Criteria, FilterCall, Local, Overrides, Prepared, Scheduler, Selection, View, ZoneRuntime};
use crate::clock::Time;
use crate::hosts::{HostArena, HostInfo};
use crate::random::{Draws, Source};
use crate::sets::{HostSet, Member};
use crate::spec::{Locality, Metadata, PolicySpec, Value as Meta};
use crate::stats::{ClusterCounters, Counter};
use serde_json::Value;
use std::collections::BTreeMap;

/// A host of a test cluster.
#[derive(Clone, Debug)]
pub(crate) struct TestHost {
    pub(crate) priority: usize,
    /// Localities sort by this number.
    pub(crate) locality: u32,
    pub(crate) weight: u32,
    pub(crate) flags: u32,
    pub(crate) address: String,
    pub(crate) hostname: String,
    pub(crate) hash_key: Option<String>,
    /// `envoy.lb`, beside the hash key.
    pub(crate) metadata: BTreeMap<String, Meta>,
    /// As an instance list has it.
    pub(crate) registry_weight: Option<f64>,
    pub(crate) registry_id: Option<String>,
}

impl Default for TestHost {
    fn default() -> Self {
        Self {
            priority: 0,
            locality: 0,
            weight: 1,
            flags: 0,
            address: "127.0.0.1:80".into(),
            hostname: String::new(),
            hash_key: None,
            metadata: BTreeMap::new(),
            registry_weight: None,
            registry_id: None,
        }
    }
}

impl TestHost {
    pub(crate) fn weighing(weight: u32) -> Self {
        Self { weight, ..Self::default() }
    }

    pub(crate) fn at(address: &str) -> Self {
        Self { address: address.into(), ..Self::default() }
    }

    pub(crate) fn add_to(&self, arena: &HostArena) -> u32 {
        arena.add(self.info(), self.flags)
    }

    fn info(&self) -> HostInfo {
        let mut lb = self.metadata.clone();
        lb.extend(self.hash_key.iter().map(|key| ("hash_key".to_owned(), Meta::String(key.clone()))));
        let mut metadata = Metadata::default();
        if !lb.is_empty() {
            metadata.0.insert("envoy.lb".into(), lb);
        }
        let weight = self.registry_weight.map(|weight| ("weight".to_owned(), Meta::Number(weight)));
        let id = self.registry_id.clone().map(|id| ("id".to_owned(), Meta::String(id)));
        let own: BTreeMap<String, Meta> = weight.into_iter().chain(id).collect();
        if !own.is_empty() {
            metadata.0.insert("nexthop".into(), own);
        }
        let mut info = HostInfo {
            priority: self.priority as u32,
            locality: locality(self.locality).into(),
            ..HostInfo::at(&self.address)
        };
        info.spec.hostname.clone_from(&self.hostname);
        info.spec.weight = self.weight;
        info.spec.metadata = metadata;
        info
    }
}

fn locality(number: u32) -> Locality {
    Locality { zone: format!("{number:08}"), ..Locality::default() }
}

/// What a cluster's update says besides its hosts.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) priorities: usize,
    /// Number and weight of localities, for every priority.
    pub(crate) locality_weights: Vec<(u32, u32)>,
    pub(crate) overprovisioning_factor: u32,
    pub(crate) weighted_priority_health: bool,
}

impl Default for Assignment {
    fn default() -> Self {
        Self {
            priorities: 1,
            locality_weights: Vec::new(),
            overprovisioning_factor: 140,
            weighted_priority_health: false,
        }
    }
}

/// A cluster with one worker.
pub(crate) struct TestCluster {
    pub(crate) arena: HostArena,
    pub(crate) policy: PolicySpec,
    pub(crate) threshold: u32,
    pub(crate) assignment: Assignment,
    pub(crate) sets: Vec<HostSet>,
    pub(crate) prepared: Prepared,
    /// Slots of the hosts of the last update, in their order there.
    pub(crate) slots: Vec<u32>,
    pub(crate) counters: ClusterCounters,
    pub(crate) cluster_active: u32,
    pub(crate) now: Time,
    /// Priority 0 of the local cluster.
    pub(crate) local: Option<HostSet>,
    /// Number of this node's locality.
    pub(crate) at: Option<u32>,
    scheduler: Option<Scheduler>,
    version: u64,
}

/// One pick: what was chosen and what it took.
pub(crate) struct Picked {
    /// Position in the hosts of the last update.
    pub(crate) host: Option<usize>,
    pub(crate) draws: usize,
    pub(crate) priority: u32,
    pub(crate) panic: bool,
    pub(crate) degraded: bool,
}

/// What a request brings to a pick.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) hash: Option<u64>,
    pub(crate) criteria: Option<&'a Criteria>,
    pub(crate) filters: Option<&'a FilterCall<'a>>,
    pub(crate) overrides: Option<&'a Overrides>,
    pub(crate) words: &'a [u64],
    pub(crate) candidates: u32,
    /// By position in the hosts of the last update.
    pub(crate) reject: Option<&'a dyn Fn(usize) -> bool>,
    /// Hosts that shall not be met while any other can be had, by the same positions.
    pub(crate) tried: Option<&'a dyn Fn(usize) -> bool>,
}

impl Default for Ask<'_> {
    fn default() -> Self {
        Self {
            hash: None,
            criteria: None,
            filters: None,
            overrides: None,
            words: &[],
            candidates: 1,
            reject: None,
            tried: None,
        }
    }
}

impl TestCluster {
    pub(crate) fn new(policy: PolicySpec, assignment: Assignment) -> Self {
        let arena = HostArena::default();
        let prepared = Prepared::build(&policy, 50, &[], &arena, None, None);
        Self {
            arena,
            policy,
            threshold: 50,
            assignment,
            sets: Vec::new(),
            prepared,
            slots: Vec::new(),
            counters: ClusterCounters::default(),
            cluster_active: 0,
            now: Time(0),
            local: None,
            at: None,
            scheduler: None,
            version: 0,
        }
    }

    /// With these hosts from the start; `words` are the draws of construction.
    pub(crate) fn with_hosts(policy: PolicySpec, hosts: &[TestHost], words: &[u64]) -> Self {
        let mut cluster = Self::new(policy, Assignment::default());
        cluster.update(hosts, words);
        cluster
    }

    /// Replaces all hosts; returns how many words that drew.
    pub(crate) fn update(&mut self, hosts: &[TestHost], words: &[u64]) -> usize {
        self.version += 1;
        self.slots = hosts.iter().map(|host| host.add_to(&self.arena)).collect();
        let localities: Vec<Locality> = hosts.iter().map(|host| locality(host.locality)).collect();
        let weighted: Vec<(Locality, u32)> =
            self.assignment.locality_weights.iter().map(|(at, weight)| (locality(*at), *weight)).collect();
        let at = self.at.map(locality);
        let weights: Vec<(&Locality, u32)> = weighted.iter().map(|(at, weight)| (at, *weight)).collect();
        self.sets = (0..self.assignment.priorities)
            .map(|priority| {
                let members: Vec<Member<'_>> = (0..hosts.len())
                    .filter(|at| hosts[*at].priority == priority)
                    .map(|at| Member { slot: self.slots[at], locality: &localities[at] })
                    .collect();
                let mut set = HostSet::build(
                    &self.arena,
                    &members,
                    &weights,
                    at.as_ref(),
                    self.assignment.overprovisioning_factor,
                    self.assignment.weighted_priority_health,
                );
                set.version = self.version;
                set
            })
            .collect();
        self.reschedule(words)
    }

    /// Prepares and refreshes for the present sets; returns how many words that drew.
    pub(crate) fn reschedule(&mut self, words: &[u64]) -> usize {
        let local = self.local.as_ref().map(|set| Local { set, runtime: ZoneRuntime::default() });
        self.prepared = Prepared::build(
            &self.policy,
            self.threshold,
            &self.sets,
            &self.arena,
            local,
            Some(&self.prepared),
        );
        let mut random = Source::Draws(Draws::new(words.to_vec()));
        let view = View {
            policy: &self.policy,
            sets: &self.sets,
            prepared: &self.prepared,
            hosts: &self.arena,
            since: Time(0),
        };
        match &mut self.scheduler {
            Some(scheduler) => scheduler.refresh(view, &mut random, self.now),
            None => self.scheduler = Some(Scheduler::new(view, &mut random, self.now)),
        }
        taken(&random)
    }

    /// Computes what time alone changes: load-aware weights.
    pub(crate) fn tick(&mut self) {
        self.prepared.weigh_zones(&self.sets, &self.arena, self.now, true);
    }

    /// The same after an update that changed nothing that shows in the sets.
    pub(crate) fn reschedule_all(&mut self) {
        self.version += 1;
        for set in &mut self.sets {
            set.version = self.version;
        }
        self.reschedule(&[]);
    }

    pub(crate) fn pick(&mut self, words: &[u64]) -> Picked {
        self.ask(Ask { words, ..Ask::default() })
    }

    pub(crate) fn ask(&mut self, ask: Ask<'_>) -> Picked {
        let mut random = Source::Draws(Draws::new(ask.words.to_vec()));
        let (host, priority, panic, degraded) = {
            let slots = &self.slots;
            let position = |slot: u32| slots.iter().position(|s| *s == slot).expect("a host of the cluster");
            let by_slot = ask.reject.map(|reject| move |slot: u32| reject(position(slot)));
            let mut selection = Selection {
                load: None,
                hash: ask.hash,
                criteria: ask.criteria,
                filters: ask.filters,
                overrides: ask.overrides,
                random: &mut random,
                now: self.now,
                candidates: ask.candidates,
                reject: by_slot.as_ref().map(|reject| reject as &dyn Fn(u32) -> bool),
                cluster_active: self.cluster_active,
                counters: &self.counters,
                priority: 0,
                panic: false,
                degraded: false,
            };
            let view = View {
                policy: &self.policy,
                sets: &self.sets,
                prepared: &self.prepared,
                hosts: &self.arena,
                since: Time(0),
            };
            let scheduler = self.scheduler.as_mut().expect("an update came before");
            let slot = match ask.tried {
                None => scheduler.choose(view, &mut selection),
                Some(tried) => scheduler.choose_untried(view, &mut selection, &|slot| tried(position(slot))),
            };
            (slot.map(position), selection.priority, selection.panic, selection.degraded)
        };
        Picked { host, draws: taken(&random), priority, panic, degraded }
    }

    /// `count` picks with words of zero.
    pub(crate) fn picks(&mut self, count: usize) -> Vec<usize> {
        (0..count).map(|_| self.pick(&[]).host.expect("a host")).collect()
    }

    pub(crate) fn set_active(&self, host: usize, active: u32) {
        self.arena.load(self.slots[host]).set_active(active);
    }

    pub(crate) fn panics_counted(&self) -> u64 {
        self.counters.get(Counter::LbHealthyPanic)
    }
}

fn taken(random: &Source) -> usize {
    match random {
        Source::Draws(draws) => draws.taken(),
        Source::Xoshiro(_) | Source::Custom(_) => unreachable!("tests give words"),
    }
}

/// Runs every case of `tests/vectors/lb/<file>.json` but those named in `elsewhere`, which need what is not
/// decided here; each of these must exist. `count` run.
pub(crate) fn each_case(
    file: &str,
    count: usize,
    elsewhere: &[&str],
    mut run: impl FnMut(&str, &Value, &Value),
) {
    let cases = nexthop_vectors::read(&format!("lb/{file}.json"), count + elsewhere.len());
    let mut left = elsewhere.len();
    for case in &cases.list {
        let name = case["name"].as_str().expect("a name");
        match elsewhere.contains(&name) {
            true => left -= 1,
            false => run(&format!("{file}: {name}"), &case["given"], &case["expect"]),
        }
    }
    assert!(left == 0 || !cases.ours, "{file} has no longer each of {elsewhere:?}");
}

/// A 64-bit number: decimal text or a JSON number.
pub(crate) fn word(value: &Value) -> u64 {
    value
        .as_u64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
        .unwrap_or_else(|| panic!("not a 64-bit number: {value}"))
}

/// A list of 64-bit numbers; empty when there is none.
pub(crate) fn words(value: &Value) -> Vec<u64> {
    value.as_array().map_or_else(Vec::new, |list| list.iter().map(word).collect())
}

/// A list of indices, counts or percentages; empty when there is none.
pub(crate) fn numbers<T: TryFrom<u64, Error: std::fmt::Debug>>(value: &Value) -> Vec<T> {
    words(value).into_iter().map(|number| T::try_from(number).expect("in range")).collect()
}
