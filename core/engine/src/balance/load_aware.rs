//! load_aware_locality (section 26): localities by how many hosts they have and how busy those say they are; the own
//! one first while it is not much busier than the rest. In each locality another policy chooses.

use super::{Accept, Local, Policy, Prepared, Scheduler, Selection, View};
use crate::clock::{Time, nanos};
use crate::hosts::HostArena;
use crate::random::{Random as _, Source as Words, split_mix};
use crate::sets::{HostSet, LocalityHosts};
use crate::spec::{LoadAware as Spec, Locality};
use crate::stats::Counter;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which hosts of a locality: those of one list of its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Healthy,
    Degraded,
    All,
}

const SOURCES: [Source; 3] = [Source::Healthy, Source::Degraded, Source::All];

impl Source {
    fn of(self, locality: &LocalityHosts) -> &[u32] {
        match self {
            Self::Healthy => &locality.healthy,
            Self::Degraded => &locality.degraded,
            Self::All => &locality.hosts,
        }
    }
}

/// As all workers share them: the lists, and what they weigh.
pub(super) struct Zones {
    spec: Arc<Spec>,
    /// By priority and source.
    places: Vec<[Place; 3]>,
    /// What the last computation gave.
    ticked: Arc<Ticked>,
}

/// One list of a priority, by locality.
struct Place {
    children: Vec<Option<Child>>,
    /// By locality.
    weights: Vec<f64>,
    total: f64,
    flags: Flags,
}

/// The hosts of one locality in one list, all of them as good as healthy.
struct Child {
    /// The same over updates while the list is not empty.
    id: u64,
    sets: [HostSet; 1],
    prepared: Prepared,
}

/// What one computation found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    all_overloaded: bool,
    local_preferred: bool,
    spill_active: bool,
    probe_active: bool,
    all_local: bool,
}

#[derive(Default)]
struct Ticked {
    /// Averages of utilization and their weights, by priority, source and locality.
    known: BTreeMap<(usize, Source, Locality), Known>,
    flags: BTreeMap<(usize, Source), Flags>,
    counts: LoadCounts,
    next: u64,
}

#[derive(Clone, Copy)]
struct Known {
    average: Option<f64>,
    weight: f64,
}

/// How often computations found what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadCounts {
    pub(crate) recompute: u64,
    pub(crate) all_overloaded: u64,
    pub(crate) local_preferred: u64,
    pub(crate) probe_active: u64,
    pub(crate) spill_active: u64,
    pub(crate) stale_locality: u64,
}

impl LoadCounts {
    /// With their names.
    pub(crate) fn each(self) -> [(&'static str, u64); 6] {
        [
            ("recompute", self.recompute),
            ("all_overloaded", self.all_overloaded),
            ("local_preferred", self.local_preferred),
            ("probe_active", self.probe_active),
            ("spill_active", self.spill_active),
            ("stale_locality", self.stale_locality),
        ]
    }
}

impl Zones {
    /// Which localities there are now; their weights stay as they were last computed, new ones weigh nothing.
    pub(super) fn build(
        spec: &Arc<Spec>,
        sets: &[HostSet],
        hosts: &HostArena,
        local: Option<Local<'_>>,
        previous: Option<&Self>,
    ) -> Self {
        let previous = previous.filter(|old| old.spec == *spec);
        let ticked = previous.map_or_else(Arc::default, |old| Arc::clone(&old.ticked));
        let mut next = ticked.next;
        let place = |priority: usize, set: &HostSet, source: Source, next: &mut u64| {
            let old =
                previous.and_then(|old| old.places.get(priority)).map(|places| &places[source as usize]);
            let child = |locality: &LocalityHosts| {
                let list = source.of(locality);
                if list.is_empty() {
                    return None;
                }
                let before = old.and_then(|old| {
                    let is_same = |child: &&Child| child.sets[0].localities[0].locality == locality.locality;
                    old.children.iter().flatten().find(is_same)
                });
                let sets = [alone(locality, list, set.version)];
                let before_prepared = before.map(|before| &before.prepared);
                // Panic cannot be: every host counts as healthy.
                let prepared = Prepared::build(&spec.child, 0, &sets, hosts, local, before_prepared);
                let id = before.map_or_else(
                    || {
                        *next += 1;
                        *next
                    },
                    |before| before.id,
                );
                Some(Child { id, sets, prepared })
            };
            let children: Vec<Option<Child>> = set.localities.iter().map(child).collect();
            let key = |locality: &LocalityHosts| (priority, source, locality.locality.clone());
            let weight = |locality| ticked.known.get(&key(locality)).map_or(0.0, |known| known.weight);
            let weights: Vec<f64> = set.localities.iter().map(weight).collect();
            let flags = ticked.flags.get(&(priority, source)).copied().unwrap_or_default();
            Place { children, total: weights.iter().sum(), weights, flags }
        };
        let mut places = Vec::with_capacity(sets.len());
        for (priority, set) in sets.iter().enumerate() {
            places.push(SOURCES.map(|source| place(priority, set, source, &mut next)));
        }
        let ticked = match next == ticked.next {
            true => ticked,
            false => Arc::new(Ticked {
                known: ticked.known.clone(),
                flags: ticked.flags.clone(),
                counts: ticked.counts,
                next,
            }),
        };
        Self { spec: Arc::clone(spec), places, ticked }
    }

    /// Computes the weights anew.
    pub(super) fn tick(&mut self, sets: &[HostSet], hosts: &HostArena, now: Time) {
        let alpha = alpha(nanos(self.spec.period), nanos(self.spec.smoothing));
        let expiration = nanos(self.spec.expiration);
        let mut known = BTreeMap::new();
        let mut all_flags = BTreeMap::new();
        let mut any = Flags::default();
        let mut stale_localities = 0;
        for (priority, set) in sets.iter().enumerate() {
            for source in SOURCES {
                let load = |locality: &LocalityHosts| {
                    let list = source.of(locality);
                    let fresh =
                        list.iter().filter_map(|slot| hosts.measured(*slot)?.utilization(now, expiration));
                    let (sum, count) =
                        fresh.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
                    let sample = (count > 0).then(|| sum / f64::from(count));
                    let key = (priority, source, locality.locality.clone());
                    let prior = self.ticked.known.get(&key).and_then(|known| known.average);
                    let average = match (sample, prior) {
                        (Some(sample), Some(prior)) => Some(alpha * sample + (1.0 - alpha) * prior),
                        (sample, prior) => sample.or(prior),
                    };
                    let stale = sample.is_none() && prior.is_some();
                    (
                        key,
                        Load { hosts: list.len() as f64, utilization: average.unwrap_or(0.0), stale },
                        average,
                    )
                };
                let loads: Vec<_> = set.localities.iter().map(load).collect();
                let each: Vec<Load> = loads.iter().map(|(_, load, _)| *load).collect();
                if source == Source::All {
                    stale_localities += each.iter().filter(|load| load.stale).count() as u64;
                }
                let (weights, flags) = weigh(&self.spec, &each, set.has_local);
                any.all_overloaded |= flags.all_overloaded;
                any.local_preferred |= flags.local_preferred;
                any.spill_active |= flags.spill_active;
                any.probe_active |= flags.probe_active;
                all_flags.insert((priority, source), flags);
                for ((key, _, average), weight) in loads.into_iter().zip(&weights) {
                    known.insert(key, Known { average, weight: *weight });
                }
                if let Some(places) = self.places.get_mut(priority) {
                    let place = &mut places[source as usize];
                    place.total = weights.iter().sum();
                    (place.weights, place.flags) = (weights, flags);
                }
            }
        }
        let mut counts = self.ticked.counts;
        counts.recompute += 1;
        counts.all_overloaded += u64::from(any.all_overloaded);
        counts.local_preferred += u64::from(any.local_preferred);
        counts.spill_active += u64::from(any.spill_active);
        counts.probe_active += u64::from(any.probe_active);
        counts.stale_locality += stale_localities;
        self.ticked = Arc::new(Ticked { known, flags: all_flags, counts, next: self.ticked.next });
    }

    /// Whether weights were ever computed.
    pub(super) fn has_ticked(&self) -> bool {
        self.ticked.counts.recompute > 0
    }

    pub(super) fn counts(&self) -> LoadCounts {
        self.ticked.counts
    }

    fn place(&self, priority: u32, source: Source) -> Option<&Place> {
        self.places.get(priority as usize).map(|places| &places[source as usize])
    }
}

/// A locality's list as a priority of its own, all hosts healthy.
fn alone(locality: &LocalityHosts, list: &[u32], version: u64) -> HostSet {
    let lists = || list.to_vec();
    let inner = LocalityHosts {
        locality: locality.locality.clone(),
        weight: locality.weight,
        hosts: lists(),
        healthy: lists(),
        degraded: Vec::new(),
        excluded: 0,
    };
    HostSet {
        version,
        hosts: lists(),
        healthy: lists(),
        localities: vec![inner],
        overprovisioning_factor: 140,
        ..HostSet::default()
    }
}

/// How much of a new sample goes into an average.
fn alpha(period: u64, smoothing: u64) -> f64 {
    1.0 - (-(period as f64) / smoothing.max(1) as f64).exp()
}

/// A locality as one computation sees it.
#[derive(Clone, Copy, Debug)]
struct Load {
    hosts: f64,
    utilization: f64,
    /// Its average is of an earlier computation.
    stale: bool,
}

/// The weights of localities; the first one is this node's when `has_local`.
fn weigh(spec: &Spec, loads: &[Load], has_local: bool) -> (Vec<f64>, Flags) {
    let mut flags = Flags::default();
    let free = |load: &Load| {
        if load.stale { load.hosts } else { load.hosts * (1.0 - load.utilization).max(0.0) }
    };
    let mut weights: Vec<f64> = loads.iter().map(free).collect();
    let hosts: f64 = loads.iter().map(|load| load.hosts).sum();
    let sum: f64 = weights.iter().sum();
    if sum == 0.0 {
        if hosts > 0.0 {
            weights = loads.iter().map(|load| load.hosts).collect();
            flags.all_overloaded = true;
        }
        return (weights, flags);
    }
    let Some((own, remote)) = loads.split_first().filter(|_| has_local) else { return (weights, flags) };
    let remote_hosts: f64 = remote.iter().map(|load| load.hosts).sum();
    if own.hosts > 0.0 && remote_hosts > 0.0 {
        let busy: f64 = remote.iter().map(|load| load.utilization * load.hosts).sum();
        if own.utilization <= busy / remote_hosts + spec.variance_threshold {
            weights.fill(0.0);
            weights[0] = 1.0;
            (flags.all_local, flags.local_preferred) = (true, true);
        } else {
            flags.spill_active = true;
        }
    }
    if remote_hosts > 0.0 && spec.probe_fraction > 0.0 {
        let total: f64 = weights.iter().sum();
        let rest = total - weights[0];
        let least = total * spec.probe_fraction;
        if rest < least {
            let moved = (least - rest).min(weights[0]);
            weights[0] -= moved;
            for (weight, load) in weights.iter_mut().zip(loads).skip(1) {
                *weight += moved * load.hosts / remote_hosts;
            }
            (flags.probe_active, flags.all_local) = (true, false);
        }
    }
    (weights, flags)
}

/// The locality that a word leads to.
fn locality_of(word: u64, weights: &[f64], total: f64) -> usize {
    if weights.len() < 2 || total <= 0.0 {
        return 0;
    }
    let at = split_mix(word) as f64 / u64::MAX as f64 * total;
    let mut upto = 0.0;
    let found = weights.iter().position(|weight| {
        upto += weight;
        upto > at
    });
    found.unwrap_or(weights.len() - 1)
}

/// The policy: one worker's balancers, by the number of their child.
pub(super) struct LoadAware {
    balancers: BTreeMap<u64, (Time, Scheduler)>,
}

fn zones<'a>(view: View<'a>) -> Option<&'a Zones> {
    view.prepared.zones()
}

impl Policy for LoadAware {
    fn new(view: View<'_>, random: &mut Words, now: Time) -> Self {
        let mut policy = Self { balancers: BTreeMap::new() };
        policy.refresh(view, random, now);
        policy
    }

    fn refresh(&mut self, view: View<'_>, random: &mut Words, now: Time) {
        let Some(zones) = zones(view) else { return };
        let mut old = std::mem::take(&mut self.balancers);
        for child in zones.places.iter().flatten().flat_map(|place| place.children.iter().flatten()) {
            let balancer = match old.remove(&child.id) {
                Some((since, mut scheduler)) => {
                    scheduler.refresh(child.view(view, zones, since), random, now);
                    (since, scheduler)
                }
                None => (now, Scheduler::new(child.view(view, zones, now), random, now)),
            };
            self.balancers.insert(child.id, balancer);
        }
    }

    #[inline(never)]
    fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        let zones = zones(view)?;
        let word = selection.random.next_u64();
        let (priority, degraded) = match selection.load {
            None => view.prepared.priority_for(word),
            Some(load) => load.choose(word),
        };
        let panic = view.prepared.panic_at(priority);
        if panic {
            selection.counters.count(Counter::LbHealthyPanic);
        }
        let source = source_of(panic, degraded);
        let place = zones.place(priority, source)?;
        let at = locality_of(word, &place.weights, place.total);
        if !panic && view.sets.get(priority as usize).is_some_and(|set| set.has_local) {
            selection.counters.count(match at {
                0 if place.flags.all_local => Counter::LbZoneRoutingAllDirectly,
                0 => Counter::LbZoneRoutingSampled,
                _ => Counter::LbZoneRoutingCrossZone,
            });
        }
        let child = place.children.get(at)?.as_ref().or_else(|| place.children.iter().flatten().next())?;
        self.child(child, zones, view, selection, |scheduler, view, selection| {
            scheduler.choose(view, selection)
        })
        .inspect(|_| settle(selection, priority, panic, degraded))
    }

    /// The localities of the list that the choice led to, the heaviest first, then those of other lists.
    fn search(&mut self, view: View<'_>, selection: &mut Selection<'_>, accept: Accept<'_>) -> Option<u32> {
        let zones = zones(view)?;
        let here = (selection.priority, selection.degraded);
        let mut places = view.prepared.places(selection.load);
        places.sort_by_key(|place| (*place != here, place.0 != here.0));
        for (priority, degraded) in places {
            let panic = view.prepared.panic_at(priority);
            let Some(place) = zones.place(priority, source_of(panic, degraded)) else { continue };
            let mut order: Vec<usize> = (0..place.children.len()).collect();
            order.sort_by(|a, b| place.weights[*b].total_cmp(&place.weights[*a]));
            for child in order.into_iter().filter_map(|at| place.children[at].as_ref()) {
                let found = self.child(child, zones, view, selection, |scheduler, view, selection| {
                    scheduler.search(view, selection, accept)
                });
                if found.is_some() {
                    settle(selection, priority, panic, degraded);
                    return found;
                }
            }
        }
        None
    }
}

fn source_of(panic: bool, degraded: bool) -> Source {
    match (panic, degraded) {
        (true, _) => Source::All,
        (false, true) => Source::Degraded,
        (false, false) => Source::Healthy,
    }
}

/// The child knew one priority only.
fn settle(selection: &mut Selection<'_>, priority: u32, panic: bool, degraded: bool) {
    (selection.priority, selection.panic, selection.degraded) = (priority, panic, degraded && !panic);
}

impl LoadAware {
    fn child(
        &mut self,
        child: &Child,
        zones: &Zones,
        view: View<'_>,
        selection: &mut Selection<'_>,
        ask: impl FnOnce(&mut Scheduler, View<'_>, &mut Selection<'_>) -> Option<u32>,
    ) -> Option<u32> {
        let (since, scheduler) = self.balancers.get_mut(&child.id)?;
        // Loads of priorities are this policy's.
        let mut inner = Selection { load: None, ..selection.reborrow() };
        ask(scheduler, child.view(view, zones, *since), &mut inner)
    }
}

impl Child {
    fn view<'a>(&'a self, view: View<'a>, zones: &'a Zones, since: Time) -> View<'a> {
        View {
            policy: &zones.spec.child,
            sets: &self.sets,
            prepared: &self.prepared,
            hosts: view.hosts,
            since,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::{Assignment, TestCluster, TestHost, each_case, word};
    use crate::hosts::flag;
    use crate::spec::PolicySpec;
    use std::time::Duration;

    #[test]
    fn load_aware_locality() {
        each_case("load_aware_locality", 16, &[], |name, given, expect| {
            let number = |key: &str| given[key].as_f64();
            if let Some(localities) = given["localities"].as_array() {
                let spec = Spec {
                    variance_threshold: number("utilization_variance_threshold").unwrap(),
                    probe_fraction: number("remote_probe_fraction").unwrap(),
                    ..Spec::default()
                };
                let load = |locality: &serde_json::Value| Load {
                    hosts: locality["eligible_hosts"].as_f64().unwrap(),
                    utilization: locality["utilization"].as_f64().unwrap_or(0.0),
                    stale: locality["stale"].as_bool().unwrap(),
                };
                let loads: Vec<Load> = localities.iter().map(load).collect();
                let (weights, flags) = weigh(&spec, &loads, given["first_is_local"].as_bool().unwrap());
                let flag = |key: &str| expect[key].as_bool().unwrap();
                let wanted = Flags {
                    all_overloaded: flag("all_overloaded"),
                    local_preferred: flag("local_preferred"),
                    spill_active: flag("spill_active"),
                    probe_active: flag("probe_active"),
                    all_local: flag("all_local"),
                };
                assert_eq!(flags, wanted, "{name}");
                let wanted: Vec<f64> =
                    expect["weights"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
                assert_eq!(weights, wanted, "{name}");
            } else if let Some(cumulative) = given["cumulative"].as_array() {
                let sums: Vec<f64> = cumulative.iter().map(|sum| sum.as_f64().unwrap()).collect();
                let mut before = 0.0;
                let weights: Vec<f64> =
                    sums.iter().map(|sum| sum - std::mem::replace(&mut before, *sum)).collect();
                let hash = word(&given["hash"]);
                assert_eq!(split_mix(hash), word(&expect["mixed"]), "{name}");
                let at = locality_of(hash, &weights, before);
                assert_eq!(at as u64, expect["index"].as_u64().unwrap(), "{name}");
            } else {
                let millis = |key: &str| given[key].as_u64().unwrap() * 1_000_000;
                let got = alpha(millis("weight_update_period_ms"), millis("smoothing_time_constant_ms"));
                let wanted = expect["alpha"].as_f64().unwrap();
                assert!((got - wanted).abs() <= 1e-12 * wanted, "{name}: {got}");
            }
        });
    }

    fn cluster(hosts: &[TestHost]) -> TestCluster {
        let mut cluster = TestCluster::new(
            PolicySpec::LoadAwareLocality(Arc::new(Spec {
                probe_fraction: 0.0,
                expiration: Duration::from_secs(2),
                ..Spec::default()
            })),
            Assignment { priorities: 2, ..Assignment::default() },
        );
        cluster.at = Some(0);
        cluster.update(hosts, &[]);
        cluster.slots.iter().for_each(|slot| cluster.arena.measure(*slot));
        cluster
    }

    fn hosts() -> Vec<TestHost> {
        (0..4).map(|at| TestHost { locality: at / 2, ..TestHost::at(&format!("10.0.0.{at}:80")) }).collect()
    }

    fn shares(cluster: &mut TestCluster) -> [u32; 2] {
        let mut shares = [0; 2];
        for word in 0..2000_u64 {
            shares[cluster.pick(&[split_mix(word)]).host.unwrap() / 2] += 1;
        }
        shares
    }

    #[test]
    fn the_own_locality_until_it_is_busy() {
        let mut cluster = cluster(&hosts());
        // Before anything was computed everything goes to the first.
        assert_eq!(shares(&mut cluster), [2000, 0]);
        cluster.tick();
        assert_eq!(shares(&mut cluster), [2000, 0]);
        assert_eq!(cluster.counters.get(Counter::LbZoneRoutingAllDirectly), 2000);
        for slot in &cluster.slots[..2] {
            cluster.arena.measured(*slot).unwrap().utilize(0.9, cluster.now);
        }
        for slot in &cluster.slots[2..] {
            cluster.arena.measured(*slot).unwrap().utilize(0.1, cluster.now);
        }
        cluster.tick();
        let [own, other] = shares(&mut cluster);
        assert!((150..250).contains(&own) && own + other == 2000, "{own} {other}");
        assert!(cluster.counters.get(Counter::LbZoneRoutingCrossZone) > 1700);
        // Without news the averages stay, and count as hosts do.
        cluster.now = Time(3_000_000_000);
        cluster.tick();
        let [own, other] = shares(&mut cluster);
        assert!(own.abs_diff(other) < 200, "{own} {other}");
        let counts = cluster.prepared.load_counts().unwrap();
        assert_eq!((counts.recompute, counts.spill_active, counts.stale_locality), (3, 2, 2));
    }

    #[test]
    fn degraded_hosts_and_panic_have_lists_of_their_own() {
        let mut all = hosts();
        for host in &mut all[..3] {
            host.flags = flag::DEGRADED_EDS_HEALTH;
        }
        let mut cluster = cluster(&all);
        cluster.tick();
        let picked = cluster.pick(&[99]);
        assert!(picked.degraded && picked.host.unwrap() < 3);
        for host in &mut all {
            host.flags = flag::FAILED_EDS_HEALTH;
        }
        cluster.update(&all, &[]);
        cluster.tick();
        let picked = cluster.pick(&[0]);
        assert!(picked.panic && picked.host.is_some());
    }
}
