//! What a crossing costs: an empty call through generated glue, and the smallest engine behind bound functions.

use napi::bindgen_prelude::{Env, Object, Result};
use napi::{JsValue, sys};
use napi_derive::napi;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

#[path = "../../../../benches/src/limit.rs"]
mod limit;

type Callback = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value;

/// Does nothing.
#[napi]
pub fn empty() {}

/// The minimal engine and the word it answers in.
struct Bound {
    engine: limit::Limit,
    word: *mut u32,
}

/// What a bound function was called on.
unsafe fn of<'a>(env: sys::napi_env, info: sys::napi_callback_info) -> &'a Bound {
    let (mut count, mut data) = (0, null_mut());
    unsafe {
        sys::napi_get_cb_info(env, info, &mut count, null_mut(), null_mut(), &mut data);
        &*data.cast()
    }
}

unsafe extern "C" fn pick(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    unsafe {
        let bound = of(env, info);
        *bound.word = bound.engine.pick() as u32;
    }
    null_mut()
}

unsafe extern "C" fn finish(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    unsafe {
        let bound = of(env, info);
        bound.engine.finish(*bound.word as usize);
    }
    null_mut()
}

/// `limit(hosts, words)`: the functions `pick` and `finish` of a minimal engine. Never freed.
unsafe extern "C" fn limit_of(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let (mut count, mut given, mut hosts) = (2, [null_mut(); 2], 0_u32);
    let (mut word, mut object) = (null_mut(), null_mut());
    unsafe {
        sys::napi_get_cb_info(env, info, &mut count, given.as_mut_ptr(), null_mut(), null_mut());
        sys::napi_get_value_uint32(env, given[0], &mut hosts);
        sys::napi_get_typedarray_info(env, given[1], null_mut(), null_mut(), &mut word, null_mut(), null_mut());
        let bound = Bound { engine: limit::Limit::new(hosts as usize), word: word.cast() };
        let bound = Box::into_raw(Box::new(bound)).cast();
        sys::napi_create_object(env, &mut object);
        put(env, object, c"pick", pick, bound);
        put(env, object, c"finish", finish, bound);
    }
    object
}

unsafe fn put(env: sys::napi_env, object: sys::napi_value, name: &CStr, function: Callback, data: *mut c_void) {
    let mut made = null_mut();
    unsafe {
        sys::napi_create_function(env, name.as_ptr(), -1, Some(function), data, &mut made);
        sys::napi_set_named_property(env, object, name.as_ptr(), made);
    }
}

#[napi(module_exports)]
pub fn init(exports: Object, env: Env) -> Result<()> {
    unsafe { put(env.raw(), exports.raw(), c"limit", limit_of, null_mut()) };
    Ok(())
}
