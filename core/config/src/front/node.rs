//! The value tree.

use std::borrow::Cow;
use std::rc::Rc;

/// Line and column, both 1-based; the column counts characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Place {
    pub(crate) fn new(line: usize, column: usize) -> Self {
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { line: narrow(line), column: narrow(column) }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node<'s> {
    pub(crate) kind: Kind<'s>,
    pub(crate) place: Place,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind<'s> {
    Null,
    Scalar(Cow<'s, str>, Style),
    List(Vec<Node<'s>>),
    Map(Vec<Entry<'s>>),
    /// An anchored value, shared with its aliases.
    Shared(Rc<Node<'s>>),
}

/// One entry of a mapping; keys may repeat, then the last one counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry<'s> {
    pub(crate) key: Cow<'s, str>,
    pub(crate) place: Place,
    pub(crate) value: Node<'s>,
}

/// How a scalar was written, on which its type depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Plain YAML: boolean words, then integers (octal and hex too), else text.
    Plain,
    /// Text.
    Quoted,
    /// `true`, `false` or a number of JSON.
    Json,
}

impl<'s> Node<'s> {
    /// The value behind any sharing.
    pub(crate) fn resolve(&self) -> &Self {
        let mut node = self;
        while let Kind::Shared(inner) = &node.kind {
            node = inner;
        }
        node
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.resolve().kind, Kind::Null)
    }

    /// The entries of a mapping.
    pub(crate) fn entries(&self) -> Option<&[Entry<'s>]> {
        match &self.resolve().kind {
            Kind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Option<&[Self]> {
        match &self.resolve().kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    /// What was written, of a scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.resolve().kind {
            Kind::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    /// What this is, for messages.
    pub(crate) fn describe(&self) -> String {
        match &self.resolve().kind {
            Kind::Scalar(text, style) if *style != Style::Quoted => format!("`{}`", shorten(text)),
            _ => self.bare(),
        }
    }

    /// The same without marks around an unquoted text: what an error shows as found.
    pub(crate) fn bare(&self) -> String {
        match &self.resolve().kind {
            Kind::Null => "null".into(),
            Kind::Scalar(text, Style::Quoted) => format!("{:?}", shorten(text)),
            Kind::Scalar(text, _) => shorten(text).into_owned(),
            Kind::List(items) if items.is_empty() => "an empty list".into(),
            Kind::List(_) => "a list".into(),
            Kind::Map(entries) if entries.is_empty() => "an empty mapping".into(),
            Kind::Map(_) => "a mapping".into(),
            Kind::Shared(_) => unreachable!("resolve() never ends at a shared node"),
        }
    }
}

/// At most 60 characters of a text, so that a message stays one line.
fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(60) {
        Some((at, _)) => Cow::Owned(format!("{}...", &text[..at])),
        None => Cow::Borrowed(text),
    }
}
