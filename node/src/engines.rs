//! How many environments use an engine: the last one that goes without closing it frees it.

use nexthop::raw;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

static USERS: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

fn users() -> std::sync::MutexGuard<'static, BTreeMap<u64, usize>> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first user of a new engine.
pub(crate) fn created(engine: u64) {
    users().insert(engine, 1);
}

/// One more user; false when the engine is closed.
pub(crate) fn attach(engine: u64) -> bool {
    users().get_mut(&engine).map(|count| *count += 1).is_some()
}

/// One user less.
pub(crate) fn detach(engine: u64) {
    let mut users = users();
    let Some(count) = users.get_mut(&engine) else { return };
    *count -= 1;
    if *count == 0 {
        users.remove(&engine);
        drop(users);
        // An engine that was closed meanwhile is what was wanted.
        let _ = raw::engine_free(engine);
    }
}

/// Closed for everybody.
pub(crate) fn close(engine: u64) -> Result<(), raw::Error> {
    users().remove(&engine);
    raw::engine_free(engine)
}
