//! The priorities of several clusters, laid end to end (`spec/composite-and-aggregate.md` B2 to B5).

use super::PriorityLoad;
use super::priority::{Division, Loads};
use crate::hosts::HostArena;
use crate::sets::HostSet;
use std::collections::BTreeMap;

/// What an aggregate cluster chooses by. Immutable: made anew when anything it is made of changes.
pub(crate) struct Linear {
    loads: Loads,
    division: Division,
    places: Vec<Place>,
    /// Linear priority by cluster and its own priority; of a cluster that is listed twice the last one.
    by_host: BTreeMap<(u32, u32), u32>,
    /// What it was made of.
    parts: Parts,
}

/// The panic threshold, then each listed cluster with the version of its view; 0 = it is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) threshold: u32,
    pub(crate) clusters: Vec<(u32, u64)>,
}

/// One linear priority.
pub(crate) struct Place {
    /// The cluster it comes from.
    pub(crate) cluster: u32,
    /// What the cluster is made to do: all of its load to this one priority.
    healthy: PriorityLoad,
    degraded: PriorityLoad,
}

impl Linear {
    /// `sets` are those of each listed cluster, in the order of `parts`. Priorities without hosts are left out.
    pub(crate) fn new(parts: Parts, sets: &[&[HostSet]], hosts: &HostArena) -> Self {
        let mut linear = Vec::new();
        let mut places = Vec::new();
        let mut by_host = BTreeMap::new();
        for (&(cluster, _), sets) in parts.clusters.iter().zip(sets) {
            for (priority, set) in (0..).zip(*sets).filter(|(_, set)| !set.hosts.is_empty()) {
                by_host.insert((cluster, priority), linear.len() as u32);
                linear.push(set.clone());
                places.push(Place::new(cluster, priority));
            }
        }
        let loads = Loads::compute(&linear, parts.threshold, hosts, None);
        let division = Division::new(&loads.healthy, &loads.degraded);
        Self { loads, division, places, by_host, parts }
    }

    pub(crate) fn is_made_of(&self, parts: &Parts) -> bool {
        self.parts == *parts
    }

    /// Whether there is anything to choose among; without it no word is drawn.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Where a word leads, and whether degraded hosts are meant there. `load` replaces the own division.
    pub(crate) fn choose(&self, load: Option<&PriorityLoad>, word: u64) -> Option<(&Place, bool)> {
        let (at, degraded) = load.map_or_else(|| self.division.choose(word), |load| load.choose(word));
        Some((self.places.get(at as usize)?, degraded))
    }

    /// Every place that has hosts to give: first those with healthy ones, then those with degraded ones, in order.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&Place, bool)> {
        let (healthy, degraded) = self.availability();
        let places = |of: &'_ [u32]| -> Vec<&Place> {
            self.places.iter().zip(of).filter(|(_, percent)| **percent > 0).map(|(place, _)| place).collect()
        };
        let healthy = places(healthy).into_iter().map(|place| (place, false));
        healthy.chain(places(degraded).into_iter().map(|place| (place, true)))
    }

    /// The linear priority of a host that belongs to a cluster's priority.
    pub(crate) fn priority_of(&self, cluster: u32, priority: u32) -> Option<u32> {
        self.by_host.get(&(cluster, priority)).copied()
    }

    /// Percent of its full share that each could take with healthy hosts, and with degraded ones.
    pub(crate) fn availability(&self) -> (&[u32], &[u32]) {
        (&self.loads.healthy_availability, &self.loads.degraded_availability)
    }

    /// The division of the load over healthy hosts, and over degraded ones, in percent.
    #[cfg(test)]
    pub(crate) fn loads(&self) -> (&[u32], &[u32]) {
        (&self.loads.healthy, &self.loads.degraded)
    }

    /// Cluster and own priority of each linear priority.
    #[cfg(test)]
    pub(crate) fn order(&self) -> impl Iterator<Item = (u32, u32)> {
        self.places.iter().map(|place| (place.cluster, place.healthy.healthy.len() as u32 - 1))
    }
}

impl Place {
    fn new(cluster: u32, priority: u32) -> Self {
        let mut only = vec![0; priority as usize + 1];
        let none = only.clone();
        only[priority as usize] = 100;
        Self {
            cluster,
            healthy: PriorityLoad { healthy: only.clone(), degraded: none.clone() },
            degraded: PriorityLoad { healthy: none, degraded: only },
        }
    }

    pub(crate) fn load(&self, degraded: bool) -> &PriorityLoad {
        if degraded { &self.degraded } else { &self.healthy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::numbers;
    use serde_json::Value;

    fn vectors(file: &str, count: usize) -> nexthop_vectors::Cases {
        nexthop_vectors::read(&format!("aggregate/{file}.json"), count)
    }

    fn set(given: &Value, factor: u32) -> HostSet {
        let list =
            |from: u64, key: &str| (from as u32..(from + given[key].as_u64().unwrap()) as u32).collect();
        HostSet {
            hosts: list(0, "hosts"),
            healthy: list(0, "healthy"),
            degraded: list(given["healthy"].as_u64().unwrap(), "degraded"),
            overprovisioning_factor: factor,
            ..HostSet::default()
        }
    }

    fn linear(threshold: u32, sets: &[&[HostSet]]) -> Linear {
        let clusters = (0..sets.len() as u32).map(|cluster| (cluster, 1)).collect();
        Linear::new(Parts { threshold, clusters }, sets, &HostArena::default())
    }

    #[test]
    fn load_distribution() {
        for case in &vectors("load_distribution", 16).list {
            let (given, expect) = (&case["given"], &case["expect"]);
            let factor = given["overprovisioning"].as_u64().unwrap() as u32;
            let sets = |key: &str| -> Vec<HostSet> {
                given[key].as_array().unwrap().iter().map(|priority| set(priority, factor)).collect()
            };
            let (primary, secondary) = (sets("primary"), sets("secondary"));
            let linear = linear(given["panic_threshold"].as_u64().unwrap() as u32, &[&primary, &secondary]);
            let id = &case["id"];
            let (healthy, degraded) = linear.loads();
            assert_eq!(healthy, numbers::<u32>(&expect["healthy_load"]), "{id}");
            assert_eq!(degraded, numbers::<u32>(&expect["degraded_load"]), "{id}");
            assert_eq!(
                linear.loads.panics.iter().all(|panics| *panics),
                expect["total_panic"].as_bool().unwrap(),
                "{id}"
            );
            let to = |cluster: u32| {
                let led = (0..100).filter_map(|word| linear.choose(None, word));
                led.filter(|(place, _)| place.cluster == cluster).count() as u64
            };
            assert_eq!(to(0), expect["primary_percent"].as_u64().unwrap(), "{id}");
            assert_eq!(to(1), expect["secondary_percent"].as_u64().unwrap(), "{id}");
        }
    }

    /// The clusters of a case: its list, or those described, in the order of the facts.
    fn listed(given: &Value) -> Vec<String> {
        let names = |list: &Value| -> Vec<String> {
            list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
        };
        match given.get("clusters") {
            Some(list) => names(list),
            None => ["primary", "secondary", "tertiary"]
                .into_iter()
                .filter(|name| given.get(name).is_some())
                .map(str::to_owned)
                .collect(),
        }
    }

    #[test]
    fn linearization() {
        let host =
            HostSet { hosts: vec![0], healthy: vec![0], overprovisioning_factor: 140, ..HostSet::default() };
        let mut ran = 0;
        let cases = vectors("linearization", 6);
        for case in &cases.list {
            let (given, expect) = (&case["given"], &case["expect"]);
            let names = listed(given);
            if names.is_empty() {
                continue;
            }
            ran += 1;
            // A name that stands twice is one cluster.
            let number = |name: &str| names.iter().position(|other| other == name).unwrap() as u32;
            let sets: Vec<Vec<HostSet>> = names
                .iter()
                .map(|name| {
                    let Some(priorities) = given.get(name).and_then(Value::as_array) else {
                        return Vec::new();
                    };
                    let empty = |text: &Value| text.as_str().unwrap().contains("no hosts");
                    let set = |text: &Value| if empty(text) { HostSet::default() } else { host.clone() };
                    priorities.iter().map(set).collect()
                })
                .collect();
            let sets: Vec<&[HostSet]> = sets.iter().map(Vec::as_slice).collect();
            let clusters = names.iter().map(|name| (number(name), 1)).collect();
            let linear = Linear::new(Parts { threshold: 50, clusters }, &sets, &HostArena::default());
            let label = |(cluster, priority): (u32, u32)| format!("{}.{priority}", names[cluster as usize]);
            if let Some(order) = expect.get("linear").and_then(Value::as_array) {
                let found: Vec<String> = linear.order().map(label).collect();
                assert_eq!(found, order.iter().map(|l| l.as_str().unwrap()).collect::<Vec<_>>(), "{case}");
            }
            for map in ["map", "host_to_linear"].into_iter().filter_map(|key| expect.get(key)) {
                for (name, place) in map.as_object().unwrap() {
                    let (cluster, priority) = name.split_once('.').unwrap();
                    let found = linear.priority_of(number(cluster), priority.parse().unwrap());
                    assert_eq!(found.map(u64::from), place.as_u64(), "{case}: {name}");
                }
            }
        }
        assert!(!cases.ours || ran == 5);
    }

    #[test]
    fn the_chosen_cluster_has_one_priority_to_choose() {
        let cases = vectors("linearization", 6).list;
        let case =
            cases.iter().find(|case| case["id"].as_str().unwrap().starts_with("context handed")).unwrap();
        let host =
            HostSet { hosts: vec![0], healthy: vec![0], overprovisioning_factor: 140, ..HostSet::default() };
        let two = [host.clone(), host];
        let linear = linear(50, &[&two, &two]);
        let load = PriorityLoad { healthy: numbers(&case["given"]["linear_load"]), degraded: vec![0; 4] };
        for word in 0..100 {
            let (place, degraded) = linear.choose(Some(&load), word).unwrap();
            assert_eq!((place.cluster, degraded), (1, false));
            assert_eq!(
                place.load(degraded).healthy,
                numbers::<u32>(&case["expect"]["sub_cluster_load_seen"])
            );
        }
    }
}
