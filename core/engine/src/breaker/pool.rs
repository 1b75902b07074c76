//! The virtual pool of one host and routing priority, packed into one word: active streams (20 bits),
//! connections (16 bits), queued requests (16 bits), good answers that are not yet in the host's own count
//! (6 bits), and credits (6 bits): places under `max_requests` that requests left here for the next ones
//! (`ledger.rs`). So one compare-and-swap takes a stream and its place, and one gives both back and counts the
//! success.
//!
//! The number of queued requests changes only under the cluster's queue lock (`queue.rs`), so whoever sees it
//! as 0 may take or give back a stream without that lock.

use crate::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

const ACTIVE: u64 = 0xf_ffff;
const CONNECTION_SHIFT: u32 = 20;
const CONNECTION: u64 = 1 << CONNECTION_SHIFT;
const CONNECTIONS: u64 = 0xffff;
const QUEUED_SHIFT: u32 = 36;
const QUEUED: u64 = 1 << QUEUED_SHIFT;
const QUEUE: u64 = 0xffff;
const SERVED_SHIFT: u32 = 52;
const SERVED: u64 = 1 << SERVED_SHIFT;
const SERVED_MAX: u64 = 0x3f;
const CREDIT_SHIFT: u32 = 58;
const CREDIT: u64 = 1 << CREDIT_SHIFT;
const CREDIT_MAX: u64 = 0x3f;

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
    (word >> SERVED_SHIFT) & SERVED_MAX
}

/// Places under `max_requests` that nobody uses.
pub(crate) const fn credits(word: u64) -> u64 {
    word >> CREDIT_SHIFT
}

/// The word with its good answers and nothing in use.
pub(crate) const fn served_alone(word: u64) -> u64 {
    word & (SERVED_MAX << SERVED_SHIFT)
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

/// What became of [`take_credited`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credited {
    /// A stream and a place are ours.
    Taken,
    /// A stream is free, but no place lies here.
    NoCredit,
    /// No stream is free.
    NoStream,
}

/// [`take_free`] with a place that lies here.
#[inline]
pub(crate) fn take_credited(pool: &AtomicU64, streams: u64) -> Credited {
    let mut word = pool.load(Relaxed);
    while queued(word) == 0 && free(word, streams) > 0 && active(word) < ACTIVE {
        if credits(word) == 0 {
            return Credited::NoCredit;
        }
        match pool.compare_exchange_weak(word, word + 1 - CREDIT, AcqRel, Relaxed) {
            Ok(_) => return Credited::Taken,
            Err(now) => word = now,
        }
    }
    Credited::NoStream
}

/// Takes away all credits. Writes even when there are none: whoever leaves one after this must know that they were
/// called back (`Ledger::left_credit`).
pub(crate) fn strip(pool: &AtomicU64) -> u32 {
    credits(pool.fetch_and(CREDIT - 1, AcqRel)) as u32
}

/// What a pool has that nobody uses any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) credits: u32,
    pub(crate) connections: u32,
}

/// Takes away all that nobody uses.
pub(crate) fn empty(pool: &AtomicU64) -> Left {
    let word = pool.swap(0, AcqRel);
    Left { credits: credits(word) as u32, connections: connections(word) as u32 }
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
    /// Its place under `max_requests` was left here.
    pub(crate) kept: bool,
    /// Good answers that must be added to the host's own count now.
    pub(crate) served: u64,
}

/// Gives back a stream when nobody queues; `None` = somebody does, or there was none: take the queue lock.
/// `closed`: its connection is gone too. `served`: it had a good answer. `keep`: its place may stay here.
#[inline]
pub(crate) fn give_back(pool: &AtomicU64, closed: bool, served: bool, keep: bool) -> Option<Given> {
    let mut word = pool.load(Relaxed);
    while queued(word) == 0 && active(word) > 0 {
        let drop = if closed && connections(word) > 0 { CONNECTION } else { 0 };
        let kept = keep && credits(word) < CREDIT_MAX;
        let (mut next, mut full) = (word - 1 - drop + if kept { CREDIT } else { 0 }, 0);
        if served {
            if self::served(word) == SERVED_MAX {
                next -= SERVED_MAX << SERVED_SHIFT;
                full = SERVED_MAX + 1;
            } else {
                next += SERVED;
            }
        }
        match pool.compare_exchange_weak(word, next, AcqRel, Relaxed) {
            Ok(_) => return Some(Given { dropped: drop != 0, kept, served: full }),
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
        assert!(give_back(&pool, false, false, false).is_some_and(|given| !given.dropped));
        assert!(take_free(&pool, 1));
        assert!(enqueue(&pool, 1));
        assert_eq!(give_back(&pool, false, true, false), None, "somebody queues");
        give_back_queued(&pool, false);
        assert!(!take_free(&pool, 1), "the queue goes first");
        assert!(promote(&pool, 1));
        assert!(is_pinned(pool.load(Relaxed)));
        assert!(give_back(&pool, true, false, false).is_some_and(|given| given.dropped));
        assert_eq!(pool.load(Relaxed), 0);
        assert_eq!(give_back(&pool, false, false, false), None, "nothing to give back");
    }

    #[test]
    fn good_answers_move_on_when_their_field_is_full() {
        let pool = AtomicU64::new(0);
        assert!(connect_and_take(&pool));
        let mut moved = 0;
        for _ in 0..10_000 {
            moved += give_back(&pool, false, true, false).unwrap().served;
            assert!(take_free(&pool, 1));
        }
        assert_eq!(moved + served(pool.load(Relaxed)), 10_000);
        assert_eq!(credits(pool.load(Relaxed)), 0);
        assert_eq!((active(pool.load(Relaxed)), connections(pool.load(Relaxed))), (1, 1));
    }

    #[test]
    fn many_streams_a_connection() {
        let pool = AtomicU64::new(0);
        assert!(connect_and_take(&pool));
        assert!(take_free(&pool, 3) && take_free(&pool, 3) && !take_free(&pool, 3));
        assert_eq!(close_idle(&pool, 3), 0);
        for _ in 0..3 {
            assert!(give_back(&pool, false, false, false).is_some_and(|given| !given.dropped));
        }
        assert_eq!(close_idle(&pool, 3), 1);
    }

    #[test]
    fn places_stay_and_are_taken_again() {
        let pool = AtomicU64::new(0);
        assert_eq!(take_credited(&pool, 1), Credited::NoStream);
        assert!(connect_and_take(&pool));
        assert!(give_back(&pool, false, true, true).is_some_and(|given| given.kept));
        assert_eq!(take_credited(&pool, 1), Credited::Taken);
        assert_eq!(take_credited(&pool, 1), Credited::NoStream);
        assert!(give_back(&pool, false, true, false).is_some_and(|given| !given.kept));
        assert_eq!(take_credited(&pool, 1), Credited::NoCredit);
        for _ in 0..100 {
            assert!(take_free(&pool, 1));
            give_back(&pool, false, true, true).unwrap();
        }
        assert_eq!(credits(pool.load(Relaxed)), CREDIT_MAX, "no more than its field holds");
        let before = pool.load(Relaxed);
        assert_eq!(strip(&pool), CREDIT_MAX as u32);
        assert_eq!(strip(&pool), 0);
        assert_eq!(pool.load(Relaxed), before & (CREDIT - 1), "nothing else changes");
    }
}
