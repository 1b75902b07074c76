//! Addresses and the keys hosts are known by.

use crate::error::Result;
use crate::read::{At, Fields};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ADDRESS: Fields = Fields::of("Address", &["socket_address", "pipe"])
    .refused(&["envoy_internal_address"])
    .one_of(&[&["socket_address", "pipe", "envoy_internal_address"]]);
const SOCKET: Fields = Fields::of("SocketAddress", &["protocol", "address", "port_value", "named_port"])
    .not_used(&["ipv4_compat", "network_namespace_filepath"])
    .refused(&["resolver_name"])
    .one_of(&[&["port_value", "named_port"]]);
const PIPE: Fields = Fields::of("Pipe", &["path"]).not_used(&["mode"]);

/// Whether addresses may be names (they may where a resolver would turn them into addresses).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Allowed,
    Refused,
}

/// What a host is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostKey {
    pub(crate) key: String,
    pub(crate) port: u16,
    /// The name, when the address is one.
    pub(crate) name: Option<String>,
}

/// Reads an `Address`.
pub(super) fn address(at: &At<'_>, names: Names) -> Result<HostKey> {
    let msg = at.message(&ADDRESS)?;
    if let Some(pipe) = msg.get("pipe") {
        let path = pipe.message(&PIPE)?.need("path")?.filled()?;
        return Ok(HostKey { key: path, port: 0, name: None });
    }
    let Some(socket) = msg.get("socket_address") else {
        return Err(at.expected("an address: `socket_address` or `pipe`"));
    };
    let socket = socket.message(&SOCKET)?;
    socket.map("protocol", |p| p.enumeration(&[("TCP", 0), ("UDP", 1)]))?;
    if let Some(port) = socket.get("named_port") {
        return Err(port.fail("a named port needs a resolver of names; write `port_value`"));
    }
    let port = socket.need("port_value")?.u32_in(0, 65_535)?;
    let host = socket.need("address")?;
    let text = host.filled()?;
    HostKey::new(&text, u16::try_from(port).unwrap_or(0), names).ok_or_else(|| match names {
        Names::Allowed => host.expected("an IP address or a name"),
        Names::Refused => {
            host.expected("an IP address (for a name set the cluster's type to STRICT_DNS or LOGICAL_DNS)")
        }
    })
}

impl HostKey {
    /// The canonical key: `a.b.c.d:port`, `[v6]:port` in compressed form, `name:port`.
    pub(crate) fn new(host: &str, port: u16, names: Names) -> Option<Self> {
        if let Ok(v4) = host.parse::<Ipv4Addr>() {
            return Some(Self { key: format!("{v4}:{port}"), port, name: None });
        }
        let (plain, zone) = match host.split_once('%') {
            Some((plain, zone)) if !zone.is_empty() => (plain, format!("%{zone}")),
            _ => (host, String::new()),
        };
        if let Ok(v6) = plain.parse::<Ipv6Addr>() {
            return Some(Self { key: format!("[{v6}{zone}]:{port}"), port, name: None });
        }
        let nameable = !host.is_empty()
            && !host.contains(|c: char| c.is_whitespace() || c.is_control() || ":/[]%@?#".contains(c));
        (names == Names::Allowed && nameable).then(|| Self {
            key: format!("{host}:{port}"),
            port,
            name: Some(host.to_owned()),
        })
    }

    /// From `a.b.c.d:port`, `[v6]:port` or `name:port`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        if port.is_empty() || port.len() > 5 || !port.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let port = port.parse().ok()?;
        match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(v6) => {
                let plain = v6.split('%').next().unwrap_or(v6);
                matches!(plain.parse(), Ok(IpAddr::V6(_))).then(|| Self::new(v6, port, Names::Refused))?
            }
            None if host.contains(':') => None,
            None => Self::new(host, port, Names::Allowed),
        }
    }
}

/// The canonical form of a host's address (`a.b.c.d:port`, `[v6]:port` compressed, `name:port`) and its port; `None`
/// when it is none of these.
pub fn parse_address(text: &str) -> Option<(String, u16)> {
    HostKey::parse(text).map(|key| (key.key, key.port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_canonical() {
        let key = |host| HostKey::new(host, 80, Names::Refused).map(|h| h.key);
        assert_eq!(key("1.2.3.4").as_deref(), Some("1.2.3.4:80"));
        assert_eq!(key("::0001").as_deref(), Some("[::1]:80"));
        assert_eq!(key("2001:DB8:0:0::5").as_deref(), Some("[2001:db8::5]:80"));
        assert_eq!(key("::ffff:1.2.3.4").as_deref(), Some("[::ffff:1.2.3.4]:80"));
        assert_eq!(key("fe80::1%eth0").as_deref(), Some("[fe80::1%eth0]:80"));
        for bad in ["01.2.3.4", "1.2.3", "[::1]", "name", "", "::1%"] {
            assert_eq!(key(bad), None, "{bad}");
        }
        assert_eq!(
            HostKey::new("web.local", 0, Names::Allowed).map(|h| h.key).as_deref(),
            Some("web.local:0")
        );
    }

    #[test]
    fn short_addresses() {
        let key = |text| HostKey::parse(text).map(|h| h.key);
        assert_eq!(key("10.0.0.1:80").as_deref(), Some("10.0.0.1:80"));
        assert_eq!(key("[::01]:443").as_deref(), Some("[::1]:443"));
        assert_eq!(key("web.local:8080").as_deref(), Some("web.local:8080"));
        for bad in [
            "10.0.0.1",
            "::1:80",
            "web:",
            "web:http",
            "web:70000",
            ":80",
            "[web]:80",
            "http://web:80",
            "a b:1",
        ] {
            assert_eq!(key(bad), None, "{bad}");
        }
    }
}
