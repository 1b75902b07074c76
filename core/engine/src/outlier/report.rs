//! Results of attempts: which counters they touch, and which thresholds that met (`spec/outlier-detection.md`
//! sections 4 and 5).

use super::Rules;
use crate::hosts::HostArena;
use crate::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Relaxed};

/// What was seen of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    ExtSuccess,
    ExtFailed,
    /// A success whose answer says that the host is degraded.
    ExtDegraded,
    LocalTimeout,
    LocalConnectFailed,
    /// A connection is there; another protocol runs on top.
    LocalConnectSuccess,
    /// The connection was the whole transaction. No HTTP request reports it.
    #[cfg_attr(not(test), expect(dead_code, reason = "connections without requests have no interface yet"))]
    LocalConnectSuccessFinal,
}

/// The detectors that fire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Met(u8);

impl Met {
    pub(crate) const NONE: Self = Self(0);
    pub(super) const GATEWAY: Self = Self(1);
    pub(super) const SERVER: Self = Self(2);
    pub(super) const LOCAL: Self = Self(4);
    pub(super) const DEGRADED: Self = Self(8);

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn when(self, yes: bool) -> Self {
        if yes { self } else { Self::NONE }
    }
}

/// Books a result that is given as an HTTP code (section 4.2, external path). `counted`: the host's `rq_success`
/// counts this answer.
#[inline]
pub(crate) fn external(rules: &Rules, hosts: &HostArena, slot: u32, code: u16, counted: bool) -> Met {
    if !(500..600).contains(&code) {
        // A load first: a healthy host's counters stay clean in every core's cache.
        if hosts.facts(slot).has_failed() {
            hosts.end_run(slot);
        }
        if !counted {
            hosts.passive(slot).external_good.fetch_add(1, Relaxed);
        }
        return Met::NONE;
    }
    external_failed(rules, hosts, slot, code, counted)
}

#[inline(never)]
fn external_failed(rules: &Rules, hosts: &HostArena, slot: u32, code: u16, counted: bool) -> Met {
    let (tally, passive) = (hosts.tally(slot), hosts.passive(slot));
    passive.external_bad.fetch_add(1, Relaxed);
    if counted {
        passive.external_good.fetch_sub(1, Relaxed);
    }
    let mut met = Met::NONE;
    if (502..=504).contains(&code) {
        let gateway = raise(&tally.consecutive_gateway, rules.spec.consecutive_gateway_failure);
        met = Met::GATEWAY.when(gateway);
    } else {
        tally.consecutive_gateway.store(0, Relaxed);
    }
    let server = raise(&tally.consecutive_5xx, rules.spec.consecutive_5xx);
    hosts.facts(slot).fails();
    met.and(Met::SERVER.when(server))
}

/// Compared for equality with what this very step made of the counter, so that of several threads exactly one meets
/// the threshold.
fn raise(counter: &AtomicU32, threshold: u32) -> bool {
    counter.fetch_add(1, AcqRel).wrapping_add(1) == threshold && threshold != 0
}

/// Books that the host did its own part (section 4.2, split mode).
#[inline]
pub(crate) fn connected(hosts: &HostArena, slot: u32) {
    let passive = hosts.passive(slot);
    passive.local_good.fetch_add(1, Relaxed);
    if passive.consecutive_local.load(Relaxed) != 0 {
        passive.consecutive_local.store(0, Relaxed);
    }
}

/// Books any result (section 4.2, both modes).
#[inline(never)]
pub(crate) fn tell(
    rules: &Rules,
    hosts: &HostArena,
    slot: u32,
    told: Told,
    code: Option<u16>,
    counted: bool,
) -> Met {
    let degraded = Met::DEGRADED.when(told == Told::ExtDegraded && rules.spec.detect_degraded_hosts);
    let code = if rules.spec.split_external_local_origin_errors {
        let passive = hosts.passive(slot);
        match told {
            Told::LocalConnectSuccess | Told::LocalConnectSuccessFinal => {
                connected(hosts, slot);
                return Met::NONE;
            }
            Told::LocalConnectFailed | Told::LocalTimeout => {
                passive.local_bad.fetch_add(1, Relaxed);
                let threshold = rules.spec.consecutive_local_origin_failure;
                return Met::LOCAL.when(raise(&passive.consecutive_local, threshold));
            }
            Told::ExtFailed => code.unwrap_or(503),
            Told::ExtSuccess | Told::ExtDegraded => code.unwrap_or(200),
        }
    } else {
        let implied = match told {
            Told::ExtSuccess | Told::LocalConnectSuccessFinal | Told::ExtDegraded => 200,
            Told::ExtFailed => 500,
            Told::LocalConnectFailed => 503,
            Told::LocalTimeout => 504,
            Told::LocalConnectSuccess if code.is_none() => return Met::NONE,
            Told::LocalConnectSuccess => 200,
        };
        code.unwrap_or(implied)
    };
    degraded.and(external(rules, hosts, slot, code, counted))
}
