//! Threads that block until their request's turn comes.

use super::error::Error;
use super::registry;
use super::sentence::{Asked, Call, sentence_of};
use nexthop_engine::Misuse;
use nexthop_engine::engine::WaitsFor;
use nexthop_engine::ids::{engine_of, is_attempt};
use nexthop_engine::sync::{Mutex, MutexGuard};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The longest a waiter sleeps before it looks again: a lost wake-up costs a second.
const LONGEST: Duration = Duration::from_secs(1);

/// The blocked threads of an engine. They share one condition: waiters are few, and each looks for itself.
#[derive(Default)]
pub(super) struct Waiters {
    lock: Mutex<()>,
    condition: Condvar,
    blocked: AtomicU32,
}

impl Waiters {
    /// Somebody's wait may be over.
    #[inline]
    pub(super) fn wake(&self) {
        if self.blocked.load(Relaxed) != 0 {
            self.wake_all();
        }
    }

    #[cold]
    pub(super) fn wake_all(&self) {
        let _held = self.lock.lock();
        self.condition.notify_all();
    }

    /// What blocked threads hold while they look; held over a fork.
    pub(super) fn lock(&self) -> &Mutex<()> {
        &self.lock
    }

    /// Nobody of this process is blocked here (after a fork).
    pub(super) fn forget(&self) {
        self.blocked.store(0, Relaxed);
    }
}

/// Blocks this thread until asking `choose` again makes sense, at most `max_ns` and at most a second.
/// A request that is being waited for here is not listed by `poll_ready`. One that is over is [`Misuse::Ended`].
pub fn wait_for(request: u64, max_ns: u64) -> Result<(), Error> {
    let wrong = |misuse| Error::misuse(misuse, sentence_of(&Asked::about(Call::Wait, request), misuse));
    if is_attempt(request) || engine_of(request) == 0 {
        return Err(wrong(Misuse::Invalid));
    }
    let engine = registry::at_index(engine_of(request)).ok_or_else(|| wrong(Misuse::Closed))?;
    let until = Instant::now() + Duration::from_nanos(max_ns).min(LONGEST);
    let waiters = &engine.waiters;
    waiters.blocked.fetch_add(1, AcqRel);
    let mut held = waiters.lock.lock();
    let mut over = false;
    loop {
        match engine.core.waits_for(request) {
            WaitsFor::Nothing => break,
            WaitsFor::Over => {
                over = true;
                break;
            }
            // Over by time alone; a notification may be a manual clock that moved.
            WaitsFor::Time => {
                (held, _) = waiters.condition.wait_until(held, until);
                break;
            }
            WaitsFor::Turn => {
                if engine.is_closed() {
                    break;
                }
                let late;
                (held, late) = waiters.condition.wait_until(held, until);
                if late {
                    break;
                }
            }
        }
    }
    drop(held);
    waiters.blocked.fetch_sub(1, AcqRel);
    if over { Err(wrong(Misuse::Ended)) } else { Ok(()) }
}

/// What threads sleep on.
#[derive(Default)]
struct Condvar(std::sync::Condvar);

impl Condvar {
    /// Sleeps until notified or the instant has come, and says whether it has. Wakes without reason too.
    fn wait_until<'a, T>(&self, guard: MutexGuard<'a, T>, until: Instant) -> (MutexGuard<'a, T>, bool) {
        let left = until.saturating_duration_since(Instant::now());
        let (guard, result) = self.0.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner);
        (guard, result.timed_out())
    }

    /// Wakes all.
    fn notify_all(&self) {
        self.0.notify_all();
    }
}
