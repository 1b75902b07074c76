//! `connectionPool` (`spec/istio-destination-rule.md` section 4).

use super::read::{Block, Problems, object, word};
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use std::time::Duration;

const POOL: Fields = Fields::of("connectionPool", &["tcp", "http"]);
const TCP: Fields = Fields::of(
    "connectionPool.tcp",
    &["maxConnections", "connectTimeout", "tcpKeepalive", "maxConnectionDuration", "idleTimeout"],
);
const KEEPALIVE: Fields = Fields::of("tcpKeepalive", &["probes", "time", "interval"]);
const HTTP: Fields = Fields::of(
    "connectionPool.http",
    &[
        "http1MaxPendingRequests",
        "http2MaxRequests",
        "maxRequestsPerConnection",
        "maxRetries",
        "idleTimeout",
        "h2UpgradePolicy",
        "useClientProtocol",
        "maxConcurrentStreams",
        "http2KeepAlive",
    ],
);
const PING: Fields = Fields::of("http2KeepAlive", &["interval", "timeout"]);
const UPGRADES: &[(&str, i32)] = &[("DEFAULT", 0), ("DO_NOT_UPGRADE", 1), ("UPGRADE", 2)];

/// Whether connections are upgraded to HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Upgrade {
    #[default]
    Default,
    No,
    Yes,
}

/// TCP keep-alive; what is absent is the mesh's or the system's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Keepalive {
    pub(crate) probes: u32,
    pub(crate) time: Option<Duration>,
    pub(crate) interval: Option<Duration>,
}

/// One `connectionPool`; limits of 0 are absent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pool {
    pub(crate) block: Block,
    pub(crate) max_connections: u32,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) keepalive: Option<Keepalive>,
    pub(crate) max_connection_duration: Option<Duration>,
    pub(crate) tcp_idle: Option<Duration>,
    pub(crate) max_pending: u32,
    pub(crate) max_requests: u32,
    pub(crate) max_per_connection: u32,
    pub(crate) max_retries: u32,
    pub(crate) http_idle: Option<Duration>,
    pub(crate) upgrade: Upgrade,
    pub(crate) client_protocol: bool,
    pub(crate) max_streams: u32,
    pub(crate) ping: Option<(Duration, Duration)>,
}

/// Integers of which 0 means "not set".
pub(super) const LIMITS: [&str; 6] = [
    "tcp.maxConnections",
    "http.http1MaxPendingRequests",
    "http.http2MaxRequests",
    "http.maxRequestsPerConnection",
    "http.maxRetries",
    "http.maxConcurrentStreams",
];

pub(super) fn pool(at: &At<'_>, problems: &Problems) -> Result<Pool> {
    let msg = object(*at, &POOL)?;
    if !msg.has("tcp") && !msg.has("http") {
        problems.error(at, "E-POOL-EMPTY", "a connection pool needs `tcp` or `http`");
    }
    let mut pool = Pool {
        block: Block::new(at),
        max_connections: 0,
        connect_timeout: None,
        keepalive: None,
        max_connection_duration: None,
        tcp_idle: None,
        max_pending: 0,
        max_requests: 0,
        max_per_connection: 0,
        max_retries: 0,
        http_idle: None,
        upgrade: Upgrade::Default,
        client_protocol: false,
        max_streams: 0,
        ping: None,
    };
    if let Some(at) = msg.get("tcp") {
        tcp(&object(at, &TCP)?, &mut pool, problems)?;
    }
    if let Some(at) = msg.get("http") {
        http(&object(at, &HTTP)?, &mut pool, problems)?;
    }
    Ok(pool)
}

/// Reads one field into its place and remembers where it stands.
fn take<T>(
    msg: &Msg<'_>,
    name: &'static str,
    full: &'static str,
    block: &mut Block,
    reader: impl FnOnce(&At<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let Some(at) = msg.get(name) else { return Ok(None) };
    block.mark(full, &at);
    reader(&at).map(Some)
}

fn tcp(msg: &Msg<'_>, pool: &mut Pool, problems: &Problems) -> Result<()> {
    let block = &mut pool.block;
    let limit = |at: &At<'_>| problems.count(at, "E-NEG-MAX-CONNECTIONS");
    let span = |at: &At<'_>| problems.duration(at, false);
    pool.max_connections =
        take(msg, "maxConnections", "tcp.maxConnections", block, limit)?.unwrap_or_default();
    pool.connect_timeout = take(msg, "connectTimeout", "tcp.connectTimeout", block, span)?;
    pool.max_connection_duration =
        take(msg, "maxConnectionDuration", "tcp.maxConnectionDuration", block, span)?;
    pool.tcp_idle = take(msg, "idleTimeout", "tcp.idleTimeout", block, |at| problems.duration(at, true))?;
    pool.keepalive = take(msg, "tcpKeepalive", "tcp.tcpKeepalive", block, |at| keepalive(at, problems))?;
    Ok(())
}

pub(super) fn keepalive(at: &At<'_>, problems: &Problems) -> Result<Keepalive> {
    let msg = object(*at, &KEEPALIVE)?;
    Ok(Keepalive {
        probes: msg.or("probes", 0, |n| n.u32())?,
        time: msg.map("time", |d| problems.duration(d, false))?,
        interval: msg.map("interval", |d| problems.duration(d, false))?,
    })
}

fn http(msg: &Msg<'_>, pool: &mut Pool, problems: &Problems) -> Result<()> {
    let block = &mut pool.block;
    let limits: [(&'static str, &'static str, &'static str, &mut u32); 5] = [
        ("http1MaxPendingRequests", "http.http1MaxPendingRequests", "E-NEG-PENDING", &mut pool.max_pending),
        ("http2MaxRequests", "http.http2MaxRequests", "E-NEG-REQUESTS", &mut pool.max_requests),
        (
            "maxRequestsPerConnection",
            "http.maxRequestsPerConnection",
            "E-NEG-REQS-PER-CONN",
            &mut pool.max_per_connection,
        ),
        ("maxRetries", "http.maxRetries", "E-NEG-RETRIES", &mut pool.max_retries),
        ("maxConcurrentStreams", "http.maxConcurrentStreams", "E-NEG-STREAMS", &mut pool.max_streams),
    ];
    for (name, full, code, value) in limits {
        *value = take(msg, name, full, block, |at| problems.count(at, code))?.unwrap_or_default();
    }
    pool.http_idle = take(msg, "idleTimeout", "http.idleTimeout", block, |at| problems.duration(at, false))?;
    pool.client_protocol =
        take(msg, "useClientProtocol", "http.useClientProtocol", block, |at| at.bool())?.unwrap_or_default();
    pool.upgrade = take(msg, "h2UpgradePolicy", "http.h2UpgradePolicy", block, upgrade)?.unwrap_or_default();
    if let Some(at) =
        msg.get("h2UpgradePolicy").filter(|_| pool.client_protocol && pool.upgrade == Upgrade::Yes)
    {
        let text = "h2UpgradePolicy UPGRADE and useClientProtocol exclude each other";
        problems.error(&at, "E-H2-UPGRADE-CLIENT-PROTO", text);
    }
    pool.ping = take(msg, "http2KeepAlive", "http.http2KeepAlive", block, |at| ping(at, problems))?.flatten();
    Ok(())
}

pub(super) fn upgrade(at: &At<'_>) -> Result<Upgrade> {
    Ok(match word(at, UPGRADES)? {
        1 => Upgrade::No,
        2 => Upgrade::Yes,
        _ => Upgrade::Default,
    })
}

fn ping(at: &At<'_>, problems: &Problems) -> Result<Option<(Duration, Duration)>> {
    let msg = object(*at, &PING)?;
    let span = |name| msg.map(name, |d| problems.duration(d, false));
    let (interval, timeout) = (span("interval")?, span("timeout")?);
    if interval.is_none() {
        problems.error(at, "E-PING-INTERVAL", "http2KeepAlive needs `interval`");
    }
    if timeout.is_none() {
        problems.error(at, "E-PING-TIMEOUT", "http2KeepAlive needs `timeout`");
    }
    Ok(interval.zip(timeout))
}
