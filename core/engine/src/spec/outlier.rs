//! Outlier detection (`spec/outlier-detection.md` section 2).

use std::time::Duration;

/// The fields of `OutlierDetection` that act on consecutive failures and on ejection itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlierSpec {
    /// Failures in a row. Defaults to 5; 0 never fires.
    pub consecutive_5xx: u32,
    /// Percent, 0..=100. Defaults to 100.
    pub enforcing_consecutive_5xx: u32,
    /// Gateway failures (502, 503, 504) in a row. Defaults to 5; 0 never fires.
    pub consecutive_gateway_failure: u32,
    /// Percent, 0..=100. Defaults to 0.
    pub enforcing_consecutive_gateway_failure: u32,
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
    /// Defaults to false.
    pub always_eject_one_host: bool,
}

impl Default for OutlierSpec {
    fn default() -> Self {
        Self {
            consecutive_5xx: 5,
            enforcing_consecutive_5xx: 100,
            consecutive_gateway_failure: 5,
            enforcing_consecutive_gateway_failure: 0,
            interval: Duration::from_secs(10),
            base_ejection_time: Duration::from_secs(30),
            max_ejection_time: Duration::from_secs(300),
            max_ejection_time_jitter: Duration::ZERO,
            max_ejection_percent: 10,
            always_eject_one_host: false,
        }
    }
}
