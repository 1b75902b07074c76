//! Which hosts a cluster checks, and what removal does to a checked one (`spec/breakers-and-health.md` B4).

use super::Joins;
use crate::admission::Gates;
use crate::clock::Time;
use crate::engine::Core;
use crate::hosts::flag;
use crate::policies::Policies;
use crate::spec::{ClusterSpec, EndpointSpec, Specs};
use crate::stats::Counter;
use crate::sync::atomic::Ordering::{AcqRel, Acquire};
use crate::update::{HostMember, Master};
use std::sync::Arc;

impl Core {
    /// Active flags of a new host: failed until its first check, or as the host was that it replaces.
    pub(crate) fn unchecked(
        &self,
        cluster: usize,
        spec: &ClusterSpec,
        endpoint: &EndpointSpec,
        before: Option<&HostMember>,
        how: Joins,
    ) -> u32 {
        if endpoint.checks.disabled || how == Joins::Serving || !self.board.checks(cluster as u32) {
            return 0;
        }
        if let Some(before) = before.filter(|before| before.spec.checks == endpoint.checks) {
            return self.hosts.flags(before.entry.slot) & flag::ACTIVE;
        }
        let pending = if spec.ignore_new_hosts_until_first_hc { flag::PENDING_ACTIVE_HC } else { 0 };
        flag::FAILED_ACTIVE_HC | pending
    }

    /// Puts a member under its cluster's checkers, if there are any.
    pub(crate) fn check_host(&self, cluster: usize, member: &HostMember, how: Joins) {
        if !member.spec.checks.disabled {
            self.board.join(&self.hosts, cluster as u32, member.entry.slot, &member.spec.checks, how);
        }
    }

    /// Whether somebody performs checks.
    pub(crate) fn is_checking(&self) -> bool {
        self.checking.load(Acquire)
    }

    /// Somebody asks for checks for the first time: from here on clusters with `health_checks` are checked. Their
    /// hosts serve until their first result, as Envoy's cluster warms up before it serves.
    #[cold]
    pub(super) fn begin_checks(&self, now: Time) {
        let mut master = self.master.lock();
        if self.checking.swap(true, AcqRel) {
            return;
        }
        if let Some(specs) = master.unchecked.take() {
            self.compile_again(&mut master, &specs, now);
        }
        for (index, cluster) in master.clusters.iter().enumerate() {
            let Some(spec) = &cluster.spec else { continue };
            self.board.configure(&self.hosts, index as u32, &spec.health_checks);
            for member in cluster.members.iter() {
                self.check_host(index, member, Joins::Serving);
            }
        }
        self.publish(&mut master);
        self.forget_policies();
    }

    /// Requests from here on want the headers that checked clusters read.
    fn compile_again(&self, master: &mut Master, specs: &Specs, now: Time) {
        let generation = master.policies.as_ref().map_or(0, |policies| policies.generation + 1);
        let gates = Gates::build(specs, &self.gates.lock().clone(), now);
        let compiled = {
            let mut wants = self.wants.lock();
            Policies::compile(specs, generation, &mut master.names, &mut wants, true, &gates)
        };
        // They have been compiled before, so this cannot fail.
        let Ok(policies) = compiled else { return };
        if let Some(old) = master.policies.replace(Arc::new(policies)) {
            self.old_policies.lock().push(old);
        }
    }

    /// Whether a host that is no longer listed goes on serving because its check passes.
    pub(crate) fn stays(&self, spec: &ClusterSpec, member: &HostMember) -> bool {
        let slot = member.entry.slot;
        let failed = flag::FAILED_ACTIVE_HC | flag::FAILED_EDS_HEALTH;
        let stays = !spec.ignore_health_on_host_removal
            && self.hosts.flags(slot) & failed == 0
            && self.board.knows(slot);
        if stays {
            self.hosts.facts(slot).flags.fetch_or(flag::PENDING_DYNAMIC_REMOVAL, AcqRel);
        }
        stays
    }

    /// A kept host has failed its check: it goes now.
    pub(super) fn drop_kept(&self, cluster: u32, slot: u32, now: Time) {
        let mut master = self.master.lock();
        let Some(entry) = master.clusters.get_mut(cluster as usize) else { return };
        let Some(at) = entry.members.iter().position(|member| member.entry.slot == slot) else { return };
        let member = entry.members.remove(at);
        entry.shared.counters.lock().base.count(Counter::MembershipChange);
        self.remove_host(&master.clusters[cluster as usize], slot);
        self.rebuild(&mut master, cluster as usize, &[member.priority], now);
        self.publish(&mut master);
    }
}
