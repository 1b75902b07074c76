//! `trafficPolicy`, and what replaces what (`spec/istio-destination-rule.md` section 8).

use super::balancer::{Balancer, balancer};
use super::outlier::{Outlier, outlier};
use super::pool::{Pool, pool};
use super::read::{Problems, object};
use crate::error::Result;
use crate::read::{At, Fields, Msg, Seen};
use std::time::Duration;

const POLICY: Fields = Fields::of(
    "trafficPolicy",
    &["connectionPool", "loadBalancer", "outlierDetection", "portLevelSettings", "retryBudget"],
)
.not_used(&["tls", "tunnel", "proxyProtocol"]);
const PORT: Fields =
    Fields::of("portLevelSettings", &["port", "connectionPool", "loadBalancer", "outlierDetection"])
        .not_used(&["tls"]);
const NUMBER: Fields = Fields::of("port", &["number"]);
const BUDGET: Fields = Fields::of("retryBudget", &["percent", "minRetryConcurrency", "budgetInterval"]);

/// The blocks that a port entry may hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Blocks {
    pub(crate) pool: Option<Pool>,
    pub(crate) balancer: Option<Balancer>,
    pub(crate) outlier: Option<Outlier>,
    pub(crate) tls: Option<Seen>,
}

/// The settings that only whole policies have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Extras {
    pub(crate) budget: Option<Budget>,
    pub(crate) proxy_protocol: Option<Seen>,
    pub(crate) tunnel: Option<Seen>,
}

/// `retryBudget`, defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Budget {
    pub(crate) seen: Seen,
    pub(crate) percent: f64,
    pub(crate) min_concurrency: u32,
    pub(crate) interval: Option<Duration>,
}

/// One `trafficPolicy`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policy {
    pub(crate) seen: Seen,
    pub(crate) blocks: Blocks,
    pub(crate) extras: Extras,
    pub(crate) ports: Vec<PortEntry>,
}

/// One entry of `portLevelSettings`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PortEntry {
    pub(crate) seen: Seen,
    pub(crate) number: u32,
    pub(crate) blocks: Blocks,
}

/// What applies to one port.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Effective {
    pub(crate) blocks: Blocks,
    pub(crate) extras: Extras,
    /// The port entry that was taken in place of the policy.
    pub(crate) hit: Option<Seen>,
}

/// Reads a `trafficPolicy`. `top`: it is a rule's own, whose warnings Istio shows.
pub(super) fn policy(at: &At<'_>, problems: &Problems, top: bool) -> Result<Policy> {
    let msg = object(*at, &POLICY)?;
    if msg.names().next().is_none() {
        problems.error(at, "E-POLICY-EMPTY", "a traffic policy needs at least one of its blocks");
    }
    let blocks = blocks(&msg, problems, top)?;
    let fails_over = blocks.balancer.as_ref().is_some_and(|balancer| {
        let locality = balancer.locality.as_ref();
        locality.is_some_and(|l| !l.failover.is_empty() || !l.failover_priority.is_empty())
            || balancer
                .zone
                .as_ref()
                .is_some_and(|z| !z.failover.is_empty() || !z.failover_priority.is_empty())
    });
    if let Some(at) = msg.get("loadBalancer").filter(|_| top && fails_over && blocks.outlier.is_none()) {
        let text = "failover does nothing without outlierDetection beside it";
        problems.warn(&at, "W-FAILOVER-NO-OUTLIER", text);
    }
    Ok(Policy {
        seen: at.seen(),
        blocks,
        extras: Extras {
            budget: msg.map("retryBudget", budget)?,
            proxy_protocol: msg.get("proxyProtocol").map(|at| at.seen()),
            tunnel: msg.get("tunnel").map(|at| at.seen()),
        },
        ports: msg.each("portLevelSettings", |item| port_entry(&item, problems))?,
    })
}

/// Reads the two blocks that a mesh may have for all.
pub(super) fn blocks(msg: &Msg<'_>, problems: &Problems, top: bool) -> Result<Blocks> {
    Ok(Blocks {
        pool: msg.map("connectionPool", |at| pool(at, problems))?,
        balancer: msg.map("loadBalancer", |at| balancer(at, problems, top))?,
        outlier: msg.map("outlierDetection", |at| outlier(at, problems, top))?,
        tls: msg.get("tls").map(|at| at.seen()),
    })
}

fn port_entry(at: &At<'_>, problems: &Problems) -> Result<PortEntry> {
    let msg = object(*at, &PORT)?;
    let number = match msg.get("port") {
        Some(port) => object(port, &NUMBER)?.or("number", 0, |n| n.u32_in(0, 65_535))?,
        None => {
            problems.error(at, "E-PORT-NUMBER", "a port entry needs `port`");
            0
        }
    };
    let blocks = blocks(&msg, problems, false)?;
    if blocks == Blocks::default() {
        problems.error(at, "E-PORT-EMPTY", "a port entry needs at least one of its blocks");
    }
    Ok(PortEntry { seen: at.seen(), number, blocks })
}

fn budget(at: &At<'_>) -> Result<Budget> {
    let msg = object(*at, &BUDGET)?;
    let percent = msg.or("percent", 20.0, |p| p.f64())?;
    if let Some(at) = msg.get("percent").filter(|_| !(0.0..=100.0).contains(&percent)) {
        return Err(at.expected("a percentage from 0 to 100"));
    }
    let min = msg.or("minRetryConcurrency", 0, |n| n.u32())?;
    Ok(Budget {
        seen: at.seen(),
        percent,
        min_concurrency: if min == 0 { 3 } else { min },
        interval: msg.map("budgetInterval", Problems::span)?,
    })
}

impl Policy {
    /// The port's own entry alone, else the policy without its entries.
    pub(super) fn select(&self, port: u32) -> Effective {
        match self.ports.iter().find(|entry| entry.number == port) {
            Some(entry) => Effective {
                blocks: entry.blocks.clone(),
                extras: Extras::default(),
                hit: Some(entry.seen.clone()),
            },
            None => Effective { blocks: self.blocks.clone(), extras: self.extras.clone(), hit: None },
        }
    }
}

impl Effective {
    /// Takes the mesh's blocks where there is none.
    pub(super) fn fill(&mut self, mesh: &Blocks) {
        if self.blocks.pool.is_none() {
            self.blocks.pool.clone_from(&mesh.pool);
        }
        if self.blocks.outlier.is_none() {
            self.blocks.outlier.clone_from(&mesh.outlier);
        }
    }

    /// What applies to a subset with a policy of its own.
    pub(super) fn subset(&self, own: &Policy, port: u32) -> Self {
        let own = own.select(port);
        let hit = own.hit.is_some();
        let mut blocks = self.blocks.clone();
        if own.blocks.pool.is_some() || hit {
            blocks.pool = own.blocks.pool;
        }
        if own.blocks.balancer.is_some() || hit {
            blocks.balancer = own.blocks.balancer;
        }
        if own.blocks.outlier.is_some() || hit {
            blocks.outlier = own.blocks.outlier;
        }
        if own.blocks.tls.is_some() || hit {
            blocks.tls = own.blocks.tls;
        }
        let parent = self.extras.clone();
        Self {
            blocks,
            extras: Extras {
                budget: own.extras.budget.or(parent.budget),
                proxy_protocol: own.extras.proxy_protocol.or(parent.proxy_protocol),
                tunnel: own.extras.tunnel.or(parent.tunnel),
            },
            hit: own.hit,
        }
    }
}
