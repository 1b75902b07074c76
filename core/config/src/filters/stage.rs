//! One stage, as it is written.

use super::{Filters, presets};
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use nexthop_engine::spec::{HostKey, MatchRule, NoMatch, RequestValue, StageRule, StageSpec, WhenAbsent};
use std::collections::BTreeMap;

const STAGE: Fields = Fields::ours(
    "a filter",
    &[
        "name",
        "match",
        "ip_family",
        "avoid_previous",
        "same_instance",
        "subset",
        "health",
        "preset",
        "when_absent",
        "when_empty",
        "compare",
        "value_map",
        "placeholders",
        "hostname",
        "healthy_only",
        "warn",
        "warn_absent",
        "cluster",
        "ipv6",
        "ipv6_rewrite",
        "zone",
        "hint",
        "header",
        "cookie",
        "size",
        "id",
        "fallback",
    ],
)
.one_of(&[KINDS]);
const KINDS: &[&str] =
    &["match", "ip_family", "avoid_previous", "same_instance", "subset", "health", "preset"];
const MATCH: Fields =
    Fields::ours("match", &["header", "cookie", "context", "fixed", "first", "metadata", "host"])
        .one_of(&[&["header", "cookie", "context", "fixed", "first"], &["metadata", "host"]]);
const VALUE: Fields = Fields::ours("a value of the request", &["header", "cookie", "context", "fixed"])
    .one_of(&[&["header", "cookie", "context", "fixed"]]);
const FAMILY: Fields = Fields::ours("ip_family", &["ipv6", "rewrite"]);
const SUBSET: Fields = Fields::ours("subset", &["size", "id"]);
const NOTHING: Fields = Fields::ours("a stage without settings", &[]);

const ABSENT: &[(&str, i32)] = &[("skip", 0), ("require_absent", 1)];
const EMPTY: &[(&str, i32)] = &[("skip", 0), ("all", 1), ("fail", 2)];
const COMPARE: &[(&str, i32)] = &[("exact", 0), ("ignore_case", 1)];
const HEALTH: &[(&str, i32)] = &[("required", 0), ("ignore", 1)];
const PLACEHOLDERS: &[(&str, i32)] = &[("hostname", 0)];

/// What belongs to stages that match values.
const MATCHING: &[&str] = &["when_absent", "compare", "value_map", "placeholders", "hostname", "warn_absent"];
/// What belongs to every stage.
const COMMON: &[&str] = &["name", "when_empty", "healthy_only", "warn"];

/// Reads one entry of the list: a stage, a preset's stages, or how health counts.
pub(super) fn entry(at: &At<'_>, into: &mut Filters) -> Result<()> {
    let msg = at.message(&STAGE)?;
    let Some(kind) = KINDS.iter().copied().find(|kind| msg.has(kind)) else {
        let mut error = at.fail("a filter needs one of the keys that say what it does");
        error.allowed = format!("one of {}", KINDS.join(", "));
        return Err(error);
    };
    let allowed: Vec<&str> = match kind {
        "match" => COMMON.iter().chain(MATCHING).copied().collect(),
        "health" => Vec::new(),
        "preset" => presets::settings(&msg.need("preset")?)?.to_vec(),
        _ => COMMON.to_vec(),
    };
    let stray = msg.names().find(|name| *name != kind && !allowed.contains(name));
    if let Some(stray) = stray.and_then(|name| msg.get(name)) {
        let mut error = stray.fail(format!("means nothing beside `{kind}`"));
        error.allowed = if allowed.is_empty() { "nothing".into() } else { allowed.join(", ") };
        return Err(error);
    }
    match kind {
        "health" => into.ignore_health = msg.need("health")?.enumeration(HEALTH)? == 1,
        "preset" => presets::preset(&msg, into)?,
        _ => into.stages.push(stage(&msg, kind)?),
    }
    Ok(())
}

fn stage(msg: &Msg<'_>, kind: &'static str) -> Result<StageSpec> {
    let at = msg.need(kind)?;
    let (name, rule) = match kind {
        "match" => matching(msg, &at)?,
        "ip_family" => {
            let family = at.message(&FAMILY)?;
            let ipv6 = family.or("ipv6", false, |flag| flag.bool())?;
            let rewrite = family.or("rewrite", false, |flag| flag.bool())?;
            if rewrite && !ipv6 {
                return Err(family
                    .need("rewrite")?
                    .fail("needs `ipv6: true`: the client has an IPv6 address"));
            }
            ("ip_family".to_owned(), StageRule::IpFamily { ipv6, rewrite })
        }
        "subset" => {
            let subset = at.message(&SUBSET)?;
            let size = subset.or("size", 100, |n| n.u32_in(1, 1_000_000))?;
            ("subset".to_owned(), StageRule::Part { size, id: subset.need("id")?.filled()? })
        }
        "avoid_previous" => {
            at.message(&NOTHING)?;
            ("avoid_previous".to_owned(), StageRule::AvoidPrevious)
        }
        _ => {
            at.message(&NOTHING)?;
            ("same_instance".to_owned(), StageRule::SameInstance)
        }
    };
    let warn = msg.or("warn", true, |flag| flag.bool())?;
    let strict = matches!(rule, StageRule::IpFamily { .. });
    Ok(StageSpec {
        name: msg.or("name", name, |name| stage_name(name))?,
        rule,
        no_match: msg.or("when_empty", if strict { NoMatch::Fail } else { NoMatch::Input }, no_match)?,
        healthy_only: msg.or("healthy_only", false, |flag| flag.bool())?,
        warn,
        warn_absent: msg.or("warn_absent", warn, |flag| flag.bool())?,
    })
}

/// A name goes into counters and codes.
fn stage_name(at: &At<'_>) -> Result<String> {
    let name = at.filled()?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match name.bytes().all(fits) && name.len() <= 64 {
        true => Ok(name),
        false => Err(at.expected("up to 64 letters, digits, `_` and `-`")),
    }
}

pub(super) fn no_match(at: &At<'_>) -> Result<NoMatch> {
    Ok(match at.enumeration(EMPTY)? {
        1 => NoMatch::All,
        2 => NoMatch::Fail,
        _ => NoMatch::Input,
    })
}

fn matching(msg: &Msg<'_>, at: &At<'_>) -> Result<(String, StageRule)> {
    let rule = at.message(&MATCH)?;
    let values = match rule.get("first") {
        Some(first) => {
            let values: Vec<RequestValue> =
                first.items()?.map(|item| value(&item.message(&VALUE)?)).collect::<Result<_>>()?;
            match values.is_empty() {
                true => return Err(first.fail("needs at least one value of the request")),
                false => values,
            }
        }
        None => vec![value(&rule)?],
    };
    let key = match (rule.get("metadata"), rule.get("host")) {
        (Some(key), _) => HostKey::Metadata(key.filled()?),
        (None, Some(host)) => match host.enumeration(&[("id", 0), ("address", 1), ("zone", 2)])? {
            1 => HostKey::Address,
            2 => HostKey::Zone,
            _ => HostKey::Id,
        },
        (None, None) => return Err(at.fail("needs `metadata: KEY`, or `host: id | address | zone`")),
    };
    let name = match &key {
        HostKey::Metadata(key) => {
            key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(64).collect()
        }
        HostKey::Id => "id".to_owned(),
        HostKey::Address => "address".to_owned(),
        HostKey::Zone => "zone".to_owned(),
    };
    let placeholders = msg.each("placeholders", |item| item.enumeration(PLACEHOLDERS))?;
    let own = msg.map("hostname", |name| name.filled())?;
    if let Some(at) = msg.get("hostname").filter(|_| placeholders.is_empty()) {
        return Err(at.fail("needs `placeholders: [hostname]`"));
    }
    let mut value_map = BTreeMap::new();
    if let Some(map) = msg.get("value_map") {
        for (entry, value) in map.entries()? {
            value_map.insert(entry.key.to_string(), value.text()?);
        }
    }
    let absent = match msg.or("when_absent", 0, |word| word.enumeration(ABSENT))? {
        1 => WhenAbsent::RequireAbsent,
        _ => WhenAbsent::Skip,
    };
    let ignore_case = msg.or("compare", 0, |word| word.enumeration(COMPARE))? == 1;
    let hostname = (!placeholders.is_empty()).then_some(own);
    Ok((name, StageRule::Match(MatchRule { values, key, absent, ignore_case, hostname, value_map })))
}

fn value(msg: &Msg<'_>) -> Result<RequestValue> {
    if let Some(name) = msg.get("header") {
        return Ok(RequestValue::Header(name.filled()?.to_ascii_lowercase()));
    }
    if let Some(name) = msg.get("cookie") {
        return Ok(RequestValue::Cookie(name.filled()?));
    }
    if let Some(name) = msg.get("context") {
        return Ok(RequestValue::Context(name.filled()?));
    }
    match msg.get("fixed") {
        Some(text) => Ok(RequestValue::Fixed(text.filled()?)),
        None => {
            let mut error = msg.at.fail("needs where the request has the value");
            error.allowed = "one of header, cookie, context, fixed, first".into();
            Err(error)
        }
    }
}
