//! The virtual pool of one host and routing priority, packed into one word: active streams (24 bits),
//! connections (20 bits), queued requests (20 bits). One compare-and-swap takes or gives back a stream.
//!
//! The number of queued requests changes only under the cluster's queue lock (`queue.rs`), so whoever sees it
//! as 0 may take or give back a stream without that lock.

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

const ACTIVE: u64 = 0xff_ffff;
const CONNECTION: u64 = 1 << 24;
const CONNECTIONS: u64 = 0xf_ffff;
const QUEUED: u64 = 1 << 44;

/// Whether an attempt or a queued request still needs the host's slot.
pub(crate) const fn is_pinned(word: u64) -> bool {
    word & ACTIVE != 0 || word >> 44 != 0
}

/// Active streams.
pub(crate) const fn active(word: u64) -> u64 {
    word & ACTIVE
}

/// Virtual connections.
pub(crate) const fn connections(word: u64) -> u64 {
    (word >> 24) & CONNECTIONS
}

/// Queued requests.
pub(crate) const fn queued(word: u64) -> u64 {
    word >> 44
}

/// Free streams.
const fn free(word: u64, streams: u64) -> u64 {
    (connections(word) * streams).saturating_sub(active(word))
}

/// Takes a free stream of a connection that is up, when nobody queues before us.
#[inline]
pub(crate) fn take_free(pool: &AtomicU64, streams: u64) -> bool {
    let mut word = pool.load(Relaxed);
    while queued(word) == 0 && free(word, streams) > 0 {
        match pool.compare_exchange_weak(word, word + 1, AcqRel, Relaxed) {
            Ok(_) => return true,
            Err(now) => word = now,
        }
    }
    false
}

/// Adds a connection and takes one stream of it. `false` when the pool is at the width of its fields.
pub(crate) fn connect_and_take(pool: &AtomicU64) -> bool {
    pool.fetch_update(AcqRel, Acquire, |word| {
        (connections(word) < CONNECTIONS && active(word) < ACTIVE).then_some(word + CONNECTION + 1)
    })
    .is_ok()
}

/// Gives back a stream when nobody queues; `None` = somebody does, or there was none: take the queue lock.
/// `closed`: its connection is gone too. Returns whether a connection was dropped.
#[inline]
pub(crate) fn give_back(pool: &AtomicU64, closed: bool) -> Option<bool> {
    let mut word = pool.load(Relaxed);
    while queued(word) == 0 && active(word) > 0 {
        let drop = if closed && connections(word) > 0 { CONNECTION } else { 0 };
        match pool.compare_exchange_weak(word, word - 1 - drop, AcqRel, Relaxed) {
            Ok(_) => return Some(drop != 0),
            Err(now) => word = now,
        }
    }
    None
}

/// Gives back a stream while somebody queues; the caller holds the queue lock. Returns whether a connection
/// was dropped.
pub(crate) fn give_back_queued(pool: &AtomicU64, closed: bool) -> bool {
    let mut dropped = false;
    let _ = pool.fetch_update(AcqRel, Acquire, |word| {
        dropped = closed && active(word) > 0 && connections(word) > 0;
        (active(word) > 0).then(|| word - 1 - if dropped { CONNECTION } else { 0 })
    });
    dropped
}

/// Takes a free stream for a request that leaves the queue; the caller holds the queue lock.
pub(crate) fn promote(pool: &AtomicU64, streams: u64) -> bool {
    pool.fetch_update(AcqRel, Acquire, |word| {
        (free(word, streams) > 0 && queued(word) > 0).then(|| word + 1 - QUEUED)
    })
    .is_ok()
}

/// One more in the queue; the caller holds the queue lock. `false` when a stream has become free meanwhile.
pub(crate) fn enqueue(pool: &AtomicU64, streams: u64) -> bool {
    pool.fetch_update(AcqRel, Acquire, |word| {
        (queued(word) > 0 || free(word, streams) == 0).then(|| word + QUEUED)
    })
    .is_ok()
}

/// One less in the queue; the caller holds the queue lock.
pub(crate) fn dequeue(pool: &AtomicU64) {
    let _ = pool.fetch_update(AcqRel, Acquire, |word| (queued(word) > 0).then(|| word - QUEUED));
}

/// Adds a connection without taking a stream; the caller holds the queue lock.
pub(crate) fn connect(pool: &AtomicU64) -> bool {
    pool.fetch_update(AcqRel, Acquire, |word| (connections(word) < CONNECTIONS).then_some(word + CONNECTION))
        .is_ok()
}

/// Closes idle connections; returns how many.
pub(crate) fn close_idle(pool: &AtomicU64, streams: u64) -> u32 {
    let mut closed = 0;
    let _ = pool.fetch_update(AcqRel, Acquire, |word| {
        let needed = active(word).div_ceil(streams.max(1));
        closed = connections(word).saturating_sub(needed);
        (closed > 0).then(|| word - closed * CONNECTION)
    });
    closed as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stream_a_connection() {
        let pool = AtomicU64::new(0);
        assert!(!take_free(&pool, 1), "no connection yet");
        assert!(connect_and_take(&pool));
        assert!(!take_free(&pool, 1), "it is busy");
        assert_eq!(give_back(&pool, false), Some(false));
        assert!(take_free(&pool, 1));
        assert!(enqueue(&pool, 1));
        assert_eq!(give_back(&pool, false), None, "somebody queues");
        give_back_queued(&pool, false);
        assert!(!take_free(&pool, 1), "the queue goes first");
        assert!(promote(&pool, 1));
        assert!(is_pinned(pool.load(Relaxed)));
        assert_eq!(give_back(&pool, true), Some(true));
        assert_eq!(pool.load(Relaxed), 0);
        assert_eq!(give_back(&pool, false), None, "nothing to give back");
    }

    #[test]
    fn many_streams_a_connection() {
        let pool = AtomicU64::new(0);
        assert!(connect_and_take(&pool));
        assert!(take_free(&pool, 3) && take_free(&pool, 3) && !take_free(&pool, 3));
        assert_eq!(close_idle(&pool, 3), 0);
        for _ in 0..3 {
            assert_eq!(give_back(&pool, false), Some(false));
        }
        assert_eq!(close_idle(&pool, 3), 1);
    }
}
