//! deterministic_aperture: many clients of many hosts, each keeping to a part of them, so that together they load all
//! hosts alike with few connections.
//!
//! The hosts lie on a ring in an order that every peer knows, each with a part as long as its weight. Peer I of N
//! begins at I/N of the ring and takes as many Nths as it needs for `size` hosts; so every point of the ring is in the
//! aperture of equally many peers.

use super::per_list::PerList;
use super::routing::Routing;
use super::{Accept, Policy, Selection, View};
use crate::clock::Time;
use crate::hash::xxh64;
use crate::hosts::HostArena;
use crate::random::{Random as _, Source};
use crate::spec::{Aperture as Spec, LocalityBalancing, PolicySpec};

/// The policy.
pub(super) struct Aperture {
    routing: Routing,
    spec: Spec,
    rings: PerList<Ring>,
}

impl Policy for Aperture {
    fn new(view: View<'_>, random: &mut Source, _: Time) -> Self {
        let spec = match view.policy {
            PolicySpec::DeterministicAperture(spec) => *spec,
            _ => Spec { size: 12, id: 0, peers: 1 },
        };
        let routing = Routing::new(&LocalityBalancing::None, view, random);
        Self { routing, spec, rings: PerList::new(view, |list| Ring::new(list, &spec, view.hosts)) }
    }

    fn refresh(&mut self, view: View<'_>, random: &mut Source, _: Time) {
        self.routing.refresh(view, random);
        let spec = self.spec;
        self.rings.refresh(view, |list| Ring::new(list, &spec, view.hosts));
    }

    #[inline(never)]
    fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        selection.examine(|selection, _| {
            let word = selection.random.next_u64();
            let (priority, list) = self.routing.list(view, selection, word)?;
            let ring = self.rings.get(priority, list)?;
            let one = ring.draw(selection.random.next_u64())?;
            let other = ring.draw(selection.random.next_u64())?;
            ring.lighter(one, other, view.hosts)
        })
    }

    /// The least loaded of the aperture, else the next one behind it.
    fn search(&mut self, view: View<'_>, selection: &mut Selection<'_>, accept: Accept<'_>) -> Option<u32> {
        let found = self.routing.search(view, selection, accept)?;
        let ring = self.rings.get(found.priority, found.list)?;
        let all = || ring.around().filter(|at| accept(ring.slots[*at]));
        let inside = all().filter(|at| ring.covered(*at) > 0);
        let least = inside.min_by_key(|at| view.hosts.load(ring.slots[*at]).active());
        least.or_else(|| all().next()).map(|at| ring.slots[at])
    }
}

/// One list of hosts as a ring, and this peer's part of it. Lengths are sums of weights.
struct Ring {
    slots: Vec<u32>,
    /// Where each host's part ends.
    ends: Vec<u64>,
    offset: u64,
    width: u64,
}

impl Ring {
    fn new(list: &[u32], spec: &Spec, hosts: &HostArena) -> Self {
        let key = |slot: &u32| {
            let address = hosts.info(*slot).map(|(_, info)| info.address.clone()).unwrap_or_default();
            (xxh64(address.as_bytes(), 0), address)
        };
        let mut slots = list.to_vec();
        slots.sort_by_cached_key(key);
        let mut total = 0;
        let ends = slots.iter().map(|slot| {
            total += u64::from(hosts.weight(*slot));
            total
        });
        let ends: Vec<u64> = ends.collect();
        let peers = u64::from(spec.peers.max(1));
        let parts = (u64::from(spec.size) * peers).div_ceil((slots.len() as u64).max(1)).clamp(1, peers);
        let part = |parts: u64| (u128::from(total) * u128::from(parts) / u128::from(peers)) as u64;
        let id = u64::from(spec.id) % peers;
        // Where the next peer's begins, so that rounding leaves no gap.
        let end = part(id + parts);
        Self { offset: part(id), width: end - part(id), slots, ends }
    }

    fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The host at a random point of the aperture.
    #[inline]
    fn draw(&self, word: u64) -> Option<usize> {
        let ahead = ((u128::from(word) * u128::from(self.width)) >> 64) as u64;
        let point = (self.offset + ahead).checked_rem(self.total())?;
        Some(self.ends.partition_point(|end| *end <= point))
    }

    /// The one with less load for what this peer covers of it; the first one when both are alike.
    fn lighter(&self, one: usize, other: usize, hosts: &HostArena) -> Option<u32> {
        let load = |at: usize| u128::from(hosts.load(self.slots[at]).active());
        let covered = |at: usize| u128::from(self.covered(at).max(1));
        let first = load(one) * covered(other) <= load(other) * covered(one);
        self.slots.get(if first { one } else { other }).copied()
    }

    /// How much of a host's part lies in the aperture, which may go round.
    fn covered(&self, at: usize) -> u64 {
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let to = self.ends[at];
        let common = |low: u64, high: u64| to.min(high).saturating_sub(from.max(low));
        let end = self.offset + self.width;
        common(self.offset, end) + common(0, end.saturating_sub(self.total()))
    }

    /// Every host once, beginning with the aperture's first.
    fn around(&self) -> impl Iterator<Item = usize> {
        let first = self.ends.partition_point(|end| *end <= self.offset);
        let hosts = self.slots.len();
        (0..hosts).map(move |at| (first + at) % hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::{TestCluster, TestHost};

    fn ring(weights: &[u32], spec: Spec) -> (TestCluster, Ring) {
        let host = |(at, weight): (usize, &u32)| TestHost {
            weight: *weight,
            ..TestHost::at(&format!("10.0.0.{at}:80"))
        };
        let hosts: Vec<TestHost> = weights.iter().enumerate().map(host).collect();
        let cluster = TestCluster::with_hosts(PolicySpec::DeterministicAperture(spec), &hosts, &[]);
        let ring = Ring::new(&cluster.slots, &spec, &cluster.arena);
        (cluster, ring)
    }

    #[test]
    fn all_peers_together_cover_every_host_alike() {
        for (hosts, peers, size) in [(10, 3, 2), (7, 10, 3), (100, 9, 12), (3, 5, 12), (1, 4, 1)] {
            let weights: Vec<u32> = (0..hosts).map(|at| 1000 * (1 + at % 3)).collect();
            let mut covered = vec![0; weights.len()];
            let mut parts = Vec::new();
            for id in 0..peers {
                let (_, ring) = ring(&weights, Spec { size, id, peers });
                let inside: Vec<usize> = (0..weights.len()).filter(|at| ring.covered(*at) > 0).collect();
                assert!(inside.len() as u32 >= size.min(hosts) / 2, "{inside:?}");
                for at in inside {
                    covered[at] += ring.covered(at);
                }
                parts.push(ring);
            }
            let lengths: Vec<u64> = {
                let ends = &parts[0].ends;
                (0..ends.len()).map(|at| ends[at] - if at == 0 { 0 } else { ends[at - 1] }).collect()
            };
            let times = covered[0] / lengths[0];
            assert!(times >= 1);
            for (covered, length) in covered.iter().zip(lengths) {
                assert_eq!(*covered, times * length, "{hosts} hosts, {peers} peers, size {size}");
            }
        }
    }

    #[test]
    fn draws_stay_inside() {
        let (mut cluster, ring) = ring(&[1; 20], Spec { size: 4, id: 7, peers: 8 });
        let inside: Vec<u32> = (0..20).filter(|at| ring.covered(*at) > 0).map(|at| ring.slots[at]).collect();
        assert!((4..=6).contains(&inside.len()), "{inside:?}");
        let mut seen = std::collections::BTreeSet::new();
        for word in 0..200_u64 {
            let word = word.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let host = cluster.pick(&[0, word, word.rotate_left(20)]).host.unwrap();
            assert!(inside.contains(&cluster.slots[host]));
            seen.insert(host);
        }
        assert_eq!(seen.len(), inside.len());
    }

    #[test]
    fn the_lighter_of_two() {
        let (mut cluster, ring) = ring(&[1, 1], Spec { size: 2, id: 0, peers: 1 });
        let place = |at: usize| cluster.slots.iter().position(|slot| *slot == ring.slots[at]).unwrap();
        let (low, high) = (place(0), place(1));
        assert_eq!(cluster.pick(&[0, 0, u64::MAX]).host, Some(low));
        cluster.set_active(low, 1);
        assert_eq!(cluster.pick(&[0, 0, u64::MAX]).host, Some(high));
        assert_eq!(cluster.pick(&[0, 0, 0]).host, Some(low));
    }

    #[test]
    fn no_hosts() {
        let (mut cluster, _) = ring(&[], Spec { size: 2, id: 0, peers: 1 });
        assert_eq!(cluster.pick(&[1, 2, 3]).host, None);
    }
}
