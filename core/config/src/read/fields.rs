//! Which fields a message has and what becomes of each.

/// The fields of one message, by what a reader does with them. Every field Envoy knows is in one of the lists.
pub(crate) struct Fields {
    pub(crate) message: &'static str,
    /// Of the short form or the `nexthop:` mapping, not of Envoy: so are its defaults.
    pub(crate) own: bool,
    /// Asked for by the reader.
    pub(crate) read: &'static [&'static str],
    /// Asked for as well, where a message of ours has more than Envoy's.
    pub(crate) also: &'static [&'static str],
    /// Without meaning for a library that owns no socket: accepted and noted.
    pub(crate) not_used: &'static [&'static str],
    /// Not available in this version, and what remains is still sensible: accepted and noted.
    pub(crate) not_available: &'static [&'static str],
    /// Not available in this version, and ignoring it would choose other hosts: refused unless it is off.
    pub(crate) refused: &'static [&'static str],
    /// Groups of which at most one member may be given.
    pub(crate) one_of: &'static [&'static [&'static str]],
}

impl Fields {
    pub(crate) const fn of(message: &'static str, read: &'static [&'static str]) -> Self {
        Self {
            message,
            own: false,
            read,
            also: &[],
            not_used: &[],
            not_available: &[],
            refused: &[],
            one_of: &[],
        }
    }

    /// A message of the short form or of the `nexthop:` mapping.
    pub(crate) const fn ours(message: &'static str, read: &'static [&'static str]) -> Self {
        let mut fields = Self::of(message, read);
        fields.own = true;
        fields
    }

    /// A message of ours: these fields, and more.
    pub(crate) const fn extended(mut self, message: &'static str, more: &'static [&'static str]) -> Self {
        self.message = message;
        self.own = true;
        self.also = more;
        self
    }

    pub(crate) const fn not_used(mut self, names: &'static [&'static str]) -> Self {
        self.not_used = names;
        self
    }

    pub(crate) const fn not_available(mut self, names: &'static [&'static str]) -> Self {
        self.not_available = names;
        self
    }

    pub(crate) const fn refused(mut self, names: &'static [&'static str]) -> Self {
        self.refused = names;
        self
    }

    pub(crate) const fn one_of(mut self, groups: &'static [&'static [&'static str]]) -> Self {
        self.one_of = groups;
        self
    }

    /// Every name, each with its treatment.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&'static str, Treatment)> + Clone {
        let list = |names: &'static [&'static str], t: Treatment| names.iter().map(move |&name| (name, t));
        list(self.read, Treatment::Read)
            .chain(list(self.also, Treatment::Read))
            .chain(list(self.not_used, Treatment::NotUsed))
            .chain(list(self.not_available, Treatment::NotAvailable))
            .chain(list(self.refused, Treatment::Refused))
    }

    /// The field a key means.
    pub(crate) fn lookup(&self, key: &str) -> Option<(&'static str, Treatment)> {
        self.names().find(|(name, _)| is_spelling(key, name))
    }
}

/// What a reader does with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    Read,
    NotUsed,
    NotAvailable,
    Refused,
}

/// Whether a key is a field's name, either as declared (`connect_timeout`) or in its JSON form (`connectTimeout`).
pub(crate) fn is_spelling(key: &str, field: &str) -> bool {
    if key == field {
        return true;
    }
    let mut letters = key.bytes();
    let mut raise = false;
    for byte in field.bytes() {
        if byte == b'_' {
            raise = true;
            continue;
        }
        let wanted = if raise { byte.to_ascii_uppercase() } else { byte };
        raise = false;
        if letters.next() != Some(wanted) {
            return false;
        }
    }
    letters.next().is_none()
}
