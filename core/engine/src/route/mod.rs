//! Route tables: which route a request takes and what it changes in the request.

mod condition;
mod domains;
mod redirect;
mod rewrite;
#[cfg(test)]
mod tests;

use crate::headers::HeaderView;
use crate::matching::HeaderMatcher;
use crate::matching::rewrite::Rewrite;
use crate::random::{Random, Source};
use crate::spec::{
    ClusterSource, ForwardSpec, RouteAction, RouteSpec, RouteTableSpec, SpecError, VirtualHostSpec,
    WordSource,
};
use condition::Condition;
use domains::{Domains, without_port};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What of a request routing reads.
#[derive(Clone, Copy)]
pub struct RequestView<'a> {
    /// Empty = GET.
    pub method: &'a str,
    /// Empty = http.
    pub scheme: &'a str,
    /// `:authority`.
    pub authority: &'a str,
    /// With its query; empty = `/`.
    pub path: &'a str,
    /// Over a wanted set that holds [`RouteTables::wanted_headers`].
    pub headers: HeaderView<'a>,
}

impl<'a> RequestView<'a> {
    /// A pseudo header by its name. `host` is another name of `:authority`; `None` for ordinary headers.
    pub fn pseudo(&self, name: &str) -> Option<&'a str> {
        let or = |text: &'a str, default| if text.is_empty() { default } else { text };
        match name {
            ":authority" | "host" => Some(self.authority),
            ":path" => Some(or(self.path, "/")),
            ":method" => Some(or(self.method, "GET")),
            ":scheme" => Some(or(self.scheme, "http")),
            _ => None,
        }
    }

    /// Whether a header condition holds; values of a repeated header are tested one by one.
    pub fn satisfies(&self, header: &HeaderMatcher) -> bool {
        match self.pseudo(&header.name) {
            Some(value) => header.matches_any(std::iter::once(value.as_bytes())),
            None => header.matches_any(self.headers.values(&header.name)),
        }
    }
}

/// Whether the value of this header comes with the request itself, not in its header block.
pub fn is_pseudo(name: &str) -> bool {
    name.starts_with(':') || name == "host"
}

/// The path without query and fragment.
fn path_part(path: &str) -> &str {
    path.find(['?', '#']).map_or(path, |end| &path[..end])
}

/// Compiled route tables. Routes are numbered in document order over all tables.
#[derive(Debug, Default)]
pub struct RouteTables {
    specs: Box<[RouteTableSpec]>,
    tables: Box<[Table]>,
    routes: Box<[Route]>,
    names: BTreeMap<Box<str>, usize>,
}

#[derive(Debug)]
struct Table {
    domains: Domains,
    ignore_port: bool,
    /// Routes of each virtual host.
    hosts: Box<[Range<usize>]>,
}

#[derive(Debug)]
struct Route {
    table: u32,
    host: u32,
    /// Within its virtual host.
    number: u32,
    condition: Condition,
    substitution: Option<Rewrite>,
}

impl RouteTables {
    /// Only a regular expression can fail to compile.
    pub fn compile(specs: &[RouteTableSpec]) -> Result<Self, SpecError> {
        let (mut tables, mut routes) = (Vec::with_capacity(specs.len()), Vec::new());
        for (table, spec) in specs.iter().enumerate() {
            let mut domains = Domains::default();
            let mut hosts = Vec::with_capacity(spec.virtual_hosts.len());
            for (host, virtual_host) in spec.virtual_hosts.iter().enumerate() {
                for domain in &virtual_host.domains {
                    domains.insert(domain, number(host));
                }
                let first = routes.len();
                for (at, route) in virtual_host.routes.iter().enumerate() {
                    let substitution = match &route.action {
                        RouteAction::Forward(forward) => forward.regex_rewrite.as_ref(),
                        RouteAction::Redirect(to) => to.regex_rewrite.as_ref(),
                        RouteAction::Direct { .. } => None,
                    };
                    routes.push(Route {
                        table: number(table),
                        host: number(host),
                        number: number(at),
                        condition: Condition::compile(&route.matcher)?,
                        substitution: substitution.map(Rewrite::compile).transpose()?,
                    });
                }
                hosts.push(first..routes.len());
            }
            tables.push(Table {
                domains,
                ignore_port: spec.ignore_port_in_host_matching,
                hosts: hosts.into(),
            });
        }
        let mut compiled = Self {
            specs: specs.into(),
            tables: tables.into(),
            routes: routes.into(),
            names: BTreeMap::new(),
        };
        compiled.names = compiled.index_names();
        Ok(compiled)
    }

    /// A plain name beats the same text read as virtual host and name; of equal ones the first counts.
    fn index_names(&self) -> BTreeMap<Box<str>, usize> {
        let mut names = BTreeMap::new();
        for qualified in [false, true] {
            for index in 0..self.len() {
                let (route, host, _) = self.get(index);
                if !route.name.is_empty() {
                    let name =
                        if qualified { format!("{}/{}", host.name, route.name) } else { route.name.clone() };
                    names.entry(name.into()).or_insert(index);
                }
            }
        }
        names
    }

    /// The number of the route that the request takes. The first table with a virtual host for the authority
    /// decides alone, even when none of that host's routes matches.
    ///
    /// At most one word is drawn, and only when a route with a runtime fraction is reached; all fractions of the
    /// request read that same word, as in Envoy.
    pub fn find(&self, request: &RequestView<'_>, random: &mut Source) -> Option<usize> {
        self.find_drawn(request, &mut None, random)
    }

    /// As [`find`](Self::find); `word` keeps the drawn word, because the same one chooses among weighted clusters.
    pub fn find_drawn(
        &self,
        request: &RequestView<'_>,
        word: &mut Option<u64>,
        random: &mut Source,
    ) -> Option<usize> {
        let request =
            RequestView { path: if request.path.is_empty() { "/" } else { request.path }, ..*request };
        let authority = lower(request.authority);
        let routes = self.tables.iter().find_map(|table| {
            let host = if table.ignore_port { without_port(&authority) } else { &authority };
            table.domains.find(host).map(|found| table.hosts[found as usize].clone())
        })?;
        let path = path_part(request.path);
        let mut draw = || *word.get_or_insert_with(|| random.next_u64());
        let first = routes.start;
        let matched = self.routes[routes]
            .iter()
            .position(|route| route.condition.matches(&request, path, &mut draw))?;
        Some(first + matched)
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// The number of a route by `NAME` or `VHOST/NAME`.
    pub fn by_name(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// Lower-case names of the headers that matching and the choice of a cluster read, each once; no pseudo headers.
    pub fn wanted_headers(&self, visit: &mut dyn FnMut(&str)) {
        let mut names = BTreeSet::new();
        for (index, route) in self.routes.iter().enumerate() {
            names.extend(route.condition.headers.iter().map(|header| &*header.name));
            if route.condition.needs_content_type() {
                names.insert("content-type");
            }
            let Some(forward) = self.forward(index) else { continue };
            if let ClusterSource::Header(name) = &forward.cluster {
                names.insert(name);
            }
            if let WordSource::Header(name) = &forward.word {
                names.insert(name);
            }
        }
        names.into_iter().filter(|name| !is_pseudo(name)).for_each(visit);
    }

    /// The route, its virtual host and the name of its table.
    ///
    /// # Panics
    /// When there is no route of that number.
    pub fn get(&self, index: usize) -> (&RouteSpec, &VirtualHostSpec, &str) {
        let route = &self.routes[index];
        let table = &self.specs[route.table as usize];
        let host = &table.virtual_hosts[route.host as usize];
        (&host.routes[route.number as usize], host, &table.name)
    }

    fn forward(&self, index: usize) -> Option<&ForwardSpec> {
        match &self.get(index).0.action {
            RouteAction::Forward(forward) => Some(forward),
            RouteAction::Direct { .. } | RouteAction::Redirect(_) => None,
        }
    }

    /// Path and authority that the route gives to a request it forwards; `None` where nothing changes.
    ///
    /// # Panics
    /// When there is no route of that number.
    pub fn rewrite(&self, index: usize, request: &RequestView<'_>) -> (Option<String>, Option<String>) {
        let Some(forward) = self.forward(index) else { return (None, None) };
        let route = &self.routes[index];
        let path = if request.path.is_empty() { "/" } else { request.path };
        let path =
            rewrite::path(&forward.prefix_rewrite, route.substitution.as_ref(), &route.condition, path);
        let host = &forward.host_rewrite;
        let authority = (!host.is_empty() && host != request.authority).then(|| host.clone());
        (path, authority)
    }

    /// Where the route sends the client; `None` when it does not.
    ///
    /// # Panics
    /// When there is no route of that number.
    pub fn location(&self, index: usize, request: &RequestView<'_>) -> Option<String> {
        let RouteAction::Redirect(to) = &self.get(index).0.action else { return None };
        let route = &self.routes[index];
        Some(redirect::location(to, route.substitution.as_ref(), &route.condition, request))
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}
