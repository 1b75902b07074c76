//! What tests share: vector files for white-box tests, and dice.
//!
//! A test reads `tests/vectors`, or the folder that `NEXTHOP_VECTORS` names when the file is there too: so the
//! conformance driver plays any folder of vectors through the same tests. `NEXTHOP_VECTORS_READ` names a file to
//! which every reading is added (`test<TAB>path`), the proof that a test has seen what is counted as passed.
#![expect(clippy::panic, reason = "a test that cannot read its facts fails")]

mod dice;

pub use dice::Dice;

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors")
}

/// The path of a file or folder below the vectors, and whether it is the project's own.
fn place(name: &str) -> (PathBuf, bool) {
    let other = std::env::var_os("NEXTHOP_VECTORS").map(|folder| Path::new(&folder).join(name));
    match other.filter(|path| path.exists()) {
        Some(path) => (path, false),
        None => (home().join(name), true),
    }
}

fn text(path: &Path) -> String {
    if let Some(log) = std::env::var_os("NEXTHOP_VECTORS_READ") {
        let thread = std::thread::current();
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let line = format!("{}\t{}\n", thread.name().unwrap_or("?"), path.display());
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("NEXTHOP_VECTORS_READ: {error}"));
    }
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cases of a file (`folder/name.json`).
#[derive(Debug)]
pub struct Cases {
    /// In the file's order.
    pub list: Vec<Value>,
    /// Whether they are the project's own, whose number and names are known.
    pub ours: bool,
}

/// Reads a file of cases: a list, or an object with `cases`.
///
/// # Panics
/// When the file cannot be read, or is the project's own and has not `count` cases.
#[must_use]
pub fn read(file: &str, count: usize) -> Cases {
    let cases = open(file);
    assert!(
        !cases.ours || cases.list.len() == count,
        "{file}: {} cases, new ones need a look",
        cases.list.len()
    );
    cases
}

/// Name and case of those with an `id` that `wanted` takes.
///
/// # Panics
/// As [`read`]; `count` are those that are taken.
#[must_use]
pub fn chosen(file: &str, count: usize, wanted: impl Fn(&str) -> bool) -> Vec<(String, Value)> {
    let cases = open(file);
    let named = cases.list.into_iter().map(|case| (case["id"].as_str().unwrap_or_default().to_owned(), case));
    let list: Vec<_> = named.filter(|(id, _)| wanted(id)).collect();
    assert!(!cases.ours || list.len() == count, "{file}: {} cases, new ones need a look", list.len());
    list
}

fn open(file: &str) -> Cases {
    let (path, ours) = place(file);
    let mut value: Value =
        serde_json::from_str(&text(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let list = match value.get_mut("cases") {
        Some(cases) => cases.take(),
        None => value,
    };
    let Value::Array(list) = list else { panic!("{}: no list of cases", path.display()) };
    Cases { list, ours }
}

/// The cases of [`read`] alone.
#[must_use]
pub fn cases(file: &str, count: usize) -> Vec<Value> {
    read(file, count).list
}

/// One file below a folder.
#[derive(Debug)]
pub struct Document {
    /// Name without its folder.
    pub name: String,
    /// What it says.
    pub text: String,
    path: PathBuf,
}

impl Document {
    /// The text of the file beside it with another ending.
    #[must_use]
    pub fn beside(&self, ending: &str) -> String {
        text(&self.path.with_extension(ending))
    }
}

/// Every file of a folder with an ending for which `wanted` holds, in order of their names.
///
/// # Panics
/// When one cannot be read, or they are the project's own and not `count`.
#[must_use]
pub fn documents(
    folder: &str,
    ending: &str,
    count: usize,
    wanted: impl Fn(&Document) -> bool,
) -> Vec<Document> {
    let (folder, ours) = place(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == ending));
    paths.sort();
    let mut list: Vec<Document> = paths
        .into_iter()
        .map(|path| Document {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            text: text(&path),
            path,
        })
        .collect();
    list.retain(wanted);
    assert!(!ours || list.len() == count, "{}: {} files, new ones need a look", folder.display(), list.len());
    list
}
