//! `nexthop lint`: what deserves a second look.

use super::out;
use super::paint;
use nexthop_config::{Findings, Severity};
use std::path::PathBuf;

#[derive(Clone, Copy)]
enum Format {
    Human,
    Json,
    Sarif,
}

struct Arguments {
    files: Vec<PathBuf>,
    format: Format,
    /// `None` = findings never fail.
    fail_on: Option<Severity>,
}

fn arguments(mut parser: lexopt::Parser) -> Result<Arguments, lexopt::Error> {
    use lexopt::{Arg, ValueExt};
    let mut out = Arguments { files: Vec::new(), format: Format::Human, fail_on: Some(Severity::Warning) };
    let mut once = super::given::Once::default();
    while let Some(argument) = parser.next()? {
        if let Arg::Long(name) = &argument {
            once.note(name)?;
        }
        match argument {
            Arg::Long("format") => {
                out.format = match parser.value()?.string()?.as_str() {
                    "human" => Format::Human,
                    "json" => Format::Json,
                    "sarif" => Format::Sarif,
                    other => return Err(format!("the format is human, json or sarif, not {other:?}").into()),
                };
            }
            Arg::Long("fail-on") => {
                out.fail_on = match parser.value()?.string()?.as_str() {
                    "note" => Some(Severity::Note),
                    "warning" => Some(Severity::Warning),
                    "error" => Some(Severity::Error),
                    "never" => None,
                    other => {
                        return Err(
                            format!("--fail-on is note, warning, error or never, not {other:?}").into()
                        );
                    }
                };
            }
            Arg::Value(file) => out.files.push(file.into()),
            other => return Err(other.unexpected()),
        }
    }
    if out.files.is_empty() {
        return Err("name at least one file".into());
    }
    Ok(out)
}

pub(super) fn run(parser: lexopt::Parser) -> Result<u8, lexopt::Error> {
    let arguments = arguments(parser)?;
    match findings(&arguments.files) {
        Ok(findings) => {
            match arguments.format {
                Format::Human => out::print(&paint::findings(&findings.to_human(), paint::on())),
                Format::Json => out::line(findings.to_json()),
                Format::Sarif => out::line(findings.to_sarif()),
            }
            let bad = arguments.fail_on.is_some_and(|least| findings.worst() >= Some(least));
            Ok(u8::from(bad))
        }
        Err(sentence) => {
            eprintln!("{sentence}");
            Ok(2)
        }
    }
}

fn findings(files: &[PathBuf]) -> Result<Findings, String> {
    let texts = super::texts(files)?;
    let loaded = nexthop_config::load(&super::sources(&texts)).map_err(|error| error.to_string())?;
    Ok(loaded.findings)
}
