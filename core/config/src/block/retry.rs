//! The block of a retry policy.

use super::parts::{dry_run, flag_or, one_or_many, positive, word_or};
use crate::envoy::header_name;
use crate::error::Result;
use crate::read::{At, Fields};
use nexthop_engine::spec::{
    ClassMatch, ClassName, ClassNext, DeadlineFirst, FailureClass, Idempotency, Layers, RetryAfter,
    RetryOptions,
};

const RETRY: Fields =
    Fields::ours("nexthop", &["deadline_first", "retry_after", "idempotency", "layers", "classes"]);
const DEADLINE_FIRST: Fields = Fields::ours("deadline_first", &["least", "dry_run"]);
const RETRY_AFTER: Fields = Fields::ours("retry_after", &["max", "dry_run"]);
const IDEMPOTENCY: Fields = Fields::ours("idempotency", &["dry_run"]);
const LAYERS: Fields = Fields::ours("layers", &["header", "max_product", "dry_run"]);
const CLASS: Fields =
    Fields::ours("classes", &["when", "class", "same_host", "cool_down", "next", "dry_run"]);
const WHEN: Fields = Fields::ours("when", &["status", "header", "body_code"]);

const CLASSES: &[(&str, ClassName)] = &[
    ("rate_limited", ClassName::RateLimited),
    ("quota", ClassName::Quota),
    ("overloaded", ClassName::Overloaded),
    ("auth", ClassName::Auth),
    ("too_long", ClassName::TooLong),
    ("filtered", ClassName::Filtered),
    ("other", ClassName::Other),
];
const NEXT: &[(&str, ClassNext)] =
    &[("host", ClassNext::Host), ("cluster", ClassNext::Cluster), ("stop", ClassNext::Stop)];

/// Reads the block of a retry policy.
pub(crate) fn retry_block(at: &At<'_>) -> Result<RetryOptions> {
    let msg = at.message(&RETRY)?;
    Ok(RetryOptions {
        deadline_first: msg.or("deadline_first", None, |at| {
            flag_or(at, &DEADLINE_FIRST, |msg| {
                let least = msg.or("least", DeadlineFirst::default().least, |d| d.short_millis())?;
                Ok(DeadlineFirst { least, dry_run: dry_run(msg)? })
            })
        })?,
        retry_after: msg.or("retry_after", None, |at| {
            word_or(at, ["envoy", "honour"], &RETRY_AFTER, |msg| {
                let max = msg.or("max", RetryAfter::default().max, positive)?;
                Ok(RetryAfter { max, dry_run: dry_run(msg)? })
            })
        })?,
        idempotency: msg.or("idempotency", None, |at| {
            word_or(at, ["off", "guard"], &IDEMPOTENCY, |msg| Ok(Idempotency { dry_run: dry_run(msg)? }))
        })?,
        layers: msg.map("layers", |at| {
            let msg = at.message(&LAYERS)?;
            Ok(Layers {
                header: msg.or("header", "x-envoy-attempt-count".to_owned(), header_name)?,
                max_product: msg.need("max_product")?.u32_in(1, u32::MAX)?,
                dry_run: dry_run(&msg)?,
            })
        })?,
        classes: msg.each("classes", |item| class(&item))?,
    })
}

fn class(at: &At<'_>) -> Result<FailureClass> {
    let msg = at.message(&CLASS)?;
    let next = msg.map("next", |at| named(at, "place for the next attempt", NEXT))?;
    let same_host = msg.or("same_host", false, |flag| flag.bool())?;
    if let Some(wrong) = msg.get("same_host").filter(|_| same_host && next == Some(ClassNext::Stop)) {
        return Err(wrong.fail("nothing follows an answer whose next is `stop`"));
    }
    Ok(FailureClass {
        when: when(&msg.need("when")?)?,
        class: named(&msg.need("class")?, "class", CLASSES)?,
        same_host,
        cool_down: msg.map("cool_down", positive)?,
        next,
        dry_run: dry_run(&msg)?,
    })
}

fn when(at: &At<'_>) -> Result<ClassMatch> {
    let msg = at.message(&WHEN)?;
    let when = ClassMatch {
        statuses: msg.or("status", Vec::new(), |at| one_or_many(at, statuses))?,
        headers: msg.or("header", Vec::new(), headers)?,
        body_codes: msg.or("body_code", Vec::new(), |at| one_or_many(at, |at| at.filled()))?,
    };
    match when == ClassMatch::default() {
        true => Err(at.fail("a class needs a `status`, a `header` or a `body_code` to know its answers by")),
        false => Ok(when),
    }
}

/// A status, or a class of them such as `4xx`.
fn statuses(at: &At<'_>) -> Result<(u16, u16)> {
    if let Some(hundred @ (b'4' | b'5')) = at
        .node
        .text()
        .and_then(|text| text.strip_suffix("xx"))
        .filter(|digit| digit.len() == 1)
        .and_then(|digit| digit.bytes().next())
    {
        let from = u16::from(hundred - b'0') * 100;
        return Ok((from, from + 99));
    }
    let status =
        at.u32_in(400, 599).map_err(|_| at.expected("a status from 400 to 599, or such as `4xx`"))?;
    Ok((status as u16, status as u16))
}

/// A name that must be there, or names with the values they must have.
fn headers(at: &At<'_>) -> Result<Vec<(String, Option<String>)>> {
    if !at.is_map() {
        return one_or_many(at, |name| Ok((header_name(name)?, None)));
    }
    let mut headers = Vec::new();
    for (entry, value) in at.entries()? {
        let name = crate::front::Node {
            kind: crate::front::Kind::Scalar(entry.key.clone(), crate::front::Style::Quoted),
            place: entry.place,
        };
        let name = header_name(&at.key(&entry.key, &name))?;
        let value = if value.node.is_null() { None } else { Some(value.text()?) };
        headers.push((name, value));
    }
    Ok(headers)
}

fn named<T: Copy>(at: &At<'_>, kind: &str, known: &[(&'static str, T)]) -> Result<T> {
    let name = at.text()?;
    let found = known.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| at.unknown_name(kind, &name, known.iter().map(|(name, _)| *name)))
}
