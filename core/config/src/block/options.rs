//! What a cluster's block says of mechanisms that judge its hosts.

use super::parts::{dry_run, flag_or, one_or_many, positive};
use crate::envoy::header_name;
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use nexthop_engine::spec::{ClusterOptions, CoolDown, HalfOpen, OutcomeAt, PreferBelowLimit};

const PREFER: Fields = Fields::ours("prefer_below_limit", &["dry_run"]);
const HALF_OPEN: Fields = Fields::ours("half_open", &["probes", "interval", "max_interval", "dry_run"]);
const COOL_DOWN: Fields = Fields::ours("cool_down", &["on", "from_headers", "default", "max", "dry_run"]);

const OUTCOMES: &[(&str, i32)] = &[("headers", 0), ("end", 1)];

/// Each with `None` where the block says nothing; off is something.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    prefer_below_limit: Option<Option<PreferBelowLimit>>,
    half_open: Option<Option<HalfOpen>>,
    cool_down: Option<Option<CoolDown>>,
    outcome_at: Option<OutcomeAt>,
}

impl Options {
    pub(super) fn read(msg: &Msg<'_>) -> Result<Self> {
        let prefer =
            |at: &At<'_>| flag_or(at, &PREFER, |msg| Ok(PreferBelowLimit { dry_run: dry_run(msg)? }));
        let outcome = |at: &At<'_>| {
            Ok(if at.enumeration(OUTCOMES)? == 1 { OutcomeAt::End } else { OutcomeAt::Headers })
        };
        Ok(Self {
            prefer_below_limit: msg.map("prefer_below_limit", prefer)?,
            half_open: msg.map("half_open", |at| flag_or(at, &HALF_OPEN, half_open))?,
            cool_down: msg.map("cool_down", |at| flag_or(at, &COOL_DOWN, cool_down))?,
            outcome_at: msg.map("outcome_at", outcome)?,
        })
    }

    /// These, and `defaults` where they say nothing.
    pub(super) fn or(self, defaults: &Self) -> Self {
        Self {
            prefer_below_limit: self.prefer_below_limit.or(defaults.prefer_below_limit),
            half_open: self.half_open.or(defaults.half_open),
            cool_down: self.cool_down.or_else(|| defaults.cool_down.clone()),
            outcome_at: self.outcome_at.or(defaults.outcome_at),
        }
    }

    pub(super) fn is_half_open(&self) -> bool {
        self.half_open.is_some_and(|half_open| half_open.is_some())
    }

    /// What is said nowhere is off.
    pub(super) fn resolve(self) -> ClusterOptions {
        ClusterOptions {
            prefer_below_limit: self.prefer_below_limit.flatten(),
            half_open: self.half_open.flatten(),
            cool_down: self.cool_down.flatten(),
            outcome_at: self.outcome_at.unwrap_or_default(),
        }
    }
}

fn half_open(msg: &Msg<'_>) -> Result<HalfOpen> {
    let default = HalfOpen::default();
    let interval = msg.or("interval", default.interval, positive)?;
    let max_interval = msg.or("max_interval", default.max_interval.max(interval), positive)?;
    if let Some(max) = msg.get("max_interval").filter(|_| max_interval < interval) {
        return Err(max.expected(&format!("at least the interval ({} ms)", interval.as_millis())));
    }
    Ok(HalfOpen {
        probes: msg.or("probes", default.probes, |n| n.u32_in(1, 100))?,
        interval,
        max_interval,
        dry_run: dry_run(msg)?,
    })
}

fn cool_down(msg: &Msg<'_>) -> Result<CoolDown> {
    let default = CoolDown::default();
    let status = |at: &At<'_>| at.u32_in(400, 599).map(|status| status as u16);
    let max = msg.or("max", default.max, positive)?;
    let usual = msg.or("default", default.default.min(max), |at| at.short_millis())?;
    if let Some(at) = msg.get("default").filter(|_| usual > max) {
        return Err(at.expected(&format!("at most the maximum ({} ms)", max.as_millis())));
    }
    Ok(CoolDown {
        on: msg.or("on", default.on, |at| one_or_many(at, status))?,
        from_headers: match msg.get("from_headers") {
            Some(list) => list.items()?.map(|item| header_name(&item)).collect::<Result<_>>()?,
            None => default.from_headers,
        },
        default: usual,
        max,
        dry_run: dry_run(msg)?,
    })
}
