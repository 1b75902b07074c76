//! One cluster in Envoy's form (`spec/istio-destination-rule.md` sections 2 to 7).

use super::balancer::{Algorithm, Balancer, Hash, HashKey, Table};
use super::block_form::{breakers, common_options, detector, error_matcher, http2_options};
use super::policy::Effective;
use super::pool::{Keepalive, Upgrade};
use super::service::{Mesh, Port, Protocol, Resolution};
use super::spread::Force;
use crate::form::{Form, duration, flag, list, number, percent, text, typed};
use crate::front::{Node, Place};
use std::time::Duration;

/// Envoy's key of the options of HTTP.
const OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// The panic threshold of services whose unhealthy hosts are known to clients.
const NO_PANIC: u32 = 0;

/// What a cluster is made from.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) name: &'a str,
    /// Where the service, rule or subset stands.
    pub(super) place: Place,
    pub(super) port: &'a Port,
    pub(super) resolution: Resolution,
    pub(super) effective: &'a Effective,
    pub(super) mesh: &'a Mesh,
    /// The destination's balancing is PASSTHROUGH, which no subset gets out of.
    pub(super) passthrough: bool,
}

impl Parts<'_> {
    pub(super) fn balancer(&self) -> Option<&Balancer> {
        self.effective.blocks.balancer.as_ref()
    }

    /// Requests go to the address they were sent to.
    pub(super) fn is_original_destination(&self) -> bool {
        self.passthrough
            || self.resolution == Resolution::OriginalDst
            || self.balancer().is_some_and(|b| b.algorithm == Algorithm::Passthrough)
    }

    /// Whether connections are HTTP/2 because a document says so.
    pub(super) fn is_http2(&self) -> bool {
        let pool = self.effective.blocks.pool.as_ref();
        if pool.is_some_and(|pool| pool.client_protocol) {
            return false;
        }
        let upgraded = match pool.map_or(Upgrade::Default, |pool| pool.upgrade) {
            Upgrade::Yes => true,
            Upgrade::No => false,
            Upgrade::Default => self.mesh.upgrade == Upgrade::Yes && self.port.protocol.is_http(),
        };
        upgraded || self.port.protocol == Protocol::Http2
    }

    /// The locality setting in force.
    pub(super) fn force(&self) -> Force<'_> {
        let own = self.balancer();
        let zone = own.and_then(|b| b.zone.as_ref());
        let locality = own.and_then(|b| b.locality.as_ref());
        match (zone, locality, &self.mesh.zone, &self.mesh.locality) {
            (Some(zone), ..) => Force::Zone(zone),
            (None, Some(locality), ..) => Force::Locality(locality),
            (None, None, Some(zone), _) => Force::Zone(zone),
            (None, None, None, Some(locality)) => Force::Locality(locality),
            (None, None, None, None) => Force::Default,
        }
    }

    /// The cluster without its hosts.
    pub(super) fn form(&self) -> Form {
        let place = self.place;
        let blocks = &self.effective.blocks;
        let original = self.is_original_destination();
        let kind = match self.resolution {
            _ if original => "ORIGINAL_DST",
            Resolution::StrictDns => "STRICT_DNS",
            Resolution::LogicalDns => "LOGICAL_DNS",
            Resolution::Eds | Resolution::OriginalDst => "EDS",
        };
        let pool = blocks.pool.as_ref();
        let (timeout, timeout_at) = match pool.and_then(|p| Some((p.connect_timeout?, p))) {
            Some((timeout, pool)) => (timeout, pool.block.place("tcp.connectTimeout")),
            None => (self.mesh.connect_timeout.unwrap_or(Duration::from_secs(10)), place),
        };
        let mut form = Form::new(place)
            .with("name", text(place, self.name))
            .with("type", text(place, kind))
            .with("connect_timeout", duration(timeout_at, timeout));
        match original {
            true => form.put("lb_policy", text(place, "CLUSTER_PROVIDED")),
            false => balancing(&mut form, self.balancer(), place),
        }
        form.put("circuit_breakers", breakers(pool, self.effective.extras.budget.as_ref(), place));
        if let Some(outlier) = &blocks.outlier {
            form.put("outlier_detection", detector(outlier));
        }
        form.put("common_lb_config", self.common(original));
        if let Some(options) = self.options() {
            form.put(
                "typed_extension_protocol_options",
                Form::new(options.place).with(OPTIONS, options).node(),
            );
        }
        if let Some(keepalive) = self.keepalive() {
            form.put("upstream_connection_options", keepalive);
        }
        form
    }

    fn common(&self, original: bool) -> Node<'static> {
        let outlier = self.effective.blocks.outlier.as_ref();
        let (panic, at) = match outlier {
            Some(outlier) => (outlier.min_health, outlier.block.place("minHealthPercent")),
            None => (NO_PANIC, self.place),
        };
        let mut form = Form::new(at).with("healthy_panic_threshold", percent(at, panic));
        match self.force() {
            _ if original => {}
            Force::Zone(zone) => {
                let place = zone.seen.place;
                let mut config = Form::new(place);
                if !zone.enabled {
                    config.put("routing_enabled", percent(place, 0));
                } else if let Some(size) = zone.min_cluster_size {
                    config.put("min_cluster_size", number(place, size as f64));
                }
                form.put("zone_aware_lb_config", config.node());
            }
            Force::Locality(setting) if setting.enabled => {
                let fails_over = !setting.failover.is_empty() || !setting.failover_priority.is_empty();
                if !setting.distribute.is_empty() || (fails_over && outlier.is_some()) {
                    let place = setting.seen.place;
                    form.put("locality_weighted_lb_config", Form::new(place).node());
                }
            }
            Force::Locality(_) | Force::Default => {}
        }
        form.node()
    }

    /// `HttpProtocolOptions`; `None` = nothing asks for it.
    fn options(&self) -> Option<Node<'static>> {
        let pool = self.effective.blocks.pool.as_ref();
        let codes = self.effective.blocks.outlier.as_ref().filter(|outlier| !outlier.codes.is_empty());
        let common = pool.and_then(common_options);
        let place = pool.map_or(self.place, |pool| pool.block.seen.place);
        let empty = || Form::new(place).node();
        let client = pool.is_some_and(|pool| pool.client_protocol);
        let upstream = if !client && self.is_http2() {
            let options = Form::new(place).with("http2_protocol_options", http2_options(pool, place));
            Some(("explicit_http_config", options))
        } else if client || self.port.protocol == Protocol::Sniffed {
            let options = Form::new(place)
                .with("http_protocol_options", empty())
                .with("http2_protocol_options", empty());
            Some(("use_downstream_protocol_config", options))
        } else if common.is_some() || codes.is_some() {
            Some(("explicit_http_config", Form::new(place).with("http_protocol_options", empty())))
        } else {
            None
        };
        let (name, upstream) = upstream?;
        let mut form = typed(place, OPTIONS);
        if let Some(common) = common {
            form.put("common_http_protocol_options", common);
        }
        form.put(name, upstream.node());
        if let Some(outlier) = codes {
            form.put("outlier_detection", error_matcher(outlier));
        }
        Some(form.node())
    }

    fn keepalive(&self) -> Option<Node<'static>> {
        let own = self.effective.blocks.pool.as_ref().and_then(|pool| Some((pool.keepalive?, pool)));
        if own.is_none() && self.mesh.keepalive.is_none() {
            return None;
        }
        let place = own.map_or(self.place, |(_, pool)| pool.block.place("tcp.tcpKeepalive"));
        let (own, mesh) =
            (own.map(|(own, _)| own).unwrap_or_default(), self.mesh.keepalive.unwrap_or_default());
        let merged = Keepalive {
            probes: if own.probes > 0 { own.probes } else { mesh.probes },
            time: own.time.or(mesh.time),
            interval: own.interval.or(mesh.interval),
        };
        let mut form = Form::new(place);
        if merged.probes > 0 {
            form.put("keepalive_probes", number(place, merged.probes));
        }
        for (name, value) in [("keepalive_time", merged.time), ("keepalive_interval", merged.interval)] {
            if let Some(value) = value {
                form.put(name, number(place, value.as_secs() as f64));
            }
        }
        Some(Form::new(place).with("tcp_keepalive", form.node()).node())
    }
}

fn balancing(form: &mut Form, balancer: Option<&Balancer>, place: Place) {
    let at = |name: &str| balancer.map_or(place, |balancer| balancer.block.place(name));
    let algorithm = balancer.map_or(&Algorithm::LeastRequest, |balancer| &balancer.algorithm);
    let (word, config) = match algorithm {
        Algorithm::RoundRobin => ("ROUND_ROBIN", "round_robin_lb_config"),
        Algorithm::Random => return form.put("lb_policy", text(at("simple"), "RANDOM")),
        Algorithm::Hash(hash) => return table(form, hash, at("consistentHash")),
        Algorithm::LeastRequest | Algorithm::Passthrough => ("LEAST_REQUEST", "least_request_lb_config"),
    };
    form.put("lb_policy", text(at("simple"), word));
    if let Some(warmup) = balancer.and_then(|balancer| balancer.warmup) {
        let place = at("warmup");
        let mut slow = Form::new(place).with("slow_start_window", duration(place, warmup.window));
        if let Some((minimum, aggression)) = warmup.shape {
            // Envoy wants a key; this one can name nothing.
            let double = Form::new(place)
                .with("default_value", number(place, aggression))
                .with("runtime_key", text(place, "("));
            slow.put("aggression", double.node());
            slow.put("min_weight_percent", percent(place, minimum));
        }
        form.put(config, Form::new(place).with("slow_start_config", slow.node()).node());
    }
}

fn table(form: &mut Form, hash: &Hash, place: Place) {
    let (word, config) = match hash.table {
        Table::Ring(size) => {
            let config = size.map(|size| ("ring_hash_lb_config", "minimum_ring_size", size));
            ("RING_HASH", config)
        }
        Table::Maglev(size) => ("MAGLEV", Some(("maglev_lb_config", "table_size", size))),
    };
    form.put("lb_policy", text(place, word));
    if let Some((name, field, size)) = config {
        form.put(name, Form::new(place).with(field, number(place, size as f64)).node());
    }
}

/// The entry of a route's `hash_policy`.
pub(super) fn hash_policy(hash: &Hash, place: Place) -> Option<Node<'static>> {
    let entry = |name: &'static str, form: Form| Form::new(place).with(name, form.node()).node();
    Some(match hash.key.as_ref()? {
        HashKey::Header(name) => {
            entry("header", Form::new(place).with("header_name", text(place, name.as_str())))
        }
        HashKey::SourceIp => {
            entry("connection_properties", Form::new(place).with("source_ip", flag(place, true)))
        }
        HashKey::Query(name) => {
            entry("query_parameter", Form::new(place).with("name", text(place, name.as_str())))
        }
        HashKey::Cookie { name, path, ttl, attributes } => {
            let mut form = Form::new(place).with("name", text(place, name.as_str()));
            if let Some(ttl) = ttl {
                form.put("ttl", duration(place, *ttl));
            }
            if !path.is_empty() {
                form.put("path", text(place, path.as_str()));
            }
            let attributes: Vec<Node<'static>> = attributes
                .iter()
                .map(|(name, value)| {
                    let mut one = Form::new(place).with("name", text(place, name.as_str()));
                    if !value.is_empty() {
                        one.put("value", text(place, value.as_str()));
                    }
                    one.node()
                })
                .collect();
            if !attributes.is_empty() {
                form.put("attributes", list(place, attributes));
            }
            entry("cookie", form)
        }
    })
}
