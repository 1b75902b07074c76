//! peak_ewma: the host that is likely to answer soonest, of some draws. A host's latency is an average that rises at
//! once and falls slowly; who has many requests under way, or little weight, costs more.

use super::routing::Routing;
use super::{Accept, Policy, Selection, View};
use crate::clock::{Time, nanos};
use crate::random::{Random as _, Source};
use crate::spec::{LocalityBalancing, PeakEwma as Spec, PolicySpec};

/// The policy. Latencies are in the hosts, so all workers see the same ones.
pub(super) struct PeakEwma {
    routing: Routing,
    spec: Spec,
}

impl Policy for PeakEwma {
    fn new(view: View<'_>, random: &mut Source, _: Time) -> Self {
        let spec = match view.policy {
            PolicySpec::PeakEwma(spec) => *spec,
            _ => Spec::default(),
        };
        Self { routing: Routing::new(&LocalityBalancing::None, view, random), spec }
    }

    fn refresh(&mut self, view: View<'_>, random: &mut Source, _: Time) {
        self.routing.refresh(view, random);
    }

    #[inline(never)]
    fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        selection.examine(|selection, _| {
            let word = selection.random.next_u64();
            let (priority, list) = self.routing.list(view, selection, word)?;
            let list = list.of(view.sets.get(priority as usize)?);
            let draws = (0..self.spec.choices).map_while(|_| {
                let at = selection.random.next_u64().checked_rem(list.len() as u64)?;
                list.get(at as usize).copied()
            });
            cheapest(draws, |slot| self.cost(view, slot, selection.now))
        })
    }

    fn search(&mut self, view: View<'_>, selection: &mut Selection<'_>, accept: Accept<'_>) -> Option<u32> {
        let found = self.routing.search(view, selection, accept)?;
        cheapest(found.hosts.into_iter(), |slot| self.cost(view, slot, selection.now))
    }
}

impl PeakEwma {
    fn cost(&self, view: View<'_>, slot: u32, now: Time) -> f64 {
        let measured =
            view.hosts.measured(slot).and_then(|measured| measured.latency(now, nanos(self.spec.decay)));
        let latency = measured.unwrap_or_else(|| nanos(self.spec.default_rtt) as f64);
        let requests = f64::from(view.hosts.load(slot).active()) + 1.0;
        // Latencies of next to nothing still count requests.
        latency.max(1.0) * requests / f64::from(view.hosts.weight(slot))
    }
}

/// The first one of the lowest cost.
fn cheapest(hosts: impl Iterator<Item = u32>, cost: impl Fn(u32) -> f64) -> Option<u32> {
    let mut best: Option<(f64, u32)> = None;
    for slot in hosts {
        let cost = cost(slot);
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, slot));
        }
    }
    best.map(|(_, slot)| slot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::{TestCluster, TestHost};
    use crate::clock::MILLI;
    use std::time::Duration;

    const DECAY: u64 = 10_000 * MILLI;

    fn cluster(weights: &[u32]) -> TestCluster {
        let hosts: Vec<TestHost> = weights.iter().map(|weight| TestHost::weighing(*weight)).collect();
        let cluster = TestCluster::with_hosts(PolicySpec::PeakEwma(Spec::default()), &hosts, &[]);
        cluster.slots.iter().for_each(|slot| cluster.arena.measure(*slot));
        cluster
    }

    fn book(cluster: &TestCluster, host: usize, latency: u64) {
        cluster.arena.measured(cluster.slots[host]).unwrap().book(latency, cluster.now, DECAY);
    }

    #[test]
    fn the_quicker_of_two_draws() {
        let mut cluster = cluster(&[1, 1, 1]);
        cluster.now = Time(MILLI);
        book(&cluster, 0, 80 * MILLI);
        book(&cluster, 1, 10 * MILLI);
        // Draws: the priority, then two hosts. Host 2 was never measured: 30 ms.
        assert_eq!(cluster.pick(&[0, 0, 1]).host, Some(1));
        assert_eq!(cluster.pick(&[0, 0, 2]).host, Some(2));
        assert_eq!(cluster.pick(&[0, 2, 1]).host, Some(1));
        assert_eq!(cluster.pick(&[0, 0, 0]).host, Some(0));
        // Requests under way multiply: 4 * 10 ms > 30 ms.
        cluster.set_active(1, 3);
        assert_eq!(cluster.pick(&[0, 2, 1]).host, Some(2));
        assert_eq!(cluster.pick(&[0, 0, 1]).host, Some(1));
    }

    #[test]
    fn weights_divide() {
        let mut cluster = cluster(&[1, 10]);
        book(&cluster, 0, 10 * MILLI);
        book(&cluster, 1, 90 * MILLI);
        assert_eq!(cluster.pick(&[0, 0, 1]).host, Some(1));
    }

    #[test]
    fn peaks_count_at_once_and_fade() {
        let mut cluster = cluster(&[1, 1]);
        let latency = |cluster: &TestCluster| {
            cluster.arena.measured(cluster.slots[0]).unwrap().latency(cluster.now, DECAY).unwrap()
        };
        book(&cluster, 0, 10 * MILLI);
        book(&cluster, 0, 100 * MILLI);
        assert_eq!(latency(&cluster), 100.0 * MILLI as f64);
        cluster.now = Time(DECAY);
        let faded = latency(&cluster);
        assert!((faded - 100.0 * MILLI as f64 / std::f64::consts::E).abs() < 1.0, "{faded}");
        // A lower one pulls the average down by what has faded.
        book(&cluster, 0, 10 * MILLI);
        let share = (-1.0_f64).exp();
        let expect = 100.0 * share + 10.0 * (1.0 - share);
        assert!((latency(&cluster) / MILLI as f64 - expect).abs() < 1e-6);
        // After a long silence any host is worth a try.
        cluster.now = Time(DECAY * 1000);
        assert!(latency(&cluster) < 1.0);
        assert_eq!(cluster.pick(&[0, 0, 1]).host, Some(0));
    }

    #[test]
    fn a_single_choice_and_none() {
        let spec = Spec { choices: 1, default_rtt: Duration::ZERO, ..Spec::default() };
        let hosts = [TestHost::default(), TestHost::default()];
        let mut cluster = TestCluster::with_hosts(PolicySpec::PeakEwma(spec), &hosts, &[]);
        assert_eq!([0, 1, 2].map(|word| cluster.pick(&[0, word]).host), [Some(0), Some(1), Some(0)]);
        let mut none = TestCluster::with_hosts(PolicySpec::PeakEwma(spec), &[], &[]);
        assert_eq!(none.pick(&[5]).host, None);
    }
}
