//! Istio's objects: DestinationRule, VirtualService, ServiceEntry, WorkloadEntry, and a ClientContext that tells
//! what Istio knows of a client from elsewhere.
//!
//! Objects are read as they come and translated into Envoy's form when all are there; what follows reads that form.

mod balancer;
mod block_form;
mod cluster_form;
mod kube;
mod lints;
mod locality;
mod outlier;
mod policy;
mod pool;
mod read;
mod retry;
mod route;
mod route_form;
mod route_lints;
mod route_match;
mod rule;
mod service;
mod spread;
mod translation;
#[cfg(test)]
mod vectors;

pub(crate) use translation::Translation;

use crate::batch::Batch;
use crate::envoy;
use crate::error::Result;
use crate::front::{Entry, Kind, Node};
use crate::lint::Out;
use crate::read::{At, Doc, Fields, Seen, Sink};
use crate::report::{ReportEntry, What};
use read::{Problem, Problems, object};
use route::{Action, Virtual};
use route_form::Routing;
use rule::{Meta, Rule};
use service::{Mesh, Service, Workload};
use spread::Client;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use translation::View;

const OBJECT: Fields = Fields::of("an Istio object", &["apiVersion", "kind", "metadata", "spec", "status"]);

/// The port of a service of which nothing tells the ports.
const ASSUMED_PORT: u32 = 8080;

/// Kinds that are read.
const READ: [&str; 7] = [
    "DestinationRule",
    "VirtualService",
    "ServiceEntry",
    "WorkloadEntry",
    "Service",
    "ClientContext",
    "TestContext",
];

/// Kinds that are Istio's own, and their versions, which do not differ.
const NETWORKING: [&str; 4] = ["DestinationRule", "VirtualService", "ServiceEntry", "WorkloadEntry"];
const VERSIONS: [&str; 3] =
    ["networking.istio.io/v1", "networking.istio.io/v1beta1", "networking.istio.io/v1alpha3"];

/// Kinds of Istio that do not shape the choice of hosts.
const OTHER: [&str; 11] = [
    "Gateway",
    "Sidecar",
    "EnvoyFilter",
    "WorkloadGroup",
    "ProxyConfig",
    "PeerAuthentication",
    "RequestAuthentication",
    "AuthorizationPolicy",
    "Telemetry",
    "WasmPlugin",
    "IstioOperator",
];

/// All objects of a load.
#[derive(Debug, Default)]
pub(crate) struct World {
    rules: Vec<Rule>,
    virtuals: Vec<Virtual>,
    services: Vec<Service>,
    workloads: Vec<Workload>,
    mesh: Mesh,
    client: Client,
    problems: Problems,
}

/// Whether a document is a context of ours, which has no `apiVersion` of Istio.
pub(crate) fn is_context(kind: &str) -> bool {
    matches!(kind, "ClientContext" | "TestContext")
}

impl World {
    /// Reads one object.
    pub(crate) fn read(&mut self, at: &At<'_>) -> Result<()> {
        let msg = object(*at, &OBJECT)?;
        let kind_at = msg.need("kind")?;
        let kind = kind_at.text()?;
        if OTHER.contains(&kind.as_str()) {
            at.note(What::NotUsed, format!("not used here: a {kind} has no part in the choice of hosts"));
            return Ok(());
        }
        if !READ.contains(&kind.as_str()) {
            return Err(kind_at.unknown_name("kind", &kind, READ.into_iter().chain(OTHER)));
        }
        if let Some(version) = msg.get("apiVersion").filter(|_| NETWORKING.contains(&kind.as_str())) {
            let written = version.text()?;
            if !VERSIONS.contains(&written.as_str()) {
                return Err(version.unknown_name("apiVersion", &written, VERSIONS.into_iter()));
            }
        }
        let meta = Meta::of(&msg)?;
        let spec = msg.need("spec")?;
        let problems = &self.problems;
        match kind.as_str() {
            "DestinationRule" => self.rules.push(rule::rule(&spec, meta, problems)?),
            "VirtualService" => self.virtuals.push(route::virtual_service(&spec, meta, problems)?),
            "ServiceEntry" => self.services.extend(service::service_entry(&spec, &meta)?),
            "Service" => self.services.push(kube::service(&spec, &meta)?),
            "WorkloadEntry" => {
                let mut endpoint = service::endpoint(&spec)?;
                for (key, value) in &meta.labels {
                    endpoint.labels.entry(key.clone()).or_insert_with(|| value.clone());
                }
                self.workloads.push(Workload { namespace: meta.namespace, endpoint });
            }
            _ => {
                let context = service::context(&spec, problems)?;
                self.services.extend(context.service);
                self.mesh = context.mesh.unwrap_or_else(|| std::mem::take(&mut self.mesh));
                self.client = context.client.unwrap_or_else(|| std::mem::take(&mut self.client));
            }
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.virtuals.is_empty() && self.services.is_empty()
    }

    /// What validation found: errors and warnings.
    pub(crate) fn verdict(&self) -> (Vec<Problem>, Vec<Problem>) {
        (self.problems.errors.borrow().clone(), self.problems.warnings.borrow().clone())
    }

    /// Refuses objects with errors; notes warnings.
    fn validate(&self, sink: &RefCell<Sink>) -> Result<()> {
        let (errors, warnings) = self.verdict();
        if let Some((first, others)) = errors.split_first() {
            let mut text = format!("{} [{}]", first.text, first.code);
            if !others.is_empty() {
                let more = others.iter().map(|other| {
                    format!("{}:{}: {} [{}]", other.seen.file, other.seen.place.line, other.text, other.code)
                });
                text = format!("{text}; {} more: {}", others.len(), more.collect::<Vec<_>>().join("; "));
            }
            return Err(first.seen.fail(text));
        }
        for warning in warnings {
            let text = format!("{} [{}]", warning.text, warning.code);
            let report = &mut sink.borrow_mut().report;
            let here = |entry: &&mut ReportEntry| {
                let Seen { file, place, path } = &warning.seen;
                entry.what == What::NotUsed
                    && (&entry.file, entry.line, &entry.path) == (file, place.line, path)
            };
            // Of what does nothing it says why.
            match report.iter_mut().find(here) {
                Some(entry) => entry.text = text,
                None => report.push(warning.seen.entry(What::Used, text)),
            }
        }
        Ok(())
    }

    /// Translates all objects.
    pub(crate) fn translate(&mut self, sink: &RefCell<Sink>) -> Result<Translation> {
        if self.is_empty() {
            return Ok(Translation::default());
        }
        self.validate(sink)?;
        let rules = rule::merge(std::mem::take(&mut self.rules));
        let services = self.known_services(&rules, sink);
        let routing = Routing { services: &services, rules: &rules, mesh: &self.mesh, client: &self.client };
        let views = translation::views(&routing, &self.workloads);
        let mut taken = BTreeSet::new();
        let mut hosts = Vec::new();
        for of in &self.virtuals {
            match routing.virtual_host(of, &mut taken) {
                Some(host) => hosts.push(host),
                None => {
                    let text = "not used: all its hosts belong to a VirtualService before it";
                    sink.borrow_mut().report.push(of.seen.entry(What::NotUsed, text));
                }
            }
        }
        for service in &services {
            hosts.extend(routing.default_hosts(service, &mut taken));
        }
        let mut out = Out::default();
        self.lint(&routing, &views, &mut out);
        sink.borrow_mut().findings.append(&mut out.0);
        let first = self.virtuals.first().map(|of| &of.seen);
        let first = first.or_else(|| services.first().map(|service| &service.seen)).cloned();
        let routes = first.filter(|_| !hosts.is_empty());
        Ok(Translation {
            clusters: views.iter().map(|view| translation::made(view, &routing)).collect(),
            routes: routes.map(|seen| (seen.clone(), translation::table(seen.place, hosts))),
            #[cfg(test)]
            actions: self
                .virtuals
                .iter()
                .flat_map(|of| &of.routes)
                .filter_map(|route| routing.action(route))
                .collect(),
        })
    }

    fn lint(&self, routing: &Routing<'_>, views: &[View<'_>], out: &mut Out) {
        let routes = || self.virtuals.iter().flat_map(|of| &of.routes);
        for rule in routing.rules {
            let named = |subset: &str| {
                routes().any(|route| match &route.action {
                    Action::Route(to) => to.iter().any(|to| {
                        let of = rule::find(routing.rules, &to.host);
                        to.subset == subset && of.is_some_and(|of| of.host == rule.host)
                    }),
                    Action::Answer(..) | Action::Elsewhere => false,
                })
            };
            lints::rule(rule, !self.virtuals.is_empty(), named, out);
        }
        for view in views {
            lints::cluster(view, routing, out);
        }
        for route in routes() {
            route_lints::route(route, routing, views, out);
        }
    }

    /// The services that documents tell of, and those that rules and routes take for granted.
    fn known_services(&self, rules: &[Rule], sink: &RefCell<Sink>) -> Vec<Service> {
        let mut services: Vec<Service> = Vec::new();
        for service in &self.services {
            let mut service = service.clone();
            if service.host.is_empty() {
                service.host = rules.first().map(|rule| rule.host.clone()).unwrap_or_default();
            }
            if service.ports.is_empty() {
                service.ports = translation::ports(BTreeSet::new());
            }
            match services.iter_mut().find(|known| known.host == service.host) {
                Some(known) => *known = service,
                None => services.push(service),
            }
        }
        let mut wanted: BTreeMap<&str, (&Seen, BTreeSet<u32>)> = BTreeMap::new();
        for rule in rules {
            let ports = &mut wanted.entry(&rule.host).or_insert((&rule.seen, BTreeSet::new())).1;
            let own = rule.policy.iter().chain(rule.subsets.iter().filter_map(|s| s.policy.as_ref()));
            ports.extend(own.flat_map(|policy| &policy.ports).map(|entry| entry.number));
        }
        for route in self.virtuals.iter().flat_map(|of| &of.routes) {
            let Action::Route(destinations) = &route.action else { continue };
            for to in destinations {
                let ports = &mut wanted.entry(&to.host).or_insert((&to.seen, BTreeSet::new())).1;
                ports.extend(to.port);
            }
        }
        for (host, (seen, ports)) in wanted {
            if services.iter().any(|service| service.host == host) {
                continue;
            }
            if host.starts_with('*') {
                let fits = |service: &&Service| service.host.ends_with(&host[1..]);
                if !services.iter().any(|service| fits(&service)) {
                    let text = "not used: no document tells of a service with such a host";
                    sink.borrow_mut().report.push(seen.entry(What::NotUsed, text));
                }
                continue;
            }
            if ports.is_empty() {
                let text =
                    format!("no document tells the ports of {host}: one HTTP port {ASSUMED_PORT} is assumed");
                sink.borrow_mut().report.push(seen.entry(What::Default, text));
            }
            services.push(service::assumed(seen, host, translation::ports(ports)));
        }
        services
    }
}

/// Hands a translation to the reader of Envoy's form.
pub(crate) fn hand_over(translation: &Translation, batch: &mut Batch, sink: &RefCell<Sink>) -> Result<()> {
    for made in &translation.clusters {
        let doc = Doc { file: &made.seen.file, sink, made: true };
        let node = if made.original { without_balancing(&made.cluster) } else { made.cluster.clone() };
        let at = At::made(&made.name, &node, &doc);
        if made.original {
            let text = "requests to their original destination are not available in this version: the cluster has the \
                        hosts that code gives it";
            at.note(What::NotAvailable, text);
        }
        let (spec, waits) = envoy::cluster(&at)?;
        batch.add_cluster(&at, spec, waits)?;
        batch.add_destination(made.destination.clone());
        if let Some(node) = &made.assignment {
            let at = At::made(&made.name, node, &doc);
            let (name, endpoints) = envoy::assignment(&at, crate::load::BARE)?;
            batch.add_assignment(&at, name, endpoints);
        }
    }
    if let Some((seen, node)) = &translation.routes {
        let doc = Doc { file: &seen.file, sink, made: true };
        let at = At::made("istio", node, &doc);
        batch.add_table(&at, envoy::route_configuration(&at)?, false);
    }
    Ok(())
}

/// A cluster of original destinations as one whose hosts come later.
fn without_balancing(node: &Node<'static>) -> Node<'static> {
    let mut node = node.clone();
    if let Kind::Map(entries) = &mut node.kind {
        entries.retain(|entry: &Entry<'_>| entry.key != "lb_policy");
        for entry in entries.iter_mut().filter(|entry| entry.key == "type") {
            entry.value = crate::form::text(entry.place, "EDS");
        }
    }
    node
}
