//! Following `fork`: the child must not inherit a lock that somebody holds, nor the parent's requests.

use crate::ask;
use nexthop::raw;
use std::panic::catch_unwind;
use std::sync::Once;

static REGISTERED: Once = Once::new();

/// Registers the handlers, once for the life of the library.
pub(crate) fn follow() {
    // SAFETY: the handlers live as long as the library; the C library forgets them when it is unloaded.
    REGISTERED.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    });
}

// The order of locks is that of `nexthop_poll_event`: ours first.

extern "C" fn before() {
    let _ = catch_unwind(|| {
        ask::hold_parked();
        raw::before_fork();
    });
}

extern "C" fn in_parent() {
    let _ = catch_unwind(|| {
        raw::after_fork_in_parent();
        ask::release_parked(false);
    });
}

extern "C" fn in_child() {
    let _ = catch_unwind(|| {
        raw::after_fork_in_child();
        ask::release_parked(true);
    });
}
