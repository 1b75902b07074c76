//! Whatever the updates and the way they come by, a cluster stands as if it had been built from its last list, and
//! whoever chooses all the while chooses the same.

use crate::balance::properties::policy;
use crate::clock::Time;
use crate::engine::{Core, HostPatch, PatchError, Report, Settings};
use crate::hosts::flag;
use crate::outcome::{Decision, Outcome, kind};
use crate::random::{Source, Xoshiro256};
use crate::sets::HostSet;
use crate::spec::{
    ClusterSpec, Endpoint, EndpointSpec, Endpoints, HealthStatus, Locality, LocalityEndpoints, PolicySpec,
    Specs, Value,
};
use crate::worker::Worker;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A host as a list has it.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    number: u32,
    zone: u32,
    priority: u32,
    weight: u32,
    health: HealthStatus,
    version: u32,
}

impl Row {
    fn address(&self) -> String {
        format!("10.0.0.{}:80", self.number)
    }

    fn locality(&self) -> Locality {
        Locality { zone: format!("z{}", self.zone), ..Locality::default() }
    }

    fn endpoint(&self) -> Endpoint {
        let mut spec = EndpointSpec {
            address: self.address(),
            port: 80,
            weight: self.weight,
            health: self.health,
            ..EndpointSpec::default()
        };
        let values = [("version".to_owned(), Value::Number(self.version.into()))];
        spec.metadata.0.insert("envoy.lb".into(), values.into());
        spec.into()
    }

    /// What a balancer sees of its health.
    fn class(&self) -> (crate::hosts::Health, bool) {
        let flags = flag::of_status(self.health);
        (flag::health(flags), flag::excluded(flags))
    }
}

/// A place in a list, and what changes of the host there: weight, health, version.
type Change = (usize, Option<u32>, Option<HealthStatus>, Option<u32>);

#[derive(Clone, Debug)]
enum Step {
    /// A whole list, and the weight of zone 0.
    List(Vec<Row>, u32),
    /// Hosts by place in the list, and what of them changes.
    Patch(Vec<Change>),
    /// The last list once more, in another order.
    Reorder(usize),
}

fn health() -> impl Strategy<Value = HealthStatus> {
    prop_oneof![6 => Just(0), 1 => 1..6_i32].prop_map(|number| HealthStatus::from_number(number).unwrap())
}

fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(1_u32), 1 => 1..5_u32]
}

fn row() -> impl Strategy<Value = Row> {
    (0..9_u32, 0..3_u32, 0..3_u32, weight(), health(), 0..2_u32).prop_map(
        |(number, zone, priority, weight, health, version)| Row {
            number,
            zone,
            priority,
            weight,
            health,
            version,
        },
    )
}

/// Lists end with the same host of the last priority, so that each has all priorities.
fn list() -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec(row(), 0..10).prop_map(|mut rows| {
        rows.push(Row {
            number: 99,
            zone: 0,
            priority: 2,
            weight: 1,
            health: HealthStatus::Unknown,
            version: 0,
        });
        rows
    })
}

fn step() -> impl Strategy<Value = Step> {
    let patch =
        (0..10_usize, prop::option::of(weight()), prop::option::of(health()), prop::option::of(0..2_u32));
    prop_oneof![
        2 => (list(), 0..3_u32).prop_map(|(rows, weight)| Step::List(rows, weight)),
        3 => prop::collection::vec(patch, 1..3).prop_map(Step::Patch),
        1 => (0..10_usize).prop_map(Step::Reorder),
    ]
}

/// Neighbours of one place share a group.
fn endpoints(rows: &[Row], zone_weight: u32) -> Endpoints {
    let mut localities: Vec<LocalityEndpoints> = Vec::new();
    for row in rows {
        let locality = Some(row.locality());
        match localities.last_mut().filter(|last| last.priority == row.priority && last.locality == locality)
        {
            Some(group) => group.endpoints.push(row.endpoint()),
            None => localities.push(LocalityEndpoints {
                weight: (row.zone == 0 && zone_weight > 0).then_some(zone_weight),
                locality,
                priority: row.priority,
                endpoints: vec![row.endpoint()],
            }),
        }
    }
    Endpoints { localities, ..Endpoints::default() }
}

/// The order that a list leaves, by the rules alone: `old` and what becomes of it.
fn model(old: &[Row], new: &[Row], reweighed: &BTreeSet<u32>) -> Vec<Row> {
    let mut free: Vec<bool> = vec![true; old.len()];
    let mut changed = reweighed.clone();
    let mut from = Vec::new();
    for row in new {
        let same =
            (0..old.len()).find(|at| free[*at] && old[*at].number == row.number && old[*at].zone == row.zone);
        match same {
            Some(at) => {
                free[at] = false;
                let before = &old[at];
                if before.priority != row.priority
                    || before.weight != row.weight
                    || before.version != row.version
                    || before.class() != row.class()
                {
                    changed.extend([before.priority, row.priority]);
                }
                from.push(at);
            }
            None => {
                changed.insert(row.priority);
                from.push(usize::MAX);
            }
        }
    }
    changed.extend((0..old.len()).filter(|at| free[*at]).map(|at| old[at].priority));
    let places: Vec<usize> = (0..new.len()).filter(|at| !changed.contains(&new[*at].priority)).collect();
    let mut ordered = places.clone();
    ordered.sort_by_key(|at| from[*at]);
    let mut rows = new.to_vec();
    for (place, at) in places.iter().zip(ordered) {
        rows[*place] = new[at].clone();
    }
    rows
}

/// Priorities whose locality weights differ between two lists.
fn reweighed(old: &Endpoints, new: &Endpoints) -> BTreeSet<u32> {
    let weights = |list: &Endpoints| -> Vec<(u32, Option<Locality>, u32)> {
        let groups = list.localities.iter();
        groups.filter_map(|g| Some((g.priority, g.locality.clone(), g.weight?))).collect()
    };
    let (old, new) = (weights(old), weights(new));
    if old == new {
        BTreeSet::new()
    } else {
        old.iter().chain(&new).map(|(priority, ..)| *priority).collect()
    }
}

/// A priority without the numbers that only this engine gives.
fn shape(core: &Core, set: &HostSet) -> impl PartialEq + std::fmt::Debug + use<> {
    let hosts = |slots: &[u32]| -> Vec<_> {
        let told = |slot: &u32| {
            let (_, info) = core.hosts.info(*slot).unwrap();
            let flags = core.hosts.flags(*slot);
            let told = (info.address.clone(), info.weight, core.hosts.weight(*slot), info.health);
            (told, info.priority, info.locality.clone(), info.metadata.clone(), flags)
        };
        slots.iter().map(told).collect()
    };
    let localities: Vec<_> = set
        .localities
        .iter()
        .map(|l| {
            (l.locality.clone(), l.weight, hosts(&l.hosts), hosts(&l.healthy), hosts(&l.degraded), l.excluded)
        })
        .collect();
    let lists = (hosts(&set.hosts), hosts(&set.healthy), hosts(&set.degraded), set.excluded);
    (lists, localities, set.overprovisioning_factor, set.weighted_priority_health)
}

struct Mesh {
    core: Core,
    worker: Worker,
}

impl Mesh {
    fn new(policy: &PolicySpec, endpoints: Endpoints) -> Self {
        let cluster =
            ClusterSpec { name: "c".into(), policy: policy.clone(), endpoints, ..ClusterSpec::default() };
        let specs = Specs { clusters: vec![cluster], ..Specs::default() };
        let core = Core::new(&specs, Settings::default(), Time(0)).unwrap();
        let worker = Self::worker(&core);
        Self { core, worker }
    }

    fn worker(core: &Core) -> Worker {
        core.worker_with(Source::Xoshiro(Xoshiro256::seeded(7, 1)), Time(0))
    }

    fn shape(&self) -> String {
        let view = self.core.current.lock().clusters[0].view.clone().unwrap();
        let sets: Vec<_> = view.sets.iter().map(|set| shape(&self.core, set)).collect();
        let prepared = &view.prepared;
        let members: Vec<_> =
            view.members.iter().map(|m| self.core.hosts.info(m.slot).unwrap().1.address.clone()).collect();
        format!(
            "{sets:?} {members:?} {:?} {:?} {:?}",
            prepared.healthy_load(),
            prepared.degraded_load(),
            prepared.panics()
        )
    }

    /// Hosts of some picks, every third of which goes on.
    fn picks(&mut self, count: usize) -> Vec<(u16, u16, String)> {
        let target = self.core.resolve("c").unwrap();
        let pick = |at: usize| {
            let mut out = Decision::default();
            let key = at.to_le_bytes();
            let key = at.is_multiple_of(2).then_some(&key[..]);
            self.core.pick(&mut self.worker, target, 1, key, Time(1), &mut out).unwrap();
            if out.kind != kind::GO {
                return (out.kind, out.bits, String::new());
            }
            let address = self.core.host(out.host, 0).unwrap().1.address.clone();
            if !at.is_multiple_of(3) {
                let outcome = Outcome::status(200);
                self.core.report(&mut self.worker, out.attempt, &outcome, Report::Whole, Time(1));
            }
            (out.kind, out.bits, address)
        };
        (0..count).map(pick).collect()
    }

    fn patch(&self, rows: &[Row], patches: &[Change]) {
        let addresses: Vec<String> = patches.iter().map(|(at, ..)| rows[*at].address()).collect();
        let patch = |((_, weight, health, version), address): (&(_, _, _, Option<u32>), _)| HostPatch {
            address,
            weight: *weight,
            health: *health,
            metadata: version.map(|version| {
                let row = Row { version, ..rows[0].clone() };
                row.endpoint().metadata.clone()
            }),
        };
        let list: Vec<HostPatch<'_>> =
            patches.iter().zip(addresses.iter().map(String::as_str)).map(patch).collect();
        self.core.patch_hosts("c", &list, Time(1)).unwrap();
    }
}

fn play(policy: &PolicySpec, first: &[Row], steps: &[Step]) {
    let mut rows = first.to_vec();
    let mut zone_weight = 0;
    let mut list = endpoints(&rows, zone_weight);
    // The same by patches and by lists; and by patches without a pick, for comparison with one that is new.
    let mut patched = Mesh::new(policy, list.clone());
    let mut listed = Mesh::new(policy, list.clone());
    let quiet = Mesh::new(policy, list.clone());
    for step in steps {
        match step {
            Step::List(new, weight) => {
                zone_weight = *weight;
                let new_list = endpoints(new, zone_weight);
                rows = model(&rows, new, &reweighed(&list, &new_list));
                list = new_list;
                patched.core.set_endpoints("c", &list, Time(1)).unwrap();
                quiet.core.set_endpoints("c", &list, Time(1)).unwrap();
                // Records of its own: nothing is known to be the same.
                listed.core.set_endpoints("c", &endpoints(new, zone_weight), Time(1)).unwrap();
            }
            Step::Reorder(by) => {
                let mut new = rows.clone();
                let by = by % new.len();
                new.rotate_left(by);
                let new_list = endpoints(&new, zone_weight);
                rows = model(&rows, &new, &reweighed(&list, &new_list));
                list = new_list;
                for mesh in [&patched, &quiet, &listed] {
                    mesh.core.set_endpoints("c", &list, Time(1)).unwrap();
                }
            }
            Step::Patch(patches) => {
                // Of several hosts at one address the first is meant.
                let patches: Vec<_> = patches
                    .iter()
                    .map(|(at, weight, health, version)| {
                        let number = rows[at % rows.len()].number;
                        let at = rows.iter().position(|row| row.number == number).unwrap();
                        (at, *weight, *health, *version)
                    })
                    .collect();
                patched.patch(&rows, &patches);
                quiet.patch(&rows, &patches);
                for (at, weight, health, version) in patches {
                    rows[at].weight = weight.unwrap_or(rows[at].weight);
                    rows[at].health = health.unwrap_or(rows[at].health);
                    rows[at].version = version.unwrap_or(rows[at].version);
                }
                // A patch leaves the weights of localities as they were, however the list groups its hosts.
                let mut new_list = endpoints(&rows, zone_weight);
                let given = list.localities.iter().filter(|group| group.weight.is_some()).cloned();
                new_list.localities.iter_mut().for_each(|group| group.weight = None);
                new_list
                    .localities
                    .extend(given.map(|group| LocalityEndpoints { endpoints: Vec::new(), ..group }));
                list = new_list;
                listed.core.set_endpoints("c", &list, Time(1)).unwrap();
            }
        }
        assert_eq!(patched.shape(), listed.shape(), "patches and lists");
        assert_eq!(patched.picks(9), listed.picks(9), "their picks");
    }
    let mut last = endpoints(&rows, 0);
    let given = list.localities.into_iter().filter(|group| group.weight.is_some());
    last.localities.extend(given.map(|group| LocalityEndpoints { endpoints: Vec::new(), ..group }));
    let anew = Mesh::new(policy, last);
    // Localities that came after the last computation of their loads wait for the next one.
    let [mut quiet, mut anew] = [quiet.core, anew.core].map(|core| {
        core.tick_loads(0, Time(1));
        Mesh { worker: Mesh::worker(&core), core }
    });
    assert_eq!(quiet.shape(), anew.shape(), "updates and the last list");
    assert_eq!(quiet.picks(30), anew.picks(30), "their picks");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn updates_leave_what_their_last_list_makes(
        policy in policy(),
        first in list(),
        steps in prop::collection::vec(step(), 1..8),
    ) {
        play(&policy, &first, &steps);
    }
}

#[test]
fn a_patch_finds_its_host_or_changes_nothing() {
    let row =
        |number| Row { number, zone: 0, priority: 0, weight: 1, health: HealthStatus::Unknown, version: 0 };
    let mesh = Mesh::new(&PolicySpec::default(), endpoints(&[row(1), row(2)], 0));
    let patch = |address, weight| HostPatch { address, weight: Some(weight), ..HostPatch::default() };
    let epoch = mesh.core.epoch();
    let patches = [patch("10.0.0.1:80", 9), patch("10.0.0.7:80", 9)];
    assert_eq!(mesh.core.patch_hosts("c", &patches, Time(1)), Err(PatchError::NoHost(1)));
    assert_eq!(mesh.core.patch_hosts("d", &patches, Time(1)), Err(PatchError::NoCluster));
    assert_eq!(mesh.core.epoch(), epoch);
    let weights = |mesh: &Mesh| -> Vec<u32> {
        mesh.core.host_states("c").iter().map(|state| state.info.weight).collect()
    };
    assert_eq!(weights(&mesh), [1, 1]);
    let view = || mesh.core.current.lock().clusters[0].view.clone().unwrap();
    let before = view();
    mesh.core.patch_hosts("c", &[patch("10.0.0.2:80", 0)], Time(1)).unwrap();
    assert_eq!(view().version, before.version, "a weight of 0 is 1, which it is");
    mesh.core.patch_hosts("c", &[patch("10.0.0.2:80", 3), patch("10.0.0.2:80", 4)], Time(1)).unwrap();
    assert_eq!(weights(&mesh), [1, 4]);
    assert!(std::sync::Arc::ptr_eq(&view().members, &before.members), "nobody came or went");
}
