//! Taking and giving back the right to send one request (`spec/breakers-and-health.md` A3 and A6).

use super::ledger::{self, Ledger, Members};
use super::pool::{self, Credited};
use super::queue::{Grant, Place, PoolKey, Queues};
use crate::hosts::{Host, HostArena, HostEntry};
use crate::outcome::resource;
use crate::spec::{ConnectionStyle, Thresholds};
use crate::stats::{ClusterCounters, Counter};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Where a permit is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) hosts: &'a HostArena,
    pub(crate) slot: u32,
    pub(crate) priority: u8,
    /// All hosts of the cluster.
    pub(crate) members: &'a [Arc<HostEntry>],
    pub(crate) ledger: &'a Ledger,
    pub(crate) limits: &'a Thresholds,
    /// Connections per host over all priorities; `u32::MAX` = unlimited.
    pub(crate) per_host: u32,
    /// Streams per connection.
    pub(crate) streams: u64,
    pub(crate) queues: &'a Mutex<Queues>,
    pub(crate) counters: &'a ClusterCounters,
    /// Connections are up only when the caller says so.
    pub(crate) strict: bool,
    /// A refusal by `max_requests` counts as pending overflow, too.
    pub(crate) both_overflows: bool,
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
    pub(super) fn pool(&self) -> &AtomicU64 {
        &self.hosts.load(self.slot).pools[usize::from(self.priority)]
    }

    fn key(&self) -> PoolKey {
        (self.slot, self.priority)
    }

    fn members(&self) -> Members<'_> {
        Members { hosts: self.hosts, list: self.members }
    }

    fn count_active_overflow(&self) {
        self.counters.count(Counter::RqActiveOverflow);
        if self.both_overflows {
            self.counters.count(Counter::RqPendingOverflow);
        }
    }

    /// Whether this host may have a pool: it has one, or there is room for one, if need be in place of an idle one.
    fn may_pool(&self, queues: &Queues) -> bool {
        let Some(max) = self.limits.max_connection_pools else { return true };
        if in_use(self.hosts, queues, self.slot, self.priority) {
            return true;
        }
        let pools = || self.members.iter().filter(|m| in_use(self.hosts, queues, m.slot, self.priority));
        if (pools().count() as u64) < max {
            return true;
        }
        let idle = pools().find(|member| {
            let word = self.hosts.load(member.slot).pools[usize::from(self.priority)].load(Relaxed);
            !pool::is_pinned(word) && queues.connecting((member.slot, self.priority)) == 0
        });
        if let Some(member) = idle {
            close_idle(&Self { slot: member.slot, ..*self });
            return (pools().count() as u64) < max;
        }
        self.counters.count(Counter::CxPoolOverflow);
        false
    }

    /// Whether `max_requests` leaves a place.
    pub(super) fn has_room(&self) -> bool {
        self.ledger.has_room(self.limits.max_requests, self.members(), usize::from(self.priority))
    }

    fn take_request(&self) -> bool {
        let priority = usize::from(self.priority);
        self.ledger.take_last_request(self.limits.max_requests, self.members(), priority)
    }

    /// Whether a connection may be opened; takes it from the cluster's limit. A pool without any connection
    /// always gets one (rule 1). `connecting`: connections of this pool that are not up yet.
    pub(super) fn may_connect(&self, connecting: u32) -> bool {
        let host = self.hosts.load(self.slot);
        let open: u64 = host.pools.iter().map(|p| pool::connections(p.load(Relaxed))).sum();
        let open = open + u64::from(connecting);
        let may = open < u64::from(self.per_host)
            && ledger::take(&self.ledger.connections, self.limits.max_connections);
        if !may {
            self.counters.count(Counter::CxOverflow);
        }
        if may {
            self.counters.count(Counter::CxTotal);
            return true;
        }
        if connecting == 0 && pool::connections(self.pool().load(Relaxed)) == 0 {
            ledger::take_anyway(&self.ledger.connections);
            self.counters.count(Counter::CxTotal);
            return true;
        }
        false
    }
}

/// Whether a host has a pool: connections, some on their way, or somebody who waits for one.
pub(super) fn in_use(hosts: &HostArena, queues: &Queues, slot: u32, priority: u8) -> bool {
    let word = hosts.load(slot).pools[usize::from(priority)].load(Relaxed);
    pool::connections(word) > 0 || pool::is_pinned(word) || queues.connecting((slot, priority)) > 0
}

/// Hosts that have a pool.
pub(crate) fn pools(hosts: &HostArena, members: &[Arc<HostEntry>], queues: &Queues, priority: u8) -> u64 {
    members.iter().filter(|member| in_use(hosts, queues, member.slot, priority)).count() as u64
}

/// The frequent case of [`acquire`]: a free stream, and a place under `max_requests`. `false` = ask [`acquire`].
#[inline]
pub(crate) fn acquire_free(pool: &AtomicU64, ledger: &Ledger, max_requests: u32, streams: u64) -> bool {
    if ledger.within(max_requests) {
        match pool::take_credited(pool, streams) {
            Credited::Taken => return true,
            Credited::NoStream => return false,
            Credited::NoCredit => {}
        }
    }
    acquire_uncredited(pool, ledger, max_requests, streams)
}

#[inline(never)]
fn acquire_uncredited(pool: &AtomicU64, ledger: &Ledger, max_requests: u32, streams: u64) -> bool {
    if !pool::take_free(pool, streams) {
        return false;
    }
    if ledger.take_request(max_requests) {
        return true;
    }
    // Nobody saw the stream but us, or somebody queued meanwhile; `acquire` sorts it out.
    if pool::give_back(pool, false, false, false).is_none() {
        pool::give_back_queued(pool, false);
    }
    false
}

/// The frequent case of [`release`]: nobody queues. `false` = ask [`release`]; nothing happened. `gone`: the host
/// gets no more requests, so nothing may stay there.
#[inline]
pub(crate) fn release_free(
    pool: &AtomicU64,
    ledger: &Ledger,
    host: Host<'_>,
    closed: bool,
    gone: bool,
    served: bool,
) -> bool {
    let keep = !gone && ledger.may_keep();
    let Some(given) = pool::give_back(pool, closed || gone, served, keep) else { return false };
    if given.kept {
        ledger.left_credit();
    } else {
        ledger.give_request();
    }
    if given.dropped {
        ledger::give(&ledger.connections);
    }
    if given.served > 0 {
        host.tally().rq_success.fetch_add(given.served, Relaxed);
    }
    true
}

/// Asks for a stream. `Queued` and `Counted` leave `grant` at [`Place::Waiting`].
#[cold]
pub(crate) fn acquire(
    ask: &Ask<'_>,
    style: ConnectionStyle,
    request: u64,
    grant: &Grant,
    promotions: &dyn Promotions,
) -> Permit {
    if pool::queued(ask.pool().load(Relaxed)) > 0 {
        // `acquire_free` may have given back a stream behind the queue's back.
        hand_out(ask, &mut ask.queues.lock(), promotions);
    }
    if pool::take_free(ask.pool(), ask.streams) {
        attach(ask, promotions)
    } else {
        slow(ask, style, request, grant, promotions)
    }
}

/// A stream is ours; `max_requests` decides.
fn attach(ask: &Ask<'_>, promotions: &dyn Promotions) -> Permit {
    if ask.take_request() {
        return Permit::Granted;
    }
    ask.count_active_overflow();
    give_stream(ask, false, promotions);
    Permit::Refused(resource::REQUESTS)
}

fn slow(
    ask: &Ask<'_>,
    style: ConnectionStyle,
    request: u64,
    grant: &Grant,
    promotions: &dyn Promotions,
) -> Permit {
    let pool = ask.pool();
    if ask.limits.max_connection_pools.is_some() && !ask.may_pool(&ask.queues.lock()) {
        return Permit::Refused(resource::POOLS);
    }
    if !ask.strict && pool::queued(pool.load(Relaxed)) == 0 && ask.may_connect(0) {
        if pool::connect_and_take(pool) {
            // A request whose connection is not up yet is pending in Envoy, if only for a moment.
            ask.counters.count(Counter::RqPendingTotal);
            return attach(ask, promotions);
        }
        ledger::give(&ask.ledger.connections);
    }
    loop {
        if pool::queue_is_full(pool) || !ledger::take(&ask.ledger.pending, ask.limits.max_pending_requests) {
            ask.counters.count(Counter::RqPendingOverflow);
            return Permit::Refused(resource::PENDING);
        }
        let mut queues = ask.queues.lock();
        if pool::enqueue(pool, ask.streams) {
            let counted = style == ConnectionStyle::Count;
            queues.push(ask.key(), request, counted);
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
pub(crate) fn release(ask: &Ask<'_>, closed: bool, promotions: &dyn Promotions) {
    ask.ledger.give_request();
    give_stream(ask, closed, promotions);
}

fn give_stream(ask: &Ask<'_>, closed: bool, promotions: &dyn Promotions) {
    match pool::give_back(ask.pool(), closed, false, false) {
        Some(given) if given.dropped => ledger::give(&ask.ledger.connections),
        Some(_) => {}
        None => {
            let mut queues = ask.queues.lock();
            if pool::give_back_queued(ask.pool(), closed) {
                ledger::give(&ask.ledger.connections);
            }
            serve(ask, &mut queues, promotions);
        }
    }
}

/// Hands free streams to the queue; opens a connection when one is allowed and needed.
fn serve(ask: &Ask<'_>, queues: &mut Queues, promotions: &dyn Promotions) {
    hand_out(ask, queues, promotions);
    if ask.strict {
        begin_connections(ask, queues);
        return;
    }
    while pool::queued(ask.pool().load(Relaxed)) > 0 && ask.may_connect(0) {
        if !pool::connect(ask.pool()) {
            ledger::give(&ask.ledger.connections);
            return;
        }
        hand_out(ask, queues, promotions);
    }
}

/// Hands free streams to the queue, oldest first.
fn hand_out(ask: &Ask<'_>, queues: &mut Queues, promotions: &dyn Promotions) {
    while hand_out_one(ask, queues, promotions) {}
}

/// Hands a free stream to the oldest in the queue; `false` when there is none, or nobody.
pub(super) fn hand_out_one(ask: &Ask<'_>, queues: &mut Queues, promotions: &dyn Promotions) -> bool {
    let pool = ask.pool();
    if !pool::promote(pool, ask.streams) {
        return false;
    }
    ledger::give(&ask.ledger.pending);
    let Some(entry) = queues.pop(ask.key()) else { return false };
    let Some(grant) = promotions.grant(entry.request) else { return true };
    if entry.counted {
        ask.ledger.take_request_anyway();
        grant.set(Place::Granted);
    } else if ask.take_request() {
        grant.set(Place::Granted);
        promotions.wake(entry.request);
    } else {
        ask.count_active_overflow();
        pool::give_back_queued(pool, false);
        grant.set(Place::Overflow);
        promotions.wake(entry.request);
    }
    true
}

/// Opens connections for a queue that the ones on their way cannot serve (A3, `try_connect`).
pub(super) fn begin_connections(ask: &Ask<'_>, queues: &mut Queues) {
    for _ in 0..3 {
        let connecting = queues.connecting(ask.key());
        let queued = pool::queued(ask.pool().load(Relaxed));
        if queued <= u64::from(connecting) * ask.streams {
            return;
        }
        let overflow = ask.counters.get(Counter::CxOverflow);
        if ask.may_connect(connecting) {
            queues.add_connecting(ask.key());
        }
        if ask.counters.get(Counter::CxOverflow) != overflow {
            return;
        }
    }
}

/// A connection that was on its way is up: it serves the queue.
pub(crate) fn connected(ask: &Ask<'_>, promotions: &dyn Promotions) {
    let mut queues = ask.queues.lock();
    if queues.take_connecting(ask.key()) && pool::connect(ask.pool()) {
        serve(ask, &mut queues, promotions);
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
    ask.ledger.give_credits(pool::strip(ask.pool()));
    close_idle(ask);
}

/// Closes the idle connections of a pool.
pub(crate) fn close_idle(ask: &Ask<'_>) {
    ledger::give_many(&ask.ledger.connections, pool::close_idle(ask.pool(), ask.streams));
}
