//! Mechanisms beyond Envoy (`spec/nexthop-block.md`), each off unless a document asks for it: what they count, what
//! they read of answers, and what they remember of a host. `request::opt_in` and `request::steer` act on it.

pub(crate) mod classes;
pub(crate) mod half_open;
pub(crate) mod when;

mod counters;

pub use counters::OptCounter;
pub(crate) use counters::OptCounters;

use crate::spec::{ClusterOptions, HalfOpen};

/// What a cluster says about hosts to pass over; each with whether it only would.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steer {
    /// Hosts may be set aside.
    pub(crate) cools: Option<bool>,
    pub(crate) half_open: Option<HalfOpen>,
    pub(crate) below_limit: Option<bool>,
}

impl Steer {
    /// `None` when every host is as good as its policy says. `cools`: retry policies set hosts aside.
    pub(crate) fn of(options: &ClusterOptions, cools: bool) -> Option<Self> {
        let own = options.cool_down.as_ref().map(|cool| cool.dry_run);
        let steer = Self {
            cools: if cools { Some(false) } else { own },
            half_open: options.half_open,
            below_limit: options.prefer_below_limit.map(|prefer| prefer.dry_run),
        };
        (steer.cools.is_some() || steer.half_open.is_some() || steer.below_limit.is_some()).then_some(steer)
    }
}
