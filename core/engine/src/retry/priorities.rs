//! The retry priority `previous_priorities` (`spec/retry-and-timeouts.md` section 12).

use crate::balance::PriorityLoad;

/// Which priorities one request has tried.
#[derive(Clone, Debug, Default)]
pub struct PreviousPriorities {
    every: usize,
    /// Cluster and priority of each host tried.
    attempted: Vec<(u32, u32)>,
    excluded: Vec<u32>,
}

impl PreviousPriorities {
    /// `every`: `update_frequency`, at least 1.
    pub fn new(every: u32) -> Self {
        Self { every: (every as usize).max(1), ..Self::default() }
    }

    /// An attempt went to a host of this cluster and priority.
    pub fn attempted(&mut self, cluster: u32, priority: u32) {
        self.attempted.push((cluster, priority));
    }

    /// How the load divides for the next retry, by what each priority could take; `None`: as without a plugin.
    /// `place`: which of these priorities a host tried belongs to; one that belongs to none is passed over.
    pub fn load(
        &mut self,
        healthy: &[u32],
        degraded: &[u32],
        place: &dyn Fn(u32, u32) -> Option<u32>,
    ) -> Option<PriorityLoad> {
        if self.attempted.len() < self.every {
            return None;
        }
        if self.attempted.len().is_multiple_of(self.every) {
            for priority in self.attempted.iter().filter_map(|&(cluster, priority)| place(cluster, priority))
            {
                if !self.excluded.contains(&priority) {
                    self.excluded.push(priority);
                }
            }
            let load = self.spread(healthy, degraded);
            if load.is_some() {
                return load;
            }
            // Everything was tried: from the start.
            self.excluded.clear();
            self.attempted.clear();
        }
        self.spread(healthy, degraded)
    }

    /// 100 points over what is left, in passes: leftovers of division go to the first that is available.
    fn spread(&self, healthy: &[u32], degraded: &[u32]) -> Option<PriorityLoad> {
        let left_over = |list: &[u32]| -> Vec<u32> {
            let each = (0..).zip(list);
            each.map(|(at, percent)| if self.excluded.contains(&at) { 0 } else { *percent }).collect()
        };
        let (healthy, degraded) = (left_over(healthy), left_over(degraded));
        let total = healthy.iter().chain(&degraded).sum::<u32>().min(100);
        if total == 0 {
            return None;
        }
        let mut load = PriorityLoad { healthy: vec![0; healthy.len()], degraded: vec![0; degraded.len()] };
        let mut left = 100;
        while left > 0 {
            let parts = load.healthy.iter_mut().zip(&healthy);
            for (share, available) in parts.chain(load.degraded.iter_mut().zip(&degraded)) {
                let points = (available * 100 / total).min(left);
                *share += points;
                left -= points;
            }
        }
        Some(load)
    }
}
