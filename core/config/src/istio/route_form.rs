//! Virtual hosts and routes in Envoy's form.

use super::balancer::Hash;
use super::cluster_form::hash_policy;
use super::policy::Policy;
use super::retry::{Retry, retry_policy};
use super::route::{Action, Destination, HttpRoute, Virtual};
use super::rule::{Rule, find};
use super::service::{Mesh, Service};
use super::spread::Client;
use crate::form::{Form, duration, list, number, text};
use crate::front::{Node, Place};
use std::collections::BTreeSet;
use std::time::Duration;

/// What routes are made from.
#[derive(Clone, Copy)]
pub(super) struct Routing<'a> {
    pub(super) services: &'a [Service],
    pub(super) rules: &'a [Rule],
    pub(super) mesh: &'a Mesh,
    pub(super) client: &'a Client,
}

/// Name of a cluster.
pub(crate) fn cluster_name(port: u32, subset: &str, host: &str) -> String {
    format!("outbound|{port}|{subset}|{host}")
}

impl Routing<'_> {
    /// The port that a destination means: its own, else the service's first.
    pub(super) fn port_of(&self, destination: &Destination) -> u32 {
        let service = self.services.iter().find(|service| service.host == destination.host);
        let first = service.and_then(|service| service.ports.first()).map_or(0, |port| port.number);
        destination.port.unwrap_or(first)
    }

    pub(super) fn cluster_of(&self, destination: &Destination) -> String {
        cluster_name(self.port_of(destination), &destination.subset, &destination.host)
    }

    /// The consistent hash of a destination: of the subset's port entry, the subset, the rule's port entry, the rule.
    pub(super) fn hash_of(&self, destination: &Destination) -> Option<(&Hash, Place)> {
        let rule = find(self.rules, &destination.host)?;
        let subset = rule.subsets.iter().find(|subset| subset.name == destination.subset);
        let subset = subset.and_then(|subset| subset.policy.as_ref());
        let entry = |policy: Option<&'_ Policy>, port: u32| {
            let policy = policy?;
            policy.ports.iter().position(|entry| entry.number == port)
        };
        let port = self.port_of(destination);
        let blocks = [
            entry(subset, port).and_then(|at| Some(&subset?.ports.get(at)?.blocks)),
            subset.map(|policy| &policy.blocks),
            destination
                .port
                .and_then(|port| entry(rule.policy.as_ref(), port))
                .and_then(|at| Some(&rule.policy.as_ref()?.ports.get(at)?.blocks)),
            rule.policy.as_ref().map(|policy| &policy.blocks),
        ];
        let mut balancers = blocks.into_iter().flatten().filter_map(|blocks| blocks.balancer.as_ref());
        balancers.find_map(|balancer| Some((balancer.hash()?, balancer.block.place("consistentHash"))))
    }

    /// The whole virtual host of a `VirtualService`; `taken` are the domains that others have.
    pub(super) fn virtual_host(&self, of: &Virtual, taken: &mut BTreeSet<String>) -> Option<Node<'static>> {
        let place = of.seen.place;
        let mut domains = Vec::new();
        for host in &of.hosts {
            let service = self.services.iter().find(|service| service.host == *host);
            let ports = service.map_or(&[][..], |service| &service.ports);
            for name in names(host) {
                let by_port = ports.iter().map(|port| format!("{name}:{}", port.number));
                let all = std::iter::once(name.clone()).chain(by_port.filter(|_| name != "*"));
                domains.extend(all.filter(|domain| taken.insert(domain.clone())));
            }
        }
        if domains.is_empty() {
            return None;
        }
        let mut routes = Vec::new();
        for route in &of.routes {
            routes.extend(self.routes(route));
        }
        let name = format!("{}/{}", of.meta.namespace, of.meta.name);
        Some(host_form(place, name, domains, routes))
    }

    /// Virtual hosts of a service that no `VirtualService` routes to: one per port, by name and port.
    pub(super) fn default_hosts(
        &self,
        service: &Service,
        taken: &mut BTreeSet<String>,
    ) -> Vec<Node<'static>> {
        let place = service.seen.place;
        let mut hosts = Vec::new();
        for (at, port) in service.ports.iter().enumerate() {
            let mut domains = Vec::new();
            for name in names(&service.host) {
                if at == 0 {
                    domains.push(name.clone());
                }
                domains.push(format!("{name}:{}", port.number));
            }
            domains.retain(|domain| taken.insert(domain.clone()));
            if domains.is_empty() {
                continue;
            }
            let destination = Destination {
                seen: service.seen.clone(),
                host: service.host.clone(),
                subset: String::new(),
                port: Some(port.number),
                weight: 0,
            };
            let action = self.forward_form(&[destination], None, None, place).node();
            let matched = Form::new(place).with("prefix", text(place, "/")).node();
            let route = Form::new(place).with("match", matched).with("route", action).node();
            hosts.push(host_form(place, format!("{}:{}", service.host, port.number), domains, vec![route]));
        }
        hosts
    }

    fn routes(&self, route: &HttpRoute) -> Vec<Node<'static>> {
        let (field, action) = match &route.action {
            Action::Elsewhere => return Vec::new(),
            Action::Answer(field, form) => (*field, form.clone().node()),
            Action::Route(_) => match self.action(route) {
                Some(action) => ("route", action),
                None => return Vec::new(),
            },
        };
        let labels = &self.client.labels;
        let own = route.matches.iter().filter(|(_, wanted)| {
            labels.is_empty() || wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
        });
        own.map(|(matched, _)| {
            let place = route.seen.place;
            let mut form = Form::new(place);
            if !route.name.is_empty() {
                form.put("name", text(place, route.name.as_str()));
            }
            form.with("match", matched.clone().node()).with(field, action.clone()).node()
        })
        .collect()
    }

    /// Envoy's `RouteAction` of a route; `None` when it answers by itself.
    pub(super) fn action(&self, route: &HttpRoute) -> Option<Node<'static>> {
        let Action::Route(destinations) = &route.action else { return None };
        let timeout = route.timeout.as_ref().map(|(timeout, seen)| (*timeout, seen.place));
        let retries = route.retries.as_ref();
        let mut form = self.forward_form(destinations, timeout, retries, route.seen.place);
        for (field, value) in &route.rewrite {
            form.put(*field, value.clone());
        }
        Some(form.node())
    }

    fn forward_form(
        &self,
        destinations: &[Destination],
        timeout: Option<(Duration, Place)>,
        retries: Option<&Retry>,
        place: Place,
    ) -> Form {
        let mut form = Form::new(place);
        let used: Vec<&Destination> = match destinations {
            [only] => {
                form.put("cluster", text(only.seen.place, self.cluster_of(only)));
                vec![only]
            }
            many => {
                let used: Vec<&Destination> = many.iter().filter(|one| one.weight > 0).collect();
                let clusters = used.iter().map(|one| {
                    let place = one.seen.place;
                    Form::new(place)
                        .with("name", text(place, self.cluster_of(one)))
                        .with("weight", number(place, one.weight))
                        .node()
                });
                let weighted = Form::new(place).with("clusters", list(place, clusters.collect()));
                form.put("weighted_clusters", weighted.node());
                used
            }
        };
        let (timeout, timeout_at) = timeout.unwrap_or((Duration::ZERO, place));
        form.put("timeout", duration(timeout_at, timeout));
        let hashes: Vec<Node<'static>> = used
            .iter()
            .filter_map(|one| self.hash_of(one).and_then(|(hash, place)| hash_policy(hash, place)))
            .collect();
        let hashed = destinations.len() == 1 && !hashes.is_empty();
        if let Some(policy) = retry_policy(retries.or(self.mesh.retry.as_ref()), hashed, place) {
            form.put("retry_policy", policy);
        }
        if !hashes.is_empty() {
            form.put("hash_policy", list(place, hashes));
        }
        form.put("max_grpc_timeout", duration(timeout_at, timeout));
        form
    }
}

fn host_form(place: Place, name: String, domains: Vec<String>, routes: Vec<Node<'static>>) -> Node<'static> {
    let domains = domains.into_iter().map(|domain| text(place, domain)).collect();
    Form::new(place)
        .with("name", text(place, name))
        .with("domains", list(place, domains))
        .with("routes", list(place, routes))
        .node()
}

/// The names a host goes by: in a cluster of Kubernetes the short ones, too.
fn names(host: &str) -> Vec<String> {
    let host = host.to_ascii_lowercase();
    let mut names = vec![host.clone()];
    if let Some(short) = host.strip_suffix(".svc.cluster.local")
        && let Some((service, namespace)) = short.split_once('.')
        && service != "*"
    {
        names.push(format!("{short}.svc"));
        names.push(format!("{service}.{namespace}"));
        names.push(service.to_owned());
    }
    names
}
