//! `outlierDetection` (`spec/istio-destination-rule.md` section 5).

use super::read::{Block, Problems, int32, object};
use crate::error::Result;
use crate::read::{At, Fields};
use std::time::Duration;

const OUTLIER: Fields = Fields::of(
    "outlierDetection",
    &[
        "splitExternalLocalOriginErrors",
        "consecutiveLocalOriginFailures",
        "consecutiveGatewayErrors",
        "consecutive5xxErrors",
        "interval",
        "baseEjectionTime",
        "maxEjectionPercent",
        "minHealthPercent",
        "outlierDetectionHttpErrorCodes",
    ],
)
.not_used(&["consecutiveErrors"]);

/// One `outlierDetection`. Thresholds that may be 0 keep the difference between 0 and absent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outlier {
    pub(crate) block: Block,
    pub(crate) consecutive_errors: u32,
    pub(crate) split: bool,
    pub(crate) local_origin: Option<u32>,
    pub(crate) gateway: Option<u32>,
    pub(crate) five_xx: Option<u32>,
    pub(crate) interval: Option<Duration>,
    pub(crate) base: Option<Duration>,
    /// 0 = absent.
    pub(crate) max_percent: u32,
    pub(crate) min_health: u32,
    pub(crate) codes: Vec<u32>,
}

pub(super) fn outlier(at: &At<'_>, problems: &Problems, top: bool) -> Result<Outlier> {
    let msg = object(*at, &OUTLIER)?;
    let mut block = Block::new(at);
    for name in msg.names() {
        if let Some(at) = msg.get(name) {
            block.mark(name, &at);
        }
    }
    let number = |name| msg.map(name, |n| n.u32());
    let span = |name| msg.map(name, |d| problems.duration(d, false));
    let outlier = Outlier {
        consecutive_errors: u32::try_from(msg.or("consecutiveErrors", 0, int32)?).unwrap_or(0),
        split: msg.or("splitExternalLocalOriginErrors", false, |flag| flag.bool())?,
        local_origin: number("consecutiveLocalOriginFailures")?,
        gateway: number("consecutiveGatewayErrors")?,
        five_xx: number("consecutive5xxErrors")?,
        interval: span("interval")?,
        base: span("baseEjectionTime")?,
        max_percent: msg.or("maxEjectionPercent", 0, |p| percent(p, problems))?,
        min_health: msg.or("minHealthPercent", 0, |p| percent(p, problems))?,
        codes: msg.each("outlierDetectionHttpErrorCodes", |code| code.u32_in(100, 599))?,
        block,
    };
    if outlier.local_origin.is_some_and(|n| n > 0) && !outlier.split {
        let at = msg.need("consecutiveLocalOriginFailures")?;
        let text = "consecutiveLocalOriginFailures needs `splitExternalLocalOriginErrors: true`";
        problems.error(&at, "E-LOCAL-ORIGIN-NO-SPLIT", text);
    }
    if let Some(at) = msg.get("consecutiveErrors").filter(|_| top && outlier.consecutive_errors > 0) {
        problems.warn(&at, "W-CONSECUTIVE-ERRORS", "consecutiveErrors is ignored since Istio 1.7");
    }
    Ok(outlier)
}

fn percent(at: &At<'_>, problems: &Problems) -> Result<u32> {
    let number = int32(at)?;
    if !(0..=100).contains(&number) {
        problems.error(at, "E-PERCENT", format!("expected a percentage from 0 to 100, found {number}"));
    }
    Ok(u32::try_from(number).unwrap_or(0).min(100))
}
