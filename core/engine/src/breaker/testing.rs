//! What tests and models of this module share.

use super::permit::{Ask, Permit, Promotions, acquire, acquire_free, release, release_free};
use super::queue::{Grant, Queues};
use super::{Ledger, Members};
use crate::hosts::{HostArena, HostEntry, HostInfo};
use crate::spec::{ConnectionStyle, Thresholds};
use crate::stats::ClusterCounters;
use crate::sync::Mutex;
use std::sync::Arc;

/// Nobody queues.
pub(crate) struct Nobody;

impl Promotions for Nobody {
    fn grant(&self, _: u64) -> Option<&Grant> {
        None
    }

    fn wake(&self, _: u64) {}
}

/// Pools, ledger and queues of one cluster, without requests.
pub(crate) struct Bench {
    pub(crate) hosts: Arc<HostArena>,
    pub(crate) members: Vec<Arc<HostEntry>>,
    pub(crate) ledger: Ledger,
    pub(crate) limits: Thresholds,
    pub(crate) queues: Mutex<Queues>,
    pub(crate) counters: ClusterCounters,
}

impl Bench {
    pub(crate) fn new(hosts: u32, limits: Thresholds) -> Self {
        let arena = Arc::<HostArena>::default();
        let members = (0..hosts)
            .map(|_| Arc::new(HostEntry::new(arena.add(HostInfo::at("10.0.0.1:80"), 0), Arc::clone(&arena))))
            .collect();
        let ledger = Ledger::default();
        ledger.set_limits(&limits, false);
        Self {
            hosts: arena,
            members,
            ledger,
            limits,
            queues: Mutex::default(),
            counters: ClusterCounters::default(),
        }
    }

    pub(crate) fn ask(&self, slot: u32) -> Ask<'_> {
        Ask {
            hosts: &self.hosts,
            slot,
            priority: 0,
            members: &self.members,
            ledger: &self.ledger,
            limits: &self.limits,
            per_host: u32::MAX,
            streams: 1,
            queues: &self.queues,
            counters: &self.counters,
            strict: false,
            both_overflows: false,
        }
    }

    pub(crate) fn members(&self) -> Members<'_> {
        Members { hosts: &self.hosts, list: &self.members }
    }

    pub(crate) fn take(&self, slot: u32) -> bool {
        let pool = &self.hosts.load(slot).pools[0];
        acquire_free(pool, &self.ledger, self.limits.max_requests, 1) || {
            let (grant, ask) = (Grant::default(), self.ask(slot));
            acquire(&ask, ConnectionStyle::Queue, 1, &grant, &Nobody) == Permit::Granted
        }
    }

    pub(crate) fn give(&self, slot: u32, gone: bool) {
        self.give_to(slot, gone, &Nobody);
    }

    /// The same; `promotions`: who may queue for it.
    pub(crate) fn give_to(&self, slot: u32, gone: bool, promotions: &dyn Promotions) {
        let host = self.hosts.host(slot);
        let pool = &host.load().pools[0];
        if !release_free(pool, &self.ledger, host, false, gone, true) {
            release(&self.ask(slot), gone, promotions);
        }
    }
}
