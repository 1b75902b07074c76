//! Active health checks (`spec/breakers-and-health.md` B5, B7).

use super::StringMatch;
use std::time::Duration;

/// One `HealthCheck` of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheckSpec {
    /// Needed when a cluster has several; then each has its own.
    pub name: String,
    /// Greater than 0.
    pub timeout: Duration,
    /// Greater than 0.
    pub interval: Duration,
    /// Most that the very first check is put off. Defaults to 0: it starts at once.
    pub initial_jitter: Duration,
    /// Most that an interval is stretched by, exclusive. Defaults to 0.
    pub interval_jitter: Duration,
    /// The same in percent of the interval. Defaults to 0.
    pub interval_jitter_percent: u32,
    /// Network failures, time-outs and retriable statuses in a row that fail a host; 0 is never reached.
    pub unhealthy_threshold: u32,
    /// Successes in a row that a failed host needs; 0 is never reached.
    pub healthy_threshold: u32,
    /// While the cluster has had no traffic. Defaults to 60 s.
    pub no_traffic_interval: Duration,
    /// The same for healthy hosts; `None` = `no_traffic_interval`.
    pub no_traffic_healthy_interval: Option<Duration>,
    /// For failed hosts; `None` = `interval`.
    pub unhealthy_interval: Option<Duration>,
    /// While a host is on its way to fail; `None` = `unhealthy_interval`.
    pub unhealthy_edge_interval: Option<Duration>,
    /// While a host is on its way back; `None` = `interval`.
    pub healthy_edge_interval: Option<Duration>,
    /// Port to check instead of the host's own.
    pub alt_port: Option<u16>,
    /// Whether one connection carries many checks. Defaults to true.
    pub reuse_connection: bool,
    /// An event for every failed check. Defaults to false.
    pub always_log_failures: bool,
    /// An event for every passed check. Defaults to false.
    pub always_log_success: bool,
    /// What is asked.
    pub probe: Probe,
}

impl HealthCheckSpec {
    /// A check with these and every other field at its default.
    pub fn new(interval: Duration, timeout: Duration, thresholds: (u32, u32), probe: Probe) -> Self {
        Self {
            name: String::new(),
            timeout,
            interval,
            initial_jitter: Duration::ZERO,
            interval_jitter: Duration::ZERO,
            interval_jitter_percent: 0,
            unhealthy_threshold: thresholds.0,
            healthy_threshold: thresholds.1,
            no_traffic_interval: Duration::from_secs(60),
            no_traffic_healthy_interval: None,
            unhealthy_interval: None,
            unhealthy_edge_interval: None,
            healthy_edge_interval: None,
            alt_port: None,
            reuse_connection: true,
            always_log_failures: false,
            always_log_success: false,
            probe,
        }
    }
}

/// What a check asks, and what it wants to hear.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    /// One HTTP request.
    Http(Box<HttpProbe>),
    /// A connection, and perhaps bytes.
    Tcp {
        /// Sent once the connection is up; empty = nothing.
        send: Vec<u8>,
        /// Must occur in this order in what comes back; empty = the connection is enough.
        receive: Vec<Vec<u8>>,
    },
    /// `grpc.health.v1.Health/Check`.
    Grpc {
        /// `service` of the question; empty = the server as a whole.
        service: String,
        /// Empty = the cluster's name.
        authority: String,
    },
    /// Another protocol, which only the caller knows.
    Custom {
        /// Its extension name.
        name: String,
    },
}

/// An HTTP question.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpProbe {
    /// Host header; empty = the cluster's name.
    pub host: String,
    /// With its query.
    pub path: String,
    /// Defaults to GET.
    pub method: String,
    /// Body; empty = none.
    pub send: Vec<u8>,
    /// Must occur in this order in the body; empty = the body is not looked at.
    pub receive: Vec<Vec<u8>>,
    /// Bytes of the body that are looked at; 0 = all. Defaults to 1024.
    pub response_buffer_size: u64,
    /// Added headers.
    pub headers_to_add: Vec<(String, String)>,
    /// Headers taken away again, in lower case.
    pub headers_to_remove: Vec<String>,
    /// Half-open ranges; empty = 200 alone.
    pub expected_statuses: Vec<(u16, u16)>,
    /// Half-open ranges of failures that count towards the threshold instead of failing the host.
    pub retriable_statuses: Vec<(u16, u16)>,
    /// What `x-envoy-upstream-healthchecked-cluster` must be.
    pub service_name: Option<StringMatch>,
    /// Asked over HTTP/2.
    pub http2: bool,
}

impl HttpProbe {
    /// A GET of this path.
    pub fn get(path: &str) -> Self {
        Self {
            host: String::new(),
            path: path.to_owned(),
            method: "GET".to_owned(),
            send: Vec::new(),
            receive: Vec::new(),
            response_buffer_size: 1024,
            headers_to_add: Vec::new(),
            headers_to_remove: Vec::new(),
            expected_statuses: Vec::new(),
            retriable_statuses: Vec::new(),
            service_name: None,
            http2: false,
        }
    }
}
