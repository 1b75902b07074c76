//! The `nexthop` program: decisions and documents from a shell. The binary, the wheel's console script and the npm
//! package's bin all call [`run`].

mod check;
mod choose;
mod effective;
mod explain;
mod given;
mod help;
mod lint;
mod out;
mod paint;
mod translate;

use crate::{Engine, Error};
use nexthop_config::Source;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the program with these arguments, its own name not among them. Returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    match command(lexopt::Parser::from_args(arguments)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("nexthop: {error}\n\n{}", help::SHORT);
            2
        }
    }
}

/// The same as an exit code of the process.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os().skip(1)))
}

/// What a command does with its arguments.
type Command = fn(lexopt::Parser) -> Result<u8, lexopt::Error>;

/// Each with its help.
const COMMANDS: [(&str, Command, &str); 6] = [
    ("choose", choose::run, help::CHOOSE),
    ("explain", explain::run, help::EXPLAIN),
    ("effective", effective::run, help::EFFECTIVE),
    ("check", check::run, help::CHECK),
    ("lint", lint::run, help::LINT),
    ("translate", translate::run, help::TRANSLATE),
];

fn command(mut parser: lexopt::Parser) -> Result<u8, lexopt::Error> {
    use lexopt::{Arg, ValueExt};
    match parser.next()? {
        Some(Arg::Value(name)) => {
            let name = name.string()?;
            if name == "help" {
                let about = parser.next()?;
                let Some(about) = about else { return Ok(told(help::LONG)) };
                let Arg::Value(about) = about else { return Err(about.unexpected()) };
                let about = about.string()?;
                let found = COMMANDS.iter().find(|(known, ..)| *known == about);
                return match found {
                    Some((.., help)) => Ok(told(help)),
                    None => Err(format!("there is no command {about:?}").into()),
                };
            }
            let found = COMMANDS.iter().find(|(known, ..)| *known == name);
            let Some((_, run, help)) = found else {
                return Err(format!("there is no command {name:?}").into());
            };
            // A question for help is answered before anything else is asked for.
            let rest: Vec<OsString> = parser.raw_args()?.collect();
            if rest.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--help" || arg == "-h") {
                return Ok(told(help));
            }
            run(lexopt::Parser::from_args(rest))
        }
        Some(Arg::Long("help") | Arg::Short('h')) => Ok(told(help::LONG)),
        Some(Arg::Long("version") | Arg::Short('V')) => {
            Ok(told(concat!("nexthop ", env!("CARGO_PKG_VERSION"))))
        }
        Some(other) => Err(other.unexpected()),
        None => Err("a command is missing".into()),
    }
}

fn told(text: &str) -> u8 {
    out::line(text);
    0
}

fn load(files: &[PathBuf]) -> Result<Engine, Error> {
    let mut builder = Engine::builder();
    for file in files {
        builder = match file.to_str() {
            Some("-") => builder.named(STDIN, &standard_input()?),
            _ => builder.file(file),
        };
    }
    builder.build()
}

/// What `-` is called in messages.
const STDIN: &str = "stdin";

/// All of standard input.
fn standard_input() -> Result<String, Error> {
    let io = |error: std::io::Error| Error::Io { file: STDIN.into(), reason: error.to_string() };
    std::io::read_to_string(std::io::stdin()).map_err(io)
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
        if file.to_str() == Some("-") {
            let text = standard_input().map_err(|error| error.to_string())?;
            return Ok((STDIN.to_owned(), text.into_bytes()));
        }
        let name = file.display().to_string();
        match std::fs::read(file) {
            Ok(text) => Ok((name, text)),
            Err(error) => Err(format!("{name}: {error}")),
        }
    };
    files.iter().map(read).collect()
}

/// What the reader of documents takes.
fn sources(texts: &[(String, Vec<u8>)]) -> Vec<Source<'_>> {
    texts.iter().map(|(name, text)| Source { name, text, dialect: nexthop_config::Dialect::Auto }).collect()
}
