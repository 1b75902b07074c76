//! Plain functions: what is asked about hosts, requests and attempts, and the tables of names.

use crate::Callback;
use crate::values::{self, Thrown, plain};
use napi_sys as sys;
use nexthop::raw;
use std::ffi::CStr;

/// Adds them to the module.
pub(crate) fn export(env: sys::napi_env, exports: sys::napi_value) -> Result<(), Thrown> {
    const FUNCTIONS: &[(&CStr, Callback)] = &[
        (c"host", host),
        (c"want", want),
        (c"extraHeaders", extra_headers),
        (c"requestInfo", request_info),
        (c"reply", reply),
        (c"lastError", last_error),
        (c"tables", tables),
    ];
    FUNCTIONS.iter().try_for_each(|(name, callback)| values::export(env, exports, name, *callback))
}

plain! {
    /// `(engine, slot, version) -> [version, address, port, hostname, cluster, weight, zone, secure, metadata]`
    host, |env, [engine, slot, version]| {
        let (slot, version) = (values::get_u32(env, slot)?, values::get_u32(env, version)?);
        let (version, info) = raw::host(values::get_u64(env, engine)?, slot, version)?;
        let items = [
            values::number(env, f64::from(version))?,
            values::string(env, &info.address)?,
            values::number(env, f64::from(info.port))?,
            values::string(env, &info.hostname)?,
            values::string(env, &info.cluster)?,
            values::number(env, f64::from(info.weight))?,
            values::string(env, &info.locality.zone)?,
            values::boolean(env, info.secure)?,
            values::string(env, &raw::metadata_json(&info))?,
        ];
        values::array(env, &items)
    }
}

plain! {
    /// `(engine, set) -> [number, ...names]`
    want, |env, [engine, set]| {
        let (number, names) = raw::want(values::get_u64(env, engine)?, values::get_u32(env, set)?)?;
        let mut items = vec![values::number(env, f64::from(number))?];
        for name in names.iter() {
            items.push(values::string(env, name)?);
        }
        values::array(env, &items)
    }
}

/// Two halves of an id.
fn id(env: sys::napi_env, low: sys::napi_value, high: sys::napi_value) -> Result<u64, Thrown> {
    Ok(u64::from(values::get_u32(env, low)?) | u64::from(values::get_u32(env, high)?) << 32)
}

plain! {
    /// `(low, high) -> [name, value | null, ...]` of an attempt or request.
    extra_headers, |env, [low, high]| {
        let mut items = Vec::new();
        for (name, value) in raw::extra_headers(id(env, low, high)?)? {
            items.push(values::string(env, &name)?);
            items.push(match value {
                Some(value) => values::string(env, &value)?,
                None => values::null(env)?,
            });
        }
        values::array(env, &items)
    }
}

plain! {
    /// `(low, high) -> [cluster, route, timeout ms, idle timeout ms]`
    request_info, |env, [low, high]| {
        let info = raw::request_info(id(env, low, high)?)?;
        let items = [
            values::string(env, &info.cluster)?,
            values::string(env, &info.route)?,
            values::milliseconds(env, info.timeout)?,
            values::milliseconds(env, info.idle_timeout)?,
        ];
        values::array(env, &items)
    }
}

plain! {
    /// `(low, high) -> [status, flags, details, body, name, value, ...] | null`
    reply, |env, [low, high]| {
        let Some(reply) = raw::reply(id(env, low, high)?)? else { return values::null(env) };
        let mut items = vec![
            values::number(env, f64::from(reply.status))?,
            values::number(env, f64::from(reply.flags))?,
            values::string(env, &reply.details)?,
            values::string(env, &reply.body)?,
        ];
        for (name, value) in &reply.headers {
            items.push(values::string(env, name)?);
            items.push(values::string(env, value)?);
        }
        values::array(env, &items)
    }
}

plain! {
    /// The sentence of this thread's last failed hot call.
    last_error, |env, []| values::string(env, &raw::last_error())
}

plain! {
    /// Names by number: failures, notes, reasons, refusals, waits, flags, resources; and the target of unknown names.
    tables, |env, []| {
        let resources: Vec<&str> = (0..=u8::MAX).map(raw::resource::name).collect();
        let used = resources.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
        let object = values::object(env)?;
        let all: [(&CStr, &[&str]); 9] = [
            (c"failures", &raw::failure::NAMES),
            (c"notes", &raw::note::NAMES),
            (c"reasons", &raw::reason::NAMES),
            (c"refusals", &raw::refusal::NAMES),
            (c"waits", &raw::wait::NAMES),
            (c"flags", &raw::flags::NAMES),
            (c"resources", &resources[..used]),
            (c"checkResults", &raw::check_results::NAMES),
            (c"checkProtocols", &raw::check_protocol::NAMES),
        ];
        for (name, list) in all {
            let items: Vec<sys::napi_value> =
                list.iter().map(|text| values::string(env, text)).collect::<Result<_, _>>()?;
            values::set(env, object, name, values::array(env, &items)?)?;
        }
        values::set(env, object, c"noSuchTarget", values::number(env, f64::from(raw::NO_SUCH_TARGET))?)?;
        Ok(object)
    }
}
