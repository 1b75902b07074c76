//! `loadBalancer` (`spec/istio-destination-rule.md` section 6).

use super::locality::{LocalitySetting, ZoneSetting, locality_setting, zone_setting};
use super::read::{Block, Problems, object, word};
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use std::collections::BTreeSet;
use std::time::Duration;

const BALANCER: Fields = Fields::of(
    "loadBalancer",
    &["simple", "consistentHash", "localityLbSetting", "zoneAwareLbSetting", "warmup", "warmupDurationSecs"],
)
.not_used(&["backendUtilization"]);
const HASH: Fields = Fields::of(
    "consistentHash",
    &[
        "httpHeaderName",
        "httpCookie",
        "useSourceIp",
        "httpQueryParameterName",
        "ringHash",
        "maglev",
        "minimumRingSize",
    ],
);
const COOKIE: Fields = Fields::of("httpCookie", &["name", "path", "ttl", "attributes"]);
const ATTRIBUTE: Fields = Fields::of("httpCookie.attributes", &["name", "value"]);
const RING: Fields = Fields::of("ringHash", &["minimumRingSize"]);
const MAGLEV: Fields = Fields::of("maglev", &["tableSize"]);
const WARMUP: Fields = Fields::of("warmup", &["duration", "minimumPercent", "aggression"]);
const SIMPLE: &[(&str, i32)] = &[
    ("UNSPECIFIED", 0),
    ("LEAST_CONN", 1),
    ("RANDOM", 2),
    ("PASSTHROUGH", 3),
    ("ROUND_ROBIN", 4),
    ("LEAST_REQUEST", 5),
];

/// How hosts are chosen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Algorithm {
    LeastRequest,
    RoundRobin,
    Random,
    Passthrough,
    Hash(Box<Hash>),
}

/// `consistentHash`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hash {
    pub(crate) key: Option<HashKey>,
    pub(crate) table: Table,
    pub(crate) deprecated_size: bool,
}

/// What is hashed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HashKey {
    Header(String),
    Cookie { name: String, path: String, ttl: Option<Duration>, attributes: Vec<(String, String)> },
    SourceIp,
    Query(String),
}

/// The table of a consistent hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// Minimum size; `None` = Envoy's.
    Ring(Option<u64>),
    Maglev(u64),
}

/// `warmup`, or the older field with the duration alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Warmup {
    pub(crate) window: Duration,
    /// Minimum percent and aggression; `None` = the older field.
    pub(crate) shape: Option<(f64, f64)>,
}

/// One `loadBalancer`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Balancer {
    pub(crate) block: Block,
    pub(crate) algorithm: Algorithm,
    pub(crate) warmup: Option<Warmup>,
    pub(crate) locality: Option<LocalitySetting>,
    pub(crate) zone: Option<ZoneSetting>,
}

impl Balancer {
    pub(super) fn hash(&self) -> Option<&Hash> {
        match &self.algorithm {
            Algorithm::Hash(hash) => Some(hash),
            _ => None,
        }
    }
}

pub(super) fn balancer(at: &At<'_>, problems: &Problems, top: bool) -> Result<Balancer> {
    let msg = object(*at, &BALANCER)?;
    let mut block = Block::new(at);
    for name in msg.names() {
        if let Some(at) = msg.get(name) {
            block.mark(name, &at);
        }
    }
    if let Some(at) = msg.get("consistentHash").filter(|_| msg.has("simple")) {
        return Err(at.fail("`simple` and `consistentHash` exclude each other"));
    }
    let algorithm = match msg.get("consistentHash") {
        Some(at) => Algorithm::Hash(Box::new(hash(&at, problems, top)?)),
        None => match msg.or("simple", 0, |at| word(at, SIMPLE))? {
            2 => Algorithm::Random,
            3 => Algorithm::Passthrough,
            4 => Algorithm::RoundRobin,
            _ => Algorithm::LeastRequest,
        },
    };
    let older = msg.map("warmupDurationSecs", Problems::span)?;
    let warmup = msg.map("warmup", |at| warmup(at, problems))?;
    if let Some(at) = msg.get("zoneAwareLbSetting").filter(|_| msg.has("localityLbSetting")) {
        problems.error(
            &at,
            "E-LOCALITY-AND-ZONE",
            "localityLbSetting and zoneAwareLbSetting exclude each other",
        );
    }
    Ok(Balancer {
        block,
        algorithm,
        warmup: warmup.or_else(|| older.map(|window| Warmup { window, shape: None })),
        locality: msg.map("localityLbSetting", |at| locality_setting(at, problems))?,
        zone: msg.map("zoneAwareLbSetting", |at| zone_setting(at, problems))?,
    })
}

fn hash(at: &At<'_>, problems: &Problems, top: bool) -> Result<Hash> {
    let msg = object(*at, &HASH)?;
    let sources = ["httpHeaderName", "httpCookie", "useSourceIp", "httpQueryParameterName"];
    let mut given = sources.iter().filter(|name| msg.has(name));
    if let (Some(first), Some(second)) = (given.next(), given.next()) {
        return Err(msg.need(second)?.fail(format!("`{first}` and `{second}` exclude each other")));
    }
    let name =
        |name| msg.map(name, |text: &At<'_>| text.text()).map(|text| text.filter(|text| !text.is_empty()));
    let key = if msg.has("httpCookie") {
        Some(cookie(&msg.need("httpCookie")?, problems)?)
    } else if msg.or("useSourceIp", false, |flag| flag.bool())? {
        Some(HashKey::SourceIp)
    } else if let Some(name) = name("httpQueryParameterName")? {
        Some(HashKey::Query(name))
    } else {
        name("httpHeaderName")?.map(HashKey::Header)
    };
    if let Some(at) = msg.get("maglev").filter(|_| msg.has("ringHash")) {
        return Err(at.fail("`ringHash` and `maglev` exclude each other"));
    }
    let minimum = msg.or("minimumRingSize", 0, |n| n.u64())?;
    if let Some(at) = msg.get("minimumRingSize").filter(|_| minimum > 0) {
        if top {
            problems.warn(
                &at,
                "W-RING-SIZE",
                "minimumRingSize is deprecated; write ringHash.minimumRingSize",
            );
        }
        if msg.has("ringHash") || msg.has("maglev") {
            problems.error(&at, "E-RING-SIZE-TWICE", "minimumRingSize excludes `ringHash` and `maglev`");
        }
    }
    let table = if let Some(at) = msg.get("maglev") {
        Table::Maglev(maglev(&at, problems)?)
    } else if let Some(at) = msg.get("ringHash") {
        let size = object(at, &RING)?.or("minimumRingSize", 0, |n| n.u64())?;
        Table::Ring((size > 0).then_some(size))
    } else {
        Table::Ring(Some(if minimum > 0 { minimum } else { 1024 }))
    };
    Ok(Hash { key, table, deprecated_size: minimum > 0 })
}

fn maglev(at: &At<'_>, problems: &Problems) -> Result<u64> {
    let msg = object(*at, &MAGLEV)?;
    let size = msg.or("tableSize", 0, |n| n.u64())?;
    let at = msg.get("tableSize").unwrap_or(*at);
    if size == 0 {
        problems.error(&at, "E-MAGLEV-UNSET", "a Maglev table needs its size");
    } else if size >= 5_000_011 {
        problems.error(&at, "E-MAGLEV-LARGE", format!("expected a table size below 5000011, found {size}"));
    } else if !is_prime(size) {
        problems.error(&at, "E-MAGLEV-PRIME", format!("expected a prime table size, found {size}"));
    }
    Ok(size)
}

fn is_prime(n: u64) -> bool {
    n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

fn cookie(at: &At<'_>, problems: &Problems) -> Result<HashKey> {
    let msg = object(*at, &COOKIE)?;
    let name = msg.or("name", String::new(), |name| name.text())?;
    if name.is_empty() {
        problems.error(at, "E-COOKIE-NAME", "a hash cookie needs a name");
    }
    let mut seen = BTreeSet::new();
    let attributes = msg.each("attributes", |item| {
        let attribute: Msg<'_> = object(item, &ATTRIBUTE)?;
        let name = attribute.or("name", String::new(), |name| name.text())?;
        if name.is_empty() {
            problems.error(&item, "E-COOKIE-ATTR-EMPTY", "a cookie attribute needs a name");
        } else if !seen.insert(name.clone()) {
            problems.error(
                &item,
                "E-COOKIE-ATTR-DUP",
                format!("the cookie attribute {name:?} is given twice"),
            );
        }
        Ok((name, attribute.or("value", String::new(), |value| value.text())?))
    })?;
    Ok(HashKey::Cookie {
        name,
        path: msg.or("path", String::new(), |path| path.text())?,
        ttl: msg.map("ttl", Problems::span)?,
        attributes,
    })
}

fn warmup(at: &At<'_>, problems: &Problems) -> Result<Warmup> {
    let msg = object(*at, &WARMUP)?;
    if !msg.has("duration") {
        problems.error(at, "E-WARMUP-DURATION", "warmup needs its duration");
    }
    let window = msg.or("duration", Duration::ZERO, |d| problems.duration(d, false))?;
    let minimum = msg.or("minimumPercent", 10.0, |n| n.f64())?;
    if let Some(at) = msg.get("minimumPercent").filter(|_| !(0.0..=100.0).contains(&minimum)) {
        problems.error(&at, "E-WARMUP-MIN", format!("expected a percentage from 0 to 100, found {minimum}"));
    }
    let aggression = msg.or("aggression", 1.0, |n| n.f64())?;
    if let Some(at) = msg.get("aggression").filter(|_| aggression.is_nan() || aggression <= 0.0) {
        problems.error(&at, "E-WARMUP-AGGRESSION", format!("expected a number above 0, found {aggression}"));
    }
    Ok(Warmup { window, shape: Some((minimum, aggression)) })
}
