//! A mapping read as a message.

use super::fields::Treatment;
use super::{At, Fields};
use crate::error::Result;
use crate::front::{Entry, Kind, Style};
use crate::report::What;

/// The fields of one message that are set.
pub(crate) struct Msg<'a> {
    pub(crate) at: At<'a>,
    found: Vec<(&'static str, &'a Entry<'a>)>,
}

impl<'a> At<'a> {
    /// Reads this mapping as a message: unknown fields are refused, known ones noted or refused as declared,
    /// `null` is unset, of equal keys the last one counts. A null item of a list is a message without fields.
    pub(crate) fn message(self, fields: &'static Fields) -> Result<Msg<'a>> {
        let entries = match &self.node.resolve().kind {
            Kind::Map(entries) => entries.as_slice(),
            Kind::Null => &[],
            _ => return Err(self.expected(&format!("a mapping with the fields of {}", fields.message))),
        };
        let mut found: Vec<(&'static str, Treatment, &'a Entry<'a>)> = Vec::new();
        for entry in entries {
            if self.typed && entry.key == "@type" {
                continue;
            }
            let Some((name, treatment)) = fields.lookup(&entry.key) else {
                return Err(unknown_field(&self, fields, entry));
            };
            match found.iter_mut().find(|(other, ..)| *other == name) {
                Some(old) => old.2 = entry,
                None => found.push((name, treatment, entry)),
            }
        }
        found.retain(|(_, _, entry)| !entry.value.is_null());
        for &(name, treatment, entry) in &found {
            let value = self.key(name, &entry.value);
            match treatment {
                Treatment::Read => {}
                Treatment::NotUsed => {
                    value.note(What::NotUsed, "not used here: it acts on sockets or on a proxy's own work")
                }
                Treatment::NotAvailable => {
                    value.note(What::NotAvailable, "known, but not available in this version");
                }
                Treatment::Refused if is_off(&value) => {}
                Treatment::Refused if self.is_made() => {
                    value.note(What::NotAvailable, "known, but not available in this version");
                }
                Treatment::Refused => return Err(value.unavailable(&format!("`{name}`"))),
            }
        }
        let whose = if fields.own { "nexthop's" } else { "Envoy's" };
        let found: Vec<_> = found
            .into_iter()
            .map(|(name, treatment, entry)| {
                if treatment == Treatment::Read {
                    self.report_used(name, entry);
                }
                (name, entry)
            })
            .collect();
        self.report_defaults(fields, whose, &|name| found.iter().any(|(other, _)| *other == name));
        for group in fields.one_of {
            let set: Vec<_> = found.iter().filter(|(name, _)| group.contains(name)).collect();
            if let [(first, _), (second, entry), ..] = set.as_slice() {
                let text = format!("`{first}` and `{second}` exclude each other");
                let mut error = self.key(second, &entry.value).fail(text);
                error.allowed = format!("one of {}", group.join(", "));
                return Err(error);
            }
        }
        Ok(Msg { at: self, found })
    }
}

impl<'a> At<'a> {
    /// Reads this mapping as an object of Kubernetes: unknown fields go to `dropped`, names are in camel case, and
    /// their other spelling with underscores is understood.
    pub(crate) fn object(
        self,
        fields: &'static Fields,
        mut dropped: impl FnMut(&Self, &Entry<'_>),
    ) -> Result<Msg<'a>> {
        let entries = match &self.node.resolve().kind {
            Kind::Map(entries) => entries.as_slice(),
            Kind::Null => &[],
            _ => return Err(self.expected(&format!("a mapping with the fields of {}", fields.message))),
        };
        let mut found: Vec<(&'static str, Treatment, &'a Entry<'a>)> = Vec::new();
        for entry in entries {
            let known = fields.names().find(|(name, _)| is_camel_spelling(&entry.key, name));
            let Some((name, treatment)) = known else {
                dropped(&self, entry);
                continue;
            };
            match found.iter_mut().find(|(other, ..)| *other == name) {
                Some(old) => old.2 = entry,
                None => found.push((name, treatment, entry)),
            }
        }
        found.retain(|(.., entry)| !entry.value.is_null());
        for &(name, treatment, entry) in &found {
            match treatment {
                Treatment::NotUsed => {
                    let value = self.key(name, &entry.value);
                    value.note(What::NotUsed, "not used here: it has no part in the choice of hosts");
                }
                _ => self.report_used(name, entry),
            }
        }
        let found: Vec<_> = found.into_iter().map(|(name, _, entry)| (name, entry)).collect();
        let named = |name: &str| found.iter().any(|(other, _)| *other == name);
        self.report_defaults(fields, "the source's own", &named);
        Ok(Msg { at: self, found })
    }
}

impl At<'_> {
    /// A field that acts, when every field is to be told.
    fn report_used(&self, name: &str, entry: &Entry<'_>) {
        if !self.sink().borrow().detail {
            return;
        }
        let value = self.key(name, &entry.value);
        let text = match &entry.value.resolve().kind {
            Kind::Scalar(text, _) => format!("used: {text}"),
            Kind::List(items) => format!("used: {} items", items.len()),
            _ => "used".to_owned(),
        };
        value.note(What::Used, text);
    }

    /// Fields that are absent, when every field is to be told. What was made from another dialect has none.
    fn report_defaults(&self, fields: &'static Fields, whose: &str, is_set: &dyn Fn(&str) -> bool) {
        if !self.sink().borrow().detail || self.is_made() {
            return;
        }
        for (name, _) in fields.names().filter(|(_, treatment)| *treatment == Treatment::Read) {
            let excluded = fields
                .one_of
                .iter()
                .any(|group| group.contains(&name) && group.iter().any(|other| is_set(other)));
            if !is_set(name) && !excluded {
                let text = format!("absent: {whose} default acts");
                self.key(name, self.node).note(What::Default, text);
            }
        }
    }
}

/// Whether a key is a name of camel case, or that name with underscores.
fn is_camel_spelling(key: &str, name: &str) -> bool {
    let letters =
        |text: &str| text.bytes().filter(|&b| b != b'_').map(|b| b.to_ascii_lowercase()).collect::<Vec<_>>();
    key == name
        || (key.contains('_')
            && !key.bytes().any(|b| b.is_ascii_uppercase())
            && letters(key) == letters(name))
}

impl<'a> Msg<'a> {
    /// The field, when it is set.
    pub(crate) fn get(&'a self, name: &'static str) -> Option<At<'a>> {
        let (name, entry) = self.found.iter().find(|(found, _)| *found == name)?;
        Some(self.at.key(name, &entry.value))
    }

    /// The field, or a complaint that it is missing.
    pub(crate) fn need(&'a self, name: &'static str) -> Result<At<'a>> {
        self.get(name).ok_or_else(|| self.missing(name))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.found.iter().any(|(found, _)| *found == name)
    }

    /// The names of the fields that are set.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.found.iter().map(|(name, _)| *name)
    }

    pub(crate) fn missing(&self, name: &str) -> Box<crate::ConfigError> {
        let mut error = self.at.fail(format!("the field `{name}` is required"));
        error.allowed = name.into();
        error
    }

    /// The field read by `reader`, or its default.
    pub(crate) fn or<T>(
        &'a self,
        name: &'static str,
        default: T,
        reader: impl FnOnce(&At<'a>) -> Result<T>,
    ) -> Result<T> {
        self.get(name).map_or(Ok(default), |at| reader(&at))
    }

    /// The field read by `reader`, when it is set.
    pub(crate) fn map<T>(
        &'a self,
        name: &'static str,
        reader: impl FnOnce(&At<'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.get(name).map(|at| reader(&at)).transpose()
    }

    /// The values of a repeated field of Envoy's, each read by `reader`.
    pub(crate) fn repeated<T>(
        &'a self,
        name: &'static str,
        reader: impl FnMut(At<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        match self.get(name) {
            Some(list) => list.repeated().into_iter().map(reader).collect(),
            None => Ok(Vec::new()),
        }
    }

    /// The items of a list field, each read by `reader`.
    pub(crate) fn each<T>(
        &'a self,
        name: &'static str,
        reader: impl FnMut(At<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        match self.get(name) {
            Some(list) => list.items()?.map(reader).collect(),
            None => Ok(Vec::new()),
        }
    }
}

/// A refused field that says "off" changes nothing.
fn is_off(value: &At<'_>) -> bool {
    match &value.node.resolve().kind {
        Kind::Scalar(text, Style::Quoted) => text.is_empty(),
        Kind::Scalar(..) => value.bool().is_ok_and(|flag| !flag),
        Kind::List(items) => items.is_empty(),
        _ => false,
    }
}

fn unknown_field(at: &At<'_>, fields: &'static Fields, entry: &Entry<'_>) -> Box<crate::ConfigError> {
    let mut error = at.unknown_name("field", &entry.key, fields.names().map(|(name, _)| name));
    error.message = format!("{} (in {})", error.message, fields.message);
    error.path = at.key(&entry.key, &entry.value).path();
    (error.line, error.column) = (entry.place.line, entry.place.column);
    error
}
