//! Plain functions: engines, documents, texts, time.

use crate::values::{self, Thrown, plain};
use crate::{Callback, engines};
use napi_sys as sys;
use nexthop::raw::{self, Document, HostChange, Options};
use serde::Deserialize;
use std::borrow::Cow;
use std::ffi::CStr;
use std::ptr::null_mut;

/// Adds them to the module.
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
        (c"maintain", maintain),
        (c"advance", advance),
        (c"now", now),
        (c"program", program),
    ];
    FUNCTIONS.iter().try_for_each(|(name, callback)| values::export(env, exports, name, *callback))?;
    values::set(env, exports, c"abi", values::number(env, f64::from(raw::ABI))?)
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
    // Whole nanoseconds: a fraction is the rounding of the milliseconds it was given in.
    Ok((values::get_f64(env, value)? * 1e6).round() as u64)
}

plain! {
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

plain! {
    /// `(engine)`: closed for every thread.
    engine_close, |env, [engine]| {
        engines::close(values::get_u64(env, engine)?)?;
        Ok(null_mut())
    }
}

plain! {
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

plain! {
    /// `(engine, documents) -> epoch`
    update, |env, [engine, documents]| {
        let owned = Owned::all(env, documents)?;
        let documents: Vec<Document<'_>> = owned.iter().map(Owned::document).collect();
        values::number(env, raw::update(values::get_u64(env, engine)?, &documents)? as f64)
    }
}

plain! {
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

plain! {
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

plain! {
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

plain! {
    /// `(arguments) -> number`: the program `nexthop`; its exit code.
    program, |env, [arguments]| {
        let texts = values::get_array(env, arguments)?.into_iter().map(|item| values::get_string(env, item));
        let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
        values::number(env, f64::from(nexthop::program::run(texts.into_iter().map(Into::into))))
    }
}

plain! {
    /// `(engine, what, argument) -> string`
    text, |env, [engine, what, argument]| {
        let argument = values::get_string(env, argument)?;
        let (engine, what) = (values::get_u64(env, engine)?, values::get_u32(env, what)?);
        values::string(env, &raw::text(engine, what, &argument)?)
    }
}

plain! {
    /// `(engine) -> string | null`
    poll_event, |env, [engine]| {
        match raw::poll_event(values::get_u64(env, engine)?)? {
            Some(event) => values::string(env, &event),
            None => values::null(env),
        }
    }
}

plain! {
    /// `(engine) -> [bits, ms until it is due again]`
    maintain, |env, [engine]| {
        let engine = values::get_u64(env, engine)?;
        let bits = raw::maintain(engine, raw::NOW)?;
        let due = raw::poll_deadline(engine, raw::NOW)?;
        let items = [values::number(env, f64::from(bits))?, values::milliseconds(env, due)?];
        values::array(env, &items)
    }
}

plain! {
    /// `(engine, ms)`
    advance, |env, [engine, ms]| {
        raw::advance(values::get_u64(env, engine)?, nanoseconds(env, ms)?)?;
        Ok(null_mut())
    }
}

plain! {
    /// `(engine) -> ms`
    now, |env, [engine]| values::milliseconds(env, raw::now(values::get_u64(env, engine)?))
}
