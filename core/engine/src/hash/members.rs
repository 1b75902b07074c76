//! The hosts of a priority with their shares, as rings and tables take them (sections 18.1, 18.2).

use crate::hosts::{HostArena, HostInfo};
use crate::sets::HostSet;
use std::sync::Arc;

/// Hosts in the order of section 18.2. The three lists have one entry per host.
#[derive(Clone, Default)]
pub(crate) struct Members {
    /// Where the hosts live.
    pub(crate) slots: Vec<u32>,
    /// Shares; their sum is 1 at most.
    pub(crate) weights: Vec<f64>,
    infos: Vec<Arc<HostInfo>>,
    use_hostname: bool,
}

impl Members {
    /// The healthy hosts, or all of them in panic. Degraded hosts are never members.
    pub(crate) fn collect(
        set: &HostSet,
        panic: bool,
        locality_weighted: bool,
        use_hostname: bool,
        hosts: &HostArena,
    ) -> Self {
        let mut members = Self { use_hostname, ..Self::default() };
        if !locality_weighted {
            let list = if panic { &set.hosts } else { &set.healthy };
            members.add(list, hosts, |weight, sum| weight * 1.0 / sum);
            return members;
        }
        // The sum is over all localities, so a locality without hosts leaves its share unused.
        let total: f64 = set.localities.iter().map(|locality| u64::from(locality.weight)).sum::<u64>() as f64;
        for locality in set.localities.iter().filter(|locality| locality.weight > 0) {
            let list = if panic { &locality.hosts } else { &locality.healthy };
            let share = f64::from(locality.weight) / total;
            members.add(list, hosts, |weight, sum| weight * share / sum);
        }
        members
    }

    fn add(&mut self, list: &[u32], hosts: &HostArena, weigh: impl Fn(f64, f64) -> f64) {
        let sum = list.iter().map(|slot| u64::from(hosts.weight(*slot))).sum::<u64>() as f64;
        for slot in list {
            // A listed slot always has a host; without one there would be nothing to send to.
            let Some((_, info)) = hosts.info(*slot) else { continue };
            self.slots.push(*slot);
            self.weights.push(weigh(f64::from(hosts.weight(*slot)), sum));
            self.infos.push(info);
        }
    }

    /// What stands for each host in a ring or table.
    pub(crate) fn keys(&self) -> Vec<&str> {
        self.infos.iter().map(|info| key(info, self.use_hostname)).collect()
    }

    /// Whether a ring or table of these is one of those, too.
    pub(crate) fn same_shape(&self, other: &Self) -> bool {
        self.weights == other.weights
            && self.infos.len() == other.infos.len()
            && self
                .infos
                .iter()
                .zip(&other.infos)
                .all(|(a, b)| key(a, self.use_hostname) == key(b, other.use_hostname))
    }
}

/// The hash key of a host. An empty hostname is a key like any other.
fn key(info: &HostInfo, use_hostname: bool) -> &str {
    match info.metadata.lb("hash_key").and_then(|value| value.as_str()).filter(|key| !key.is_empty()) {
        Some(key) => key,
        None if use_hostname => &info.hostname,
        None => &info.address,
    }
}
