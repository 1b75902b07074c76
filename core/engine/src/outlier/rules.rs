//! A cluster's settings as they act: the document's, with runtime values over them, compiled.

use super::errors::Errors;
use crate::snapshot::integer;
use crate::spec::{OutlierSpec, SpecError, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const PREFIX: &str = "outlier_detection.";

/// What reports and sweeps go by.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) spec: OutlierSpec,
    pub(crate) errors: Option<Arc<Errors>>,
    /// See [`Rules::is_plain`]: the way of most clusters.
    pub(crate) plain: bool,
    /// A host that comes back has to prove itself.
    pub(crate) half_open: bool,
}

impl Rules {
    /// Only a regular expression can fail to compile.
    pub(crate) fn new(document: &OutlierSpec, runtime: &Overrides) -> Result<Self, SpecError> {
        let errors = document.error_matcher.as_ref().map(Errors::compile).transpose()?;
        Ok(Self::with(document, errors.map(Arc::new), runtime))
    }

    /// The same document under other runtime values.
    pub(crate) fn again(&self, document: &OutlierSpec, runtime: &Overrides) -> Self {
        Self { half_open: self.half_open, ..Self::with(document, self.errors.clone(), runtime) }
    }

    fn with(document: &OutlierSpec, errors: Option<Arc<Errors>>, runtime: &Overrides) -> Self {
        let spec = runtime.over(document);
        let plain = Self::is_plain(&spec);
        Self { spec, errors, plain, half_open: false }
    }

    /// Whether answers are judged by their code alone, and nothing local is counted.
    pub(crate) fn is_plain(spec: &OutlierSpec) -> bool {
        spec.error_matcher.is_none()
            && !spec.split_external_local_origin_errors
            && !spec.detect_degraded_hosts
    }

    /// Lower-case names of the response headers that outlier detection reads; a name may come twice.
    pub(crate) fn wanted_headers(spec: &OutlierSpec, visit: &mut dyn FnMut(&str)) {
        if spec.detect_degraded_hosts {
            visit("x-envoy-degraded");
        }
        if let Some(errors) = &spec.error_matcher {
            Errors::wanted_headers(errors, visit);
        }
    }
}

/// Runtime values below `outlier_detection.`, in force for every cluster with a detector.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides(Vec<(String, u64)>);

impl Overrides {
    /// The values of a runtime layer; the last one of a key wins. What is no whole number is not there, as in Envoy.
    pub(crate) fn read(values: &[(String, Value)]) -> Self {
        let mut last: BTreeMap<&str, Option<u64>> = BTreeMap::new();
        for (key, value) in values {
            if let Some(key) = key.strip_prefix(PREFIX) {
                last.insert(key, integer(value));
            }
        }
        Self(last.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
    }

    fn over(&self, document: &OutlierSpec) -> OutlierSpec {
        let mut spec = document.clone();
        for (key, value) in &self.0 {
            // No counter of ours reaches what does not fit; percentages are cut to 100 where they are used.
            let number = u32::try_from(*value).unwrap_or(u32::MAX);
            let span = Duration::from_millis(*value);
            match key.as_str() {
                "consecutive_5xx" => spec.consecutive_5xx = number,
                "interval_ms" => spec.interval = span,
                "base_ejection_time_ms" => spec.base_ejection_time = span,
                "max_ejection_percent" => spec.max_ejection_percent = number,
                "enforcing_consecutive_5xx" => spec.enforcing_consecutive_5xx = number,
                "enforcing_success_rate" => spec.enforcing_success_rate = number,
                "success_rate_minimum_hosts" => spec.success_rate_minimum_hosts = number,
                "success_rate_request_volume" => spec.success_rate_request_volume = number,
                "success_rate_stdev_factor" => spec.success_rate_stdev_factor = number,
                "consecutive_gateway_failure" => spec.consecutive_gateway_failure = number,
                "enforcing_consecutive_gateway_failure" => {
                    spec.enforcing_consecutive_gateway_failure = number;
                }
                "consecutive_local_origin_failure" => spec.consecutive_local_origin_failure = number,
                "enforcing_consecutive_local_origin_failure" => {
                    spec.enforcing_consecutive_local_origin_failure = number;
                }
                "enforcing_local_origin_success_rate" => spec.enforcing_local_origin_success_rate = number,
                "failure_percentage_threshold" => spec.failure_percentage_threshold = number,
                "enforcing_failure_percentage" => spec.enforcing_failure_percentage = number,
                "enforcing_failure_percentage_local_origin" => {
                    spec.enforcing_failure_percentage_local_origin = number;
                }
                "failure_percentage_minimum_hosts" => spec.failure_percentage_minimum_hosts = number,
                "failure_percentage_request_volume" => spec.failure_percentage_request_volume = number,
                "max_ejection_time_ms" => spec.max_ejection_time = span,
                "max_ejection_time_jitter_ms" => spec.max_ejection_time_jitter = span,
                _ => {}
            }
        }
        spec
    }
}
