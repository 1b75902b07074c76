//! Clusters of Istio that instance lists give hosts to.

use super::{Instance, List};
use std::collections::{BTreeMap, BTreeSet};

/// What a cluster made from Istio's objects holds: the instances of a host on a port, those with labels if it is a
/// subset (`spec/istio-destination-rule.md` section 2.6).
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) cluster: String,
    pub(crate) host: String,
    pub(crate) port: u32,
    /// Empty = none.
    pub(crate) port_name: String,
    /// The port that the instances listen on.
    pub(crate) target: u32,
    /// `None` = not a subset.
    pub(crate) labels: Option<BTreeMap<String, String>>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Destinations(Vec<Destination>);

impl Destinations {
    pub(crate) fn add(&mut self, destination: Destination) {
        self.0.push(destination);
    }

    /// The destinations of the cluster of that name: a subset alone, else its subsets with it.
    pub(crate) fn of_cluster(&self, name: &str) -> Vec<&Destination> {
        let Some(named) = self.0.iter().find(|own| own.cluster == name) else { return Vec::new() };
        if named.labels.is_some() {
            return vec![named];
        }
        self.0.iter().filter(|other| other.host == named.host && other.port == named.port).collect()
    }

    /// The hosts that a service's name may mean: the one of that name, else those of Kubernetes that it is short for.
    pub(crate) fn hosts(&self, name: &str, namespace: Option<&str>) -> BTreeSet<&str> {
        let name = name.strip_suffix('.').unwrap_or(name);
        let known = || self.0.iter().map(|own| own.host.as_str());
        if let Some(exact) = known().find(|host| *host == name) {
            return BTreeSet::from([exact]);
        }
        known().filter(|host| is_short_for(name, host, namespace)).collect()
    }

    /// The clusters of a host.
    pub(crate) fn of_host(&self, host: &str) -> Vec<&Destination> {
        self.0.iter().filter(|own| own.host == host).collect()
    }

    /// The part of a list that a destination holds. A slice tells its ports by name; else instances whose port is one
    /// of the host's belong to that port, others to all.
    pub(crate) fn part(&self, own: &Destination, list: &List) -> List {
        let others = || self.0.iter().filter(|other| other.host == own.host);
        let by_name = |of: &Destination| {
            let named = |(name, _): &&(String, u16)| !name.is_empty() && *name == of.port_name;
            list.ports.iter().find(named).map(|(_, port)| *port)
        };
        let names = others().any(|other| by_name(other).is_some());
        let fits = |instance: &Instance| {
            let port = u32::from(instance.port);
            let to_target = |of: &Destination| of.target == port;
            let to_number = |of: &Destination| of.port == port;
            if others().any(to_target) { to_target(own) } else { to_number(own) || !others().any(to_number) }
        };
        let carries = |instance: &Instance| {
            own.labels.iter().flatten().all(|(key, value)| instance.metadata.get(key) == Some(value))
        };
        let (protected, revision) = (list.protected, list.revision);
        let mut part = List { protected, revision, ..List::default() };
        for instance in list.hosts.iter().filter(|instance| carries(instance)) {
            match by_name(own) {
                Some(port) => part.hosts.push(Instance { port, ..instance.clone() }),
                None if !names && fits(instance) => part.hosts.push(instance.clone()),
                None => {}
            }
        }
        part
    }
}

/// Whether a name is short for a host `SERVICE.NAMESPACE.svc.cluster.local`.
fn is_short_for(name: &str, host: &str, namespace: Option<&str>) -> bool {
    let Some((service, of)) = host.strip_suffix(".svc.cluster.local").and_then(|rest| rest.split_once('.'))
    else {
        return false;
    };
    let full = name == format!("{service}.{of}") || name == format!("{service}.{of}.svc");
    !of.contains('.') && (full || (name == service && namespace.is_none_or(|wanted| wanted == of)))
}
