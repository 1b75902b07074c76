//! What commands are given about a request, read one way for all of them.

use crate::{Engine, HeaderBlock};
use lexopt::{Error, Parser, ValueExt};
use serde_json::Value;

/// Options that may be given once.
#[derive(Default)]
pub(super) struct Once(Vec<String>);

impl Once {
    /// Notes an option.
    ///
    /// # Errors
    /// It was given before.
    pub(super) fn note(&mut self, name: &str) -> Result<(), Error> {
        if self.0.iter().any(|known| known == name) {
            return Err(format!("--{name} is given twice").into());
        }
        self.0.push(name.to_owned());
        Ok(())
    }
}

/// The number of an attempt, from 1.
pub(super) fn attempt(parser: &mut Parser) -> Result<u32, Error> {
    let given = parser.value()?.string()?;
    match given.parse() {
        Ok(0) => Err("--attempt: attempts are counted from 1".into()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("--attempt is a whole number from 1, not {given:?}").into()),
    }
}

/// A header's name in lower case, and its value.
pub(super) fn header(parser: &mut Parser) -> Result<(String, String), Error> {
    let given = parser.value()?.string()?;
    let (name, value) =
        given.split_once(':').ok_or_else(|| format!("--header is written 'name: value', not {given:?}"))?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
}

/// What the caller knows of a request, a JSON object.
pub(super) fn metadata(parser: &mut Parser) -> Result<Value, Error> {
    let given = parser.value()?.string()?;
    match serde_json::from_str(&given) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(format!("--metadata is a JSON object, not {given}").into()),
        Err(error) => Err(format!("--metadata is a JSON object: {error}").into()),
    }
}

/// Addresses, with commas between them.
pub(super) fn tried(parser: &mut Parser) -> Result<String, Error> {
    let given = parser.value()?.string()?;
    let is_address = |text: &str| {
        let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        text.starts_with('/') || port.is_some()
    };
    match given.split(',').map(str::trim).find(|text| !text.is_empty() && !is_address(text)) {
        Some(wrong) => Err(format!("--tried takes addresses as 10.0.0.1:80, not {wrong:?}").into()),
        None => Ok(given),
    }
}

/// The headers that anything reads, as requests bring them.
pub(super) fn block(engine: &Engine, headers: &[(String, String)]) -> HeaderBlock {
    HeaderBlock::of_request(engine, |name, take| {
        headers.iter().filter(|(key, _)| key == name).for_each(|(_, value)| take(value.as_bytes()));
    })
}
