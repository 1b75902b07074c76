//! Limits that an update raised: whoever waits gets what they now allow, oldest first over all hosts of the cluster.

use super::ledger;
use super::permit::{Ask, Promotions, begin_connections, hand_out_one};
use super::pool;
use super::queue::{PoolKey, Queues};
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::Relaxed;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Hands out what the present limits allow to those who wait. `ask` tells the limits at a pool.
pub(crate) fn serve_waiting<'a>(
    queues: &Mutex<Queues>,
    ask: impl Fn(PoolKey) -> Ask<'a>,
    promotions: &dyn Promotions,
) {
    let mut queues = queues.lock();
    let mut pools: BinaryHeap<Reverse<(u64, PoolKey)>> = queues.pools().map(Reverse).collect();
    while let Some(Reverse((_, pool))) = pools.pop() {
        if serve_one(&ask(pool), &mut queues, promotions)
            && let Some(next) = queues.oldest(pool)
        {
            pools.push(Reverse((next, pool)));
        }
    }
}

/// The oldest waiter of a pool gets a stream; `false` when there is none for it. Nobody is refused here who could
/// as well go on waiting.
fn serve_one(ask: &Ask<'_>, queues: &mut Queues, promotions: &dyn Promotions) -> bool {
    if !ask.has_room() {
        return false;
    }
    if hand_out_one(ask, queues, promotions) {
        return true;
    }
    if ask.strict {
        begin_connections(ask, queues);
        return false;
    }
    if pool::queued(ask.pool().load(Relaxed)) == 0 || !ask.may_connect(0) {
        return false;
    }
    if pool::connect(ask.pool()) {
        return hand_out_one(ask, queues, promotions);
    }
    ledger::give(&ask.ledger.connections);
    false
}
