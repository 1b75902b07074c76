//! Which virtual host an authority belongs to.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The domains of one route table: exact, then the longest suffix wildcard, then the longest prefix wildcard,
/// then the catch-all.
#[derive(Debug, Default)]
pub(super) struct Domains {
    exact: BTreeMap<Box<str>, u32>,
    /// `*tail`, by length of the tail, longest first.
    suffixes: Wildcards,
    /// `head*`, by length of the head, longest first.
    prefixes: Wildcards,
    catch_all: Option<u32>,
}

type Wildcards = BTreeMap<Reverse<usize>, BTreeMap<Box<[u8]>, u32>>;

impl Domains {
    /// Of a domain that stands twice the first one counts; documents with such domains are refused earlier.
    pub(super) fn insert(&mut self, domain: &str, virtual_host: u32) {
        let domain = domain.to_ascii_lowercase();
        if domain == "*" {
            self.catch_all.get_or_insert(virtual_host);
        } else if let Some(tail) = domain.strip_prefix('*') {
            insert_wildcard(&mut self.suffixes, tail, virtual_host);
        } else if let Some(head) = domain.strip_suffix('*') {
            insert_wildcard(&mut self.prefixes, head, virtual_host);
        } else {
            self.exact.entry(domain.into()).or_insert(virtual_host);
        }
    }

    /// `host` is in lower case.
    pub(super) fn find(&self, host: &str) -> Option<u32> {
        if let Some(&found) = self.exact.get(host) {
            return Some(found);
        }
        let bytes = host.as_bytes();
        find_wildcard(&self.suffixes, bytes.len(), |length| &bytes[bytes.len() - length..])
            .or_else(|| find_wildcard(&self.prefixes, bytes.len(), |length| &bytes[..length]))
            .or(self.catch_all)
    }
}

fn insert_wildcard(wildcards: &mut Wildcards, text: &str, virtual_host: u32) {
    let same_length = wildcards.entry(Reverse(text.len())).or_default();
    same_length.entry(text.as_bytes().into()).or_insert(virtual_host);
}

/// The star stands for at least one character: `*.a.com` is not `.a.com`.
fn find_wildcard<'h>(wildcards: &Wildcards, length: usize, part: impl Fn(usize) -> &'h [u8]) -> Option<u32> {
    wildcards
        .iter()
        .filter(|(text, _)| text.0 < length)
        .find_map(|(text, same_length)| same_length.get(part(text.0)).copied())
}

/// The authority without its port. The colons of a bracketed IPv6 address are none.
pub(super) fn without_port(authority: &str) -> &str {
    match authority.rfind(':') {
        Some(colon) if authority.rfind(']').is_none_or(|bracket| bracket < colon) => &authority[..colon],
        _ => authority,
    }
}
