//! How a changed state becomes the snapshot that decisions are made on.

use crate::balance::{Linear, Parts};
use crate::cluster::Subs;
use crate::engine::Core;
use crate::snapshot::{Entry, Snapshot};
use crate::sync::atomic::Ordering::AcqRel;
use crate::update::Master;
use std::sync::Arc;

impl Core {
    /// Makes the present state visible. Returns the new epoch.
    pub(crate) fn publish(&self, master: &mut Master) -> u64 {
        let Some(policies) = master.policies.clone() else { return master.epoch };
        master.epoch += 1;
        self.link_aggregates(master);
        let clusters = master
            .clusters
            .iter()
            .map(|cluster| Entry {
                shared: Arc::clone(&cluster.shared),
                view: cluster.view.clone(),
                outlier: cluster.outlier.clone(),
                linear: cluster.linear.clone(),
                sheds: master.sheds(cluster).map(Box::new),
            })
            .collect();
        let snapshot = Arc::new(Snapshot { clusters, policies, runtime: master.runtime });
        let mut current = self.current.lock();
        let old = std::mem::replace(&mut *current, snapshot);
        self.version.fetch_add(1, AcqRel);
        drop(current);
        // Outside the lock: the last reference to a snapshot may free many hosts.
        drop(old);
        self.reclaim_hosts(|cluster| master.clusters.get(cluster).map(|cluster| &*cluster.shared));
        master.epoch
    }

    /// Aggregates follow whatever became of the clusters they list (`spec/composite-and-aggregate.md` B2).
    fn link_aggregates(&self, master: &mut Master) {
        for index in 0..master.clusters.len() {
            let Some(view) = &master.clusters[index].view else { continue };
            let Some(Subs::Aggregate(subs)) = &view.subs else { continue };
            let views: Vec<_> =
                subs.iter().map(|sub| (*sub, master.clusters[*sub as usize].view.as_deref())).collect();
            let parts = Parts {
                threshold: master.runtime.healthy_panic_threshold.unwrap_or(view.spec.panic_threshold),
                clusters: views
                    .iter()
                    .map(|(sub, view)| (*sub, view.map_or(0, |view| view.version)))
                    .collect(),
            };
            if master.clusters[index].linear.as_ref().is_some_and(|linear| linear.is_made_of(&parts)) {
                continue;
            }
            // Clusters without hosts of their own have no priorities to give, itself included.
            let sets: Vec<&[_]> =
                views.iter().map(|(_, view)| view.map_or(&[][..], |view| &view.sets)).collect();
            let linear = Linear::new(parts, &sets, &self.hosts);
            master.clusters[index].linear = Some(Arc::new(linear));
        }
    }
}
