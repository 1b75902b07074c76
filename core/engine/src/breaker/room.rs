//! Whether a host would get a request at once, asked without taking anything.

use super::ledger::{Ledger, Members};
use super::permit::{in_use, pools};
use super::pool;
use super::queue::Queues;
use crate::hosts::HostArena;
use crate::outcome::resource;
use crate::spec::Thresholds;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::Relaxed;

/// The limits of a cluster, at a routing priority.
pub(crate) struct Room<'a> {
    pub(crate) hosts: &'a HostArena,
    pub(crate) ledger: &'a Ledger,
    pub(crate) max_connections: u32,
    /// Connections per host over all priorities; `u32::MAX` = unlimited.
    pub(crate) per_host: u32,
    /// Streams per connection.
    pub(crate) streams: u64,
}

impl Room<'_> {
    /// Whether a stream is free there, or a connection may be opened (a pool without any always gets one).
    pub(crate) fn at(&self, slot: u32, priority: usize) -> bool {
        let load = self.hosts.load(slot);
        let word = load.pools[priority].load(Relaxed);
        if pool::queued(word) > 0 {
            return false;
        }
        let open: u64 = load.pools.iter().map(|pool| pool::connections(pool.load(Relaxed))).sum();
        pool::connections(word) == 0
            || pool::active(word) < pool::connections(word) * self.streams
            || (open < u64::from(self.per_host)
                && self.ledger.connections.load(Relaxed) < self.max_connections)
    }
}

/// What decides whether a request that is sent to a host is refused there.
pub(crate) struct Doors<'a> {
    pub(crate) room: Room<'a>,
    pub(crate) limits: &'a Thresholds,
    pub(crate) members: Members<'a>,
    pub(crate) queues: &'a Mutex<Queues>,
    /// Connections are up only when the caller says so.
    pub(crate) strict: bool,
}

impl Doors<'_> {
    /// The limit by which asking for a permit would fail, see [`resource`].
    pub(crate) fn closed_by(&self, slot: u32, priority: usize) -> u8 {
        let Self { room, limits, members, .. } = self;
        let word = room.hosts.load(slot).pools[priority].load(Relaxed);
        let is_free = pool::queued(word) == 0 && pool::active(word) < pool::connections(word) * room.streams;
        if !is_free && !self.may_pool(slot, priority) {
            return resource::POOLS;
        }
        if is_free || (!self.strict && room.at(slot, priority)) {
            let has_room = room.ledger.active(*members, priority) < limits.max_requests;
            return if has_room { resource::NONE } else { resource::REQUESTS };
        }
        let may_wait = room.ledger.pending.load(Relaxed) < limits.max_pending_requests;
        if may_wait { resource::NONE } else { resource::PENDING }
    }

    /// Whether the host has a pool, or may get one, if need be in place of an idle one.
    fn may_pool(&self, slot: u32, priority: usize) -> bool {
        let Some(max) = self.limits.max_connection_pools else { return true };
        let (hosts, list, queues) = (self.room.hosts, self.members.list, self.queues.lock());
        let p = priority as u8;
        let idle = |slot: u32| {
            let word = hosts.load(slot).pools[priority].load(Relaxed);
            !pool::is_pinned(word) && queues.connecting((slot, p)) == 0
        };
        let pooled = pools(hosts, list, &queues, p);
        in_use(hosts, &queues, slot, p)
            || pooled < max
            || (pooled == max
                && max > 0
                && list.iter().any(|of| in_use(hosts, &queues, of.slot, p) && idle(of.slot)))
    }
}
