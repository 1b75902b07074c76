//! A cluster: what it shares over all snapshots, and one immutable view of it.

use crate::balance::{Prepared, View};
use crate::breaker::{Ledger, Queues};
use crate::clock::Time;
use crate::hosts::{HostArena, HostEntry};
use crate::opt_in::Steer;
use crate::outlier::Detector;
use crate::request::Measures;
use crate::sets::HostSet;
use crate::spec::{ClusterSpec, ConnectionStyle, Protocol, Thresholds};
use crate::stats::ClusterCounters;
use crate::sync::Mutex;
use std::sync::Arc;

/// What a name keeps for the engine's life, also across removal and return: counts, counters, queues.
pub(crate) struct ClusterShared {
    pub(crate) name: Arc<str>,
    pub(crate) ledgers: [Ledger; 2],
    pub(crate) queues: Mutex<Queues>,
    pub(crate) detector: Detector,
    /// Counters of ended workers and of updates, then one block per living worker.
    pub(crate) counters: Mutex<Counters>,
}

/// All blocks of a cluster's counters.
pub(crate) struct Counters {
    pub(crate) base: Arc<ClusterCounters>,
    pub(crate) workers: Vec<Arc<ClusterCounters>>,
}

impl Counters {
    /// Workers of the parent process are gone (after a fork); what they counted stays.
    pub(crate) fn keep_base(&mut self) {
        for block in std::mem::take(&mut self.workers) {
            self.base.absorb(&block);
        }
    }
}

impl ClusterShared {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            ledgers: [Ledger::default(), Ledger::default()],
            queues: Mutex::default(),
            detector: Detector::default(),
            counters: Mutex::new(Counters { base: Arc::default(), workers: Vec::new() }),
        }
    }

    /// A new worker's block.
    pub(crate) fn enroll(&self) -> Arc<ClusterCounters> {
        let block = Arc::new(ClusterCounters::default());
        self.counters.lock().workers.push(Arc::clone(&block));
        block
    }

    /// A worker ends: its block is added to the base.
    pub(crate) fn dismiss(&self, block: &Arc<ClusterCounters>) {
        let mut counters = self.counters.lock();
        counters.base.absorb(block);
        counters.workers.retain(|other| !Arc::ptr_eq(other, block));
    }

    /// The sum of all blocks.
    pub(crate) fn total(&self) -> ClusterCounters {
        let counters = self.counters.lock();
        let sum = ClusterCounters::default();
        sum.absorb(&counters.base);
        for block in &counters.workers {
            sum.absorb(block);
        }
        sum
    }
}

/// The clusters that another one stands for, by index.
pub(crate) enum Subs {
    Composite(Vec<u32>),
    /// What it chooses by is made when all views are there: `Entry::linear`.
    Aggregate(Vec<u32>),
}

/// One cluster as one snapshot sees it.
pub(crate) struct ClusterView {
    /// Moves with every rebuild.
    pub(crate) version: u64,
    /// When it was made.
    pub(crate) made: Time,
    /// When the cluster began to be balanced by its policy.
    pub(crate) since: Time,
    pub(crate) spec: Arc<ClusterSpec>,
    /// Other clusters that it stands for, `None` for a cluster with hosts.
    pub(crate) subs: Option<Subs>,
    pub(crate) sets: Vec<HostSet>,
    pub(crate) prepared: Prepared,
    /// Keeps the slots of `sets` alive.
    pub(crate) members: Arc<[Arc<HostEntry>]>,
    /// Limits by routing priority, runtime values applied.
    pub(crate) limits: [Thresholds; 2],
    /// Streams that one connection carries.
    pub(crate) streams: u64,
    /// Nacos' protection acts: all hosts count as healthy.
    pub(crate) protected: bool,
    /// The registry said that its protection acts.
    pub(crate) told_protected: bool,
    /// Connections are up only when the caller says so.
    pub(crate) strict: bool,
    /// The policy bounds each host's load.
    pub(crate) bounded: bool,
    /// What the policy wants to know of answers.
    pub(crate) measures: Option<Box<Measures>>,
    /// Hosts that are passed over; `None` = none ever.
    pub(crate) steer: Option<Steer>,
    /// Nothing stands between a request and the policy: no composite, nobody to pass over.
    pub(crate) direct: bool,
    /// A retry budget looks back in time.
    pub(crate) looks_back: bool,
}

impl ClusterView {
    /// Sub-clusters of a composite; none of anything else.
    pub(crate) fn composite(&self) -> Option<&[u32]> {
        match &self.subs {
            Some(Subs::Composite(subs)) => Some(subs),
            _ => None,
        }
    }

    pub(crate) fn streams_of(spec: &ClusterSpec) -> u64 {
        match spec.protocol {
            Protocol::Http1 => 1,
            // A connection that may carry few requests in its life carries no more of them at once.
            Protocol::Http2 => match spec.max_requests_per_connection {
                0 => u64::from(spec.max_concurrent_streams.max(1)),
                most => u64::from(spec.max_concurrent_streams.clamp(1, most)),
            },
        }
    }

    pub(crate) fn looks_back(limits: &[Thresholds; 2]) -> bool {
        let budgets = limits.iter().filter_map(|limits| limits.retry_budget);
        budgets.into_iter().any(|budget| !budget.interval.is_zero())
    }

    pub(crate) fn bounds(spec: &ClusterSpec) -> bool {
        spec.policy.hashing().is_some_and(|hashing| hashing.balance_factor > 0)
    }

    pub(crate) fn measures_of(spec: &ClusterSpec) -> Option<Box<Measures>> {
        let measures = Measures {
            latency: spec.policy.peak_ewma().copied(),
            weights: spec.policy.client_weights().cloned(),
            utilization: spec.policy.load_aware().cloned(),
        };
        spec.policy.learns_from().map(|_| Box::new(measures))
    }

    #[inline]
    pub(crate) fn view<'a>(&'a self, hosts: &'a HostArena) -> View<'a> {
        View {
            policy: &self.spec.policy,
            sets: &self.sets,
            prepared: &self.prepared,
            hosts,
            since: self.since,
        }
    }

    /// How connections are accounted for a request (or a stateless pick).
    #[inline]
    pub(crate) fn style(&self, stateless: bool) -> ConnectionStyle {
        match self.spec.connections {
            Some(style) => style,
            None if stateless => ConnectionStyle::Count,
            None => ConnectionStyle::Queue,
        }
    }
}
