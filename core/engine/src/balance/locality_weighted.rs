//! Localities by weight (section 11): a schedule over the localities of one priority.

use super::edf::Edf;
use crate::sets::{HostSet, LocalityHosts};

/// Two schedules of one priority: by healthy and by degraded hosts.
#[derive(Default)]
pub(super) struct LocalityWeights {
    healthy: Option<Schedule>,
    degraded: Option<Schedule>,
}

struct Schedule {
    edf: Edf,
    /// By locality.
    weights: Vec<f64>,
}

impl LocalityWeights {
    /// Starts both schedules with the same seed.
    pub(super) fn new(set: &HostSet, seed: u64) -> Self {
        Self {
            healthy: Schedule::new(set, seed, |locality| locality.healthy.len()),
            degraded: Schedule::new(set, seed, |locality| locality.degraded.len()),
        }
    }

    /// The locality whose turn it is; `None` when no locality has both a weight and a usable host, which leaves
    /// the choice to all hosts of the priority.
    #[inline]
    pub(super) fn pick(&mut self, degraded: bool) -> Option<u32> {
        let schedule = if degraded { &mut self.degraded } else { &mut self.healthy };
        let Schedule { edf, weights } = schedule.as_mut()?;
        edf.pick(|locality| weights[locality as usize])
    }

    /// Localities that have turns, the heaviest first; `None` when no locality has any.
    pub(super) fn by_weight(&self, degraded: bool) -> Option<Vec<u32>> {
        let schedule = if degraded { &self.degraded } else { &self.healthy };
        let weights = &schedule.as_ref()?.weights;
        let mut localities: Vec<u32> =
            (0..weights.len() as u32).filter(|at| weights[*at as usize] > 0.0).collect();
        localities.sort_by(|a, b| weights[*b as usize].total_cmp(&weights[*a as usize]));
        Some(localities)
    }
}

impl Schedule {
    fn new(set: &HostSet, seed: u64, eligible: impl Fn(&LocalityHosts) -> usize) -> Option<Self> {
        let factor = set.overprovisioning_factor;
        let weights: Vec<f64> = set
            .localities
            .iter()
            .map(|locality| effective_weight(locality, eligible(locality), factor))
            .collect();
        let items: Vec<u32> =
            (0..weights.len() as u32).filter(|locality| weights[*locality as usize] > 0.0).collect();
        if items.is_empty() {
            return None;
        }
        let edf = Edf::with_picks(&items, seed, |locality| weights[locality as usize]);
        Some(Self { edf, weights })
    }
}

/// A locality's weight, less when fewer of its hosts can be used than overprovisioning makes up for.
fn effective_weight(locality: &LocalityHosts, eligible: usize, overprovisioning_factor: u32) -> f64 {
    let counted = (locality.hosts.len() as u64).saturating_sub(u64::from(locality.excluded));
    if counted == 0 {
        return 0.0;
    }
    let available = f64::from(overprovisioning_factor) / 100.0 * (eligible as f64 / counted as f64);
    f64::from(locality.weight) * available.min(1.0)
}

#[cfg(test)]
impl LocalityWeights {
    /// Effective weights of healthy hosts; empty without a schedule.
    pub(super) fn healthy_weights(&self) -> &[f64] {
        self.healthy.as_ref().map_or(&[], |schedule| &schedule.weights)
    }
}
