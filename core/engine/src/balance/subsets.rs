//! Subsets as all workers share them (sections 22.2 and 22.5): which there are, and their hosts.

use super::criteria::{names, push};
use super::{Local, Prepared};
use crate::hosts::{HostArena, flag};
use crate::sets::{HostSet, LocalityHosts};
use crate::spec::{SelectorFallback, SubsetFallback, SubsetSelector, SubsetSpec, Value};
use crate::stats::{ClusterCounters, Counter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Every subset that has a host.
pub(super) struct Subsets {
    /// The fallbacks' first, then by age.
    pub(super) children: Vec<Child>,
    by_key: BTreeMap<String, usize>,
    any: Option<usize>,
    default: Option<usize>,
    /// Number of the selector whose fallback acts, by its keys.
    fallbacks: BTreeMap<String, usize>,
    /// Selectors with the most keys first.
    widest: Vec<usize>,
    next: u64,
    created: u64,
    removed: u64,
    duplicates: u64,
    /// What they were made for.
    spec: Arc<SubsetSpec>,
}

/// What one balancer counts of its subsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SubsetCounts {
    /// Without those of the fallbacks.
    pub(crate) active: u64,
    /// Since this policy began.
    pub(crate) created: u64,
    /// Since this policy began.
    pub(crate) removed: u64,
    /// Hosts that subsets of one host left out, in the last priority.
    pub(crate) duplicates: u64,
}

impl SubsetCounts {
    /// Counts what was created and removed since `before`.
    pub(crate) fn count(self, before: Self, counters: &ClusterCounters) {
        // A policy that began anew counts from zero.
        let before = if before.created > self.created { Self::default() } else { before };
        for _ in before.created..self.created {
            counters.count(Counter::LbSubsetsCreated);
        }
        for _ in before.removed..self.removed {
            counters.count(Counter::LbSubsetsRemoved);
        }
    }
}

/// One subset.
pub(super) struct Child {
    /// Which; the same over updates.
    pub(super) id: u64,
    /// The only host that counts and its priority, where a subset is one host.
    pub(super) single: Option<(u32, u32)>,
    pub(super) sets: Vec<HostSet>,
    pub(super) prepared: Prepared,
}

/// Hosts of a subset by priority, before it is one.
struct Found {
    single: bool,
    hosts: Vec<BTreeSet<u32>>,
    /// In list order, priority after priority.
    first: (u32, u32),
}

/// What all children are made with.
struct Making<'a> {
    spec: &'a SubsetSpec,
    threshold: u32,
    sets: &'a [HostSet],
    hosts: &'a HostArena,
    local: Option<Local<'a>>,
    previous: Option<&'a Subsets>,
}

const ANY: u64 = 0;
const DEFAULT: u64 = 1;

impl Subsets {
    pub(super) fn build(
        spec: &Arc<SubsetSpec>,
        threshold: u32,
        sets: &[HostSet],
        hosts: &HostArena,
        local: Option<Local<'_>>,
        previous: Option<&Self>,
    ) -> Self {
        let previous = previous.filter(|old| old.spec == *spec);
        let mut found: BTreeMap<String, Found> = BTreeMap::new();
        let mut order: Vec<String> = Vec::new();
        let mut duplicates = 0;
        for (priority, set) in sets.iter().enumerate() {
            duplicates = 0;
            for slot in &set.hosts {
                let Some((_, info)) = hosts.info(*slot) else { continue };
                let Some(metadata) = info.metadata.0.get("envoy.lb") else { continue };
                for selector in &spec.selectors {
                    for key in keys(selector, metadata, spec.list_as_any) {
                        let subset = found.entry(key.clone()).or_insert_with(|| {
                            let old = previous.and_then(|old| Some(&old.children[*old.by_key.get(&key)?]));
                            let single = old.map_or(selector.single_host, |old| old.single.is_some());
                            order.push(key);
                            let hosts = vec![BTreeSet::new(); sets.len()];
                            Found { single, hosts, first: (*slot, priority as u32) }
                        });
                        let first_here = subset.hosts[priority].is_empty();
                        if subset.hosts[priority].insert(*slot) && subset.single && !first_here {
                            duplicates += 1;
                        }
                    }
                }
            }
        }
        let making = Making { spec, threshold, sets, hosts, local, previous };
        let mut next = previous.map_or(DEFAULT + 1, |old| old.next);
        let mut children = Vec::new();
        let any = making.wants_any().then_some(children.len());
        children.extend(any.map(|_| making.child(ANY, None, None)));
        let default = making.wants_default().then_some(children.len());
        children.extend(default.map(|_| making.child(DEFAULT, None, Some(&making.default_hosts()))));
        // Those that were there keep their age, new ones follow as they were met.
        let id_of = |key: &String| previous.and_then(|old| Some(old.children[*old.by_key.get(key)?].id));
        let mut ids: Vec<(u64, String)> = Vec::new();
        let mut created = 0;
        for key in order {
            let id = id_of(&key).unwrap_or_else(|| {
                created += 1;
                next += 1;
                next - 1
            });
            ids.push((id, key));
        }
        let kept = ids.len() as u64 - created;
        let removed = previous.map_or(0, |old| old.by_key.len() as u64) - kept;
        ids.sort_unstable();
        let mut by_key = BTreeMap::new();
        for (id, key) in ids {
            let subset = &found[&key];
            let single = subset.single.then_some(subset.first);
            by_key.insert(key, children.len());
            children.push(making.child(id, single, Some(&subset.hosts)));
        }
        let mut widest: Vec<usize> = (0..spec.selectors.len()).collect();
        widest.sort_by_key(|at| std::cmp::Reverse(spec.selectors[*at].keys.len()));
        Self {
            children,
            by_key,
            any,
            default,
            fallbacks: fallbacks(&spec.selectors),
            widest,
            next,
            created: previous.map_or(0, |old| old.created) + created,
            removed: previous.map_or(0, |old| old.removed) + removed,
            duplicates,
            spec: Arc::clone(spec),
        }
    }

    pub(super) fn counts(&self) -> SubsetCounts {
        SubsetCounts {
            active: self.by_key.len() as u64,
            created: self.created,
            removed: self.removed,
            duplicates: self.duplicates,
        }
    }

    pub(super) fn with_key(&self, key: &str) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    pub(super) fn any(&self) -> Option<usize> {
        self.any
    }

    pub(super) fn default(&self) -> Option<usize> {
        self.default
    }

    /// The fallback of the selector with these keys.
    pub(super) fn fallback<'s>(&self, spec: &'s SubsetSpec, names: &str) -> Option<&'s SelectorFallback> {
        spec.selectors.get(*self.fallbacks.get(names)?)?.fallback.as_ref()
    }

    pub(super) fn widest<'s>(&self, spec: &'s SubsetSpec) -> impl Iterator<Item = &'s SubsetSelector> {
        self.widest.iter().filter_map(|at| spec.selectors.get(*at))
    }
}

impl Making<'_> {
    fn wants_any(&self) -> bool {
        self.spec.fallback == SubsetFallback::Any
            || self.spec.panic_mode_any
            || self.spec.selectors.iter().any(|s| s.fallback == Some(SelectorFallback::Any))
    }

    fn wants_default(&self) -> bool {
        self.spec.fallback == SubsetFallback::Default
            || self.spec.selectors.iter().any(|s| s.fallback == Some(SelectorFallback::Default))
    }

    fn default_hosts(&self) -> Vec<BTreeSet<u32>> {
        let fits = |slot: &u32| {
            let info = self.hosts.info(*slot);
            self.spec.default_subset.iter().all(|(name, wanted)| {
                let has = info.as_ref().and_then(|(_, info)| info.metadata.lb(name));
                match has {
                    Some(Value::List(items)) if self.spec.list_as_any => items.contains(wanted),
                    Some(value) => value == wanted,
                    None => false,
                }
            })
        };
        self.sets.iter().map(|set| set.hosts.iter().copied().filter(fits).collect()).collect()
    }

    /// `hosts` by priority; `None` = all.
    fn child(&self, id: u64, single: Option<(u32, u32)>, hosts: Option<&[BTreeSet<u32>]>) -> Child {
        let before = self.previous.and_then(|old| old.children.iter().find(|child| child.id == id));
        // A single host is chosen without any set.
        let sets: Vec<HostSet> = match single {
            Some(_) => Vec::new(),
            None => {
                let each = self.sets.iter().enumerate();
                each.map(|(priority, set)| self.filter(set, hosts.map(|hosts| &hosts[priority]))).collect()
            }
        };
        let prepared = Prepared::build(
            &self.spec.child,
            self.threshold,
            &sets,
            self.hosts,
            self.local,
            before.map(|before| &before.prepared),
        );
        Child { id, single, sets, prepared }
    }

    fn filter(&self, set: &HostSet, keep: Option<&BTreeSet<u32>>) -> HostSet {
        let list = |list: &[u32]| -> Vec<u32> {
            list.iter().copied().filter(|slot| keep.is_none_or(|keep| keep.contains(slot))).collect()
        };
        let excluded =
            |list: &[u32]| list.iter().filter(|slot| flag::excluded(self.hosts.flags(**slot))).count() as u32;
        let locality = |whole: &LocalityHosts| {
            let hosts = list(&whole.hosts);
            LocalityHosts {
                locality: whole.locality.clone(),
                weight: match (self.spec.locality_weight_aware, self.spec.scale_locality_weight) {
                    (false, _) => 0,
                    (true, false) => whole.weight,
                    (true, true) => scaled(whole.weight, hosts.len(), whole.hosts.len()),
                },
                healthy: list(&whole.healthy),
                degraded: list(&whole.degraded),
                excluded: excluded(&hosts),
                hosts,
            }
        };
        let hosts = list(&set.hosts);
        HostSet {
            version: set.version,
            healthy: list(&set.healthy),
            degraded: list(&set.degraded),
            excluded: excluded(&hosts),
            hosts,
            localities: set.localities.iter().map(locality).collect(),
            has_local: set.has_local,
            overprovisioning_factor: set.overprovisioning_factor,
            weighted_priority_health: set.weighted_priority_health,
        }
    }
}

/// A locality's weight for a subset with `part` of its `whole` hosts: single precision, halves away from zero.
pub(super) fn scaled(weight: u32, part: usize, whole: usize) -> u32 {
    if whole == 0 {
        return 0;
    }
    ((u64::from(weight) * part as u64) as f32 / whole as f32).round() as u32
}

/// Every subset of a selector that a host is in, by its key.
fn keys(selector: &SubsetSelector, metadata: &BTreeMap<String, Value>, list_as_any: bool) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for name in &selector.keys {
        let Some(value) = metadata.get(name) else { return Vec::new() };
        let values: &[Value] = match value {
            Value::List(items) if list_as_any => items,
            value => std::slice::from_ref(value),
        };
        // An empty list drops what was built so far; later keys begin anew.
        if keys.is_empty() {
            keys.push(String::new());
        }
        let longer = |key: &String| {
            let key = key.clone();
            values.iter().map(move |value| {
                let mut key = key.clone();
                push(&mut key, name, value);
                key
            })
        };
        keys = keys.iter().flat_map(longer).collect();
    }
    keys
}

/// Whose fallback acts for which keys: a selector that only names keys with which an earlier one begins has lost its own.
fn fallbacks(selectors: &[SubsetSelector]) -> BTreeMap<String, usize> {
    let mut nodes: BTreeSet<&[String]> = BTreeSet::new();
    let mut fallbacks = BTreeMap::new();
    for (at, selector) in selectors.iter().enumerate() {
        let mut made = false;
        for upto in 1..=selector.keys.len() {
            made = nodes.insert(&selector.keys[..upto]);
        }
        if made {
            fallbacks.insert(names(selector.keys.iter()), at);
        }
    }
    fallbacks
}
