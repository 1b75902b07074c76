//! How the mechanisms of a block are switched: off, on, or on with settings.

use crate::error::Result;
use crate::read::{At, Fields, Msg};
use std::time::Duration;

/// A mechanism written as a flag, or as a mapping of its settings, which means on.
pub(super) fn flag_or<'a, T: Default>(
    at: &At<'a>,
    fields: &'static Fields,
    settings: impl FnOnce(&Msg<'_>) -> Result<T>,
) -> Result<Option<T>> {
    if at.is_map() {
        return settings(&at.message(fields)?).map(Some);
    }
    let flag = at.bool().map_err(|_| at.expected("true, false, or a mapping of its settings"))?;
    Ok(flag.then(T::default))
}

/// The same with words of its own for on and off.
pub(super) fn word_or<'a, T: Default>(
    at: &At<'a>,
    [off, on]: [&'static str; 2],
    fields: &'static Fields,
    settings: impl FnOnce(&Msg<'_>) -> Result<T>,
) -> Result<Option<T>> {
    if at.is_map() {
        return settings(&at.message(fields)?).map(Some);
    }
    // A plain `off` is a flag in YAML.
    if off == "off" && at.bool().is_ok_and(|flag| !flag) {
        return Ok(None);
    }
    let word =
        at.text().map_err(|_| at.expected(&format!("`{off}`, `{on}`, or a mapping of its settings")))?;
    match word {
        word if word == on => Ok(Some(T::default())),
        word if word == off => Ok(None),
        word => Err(at.unknown_name("word", &word, [off, on].into_iter())),
    }
}

/// The switch that every mechanism has which refuses or avoids something.
pub(super) fn dry_run(msg: &Msg<'_>) -> Result<bool> {
    msg.or("dry_run", false, |flag| flag.bool())
}

/// A duration of at least a millisecond.
pub(super) fn positive(at: &At<'_>) -> Result<Duration> {
    match at.short_millis()? {
        Duration::ZERO => Err(at.expected("a duration of at least 1ms")),
        duration => Ok(duration),
    }
}

/// One item, or a list of them.
pub(super) fn one_or_many<T>(at: &At<'_>, read: impl Fn(&At<'_>) -> Result<T>) -> Result<Vec<T>> {
    if !at.is_list() {
        return read(at).map(|one| vec![one]);
    }
    let list: Vec<T> = at.items()?.map(|item| read(&item)).collect::<Result<_>>()?;
    if list.is_empty() { Err(at.expected("a list that is not empty")) } else { Ok(list) }
}
