//! From sources to specs.

use crate::batch::Batch;
use crate::dialect::{Dialect, Shape, recognise, registry_of};
use crate::effective::Origin;
use crate::envoy::{self, Names, Rules, assignment};
use crate::error::{ConfigError, Fault, Result};
use crate::front::{self, Place};
use crate::instances::{self, ListOptions};
use crate::istio;
use crate::lint::{self, Findings};
use crate::print::yaml;
use crate::read::{At, Doc, Fields, Sink};
use crate::report::LoadReport;
use crate::short;
use nexthop_engine::spec::{Endpoints, Specs};
use std::cell::RefCell;

/// One text to read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name in messages, usually a path.
    pub name: &'a str,
    /// YAML or JSON, one document or a stream.
    pub text: &'a [u8],
    /// What it holds; [`Dialect::Auto`] decides by keys.
    pub dialect: Dialect,
}

/// What sources gave together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// Ready for an engine.
    pub specs: Specs,
    /// Fields that were accepted and do nothing.
    pub report: LoadReport,
    /// What deserves a second look.
    pub findings: Findings,
    /// Where clusters and routes stand, in document order.
    pub origins: Vec<Origin>,
}

/// A bare assignment is for clusters that live elsewhere: names are legal, an address counts once.
pub(crate) const BARE: Rules = Rules { names: Names::Allowed, distinct: true };

const RESOURCES: Fields = Fields::of("DiscoveryResponse", &["resources"]).not_used(&[
    "version_info",
    "type_url",
    "nonce",
    "control_plane",
]);

const ITEMS: Fields = Fields::of("List", &["items"]);

/// Reads sources into one set of specs. Any fault refuses all of them.
///
/// # Errors
/// The first fault, with its place.
pub fn load(sources: &[Source<'_>]) -> std::result::Result<Loaded, ConfigError> {
    load_all(sources, Sink::default()).map_err(|error| *error)
}

/// The same with a report of every field: used, or absent and whose default acts.
///
/// # Errors
/// The first fault, with its place.
pub fn load_in_detail(sources: &[Source<'_>]) -> std::result::Result<Loaded, ConfigError> {
    load_all(sources, Sink { detail: true, ..Sink::default() }).map_err(|error| *error)
}

fn load_all(sources: &[Source<'_>], sink: Sink) -> Result<Loaded> {
    let sink = RefCell::new(sink);
    let mut batch = read_all(sources, &sink)?;
    let translation = batch.istio.translate(&sink)?;
    istio::hand_over(&translation, &mut batch, &sink)?;
    batch.finish(sink.into_inner())
}

fn read_all(sources: &[Source<'_>], sink: &RefCell<Sink>) -> Result<Batch> {
    let mut batch = Batch::default();
    for source in sources {
        let doc = Doc { file: source.name, sink, made: false };
        for node in documents(source)? {
            let root = At::root(&node, &doc);
            lint::repeated_keys(&root);
            document(&root, source.dialect, &mut batch)?;
        }
    }
    Ok(batch)
}

/// Istio's objects and instance lists in Envoy's form: a stream of YAML documents that [`load`] reads. What else the sources hold is
/// checked, and left out.
///
/// # Errors
/// The first fault, with its place; also sources without anything to translate.
pub fn translate(sources: &[Source<'_>]) -> std::result::Result<String, ConfigError> {
    let translated = || -> Result<String> {
        let sink = RefCell::new(Sink::default());
        let mut batch = read_all(sources, &sink)?;
        let translation = batch.istio.translate(&sink)?;
        istio::hand_over(&translation, &mut batch, &sink)?;
        let mut documents = translation.documents();
        for (name, seen, hosts, _) in batch.listed(&mut Vec::new())? {
            documents.push(match batch.is_known(&name) {
                true => instances::assignment(&name, &hosts, seen.place),
                false => instances::cluster(&name, &hosts, seen.place),
            });
        }
        batch.finish(sink.into_inner())?;
        if documents.is_empty() {
            let file = sources.first().map_or("", |source| source.name);
            let text =
                "there is nothing to translate: no Istio object with clusters or routes, no instance list";
            return Err(Fault::new(Place::new(1, 1), text.into()).in_file(file));
        }
        Ok(documents.iter().map(yaml).collect::<Vec<_>>().join("---\n"))
    };
    translated().map_err(|error| *error)
}

/// Reads a source that holds one bare `ClusterLoadAssignment`: its cluster's name and the hosts.
///
/// # Errors
/// The first fault, with its place.
pub fn load_assignment(source: &Source<'_>) -> std::result::Result<(String, Endpoints), ConfigError> {
    one_document(source, |at, _| {
        let typed = at.raw("@type").is_some();
        let at = if typed { at.as_typed() } else { at };
        assignment(&at, BARE)
    })
}

/// Reads a source that tells the hosts of one cluster, in any dialect: a `ClusterLoadAssignment` or an instance list.
/// `service` names the list to take when the source holds those of several services. With the hosts comes the name of
/// the cluster that an assignment is for.
///
/// # Errors
/// The first fault, with its place.
pub fn load_hosts(
    source: &Source<'_>,
    options: &ListOptions,
    service: &str,
) -> std::result::Result<(Option<String>, Endpoints), ConfigError> {
    one_document(source, |at, sink| {
        if at.node.items().is_some_and(<[_]>::is_empty) {
            // Consul and Spring answer so when a service has no instances.
            return Ok((None, Endpoints::default()));
        }
        let Some(dialect) = registry_of(&at, source.dialect) else {
            let typed = at.raw("@type").is_some();
            let at = if typed { at.as_typed() } else { at };
            return assignment(&at, BARE).map(|(name, endpoints)| (Some(name), endpoints));
        };
        let mut lists = instances::lists(&at, dialect, options)?;
        if lists.len() > 1 {
            let named = |list: &instances::List| list.service.as_deref() == Some(service);
            if !lists.iter().any(named) {
                let names = lists.iter().filter_map(|list| list.service.as_deref());
                return Err(at.unknown_name("service", service, names));
            }
            lists.retain(named);
        }
        let lists: Vec<&instances::List> = lists.iter().collect();
        let hosts = instances::endpoints(&lists, &mut sink.borrow_mut().report)?;
        Ok((None, hosts))
    })
}

fn one_document<T>(
    source: &Source<'_>,
    read: impl FnOnce(At<'_>, &RefCell<Sink>) -> Result<T>,
) -> std::result::Result<T, ConfigError> {
    let sink = RefCell::new(Sink::default());
    let doc = Doc { file: source.name, sink: &sink, made: false };
    let only = || {
        let nodes = documents(source)?;
        if let [_, second, ..] = nodes.as_slice() {
            return Err(At::root(second, &doc).fail("expected one document, found a second one"));
        }
        read(At::root(&nodes[0], &doc), &sink)
    };
    only().map_err(|error| *error)
}

/// The documents of a source, at least one.
fn documents<'s>(source: &Source<'s>) -> Result<Vec<front::Node<'s>>> {
    let nodes = front::parse(source.text).map_err(|fault| fault.in_file(source.name))?;
    if nodes.is_empty() {
        let fault = Fault::new(Place::new(1, 1), "the document is empty".into());
        return Err(fault.in_file(source.name));
    }
    Ok(nodes)
}

fn document(at: &At<'_>, dialect: Dialect, batch: &mut Batch) -> Result<()> {
    let shape = recognise(at, dialect)?;
    let at = &if at.raw("@type").is_some() { at.as_typed() } else { *at };
    match shape {
        Shape::Bootstrap => envoy::bootstrap(at, batch),
        Shape::Cluster => {
            let (spec, waits) = envoy::cluster(at)?;
            batch.add_cluster(at, spec, waits)
        }
        Shape::RouteConfiguration => {
            batch.add_table(at, envoy::route_configuration(at)?, false);
            Ok(())
        }
        Shape::Assignment => {
            let (name, endpoints) = assignment(at, BARE)?;
            batch.add_assignment(at, name, endpoints);
            Ok(())
        }
        Shape::Listener => envoy::listener(at, batch),
        Shape::Resources => {
            at.message(&RESOURCES)?.each("resources", |item| nested(&item, dialect, batch))?;
            Ok(())
        }
        Shape::Instances(dialect) => {
            let lists = instances::lists(at, dialect, &ListOptions::default())?;
            batch.add_lists(at, lists);
            Ok(())
        }
        Shape::Istio => batch.istio.read(at),
        Shape::Short => short::document(at, batch),
        Shape::Items => {
            let list = at.object(&ITEMS, |_, _| {})?;
            list.each("items", |item| nested(&item, dialect, batch))?;
            Ok(())
        }
        Shape::List => {
            let mut items = at.items()?.peekable();
            if items.peek().is_none() {
                let text = "an empty list holds no documents; `clusters: []` says that there are no clusters";
                return Err(at.fail(text));
            }
            items.try_for_each(|item| nested(&item, dialect, batch))
        }
    }
}

/// An item of a list of documents, which is none itself.
fn nested(at: &At<'_>, dialect: Dialect, batch: &mut Batch) -> Result<()> {
    if at.is_list() {
        return Err(at.expected("a document"));
    }
    document(at, dialect, batch)
}
