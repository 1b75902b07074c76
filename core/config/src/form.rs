//! Envoy's form under construction: value trees whose parts keep the places they come from.

use crate::front::{Entry, Kind, Node, Place, Style};
use std::borrow::Cow;
use std::time::Duration;

/// A mapping under construction.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    place: Place,
    entries: Vec<Entry<'static>>,
}

impl Form {
    pub(crate) fn new(place: Place) -> Self {
        Self { place, entries: Vec::new() }
    }

    /// Adds an entry.
    pub(crate) fn with(mut self, key: impl Into<Cow<'static, str>>, value: Node<'static>) -> Self {
        self.put(key, value);
        self
    }

    pub(crate) fn put(&mut self, key: impl Into<Cow<'static, str>>, value: Node<'static>) {
        self.entries.push(Entry { key: key.into(), place: value.place, value });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn node(self) -> Node<'static> {
        Node { kind: Kind::Map(self.entries), place: self.place }
    }
}

pub(crate) fn text(place: Place, text: impl Into<String>) -> Node<'static> {
    Node { kind: Kind::Scalar(Cow::Owned(text.into()), Style::Quoted), place }
}

pub(crate) fn number(place: Place, number: impl Into<f64>) -> Node<'static> {
    Node { kind: Kind::Scalar(Cow::Owned(number.into().to_string()), Style::Json), place }
}

pub(crate) fn flag(place: Place, flag: bool) -> Node<'static> {
    Node { kind: Kind::Scalar(Cow::Borrowed(if flag { "true" } else { "false" }), Style::Json), place }
}

pub(crate) fn list(place: Place, items: Vec<Node<'static>>) -> Node<'static> {
    Node { kind: Kind::List(items), place }
}

/// A `Percent`.
pub(crate) fn percent(place: Place, value: impl Into<f64>) -> Node<'static> {
    Form::new(place).with("value", number(place, value)).node()
}

/// A duration as protobuf writes it: `3s`, `0.250s`.
pub(crate) fn duration(place: Place, duration: Duration) -> Node<'static> {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    let written = match nanos {
        0 => format!("{seconds}s"),
        n if n % 1_000_000 == 0 => format!("{seconds}.{:03}s", n / 1_000_000),
        n if n % 1_000 == 0 => format!("{seconds}.{:06}s", n / 1_000),
        n => format!("{seconds}.{n:09}s"),
    };
    text(place, written)
}

/// A typed message: its `@type` first.
pub(crate) fn typed(place: Place, message: &str) -> Form {
    Form::new(place).with("@type", text(place, format!("type.googleapis.com/{message}")))
}

/// A `TypedExtensionConfig`.
pub(crate) fn extension(place: Place, name: &str, config: Form) -> Node<'static> {
    Form::new(place).with("name", text(place, name)).with("typed_config", config.node()).node()
}
