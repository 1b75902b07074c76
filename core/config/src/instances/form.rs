//! Hosts, and clusters that are known by their hosts alone, in Envoy's form.

use super::java::double_text;
use crate::form::{Form, flag, list, number, text};
use crate::front::{Kind, Node, Place};
use nexthop_engine::spec::{EndpointSpec, Endpoints, HealthStatus, LocalityEndpoints, Value};

/// A `ClusterLoadAssignment`.
pub(crate) fn assignment(name: &str, endpoints: &Endpoints, place: Place) -> Node<'static> {
    let groups = endpoints.localities.iter().map(|group| locality(group, place)).collect();
    Form::new(place).with("cluster_name", text(place, name)).with("endpoints", list(place, groups)).node()
}

/// A bootstrap with one cluster that has these hosts and Envoy's defaults.
pub(crate) fn cluster(name: &str, endpoints: &Endpoints, place: Place) -> Node<'static> {
    let mut hosts = endpoints.localities.iter().flat_map(|group| &group.endpoints);
    let kind = if hosts.any(|host| !host.hostname.is_empty()) { "STRICT_DNS" } else { "STATIC" };
    let cluster = Form::new(place)
        .with("name", text(place, name))
        .with("type", text(place, kind))
        .with("load_assignment", assignment(name, endpoints, place));
    let clusters = Form::new(place).with("clusters", list(place, vec![cluster.node()]));
    Form::new(place).with("static_resources", clusters.node()).node()
}

fn locality(group: &LocalityEndpoints, place: Place) -> Node<'static> {
    let mut form = Form::new(place);
    if let Some(locality) = &group.locality {
        let zone = Form::new(place).with("zone", text(place, locality.zone.as_str()));
        form.put("locality", zone.node());
    }
    let hosts = group.endpoints.iter().map(|host| endpoint(host, place)).collect();
    form.with("lb_endpoints", list(place, hosts)).node()
}

fn endpoint(host: &EndpointSpec, place: Place) -> Node<'static> {
    let address = host.address.rsplit_once(':').map_or(host.address.as_str(), |(address, _)| address);
    let socket = Form::new(place)
        .with("address", text(place, address.trim_start_matches('[').trim_end_matches(']')))
        .with("port_value", number(place, host.port));
    let address = Form::new(place).with("socket_address", socket.node());
    let health = match host.health {
        HealthStatus::Unhealthy => "UNHEALTHY",
        HealthStatus::Draining => "DRAINING",
        _ => "HEALTHY",
    };
    let mut spaces = Form::new(place);
    for (space, values) in &host.metadata.0 {
        spaces.put(space.clone(), fields(values.iter(), place));
    }
    let metadata = Form::new(place).with("filter_metadata", spaces.node());
    Form::new(place)
        .with("endpoint", Form::new(place).with("address", address.node()).node())
        .with("health_status", text(place, health))
        .with("load_balancing_weight", number(place, host.weight))
        .with("metadata", metadata.node())
        .node()
}

fn fields<'v>(values: impl Iterator<Item = (&'v String, &'v Value)>, place: Place) -> Node<'static> {
    let mut form = Form::new(place);
    for (key, value) in values {
        form.put(key.clone(), node(value, place));
    }
    form.node()
}

fn node(value: &Value, place: Place) -> Node<'static> {
    match value {
        Value::Null => Node { kind: Kind::Null, place },
        Value::Bool(value) => flag(place, *value),
        Value::Number(value) if value.is_finite() => number(place, *value),
        Value::Number(value) => text(place, double_text(*value)),
        Value::String(value) => text(place, value.as_str()),
        Value::List(items) => list(place, items.iter().map(|item| node(item, place)).collect()),
        Value::Struct(values) => fields(values.iter(), place),
    }
}
