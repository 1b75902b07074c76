//! Services of Kubernetes, as far as Istio's rules need them: their ports and protocols.

use super::rule::Meta;
use super::service::{Port, Protocol, Resolution, Service, assumed};
use crate::error::Result;
use crate::read::{At, Fields};

const SERVICE: Fields = Fields::of("a Service", &["ports", "clusterIP"]);
const PORT: Fields = Fields::of("ports", &["name", "port", "appProtocol", "protocol", "targetPort"]);

/// Reads the `spec` of a Service. Its other fields are no business of ours.
pub(super) fn service(at: &At<'_>, meta: &Meta) -> Result<Service> {
    let msg = at.object(&SERVICE, |_, _| {})?;
    let ports = msg.each("ports", |item| {
        let port = item.object(&PORT, |_, _| {})?;
        let text = |name| port.or(name, String::new(), |text| text.text());
        let (name, app) = (text("name")?, text("appProtocol")?);
        let word = if app.is_empty() { prefix(&name) } else { &app };
        let protocol = match text("protocol")?.as_str() {
            "UDP" | "SCTP" => Protocol::Other,
            _ => Protocol::of(word),
        };
        // A name stands for a port that only the pods tell.
        let target = port.get("targetPort").and_then(|at| at.u32_in(1, 65_535).ok()).unwrap_or(0);
        Ok(Port { number: port.need("port")?.u32_in(1, 65_535)?, protocol, name, target })
    })?;
    let headless = msg.or("clusterIP", String::new(), |ip| ip.text())? == "None";
    let host = format!("{}.{}.svc.cluster.local", meta.name, meta.namespace);
    let resolution = if headless { Resolution::OriginalDst } else { Resolution::Eds };
    Ok(Service { resolution, ..assumed(&at.seen(), &host, ports) })
}

/// The protocol that a port's name begins with: `grpc-web` and `http2` before what is shorter.
fn prefix(name: &str) -> &str {
    const KNOWN: [&str; 11] =
        ["grpc-web", "grpc", "http2", "https", "http", "mongo", "mysql", "redis", "tcp", "tls", "udp"];
    let begins =
        |word: &&&str| name.strip_prefix(**word).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    KNOWN.iter().find(begins).copied().unwrap_or("unknown")
}
