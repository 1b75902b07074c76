//! YAML events to nodes.

use super::{Entry, Kind, MAX_ALIASED, MAX_DEPTH, Node, Place, Style};
use crate::error::Fault;
use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Reads all documents of a stream; documents without content are left out.
pub(super) fn parse(text: &str) -> Result<Vec<Node<'_>>, Fault> {
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text.trim_start_matches('\u{feff}'));
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let place = Place::new(error.marker().line(), error.marker().col() + 1);
            match error.info() {
                // The scanner's own bound for brackets, which lies above ours.
                "recursion limit exceeded" => Fault::too_deep(place),
                info => Fault::new(place, format!("not readable as YAML: {info}")),
            }
        })?;
        builder.event(event, span)?;
    }
    Ok(builder.documents)
}

/// A finished node with what its aliases cost.
struct Sized<'s> {
    node: Node<'s>,
    /// Nodes in it, aliases expanded.
    weight: u64,
    /// Levels in it, aliases expanded.
    height: usize,
    /// Its tag is `!ignore`: as a key it drops its entry.
    ignored: bool,
}

/// A list or mapping that is still open.
struct Open<'s> {
    place: Place,
    anchor: usize,
    ignored: bool,
    weight: u64,
    height: usize,
    body: Body<'s>,
}

enum Body<'s> {
    List(Vec<Node<'s>>),
    Map { entries: Vec<Entry<'s>>, key: Option<Key<'s>> },
}

struct Key<'s> {
    text: Cow<'s, str>,
    place: Place,
    ignored: bool,
}

#[derive(Default)]
struct Builder<'s> {
    documents: Vec<Node<'s>>,
    open: Vec<Open<'s>>,
    anchors: BTreeMap<usize, (Rc<Node<'s>>, u64, usize)>,
    aliased: u64,
}

impl<'s> Builder<'s> {
    fn event(&mut self, event: Event<'s>, span: Span) -> Result<(), Fault> {
        let place = Place::new(span.start.line(), span.start.col() + 1);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let kind = scalar(text, style, tag.as_deref());
                let ignored = is_ignore(tag.as_deref());
                self.finish(Sized { node: Node { kind, place }, weight: 1, height: 1, ignored }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(place, anchor, is_ignore(tag.as_deref()), Body::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let body = Body::Map { entries: Vec::new(), key: None };
                self.begin(place, anchor, is_ignore(tag.as_deref()), body)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(done) = self.open.pop() else { return Ok(()) };
                // Most lists and mappings are tiny: what they reserved would outweigh what they hold.
                let kind = match done.body {
                    Body::List(mut items) => {
                        items.shrink_to_fit();
                        Kind::List(items)
                    }
                    Body::Map { mut entries, .. } => {
                        entries.shrink_to_fit();
                        Kind::Map(entries)
                    }
                };
                let node = Node { kind, place: done.place };
                let (weight, height) = (done.weight + 1, done.height + 1);
                self.finish(Sized { node, weight, height, ignored: done.ignored }, done.anchor)
            }
            Event::Alias(anchor) => self.alias(anchor, place),
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, place: Place, anchor: usize, ignored: bool, body: Body<'s>) -> Result<(), Fault> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Fault::too_deep(place));
        }
        self.open.push(Open { place, anchor, ignored, weight: 0, height: 0, body });
        Ok(())
    }

    fn alias(&mut self, anchor: usize, place: Place) -> Result<(), Fault> {
        let Some((node, weight, height)) = self.anchors.get(&anchor) else {
            return Err(Fault::new(place, "an alias stands inside the value it names".into()));
        };
        let (weight, height) = (*weight, *height);
        let node = Node { kind: Kind::Shared(Rc::clone(node)), place };
        self.aliased = self.aliased.saturating_add(weight);
        if self.aliased > MAX_ALIASED {
            let text = format!("aliases stand for more than {MAX_ALIASED} values");
            return Err(Fault::new(place, text));
        }
        if self.open.len() + height > MAX_DEPTH {
            return Err(Fault::too_deep(place));
        }
        self.finish(Sized { node, weight, height, ignored: false }, 0)
    }

    /// Puts a finished node where it belongs: under its anchor, into the innermost open value, or at the top.
    fn finish(&mut self, mut done: Sized<'s>, anchor: usize) -> Result<(), Fault> {
        if anchor != 0 {
            let place = done.node.place;
            let shared = Rc::new(done.node);
            self.anchors.insert(anchor, (Rc::clone(&shared), done.weight, done.height));
            done.node = Node { kind: Kind::Shared(shared), place };
        }
        let Some(parent) = self.open.last_mut() else {
            if !done.node.is_null() {
                self.documents.push(done.node);
            }
            return Ok(());
        };
        parent.weight = parent.weight.saturating_add(done.weight);
        parent.height = parent.height.max(done.height);
        match &mut parent.body {
            Body::List(items) => items.push(done.node),
            Body::Map { entries, key } => match key.take() {
                None => *key = Some(as_key(&done)?),
                Some(Key { ignored: true, .. }) => {}
                Some(Key { text, place, .. }) => entries.push(Entry { key: text, place, value: done.node }),
            },
        }
        Ok(())
    }
}

fn as_key<'s>(done: &Sized<'s>) -> Result<Key<'s>, Fault> {
    let place = done.node.place;
    let text = match &done.node.resolve().kind {
        Kind::Scalar(text, _) => text.clone(),
        Kind::Null => Cow::Borrowed("null"),
        _ => return Err(Fault::new(place, format!("a key must be text, found {}", done.node.describe()))),
    };
    Ok(Key { text, place, ignored: done.ignored })
}

/// A tag on a quoted scalar makes it plain again, `!` alone makes a plain one text: so decides the YAML library
/// that Envoy uses.
fn scalar<'s>(text: Cow<'s, str>, style: ScalarStyle, tag: Option<&Tag>) -> Kind<'s> {
    let quoted = match tag {
        None => style != ScalarStyle::Plain,
        Some(tag) => is_non_specific(tag),
    };
    if quoted {
        Kind::Scalar(text, Style::Quoted)
    } else if tag.is_none() && matches!(&*text, "" | "~" | "null" | "Null" | "NULL") {
        Kind::Null
    } else {
        Kind::Scalar(text, Style::Plain)
    }
}

fn is_non_specific(tag: &Tag) -> bool {
    (tag.handle == "!" && tag.suffix.is_empty()) || (tag.handle.is_empty() && tag.suffix == "!")
}

fn is_ignore(tag: Option<&Tag>) -> bool {
    tag.is_some_and(|tag| tag.handle == "!" && tag.suffix == "ignore")
}
