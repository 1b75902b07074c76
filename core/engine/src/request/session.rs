//! Hosts that a request names itself: for the policy override_host, and by a session that stays at its host
//! (`spec/load-balancing.md` section 25).

use super::Walk;
use super::state::State;
use crate::balance::{Criteria, Overrides};
use crate::base64;
use crate::engine::Core;
use crate::hash::cookie;
use crate::hosts::HostArena;
use crate::route::RequestView;
use crate::spec::{OverrideSource, SessionSpec, SessionState, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A session under way.
pub(crate) struct Session {
    spec: Arc<SessionSpec>,
    /// The host that the request named.
    named: Option<String>,
    /// Slot and birth of the host that the last attempt met.
    pub(super) host: Option<(u32, u32)>,
}

impl Walk<'_> {
    /// The list of hosts that the request brings for the policy.
    #[cold]
    pub(super) fn overrides(
        st: &mut State,
        sources: &[OverrideSource],
        criteria: Option<&Criteria>,
        namespaces: &BTreeMap<String, Value>,
        view: &RequestView<'_>,
    ) {
        let lists = sources.iter().filter_map(|source| match source {
            OverrideSource::Header(name) => std::str::from_utf8(view.headers.first(name)?).ok(),
            OverrideSource::Metadata(namespace, path) => {
                match (namespace.as_str(), namespaces.get(namespace)) {
                    (_, Some(Value::Struct(fields))) => at_path(fields, path),
                    ("envoy.lb", None) => at_path(criteria?.fields(), path),
                    _ => None,
                }
            }
        });
        let overrides = Overrides::new(lists);
        if !overrides.is_empty() {
            st.rare().overrides = Some(overrides);
        }
    }

    /// The host of the session that a request belongs to.
    #[cold]
    pub(super) fn session(
        core: &Core,
        st: &mut State,
        spec: &Arc<SessionSpec>,
        view: &RequestView<'_>,
        asks: bool,
    ) {
        let named = match &spec.state {
            SessionState::Header { name } => view
                .headers
                .first(name)
                .and_then(base64::decode)
                .and_then(|bytes| String::from_utf8(bytes).ok()),
            SessionState::Cookie { path, .. } if !is_below(view.path, path) => return,
            SessionState::Cookie { name, .. } => {
                let seconds = core.settings.unix_base.saturating_add(st.last.0) / 1_000_000_000;
                let value = cookie::find(view.headers.values("cookie"), name);
                value.and_then(base64::decode).and_then(|bytes| cookie_address(&bytes, seconds))
            }
        };
        // What the caller itself asks for comes first.
        if let Some(address) = named.as_ref().filter(|address| !asks && !address.is_empty()) {
            st.rare().wanted = Some((address.clone(), spec.strict));
        }
        st.rare().session = Some(Box::new(Session { spec: Arc::clone(spec), named, host: None }));
    }
}

impl Session {
    /// What the client has to be told when its session is at another host from now on: name and value of a header.
    pub(crate) fn header(&self, hosts: &HostArena, unix_seconds: u64) -> Option<(String, String)> {
        let (slot, birth) = self.host?;
        let (_, info) = hosts.info(slot)?;
        let gone = hosts.facts(slot).birth.load(crate::sync::atomic::Ordering::Relaxed) != birth;
        if gone || self.named.as_ref() == Some(&info.address) {
            return None;
        }
        Some(match &self.spec.state {
            SessionState::Header { name } => (name.clone(), base64::encode(info.address.as_bytes())),
            SessionState::Cookie { name, ttl, path } => {
                let end = (!ttl.is_zero()).then(|| unix_seconds.saturating_add(ttl.as_secs()));
                let value = base64::encode(&cookie_message(&info.address, end));
                ("set-cookie".to_owned(), cookie::set_cookie(name, &value, *ttl, path, &[]))
            }
        })
    }
}

/// The text at a path through structs.
fn at_path<'v>(fields: &'v BTreeMap<String, Value>, path: &[String]) -> Option<&'v str> {
    let (first, rest) = path.split_first()?;
    match (fields.get(first)?, rest) {
        (Value::String(text), []) => Some(text),
        (Value::Struct(fields), rest) if !rest.is_empty() => at_path(fields, rest),
        _ => None,
    }
}

/// Whether a request's path is a cookie's path or below it.
fn is_below(path: &str, cookie: &str) -> bool {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    match path.strip_prefix(cookie) {
        Some(rest) => cookie.is_empty() || cookie.ends_with('/') || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// A message of two fields: 1 the address, 2 the second at which it ends.
fn cookie_message(address: &str, end: Option<u64>) -> Vec<u8> {
    let mut bytes = vec![0x0a];
    varint(&mut bytes, address.len() as u64);
    bytes.extend_from_slice(address.as_bytes());
    if let Some(end) = end {
        bytes.push(0x10);
        varint(&mut bytes, end);
    }
    bytes
}

fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The address of a cookie: that of a message which has not ended, else the text itself, as older clients sent it.
fn cookie_address(bytes: &[u8], now: u64) -> Option<String> {
    match message(bytes).filter(|(address, _)| !address.is_empty()) {
        Some((address, end)) => (end == 0 || end > now).then_some(address),
        None => String::from_utf8(bytes.to_vec()).ok(),
    }
}

fn message(bytes: &[u8]) -> Option<(String, u64)> {
    let mut reader = crate::wire::Reader::new(bytes);
    let (mut address, mut end) = (String::new(), 0);
    while let Some((field, value)) = reader.next()? {
        match (field, value) {
            (1, crate::wire::Field::Bytes(text)) => address = String::from_utf8(text.to_vec()).ok()?,
            (2, crate::wire::Field::Varint(seconds)) => end = seconds,
            _ => {}
        }
    }
    Some((address, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_hold_an_address_and_its_end() {
        let bytes = cookie_message("10.0.0.1:80", Some(1_700_000_000));
        assert_eq!(cookie_address(&bytes, 1_699_999_999).as_deref(), Some("10.0.0.1:80"));
        assert_eq!(cookie_address(&bytes, 1_700_000_000), None);
        assert_eq!(cookie_address(&cookie_message("a:1", None), u64::MAX).as_deref(), Some("a:1"));
        assert_eq!(cookie_address(b"10.0.0.1:80", 0).as_deref(), Some("10.0.0.1:80"));
    }

    #[test]
    fn paths_of_cookies() {
        for (path, cookie, below) in [
            ("/a", "/a", true),
            ("/a/b", "/a", true),
            ("/ab", "/a", false),
            ("/a?x", "/a", true),
            ("/ab", "/", true),
            ("/x", "", true),
            ("", "/a", false),
            ("/a/b", "/a/", true),
        ] {
            assert_eq!(is_below(path, cookie), below, "{path} {cookie}");
        }
    }
}
