//! What a `fork` does, and how cold calls stay out of its way.
//!
//! A fork happens with the interpreter held, so no other thread is inside an engine then, except in a cold call,
//! which has let go of the interpreter. Those share a lock that the fork takes alone: a child inherits no lock of
//! a thread that it does not have. All this is done around the system call itself (`pthread_atfork`): hooks of
//! `os.register_at_fork` are too wide, since other modules' hooks run between them and another thread may get
//! the interpreter there.

use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::{Once, PoisonError, RwLock, RwLockWriteGuard};

static COLD: RwLock<()> = RwLock::new(());

thread_local! {
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Runs a call that may take long while other threads have the interpreter. `call` must not need it.
pub(crate) fn detached<R: Send>(py: Python<'_>, call: impl FnOnce() -> R + Send) -> R {
    py.detach(|| {
        let _shared = COLD.read().unwrap_or_else(PoisonError::into_inner);
        call()
    })
}

#[cfg(unix)]
mod handlers {
    use super::{COLD, FORKING, PoisonError};
    use nexthop::raw;

    pub(super) extern "C" fn before() {
        FORKING.set(Some(COLD.write().unwrap_or_else(PoisonError::into_inner)));
        raw::before_fork();
    }

    pub(super) extern "C" fn parent() {
        raw::after_fork_in_parent();
        FORKING.set(None);
    }

    pub(super) extern "C" fn child() {
        raw::after_fork_in_child();
        FORKING.set(None);
    }
}

/// Registers the handlers once per process.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers live as long as this library, which Python never unloads, and do not unwind:
        // what they call only takes and gives back locks and resets counters.
        #[cfg(unix)]
        unsafe {
            libc::pthread_atfork(Some(handlers::before), Some(handlers::parent), Some(handlers::child));
        }
    });
}

/// In the child, once the interpreter is itself again: forgets the parent's waiters, who are Python objects.
#[pyfunction]
pub(crate) fn _after_fork_in_child() {
    crate::waiters::clear();
}
