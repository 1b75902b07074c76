//! What rules are about: services with ports and hosts, and the mesh around them.

use super::locality::{LocalitySetting, ZoneSetting, locality_setting, zone_setting};
use super::policy::{Blocks, blocks};
use super::pool::{Keepalive, Upgrade, keepalive, upgrade};
use super::read::{Problems, labels, object, texts, word};
use super::retry::{Retry, retry};
use super::rule::Meta;
use super::spread::{Client, Member};
use crate::error::Result;
use crate::read::{At, Fields, Msg, Seen};
use std::collections::BTreeMap;
use std::time::Duration;

const SERVICE_ENTRY: Fields =
    Fields::of("ServiceEntry", &["hosts", "ports", "resolution", "endpoints", "workloadSelector"])
        .not_used(&["addresses", "location", "exportTo", "subjectAltNames"]);
const PORT: Fields = Fields::of("ports", &["number", "protocol", "name", "targetPort"]);
const SELECTOR: Fields = Fields::of("workloadSelector", &["labels"]);
const WORKLOAD: Fields =
    Fields::of("WorkloadEntry", &["address", "ports", "labels", "locality", "weight", "network"])
        .not_used(&["serviceAccount"]);
const CONTEXT: Fields = Fields::of("ClientContext", &["service", "mesh", "proxy", "endpoints"]);
const CONTEXT_SERVICE: Fields = Fields::of("service", &["host", "resolution", "ports"]);
const CONTEXT_PORT: Fields = Fields::of("ports", &["port", "protocol"]);
const CONTEXT_PROXY: Fields = Fields::of("proxy", &["locality", "labels"]);
const CONTEXT_ENDPOINT: Fields = Fields::of("endpoints", &["address", "locality", "labels", "weight"]);
const MESH: Fields = Fields::of(
    "mesh",
    &[
        "connectTimeout",
        "tcpKeepalive",
        "h2UpgradePolicy",
        "defaultTrafficPolicy",
        "defaultHttpRetryPolicy",
        "localityLbSetting",
        "zoneAwareLbSetting",
    ],
);
const DEFAULT_POLICY: Fields = Fields::of("defaultTrafficPolicy", &["connectionPool", "outlierDetection"]);

const RESOLUTIONS: &[(&str, i32)] = &[
    ("NONE", 0),
    ("STATIC", 1),
    ("DNS", 2),
    ("DNS_ROUND_ROBIN", 3),
    ("EDS", 4),
    ("STRICT_DNS", 5),
    ("LOGICAL_DNS", 6),
    ("ORIGINAL_DST", 7),
];

/// What is spoken on a port, as far as it shapes a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
    /// Found out per connection.
    Sniffed,
    /// TCP, TLS and others.
    Other,
}

impl Protocol {
    pub(super) fn of(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "http" | "http_proxy" => Self::Http1,
            "http2" | "grpc" | "grpc-web" | "kubernetes.io/h2c" => Self::Http2,
            "" | "unknown" | "unsupported" => Self::Sniffed,
            _ => Self::Other,
        }
    }

    pub(super) fn is_http(self) -> bool {
        matches!(self, Self::Http1 | Self::Http2)
    }
}

/// One port of a service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Port {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    /// 0 = the same.
    pub(crate) target: u32,
}

/// How hosts are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    Eds,
    StrictDns,
    LogicalDns,
    OriginalDst,
}

/// One host of a service before its port is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Endpoint {
    pub(crate) address: String,
    /// Its own port for all; else by the port's name.
    pub(crate) port: Option<u16>,
    pub(crate) ports: BTreeMap<String, u32>,
    pub(crate) locality: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) weight: u32,
}

impl Endpoint {
    pub(super) fn member(&self, port: &Port) -> Member {
        let target = if port.target == 0 { port.number } else { port.target };
        let by_name = self.ports.get(&port.name).copied().unwrap_or(target);
        Member {
            address: self.address.clone(),
            port: self.port.unwrap_or_else(|| u16::try_from(by_name).unwrap_or(0)),
            locality: self.locality.clone(),
            labels: self.labels.clone(),
            weight: self.weight,
        }
    }
}

/// One service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Service {
    pub(crate) seen: Seen,
    pub(crate) host: String,
    pub(crate) ports: Vec<Port>,
    pub(crate) resolution: Resolution,
    /// `None` = not known from documents.
    pub(crate) endpoints: Option<Vec<Endpoint>>,
    /// Workloads of this namespace with these labels are hosts, too.
    pub(crate) selector: Option<(String, BTreeMap<String, String>)>,
}

/// A `WorkloadEntry` and its namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Workload {
    pub(crate) namespace: String,
    pub(crate) endpoint: Endpoint,
}

/// Settings for all services.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mesh {
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) keepalive: Option<Keepalive>,
    pub(crate) upgrade: Upgrade,
    pub(crate) defaults: Blocks,
    pub(crate) retry: Option<Retry>,
    pub(crate) locality: Option<LocalitySetting>,
    pub(crate) zone: Option<ZoneSetting>,
}

/// A `ClientContext`: what Istio knows of the client from elsewhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Context {
    pub(crate) service: Option<Service>,
    pub(crate) mesh: Option<Mesh>,
    pub(crate) client: Option<Client>,
}

/// Reads a `ServiceEntry`: one service per host of it.
pub(super) fn service_entry(at: &At<'_>, meta: &Meta) -> Result<Vec<Service>> {
    let msg = object(*at, &SERVICE_ENTRY)?;
    let hosts = texts(&msg.need("hosts")?)?;
    let ports = msg.each("ports", |item| {
        let port = object(item, &PORT)?;
        Ok(Port {
            number: port.need("number")?.u32_in(1, 65_535)?,
            name: port.or("name", String::new(), |name| name.text())?,
            protocol: Protocol::of(&port.or("protocol", String::new(), |word| word.text())?),
            target: port.or("targetPort", 0, |n| n.u32_in(0, 65_535))?,
        })
    })?;
    let selector = match msg.get("workloadSelector") {
        Some(at) => {
            object(at, &SELECTOR)?.map("labels", labels)?.map(|wanted| (meta.namespace.clone(), wanted))
        }
        None => None,
    };
    let resolution = resolution(&msg, 0)?;
    let given = msg.each("endpoints", |item| endpoint(&item))?;
    Ok(hosts
        .into_iter()
        .map(|host| {
            let mut endpoints = given.clone();
            if endpoints.is_empty() && matches!(resolution, Resolution::StrictDns | Resolution::LogicalDns) {
                endpoints.push(Endpoint::named(&host));
            }
            Service {
                seen: at.seen(),
                host: meta.complete(&host),
                ports: ports.clone(),
                resolution,
                endpoints: Some(endpoints),
                selector: selector.clone(),
            }
        })
        .collect())
}

impl Endpoint {
    /// A host of that name, found by DNS.
    fn named(name: &str) -> Self {
        Self {
            address: name.to_owned(),
            port: None,
            ports: BTreeMap::new(),
            locality: String::new(),
            labels: BTreeMap::new(),
            weight: 1,
        }
    }
}

fn resolution(msg: &Msg<'_>, default: i32) -> Result<Resolution> {
    Ok(match msg.or("resolution", default, |at| word(at, RESOLUTIONS))? {
        2 | 5 => Resolution::StrictDns,
        3 | 6 => Resolution::LogicalDns,
        0 | 7 => Resolution::OriginalDst,
        _ => Resolution::Eds,
    })
}

/// Reads a `WorkloadEntry`, alone or in a service.
pub(super) fn endpoint(at: &At<'_>) -> Result<Endpoint> {
    let msg = object(*at, &WORKLOAD)?;
    let ports = match msg.get("ports") {
        Some(ports) => ports
            .entries()?
            .into_iter()
            .map(|(entry, port)| Ok((entry.key.to_string(), port.u32_in(1, 65_535)?)))
            .collect::<Result<_>>()?,
        None => BTreeMap::new(),
    };
    let mut labels = msg.or("labels", BTreeMap::new(), labels)?;
    if let Some(network) = msg.get("network") {
        labels.entry("topology.istio.io/network".into()).or_insert(network.text()?);
    }
    Ok(Endpoint {
        address: msg.need("address")?.filled()?,
        port: None,
        ports,
        locality: msg.or("locality", String::new(), |l| l.text())?,
        labels,
        weight: weight(&msg)?,
    })
}

/// A host's weight; 0 and absent are 1.
fn weight(msg: &Msg<'_>) -> Result<u32> {
    Ok(msg.or("weight", 1, |w| w.u32())?.max(1))
}

/// Reads a `ClientContext`.
pub(super) fn context(at: &At<'_>, problems: &Problems) -> Result<Context> {
    let msg = object(*at, &CONTEXT)?;
    let mut service = match msg.get("service") {
        Some(at) => Some(context_service(&at)?),
        None => None,
    };
    if let Some(list) = msg.get("endpoints") {
        let endpoints = list.items()?.map(|item| context_endpoint(&item)).collect::<Result<Vec<_>>>()?;
        service.get_or_insert_with(|| unnamed(at)).endpoints = Some(endpoints);
    }
    let client = match msg.get("proxy") {
        Some(at) => {
            let proxy = object(at, &CONTEXT_PROXY)?;
            Some(Client {
                locality: proxy.or("locality", String::new(), |l| l.text())?,
                labels: proxy.or("labels", BTreeMap::new(), labels)?,
            })
        }
        None => None,
    };
    Ok(Context { service, mesh: msg.map("mesh", |at| mesh(at, problems))?, client })
}

/// A service whose host is that of the only rule.
fn unnamed(at: &At<'_>) -> Service {
    Service {
        seen: at.seen(),
        host: String::new(),
        ports: Vec::new(),
        resolution: Resolution::Eds,
        endpoints: None,
        selector: None,
    }
}

fn context_service(at: &At<'_>) -> Result<Service> {
    let msg = object(*at, &CONTEXT_SERVICE)?;
    Ok(Service {
        host: msg.or("host", String::new(), |host| host.text())?,
        ports: msg.each("ports", |item| {
            let port = object(item, &CONTEXT_PORT)?;
            Ok(Port {
                number: port.need("port")?.u32_in(1, 65_535)?,
                name: String::new(),
                protocol: Protocol::of(&port.or("protocol", "HTTP".into(), |word| word.text())?),
                target: 0,
            })
        })?,
        resolution: resolution(&msg, 4)?,
        ..unnamed(at)
    })
}

fn context_endpoint(at: &At<'_>) -> Result<Endpoint> {
    let msg = object(*at, &CONTEXT_ENDPOINT)?;
    let address = msg.need("address")?;
    let text = address.filled()?;
    let split = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let Some((host, port)) = split.filter(|(host, _)| !host.contains(':') || host.starts_with('[')) else {
        return Err(address.expected("an address such as \"10.0.0.1:8080\" or \"[::1]:8080\""));
    };
    Ok(Endpoint {
        address: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: Some(port),
        ports: BTreeMap::new(),
        locality: msg.or("locality", String::new(), |l| l.text())?,
        labels: msg.or("labels", BTreeMap::new(), labels)?,
        weight: weight(&msg)?,
    })
}

fn mesh(at: &At<'_>, problems: &Problems) -> Result<Mesh> {
    let msg = object(*at, &MESH)?;
    let mut defaults = match msg.get("defaultTrafficPolicy") {
        Some(at) => blocks(&object(at, &DEFAULT_POLICY)?, problems, false)?,
        None => Blocks::default(),
    };
    if let Some(pool) = &mut defaults.pool {
        pool.block.from_mesh = true;
    }
    if let Some(outlier) = &mut defaults.outlier {
        outlier.block.from_mesh = true;
    }
    Ok(Mesh {
        connect_timeout: msg.map("connectTimeout", |d| problems.duration(d, false))?,
        keepalive: msg.map("tcpKeepalive", |at| keepalive(at, problems))?,
        upgrade: msg.or("h2UpgradePolicy", Upgrade::Default, upgrade)?,
        defaults,
        retry: msg.map("defaultHttpRetryPolicy", |at| retry(at, problems))?,
        locality: msg.map("localityLbSetting", |at| locality_setting(at, problems))?,
        zone: msg.map("zoneAwareLbSetting", |at| zone_setting(at, problems))?,
    })
}

/// A service known by nothing but its name.
pub(super) fn assumed(seen: &Seen, host: &str, ports: Vec<Port>) -> Service {
    Service {
        seen: seen.clone(),
        host: host.to_owned(),
        ports,
        resolution: Resolution::Eds,
        endpoints: None,
        selector: None,
    }
}
