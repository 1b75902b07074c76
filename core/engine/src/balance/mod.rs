//! Which host: one file per policy behind [`Scheduler`], shared parts each in a file of its own.

use crate::clock::Time;
use crate::hosts::HostArena;
use crate::random::Source;
use crate::sets::HostSet;
use crate::spec::PolicySpec;
use crate::stats::{ClusterCounters, Counter};

/// What is computed once per update and shared by all workers: priority loads, panic flags, rings, tables.
pub struct Prepared {}

/// A cluster as a balancer sees it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The policy.
    pub policy: &'a PolicySpec,
    /// By priority.
    pub sets: &'a [HostSet],
    /// Of the same snapshot as `sets`.
    pub prepared: &'a Prepared,
    /// Where slots lead.
    pub hosts: &'a HostArena,
}

/// One selection: what the request brings, what the balancer leaves.
pub struct Selection<'a> {
    /// The request's hash, if any.
    pub hash: Option<u64>,
    /// Words for this selection.
    pub random: &'a mut Source,
    /// Now.
    pub now: Time,
    /// Candidates to examine: 1 on first attempts, `host_selection_retry_max_attempts` + 1 on retries.
    pub candidates: u32,
    /// Whether a retry predicate rejects a host; not asked on first attempts.
    pub reject: Option<&'a dyn Fn(u32) -> bool>,
    /// Active requests of the cluster (bounded load).
    pub cluster_active: u32,
    /// The cluster's counters in this worker.
    pub counters: &'a ClusterCounters,
    /// Left by the balancer: the priority of the last candidate.
    pub priority: u32,
    /// Left by the balancer: that priority panicked.
    pub panic: bool,
    /// Left by the balancer: a degraded host was chosen as such.
    pub degraded: bool,
}
