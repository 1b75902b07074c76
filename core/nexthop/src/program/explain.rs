//! `nexthop explain`: what would be decided, and why.

use super::given::{self, Once};
use super::out;
use super::paint;
use crate::{Engine, Error, Misuse, NO_SUCH_TARGET, RequestHead, Text};
use serde_json::{Map, Value};
use std::path::PathBuf;

pub(super) fn run(mut parser: lexopt::Parser) -> Result<u8, lexopt::Error> {
    use lexopt::{Arg, ValueExt};
    let (mut files, mut json, mut once) = (Vec::<PathBuf>::new(), false, Once::default());
    let (mut head, mut headers) = (Map::new(), Map::<String, Value>::new());
    while let Some(argument) = parser.next()? {
        if let Arg::Long(name) = &argument
            && !matches!(*name, "config" | "header" | "json")
        {
            once.note(name)?;
        }
        match argument {
            Arg::Long("config") => files.extend(parser.values()?.map(PathBuf::from)),
            Arg::Long("json") => json = true,
            Arg::Long("attempt") => {
                head.insert("attempt".into(), given::attempt(&mut parser)?.into());
            }
            Arg::Long("header") => {
                let (name, value) = given::header(&mut parser)?;
                let values = headers.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(values) = values {
                    values.push(value.into());
                }
            }
            Arg::Long("metadata") => {
                head.insert("metadata".into(), given::metadata(&mut parser)?);
            }
            Arg::Long("tried") => {
                head.insert("tried".into(), given::tried(&mut parser)?.into());
            }
            Arg::Long(name @ ("cluster" | "route" | "authority" | "path" | "method" | "key")) => {
                let name = name.to_owned();
                head.insert(name, parser.value()?.string()?.into());
            }
            other => return Err(other.unexpected()),
        }
    }
    if files.is_empty() {
        return Err("--config is needed".into());
    }
    if head.contains_key("cluster") && head.contains_key("route") {
        return Err("--cluster and --route are given: name one of them".into());
    }
    head.insert("headers".into(), Value::Object(headers));
    let told = super::load(&files).and_then(|engine| explained(&engine, &Value::Object(head)));
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

/// The explanation. A name that no document has is a refusal, as it is for requests; what may be meant is told beside.
fn explained(engine: &Engine, head: &Value) -> Result<String, Error> {
    match engine.text(Text::Explain(&head.to_string())) {
        Err(Error::Misuse(Misuse::NotFound, sentence)) => {
            eprintln!("{sentence}");
            engine.explain_head(&RequestHead { target: NO_SUCH_TARGET, ..RequestHead::default() })
        }
        told => told,
    }
}
