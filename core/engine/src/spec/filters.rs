//! Stages that narrow a cluster's hosts before its policy chooses (`spec/gray-and-nacos.md` section 8).

use super::PolicySpec;
use std::collections::BTreeMap;

/// `filters` of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterSpec {
    /// In order; at most [`FilterSpec::MOST_STAGES`].
    pub stages: Vec<StageSpec>,
    /// What the stages leave is used whatever its health. Defaults to false: only healthy and degraded hosts are.
    pub ignore_health: bool,
    /// How one of what is left is chosen.
    pub pick: FilterPick,
}

impl FilterSpec {
    /// Stages that one cluster may have.
    pub const MOST_STAGES: usize = 32;
}

/// How a host is chosen among what the stages leave.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterPick {
    /// As a policy does; localities count as one.
    Policy(PolicySpec),
    /// Spring's round robin: one position for all requests of a worker, whatever their stages leave.
    Rotation,
    /// The same over Spring's weighted list: each host as often as its metadata `weight` says.
    Interleave,
}

/// One stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageSpec {
    /// For counters, events and refusals.
    pub name: String,
    /// What it keeps.
    pub rule: StageRule,
    /// What happens when it keeps nobody.
    pub no_match: NoMatch,
    /// Hosts that are not healthy do not count as a match. Defaults to false.
    pub healthy_only: bool,
    /// A fallback is an event, not only counted. Defaults to true.
    pub warn: bool,
    /// The same for requests without a value.
    pub warn_absent: bool,
}

/// What a stage keeps.
#[derive(Clone, Debug, PartialEq)]
pub enum StageRule {
    /// Hosts that have the value of the request.
    Match(MatchRule),
    /// Hosts that a client reaches: without an IPv6 address of its own IPv4 hosts alone; with one, hosts that are no
    /// IPv4 ones or publish metadata `IPv6`, else the IPv4 ones.
    IpFamily {
        /// The client has an IPv6 address.
        ipv6: bool,
        /// IPv4 hosts are shown with the IPv6 address that they publish.
        rewrite: bool,
    },
    /// All but the host of the attempt before.
    AvoidPrevious,
    /// The host that this worker chose last, while it is there.
    SameInstance,
    /// A client's part of the list (Spring's subset).
    Part {
        /// Hosts of a part, at least 1.
        size: u32,
        /// Who the client is.
        id: String,
    },
    /// Everybody, with a warning: the client does not know its own cluster.
    CrossCluster,
}

/// A value of the request against one of the host.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchRule {
    /// Where requests have it: the first that is not empty counts.
    pub values: Vec<RequestValue>,
    /// Where hosts have it.
    pub key: HostKey,
    /// What a request without a value gets.
    pub absent: WhenAbsent,
    /// Without regard to case. Defaults to false.
    pub ignore_case: bool,
    /// The value `${HOSTNAME}` stands for the name of this machine, or for this one. Defaults to no.
    pub hostname: Option<Option<String>>,
    /// Values of requests, and what hosts call them; others stand for themselves.
    pub value_map: BTreeMap<String, String>,
}

/// Where a request has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestValue {
    /// First value of a header, lower case.
    Header(String),
    /// A cookie.
    Cookie(String),
    /// A text among the `metadata` that the caller gives with the request.
    Context(String),
    /// Always this.
    Fixed(String),
}

/// Where a host has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostKey {
    /// `envoy.lb` metadata.
    Metadata(String),
    /// The id of an instance list, else the address.
    Id,
    /// `ip:port`.
    Address,
    /// The zone of its locality.
    Zone,
}

/// What a request without a value gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenAbsent {
    /// The stage does nothing.
    #[default]
    Skip,
    /// Hosts whose value is absent or empty.
    RequireAbsent,
}

/// What happens when a stage keeps nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoMatch {
    /// What came in goes on.
    #[default]
    Input,
    /// Every host of the cluster goes on.
    All,
    /// No host: the request is refused.
    Fail,
}

impl FilterSpec {
    /// Request headers that stages read, lower case.
    pub fn wanted_headers(&self, add: &mut dyn FnMut(&str)) {
        let rules = self.stages.iter().filter_map(|stage| match &stage.rule {
            StageRule::Match(rule) => Some(rule),
            _ => None,
        });
        for value in rules.flat_map(|rule| &rule.values) {
            match value {
                RequestValue::Header(name) => add(name),
                RequestValue::Cookie(_) => add("cookie"),
                RequestValue::Context(_) | RequestValue::Fixed(_) => {}
            }
        }
    }

    /// IPv4 hosts are shown with the IPv6 address that they publish.
    pub fn rewrites(&self) -> bool {
        self.stages.iter().any(|stage| matches!(stage.rule, StageRule::IpFamily { rewrite: true, .. }))
    }
}
