//! Health changes on their way to the balancers: at once, or when the merge window of their priority ends.

use super::MasterCluster;
use crate::breaker::close_idle;
use crate::clock::{Time, nanos};
use crate::engine::Core;
use crate::hosts::flag;
use crate::spec::ClusterSpec;
use crate::stats::ClusterCounters;
use std::collections::BTreeSet;

/// The merge window of one priority.
#[derive(Clone, Copy, Default)]
pub(super) struct Window {
    until: Time,
    pending: bool,
}

impl Core {
    /// Hosts changed health: their priorities are rebuilt now, or when the merge window ends.
    pub(crate) fn health_changed(&self, cluster: u32, slots: &[u32], now: Time) {
        let mut master = self.master.lock();
        let Some(entry) = master.clusters.get_mut(cluster as usize) else { return };
        let Some(spec) = entry.spec.clone() else { return };
        let window = nanos(spec.update_merge_window);
        let mut changed = Vec::new();
        let priorities: BTreeSet<u32> = entry
            .members
            .iter()
            .filter(|member| slots.contains(&member.entry.slot))
            .map(|member| member.priority)
            .collect();
        for priority in priorities {
            let Some(state) = entry.windows.get_mut(priority as usize) else { continue };
            if window == 0 || (now >= state.until && !state.pending) {
                *state = Window { until: now.plus(window), pending: false };
                changed.push(priority);
            } else {
                state.pending = true;
                self.due_by(state.until);
            }
        }
        self.close_idle_of(entry, &spec, slots);
        if !changed.is_empty() {
            self.rebuild(&mut master, cluster as usize, &changed, now);
            self.publish(&mut master);
        }
    }

    /// A failed host's idle connections are closed.
    fn close_idle_of(&self, cluster: &MasterCluster, spec: &ClusterSpec, slots: &[u32]) {
        let counters = ClusterCounters::default();
        for &slot in slots {
            if self.hosts.flags(slot) & (flag::FAILED_OUTLIER_CHECK | flag::FAILED_ACTIVE_HC) != 0 {
                for priority in 0..2u8 {
                    close_idle(&self.ask_of(cluster, Some(spec), slot, priority, &counters));
                }
            }
        }
    }

    /// Delivers health changes whose merge window has ended. Returns when the next one ends.
    pub(crate) fn end_windows(&self, now: Time) -> Time {
        let mut master = self.master.lock();
        let mut next = Time::NEVER;
        let mut any = false;
        for index in 0..master.clusters.len() {
            let entry = &mut master.clusters[index];
            let window = entry.spec.as_ref().map_or(0, |spec| nanos(spec.update_merge_window));
            let mut changed = Vec::new();
            for (priority, state) in entry.windows.iter_mut().enumerate() {
                if state.pending && now >= state.until {
                    *state = Window { until: now.plus(window), pending: false };
                    changed.push(priority as u32);
                } else if state.pending {
                    next = next.min(state.until);
                }
            }
            if !changed.is_empty() {
                any = true;
                self.rebuild(&mut master, index, &changed, now);
            }
        }
        if any {
            self.publish(&mut master);
        }
        next
    }
}
