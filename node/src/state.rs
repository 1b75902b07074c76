//! What one environment (main thread or worker thread) keeps.

use crate::values::{self, Thrown};
use napi_sys as sys;
use nexthop::raw::Local;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::null_mut;

/// Instance data of an environment; freed by Node after the environment's last callback.
pub(crate) struct State {
    /// The engine block of this thread. Only its thread calls functions of this environment.
    pub(crate) local: UnsafeCell<Local>,
}

/// Puts a fresh block into the environment.
pub(crate) fn install(env: sys::napi_env) -> Result<(), Thrown> {
    let state = Box::into_raw(Box::new(State { local: UnsafeCell::default() }));
    // SAFETY: `state` is a leaked box, given back by `drop_state`.
    let status = unsafe { sys::napi_set_instance_data(env, state.cast(), Some(drop_state), null_mut()) };
    values::check(status)
}

/// The environment's block.
pub(crate) fn of(env: sys::napi_env) -> Result<*const State, Thrown> {
    let mut data = null_mut();
    // SAFETY: `env` is live, and only `install` sets its data.
    values::check(unsafe { sys::napi_get_instance_data(env, &raw mut data) })?;
    if data.is_null() {
        return Err(Thrown::new(-4, "the environment is being torn down".into()));
    }
    Ok(data.cast::<State>().cast_const())
}

unsafe extern "C" fn drop_state(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
    // SAFETY: Node calls this once, with what `install` leaked.
    let state = unsafe { Box::from_raw(data.cast::<State>()) };
    // A panic while dropping must not unwind into Node.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(state)));
}
