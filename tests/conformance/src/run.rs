//! Runs the languages' runners and the white-box tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A runner that is silent for so long is ended.
const PATIENCE: Duration = Duration::from_secs(300);

/// Languages in their order; the first one's traces are what the others are compared with.
pub const LANGUAGES: [&str; 6] = ["rust", "c", "python", "node", "java", "go"];

/// The command of a language's runner, or what is missing.
pub fn command(root: &Path, language: &str) -> Result<Command, String> {
    let here = root.join("tests/conformance/runners");
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = exe.parent().ok_or("no target folder")?.to_owned();
    if language == "rust" {
        return Ok(Command::new(target.join("nexthop-conformance-runner")));
    }
    let script = here.join(language).join("run.sh");
    if !script.is_file() {
        return Err(format!("{} is missing", script.display()));
    }
    let mut command = Command::new("bash");
    command.arg(script).env("NEXTHOP_ROOT", root).env("NEXTHOP_TARGET", target);
    Ok(command)
}

/// Plays scripts one after the other and gives back the trace lines of each. A runner that dies in a case is
/// started again behind it.
pub fn play(
    root: &Path,
    language: &str,
    scripts: &[(String, String)],
) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut traces = BTreeMap::new();
    let mut rest = scripts;
    while !rest.is_empty() {
        let text: String = rest.iter().map(|(_, script)| script.as_str()).collect();
        let (output, fate) = once(command(root, language)?, text)?;
        let seen = crate::trace::cases(&output);
        let reached = rest.iter().take_while(|(name, _)| seen.contains_key(name)).count();
        traces.extend(seen);
        if let Some(fate) = fate {
            if reached == 0 {
                return Err(fate);
            }
            let (name, _) = &rest[reached - 1];
            traces.insert(name.clone(), vec![crate::script::line(["died", &fate])]);
        } else if reached < rest.len() {
            return Err(format!("the {language} runner left out {}", rest[reached].0));
        }
        rest = &rest[reached..];
    }
    Ok(traces)
}

/// One run of a runner: its output, and how it died if it did.
fn once(mut command: Command, script: String) -> Result<(String, Option<String>), String> {
    let error_file = temporary("error");
    let errors = File::create(&error_file).map_err(|error| error.to_string())?;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("no pipes".to_owned());
    };
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = output.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let start = Instant::now();
    let fate = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => break None,
            Some(status) => break Some(status.to_string()),
            None if start.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                break Some(format!("ended after {} s", PATIENCE.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let _ = writer.join();
    let output = reader.join().map_err(|_| "the reader died")?;
    let errors = std::fs::read_to_string(&error_file).unwrap_or_default();
    let _ = std::fs::remove_file(&error_file);
    if std::env::var_os("NEXTHOP_CONFORMANCE_ERRORS").is_some() {
        eprint!("{errors}");
    }
    let tail: Vec<&str> = errors.lines().rev().take(6).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    Ok((output, fate.map(|fate| format!("{fate}: {}", tail.join(" | ")))))
}

fn temporary(what: &str) -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    std::env::temp_dir().join(format!("nexthop-conformance-{}-{number}-{what}", std::process::id()))
}

/// What a package's tests said.
#[derive(Debug, Default)]
pub struct WhiteBox {
    results: BTreeMap<String, bool>,
    read: BTreeSet<(String, PathBuf)>,
}

impl WhiteBox {
    /// Nothing when a test passed and has read a vector file, else why it does not count.
    pub fn fault(&self, package: &str, test: &str, file: &Path) -> Option<String> {
        match self.results.get(test) {
            None => return Some(format!("{package} has no test {test}")),
            Some(false) => return Some(format!("test {test} of {package} failed")),
            Some(true) => {}
        }
        let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let read = self.read.contains(&(test.to_owned(), file));
        (!read).then(|| format!("test {test} of {package} has not read this file"))
    }
}

/// Runs a package's tests over a folder of vectors.
pub fn tests(root: &Path, package: &str, vectors: &Path) -> Result<WhiteBox, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let log = std::env::temp_dir().join(format!("nexthop-vectors-{}", std::process::id()));
    let _ = std::fs::remove_file(&log);
    // A test's thread has its name when more than one runs at a time.
    let output = Command::new(cargo)
        .current_dir(root)
        .args(["test", "--offline", "--no-fail-fast", "-p", package, "--lib", "--tests"])
        .args(["--", "--test-threads=2"])
        .env("NEXTHOP_VECTORS", vectors)
        .env("NEXTHOP_VECTORS_READ", &log)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let read = std::fs::read_to_string(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    let read = read.lines().filter_map(|line| line.split_once('\t'));
    let read = read.map(|(test, path)| (test.to_owned(), PathBuf::from(path))).collect();
    let results: BTreeMap<String, bool> = text
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "))
        .map(|(name, result)| (name.to_owned(), result.trim() == "ok"))
        .collect();
    if results.is_empty() {
        let errors = String::from_utf8_lossy(&output.stderr);
        if std::env::var_os("NEXTHOP_CONFORMANCE_ERRORS").is_some() {
            eprint!("{errors}");
        }
        let tail: Vec<&str> = errors.lines().rev().take(5).collect();
        return Err(format!("no test of {package} ran: {}", tail.join(" | ")));
    }
    Ok(WhiteBox { results, read })
}
