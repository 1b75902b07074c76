//! Plain functions: engines, documents, texts, and what is asked about hosts, requests and attempts.

use crate::values::{self, Thrown};
use crate::{Callback, engines, guarded};
use napi_sys as sys;
use nexthop::raw::{self, Document, HostChange, Options};
use serde::Deserialize;
use std::borrow::Cow;
use std::ffi::CStr;
use std::ptr::null_mut;

type Answer = Result<sys::napi_value, Thrown>;

/// Adds all of them to the module.
pub(crate) fn export(env: sys::napi_env, exports: sys::napi_value) -> Result<(), Thrown> {
    const FUNCTIONS: &[(&CStr, Callback)] = &[
        (c"engineNew", engine_new),
        (c"engineClose", engine_close),
        (c"engineInfo", engine_info),
        (c"update", update),
        (c"reload", reload),
        (c"apply", apply),
        (c"resolve", resolve),
        (c"text", text),
        (c"pollEvent", poll_event),
        (c"host", host),
        (c"want", want),
        (c"extraHeaders", extra_headers),
        (c"requestInfo", request_info),
        (c"reply", reply),
        (c"maintain", maintain),
        (c"advance", advance),
        (c"now", now),
        (c"lastError", last_error),
        (c"tables", tables),
    ];
    FUNCTIONS.iter().try_for_each(|(name, callback)| values::export(env, exports, name, *callback))?;
    values::set(env, exports, c"abi", values::number(env, f64::from(raw::ABI))?)
}

/// A callback with so many arguments.
macro_rules! cold {
    ($(#[$doc:meta])* $name:ident, |$env:ident, $arguments:pat_param| $body:expr) => {
        $(#[$doc])*
        unsafe extern "C" fn $name(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
            guarded(env, || -> Answer {
                let $env = env;
                let $arguments = values::arguments($env, info)?;
                $body
            })
        }
    };
}

/// A document as it arrived: kind, dialect, name, text.
struct Owned(u8, String, String, Vec<u8>);

impl Owned {
    fn all(env: sys::napi_env, list: sys::napi_value) -> Result<Vec<Self>, Thrown> {
        let one = |item| {
            let [kind, dialect, name, text] = values::get_array(env, item)?
                .try_into()
                .map_err(|_| Thrown::invalid("expected [kind, dialect, name, text]"))?;
            Ok(Self(
                values::get_u32(env, kind)? as u8,
                values::get_string(env, dialect)?,
                values::get_string(env, name)?,
                values::get_bytes(env, text)?,
            ))
        };
        values::get_array(env, list)?.into_iter().map(one).collect()
    }

    fn document(&self) -> Document<'_> {
        Document { kind: self.0, dialect: &self.1, name: &self.2, text: &self.3 }
    }
}

fn nanoseconds(env: sys::napi_env, value: sys::napi_value) -> Result<u64, Thrown> {
    // Saturates; what is negative or no number has been refused before.
    Ok((values::get_f64(env, value)? * 1e6) as u64)
}

cold! {
    /// `(documents, workers, seed, lease ms, events, clock, draws: BigUint64Array | undefined) -> bigint`
    engine_new, |env, [documents, workers, seed, lease, events, clock, draws]| {
        let owned = Owned::all(env, documents)?;
        let documents: Vec<Document<'_>> = owned.iter().map(Owned::document).collect();
        let draws = if values::is_absent(env, draws)? {
            None
        } else {
            let (pointer, length, width) = values::typed_array(env, draws)?;
            if width != 8 {
                return Err(Thrown::invalid("expected a BigUint64Array"));
            }
            // SAFETY: Node vouches for `length` elements at `pointer` while the value lives, which is this call.
            Some((0..length).map(|at| unsafe { pointer.cast::<u64>().add(at).read() }).collect())
        };
        let options = Options {
            workers: values::get_u32(env, workers)?,
            seed: values::get_u64(env, seed)?,
            lease: nanoseconds(env, lease)?,
            events: u64::from(values::get_u32(env, events)?),
            clock: values::get_u32(env, clock)? as u8,
            draws,
        };
        values::bigint(env, raw::engine_new(&options, &documents)?)
    }
}

cold! {
    /// `(engine)`: closed for every thread.
    engine_close, |env, [engine]| {
        engines::close(values::get_u64(env, engine)?)?;
        Ok(null_mut())
    }
}

cold! {
    /// `(engine) -> [epoch, live requests, seed]`
    engine_info, |env, [engine]| {
        let info = raw::engine_info(values::get_u64(env, engine)?)?;
        let items = [
            values::number(env, info.epoch as f64)?,
            values::number(env, info.live_requests as f64)?,
            values::bigint(env, info.seed)?,
        ];
        values::array(env, &items)
    }
}

cold! {
    /// `(engine, documents) -> epoch`
    update, |env, [engine, documents]| {
        let owned = Owned::all(env, documents)?;
        let documents: Vec<Document<'_>> = owned.iter().map(Owned::document).collect();
        values::number(env, raw::update(values::get_u64(env, engine)?, &documents)? as f64)
    }
}

cold! {
    /// `(engine) -> swapped`
    reload, |env, [engine]| {
        let (swapped, _) = raw::reload(values::get_u64(env, engine)?)?;
        values::boolean(env, swapped)
    }
}

/// A host change as the package writes it.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct Change<'a> {
    op: u8,
    fields: u32,
    #[serde(borrow)]
    address: Cow<'a, str>,
    weight: u32,
    priority: u32,
    health: u8,
    #[serde(borrow)]
    hostname: Cow<'a, str>,
    #[serde(borrow)]
    region: Cow<'a, str>,
    #[serde(borrow)]
    zone: Cow<'a, str>,
    #[serde(borrow)]
    sub_zone: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Cow<'a, str>,
}

cold! {
    /// `(engine, cluster, JSON list of changes) -> epoch`
    apply, |env, [engine, cluster, changes]| {
        let json = values::get_string(env, changes)?;
        let owned: Vec<Change<'_>> =
            serde_json::from_str(&json).map_err(|error| Thrown::new(-1, error.to_string()))?;
        let changes: Vec<HostChange<'_>> = owned
            .iter()
            .map(|change| HostChange {
                op: change.op,
                fields: change.fields,
                address: &change.address,
                weight: change.weight,
                priority: change.priority,
                health: change.health,
                hostname: &change.hostname,
                region: &change.region,
                zone: &change.zone,
                sub_zone: &change.sub_zone,
                metadata: &change.metadata,
            })
            .collect();
        let cluster = values::get_string(env, cluster)?;
        values::number(env, raw::apply(values::get_u64(env, engine)?, &cluster, &changes)? as f64)
    }
}

cold! {
    /// `(engine, name) -> target`, 0 when there is none of that name.
    resolve, |env, [engine, name]| {
        let name = values::get_string(env, name)?;
        match raw::resolve(values::get_u64(env, engine)?, &name) {
            Ok(target) => values::number(env, f64::from(target)),
            Err(error) if error.status() == -7 => values::number(env, 0.0),
            Err(error) => Err(error.into()),
        }
    }
}

cold! {
    /// `(engine, what, argument) -> string`
    text, |env, [engine, what, argument]| {
        let argument = values::get_string(env, argument)?;
        let (engine, what) = (values::get_u64(env, engine)?, values::get_u32(env, what)?);
        values::string(env, &raw::text(engine, what, &argument)?)
    }
}

cold! {
    /// `(engine) -> string | null`
    poll_event, |env, [engine]| {
        match raw::poll_event(values::get_u64(env, engine)?)? {
            Some(event) => values::string(env, &event),
            None => values::null(env),
        }
    }
}

cold! {
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

cold! {
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

cold! {
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

cold! {
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

cold! {
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

cold! {
    /// `(engine) -> [bits, ms until it is due again]`
    maintain, |env, [engine]| {
        let engine = values::get_u64(env, engine)?;
        let bits = raw::maintain(engine, raw::NOW)?;
        let due = raw::poll_deadline(engine, raw::NOW)?;
        let items = [values::number(env, f64::from(bits))?, values::milliseconds(env, due)?];
        values::array(env, &items)
    }
}

cold! {
    /// `(engine, ms)`
    advance, |env, [engine, ms]| {
        raw::advance(values::get_u64(env, engine)?, nanoseconds(env, ms)?)?;
        Ok(null_mut())
    }
}

cold! {
    /// `(engine) -> ms`
    now, |env, [engine]| values::milliseconds(env, raw::now(values::get_u64(env, engine)?))
}

cold! {
    /// The sentence of this thread's last failed hot call.
    last_error, |env, []| values::string(env, &raw::last_error())
}

cold! {
    /// Names by number: failures, reasons, refusals, waits, flags, resources; and the target of unknown names.
    tables, |env, []| {
        let resources: Vec<&str> = (0..=u8::MAX).map(raw::resource::name).collect();
        let used = resources.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
        let object = values::object(env)?;
        let all: [(&CStr, &[&str]); 6] = [
            (c"failures", &raw::failure::NAMES),
            (c"reasons", &raw::reason::NAMES),
            (c"refusals", &raw::refusal::NAMES),
            (c"waits", &raw::wait::NAMES),
            (c"flags", &raw::flags::NAMES),
            (c"resources", &resources[..used]),
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
