//! Active checks: handed out as lists, reported by number.

use crate::values::{self, Thrown, plain};
use crate::{Callback, state};
use napi_sys as sys;
use nexthop::raw::{self, NOW, Outcome};
use std::ffi::CStr;

/// Adds them to the module.
pub(crate) fn export(env: sys::napi_env, exports: sys::napi_value) -> Result<(), Thrown> {
    const FUNCTIONS: &[(&CStr, Callback)] =
        &[(c"pollCheck", poll_check), (c"checksDeadline", checks_deadline), (c"checkResult", check_result)];
    FUNCTIONS.iter().try_for_each(|(name, callback)| values::export(env, exports, name, *callback))
}

plain! {
    /// `(engine) -> [id, protocol, bits, want, timeout ms, slot, version, body limit, cluster, name, extension, address,
    /// method, path, authority, payload, name, value, ...] | null`
    poll_check, |env, [engine]| {
        // SAFETY: this environment's block, used by its one thread; nothing calls back while it is borrowed.
        let local = unsafe { &mut *(*state::of(env)?).local.get() };
        let Some(check) = raw::poll_check(local, values::get_u64(env, engine)?, NOW)? else { return values::null(env) };
        let limit = if check.body_limit == u64::MAX { f64::INFINITY } else { check.body_limit as f64 };
        let mut items = vec![
            values::number(env, check.id as f64)?,
            values::number(env, f64::from(raw::protocol_of(&check)))?,
            values::number(env, f64::from(raw::bits_of(&check)))?,
            values::number(env, f64::from(check.want))?,
            values::milliseconds(env, check.timeout)?,
            values::number(env, f64::from(check.host))?,
            values::number(env, f64::from(check.host_version))?,
            values::number(env, limit)?,
        ];
        for text in [
            &*check.cluster, &*check.spec.name, raw::extension_of(&check), &*check.address, check.method(), check.path(),
            &*check.authority,
        ] {
            items.push(values::string(env, text)?);
        }
        items.push(values::buffer(env, &check.payload)?);
        for (name, value) in check.headers() {
            items.push(values::string(env, name)?);
            items.push(values::string(env, value)?);
        }
        values::array(env, &items)
    }
}

plain! {
    /// `(engine) -> ms`
    checks_deadline, |env, [engine]| {
        values::milliseconds(env, raw::checks_deadline(values::get_u64(env, engine)?, NOW)?)
    }
}

plain! {
    /// `(engine, id, result, status, failure, grpc status, header block, body) -> decided`
    check_result, |env, [engine, id, result, status, failure, grpc, headers, body]| {
        let (headers, body) = (values::get_bytes(env, headers)?, values::get_bytes(env, body)?);
        let outcome = Outcome {
            status: values::get_u32(env, status)? as u16,
            failure: values::get_u32(env, failure)? as u8,
            grpc_status: values::get_f64(env, grpc)? as i8,
            headers: &headers,
            ..Outcome::default()
        };
        let (engine, id) = (values::get_u64(env, engine)?, values::get_f64(env, id)? as u64);
        // SAFETY: as above.
        let local = unsafe { &mut *(*state::of(env)?).local.get() };
        let decided = raw::check_result(local, engine, id, values::get_u32(env, result)?, &outcome, &body, NOW)?;
        values::boolean(env, decided)
    }
}
