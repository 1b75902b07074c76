//! The addon: `nexthop::raw` as bare Node-API functions.
//!
//! No generated glue: a hot function carries its engine in its data pointer, reads its arguments from the words
//! of a shared array and writes its answer there ([`bound`]); the rest are plain functions ([`cold`], [`ask`]). Statics
//! are shared by all threads of the process; what belongs to one thread lives in its environment's instance
//! data ([`state`]), never in a thread-local, and no function here calls back into JavaScript.

mod ask;
mod bound;
mod checks;
mod cold;
mod engines;
mod hot;
mod state;
mod values;

use napi_sys as sys;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Once;

/// A plain Node-API callback.
type Callback = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value;

/// Runs the body of a callback; a panic becomes a thrown error, since unwinding into Node would abort it.
fn guarded(
    env: sys::napi_env,
    body: impl FnOnce() -> Result<sys::napi_value, values::Thrown>,
) -> sys::napi_value {
    let thrown = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return value,
        Ok(Err(thrown)) => thrown,
        Err(_) => values::Thrown::new(-11, "internal error, contained".into()),
    };
    thrown.throw(env);
    null_mut()
}

/// Called by Node for each environment that loads the addon.
///
/// # Safety
/// Only Node calls this, with a live environment and the module's empty exports.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn napi_register_module_v1(
    env: sys::napi_env,
    exports: sys::napi_value,
) -> sys::napi_value {
    static SYMBOLS: Once = Once::new();
    // SAFETY: runs once, before any other Node-API call of this image; the handle stands for the host program
    // itself, so forgetting it keeps nothing alive that would end.
    SYMBOLS.call_once(|| std::mem::forget(unsafe { sys::setup() }));
    guarded(env, || {
        state::install(env)?;
        cold::export(env, exports)?;
        ask::export(env, exports)?;
        checks::export(env, exports)?;
        values::export(env, exports, c"bind", bound::bind)?;
        Ok(exports)
    })
}
