//! Findings about the addresses of a cluster's hosts.

use super::Cluster;
use super::out::Out;
use std::net::IpAddr;

pub(super) fn hosts(cluster: &Cluster<'_>, out: &mut Out) {
    let hosts = cluster.spec.endpoints.localities.iter().flat_map(|group| &group.endpoints);
    let mut addresses: Vec<&str> = hosts.map(|host| host.address.as_str()).collect();
    let seen = || cluster.marks.seen(&["load_assignment", "hosts"]);
    if let Some((address, fault)) = addresses.iter().find_map(|address| Some((address, fault(address)?))) {
        let effect = format!("{address} {fault}, so connections to it fail");
        out.warn("NX-048", seen(), effect, "write an address that can be connected to");
    }
    addresses.sort_unstable();
    if let Some(pair) = addresses.windows(2).find(|pair| pair[0] == pair[1]) {
        let effect = format!("{} stands more than once: it is as many hosts, with a state each", pair[0]);
        out.note("NX-049", seen(), effect, "write it once; a weight gives a host a larger share");
    }
}

/// What is wrong with an address that was taken as it stands; paths of sockets have nothing to be wrong.
fn fault(address: &str) -> Option<&'static str> {
    let (host, port) = address.rsplit_once(':').filter(|_| !address.starts_with(['/', '@']))?;
    let last = host.strip_suffix('.').unwrap_or(host).rsplit('.').next().unwrap_or(host);
    let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
    if port == "0" {
        Some("has the port 0")
    } else if !host.is_ascii() {
        Some("has a name with letters that names of hosts do not have")
    } else if !is_address && last.bytes().all(|byte| byte.is_ascii_digit()) {
        Some("ends in a number and is no IP address")
    } else {
        None
    }
}
