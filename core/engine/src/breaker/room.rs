//! Whether a host would get a request at once, asked without taking anything.

use super::ledger::Ledger;
use super::pool;
use crate::hosts::HostArena;
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
