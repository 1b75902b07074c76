//! What one thread keeps: the engines it talked to, and its workers.

use super::registry::{self, Engine};
use nexthop_engine::Misuse;
use nexthop_engine::engine::Core;
use nexthop_engine::worker::Worker;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Counts forks of this process; a block made before one is worthless.
pub(super) static FORKS: AtomicU32 = AtomicU32::new(0);

/// What one thread keeps: engine pointers, snapshots, its workers. Not tied to the thread that made it, but
/// used by one thread at a time.
#[derive(Default)]
pub struct Local {
    engines: Vec<Option<Box<Seat>>>,
    forks: u32,
}

/// One engine as this thread sees it.
pub(super) struct Seat {
    pub(super) engine: Arc<Engine>,
    work: Work,
}

enum Work {
    /// `workers: 0`: this thread's own.
    Own(Box<Worker>),
    /// One of the engine's.
    Shared(usize),
}

thread_local! {
    static LOCAL: UnsafeCell<Local> = const { UnsafeCell::new(Local { engines: Vec::new(), forks: 0 }) };
}

/// Runs `f` with this thread's block. `f` must not call [`with_local`] again: nothing here calls back.
#[inline]
pub fn with_local<R>(f: impl FnOnce(&mut Local) -> R) -> R {
    // SAFETY: the cell is reached here only, and no function that takes a `Local` calls user code, so there is
    // never a second reference.
    LOCAL.with(|local| f(unsafe { &mut *local.get() }))
}

impl Local {
    /// This thread's seat at the engine of that index.
    #[inline]
    pub(super) fn seat(&mut self, index: u32) -> Result<&mut Seat, Misuse> {
        let known = self.forks == FORKS.load(Relaxed)
            && matches!(self.engines.get(index as usize), Some(Some(seat)) if !seat.engine.is_closed());
        if !known {
            self.sit(index)?;
        }
        match self.engines.get_mut(index as usize) {
            Some(Some(seat)) => Ok(seat),
            _ => Err(Misuse::Closed),
        }
    }

    #[cold]
    fn sit(&mut self, index: u32) -> Result<(), Misuse> {
        let forks = FORKS.load(Relaxed);
        if self.forks != forks {
            self.leave_all();
            self.forks = forks;
        }
        let index = index as usize;
        if let Some(seat) = self.engines.get_mut(index) {
            *seat = None;
        }
        if index == 0 {
            return Err(Misuse::Invalid);
        }
        let engine = registry::at_index(index as u32).ok_or(Misuse::Closed)?;
        if engine.is_closed() {
            return Err(Misuse::Closed);
        }
        let work = if engine.shared.is_empty() {
            Work::Own(Box::new(engine.core.worker(engine.at(0))))
        } else {
            Work::Shared(engine.turn())
        };
        if self.engines.len() <= index {
            self.engines.resize_with(index + 1, || None);
        }
        self.engines[index] = Some(Box::new(Seat { engine, work }));
        Ok(())
    }

    /// The parent's workers mean nothing in a forked child: nothing of theirs is given back.
    fn leave_all(&mut self) {
        for seat in self.engines.drain(..).flatten() {
            if let Work::Own(worker) = seat.work {
                worker.abandon();
            }
        }
    }
}

impl Seat {
    /// Runs `f` with a worker of this engine.
    #[inline]
    pub(super) fn run<R>(&mut self, f: impl FnOnce(&Core, &mut Worker) -> R) -> R {
        match &mut self.work {
            Work::Own(worker) => f(&self.engine.core, worker),
            Work::Shared(at) => f(&self.engine.core, &mut self.engine.shared[*at].lock()),
        }
    }
}
