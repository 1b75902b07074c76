//! All of Istio's objects together, in Envoy's form.

use super::cluster_form::Parts;
use super::policy::Effective;
use super::route_form::{Routing, cluster_name};
use super::rule::{Rule, Subset, find};
use super::service::{Port, Resolution, Service, Workload};
use super::spread::{Group, Member, spread};
use crate::form::{Form, flag, list, number, text};
use crate::front::{Node, Place};
use crate::instances::Destination;
use crate::read::Seen;
use std::collections::BTreeSet;

/// One cluster.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) seen: Seen,
    pub(crate) name: String,
    pub(crate) cluster: Node<'static>,
    /// Which instances of lists it holds.
    pub(crate) destination: Destination,
    /// `ClusterLoadAssignment`, when documents tell the hosts and they do not stand in the cluster itself.
    pub(crate) assignment: Option<Node<'static>>,
    /// Requests go where they were sent; no hosts are chosen.
    pub(crate) original: bool,
}

/// Clusters and routes in Envoy's form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Translation {
    pub(crate) clusters: Vec<Made>,
    /// `RouteConfiguration` and where its first part stands.
    pub(crate) routes: Option<(Seen, Node<'static>)>,
    /// `RouteAction` of each HTTP route that leads to clusters, in order.
    #[cfg(test)]
    pub(crate) actions: Vec<Node<'static>>,
}

impl Translation {
    /// The documents: a bootstrap with the clusters, an assignment per cluster with known hosts, the routes.
    pub(crate) fn documents(&self) -> Vec<Node<'static>> {
        let place = Place::new(1, 1);
        let mut documents = Vec::new();
        if !self.clusters.is_empty() {
            let clusters = self.clusters.iter().map(|made| made.cluster.clone()).collect();
            let resources = Form::new(place).with("clusters", list(place, clusters));
            documents.push(Form::new(place).with("static_resources", resources.node()).node());
        }
        documents.extend(self.clusters.iter().filter_map(|made| made.assignment.clone()));
        documents.extend(self.routes.iter().map(|(_, routes)| routes.clone()));
        documents
    }
}

/// One cluster with what it is made from.
pub(super) struct View<'a> {
    pub(super) service: &'a Service,
    pub(super) rule: Option<&'a Rule>,
    pub(super) subset: Option<&'a Subset>,
    pub(super) port: &'a Port,
    pub(super) name: String,
    /// What applies to the destination.
    pub(super) parent: Effective,
    pub(super) effective: Effective,
    pub(super) members: Option<Vec<Member>>,
    pub(super) passthrough: bool,
}

impl<'a> View<'a> {
    pub(super) fn parts(&'a self, routing: &Routing<'a>) -> Parts<'a> {
        Parts {
            name: &self.name,
            place: self.seen().place,
            port: self.port,
            resolution: self.service.resolution,
            effective: &self.effective,
            mesh: routing.mesh,
            passthrough: self.passthrough,
        }
    }

    /// Where the cluster comes from.
    pub(super) fn seen(&self) -> &'a Seen {
        let rule = self.rule.map_or(&self.service.seen, |rule| &rule.seen);
        self.subset.map_or(rule, |subset| &subset.seen)
    }
}

/// The clusters of every service, destination first.
pub(super) fn views<'a>(routing: &Routing<'a>, workloads: &[Workload]) -> Vec<View<'a>> {
    let mut views = Vec::new();
    for service in routing.services {
        let rule = find(routing.rules, &service.host);
        for port in &service.ports {
            let members = members(service, port, workloads);
            let policy = rule.and_then(|rule| rule.policy.as_ref());
            let mut parent = policy.map(|policy| policy.select(port.number)).unwrap_or_default();
            parent.fill(&routing.mesh.defaults);
            let destination = View {
                service,
                rule,
                subset: None,
                port,
                name: cluster_name(port.number, "", &service.host),
                effective: parent.clone(),
                parent: parent.clone(),
                members: members.clone(),
                passthrough: false,
            };
            let passthrough = destination.parts(routing).is_original_destination();
            views.push(destination);
            for subset in rule.map_or(&[][..], |rule| &rule.subsets) {
                let effective = match &subset.policy {
                    Some(own) => parent.subset(own, port.number),
                    None => parent.clone(),
                };
                let chosen = |member: &Member| {
                    subset.labels.iter().all(|(key, value)| member.labels.get(key) == Some(value))
                };
                views.push(View {
                    service,
                    rule,
                    subset: Some(subset),
                    port,
                    name: cluster_name(port.number, &subset.name, &service.host),
                    effective,
                    parent: parent.clone(),
                    members: members
                        .as_ref()
                        .map(|members| members.iter().filter(|m| chosen(m)).cloned().collect()),
                    passthrough,
                });
            }
        }
    }
    views
}

/// The hosts of a service on one port; `None` = documents do not tell.
fn members(service: &Service, port: &Port, workloads: &[Workload]) -> Option<Vec<Member>> {
    let own = service.endpoints.as_ref().map(|endpoints| endpoints.iter());
    let mut members: Vec<Member> = own.into_iter().flatten().map(|endpoint| endpoint.member(port)).collect();
    if let Some((namespace, wanted)) = &service.selector {
        let selected = workloads.iter().filter(|workload| {
            let labels = &workload.endpoint.labels;
            workload.namespace == *namespace
                && wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
        });
        members.extend(selected.map(|workload| workload.endpoint.member(port)));
    }
    (service.endpoints.is_some() || service.selector.is_some()).then_some(members)
}

/// One cluster in Envoy's form.
pub(super) fn made(view: &View<'_>, routing: &Routing<'_>) -> Made {
    let parts = view.parts(routing);
    let original = parts.is_original_destination();
    let mut form = parts.form();
    let mut assignment = None;
    if let Some(members) = view.members.as_ref().filter(|_| !original) {
        let members: Vec<&Member> = members.iter().collect();
        let outlier = view.effective.blocks.outlier.as_ref();
        let detects = outlier.is_some_and(|outlier| !outlier.block.from_mesh);
        let groups = spread(&members, parts.force(), routing.client, detects);
        let node = load_assignment(&view.name, &members, &groups, view.service.seen.place);
        match view.service.resolution {
            Resolution::Eds | Resolution::OriginalDst => assignment = Some(node),
            Resolution::StrictDns | Resolution::LogicalDns => form.put("load_assignment", node),
        }
    }
    let Port { number, name, target, .. } = view.port;
    let destination = Destination {
        cluster: view.name.clone(),
        host: view.service.host.clone(),
        port: *number,
        port_name: name.clone(),
        target: if *target == 0 { *number } else { *target },
        labels: view.subset.map(|subset| subset.labels.clone()),
    };
    let (seen, name) = (view.seen().clone(), view.name.clone());
    Made { seen, name, cluster: form.node(), destination, assignment, original }
}

fn load_assignment(name: &str, members: &[&Member], groups: &[Group], place: Place) -> Node<'static> {
    let endpoints = groups.iter().map(|group| {
        let mut locality = Form::new(place);
        let parts = super::locality::split(&group.locality);
        for (field, part) in ["region", "zone", "sub_zone"].into_iter().zip(parts) {
            if !part.is_empty() {
                locality.put(field, text(place, part));
            }
        }
        let hosts = group.members.iter().map(|&at| lb_endpoint(members[at], place)).collect();
        let mut form = Form::new(place)
            .with("locality", locality.node())
            .with("lb_endpoints", list(place, hosts))
            .with("load_balancing_weight", number(place, group.weight.max(1)));
        if group.priority > 0 {
            form.put("priority", number(place, group.priority));
        }
        form.node()
    });
    Form::new(place)
        .with("cluster_name", text(place, name))
        .with("endpoints", list(place, endpoints.collect()))
        .node()
}

fn lb_endpoint(member: &Member, place: Place) -> Node<'static> {
    let address = match member.address.strip_prefix("unix://") {
        Some(path) => Form::new(place).with("pipe", Form::new(place).with("path", text(place, path)).node()),
        None => {
            let socket = Form::new(place)
                .with("address", text(place, member.address.as_str()))
                .with("port_value", number(place, member.port));
            Form::new(place).with("socket_address", socket.node())
        }
    };
    let endpoint = Form::new(place).with("address", address.node());
    Form::new(place)
        .with("endpoint", endpoint.node())
        .with("load_balancing_weight", number(place, member.weight))
        .node()
}

/// The route table of all virtual hosts.
pub(super) fn table(place: Place, hosts: Vec<Node<'static>>) -> Node<'static> {
    Form::new(place)
        .with("name", text(place, "istio"))
        .with("virtual_hosts", list(place, hosts))
        .with("validate_clusters", flag(place, false))
        .node()
}

/// The ports of services that are known by rules and routes alone.
pub(super) fn ports(numbers: BTreeSet<u32>) -> Vec<Port> {
    let numbers = if numbers.is_empty() { BTreeSet::from([super::ASSUMED_PORT]) } else { numbers };
    let http =
        |number| Port { number, name: String::new(), protocol: super::service::Protocol::Http1, target: 0 };
    numbers.into_iter().map(http).collect()
}
