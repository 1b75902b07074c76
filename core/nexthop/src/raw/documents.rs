//! Documents an engine was made from, read again when asked.

use super::error::Error;
use super::types::{Document, document_kind};
use nexthop_config::{Dialect, Loaded, Source};
use nexthop_engine::Misuse;
use nexthop_engine::spec::Value;
use std::time::SystemTime;

/// What is remembered of the documents in force.
#[derive(Default)]
pub(super) struct Documents {
    list: Vec<Kept>,
    /// Runtime values given apart from documents; they win over the documents' own.
    pub(super) overlay: Vec<(String, Value)>,
    /// Runtime values of the documents.
    pub(super) runtime: Vec<(String, Value)>,
}

struct Kept {
    path: Option<String>,
    dialect: Dialect,
    name: String,
    text: Vec<u8>,
    stamp: Option<(u64, SystemTime)>,
}

impl Documents {
    /// Reads a whole new set; what was kept stays when anything is wrong.
    pub(super) fn read(&mut self, documents: &[Document<'_>]) -> Result<Loaded, Error> {
        if documents.iter().all(|document| document.kind == document_kind::RUNTIME) {
            let sentence =
                "no documents were given; the document `clusters: []` stands for an engine without clusters";
            return Err(Error::misuse(Misuse::Invalid, sentence));
        }
        let mut list = Vec::new();
        let mut overlay = None;
        for (at, document) in documents.iter().enumerate() {
            let dialect = dialect(document.dialect)?;
            match document.kind {
                document_kind::TEXT => list.push(Kept {
                    path: None,
                    dialect,
                    name: name_or(document.name, || format!("<text {}>", at + 1)),
                    text: document.text.to_vec(),
                    stamp: None,
                }),
                document_kind::PATH => {
                    let path = std::str::from_utf8(document.text)
                        .map_err(|_| Error::misuse(Misuse::Invalid, "the path of a document is not UTF-8"))?;
                    if path.is_empty() {
                        let reason = format!("the path of document {} is empty; name a file", at + 1);
                        return Err(Error::Io { file: String::new(), reason });
                    }
                    let (text, stamp) = read_file(path)?;
                    list.push(Kept {
                        path: Some(path.to_owned()),
                        dialect,
                        name: name_or(document.name, || path.to_owned()),
                        text,
                        stamp,
                    });
                }
                document_kind::RUNTIME => overlay = Some(runtime(document)?),
                kind => {
                    let sentence = format!("unknown document kind {kind}; use 0 text, 1 path or 2 runtime");
                    return Err(Error::misuse(Misuse::Invalid, sentence));
                }
            }
        }
        let loaded = load(&list)?;
        self.list = list;
        self.runtime = loaded.specs.runtime.clone();
        if let Some(overlay) = overlay {
            self.overlay = overlay;
        }
        Ok(self.with_overlay(loaded))
    }

    /// Replaces the runtime overlay alone. Returns all runtime values in force.
    pub(super) fn set_runtime(&mut self, document: &Document<'_>) -> Result<Vec<(String, Value)>, Error> {
        self.overlay = runtime(document)?;
        Ok(self.runtime.iter().chain(&self.overlay).cloned().collect())
    }

    /// Reads what is in force again, with a report of every field.
    pub(super) fn in_detail(&self) -> Result<Loaded, Error> {
        let loaded = nexthop_config::load_in_detail(&sources(&self.list));
        loaded.map_err(|error| Error::Config(Box::new(error)))
    }

    fn with_overlay(&self, mut loaded: Loaded) -> Loaded {
        loaded.specs.runtime.extend(self.overlay.iter().cloned());
        loaded
    }

    /// Re-reads the files that changed. `None` = none did. Files that cannot be read or understood are an error,
    /// and nothing is kept of them but their stamp.
    pub(super) fn reload(&mut self) -> Result<Option<Loaded>, Error> {
        let mut fresh: Vec<(usize, Vec<u8>)> = Vec::new();
        for (at, kept) in self.list.iter_mut().enumerate() {
            let Some(path) = &kept.path else { continue };
            let now = stamp(path);
            if now.is_some() && now == kept.stamp {
                continue;
            }
            kept.stamp = now;
            let (text, _) = read_file(path)?;
            if text != kept.text {
                fresh.push((at, text));
            }
        }
        if fresh.is_empty() {
            return Ok(None);
        }
        let mut olds = Vec::new();
        for (at, text) in fresh {
            olds.push((at, std::mem::replace(&mut self.list[at].text, text)));
        }
        match load(&self.list) {
            Ok(loaded) => {
                self.runtime = loaded.specs.runtime.clone();
                Ok(Some(self.with_overlay(loaded)))
            }
            Err(error) => {
                for (at, text) in olds {
                    self.list[at].text = text;
                }
                Err(error)
            }
        }
    }
}

fn sources(list: &[Kept]) -> Vec<Source<'_>> {
    list.iter().map(|kept| Source { name: &kept.name, text: &kept.text, dialect: kept.dialect }).collect()
}

fn load(list: &[Kept]) -> Result<Loaded, Error> {
    nexthop_config::load(&sources(list)).map_err(|error| Error::Config(Box::new(error)))
}

fn name_or(name: &str, other: impl FnOnce() -> String) -> String {
    if name.is_empty() { other() } else { name.to_owned() }
}

/// The dialect of that name; empty = told by keys.
pub(super) fn dialect(name: &str) -> Result<Dialect, Error> {
    if name.is_empty() {
        return Ok(Dialect::Auto);
    }
    Dialect::from_name(name).ok_or_else(|| {
        let known = Dialect::names().collect::<Vec<_>>().join(", ");
        Error::misuse(Misuse::Invalid, format!("unknown dialect {name:?}; there are {known}"))
    })
}

fn stamp(path: &str) -> Option<(u64, SystemTime)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.len(), meta.modified().ok()?))
}

type Stamped = (Vec<u8>, Option<(u64, SystemTime)>);

fn read_file(path: &str) -> Result<Stamped, Error> {
    let io = |reason: String| Error::Io { file: path.to_owned(), reason };
    let meta = std::fs::metadata(path).map_err(|error| io(error.to_string()))?;
    if meta.is_dir() {
        return Err(io("is a directory; name a file".into()));
    }
    let stamp = stamp(path);
    let text = std::fs::read(path).map_err(|error| io(error.to_string()))?;
    Ok((text, stamp))
}

/// `{"a.b": 1, "a": {"c": true}}`, flattened.
fn runtime(document: &Document<'_>) -> Result<Vec<(String, Value)>, Error> {
    let name = name_or(document.name, || "<runtime>".into());
    let values = nexthop_config::parse_runtime_json(&name, document.text).map_err(Error::Config)?;
    let mut flat = Vec::new();
    for (key, value) in values {
        flatten(key, value, &mut flat);
    }
    Ok(flat)
}

fn flatten(key: String, value: Value, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Struct(fields) => {
            for (leaf, value) in fields {
                flatten(format!("{key}.{leaf}"), value, out);
            }
        }
        value => out.push((key, value)),
    }
}
