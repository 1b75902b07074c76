//! Where the fields of a cluster or a route table stand, for findings that need all documents first.

use crate::front::{Kind, Node, Place};
use crate::read::{At, Seen};
use std::collections::BTreeMap;

/// Fields that hold hosts: many, and no finding is about a single one.
const HOSTS: [&str; 4] = ["loadassignment", "hosts", "endpoints", "lbendpoints"];
const MAX_DEPTH: usize = 12;

/// The places of the fields below one value, by their paths.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    base: Seen,
    fields: BTreeMap<String, Mark>,
}

#[derive(Clone, Debug)]
struct Mark {
    place: Place,
    path: String,
    text: Option<String>,
}

impl Marks {
    pub(crate) fn of(at: &At<'_>) -> Self {
        let mut marks = Self { base: at.seen(), fields: BTreeMap::new() };
        marks.collect(at.node, "", "", 0);
        marks
    }

    fn collect(&mut self, node: &Node<'_>, key: &str, path: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let dot = if key.is_empty() { "" } else { "." };
        match &node.resolve().kind {
            Kind::Map(entries) => {
                for entry in entries {
                    let name = fold(&entry.key);
                    let (key, path) = (format!("{key}{dot}{name}"), format!("{path}{dot}{}", entry.key));
                    let deeper = !HOSTS.contains(&name.as_str());
                    if deeper {
                        self.collect(&entry.value, &key, &path, depth + 1);
                    }
                    let text = entry.value.text().map(str::to_owned);
                    self.fields.insert(key, Mark { place: entry.place, path, text });
                }
            }
            Kind::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    let (key, path) = (format!("{key}[{at}]"), format!("{path}[{at}]"));
                    self.collect(item, &key, &path, depth + 1);
                    let text = item.text().map(str::to_owned);
                    self.fields.insert(key, Mark { place: item.place, path, text });
                }
            }
            Kind::Null | Kind::Scalar(..) | Kind::Shared(_) => {}
        }
    }

    /// What is written in a field; `None` = it is absent or no scalar.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.fields.get(&fold(path))?.text.as_deref()
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.fields.contains_key(&fold(path))
    }

    /// Where the first of these fields that is there stands; else the nearest parent of the first.
    pub(super) fn seen(&self, paths: &[&str]) -> Seen {
        let found = paths.iter().find_map(|path| self.fields.get(&fold(path)));
        let found = found.or_else(|| {
            let mut path = paths.first().copied().unwrap_or_default();
            loop {
                path = &path[..path.rfind(['.', '['])?];
                if let Some(mark) = self.fields.get(&fold(path)) {
                    return Some(mark);
                }
            }
        });
        let Some(mark) = found else { return self.base.clone() };
        let dot = if self.base.path.is_empty() || mark.path.starts_with('[') { "" } else { "." };
        Seen {
            file: self.base.file.clone(),
            place: mark.place,
            path: format!("{}{dot}{}", self.base.path, mark.path),
        }
    }
}

/// Names of both spellings are one.
fn fold(path: &str) -> String {
    path.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}
