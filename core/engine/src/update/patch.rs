//! Hosts that stay the same hosts and weigh, or tell, something else: found by address and changed where they stand.

use super::members::Changes;
use crate::clock::Time;
use crate::engine::Core;
use crate::hosts::flag;
use crate::spec::{ClusterKind, Endpoint, HealthStatus, Metadata};
use std::collections::BTreeMap;

/// What changes of one host; `None` = it stays as it is.
#[derive(Clone, Debug, Default)]
pub struct HostPatch<'a> {
    /// As documents spell it. Of several hosts at one address the first is meant.
    pub address: &'a str,
    /// At least 1.
    pub weight: Option<u32>,
    /// EDS status.
    pub health: Option<HealthStatus>,
    /// All namespaces.
    pub metadata: Option<Metadata>,
}

/// Why nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchError {
    /// There is no such cluster with hosts.
    NoCluster,
    /// No host has the address of the patch of this number.
    NoHost(usize),
}

impl Core {
    /// Changes hosts of a cluster as an assignment does that lists them so, and all others as they are. It takes time
    /// in proportion to the patches, where the policy needs nothing else. Returns the new epoch.
    ///
    /// # Errors
    /// Nothing was changed.
    pub fn patch_hosts(
        &self,
        cluster: &str,
        patches: &[HostPatch<'_>],
        now: Time,
    ) -> Result<u64, PatchError> {
        let mut master = self.master.lock();
        let index = master.cluster(cluster).ok_or(PatchError::NoCluster)?;
        let spec = master.clusters[index].spec.clone().ok_or(PatchError::NoCluster)?;
        if spec.kind != ClusterKind::Hosts {
            return Err(PatchError::NoCluster);
        }
        let entry = &mut master.clusters[index];
        let is_listed = |slot: u32| self.hosts.flags(slot) & flag::PENDING_DYNAMIC_REMOVAL == 0;
        let mut places = Vec::with_capacity(patches.len());
        for (number, patch) in patches.iter().enumerate() {
            let found = entry.members.find(patch.address, is_listed);
            places.push(found.ok_or(PatchError::NoHost(number))?);
        }
        // What all patches together make of a host: what the last one takes back was no change.
        let mut wanted: BTreeMap<usize, Endpoint> = BTreeMap::new();
        for (patch, at) in patches.iter().zip(places) {
            let endpoint = wanted.entry(at).or_insert_with(|| entry.members[at].spec.clone());
            let weight = patch.weight.map(|weight| weight.max(1));
            if let Some(weight) = weight.filter(|weight| *weight != endpoint.weight) {
                endpoint.weight = weight;
            }
            if let Some(health) = patch.health.filter(|health| *health != endpoint.health) {
                endpoint.health = health;
            }
            if let Some(metadata) = patch.metadata.as_ref().filter(|given| **given != endpoint.metadata) {
                endpoint.metadata = metadata.clone();
            }
        }
        let mut changes = Changes::default();
        for (at, endpoint) in wanted {
            let member = &entry.members[at];
            if endpoint != member.spec {
                let priority = member.priority;
                self.relist(entry, &spec, index, at, &endpoint, priority, &mut changes);
            }
        }
        if changes.any() {
            self.rebuild_for(&mut master, index, &changes, now);
        }
        Ok(self.publish(&mut master))
    }
}
