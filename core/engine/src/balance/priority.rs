//! How the load divides over priorities, which of them panic, and which one a request goes to
//! (sections 5 to 7).

use crate::hosts::{HostArena, flag};
use crate::sets::HostSet;

/// Loads and panic flags, one entry per priority in each list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Loads {
    /// Percent of the traffic to healthy hosts.
    pub(super) healthy: Vec<u32>,
    /// Percent of the traffic to degraded hosts.
    pub(super) degraded: Vec<u32>,
    /// Percent of its full share that a priority could take with healthy hosts, 0..=100.
    pub(super) healthy_availability: Vec<u32>,
    /// The same with degraded hosts.
    pub(super) degraded_availability: Vec<u32>,
    /// Every host is used, whatever its health.
    pub(super) panics: Vec<bool>,
}

impl Loads {
    /// Divides the load. `threshold` is in percent; `previous` are the loads before this update, which stay
    /// where nothing is available and panic is off (section 6.4).
    pub(super) fn compute(
        sets: &[HostSet],
        threshold: u32,
        hosts: &HostArena,
        previous: Option<&Self>,
    ) -> Self {
        let mut loads = previous.cloned().unwrap_or_default();
        loads.healthy.resize(sets.len(), 0);
        loads.degraded.resize(sets.len(), 0);
        loads.panics.resize(sets.len(), false);
        let available = |of: fn(&Availability) -> u32| {
            sets.iter().map(|set| of(&Availability::of(set, hosts))).collect::<Vec<_>>()
        };
        loads.healthy_availability = available(|availability| availability.healthy);
        loads.degraded_availability = available(|availability| availability.degraded);
        let both = loads.healthy_availability.iter().chain(&loads.degraded_availability);
        let total = both.map(|percent| u64::from(*percent)).sum::<u64>().min(100);
        if total > 0 {
            loads.divide(total);
        }
        loads.find_panics(sets, threshold.min(100), total);
        loads
    }

    /// Section 5: fills healthy hosts of every priority, then degraded ones.
    fn divide(&mut self, total: u64) {
        let mut left = 100;
        let mut share = |available: &u32| {
            let percent = (u64::from(*available) * 100 / total).min(left);
            left -= percent;
            percent as u32
        };
        self.healthy = self.healthy_availability.iter().map(&mut share).collect();
        self.degraded = self.degraded_availability.iter().map(&mut share).collect();
        if left == 0 {
            return;
        }
        // What division left over goes to the first that is available at all, not to the largest.
        let first = |availability: &[u32]| availability.iter().position(|percent| *percent > 0);
        if let Some(at) = first(&self.healthy_availability) {
            self.healthy[at] += left as u32;
        } else if let Some(at) = first(&self.degraded_availability) {
            self.degraded[at] += left as u32;
        }
    }

    /// Sections 6.1 and 6.3.
    fn find_panics(&mut self, sets: &[HostSet], threshold: u32, total: u64) {
        if threshold == 0 && total == 0 {
            // Nothing to choose and no panic: some priority must still answer that there is no host.
            if let Some(first) = self.healthy.first_mut() {
                *first = 100;
            }
            return;
        }
        self.panics = sets.iter().map(|set| total != 100 && is_below(set, threshold)).collect();
        if self.panics.iter().all(|panics| *panics) {
            self.divide_by_hosts(sets);
        }
    }

    /// Total panic: by number of hosts, excluded ones included.
    fn divide_by_hosts(&mut self, sets: &[HostSet]) {
        let sum = sets.iter().map(|set| set.hosts.len() as u64).sum::<u64>();
        self.degraded.fill(0);
        let mut left = 100;
        for (load, set) in self.healthy.iter_mut().zip(sets) {
            let percent = (set.hosts.len() as u64 * 100).checked_div(sum).unwrap_or(0) as u32;
            *load = percent;
            left -= percent;
        }
        let first = sets.iter().position(|set| !set.hosts.is_empty()).unwrap_or(0);
        if let Some(load) = self.healthy.get_mut(first) {
            *load += left;
        }
    }
}

/// What one priority could take, in percent of its full share.
struct Availability {
    healthy: u32,
    degraded: u32,
}

impl Availability {
    fn of(set: &HostSet, hosts: &HostArena) -> Self {
        let mut healthy = set.healthy.len() as u64;
        let mut degraded = set.degraded.len() as u64;
        let mut all = counted(set);
        if all > 0 && set.weighted_priority_health {
            let weigh = |list: &[u32]| list.iter().map(|slot| u64::from(hosts.weight(*slot))).sum::<u64>();
            healthy = weigh(&set.healthy);
            degraded = weigh(&set.degraded);
            let included = set.hosts.iter().filter(|slot| !flag::excluded(hosts.flags(**slot)));
            all = included.map(|slot| u64::from(hosts.weight(*slot))).sum();
        }
        let percent = |part: u64| {
            let factor = u64::from(set.overprovisioning_factor);
            factor.saturating_mul(part).checked_div(all).unwrap_or(0).min(100) as u32
        };
        Self { healthy: percent(healthy), degraded: percent(degraded) }
    }
}

/// Hosts that count in denominators.
fn counted(set: &HostSet) -> u64 {
    (set.hosts.len() as u64).saturating_sub(u64::from(set.excluded))
}

/// Whether too few hosts of a priority can be used. Counts hosts, never weights.
pub(super) fn is_below(set: &HostSet, threshold: u32) -> bool {
    let all = counted(set) as f64;
    let percent = if all == 0.0 {
        0.0
    } else {
        100.0 * set.healthy.len() as f64 / all + 100.0 * set.degraded.len() as f64 / all
    };
    percent < f64::from(threshold)
}

/// A division of the load that one request brings along, in percent by priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorityLoad {
    /// To healthy hosts.
    pub healthy: Vec<u32>,
    /// To degraded hosts.
    pub degraded: Vec<u32>,
}

impl PriorityLoad {
    /// The priority for a draw or hash, and whether its degraded hosts are meant.
    #[cold]
    pub(super) fn choose(&self, word: u64) -> (u32, bool) {
        let mut left = (word % 100) as u32;
        let healthy = (0..).zip(&self.healthy).map(|(at, load)| (at, false, *load));
        let degraded = (0..).zip(&self.degraded).map(|(at, load)| (at, true, *load));
        for (at, degraded, load) in healthy.chain(degraded) {
            if left < load {
                return (at, degraded);
            }
            left -= load;
        }
        (0, false)
    }
}

/// Where each remainder of a word by 100 leads (section 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Division {
    /// Twice the priority, plus 1 for its degraded hosts.
    places: [u16; 100],
}

impl Division {
    /// The division by these loads in percent. What no load covers leads to healthy hosts of priority 0.
    pub(super) fn new(healthy: &[u32], degraded: &[u32]) -> Self {
        let mut places = [0; 100];
        let parts = healthy.iter().enumerate().map(|(priority, load)| (priority << 1, *load));
        let parts =
            parts.chain(degraded.iter().enumerate().map(|(priority, load)| (priority << 1 | 1, *load)));
        let mut from = 0;
        for (place, load) in parts {
            let to = (from + load as usize).min(places.len());
            places[from..to].fill(place as u16);
            from = to;
        }
        Self { places }
    }

    /// The priority for a draw or hash, and whether its degraded hosts are meant.
    #[inline]
    pub(super) fn choose(&self, word: u64) -> (u32, bool) {
        let place = self.places[(word % 100) as usize];
        (u32::from(place >> 1), place & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(hosts: usize, healthy: usize) -> HostSet {
        HostSet {
            hosts: (0..hosts as u32).collect(),
            healthy: (0..healthy as u32).collect(),
            overprovisioning_factor: 140,
            ..HostSet::default()
        }
    }

    #[test]
    fn loads_stay_when_nothing_is_available_and_panic_is_off() {
        let arena = HostArena::default();
        let before = Loads::compute(&[set(4, 2), set(4, 2)], 0, &arena, None);
        assert_eq!(before.healthy, [70, 30]);
        let after = Loads::compute(&[set(4, 0), set(4, 0)], 0, &arena, Some(&before));
        assert_eq!(after.healthy, [100, 30]);
        assert_eq!(after.panics, [false, false]);
        let fresh = Loads::compute(&[set(4, 0), set(4, 0)], 0, &arena, None);
        assert_eq!(fresh.healthy, [100, 0]);
        let more = Loads::compute(&[set(4, 0), set(4, 0), set(1, 0)], 0, &arena, Some(&before));
        assert_eq!(more.healthy, [100, 30, 0]);
    }

    #[test]
    fn flags_stay_with_the_loads() {
        let arena = HostArena::default();
        let before = Loads::compute(&[set(4, 0), set(4, 1)], 50, &arena, None);
        assert_eq!(before.panics, [true, true]);
        let after = Loads::compute(&[set(4, 0), set(4, 0)], 0, &arena, Some(&before));
        assert_eq!(after.panics, [true, true]);
    }

    #[test]
    fn no_host_at_all() {
        let arena = HostArena::default();
        let loads = Loads::compute(&[set(0, 0), set(0, 0)], 50, &arena, None);
        assert_eq!((loads.healthy, loads.panics), (vec![100, 0], vec![true, true]));
        assert!(Loads::compute(&[], 50, &arena, None).healthy.is_empty());
    }

    #[test]
    fn loads_above_one_hundred_are_cut_and_missing_ones_lead_to_the_first() {
        let division = Division::new(&[100, 30], &[50, 0]);
        assert_eq!(division.choose(99), (0, false));
        let division = Division::new(&[0, 10], &[0, 5]);
        assert_eq!([9, 14, 15].map(|word| division.choose(word)), [(1, false), (1, true), (0, false)]);
    }
}
