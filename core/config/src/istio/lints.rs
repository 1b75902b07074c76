//! What is legal in rules and probably not meant (`spec/istio-destination-rule.md` section 13).

use super::balancer::Algorithm;
use super::cluster_form::Parts;
use super::outlier::Outlier;
use super::policy::Blocks;
use super::pool::{LIMITS, Pool};
use super::read::Block;
use super::route_form::Routing;
use super::rule::Rule;
use super::spread::Force;
use super::translation::View;
use crate::lint::Out;
use crate::read::Seen;
use std::time::Duration;

/// Findings about a rule as a whole.
pub(super) fn rule(rule: &Rule, routes_known: bool, named: impl Fn(&str) -> bool, out: &mut Out) {
    for other in &rule.others {
        out.warn(
            "DR-024",
            other,
            format!(
                "more than one rule for {}: only the first trafficPolicy acts, subsets are united",
                rule.host
            ),
            "put everything about one host into one rule",
        );
    }
    if let Some(seen) = &rule.short {
        let effect = format!("the host without a dot is completed with the rule's namespace: {}", rule.host);
        out.note("DR-025", seen, effect, "write the full name");
    }
    if let Some(seen) = &rule.selector {
        unused("workloadSelector", seen, out);
    }
    for subset in &rule.subsets {
        if subset.labels.is_empty() {
            let effect = format!("the subset {} has no labels and holds every endpoint", subset.name);
            out.note("DR-023", &subset.seen, effect, "give it the labels of its workloads");
        }
        if let Some(policy) = subset.policy.as_ref().filter(|_| routes_known && !named(&subset.name)) {
            let effect = format!(
                "the policy of subset {} never acts: no route names it, traffic goes to the destination cluster",
                subset.name
            );
            out.warn(
                "DR-021",
                &policy.seen,
                effect,
                "route to the subset, or move the policy to the rule's top",
            );
        }
    }
}

fn unused(field: &str, seen: &Seen, out: &mut Out) {
    let effect = format!("{field} is not used by this engine");
    out.note("DR-036", seen, effect, "rely on it only where Istio's own proxies are the clients");
}

/// Findings about one cluster, with what applies to it after merging.
pub(super) fn cluster(view: &View<'_>, routing: &Routing<'_>, out: &mut Out) {
    let parts = view.parts(routing);
    merging(view, out);
    if let Some(pool) = own(view.effective.blocks.pool.as_ref(), |pool| &pool.block) {
        limits(pool, &parts, out);
    }
    if let Some(outlier) = own(view.effective.blocks.outlier.as_ref(), |outlier| &outlier.block) {
        thresholds(outlier, out);
        ejection(outlier, view, out);
        let block = &outlier.block.seen;
        let own_setting = parts.balancer().is_some_and(|b| b.locality.is_some() || b.zone.is_some());
        if !own_setting && locality_on(&parts) {
            out.note(
                "DR-008",
                block,
                "outlier detection turns locality priorities on: near hosts take all traffic while healthy",
                "set localityLbSetting.enabled to false if localities shall share traffic",
            );
        }
    }
    balancing(view, &parts, out);
    let extras = &view.effective.extras;
    let unread = [
        ("tls", &view.effective.blocks.tls),
        ("proxyProtocol", &extras.proxy_protocol),
        ("tunnel", &extras.tunnel),
    ];
    for (field, seen) in unread {
        if let Some(seen) = seen {
            unused(field, seen, out);
        }
    }
}

/// A block of a rule; the mesh's own are not a rule's fault.
fn own<T>(block: Option<&T>, part: impl Fn(&T) -> &Block) -> Option<&T> {
    block.filter(|block| !part(block).from_mesh)
}

pub(super) fn locality_on(parts: &Parts<'_>) -> bool {
    match parts.force() {
        Force::Default => true,
        Force::Locality(setting) => setting.enabled,
        Force::Zone(setting) => setting.enabled,
    }
}

/// The three blocks that replace each other whole.
fn three(blocks: &Blocks) -> [(&'static str, Option<&Block>); 3] {
    [
        ("connectionPool", blocks.pool.as_ref().map(|pool| &pool.block)),
        ("loadBalancer", blocks.balancer.as_ref().map(|balancer| &balancer.block)),
        ("outlierDetection", blocks.outlier.as_ref().map(|outlier| &outlier.block)),
    ]
}

fn merging(view: &View<'_>, out: &mut Out) {
    if let Some(subset) = view.subset {
        let Some(policy) = &subset.policy else { return };
        let selected = policy.select(view.port.number);
        for ((name, new), (_, old)) in three(&selected.blocks).into_iter().zip(three(&view.parent.blocks)) {
            let (Some(new), Some(old)) = (new, old) else { continue };
            let lost: Vec<&str> = old.names().filter(|field| !new.has(field)).collect();
            if !lost.is_empty() {
                let effect = format!(
                    "subset {} replaces the whole {name}; these fields of the destination level no longer apply: {}",
                    subset.name,
                    lost.join(", ")
                );
                out.warn("DR-001", &new.seen, effect, "repeat them in the subset if they shall hold there");
            }
        }
        return;
    }
    let Some((entry, top)) = view.parent.hit.as_ref().zip(view.rule.and_then(|rule| rule.policy.as_ref()))
    else {
        return;
    };
    let port = view.port.number;
    let entry_blocks = top.ports.iter().find(|one| one.number == port).map(|one| three(&one.blocks));
    let lacking: Vec<&str> = three(&top.blocks)
        .into_iter()
        .zip(entry_blocks.into_iter().flatten())
        .filter(|((_, above), (_, here))| above.is_some() && here.is_none())
        .map(|((name, _), _)| name)
        .collect();
    if !lacking.is_empty() {
        let lacking = lacking.join(", ");
        let effect =
            format!("port {port} uses only its own entry; {lacking} of the destination level are off for it");
        out.warn("DR-002", entry, effect, "repeat in the port entry what shall hold there");
    }
    let hidden = [
        ("retryBudget", top.extras.budget.as_ref().map(|budget| &budget.seen)),
        ("proxyProtocol", top.extras.proxy_protocol.as_ref()),
        ("tunnel", top.extras.tunnel.as_ref()),
    ];
    for (field, _) in hidden.into_iter().filter(|(_, seen)| seen.is_some()) {
        let effect =
            format!("a port entry cannot hold {field}, and the entry of port {port} hides the one above");
        out.warn("DR-003", entry, effect, "move the entry's blocks to the top level, or into a subset");
    }
}

fn limits(pool: &Pool, parts: &Parts<'_>, out: &mut Out) {
    let values = [
        pool.max_connections,
        pool.max_pending,
        pool.max_requests,
        pool.max_per_connection,
        pool.max_retries,
        pool.max_streams,
    ];
    for (name, value) in LIMITS.into_iter().zip(values) {
        if value == 0 && pool.block.has(name) {
            let effect = format!("{name} is 0, which means not set: there is no limit");
            out.warn("DR-017", pool.block.seen(name), effect, "write the number you want, at least 1");
        }
    }
    let breakers =
        ["tcp.maxConnections", "http.http1MaxPendingRequests", "http.http2MaxRequests", "http.maxRetries"];
    if let Some(name) = breakers.into_iter().find(|name| pool.block.has(name)) {
        out.note(
            "DR-018",
            pool.block.seen(name),
            "limits count per client process: N clients allow N times the value",
            "divide the limit by the number of clients",
        );
    }
    let http2 = parts.is_http2();
    if http2 && pool.max_requests == 0 && (pool.max_connections > 0 || pool.max_pending > 0) {
        out.warn(
            "DR-019",
            &pool.block.seen,
            "for HTTP/2 only http2MaxRequests limits requests: one connection carries many",
            "set http.http2MaxRequests",
        );
    }
    let streams = (pool.max_streams > 0).then_some("http.maxConcurrentStreams");
    let ping = pool.ping.map(|_| "http.http2KeepAlive");
    for name in streams.into_iter().chain(ping).filter(|_| !http2) {
        let effect = format!("{name} has no effect on port {}: it is not explicit HTTP/2", parts.port.number);
        out.warn(
            "DR-020",
            pool.block.seen(name),
            effect,
            "name the port's protocol HTTP2, or set h2UpgradePolicy",
        );
    }
    if pool.tcp_idle.is_some() && pool.http_idle.is_some() {
        out.note(
            "DR-035",
            pool.block.seen("tcp.idleTimeout"),
            "of the two idle timeouts the one of http acts on HTTP traffic",
            "keep one of them",
        );
    }
}

fn thresholds(outlier: &Outlier, out: &mut Out) {
    let at = |name: &str| outlier.block.seen(name);
    if outlier.consecutive_errors > 0 {
        out.warn(
            "DR-012",
            at("consecutiveErrors"),
            "consecutiveErrors is ignored",
            "use consecutive5xxErrors or consecutiveGatewayErrors",
        );
    }
    let (five_xx, gateway) = (outlier.five_xx.unwrap_or(5), outlier.gateway.unwrap_or(0));
    if gateway > 0 && five_xx > 0 && gateway >= five_xx {
        let effect = format!(
            "the gateway threshold {gateway} can never be reached first: the same answers count for the 5xx threshold \
             {five_xx}"
        );
        out.warn("DR-013", at("consecutiveGatewayErrors"), effect, "set it below consecutive5xxErrors");
    }
    if gateway > 0 && outlier.five_xx.is_none() {
        out.note(
            "DR-014",
            at("consecutiveGatewayErrors"),
            "five 5xx answers in a row still eject a host",
            "set consecutive5xxErrors to 0 to stop that",
        );
    }
    if outlier.split {
        if outlier.local_origin == Some(0) {
            out.warn(
                "DR-015",
                at("consecutiveLocalOriginFailures"),
                "zero does not switch it off: 5 stays in force",
                "write a large number to switch it off",
            );
        }
        out.note(
            "DR-016",
            at("splitExternalLocalOriginErrors"),
            "connect failures and timeouts no longer count as 5xx",
            "set consecutiveLocalOriginFailures for them",
        );
    }
    if outlier.max_percent == 0 && outlier.block.has("maxEjectionPercent") {
        out.warn(
            "DR-017",
            at("maxEjectionPercent"),
            "maxEjectionPercent is 0, which means not set: 10 percent",
            "write the percentage you want, at least 1",
        );
    }
}

fn ejection(outlier: &Outlier, view: &View<'_>, out: &mut Out) {
    let at = |name: &str| outlier.block.seen(name);
    let percent = if outlier.max_percent == 0 { 10 } else { outlier.max_percent };
    let hosts = view.members.as_ref().map(Vec::len);
    match hosts {
        Some(0) => {}
        Some(hosts) if (percent as usize) * hosts < 100 => {
            let effect = format!("with {hosts} hosts and {percent} percent no host can ever be ejected");
            let advice = format!("set maxEjectionPercent to at least {}", 100usize.div_ceil(hosts));
            out.warn("DR-004", at("maxEjectionPercent"), effect, &advice);
        }
        None if percent < 50 => {
            let needed = 100u32.div_ceil(percent);
            let effect =
                format!("with {percent} percent no host is ever ejected while there are fewer than {needed}");
            out.note(
                "DR-004",
                at("maxEjectionPercent"),
                effect,
                "set maxEjectionPercent to at least 100 / hosts",
            );
        }
        _ => {}
    }
    if percent == 100 && outlier.min_health == 0 {
        out.note(
            "DR-005",
            at("maxEjectionPercent"),
            "all hosts can be ejected at once, and then requests fail with no healthy host",
            "lower maxEjectionPercent, or set minHealthPercent",
        );
    }
    if outlier.min_health > 0 {
        let effect =
            format!("below {} percent of healthy hosts ejected hosts get traffic again", outlier.min_health);
        out.note("DR-006", at("minHealthPercent"), effect, "leave it out to keep ejected hosts out");
    }
    let (interval, base) = (
        outlier.interval.unwrap_or(Duration::from_secs(10)),
        outlier.base.unwrap_or(Duration::from_secs(30)),
    );
    if interval > base {
        out.note(
            "DR-032",
            at("interval"),
            "hosts come back only at interval ticks, so ejections last longer than asked",
            "set interval to at most baseEjectionTime",
        );
    }
    if base >= Duration::from_secs(300) {
        let effect = "the ejection time does not grow any more with each ejection";
        out.note("DR-033", at("baseEjectionTime"), effect, "keep baseEjectionTime below 300s");
    }
}

fn balancing(view: &View<'_>, parts: &Parts<'_>, out: &mut Out) {
    let Some(balancer) = parts.balancer() else {
        if view.passthrough {
            passthrough(view.seen(), out);
        }
        return;
    };
    let at = |name: &str| balancer.block.seen(name);
    let outlier = view.effective.blocks.outlier.as_ref();
    let own_outlier = outlier.is_some_and(|outlier| !outlier.block.from_mesh);
    let on = locality_on(parts);
    if view.passthrough || balancer.algorithm == Algorithm::Passthrough {
        passthrough(at("simple"), out);
    }
    let locality = balancer.locality.as_ref();
    let distributes = locality.is_some_and(|setting| setting.enabled && !setting.distribute.is_empty());
    if let Some(setting) = locality {
        let fails_over = !setting.failover.is_empty() || !setting.failover_priority.is_empty();
        if fails_over && outlier.is_none() {
            let effect = "locality failover does nothing without outlierDetection";
            out.warn("DR-007", &setting.seen, effect, "add outlierDetection to the same policy");
        }
        for (_, _, seen) in
            setting.distribute.iter().flat_map(|entry| &entry.to).filter(|(_, w, _)| *w == 100)
        {
            let effect = "with a share of 100 no failover to other localities is possible";
            out.note("DR-030", seen, effect, "use failover instead of distribute if that is wanted");
        }
        if distributes && balancer.algorithm == Algorithm::LeastRequest {
            out.note(
                "DR-029",
                &setting.seen,
                "shares are kept by locality weight, hosts inside are chosen by least requests; slow hosts move no share",
                "expect shares of requests, not of load",
            );
        }
    }
    if let Some(hash) = balancer.hash() {
        if own_outlier && on && !distributes {
            out.warn(
                "DR-009",
                at("consistentHash"),
                "a key maps to hosts of the nearest locality only, and moves on failover",
                "set localityLbSetting.enabled to false, or use distribute",
            );
        }
        if hash.key.is_none() {
            let effect = "there is no hash key: each request goes to a random host";
            out.warn(
                "DR-011",
                at("consistentHash"),
                effect,
                "name a header, cookie, query parameter or useSourceIp",
            );
        }
        if hash.deprecated_size {
            let effect = "minimumRingSize is deprecated";
            out.note("DR-034", at("consistentHash"), effect, "use ringHash.minimumRingSize");
        }
    }
    if balancer.warmup.is_some() {
        let seen = if balancer.block.has("warmup") { at("warmup") } else { at("warmupDurationSecs") };
        let without = match &balancer.algorithm {
            Algorithm::Random => Some("RANDOM"),
            Algorithm::Passthrough => Some("PASSTHROUGH"),
            Algorithm::Hash(_) => Some("consistentHash"),
            Algorithm::LeastRequest | Algorithm::RoundRobin => None,
        };
        if let Some(algorithm) = without {
            let effect = format!("warmup has no effect with {algorithm}");
            out.warn("DR-027", seen, effect, "use ROUND_ROBIN or LEAST_REQUEST");
        } else if own_outlier && on {
            let effect = "a host that joins another priority gets no slow start benefit there";
            out.note("DR-028", seen, effect, "set localityLbSetting.enabled to false if warmup matters more");
        }
    }
}

fn passthrough(seen: &Seen, out: &mut Out) {
    let effect = "no load balancing, health or subsets: the original address is used";
    out.warn("DR-026", seen, effect, "use another algorithm if hosts shall be chosen");
}
