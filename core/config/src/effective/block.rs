//! What the `nexthop:` block asks for, and the gates before routes.

use super::{Rows, limit, seconds};
use crate::report::{ReportEntry, What};
use nexthop_engine::spec::{
    AdmissionSpec, ClusterSpec, ConcurrencySpec, ConnectionStyle, GateSpec, MinRtt, OutcomeAt, RetryOptions,
    RouteTableSpec, Tunable,
};
use serde_json::{Value, json};

/// Where the fields of a gate stand: in a cluster's block, or in the HTTP filters before a route table.
#[derive(Clone, Copy, PartialEq)]
enum Gate {
    Block,
    Filters,
}

impl Rows<'_> {
    pub(super) fn block(&mut self, spec: &ClusterSpec) {
        // Stateless picks count unless the block says otherwise.
        let connections = spec.connections.unwrap_or(ConnectionStyle::Queue);
        let connections = format!("{connections:?}").to_lowercase();
        self.own("connections", json!(connections));
        self.own("protect_threshold", json!(spec.protect_threshold));
        self.own("lifecycle_events", json!(spec.lifecycle_events));
        self.own("exclude_tried", json!(spec.exclude_tried));
        self.own("subset_size", json!(spec.subset_size));
        let options = &spec.options;
        let outcome = if options.outcome_at == OutcomeAt::End { "end" } else { "headers" };
        self.own("outcome_at", json!(outcome));
        self.own("prefer_below_limit", json!(options.prefer_below_limit.is_some()));
        if let Some(prefer) = &options.prefer_below_limit {
            self.own("prefer_below_limit.dry_run", json!(prefer.dry_run));
        }
        self.own("half_open", json!(options.half_open.is_some()));
        if let Some(half) = &options.half_open {
            self.own("half_open.probes", json!(half.probes));
            self.own("half_open.interval", seconds(half.interval));
            self.own("half_open.max_interval", seconds(half.max_interval));
            self.own("half_open.dry_run", json!(half.dry_run));
        }
        self.own("cool_down", json!(options.cool_down.is_some()));
        if let Some(cool) = &options.cool_down {
            self.own("cool_down.on", json!(cool.on));
            self.own("cool_down.from_headers", json!(cool.from_headers));
            self.own("cool_down.default", seconds(cool.default));
            self.own("cool_down.max", seconds(cool.max));
            self.own("cool_down.dry_run", json!(cool.dry_run));
        }
        if let Some(admission) = &spec.admission {
            self.admission(Gate::Block, admission);
            self.own("admission.dry_run", json!(admission.dry_run));
        }
        if let Some(concurrency) = &spec.concurrency {
            self.concurrency(Gate::Block, concurrency);
            self.own("concurrency.dry_run", json!(concurrency.dry_run));
        }
    }

    /// A field of the block.
    fn own(&mut self, name: &str, value: Value) {
        let field = format!("nexthop.{name}");
        self.put(&field, value, &[&field]);
    }

    pub(super) fn options(&mut self, options: &RetryOptions) {
        if let Some(first) = &options.deadline_first {
            self.own("deadline_first", json!(true));
            self.own("deadline_first.least", limit(first.least));
            self.own("deadline_first.dry_run", json!(first.dry_run));
        }
        if let Some(after) = &options.retry_after {
            self.own("retry_after", json!("honour"));
            self.own("retry_after.max", seconds(after.max));
            self.own("retry_after.dry_run", json!(after.dry_run));
        }
        if let Some(guard) = &options.idempotency {
            self.own("idempotency", json!("guard"));
            self.own("idempotency.dry_run", json!(guard.dry_run));
        }
        if let Some(layers) = &options.layers {
            self.own("layers.header", json!(layers.header));
            self.own("layers.max_product", json!(layers.max_product));
            self.own("layers.dry_run", json!(layers.dry_run));
        }
        if !options.classes.is_empty() {
            let names: Vec<String> =
                options.classes.iter().map(|class| format!("{:?}", class.class).to_lowercase()).collect();
            self.own("classes", json!(names));
        }
    }

    /// The gates before a route table; a cluster's own replaces one of its kind.
    pub(super) fn gates(&mut self, table: &RouteTableSpec, cluster: Option<&ClusterSpec>) {
        for gate in &table.gates {
            match gate {
                GateSpec::Admission(spec) if cluster.is_none_or(|cluster| cluster.admission.is_none()) => {
                    self.admission(Gate::Filters, spec);
                }
                GateSpec::Concurrency(spec)
                    if cluster.is_none_or(|cluster| cluster.concurrency.is_none()) =>
                {
                    self.concurrency(Gate::Filters, spec);
                }
                GateSpec::Admission(_) | GateSpec::Concurrency(_) => {}
            }
        }
    }

    fn admission(&mut self, gate: Gate, spec: &AdmissionSpec) {
        let kind = "admission";
        self.gate(gate, kind, "enabled", "", json!(spec.enabled.on));
        self.gate(gate, kind, "sampling_window", "", seconds(spec.sampling_window));
        self.tunable(gate, kind, "aggression", &spec.aggression);
        self.tunable(gate, kind, "sr_threshold", &spec.sr_threshold);
        self.tunable(gate, kind, "rps_threshold", &spec.rps_threshold);
        self.tunable(gate, kind, "max_rejection_probability", &spec.max_rejection_probability);
    }

    fn concurrency(&mut self, gate: Gate, spec: &ConcurrencySpec) {
        let kind = "concurrency";
        let (whole, rtt) = ("gradient_controller_config", "gradient_controller_config.min_rtt_calc_params");
        let limits = "gradient_controller_config.concurrency_limit_params";
        self.gate(gate, kind, "enabled", "", json!(spec.enabled.on));
        self.gate(gate, kind, "concurrency_limit_exceeded_status", "", json!(spec.exceeded_status));
        self.gate(gate, kind, "sample_aggregate_percentile", whole, json!(spec.percentile));
        self.gate(gate, kind, "max_concurrency_limit", limits, json!(spec.max_limit));
        let least = spec.min_limit.unwrap_or(spec.min_concurrency);
        self.gate(gate, kind, "min_concurrency_limit", limits, json!(least));
        self.gate(gate, kind, "concurrency_update_interval", limits, seconds(spec.update_interval));
        match spec.min_rtt {
            MinRtt::Measured(pause) => self.gate(gate, kind, "interval", rtt, seconds(pause)),
            MinRtt::Fixed(fixed) => self.gate(gate, kind, "fixed_value", rtt, seconds(fixed)),
        }
        self.gate(gate, kind, "request_count", rtt, json!(spec.request_count));
        self.gate(gate, kind, "jitter", rtt, json!(spec.jitter));
        self.gate(gate, kind, "min_concurrency", rtt, json!(spec.min_concurrency));
        self.gate(gate, kind, "buffer", rtt, json!(spec.buffer));
    }

    /// One number of a gate; `below` is the message that holds it in Envoy's form.
    fn gate(&mut self, gate: Gate, kind: &str, name: &str, below: &str, value: Value) {
        let (field, given) = self.place(gate, kind, name, below);
        self.row(&field, value, given.as_ref());
    }

    fn tunable(&mut self, gate: Gate, kind: &str, name: &str, number: &Tunable) {
        let (field, given) = self.place(gate, kind, name, "");
        match self.runtime_number(&number.key) {
            Some(value) => self.put_runtime(&field, json!(value), &number.key),
            None => self.row(&field, json!(number.value), given.as_ref()),
        }
    }

    fn place(&self, gate: Gate, kind: &str, name: &str, below: &str) -> (String, Option<ReportEntry>) {
        let inner = if below.is_empty() { name.to_owned() } else { format!("{below}.{name}") };
        let leaves = [format!("{inner}.default_value"), format!("{inner}.value"), inner];
        match gate {
            Gate::Block => {
                let field = format!("nexthop.{kind}.{name}");
                let ends = leaves.map(|leaf| format!("nexthop.{kind}.{leaf}"));
                let ends: Vec<&str> = ends.iter().map(String::as_str).collect();
                let given = self.given(&ends).or_else(|| self.of_defaults(&ends)).cloned();
                (field, given)
            }
            Gate::Filters => {
                // The filters stand beside the route table in their connection manager.
                let manager = self.origin.path.split(".route_config").next().unwrap_or_default();
                let entries = &self.loaded.report.entries;
                let find = |leaf: &String| {
                    entries.iter().find(|entry| {
                        entry.what == What::Used
                            && entry.file == self.origin.file
                            && entry.path.strip_prefix(manager).is_some_and(|rest| {
                                rest.starts_with(".http_filters[") && super::ends_with(rest, leaf)
                            })
                    })
                };
                (format!("{kind}.{name}"), leaves.iter().find_map(find).cloned())
            }
        }
    }
}
