//! Taking and giving back the right to send one request (`spec/breakers-and-health.md` A3 and A6).

use super::ledger::{self, Ledger};
use super::pool;
use super::queue::{Entry, Grant, Place, PoolKey, Queues};
use crate::hosts::HostArena;
use crate::outcome::resource;
use crate::spec::{ConnectionStyle, Thresholds};
use crate::stats::{ClusterCounters, Counter};
use crate::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where a permit is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) hosts: &'a HostArena,
    pub(crate) slot: u32,
    pub(crate) priority: u8,
    pub(crate) ledger: &'a Ledger,
    pub(crate) limits: &'a Thresholds,
    /// Connections per host over all priorities; `u32::MAX` = unlimited.
    pub(crate) per_host: u32,
    /// Streams per connection.
    pub(crate) streams: u64,
    pub(crate) queues: &'a Mutex<Queues>,
    pub(crate) counters: &'a ClusterCounters,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// Send.
    Granted,
    /// Send, but counted as pending until a stream is free.
    Counted,
    /// Wait for the grant.
    Queued,
    /// No: which limit, see [`resource`].
    Refused(u8),
}

/// Whoever can be granted a stream: how its cell is found, and how it is told.
pub(crate) trait Promotions {
    /// The cell of a live request.
    fn grant(&self, request: u64) -> Option<&Grant>;
    /// Its wait is over.
    fn wake(&self, request: u64);
}

impl Ask<'_> {
    #[inline]
    fn pool(&self) -> &AtomicU64 {
        &self.hosts.load(self.slot).pools[usize::from(self.priority)]
    }

    fn key(&self) -> PoolKey {
        (self.slot, self.priority)
    }

    /// Whether a connection may be opened; takes it from the cluster's limit. A pool without any connection
    /// always gets one (rule 1).
    fn may_connect(&self) -> bool {
        let host = self.hosts.load(self.slot);
        let open: u64 = host.pools.iter().map(|p| pool::connections(p.load(Relaxed))).sum();
        let may = open < u64::from(self.per_host)
            && ledger::take(&self.ledger.connections, self.limits.max_connections);
        if !may {
            self.counters.count(Counter::CxOverflow);
        }
        if may {
            self.counters.count(Counter::CxTotal);
            return true;
        }
        if pool::connections(self.pool().load(Relaxed)) == 0 {
            ledger::take_anyway(&self.ledger.connections);
            self.counters.count(Counter::CxTotal);
            return true;
        }
        false
    }
}

/// Asks for a stream. `Queued` and `Counted` leave `grant` at [`Place::Waiting`].
#[inline]
pub(crate) fn acquire(
    ask: &Ask<'_>,
    style: ConnectionStyle,
    request: u64,
    grant: &Grant,
    promotions: &dyn Promotions,
) -> Permit {
    if pool::take_free(ask.pool(), ask.streams) {
        attach(ask, promotions)
    } else {
        slow(ask, style, request, grant, promotions)
    }
}

/// A stream is ours; `max_requests` decides.
#[inline]
fn attach(ask: &Ask<'_>, promotions: &dyn Promotions) -> Permit {
    if ledger::take(&ask.ledger.requests, ask.limits.max_requests) {
        return Permit::Granted;
    }
    ask.counters.count(Counter::RqActiveOverflow);
    give_stream(ask, false, promotions);
    Permit::Refused(resource::REQUESTS)
}

#[cold]
fn slow(
    ask: &Ask<'_>,
    style: ConnectionStyle,
    request: u64,
    grant: &Grant,
    promotions: &dyn Promotions,
) -> Permit {
    let pool = ask.pool();
    if pool::queued(pool.load(Relaxed)) == 0 && ask.may_connect() {
        if pool::connect_and_take(pool) {
            // A request whose connection is not up yet is pending in Envoy, if only for a moment.
            ask.counters.count(Counter::RqPendingTotal);
            return attach(ask, promotions);
        }
        ledger::give(&ask.ledger.connections);
    }
    loop {
        if !ledger::take(&ask.ledger.pending, ask.limits.max_pending_requests) {
            ask.counters.count(Counter::RqPendingOverflow);
            return Permit::Refused(resource::PENDING);
        }
        let mut queues = ask.queues.lock();
        if pool::enqueue(pool, ask.streams) {
            let counted = style == ConnectionStyle::Count;
            queues.push(ask.key(), Entry { request, counted });
            grant.set(Place::Waiting);
            ask.counters.count(Counter::RqPendingTotal);
            serve(ask, &mut queues, promotions);
            return match (counted, grant.get()) {
                (true, Place::Granted) => Permit::Granted,
                (true, _) => Permit::Counted,
                (false, _) => Permit::Queued,
            };
        }
        drop(queues);
        ledger::give(&ask.ledger.pending);
        // A stream became free between the two looks.
        if pool::take_free(pool, ask.streams) {
            return attach(ask, promotions);
        }
    }
}

/// Gives back a granted stream and its place under `max_requests`. `closed`: its connection is gone too.
#[inline]
pub(crate) fn release(ask: &Ask<'_>, closed: bool, promotions: &dyn Promotions) {
    ledger::give(&ask.ledger.requests);
    give_stream(ask, closed, promotions);
}

#[inline]
fn give_stream(ask: &Ask<'_>, closed: bool, promotions: &dyn Promotions) {
    match pool::give_back(ask.pool(), closed) {
        Some(false) => {}
        Some(true) => ledger::give(&ask.ledger.connections),
        None => {
            let mut queues = ask.queues.lock();
            if pool::give_back_queued(ask.pool(), closed) {
                ledger::give(&ask.ledger.connections);
            }
            serve(ask, &mut queues, promotions);
        }
    }
}

/// Hands free streams to the queue, oldest first; opens a connection when one is allowed and needed.
fn serve(ask: &Ask<'_>, queues: &mut Queues, promotions: &dyn Promotions) {
    let pool = ask.pool();
    while pool::queued(pool.load(Relaxed)) > 0 {
        if !pool::promote(pool, ask.streams) {
            if ask.may_connect() {
                if pool::connect(pool) {
                    continue;
                }
                ledger::give(&ask.ledger.connections);
            }
            return;
        }
        ledger::give(&ask.ledger.pending);
        let Some(entry) = queues.pop(ask.key()) else { return };
        let Some(grant) = promotions.grant(entry.request) else { continue };
        if entry.counted {
            ledger::take_anyway(&ask.ledger.requests);
            grant.set(Place::Granted);
        } else if ledger::take(&ask.ledger.requests, ask.limits.max_requests) {
            grant.set(Place::Granted);
            promotions.wake(entry.request);
        } else {
            ask.counters.count(Counter::RqActiveOverflow);
            pool::give_back_queued(pool, false);
            grant.set(Place::Overflow);
            promotions.wake(entry.request);
        }
    }
}

/// Gives up a place in the queue. `false` when it was not waiting any more: look at the grant again.
pub(crate) fn leave(ask: &Ask<'_>, request: u64, grant: &Grant) -> bool {
    let mut queues = ask.queues.lock();
    if !grant.swap(Place::Waiting, Place::None) {
        return false;
    }
    if queues.remove(ask.key(), request) {
        pool::dequeue(ask.pool());
        ledger::give(&ask.ledger.pending);
    }
    true
}

/// The host left its cluster: its waiters are woken to choose anew, its idle connections are closed.
pub(crate) fn host_gone(ask: &Ask<'_>, promotions: &dyn Promotions) {
    let mut queues = ask.queues.lock();
    for request in queues.take_waiting(ask.key()) {
        pool::dequeue(ask.pool());
        ledger::give(&ask.ledger.pending);
        if let Some(grant) = promotions.grant(request) {
            grant.set(Place::HostGone);
            promotions.wake(request);
        }
    }
    close_idle(ask);
}

/// Closes the idle connections of a pool.
pub(crate) fn close_idle(ask: &Ask<'_>) {
    ledger::give_many(&ask.ledger.connections, pool::close_idle(ask.pool(), ask.streams));
}
