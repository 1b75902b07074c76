//! `demo [--langs rust,c,...] [--requests N]`: starts the lab, runs the experiment of each language against it, and
//! prints one table. Exit code 1 when a language decides otherwise than the recorded Envoy.
#![expect(clippy::print_stdout, reason = "a program speaks on stdout")]

mod languages;
mod outcome;
mod table;

use languages::Language;
use nexthop_lab::{Lab, Settings};
use outcome::Run;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncReadExt};

const USAGE: &str = "usage: demo [--langs rust,c,python,node,java,go] [--requests N]";

struct Arguments {
    languages: Vec<&'static Language>,
    requests: u32,
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("demo: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(demo(&arguments))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, lexopt::Error> {
    use lexopt::{Arg, ValueExt};
    let mut out = Arguments { languages: languages::ALL.iter().collect(), requests: 400 };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("langs") => {
                let names = parser.value()?.string()?;
                out.languages = names
                    .split([',', ' '])
                    .filter(|name| !name.is_empty())
                    .map(|name| languages::named(name).ok_or_else(|| format!("unknown language {name:?}")))
                    .collect::<Result<_, _>>()?;
            }
            Arg::Long("requests") => out.requests = parser.value()?.parse()?,
            other => return Err(other.unexpected()),
        }
    }
    // The patterns repeat after four requests; a chain's after three.
    if out.requests == 0 || !out.requests.is_multiple_of(4) {
        return Err("--requests must be a multiple of 4".into());
    }
    Ok(out)
}

/// Whether every language decided as expected.
async fn demo(arguments: &Arguments) -> std::io::Result<bool> {
    let root = root()?;
    let mut runs: Vec<table::Told<'_>> = Vec::new();
    for language in &arguments.languages {
        if let Some(missing) = language.missing(&root) {
            runs.push((language, Err(format!("skipped: {missing}"))));
            continue;
        }
        // Each language meets backends that have seen nothing yet.
        let lab = Lab::start(&Settings::default()).await?;
        let run = experiment(language, &root, arguments.requests).await;
        lab.stop().await;
        runs.push((language, run));
    }
    progress("");
    print!("{}", table::render(&runs));
    let ran = runs.iter().any(|(_, run)| run.is_ok());
    let failed = runs.iter().any(|(_, run)| run.as_ref().is_err_and(|why| !why.starts_with("skipped")));
    Ok(ran && !failed && runs.iter().filter_map(|(_, run)| run.as_ref().ok()).flatten().all(Run::as_envoy))
}

/// The folder that holds `examples/envoy.yaml`: this one, or the one this program was built in.
fn root() -> std::io::Result<PathBuf> {
    let here = std::env::current_dir()?;
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let roots = here.ancestors().chain(built.ancestors());
    let found = roots.map(PathBuf::from).find(|root| root.join("examples/envoy.yaml").is_file());
    found.ok_or_else(|| std::io::Error::other("examples/envoy.yaml is not here; run in the project's folder"))
}

/// Shows one line of progress in place of the last one; a log would only be flooded by it.
fn progress(line: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{line}");
    }
}

/// What a program said, without the lines that it took back for progress.
fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    // Progress ends in no newline of its own.
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    whole.split_inclusive('\n').map(|line| line.rsplit('\r').next().unwrap_or(line)).collect()
}

/// Runs one language and reads its lines; its progress goes through to the terminal.
async fn experiment(language: &Language, root: &std::path::Path, requests: u32) -> Result<Vec<Run>, String> {
    progress(&format!("{}  starting", language.name));
    if let Some(mut first) = language.prepare(root) {
        let status = first.stdin(Stdio::null()).status().await.map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("cannot be built: {status}"));
        }
    }
    let mut child = language
        .command(root)
        .ok_or("its program is gone")?
        .env("CONFIG", root.join("examples/envoy.yaml"))
        .env("REQUESTS", requests.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(if std::io::stderr().is_terminal() { Stdio::inherit() } else { Stdio::piped() })
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot run it: {error}"))?;
    let Some(stdout) = child.stdout.take() else { return Err("no output".into()) };
    let mut stderr = child.stderr.take();
    let mut lines = tokio::io::BufReader::new(stdout).lines();
    let mut runs = Vec::new();
    let limit = std::time::Duration::from_secs(300);
    let reading = async {
        while let Some(line) = lines.next_line().await.map_err(|error| error.to_string())? {
            runs.push(Run::parse(&line)?);
        }
        child.wait().await.map_err(|error| error.to_string())
    };
    let listening = async {
        let mut bytes = Vec::new();
        if let Some(stderr) = &mut stderr {
            let _ = stderr.read_to_end(&mut bytes).await;
        }
        eprint!("{}", said(&bytes));
    };
    let reading = async { tokio::join!(reading, listening).0 };
    let status =
        tokio::time::timeout(limit, reading).await.map_err(|_| "took longer than 300 s".to_owned())??;
    if !status.success() {
        return Err(format!("ended with {status}"));
    }
    let names: Vec<&str> = runs.iter().map(|run| run.experiment.as_str()).collect();
    if names != ["a", "b", "c", "chain"] {
        return Err(format!("told of the experiments {names:?} instead of a, b, c, chain"));
    }
    Ok(runs)
}
