//! Which numbers of translated clusters and routes nobody wrote: Istio's defaults.

use super::{Rows, below};
use crate::report::{ReportEntry, What};
use serde_json::Value;

/// Who is behind a field of the translation.
pub(super) enum Whose<'a> {
    /// The object that it names.
    Field,
    /// A value of the mesh.
    Mesh(&'a ReportEntry),
    /// Istio.
    Default,
}

/// A field here, the fields of Istio's objects that set it, and Istio's default where it may be written out.
type Known = (&'static str, &'static [&'static str], Option<f64>);

const UNLIMITED: Option<f64> = Some(u32::MAX as f64);

const KNOWN: [Known; 18] = [
    ("connect_timeout", &["connectTimeout"], Some(10.0)),
    ("circuit_breakers.default.max_connections", &["maxConnections"], UNLIMITED),
    ("circuit_breakers.default.max_pending_requests", &["http1MaxPendingRequests"], UNLIMITED),
    ("circuit_breakers.default.max_requests", &["http2MaxRequests"], UNLIMITED),
    ("circuit_breakers.default.max_retries", &["maxRetries"], UNLIMITED),
    ("panic_threshold", &["minHealthPercent"], Some(0.0)),
    ("policy", &["simple", "consistentHash"], None),
    ("policy.minimum_ring_size", &["minimumRingSize"], Some(1024.0)),
    ("outlier_detection.enforcing_consecutive_5xx", &["consecutive5xxErrors", "consecutiveErrors"], None),
    ("outlier_detection.enforcing_success_rate", &[], None),
    ("route.timeout", &["timeout"], None),
    ("route.max_grpc_timeout", &["timeout"], None),
    ("retry.on", &["retryOn"], None),
    ("retry.num_retries", &["attempts"], Some(2.0)),
    ("retry.previous_hosts", &["retryIgnorePreviousHosts"], None),
    ("retry.host_selection_retry_max_attempts", &[], None),
    ("retry.retriable_status_codes", &["retryOn"], None),
    ("circuit_breakers.default.track_remaining", &[], None),
];

/// Fields of the mesh that set what no object sets.
const MESH: [(&str, &str); 2] = [
    ("connect_timeout", "mesh.connectTimeout"),
    ("retry.num_retries", "mesh.defaultHttpRetryPolicy.attempts"),
];

impl<'a> Rows<'a> {
    /// Who is behind a field that the translation wrote; `entry` has the line of the object that it follows.
    pub(super) fn istio(&self, field: &str, value: &Value, entry: &ReportEntry) -> Whose<'a> {
        let Some((_, leaves, default)) = KNOWN.iter().find(|(known, ..)| *known == field) else {
            return Whose::Field;
        };
        let used = || {
            let entries = self.loaded.report.entries.iter();
            entries.filter(|used| used.what == What::Used && is_istios(&used.path))
        };
        let at_line = || used().filter(|used| used.file == entry.file && used.line == entry.line);
        let is_leaf = |path: &str| leaves.contains(&path.rsplit('.').next().unwrap_or(path));
        let is_mapping = |used: &&ReportEntry| used.text == "used";
        let mut objects: Vec<&str> = at_line().filter(is_mapping).map(|used| used.path.as_str()).collect();
        if objects.is_empty() {
            // The line begins with a field of the object.
            let fields = at_line()
                .filter(|used| !used.text.ends_with(" items"))
                .filter_map(|used| used.path.rsplit_once('.'));
            objects = fields.map(|(object, _)| object).collect();
        }
        let written = used()
            .filter(|used| {
                used.file == entry.file && is_leaf(&used.path) && !used.path.starts_with("spec.mesh")
            })
            .any(|used| objects.iter().any(|object| below(&used.path, object).is_some()));
        if written {
            return Whose::Field;
        }
        let mesh = MESH.iter().find(|(known, _)| *known == field);
        let mesh = mesh.and_then(|(_, end)| used().find(|used| used.path.ends_with(end)));
        match (mesh, default) {
            (Some(mesh), _) => Whose::Mesh(mesh),
            (None, Some(default)) if value.as_f64() != Some(*default) => Whose::Field,
            (None, _) => Whose::Default,
        }
    }
}

/// A path inside an object of Istio's form.
fn is_istios(path: &str) -> bool {
    path.starts_with("spec.") || path == "spec" || path.contains("].spec.")
}
