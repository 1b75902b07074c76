//! Instance lists of registries (Nacos, Spring, Consul, Eureka, Kubernetes) become the hosts of a cluster
//! (`spec/gray-and-nacos.md` section 12). Fields that are not listed there are ignored, as every client of these
//! registries does.

mod consul;
mod destination;
mod eureka;
mod form;
mod hosts;
mod java;
mod kubernetes;
mod nacos;
mod spring;
#[cfg(test)]
mod vectors;

pub(crate) use destination::{Destination, Destinations};
pub(crate) use form::{assignment, cluster};
pub(crate) use hosts::endpoints;

use crate::dialect::Dialect;
use crate::error::Result;
use crate::read::{At, Msg, Seen};
use std::collections::BTreeMap;

/// Choices in reading an instance list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Kubernetes: the port of that name. Empty = the only one, else `http`, else the first.
    pub port_name: String,
    /// Consul: a check that warns makes unhealthy. Defaults to false.
    pub only_passing: bool,
    /// Eureka: `ipAddr` in place of `hostName`. Defaults to false.
    pub ip_address: bool,
}

/// What a registry says of an instance's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Healthy,
    Unhealthy,
    Draining,
}

/// One instance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) address: String,
    /// Where the address stands, or the instance when it has none.
    pub(crate) seen: Seen,
    pub(crate) port: u16,
    /// As the registry has it; above 0, perhaps infinite.
    pub(crate) weight: f64,
    pub(crate) health: Condition,
    pub(crate) zone: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) secure: bool,
}

/// An instance that is left out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Skipped {
    pub(crate) seen: Seen,
    pub(crate) id: String,
    pub(crate) reason: &'static str,
    /// The id is its own or shows its address.
    pub(crate) named: bool,
}

/// The instances of one service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct List {
    /// The service's name, when the list tells it.
    pub(crate) service: Option<String>,
    /// The service's namespace, when the list tells it.
    pub(crate) namespace: Option<String>,
    /// The ports of an EndpointSlice, by name.
    pub(crate) ports: Vec<(String, u16)>,
    pub(crate) hosts: Vec<Instance>,
    pub(crate) skipped: Vec<Skipped>,
    /// Nacos answered with all instances as healthy.
    pub(crate) protected: bool,
    /// When Nacos made the list, in milliseconds since 1970.
    pub(crate) revision: Option<i64>,
}

impl List {
    /// Adds the instance at a place, or says why not.
    fn push(&mut self, at: &At<'_>, instance: Instance, disabled: bool) {
        let reason = if disabled {
            "disabled"
        } else if instance.weight <= 0.0 {
            "zero_weight"
        } else if instance.address.is_empty() {
            "no_address"
        } else if instance.port == 0 {
            "no_port"
        } else {
            return self.hosts.push(instance);
        };
        let named = !instance.address.is_empty() || instance.id != id_or(String::new(), "", instance.port);
        self.skipped.push(Skipped { seen: at.seen(), id: instance.id, reason, named });
    }
}

/// Reads the lists of a document of that dialect: one per service.
pub(crate) fn lists(at: &At<'_>, dialect: Dialect, options: &ListOptions) -> Result<Vec<List>> {
    Ok(match dialect {
        Dialect::Nacos => vec![nacos::list(at)?],
        Dialect::Spring => vec![spring::list(at)?],
        Dialect::Consul => vec![consul::list(at, options)?],
        Dialect::Eureka => eureka::lists(at, options)?,
        _ => vec![kubernetes::list(at, options)?],
    })
}

/// The text of a scalar; empty for null and for what is none.
fn plain(at: &At<'_>) -> String {
    at.node.text().unwrap_or_default().to_owned()
}

/// The address under a name, and where it stands.
fn address(msg: &Msg<'_>, name: &'static str) -> (String, Seen) {
    match msg.get(name) {
        Some(at) => (plain(&at), at.seen()),
        None => (String::new(), msg.at.seen()),
    }
}

/// A mapping of texts; numbers and booleans are taken as written.
fn texts(at: &At<'_>) -> Result<BTreeMap<String, String>> {
    if at.node.is_null() {
        return Ok(BTreeMap::new());
    }
    Ok(at.entries()?.into_iter().map(|(entry, value)| (entry.key.to_string(), plain(&value))).collect())
}

/// A port; 0 = none.
fn port(at: &At<'_>) -> Result<u16> {
    Ok(u16::try_from(at.u32_in(0, 65_535)?).unwrap_or(0))
}

/// An id, or the address and port in its place.
fn id_or(id: String, address: &str, port: u16) -> String {
    if id.is_empty() { format!("{address}:{port}") } else { id }
}
