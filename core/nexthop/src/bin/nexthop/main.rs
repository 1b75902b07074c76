//! The `nexthop` program: decisions and documents from a shell.
#![expect(clippy::print_stdout, reason = "a program speaks on stdout")]

mod choose;
mod lint;
mod translate;

use nexthop::{Engine, Error, Text};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage:
  nexthop choose --config FILE... --cluster NAME [--attempt N] [--tried A,B] [--key K] [--json]
  nexthop check FILE...
  nexthop translate FILE...
  nexthop lint [--format human|json|sarif] [--fail-on note|warning|error|never] FILE...

choose  asks once where attempt N (1 unless given) of a request to the cluster goes. Exit code 0: the host is
        printed; 1: refused; 2: a bad document or argument.
check   loads the documents together and prints what was read but does nothing. Exit code 1: they are refused.
translate  prints Istio's objects and instance lists in Envoy's form, as YAML that check reads. Exit code 1: they are refused.
lint    tells what in the documents is legal and probably not meant. Exit code 0: nothing as bad as --fail-on (warning
        unless given); 1: something is; 2: a document is refused.";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("nexthop: {error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, lexopt::Error> {
    use lexopt::{Arg, ValueExt};
    let mut parser = lexopt::Parser::from_env();
    match parser.next()? {
        Some(Arg::Value(command)) => match command.string()?.as_str() {
            "choose" => choose::run(parser),
            "check" => check(parser),
            "translate" => translate::run(parser),
            "lint" => lint::run(parser),
            other => Err(format!("there is no command {other:?}").into()),
        },
        Some(Arg::Long("help") | Arg::Short('h')) => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        Some(Arg::Long("version")) => {
            println!("nexthop {}", env!("CARGO_PKG_VERSION"));
            Ok(ExitCode::SUCCESS)
        }
        Some(other) => Err(other.unexpected()),
        None => Err("a command is missing".into()),
    }
}

fn load(files: &[PathBuf]) -> Result<Engine, Error> {
    files.iter().fold(Engine::builder(), |builder, file| builder.file(file)).build()
}

/// The files that are named, at least one.
fn files(mut parser: lexopt::Parser) -> Result<Vec<PathBuf>, lexopt::Error> {
    let mut files = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            lexopt::Arg::Value(file) => files.push(file.into()),
            other => return Err(other.unexpected()),
        }
    }
    if files.is_empty() {
        return Err("name at least one file".into());
    }
    Ok(files)
}

/// Names and texts of files, or a sentence.
fn texts(files: &[PathBuf]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let read = |file: &PathBuf| {
        let name = file.display().to_string();
        match std::fs::read(file) {
            Ok(text) => Ok((name, text)),
            Err(error) => Err(format!("{name}: {error}")),
        }
    };
    files.iter().map(read).collect()
}

fn check(parser: lexopt::Parser) -> Result<ExitCode, lexopt::Error> {
    let files = files(parser)?;
    match load(&files).and_then(|engine| Ok((engine.text(Text::LoadReport)?, engine.text(Text::Hosts(""))?)))
    {
        Ok((report, hosts)) => {
            print_report(&report, &hosts);
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("{error}");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn print_report(report: &str, hosts: &str) {
    let report: serde_json::Value = serde_json::from_str(report).unwrap_or_default();
    let hosts: serde_json::Value = serde_json::from_str(hosts).unwrap_or_default();
    let entries = report["entries"].as_array().map_or(&[][..], Vec::as_slice);
    for entry in entries {
        println!(
            "{}:{}: {}: {} ({})",
            entry["file"].as_str().unwrap_or(""),
            entry["line"],
            entry["path"].as_str().unwrap_or(""),
            entry["text"].as_str().unwrap_or(""),
            entry["what"].as_str().unwrap_or(""),
        );
    }
    let hosts = hosts.as_array().map_or(0, Vec::len);
    println!("good: {hosts} hosts; {} fields were read but do nothing", entries.len());
}
