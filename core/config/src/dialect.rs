//! Which kind of document something is. Keys decide, never file names.

use crate::envoy::{SHORT_KEYS, like_cluster_field};
use crate::error::Result;
use crate::front::Node;
use crate::read::{At, is_spelling};

/// A family of documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// Decided by the document's keys.
    #[default]
    Auto,
    /// Envoy's messages.
    Envoy,
    /// nexthop's own short form.
    Nexthop,
    /// Istio's objects.
    Istio,
    /// Kubernetes' EndpointSlices.
    Kubernetes,
    /// Nacos' instance lists.
    Nacos,
    /// Consul's health lists.
    Consul,
    /// Eureka's applications.
    Eureka,
    /// Spring's lists of service instances.
    Spring,
}

impl Dialect {
    const ALL: [(&'static str, Self, &'static str); 9] = [
        ("auto", Self::Auto, ""),
        ("envoy", Self::Envoy, "an Envoy document"),
        ("nexthop", Self::Nexthop, "a short-form document"),
        ("istio", Self::Istio, "an Istio document"),
        ("kubernetes", Self::Kubernetes, "a Kubernetes document"),
        ("nacos", Self::Nacos, "a Nacos document"),
        ("consul", Self::Consul, "a Consul document"),
        ("eureka", Self::Eureka, "a Eureka document"),
        ("spring", Self::Spring, "a Spring document"),
    ];

    /// The dialect of that name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let named = Self::ALL.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
        named.map(|&(_, dialect, _)| dialect)
    }

    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|(name, ..)| *name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, dialect, _)| *dialect == self).map_or("auto", |(name, ..)| name)
    }

    /// Whether its documents are instance lists.
    pub(crate) fn is_registry(self) -> bool {
        matches!(self, Self::Kubernetes | Self::Nacos | Self::Consul | Self::Eureka | Self::Spring)
    }

    fn describe(self) -> &'static str {
        Self::ALL.iter().find(|(_, dialect, _)| *dialect == self).map_or("", |(.., text)| text)
    }
}

/// How a document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Bootstrap,
    Cluster,
    RouteConfiguration,
    Assignment,
    Listener,
    /// A discovery response: `resources` of typed messages.
    Resources,
    /// `clusters` and `routes` at the top.
    Short,
    /// An object of Istio, or a context for them.
    Istio,
    /// An instance list of a registry.
    Instances(Dialect),
    /// A list of documents.
    List,
    /// A list of Kubernetes' objects, under `items`.
    Items,
}

const LOOKED_FOR: &str = "static_resources, virtual_hosts, cluster_name with endpoints, name with fields of a \
     cluster, resources (Envoy); clusters, routes (short form); apiVersion (Istio, Kubernetes); hosts with ip \
     (Nacos); Node with Service (Consul); applications (Eureka); host with port (Spring)";

/// Keys by which an instance of Nacos is known.
const NACOS_INSTANCE: &[&str] = &["ip", "port", "instanceId", "healthy", "enabled", "ephemeral"];
/// What may stand beside an empty list of Nacos.
const NACOS_ANSWER: &[&str] = &["name", "groupName", "hosts", "checksum", "allIPs", "valid", "dom", "env"];

const BOOTSTRAP_KEYS: &[&str] =
    &["static_resources", "dynamic_resources", "layered_runtime", "cluster_manager", "admin", "node"];
const SHORT_DOCUMENT_KEYS: &[&str] = &["clusters", "routes", "nexthop"];

/// Recognises a document and checks that it is of the wanted dialect.
pub(crate) fn recognise(at: &At<'_>, wanted: Dialect) -> Result<Shape> {
    let (dialect, shape) = match foreign(at.node) {
        Some(Dialect::Istio | Dialect::Kubernetes) if at.is_list() => return Ok(Shape::List),
        Some(Dialect::Istio) => (Dialect::Istio, Shape::Istio),
        Some(Dialect::Kubernetes) if is_kind(at.node, "List") => return Ok(Shape::Items),
        // Istio's rules are about services; of them alone nothing follows.
        Some(Dialect::Kubernetes) if is_kind(at.node, "Service") => (Dialect::Kubernetes, Shape::Istio),
        Some(dialect) => (dialect, Shape::Instances(dialect)),
        // What shows no dialect may still be what was announced: an empty list, for one.
        None if wanted.is_registry() => (wanted, Shape::Instances(wanted)),
        None if at.is_list() => return Ok(Shape::List),
        None if !at.is_map() => return Err(at.expected("a mapping or a list of clusters")),
        None => native(at)?,
    };
    let service = dialect == Dialect::Kubernetes && shape == Shape::Istio && wanted == Dialect::Istio;
    if wanted == Dialect::Auto || wanted == dialect || service {
        return Ok(shape);
    }
    Err(at.fail(format!("{} was announced, recognised as {}", wanted.describe(), dialect.describe())))
}

/// The registry whose instance list a document is; `None` = none of them.
pub(crate) fn registry_of(at: &At<'_>, wanted: Dialect) -> Option<Dialect> {
    match foreign(at.node) {
        Some(dialect) => dialect.is_registry().then_some(dialect),
        None => wanted.is_registry().then_some(wanted),
    }
}

/// Among Envoy's messages and the short form.
fn native(at: &At<'_>) -> Result<(Dialect, Shape)> {
    if at.raw("@type").is_some() {
        return typed(at).map(|shape| (Dialect::Envoy, shape));
    }
    let has = |names: &[&str]| has_any(at.node, names);
    let mut shapes = Vec::new();
    if has(BOOTSTRAP_KEYS) {
        shapes.push((Dialect::Envoy, Shape::Bootstrap));
    }
    if has(&["virtual_hosts"]) {
        shapes.push((Dialect::Envoy, Shape::RouteConfiguration));
    }
    if has(&["cluster_name"]) || (has(&["endpoints"]) && !has(&["name"])) {
        shapes.push((Dialect::Envoy, Shape::Assignment));
    }
    if has(&["resources"]) {
        shapes.push((Dialect::Envoy, Shape::Resources));
    }
    if has(&["clusters", "routes"]) {
        // Envoy clusters in a list are Envoy's, whoever writes the file.
        let listed = at.raw("clusters").is_some_and(|clusters| clusters.is_list()) && !has(&["routes"]);
        shapes.push((if listed { Dialect::Envoy } else { Dialect::Nexthop }, Shape::Short));
    }
    // Misspelt fields and keys of the short form pass here: the reader of clusters knows better what to say.
    if shapes.is_empty() && has(&["name"]) && (has(SHORT_KEYS) || is_like_cluster(at.node)) {
        shapes.push((Dialect::Envoy, Shape::Cluster));
    }
    if shapes.is_empty() && has(&["nexthop"]) {
        shapes.push((Dialect::Nexthop, Shape::Short));
    }
    match shapes.as_slice() {
        [one] => Ok(*one),
        [] => {
            let keys: Vec<&str> =
                at.node.entries().unwrap_or_default().iter().map(|e| &*e.key).take(8).collect();
            let mut error = at
                .fail(format!("not recognised from its keys [{}]; looked for {LOOKED_FOR}", keys.join(", ")));
            error.allowed = LOOKED_FOR.into();
            let known =
                BOOTSTRAP_KEYS.iter().chain(SHORT_DOCUMENT_KEYS).chain(&["virtual_hosts", "resources"]);
            error.nearest = keys.iter().find_map(|key| crate::read::nearest(key, known.clone().copied()));
            Err(error)
        }
        _ => {
            let mut error =
                at.fail(format!("its keys belong to several kinds of document; looked for {LOOKED_FOR}"));
            error.allowed = LOOKED_FOR.into();
            Err(error)
        }
    }
}

fn typed(at: &At<'_>) -> Result<Shape> {
    let types = [
        ("envoy.config.cluster.v3.Cluster", Shape::Cluster),
        ("envoy.config.route.v3.RouteConfiguration", Shape::RouteConfiguration),
        ("envoy.config.endpoint.v3.ClusterLoadAssignment", Shape::Assignment),
        ("envoy.config.listener.v3.Listener", Shape::Listener),
        ("envoy.config.bootstrap.v3.Bootstrap", Shape::Bootstrap),
    ];
    let name = at.type_name()?;
    match types.iter().find(|(known, _)| *known == name) {
        Some(&(_, shape)) => Ok(shape),
        None => Err(at.unknown_name("type", &name, types.iter().map(|(known, _)| *known))),
    }
}

/// Documents of other systems.
fn foreign(node: &Node<'_>) -> Option<Dialect> {
    // One entry with the keys is enough: registries list instances that lack what others have.
    let any = |node: &Node<'_>, names: &[&str]| -> bool {
        let has_all = |item: &Node<'_>| names.iter().all(|name| has_any(item, &[name]));
        node.items().is_some_and(|items| items.iter().any(has_all))
    };
    if let Some(items) = node.items() {
        let first = items.first();
        return if first.is_some_and(|item| has_any(item, &["apiVersion"]) && has_any(item, &["kind"])) {
            first.and_then(foreign)
        } else if any(node, &["Node", "Service"]) {
            Some(Dialect::Consul)
        } else if any(node, &["host", "port"]) {
            Some(Dialect::Spring)
        } else {
            None
        };
    }
    let value = |name: &str| Some(&node.entries()?.iter().rev().find(|entry| entry.key == name)?.value);
    if let Some(version) = value("apiVersion") {
        let istio = version.text().is_some_and(|text| text.contains("istio.io/"));
        return Some(if istio { Dialect::Istio } else { Dialect::Kubernetes });
    }
    if value("kind").and_then(Node::text).is_some_and(crate::istio::is_context) {
        return Some(Dialect::Istio);
    }
    if value("applications").is_some() || value("application").is_some_and(|app| has_any(app, &["instance"]))
    {
        return Some(Dialect::Eureka);
    }
    let data = value("data");
    let service =
        ["cacheMillis", "lastRefTime", "reachProtectionThreshold"].iter().any(|key| value(key).is_some());
    let lists = |node: &Node<'_>| NACOS_INSTANCE.iter().any(|key| any(node, &[key]));
    let empty = |hosts: &Node<'_>| {
        let entries = node.entries().unwrap_or_default();
        hosts.items().is_some_and(<[_]>::is_empty)
            && entries.iter().all(|entry| NACOS_ANSWER.contains(&&*entry.key))
    };
    let nacos = value("hosts").is_some_and(|hosts| lists(hosts) || service || empty(hosts))
        || data.is_some_and(|data| lists(data) || has_any(data, &["hosts"]) || value("code").is_some());
    nacos.then_some(Dialect::Nacos)
}

fn is_kind(node: &Node<'_>, kind: &str) -> bool {
    let entries = node.entries().unwrap_or_default();
    entries.iter().any(|entry| entry.key == "kind" && entry.value.text() == Some(kind))
}

fn has_any(node: &Node<'_>, names: &[&str]) -> bool {
    let entries = node.entries().unwrap_or_default();
    entries.iter().any(|entry| names.iter().any(|name| is_spelling(&entry.key, name)))
}

/// A name alone, or with something that looks like another field of a cluster.
fn is_like_cluster(node: &Node<'_>) -> bool {
    let entries = node.entries().unwrap_or_default();
    entries.len() == 1 || entries.iter().any(|entry| entry.key != "name" && like_cluster_field(&entry.key))
}
