//! Limits as they act: the document's, with the runtime values `circuit_breakers.CLUSTER.PRIORITY.*` over them.

use crate::snapshot::integer;
use crate::spec::{RetryBudget, Thresholds, Value};
use std::collections::BTreeMap;

const PREFIX: &str = "circuit_breakers.";

/// Runtime values of limits, the last one of a key.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Overrides(BTreeMap<String, Value>);

impl Overrides {
    pub(crate) fn read(values: &[(String, Value)]) -> Self {
        let own = values.iter().filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value)));
        Self(own.map(|(key, value)| (key.to_owned(), value.clone())).collect())
    }

    /// The limits of a cluster by routing priority.
    pub(crate) fn over(&self, cluster: &str, document: &[Thresholds; 2]) -> [Thresholds; 2] {
        let mut limits = document.clone();
        if self.0.is_empty() {
            return limits;
        }
        for (limits, priority) in limits.iter_mut().zip(["default", "high"]) {
            let value = |leaf: &str| self.0.get(&format!("{cluster}.{priority}.{leaf}"));
            let whole = |leaf: &str| value(leaf).and_then(integer);
            // No count of ours reaches what does not fit.
            let number = |leaf: &str| whole(leaf).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
            limits.max_connections = number("max_connections").unwrap_or(limits.max_connections);
            limits.max_pending_requests =
                number("max_pending_requests").unwrap_or(limits.max_pending_requests);
            limits.max_requests = number("max_requests").unwrap_or(limits.max_requests);
            limits.max_retries = number("max_retries").unwrap_or(limits.max_retries);
            limits.max_connection_pools = whole("max_connection_pools").or(limits.max_connection_pools);
            let percent = match value("retry_budget.budget_percent") {
                Some(Value::Number(number)) => Some(*number),
                Some(Value::String(text)) => text.parse().ok(),
                _ => None,
            };
            let least = number("retry_budget.min_retry_concurrency");
            // Either of them turns a budget on.
            if percent.is_some() || least.is_some() {
                let budget = limits.retry_budget.unwrap_or_default();
                limits.retry_budget = Some(RetryBudget {
                    budget_percent: percent.unwrap_or(budget.budget_percent),
                    min_retry_concurrency: least.unwrap_or(budget.min_retry_concurrency),
                    ..budget
                });
            }
        }
        limits
    }
}
