//! Outlier detection (`spec/outlier-detection.md` section 2).

use super::HeaderMatch;
use std::time::Duration;

/// `OutlierDetection`, and the error matcher of the protocol options.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlierSpec {
    /// Failures in a row. Defaults to 5; 0 never fires.
    pub consecutive_5xx: u32,
    /// Percent, 0..=100. Defaults to 100.
    pub enforcing_consecutive_5xx: u32,
    /// Gateway failures (502, 503, 504) in a row. Defaults to 5; 0 never fires.
    pub consecutive_gateway_failure: u32,
    /// Percent, 0..=100. Defaults to 0.
    pub enforcing_consecutive_gateway_failure: u32,
    /// Failures on this side (connections, time-outs, resets) are counted apart from what servers answer.
    /// Defaults to false.
    pub split_external_local_origin_errors: bool,
    /// Failures on this side in a row, with the split only. Defaults to 5; 0 never fires.
    pub consecutive_local_origin_failure: u32,
    /// Percent, 0..=100. Defaults to 100.
    pub enforcing_consecutive_local_origin_failure: u32,
    /// Percent, 0..=100. Defaults to 100.
    pub enforcing_success_rate: u32,
    /// Percent, 0..=100. Defaults to 100.
    pub enforcing_local_origin_success_rate: u32,
    /// Hosts with enough requests that a success rate run needs. Defaults to 5.
    pub success_rate_minimum_hosts: u32,
    /// Requests in one interval that make a host count. Defaults to 100.
    pub success_rate_request_volume: u32,
    /// Thousandths of a standard deviation below the mean. Defaults to 1900.
    pub success_rate_stdev_factor: u32,
    /// Percent of failures from which on a host is an outlier, 0..=100. Defaults to 85.
    pub failure_percentage_threshold: u32,
    /// Percent, 0..=100. Defaults to 0.
    pub enforcing_failure_percentage: u32,
    /// Percent, 0..=100. Defaults to 0.
    pub enforcing_failure_percentage_local_origin: u32,
    /// Hosts with enough requests that a failure percentage run needs. Defaults to 5.
    pub failure_percentage_minimum_hosts: u32,
    /// Requests in one interval that make a host count. Defaults to 50.
    pub failure_percentage_request_volume: u32,
    /// Sweep interval, greater than 0. Defaults to 10 s.
    pub interval: Duration,
    /// Greater than 0. Defaults to 30 s.
    pub base_ejection_time: Duration,
    /// Not below the base. Defaults to max(300 s, base).
    pub max_ejection_time: Duration,
    /// Whole milliseconds drawn on top. Defaults to 0.
    pub max_ejection_time_jitter: Duration,
    /// 0..=100. Defaults to 10.
    pub max_ejection_percent: u32,
    /// The first ejection is allowed whatever the percentage. Defaults to false.
    pub always_eject_one_host: bool,
    /// A passed active check ends an ejection. Defaults to true.
    pub successful_active_health_check_uneject_host: bool,
    /// Answers with `x-envoy-degraded` mark their host. Defaults to false.
    pub detect_degraded_hosts: bool,
    /// What counts as an error instead of 5xx, for answers that are not gRPC.
    pub error_matcher: Option<ErrorMatch>,
}

impl Default for OutlierSpec {
    fn default() -> Self {
        Self {
            consecutive_5xx: 5,
            enforcing_consecutive_5xx: 100,
            consecutive_gateway_failure: 5,
            enforcing_consecutive_gateway_failure: 0,
            split_external_local_origin_errors: false,
            consecutive_local_origin_failure: 5,
            enforcing_consecutive_local_origin_failure: 100,
            enforcing_success_rate: 100,
            enforcing_local_origin_success_rate: 100,
            success_rate_minimum_hosts: 5,
            success_rate_request_volume: 100,
            success_rate_stdev_factor: 1900,
            failure_percentage_threshold: 85,
            enforcing_failure_percentage: 0,
            enforcing_failure_percentage_local_origin: 0,
            failure_percentage_minimum_hosts: 5,
            failure_percentage_request_volume: 50,
            interval: Duration::from_secs(10),
            base_ejection_time: Duration::from_secs(30),
            max_ejection_time: Duration::from_secs(300),
            max_ejection_time_jitter: Duration::ZERO,
            max_ejection_percent: 10,
            always_eject_one_host: false,
            successful_active_health_check_uneject_host: true,
            detect_degraded_hosts: false,
            error_matcher: None,
        }
    }
}

/// A `MatchPredicate` over the headers of an answer (section 4.4).
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorMatch {
    /// Always.
    Any,
    /// Never: the predicate looks at something that is not shown to it (requests, trailers, bodies).
    Never,
    /// One of them.
    Or(Vec<Self>),
    /// All of them.
    And(Vec<Self>),
    /// The other one fails.
    Not(Box<Self>),
    /// All conditions on response headers.
    Headers(Vec<HeaderMatch>),
}
