//! Every number in force for a cluster or route, and where it came from.

mod block;
mod cluster;
mod istio;
mod leads;
mod policy;
mod route;

use crate::load::Loaded;
use crate::report::{ReportEntry, What};
use nexthop_engine::spec::{
    ForwardSpec, RouteAction, RouteTableSpec, Specs, Value as Plain, VirtualHostSpec,
};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Where a cluster or route stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Name of the cluster, or `route:VHOST/NAME`.
    pub name: String,
    /// Name of the source.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Place inside the document.
    pub path: String,
    /// Made from another dialect, by translation.
    pub made: bool,
}

/// Rows of one thing.
struct Rows<'a> {
    loaded: &'a Loaded,
    origin: &'a Origin,
    overlay: &'a [(String, Plain)],
    /// Fields are looked for below this path.
    base: &'a str,
    rows: Vec<Value>,
}

/// A route, and what is around it.
struct Way<'a> {
    table: &'a RouteTableSpec,
    host: &'a VirtualHostSpec,
    label: String,
    action: &'a RouteAction,
}

/// What is in force for `name`: a cluster, `route:NAME` or `route:VHOST/NAME`. `overlay`: runtime values given apart
/// from documents. `None` = no such name. `loaded` comes from [`crate::load_in_detail`].
pub fn effective(loaded: &Loaded, name: &str, overlay: &[(String, Plain)]) -> Option<Value> {
    let specs = &loaded.specs;
    if let Some(cluster) = specs.clusters.iter().find(|cluster| cluster.name == name) {
        let mut rows = Rows::new(loaded, loaded.origins.iter().find(|origin| origin.name == name)?, overlay);
        rows.cluster(cluster);
        let own = cluster.retry.as_ref();
        if let Some(forward) = &cluster.defaults {
            rows.forward(forward, None);
            rows.retries(forward, None, own);
        } else if let Some((way, forward, origin)) = first_route(loaded, name) {
            let mut through = Rows::new(loaded, origin, overlay);
            through.forward(forward, Some(&way));
            // A retry policy of the route wins over the cluster's.
            let by_route = forward.retry.is_some() || way.host.retry.is_some();
            if by_route || own.is_none() {
                through.retries(forward, Some(&way), None);
            }
            through.gates(way.table, Some(cluster));
            rows.rows.extend(through.rows);
            if let Some(own) = own.filter(|_| !by_route) {
                rows.retry(own);
            }
        } else {
            if let Some(own) = own {
                rows.retry(own);
            }
            // Nothing in the documents says so.
            rows.base = "?";
            rows.forward(&ForwardSpec::default(), None);
            if own.is_none() {
                rows.retries(&ForwardSpec::default(), None, None);
            }
        }
        return Some(rows.told(name, "cluster"));
    }
    let wanted = name.strip_prefix("route:").unwrap_or(name);
    let way = routes(specs).find(|way| {
        way.label == wanted
            || way.label.split_once('/').is_some_and(|(_, route)| route == wanted && !route.is_empty())
    })?;
    let label = format!("route:{}", way.label);
    let mut rows = Rows::new(loaded, loaded.origins.iter().find(|origin| origin.name == label)?, overlay);
    match way.action {
        RouteAction::Direct { status, .. } => rows.put("direct_response.status", json!(status), &["status"]),
        RouteAction::Redirect(to) => rows.redirect(to),
        RouteAction::Forward(forward) => {
            rows.leads(forward);
            rows.forward(forward, Some(&way));
            rows.retries(forward, Some(&way), None);
            rows.gates(way.table, None);
        }
    }
    Some(rows.told(&label, "route"))
}

/// Routes in document order.
fn routes(specs: &Specs) -> impl Iterator<Item = Way<'_>> {
    let hosts =
        specs.route_tables.iter().flat_map(|table| table.virtual_hosts.iter().map(move |host| (table, host)));
    hosts.flat_map(|(table, host)| {
        host.routes.iter().map(move |route| Way {
            table,
            host,
            label: format!("{}/{}", host.name, route.name),
            action: &route.action,
        })
    })
}

/// The first route that leads to a cluster: it treats requests that name the cluster.
fn first_route<'a>(loaded: &'a Loaded, cluster: &str) -> Option<(Way<'a>, &'a ForwardSpec, &'a Origin)> {
    let mut number = 0;
    routes(&loaded.specs).find_map(|way| {
        number += 1;
        let RouteAction::Forward(forward) = way.action else { return None };
        let leads = forward.cluster.names().contains(&cluster);
        let mut origins = loaded.origins.iter().filter(|origin| origin.name.starts_with("route:"));
        if leads { Some((way, &**forward, origins.nth(number - 1)?)) } else { None }
    })
}

fn seconds(span: Duration) -> Value {
    span.as_secs_f64().into()
}

/// Seconds, `null` = none.
fn limit(span: Duration) -> Value {
    if span.is_zero() { Value::Null } else { seconds(span) }
}

impl<'a> Rows<'a> {
    fn new(loaded: &'a Loaded, origin: &'a Origin, overlay: &'a [(String, Plain)]) -> Self {
        Self { loaded, origin, overlay, base: &origin.path, rows: Vec::new() }
    }

    fn told(self, name: &str, kind: &str) -> Value {
        let origin = self.origin;
        json!({
            "name": name,
            "kind": kind,
            "file": origin.file,
            "line": origin.line,
            "path": origin.path,
            "values": self.rows,
        })
    }

    /// A field of the documents below this thing, by the end of its path without indices; an end with a dot before it is
    /// all of the path.
    fn given(&self, ends: &[&str]) -> Option<&'a ReportEntry> {
        let entries = &self.loaded.report.entries;
        ends.iter().find_map(|end| {
            entries.iter().find(|entry| {
                let at = entry.what == What::Used && entry.file == self.origin.file;
                at && below(&entry.path, self.base).is_some_and(|rest| rest == *end || ends_with(&rest, end))
            })
        })
    }

    fn put(&mut self, field: &str, value: Value, ends: &[&str]) {
        let given = self.given(ends).or_else(|| self.of_defaults(ends)).cloned();
        self.row(field, value, given.as_ref());
    }

    /// A field of a document's `nexthop.defaults`, which stand for what clusters do not say themselves.
    fn of_defaults(&self, ends: &[&str]) -> Option<&'a ReportEntry> {
        let mut ends = ends.iter().filter_map(|end| end.strip_prefix("nexthop."));
        ends.find_map(|end| {
            let path = format!("nexthop.defaults.{end}");
            let mut entries = self.loaded.report.entries.iter();
            entries.find(|entry| entry.what == What::Used && without_indices(&entry.path) == path)
        })
    }

    /// The path of a field of this thing; a document that is the thing has no path itself.
    fn path(&self, field: &str) -> String {
        let path = &self.origin.path;
        if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
    }

    /// What stands at exactly this place.
    fn at(&self, path: &str) -> Option<&'a ReportEntry> {
        let file = &self.origin.file;
        let mut entries = self.loaded.report.entries.iter();
        entries.find(|entry| entry.what == What::Used && entry.file == *file && entry.path == path)
    }

    /// A row whose value a runtime key replaces.
    fn put_runtime(&mut self, field: &str, value: Value, key: &str) {
        self.rows.push(json!({"field": field, "value": value, "from": "runtime", "path": key}));
    }

    /// The last runtime value of that key; none for an empty key.
    fn runtime(&self, key: &str) -> Option<&'a Plain> {
        let mut layers = self.loaded.specs.runtime.iter().chain(self.overlay).rev();
        layers.find(|(name, _)| !key.is_empty() && name == key).map(|(_, value)| value)
    }

    /// The number under a runtime key.
    fn runtime_number(&self, key: &str) -> Option<f64> {
        match self.runtime(key)? {
            Plain::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn row(&mut self, field: &str, value: Value, given: Option<&ReportEntry>) {
        let (given, istios) = match given.filter(|_| self.origin.made) {
            None => (given, false),
            Some(entry) => match self.istio(field, &value, entry) {
                istio::Whose::Field => (given, false),
                istio::Whose::Mesh(entry) => (Some(entry), false),
                istio::Whose::Default => (given, true),
            },
        };
        let mut row = Map::new();
        row.insert("field".into(), field.into());
        row.insert("value".into(), value);
        match given {
            Some(_) if istios => {
                row.insert("from".into(), "default".into());
                row.insert("whose".into(), "Istio".into());
            }
            Some(entry) => {
                row.insert("from".into(), if self.origin.made { "translation" } else { "document" }.into());
                row.insert("file".into(), entry.file.as_str().into());
                row.insert("line".into(), entry.line.into());
                row.insert("path".into(), entry.path.as_str().into());
            }
            None => {
                row.insert("from".into(), "default".into());
                row.insert(
                    "whose".into(),
                    if field.starts_with("nexthop.") { "nexthop" } else { "Envoy" }.into(),
                );
            }
        }
        self.rows.push(Value::Object(row));
    }
}

/// What of a path lies below `base`, with a dot before it and without the numbers of list items. Routes are no part of
/// their virtual host here.
fn below(path: &str, base: &str) -> Option<String> {
    let rest = path.strip_prefix(base)?;
    let rest = match rest.as_bytes().first()? {
        b'.' | b'[' => without_indices(rest),
        _ if base.is_empty() => format!(".{}", without_indices(rest)),
        _ => return None,
    };
    (!rest.starts_with(".routes.")).then_some(rest)
}

/// Whether a path's last parts are these.
fn ends_with(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'))
}

/// A path without the numbers of list items.
fn without_indices(path: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}
