//! Explanations as JSON and as text for people.

use super::changes::nearest;
use super::error::Error;
use super::registry::Engine;
use nexthop_engine::StageOutcome;
use nexthop_engine::engine::UNKNOWN_TARGET;
use nexthop_engine::explain::{Explanation, HostsWhy};
use nexthop_engine::outcome::{Head, Misuse, NEVER, head_bits, refusal, resource};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;

/// What would be decided for a head that is given as a JSON object.
pub(super) fn head(engine: &Engine, text: &str) -> Result<String, Error> {
    let given: Map<String, Json> = serde_json::from_str(text)
        .map_err(|error| invalid(format!("a head is a JSON object of its fields: {error}")))?;
    borrowed(engine, &Asked::read(engine, &given)?.head())
}

/// The same for a head as calls take it.
pub(super) fn borrowed(engine: &Engine, head: &Head<'_>) -> Result<String, Error> {
    let why = engine.core.explain_head(head, engine.at(0)).map_err(Error::from)?;
    let mut json = whole(&why);
    json.insert("line".into(), line(&why).into());
    json.insert("text".into(), told(&why).into());
    Ok(Json::Object(json).to_string())
}

/// Why the attempts of a request went where they went: one line always, all of it where its head asked for that.
pub(super) fn attempt(engine: &Engine, id: u64) -> Result<String, Error> {
    let line = engine.core.explain(id).map_err(Error::from)?;
    let trail = engine.core.explain_trail(id).map_err(Error::from)?;
    let mut json = Map::new();
    if let Some(last) = trail.last() {
        json = whole(last);
        json.insert("text".into(), told(last).into());
        let earlier = trail[..trail.len() - 1].iter().map(|why| Json::Object(whole(why))).collect();
        json.insert("earlier".into(), Json::Array(earlier));
    }
    json.insert("line".into(), line.into());
    Ok(Json::Object(json).to_string())
}

fn invalid(sentence: String) -> Error {
    Error::misuse(Misuse::Invalid, sentence)
}

/// A head with what it borrows.
#[derive(Default)]
struct Asked {
    texts: [String; 8],
    block: Vec<u8>,
    key: Option<Vec<u8>>,
    target: u32,
    want: u32,
    hash: u64,
    timeout: u64,
    number: u32,
    bits: u32,
    priority: i8,
}

/// Fields that are plain text, in the order of [`Asked::texts`].
const TEXTS: [&str; 6] = ["method", "scheme", "authority", "path", "source", "local"];
const METADATA: usize = 6;
const TRIED: usize = 7;
const FIELDS: [&str; 21] = [
    "cluster",
    "route",
    "method",
    "scheme",
    "authority",
    "path",
    "source",
    "local",
    "headers",
    "key",
    "hash",
    "metadata",
    "filter_metadata",
    "override_host",
    "timeout",
    "priority",
    "body",
    "internal",
    "explain",
    "attempt",
    "tried",
];

impl Asked {
    fn read(engine: &Engine, given: &Map<String, Json>) -> Result<Self, Error> {
        if let Some(other) = given.keys().find(|key| !FIELDS.contains(&key.as_str())) {
            return Err(invalid(format!("a head has no field {other:?}; there are {}", FIELDS.join(", "))));
        }
        let text = |name: &str| match given.get(name) {
            None | Some(Json::Null) => Ok(String::new()),
            Some(Json::String(text)) => Ok(text.clone()),
            Some(other) => Err(invalid(format!("{name} is a text, not {other}"))),
        };
        let number = |name: &str| match given.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => match value.as_f64().filter(|number| number.is_finite() && *number >= 0.0) {
                Some(number) => Ok(Some(number)),
                None => Err(invalid(format!("{name} is a number that is not negative, not {value}"))),
            },
        };
        let mut asked = Self { priority: -1, ..Self::default() };
        for (place, name) in asked.texts.iter_mut().zip(TEXTS) {
            *place = text(name)?;
        }
        if let Some(metadata) = given.get("metadata").filter(|value| !value.is_null()) {
            asked.texts[METADATA] = metadata.to_string();
        }
        asked.texts[TRIED] = match given.get("tried") {
            Some(Json::Array(list)) => list.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(","),
            _ => text("tried")?,
        };
        let (cluster, route) = (text("cluster")?, text("route")?);
        if !cluster.is_empty() && !route.is_empty() {
            return Err(invalid("a cluster and a route are given: name one of them".into()));
        }
        let named = match (cluster.is_empty(), route.is_empty()) {
            (true, true) => None,
            (false, _) => Some(cluster),
            (true, false) => Some(format!("route:{route}")),
        };
        if let Some(name) = named {
            asked.target = engine.core.resolve(&name).unwrap_or(UNKNOWN_TARGET);
            if asked.target == UNKNOWN_TARGET {
                let sentence = nearest(&name, &engine.core.target_names());
                return Err(Error::misuse(
                    Misuse::NotFound,
                    format!("no cluster or route {name:?}{sentence}"),
                ));
            }
        }
        if let Some(key) = given.get("key").and_then(Json::as_str) {
            asked.key = Some(key.as_bytes().to_vec());
        }
        if let Some(hash) = given.get("hash").filter(|hash| !hash.is_null()) {
            let found = hash.as_u64().or_else(|| hash.as_str()?.parse().ok());
            asked.hash = found.ok_or_else(|| invalid(format!("hash is a 64-bit number, not {hash}")))?;
            asked.bits |= head_bits::HASH;
        }
        if given.get("internal") == Some(&Json::Bool(true)) {
            asked.bits |= head_bits::INTERNAL;
        }
        asked.priority = match text("priority")?.as_str() {
            "" => -1,
            "default" => 0,
            "high" => 1,
            other => return Err(invalid(format!("priority is default or high, not {other:?}"))),
        };
        asked.timeout = number("timeout")?.map_or(0, |seconds| (seconds * 1e9) as u64);
        asked.number = number("attempt")?.map_or(0, |number| number as u32);
        asked.headers(engine, given.get("headers"))?;
        Ok(asked)
    }

    /// Headers that nobody reads are left out.
    fn headers(&mut self, engine: &Engine, given: Option<&Json>) -> Result<(), Error> {
        let given = match given {
            None | Some(Json::Null) => return Ok(()),
            Some(Json::Object(given)) => given,
            Some(other) => return Err(invalid(format!("headers are an object, not {other}"))),
        };
        let Some((want, names)) = engine.core.want(0) else { return Ok(()) };
        self.want = want;
        for (name, value) in given {
            let name = name.to_ascii_lowercase();
            let Some(at) = names.iter().position(|known| **known == *name) else { continue };
            let values = match value {
                Json::Array(values) => values.as_slice(),
                one => std::slice::from_ref(one),
            };
            for value in values {
                let text =
                    value.as_str().ok_or_else(|| invalid(format!("header {name} is text, not {value}")))?;
                nexthop_engine::headers::pack(&mut self.block, at as u16, text.as_bytes());
            }
        }
        Ok(())
    }

    fn head(&self) -> Head<'_> {
        let [method, scheme, authority, path, source, local, metadata, tried] = &self.texts;
        Head {
            bits: self.bits,
            target: self.target,
            number: self.number,
            want: self.want,
            method,
            scheme,
            authority,
            path,
            headers: &self.block,
            source,
            local,
            key: self.key.as_deref(),
            tried,
            metadata,
            hash: self.hash,
            priority: self.priority,
            timeout: self.timeout,
            ..Head::default()
        }
    }
}

fn seconds(span: u64) -> Json {
    if span == NEVER { Json::Null } else { (span as f64 / 1e9).into() }
}

const fn outcome_word(outcome: StageOutcome) -> &'static str {
    match outcome {
        StageOutcome::Skipped => "skipped",
        StageOutcome::Matched => "matched",
        StageOutcome::FellBack => "fell_back",
        StageOutcome::StartedOver => "started_over",
        StageOutcome::Refused => "refused",
    }
}

fn whole(why: &Explanation) -> Map<String, Json> {
    let weighted = why.route.weighted.iter();
    let mut json = Map::new();
    let refusal = refusal::NAMES.get(usize::from(why.refusal)).copied().unwrap_or("");
    json.insert(
        "route".into(),
        json!({
            "name": why.route.name,
            "why": why.route.why,
            "weighted": weighted.map(|(name, weight)| json!({"cluster": name, "weight": weight})).collect::<Vec<_>>(),
        }),
    );
    json.insert("refusal".into(), if refusal.is_empty() { Json::Null } else { refusal.into() });
    let limit = resource::name(why.resource);
    json.insert("resource".into(), if limit.is_empty() { Json::Null } else { limit.into() });
    json.insert("attempt".into(), why.number.into());
    let levels = why.levels.iter().map(|level| json!({"cluster": level.cluster, "why": level.why}));
    json.insert("clusters".into(), levels.collect());
    json.insert("hosts".into(), why.hosts.as_ref().map_or(Json::Null, hosts));
    json.insert("hash".into(), why.hash.map_or(Json::Null, |hash| hash.to_string().into()));
    let limits =
        why.limits.iter().map(|limit| json!({"name": limit.name, "used": limit.used, "max": limit.max}));
    json.insert("limits".into(), limits.collect());
    let times = &why.times;
    json.insert(
        "times".into(),
        json!({
            "timeout": seconds(times.timeout),
            "per_try": seconds(times.per_try),
            "per_try_idle": seconds(times.per_try_idle),
            "connect": seconds(times.connect),
        }),
    );
    json.insert(
        "on_failure".into(),
        json!({"on": why.retry.on, "left": why.retry.left, "then": why.retry.then}),
    );
    let chosen = if why.chosen.is_empty() { Json::Null } else { why.chosen.as_str().into() };
    json.insert("chosen".into(), chosen);
    json.insert("draws".into(), why.draws.iter().map(|word| Json::from(word.to_string())).collect());
    json
}

fn hosts(why: &HostsWhy) -> Json {
    json!({
        "policy": why.policy,
        "protected": why.protected,
        "priorities": why.priorities.iter().map(|p| json!({
            "priority": p.priority,
            "hosts": p.hosts,
            "healthy": p.healthy,
            "degraded": p.degraded,
            "load": p.load,
            "degraded_load": p.degraded_load,
            "panic": p.panic,
        })).collect::<Vec<_>>(),
        "filters": why.filters.iter().map(|f| json!({
            "stage": f.stage,
            "value": f.value,
            "outcome": outcome_word(f.outcome),
            "left": f.left,
        })).collect::<Vec<_>>(),
        "candidates": why.candidates.iter().map(|c| json!({
            "address": c.address,
            "priority": c.priority,
            "zone": c.zone,
            "weight": c.weight,
            "active": c.active,
            "health": c.health,
            "left_out": if c.left_out.is_empty() { Json::Null } else { c.left_out.as_str().into() },
            "at_last": c.at_last,
        })).collect::<Vec<_>>(),
        "more": why.more,
    })
}

fn line(why: &Explanation) -> String {
    let cluster = why.levels.last().map_or("no cluster", |level| level.cluster.as_str());
    let refusal = refusal::NAMES.get(usize::from(why.refusal)).copied().unwrap_or("");
    let may = why
        .hosts
        .as_ref()
        .map_or(0, |hosts| hosts.candidates.iter().filter(|c| c.left_out.is_empty()).count());
    let all = why.hosts.as_ref().map_or(0, |hosts| hosts.candidates.len() + hosts.more);
    match refusal {
        "" => format!("attempt {} would go to cluster {cluster}, to one of {may} of {all} hosts", why.number),
        refusal => {
            let limit = limit_words(why);
            format!("attempt {} would be refused: {refusal}{limit} ({cluster})", why.number)
        }
    }
}

/// Which limit refuses, as refusals are written.
fn limit_words(why: &Explanation) -> String {
    match resource::name(why.resource) {
        "" => String::new(),
        limit => format!(" ({limit})"),
    }
}

/// For people: a line for each part.
fn told(why: &Explanation) -> String {
    let mut out = String::new();
    let span = |nanos: u64| match nanos {
        NEVER => "none".to_owned(),
        nanos => format!("{} s", nanos as f64 / 1e9),
    };
    let route = if why.route.name.is_empty() { "none" } else { &why.route.name };
    let _ = writeln!(out, "route      {route}: {}", why.route.why);
    for (cluster, weight) in &why.route.weighted {
        let shown = why.levels.first().is_some_and(|level| level.cluster == *cluster);
        let shown = if shown { "; this one is explained" } else { "" };
        let _ = writeln!(out, "           weight {weight}: {cluster} (a draw decides{shown})");
    }
    for level in &why.levels {
        let _ = writeln!(out, "cluster    {}: {}", level.cluster, level.why);
    }
    if why.refusal != 0 {
        let name = refusal::NAMES.get(usize::from(why.refusal)).copied().unwrap_or("");
        let _ = writeln!(out, "refused    {name}{}", limit_words(why));
    }
    if let Some(hosts) = &why.hosts {
        let _ = writeln!(
            out,
            "policy     {}{}",
            hosts.policy,
            match why.hash {
                Some(hash) => format!(", hash {hash:x}: it decides among hosts that may be chosen"),
                None => String::new(),
            }
        );
        for p in &hosts.priorities {
            let _ = writeln!(
                out,
                "priority {} {} hosts, {} healthy, {} degraded; gets {} % by healthy and {} % by degraded hosts{}",
                p.priority,
                p.hosts,
                p.healthy,
                p.degraded,
                p.load,
                p.degraded_load,
                if p.panic { "; panics: health is not looked at" } else { "" }
            );
        }
        if hosts.protected {
            let _ = writeln!(out, "protected  few hosts are healthy, so all count as healthy");
        }
        for f in &hosts.filters {
            let _ = writeln!(
                out,
                "filter     {} {:?}: {}{}, {} left",
                f.stage,
                f.value,
                outcome_word(f.outcome).replace('_', " "),
                if f.untagged { " the hosts without a value" } else { "" },
                f.left
            );
        }
        for c in &hosts.candidates {
            let chosen = if c.address == why.chosen { "  <- chosen" } else { "" };
            let closed = resource::name(c.closed_by);
            let why_not = match (c.left_out.as_str(), closed) {
                ("", "") => "may be chosen".to_owned(),
                ("", limit) => format!("may be chosen, and is refused then: the limit of {limit}"),
                (left_out, _) => left_out.to_owned(),
            };
            let _ = writeln!(
                out,
                "host       {} (priority {}, weight {}, {} active, {}): {why_not}{chosen}",
                c.address, c.priority, c.weight, c.active, c.health
            );
        }
        if hosts.more > 0 {
            let _ = writeln!(out, "           and {} more hosts", hosts.more);
        }
    }
    for limit in &why.limits {
        let _ = writeln!(out, "limit      {}: {} of {}", limit.name, limit.used, limit.max);
    }
    let times = &why.times;
    let _ = writeln!(
        out,
        "time       whole {}, each try {}, idle {}, connect {}",
        span(times.timeout),
        span(times.per_try),
        span(times.per_try_idle),
        span(times.connect)
    );
    if !why.retry.then.is_empty() {
        let on =
            if why.retry.on.is_empty() { String::new() } else { format!(" ({})", why.retry.on.join(", ")) };
        let _ = writeln!(out, "on failure {}{on}", why.retry.then);
    }
    if !why.draws.is_empty() {
        let draws: Vec<String> = why.draws.iter().map(|word| format!("{word:#x}")).collect();
        let _ = writeln!(out, "draws      {}", draws.join(", "));
    }
    out
}
