//! `nexthop explain`: what would be decided, and why.

use super::out;
use super::paint;
use crate::Text;
use serde_json::{Map, Value};
use std::path::PathBuf;

pub(super) fn run(mut parser: lexopt::Parser) -> Result<u8, lexopt::Error> {
    use lexopt::{Arg, ValueExt};
    let (mut files, mut json) = (Vec::<PathBuf>::new(), false);
    let (mut head, mut headers) = (Map::new(), Map::<String, Value>::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("config") => files.extend(parser.values()?.map(PathBuf::from)),
            Arg::Long("json") => json = true,
            Arg::Long("attempt") => {
                let number: u32 = parser.value()?.parse()?;
                if number == 0 {
                    return Err("attempts are counted from 1".into());
                }
                head.insert("attempt".into(), number.into());
            }
            Arg::Long("header") => {
                let given = parser.value()?.string()?;
                let (name, value) = given.split_once(':').ok_or("a header is written 'name: value'")?;
                let values = headers
                    .entry(name.trim().to_ascii_lowercase())
                    .or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(values) = values {
                    values.push(value.trim().into());
                }
            }
            Arg::Long("metadata") => {
                let given = parser.value()?.string()?;
                let value =
                    serde_json::from_str(&given).map_err(|error| format!("--metadata is JSON: {error}"))?;
                head.insert("metadata".into(), value);
            }
            Arg::Long(name @ ("cluster" | "route" | "authority" | "path" | "method" | "tried" | "key")) => {
                let name = name.to_owned();
                head.insert(name, parser.value()?.string()?.into());
            }
            other => return Err(other.unexpected()),
        }
    }
    if files.is_empty() {
        return Err("--config is needed".into());
    }
    head.insert("headers".into(), Value::Object(headers));
    let told =
        super::load(&files).and_then(|engine| engine.text(Text::Explain(&Value::Object(head).to_string())));
    match told {
        Ok(text) => {
            let why: Value = serde_json::from_str(&text).unwrap_or_default();
            match json {
                true => out::line(text),
                false => out::print(&paint::explanation(why["text"].as_str().unwrap_or(""), paint::on())),
            }
            Ok(u8::from(!why["refusal"].is_null()))
        }
        Err(error) => {
            eprintln!("{error}");
            Ok(2)
        }
    }
}
