//! Admission control and adaptive concurrency (`spec/breakers-and-health.md` parts C and D).

use std::time::Duration;

/// A number that a runtime value may replace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tunable {
    /// Without a runtime value.
    pub value: f64,
    /// The runtime key; empty = none.
    pub key: String,
}

impl Tunable {
    /// A number without a runtime key.
    pub const fn of(value: f64) -> Self {
        Self { value, key: String::new() }
    }
}

/// A flag that a runtime value may replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Without a runtime value.
    pub on: bool,
    /// The runtime key; empty = none.
    pub key: String,
}

impl Default for Switch {
    fn default() -> Self {
        Self { on: true, key: String::new() }
    }
}

/// What a request passes before anything is chosen for it, once.
#[derive(Clone, Debug, PartialEq)]
pub enum GateSpec {
    /// Rejects a share of requests while too few succeed.
    Admission(AdmissionSpec),
    /// Limits how many are under way by their latency.
    Concurrency(ConcurrencySpec),
}

/// `envoy.filters.http.admission_control`.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionSpec {
    /// Defaults to on.
    pub enabled: Switch,
    /// Statuses of success, half-open ranges; `None` (the default) = every status below 500.
    pub http_success: Option<Vec<(u16, u16)>>,
    /// gRPC statuses of success, 0..=16. Defaults to 0, 1, 2, 3, 5, 6, 7, 9, 11, 12 and 16.
    pub grpc_success: Vec<u8>,
    /// Whole seconds count. Defaults to 30 s.
    pub sampling_window: Duration,
    /// Acts as 1 at least. Defaults to 1.
    pub aggression: Tunable,
    /// Percent. Defaults to 95.
    pub sr_threshold: Tunable,
    /// Requests per second below which nothing is rejected. Defaults to 0.
    pub rps_threshold: Tunable,
    /// Percent. Defaults to 80.
    pub max_rejection_probability: Tunable,
    /// Decide and count, reject nothing. Defaults to false; of a cluster's own gate alone.
    pub dry_run: bool,
}

impl Default for AdmissionSpec {
    fn default() -> Self {
        Self {
            enabled: Switch::default(),
            http_success: None,
            grpc_success: vec![0, 1, 2, 3, 5, 6, 7, 9, 11, 12, 16],
            sampling_window: Duration::from_secs(30),
            aggression: Tunable::of(1.0),
            sr_threshold: Tunable::of(95.0),
            rps_threshold: Tunable::of(0.0),
            max_rejection_probability: Tunable::of(80.0),
            dry_run: false,
        }
    }
}

/// `envoy.filters.http.adaptive_concurrency` with its gradient controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ConcurrencySpec {
    /// Defaults to on; off = requests pass unseen.
    pub enabled: Switch,
    /// Status of a refused request, 400..=599. Defaults to 503.
    pub exceeded_status: u16,
    /// `sample_aggregate_percentile`, 0..=100. Defaults to 50.
    pub percentile: f64,
    /// Defaults to 1,000; more than 0.
    pub max_limit: u32,
    /// `min_concurrency_limit`, more than 0; `None` (the default) = `min_concurrency`. It beats `max_limit`.
    pub min_limit: Option<u32>,
    /// `concurrency_update_interval`, more than 0.
    pub update_interval: Duration,
    /// How the ideal latency is known.
    pub min_rtt: MinRtt,
    /// Requests that measure it. Defaults to 50; more than 0.
    pub request_count: u32,
    /// Percent of the interval. Defaults to 15.
    pub jitter: f64,
    /// The limit while it is measured. Defaults to 3; more than 0.
    pub min_concurrency: u32,
    /// Percent added to it. Defaults to 25.
    pub buffer: f64,
    /// Decide and count, block nothing. Defaults to false; of a cluster's own gate alone.
    pub dry_run: bool,
}

/// Where the ideal latency comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinRtt {
    /// Measured, again and again after this pause of 1 ms at least.
    Measured(Duration),
    /// Given.
    Fixed(Duration),
}

impl ConcurrencySpec {
    /// Defaults with what has none.
    pub fn new(update_interval: Duration, min_rtt: MinRtt) -> Self {
        Self {
            enabled: Switch::default(),
            exceeded_status: 503,
            percentile: 50.0,
            max_limit: 1000,
            min_limit: None,
            update_interval,
            min_rtt,
            request_count: 50,
            jitter: 15.0,
            min_concurrency: 3,
            buffer: 25.0,
            dry_run: false,
        }
    }
}
