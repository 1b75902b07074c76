//! What one worker owns: random words, scheduler cursors, its counters, a stock of free request slots.

use crate::balance::{Scheduler, SubsetCounts};
use crate::clock::Time;
use crate::cluster::ClusterShared;
use crate::hosts::HostArena;
use crate::random::Source;
use crate::request::slab::Stock;
use crate::snapshot::Snapshot;
use crate::stats::ClusterCounters;
use std::sync::Arc;

/// One generator of random words and one set of scheduler cursors, as an Envoy worker has. Used by one thread
/// at a time.
pub struct Worker {
    pub(crate) random: Source,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) version: u64,
    pub(crate) clusters: Vec<WorkerCluster>,
    pub(crate) free: Stock,
}

/// A worker's part of one cluster.
pub(crate) struct WorkerCluster {
    pub(crate) shared: Arc<ClusterShared>,
    pub(crate) counters: Arc<ClusterCounters>,
    /// `None` while the cluster does not exist, and for those without hosts of their own.
    pub(crate) scheduler: Option<Scheduler>,
    pub(crate) version: u64,
    /// The computation of zone-aware routing that this worker counted last.
    zone: u64,
    /// What it counted of subsets.
    subsets: SubsetCounts,
}

impl Worker {
    /// Takes over a newer snapshot: new clusters get schedulers, changed ones are refreshed, in document order.
    /// A worker that comes late takes a change over as of the time when it was made.
    pub(crate) fn adopt(&mut self, snapshot: Arc<Snapshot>, version: u64, hosts: &HostArena, now: Time) {
        for (index, entry) in snapshot.clusters.iter().enumerate() {
            if index == self.clusters.len() {
                self.clusters.push(WorkerCluster {
                    shared: Arc::clone(&entry.shared),
                    counters: entry.shared.enroll(),
                    scheduler: None,
                    version: 0,
                    zone: 0,
                    subsets: SubsetCounts::default(),
                });
            }
            let mine = &mut self.clusters[index];
            match &entry.view {
                Some(view) if view.subs.is_none() => {
                    if mine.version == view.version {
                        continue;
                    }
                    let now = now.min(view.made);
                    match &mut mine.scheduler {
                        Some(scheduler) => scheduler.refresh(view.view(hosts), &mut self.random, now),
                        none => *none = Some(Scheduler::new(view.view(hosts), &mut self.random, now)),
                    }
                    mine.version = view.version;
                    let zone = view.prepared.zone_serial();
                    if mine.zone != zone {
                        mine.zone = zone;
                        view.prepared.count_zone(&mine.counters);
                    }
                    if let Some(subsets) = view.prepared.subset_counts() {
                        subsets.count(std::mem::replace(&mut mine.subsets, subsets), &mine.counters);
                    }
                }
                _ => {
                    mine.scheduler = None;
                    mine.version = 0;
                }
            }
        }
        self.snapshot = snapshot;
        self.version = version;
    }
}

impl Worker {
    /// Ends a worker of the parent process in a forked child: nothing is given back.
    pub fn abandon(mut self) {
        self.free.clear();
        self.clusters.clear();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        for cluster in &self.clusters {
            cluster.shared.dismiss(&cluster.counters);
        }
    }
}
