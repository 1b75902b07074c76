//! `VirtualService` (`spec/istio-destination-rule.md` section 11).

use super::read::{Problems, int32, object, texts};
use super::retry::{Retry, retry};
use super::route_match::{everything, redirect, reply, rewrite, route_match};
use super::rule::Meta;
use crate::error::Result;
use crate::form::Form;
use crate::front::Node;
use crate::read::{At, Fields, Seen};
use crate::report::What;
use std::collections::BTreeMap;
use std::time::Duration;

const VIRTUAL: Fields =
    Fields::of("VirtualService", &["hosts", "http"]).not_used(&["gateways", "exportTo", "tcp", "tls"]);
const ROUTE: Fields = Fields::of(
    "http",
    &["name", "match", "route", "redirect", "directResponse", "delegate", "rewrite", "timeout", "retries"],
)
.not_used(&["fault", "mirror", "mirrors", "mirrorPercent", "mirrorPercentage", "corsPolicy", "headers"]);
const WEIGHTED: Fields = Fields::of("route", &["destination", "weight"]).not_used(&["headers"]);
const DESTINATION: Fields = Fields::of("destination", &["host", "subset", "port"]);
const PORT: Fields = Fields::of("port", &["number"]);

/// One destination of a route.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Destination {
    pub(crate) seen: Seen,
    /// In full.
    pub(crate) host: String,
    /// Empty = none.
    pub(crate) subset: String,
    pub(crate) port: Option<u32>,
    pub(crate) weight: u32,
}

/// What a route does.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Route(Vec<Destination>),
    /// A field of Envoy's `Route` and its value.
    Answer(&'static str, Form),
    /// Routes of another object, which are not looked up.
    Elsewhere,
}

/// One entry of `http`.
#[derive(Clone, Debug)]
pub(crate) struct HttpRoute {
    pub(crate) seen: Seen,
    pub(crate) name: String,
    /// Envoy's matches, one route each, with the labels that a client must have.
    pub(crate) matches: Vec<(Form, BTreeMap<String, String>)>,
    pub(crate) action: Action,
    /// More fields of Envoy's `RouteAction`.
    pub(crate) rewrite: Vec<(&'static str, Node<'static>)>,
    pub(crate) timeout: Option<(Duration, Seen)>,
    pub(crate) retries: Option<Retry>,
    pub(crate) fault: Option<Seen>,
}

/// One `VirtualService`.
#[derive(Clone, Debug)]
pub(crate) struct Virtual {
    pub(crate) seen: Seen,
    pub(crate) meta: Meta,
    /// In full.
    pub(crate) hosts: Vec<String>,
    pub(crate) routes: Vec<HttpRoute>,
}

/// Reads a `VirtualService`.
pub(super) fn virtual_service(at: &At<'_>, meta: Meta, problems: &Problems) -> Result<Virtual> {
    let msg = object(*at, &VIRTUAL)?;
    let hosts = texts(&msg.need("hosts")?)?;
    Ok(Virtual {
        seen: at.seen(),
        hosts: hosts.iter().map(|host| meta.complete(host)).collect(),
        routes: msg.each("http", |item| http_route(&item, &meta, problems))?,
        meta,
    })
}

fn http_route(at: &At<'_>, meta: &Meta, problems: &Problems) -> Result<HttpRoute> {
    let msg = object(*at, &ROUTE)?;
    let action = if let Some(at) = msg.get("route") {
        Action::Route(destinations(&at, meta, problems)?)
    } else if let Some(at) = msg.get("redirect") {
        Action::Answer("redirect", redirect(&at)?)
    } else if let Some(at) = msg.get("directResponse") {
        Action::Answer("direct_response", reply(&at)?)
    } else if let Some(at) = msg.get("delegate") {
        at.note(What::NotAvailable, "routes of a delegate are not looked up: this route is left out");
        Action::Elsewhere
    } else {
        return Err(at.expected("a route with one of route, redirect, directResponse, delegate"));
    };
    let matches = match msg.get("match") {
        Some(list) => list.items()?.map(|item| route_match(&item)).collect::<Result<_>>()?,
        None => vec![(everything(at), BTreeMap::new())],
    };
    Ok(HttpRoute {
        seen: at.seen(),
        name: msg.or("name", String::new(), |name| name.text())?,
        matches,
        action,
        rewrite: msg.or("rewrite", Vec::new(), rewrite)?,
        timeout: msg.map("timeout", |d| Ok((problems.duration(d, false)?, d.seen())))?,
        retries: msg.map("retries", |at| retry(at, problems))?,
        fault: msg.get("fault").map(|at| at.seen()),
    })
}

fn destinations(at: &At<'_>, meta: &Meta, problems: &Problems) -> Result<Vec<Destination>> {
    let mut list = Vec::new();
    let mut sum = 0u64;
    for item in at.items()? {
        let msg = object(item, &WEIGHTED)?;
        let weight = msg.or("weight", 0, int32)?;
        if let Some(at) = msg.get("weight").filter(|_| weight < 0) {
            problems.error(
                &at,
                "E-WEIGHT-NEG",
                format!("expected a weight that is not negative, found {weight}"),
            );
        }
        let weight = u32::try_from(weight).unwrap_or(0);
        sum += u64::from(weight);
        let destination = msg.need("destination")?;
        let target = object(destination, &DESTINATION)?;
        list.push(Destination {
            seen: destination.seen(),
            host: meta.complete(&target.need("host")?.filled()?),
            subset: target.or("subset", String::new(), |name| name.text())?,
            port: match target.get("port") {
                Some(port) => object(port, &PORT)?.map("number", |n| n.u32_in(1, 65_535))?,
                None => None,
            },
            weight,
        });
    }
    if list.is_empty() {
        return Err(at.fail("a route needs at least one destination"));
    }
    if list.len() > 1 && sum == 0 {
        problems.error(at, "E-WEIGHT-ZERO", "the weights of the destinations add up to 0");
    }
    Ok(list)
}
