//! `nexthop effective`: every number in force, and where it comes from.

use super::out;
use crate::{Error, Text};
use serde_json::Value;

pub(super) fn run(mut parser: lexopt::Parser) -> Result<u8, lexopt::Error> {
    use lexopt::{Arg, ValueExt};
    let (mut name, mut files, mut json) = (None, Vec::new(), false);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("json") => json = true,
            Arg::Value(value) if name.is_none() => name = Some(value.string()?),
            Arg::Value(file) => files.push(file.into()),
            other => return Err(other.unexpected()),
        }
    }
    let (Some(name), false) = (name, files.is_empty()) else {
        return Err("name a cluster or route, and at least one file".into());
    };
    let engine = match super::load(&files) {
        Ok(engine) => engine,
        Err(error) => {
            eprintln!("{error}");
            return Ok(2);
        }
    };
    match engine.text(Text::Effective(&name)) {
        Ok(text) if json => out::line(text),
        Ok(text) => out::print(&table(&serde_json::from_str(&text).unwrap_or_default())),
        Err(Error::Misuse(_, sentence)) => {
            eprintln!("{sentence}");
            return Ok(1);
        }
        Err(error) => {
            eprintln!("{error}");
            return Ok(2);
        }
    }
    Ok(0)
}

fn table(told: &Value) -> String {
    let rows = told["values"].as_array().map_or(&[][..], Vec::as_slice);
    let field = |row: &Value| row["field"].as_str().unwrap_or("").to_owned();
    let value = |row: &Value| match &row["value"] {
        Value::String(text) => text.clone(),
        Value::Null => "none".into(),
        other => other.to_string(),
    };
    let width = rows.iter().map(|row| field(row).len()).max().unwrap_or(0);
    let wide = rows.iter().map(|row| value(row).len()).max().unwrap_or(0).min(24);
    let from = |row: &Value| match row["from"].as_str().unwrap_or("") {
        "default" => format!("{}'s default", row["whose"].as_str().unwrap_or("")),
        "runtime" => format!("runtime {}", row["path"].as_str().unwrap_or("")),
        kind => {
            let made = if kind == "translation" { " (translated)" } else { "" };
            let text = |name: &str| row[name].as_str().unwrap_or("").to_owned();
            format!("{}:{} {}{made}", text("file"), row["line"], text("path"))
        }
    };
    rows.iter().map(|row| format!("{:width$}  {:wide$}  {}\n", field(row), value(row), from(row))).collect()
}
