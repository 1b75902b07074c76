//! Where a reader stands: a node, the way that led to it, and what it may complain or note.

use crate::error::{ConfigError, Result};
use crate::front::{Entry, Kind, Node, Place};
use crate::lint::Finding;
use crate::report::{ReportEntry, What};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What readers leave behind besides the specs.
#[derive(Default)]
pub(crate) struct Sink {
    pub(crate) report: Vec<ReportEntry>,
    /// Fields that are used, and defaults, are reported, too.
    pub(crate) detail: bool,
    /// Clusters that routes name, checked when all documents are read.
    pub(crate) references: Vec<Reference>,
    /// Sub-clusters that composites name: those that are missing are legal.
    pub(crate) subs: Vec<Reference>,
    pub(crate) findings: Vec<Finding>,
    /// Settings that act only when some document names a local cluster.
    pub(crate) zones: Vec<Seen>,
}

/// A place in a document that can still complain when the document is gone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) file: String,
    pub(crate) place: Place,
    pub(crate) path: String,
}

/// A mention of a cluster by name.
pub(crate) struct Reference {
    pub(crate) cluster: String,
    pub(crate) seen: Seen,
}

/// One source while it is read.
pub(crate) struct Doc<'a> {
    pub(crate) file: &'a str,
    pub(crate) sink: &'a RefCell<Sink>,
    /// Made from another dialect: what this version lacks is noted where it would be refused.
    pub(crate) made: bool,
}

/// One step of the way.
#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

/// A node and the way to it. The way is a chain on the stack: it costs nothing until somebody complains.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) node: &'a Node<'a>,
    doc: &'a Doc<'a>,
    up: Option<&'a Self>,
    step: Step<'a>,
    /// The mapping is a typed configuration, so `@type` stands among its fields.
    pub(crate) typed: bool,
}

impl<'a> At<'a> {
    pub(crate) fn root(node: &'a Node<'a>, doc: &'a Doc<'a>) -> Self {
        Self { node, doc, up: None, step: Step::Root, typed: false }
    }

    /// The root of a document that was made from another one, with a name for messages.
    pub(crate) fn made(name: &'a str, node: &'a Node<'a>, doc: &'a Doc<'a>) -> Self {
        Self { step: Step::Key(name), ..Self::root(node, doc) }
    }

    /// The value under a key of this mapping.
    pub(crate) fn key(&'a self, key: &'a str, node: &'a Node<'a>) -> Self {
        Self { node, doc: self.doc, up: Some(self), step: Step::Key(key), typed: false }
    }

    /// The same node, read as a typed configuration.
    pub(crate) fn as_typed(self) -> Self {
        Self { typed: true, ..self }
    }

    /// The items of this list.
    pub(crate) fn items(&'a self) -> Result<impl Iterator<Item = Self> + use<'a>> {
        let Some(items) = self.node.items() else { return Err(self.expected("a list")) };
        let at = |(index, node)| Self {
            node,
            doc: self.doc,
            up: Some(self),
            step: Step::Index(index),
            typed: false,
        };
        Ok(items.iter().enumerate().map(at))
    }

    /// The values of a repeated field as Envoy reads it: one that is no list is its only value, lists in lists are one.
    pub(crate) fn repeated(&'a self) -> Vec<Self> {
        fn flat<'a>(node: &'a Node<'a>, out: &mut Vec<&'a Node<'a>>) {
            match node.items() {
                Some(items) => items.iter().for_each(|item| flat(item, out)),
                None => out.push(node),
            }
        }
        let Some(items) = self.node.items() else { return vec![*self] };
        let mut all = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let mut nodes = Vec::new();
            flat(item, &mut nodes);
            let here = nodes.into_iter().map(|node| Self {
                node,
                doc: self.doc,
                up: Some(self),
                step: Step::Index(index),
                typed: false,
            });
            all.extend(here);
        }
        all
    }

    /// The entries of a mapping whose keys are names of the user's; of equal keys the last one.
    pub(crate) fn entries(&'a self) -> Result<Vec<(&'a Entry<'a>, Self)>> {
        let Some(entries) = self.node.entries() else { return Err(self.expected("a mapping")) };
        let last: BTreeMap<&str, usize> = entries.iter().enumerate().map(|(i, e)| (&*e.key, i)).collect();
        let wins = |&(i, e): &(usize, &'a Entry<'a>)| last.get(&*e.key) == Some(&i);
        Ok(entries.iter().enumerate().filter(wins).map(|(_, e)| (e, self.key(&e.key, &e.value))).collect())
    }

    /// A name, or a mapping from one name to its fields; `read` gets the place, the name and the fields. `example` shows
    /// such a mapping.
    pub(crate) fn named_fields<T>(
        &self,
        example: &str,
        read: impl FnOnce(&At<'_>, &str, &At<'_>) -> Result<T>,
    ) -> Result<T> {
        if !self.is_map() {
            let empty = Node { kind: Kind::Null, place: self.node.place };
            return read(self, &self.text()?, &self.key("", &empty));
        }
        match self.entries()?.as_slice() {
            [(entry, fields)] => read(fields, &entry.key, fields),
            _ => Err(self.fail(format!("expected one name, such as `{example}`"))),
        }
    }

    /// The value under a key as written; the last one, `null` included.
    pub(crate) fn raw(&'a self, key: &'a str) -> Option<Self> {
        let entry = self.node.entries()?.iter().rev().find(|entry| entry.key == key)?;
        Some(self.key(key, &entry.value))
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.node.resolve().kind, Kind::List(_))
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.node.resolve().kind, Kind::Map(_))
    }

    /// The way to here, written as people write it.
    pub(crate) fn path(&self) -> String {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(here) = at {
            steps.push(here.step);
            at = here.up;
        }
        let mut path = String::new();
        for step in steps.iter().rev() {
            match step {
                Step::Root => {}
                Step::Index(index) => path.push_str(&format!("[{index}]")),
                Step::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.extend(key.chars().take(80));
                }
            }
        }
        path
    }

    pub(crate) fn seen(&self) -> Seen {
        Seen { file: self.doc.file.into(), place: self.node.place, path: self.path() }
    }

    /// Whether this document was made from another dialect.
    pub(crate) fn is_made(&self) -> bool {
        self.doc.made
    }

    /// What stands here acts only when some document names a local cluster.
    pub(crate) fn needs_local_cluster(&self) {
        self.doc.sink.borrow_mut().zones.push(self.seen());
    }

    pub(crate) fn sink(&self) -> &'a RefCell<Sink> {
        self.doc.sink
    }

    /// Notes what became of this value.
    pub(crate) fn note(&self, what: What, text: impl Into<String>) {
        let entry = ReportEntry {
            file: self.doc.file.into(),
            line: self.node.place.line,
            path: self.path(),
            what,
            text: text.into(),
        };
        self.doc.sink.borrow_mut().report.push(entry);
    }

    /// A complaint about this value.
    pub(crate) fn fail(&self, message: impl Into<String>) -> Box<ConfigError> {
        self.seen().fail(message)
    }

    /// This value is not what may stand here.
    pub(crate) fn expected(&self, allowed: &str) -> Box<ConfigError> {
        let mut error = self.fail(format!("expected {allowed}, found {}", self.node.describe()));
        (error.found, error.allowed) = (self.node.bare(), allowed.into());
        error
    }

    /// This value is legal for Envoy, and this version cannot do it.
    pub(crate) fn unavailable(&self, what: &str) -> Box<ConfigError> {
        let mut error = self.fail(format!("{what} is known, but not available in this version"));
        error.found = self.node.bare();
        error
    }

    /// This value is not among the names that may stand here.
    pub(crate) fn unknown_name<'n>(
        &self,
        kind: &str,
        name: &str,
        known: impl Iterator<Item = &'n str> + Clone,
    ) -> Box<ConfigError> {
        let nearest = super::nearest(name, known.clone());
        let allowed: Vec<&str> = known.collect();
        let shown: String = name.chars().take(60).collect();
        let hint = nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        let mut error = self.fail(format!("unknown {kind} `{shown}`{hint}"));
        (error.found, error.allowed, error.nearest) = (shown, allowed.join(", "), nearest);
        error
    }
}

impl Seen {
    /// An entry of the load report about this place.
    pub(crate) fn entry(&self, what: What, text: impl Into<String>) -> ReportEntry {
        ReportEntry {
            file: self.file.clone(),
            line: self.place.line,
            path: self.path.clone(),
            what,
            text: text.into(),
        }
    }

    pub(crate) fn fail(&self, message: impl Into<String>) -> Box<ConfigError> {
        Box::new(ConfigError {
            file: self.file.clone(),
            line: self.place.line,
            column: self.place.column,
            path: self.path.clone(),
            message: message.into(),
            ..ConfigError::default()
        })
    }
}
