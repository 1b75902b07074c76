//! The virtual pool of one host and routing priority, packed into one word: active streams (20 bits),
//! connections (16 bits), queued requests (16 bits), and good answers that are not yet in the host's own count
//! (12 bits). One compare-and-swap takes a stream, and one gives it back and counts its success.
//!
//! The number of queued requests changes only under the cluster's queue lock (`queue.rs`), so whoever sees it
//! as 0 may take or give back a stream without that lock.

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

const ACTIVE: u64 = 0xf_ffff;
const CONNECTION_SHIFT: u32 = 20;
const CONNECTION: u64 = 1 << CONNECTION_SHIFT;
const CONNECTIONS: u64 = 0xffff;
const QUEUED_SHIFT: u32 = 36;
const QUEUED: u64 = 1 << QUEUED_SHIFT;
const QUEUE: u64 = 0xffff;
const SERVED_SHIFT: u32 = 52;
const SERVED: u64 = 1 << SERVED_SHIFT;
const SERVED_MAX: u64 = 0xfff;

/// Whether an attempt or a queued request still needs the host's slot.
pub(crate) const fn is_pinned(word: u64) -> bool {
    word & (ACTIVE | QUEUE << QUEUED_SHIFT) != 0
}

/// Active streams.
pub(crate) const fn active(word: u64) -> u64 {
    word & ACTIVE
}

/// Virtual connections.
pub(crate) const fn connections(word: u64) -> u64 {
    (word >> CONNECTION_SHIFT) & CONNECTIONS
}

/// Queued requests.
pub(crate) const fn queued(word: u64) -> u64 {
    (word >> QUEUED_SHIFT) & QUEUE
}

/// Good answers that the host's own count lacks.
pub(crate) const fn served(word: u64) -> u64 {
    word >> SERVED_SHIFT
}

/// Free streams.
const fn free(word: u64, streams: u64) -> u64 {
    (connections(word) * streams).saturating_sub(active(word))
}

/// Takes a free stream of a connection that is up, when nobody queues before us.
#[inline]
pub(crate) fn take_free(pool: &AtomicU64, streams: u64) -> bool {
    let mut word = pool.load(Relaxed);
    while queued(word) == 0 && free(word, streams) > 0 && active(word) < ACTIVE {
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

/// What giving back a stream did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// Its connection was dropped.
    pub(crate) dropped: bool,
    /// Good answers that must be added to the host's own count now.
    pub(crate) served: u64,
}

/// Gives back a stream when nobody queues; `None` = somebody does, or there was none: take the queue lock.
/// `closed`: its connection is gone too. `served`: it had a good answer.
#[inline]
pub(crate) fn give_back(pool: &AtomicU64, closed: bool, served: bool) -> Option<Given> {
    let mut word = pool.load(Relaxed);
    while queued(word) == 0 && active(word) > 0 {
        let drop = if closed && connections(word) > 0 { CONNECTION } else { 0 };
        let (mut next, mut full) = (word - 1 - drop, 0);
        if served {
            if word >> SERVED_SHIFT == SERVED_MAX {
                next &= !(SERVED_MAX << SERVED_SHIFT);
                full = SERVED_MAX + 1;
            } else {
                next += SERVED;
            }
        }
        match pool.compare_exchange_weak(word, next, AcqRel, Relaxed) {
            Ok(_) => return Some(Given { dropped: drop != 0, served: full }),
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
        (free(word, streams) > 0 && queued(word) > 0 && active(word) < ACTIVE).then(|| word + 1 - QUEUED)
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

/// Whether the queue is as wide as its field.
pub(crate) fn queue_is_full(pool: &AtomicU64) -> bool {
    queued(pool.load(Relaxed)) == QUEUE
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
        assert!(give_back(&pool, false, false).is_some_and(|given| !given.dropped));
        assert!(take_free(&pool, 1));
        assert!(enqueue(&pool, 1));
        assert_eq!(give_back(&pool, false, true), None, "somebody queues");
        give_back_queued(&pool, false);
        assert!(!take_free(&pool, 1), "the queue goes first");
        assert!(promote(&pool, 1));
        assert!(is_pinned(pool.load(Relaxed)));
        assert!(give_back(&pool, true, false).is_some_and(|given| given.dropped));
        assert_eq!(pool.load(Relaxed), 0);
        assert_eq!(give_back(&pool, false, false), None, "nothing to give back");
    }

    #[test]
    fn good_answers_move_on_when_their_field_is_full() {
        let pool = AtomicU64::new(0);
        assert!(connect_and_take(&pool));
        let mut moved = 0;
        for _ in 0..10_000 {
            moved += give_back(&pool, false, true).unwrap().served;
            assert!(take_free(&pool, 1));
        }
        assert_eq!(moved + served(pool.load(Relaxed)), 10_000);
        assert_eq!((active(pool.load(Relaxed)), connections(pool.load(Relaxed))), (1, 1));
    }

    #[test]
    fn many_streams_a_connection() {
        let pool = AtomicU64::new(0);
        assert!(connect_and_take(&pool));
        assert!(take_free(&pool, 3) && take_free(&pool, 3) && !take_free(&pool, 3));
        assert_eq!(close_idle(&pool, 3), 0);
        for _ in 0..3 {
            assert!(give_back(&pool, false, false).is_some_and(|given| !given.dropped));
        }
        assert_eq!(close_idle(&pool, 3), 1);
    }
}
