//! What load reports change: weights of hosts and of localities, once in each period of a policy.

use crate::balance::client_weights::reweigh;
use crate::clock::{MILLI, Time, nanos};
use crate::engine::Core;
use crate::spec::PolicySpec;

/// Nanoseconds between two computations; `None` = the policy reads no load reports.
pub(crate) fn period(policy: &PolicySpec) -> Option<u64> {
    let weights = policy.client_weights().map(|spec| spec.period);
    let localities = policy.load_aware().map(|spec| spec.period);
    weights.into_iter().chain(localities).min().map(|period| nanos(period).max(MILLI))
}

impl Core {
    /// Computes a cluster's weights from the reports that its hosts have made.
    pub(crate) fn tick_loads(&self, index: usize, now: Time) {
        let mut master = self.master.lock();
        let Some((spec, view)) =
            master.clusters.get(index).and_then(|c| Some((c.spec.clone()?, c.view.clone()?)))
        else {
            return;
        };
        let mut changed = Vec::new();
        if let Some(weights) = spec.policy.client_weights() {
            for (priority, set) in (0..).zip(&view.sets) {
                if reweigh(weights, &set.hosts, &self.hosts, now) {
                    changed.push(priority);
                }
            }
        }
        let localities = spec.policy.load_aware().is_some();
        if changed.is_empty() && !localities {
            return;
        }
        master.clusters[index].loads_due = localities;
        self.rebuild(&mut master, index, &changed, now);
        self.publish(&mut master);
    }
}
