//! Documents in, specs or complaints out.

mod bad_inputs;
mod block;
mod checks;
mod clusters;
mod composite;
mod contradictions;
mod destinations;
mod documents;
mod effective;
mod endpoints;
mod filters;
mod gates;
mod instances;
mod istio;
mod istio_findings;
mod istio_report;
mod istio_rules;
mod lints;
mod nasty;
mod properties;
mod routes;
mod scalars;
mod short_form;
mod vectors;

use nexthop_config::{ConfigError, Dialect, Loaded, Source, What, load};
use nexthop_engine::spec::ClusterSpec;

fn read(text: &str) -> Result<Loaded, ConfigError> {
    load(&[Source { name: "test.yaml", text: text.as_bytes(), dialect: Dialect::Auto }])
}

/// The complaint about a document, in one sentence.
fn complaint(text: &str) -> String {
    match read(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

/// A cluster with these fields besides its name.
fn cluster(fields: &str) -> Result<ClusterSpec, ConfigError> {
    let text = format!("static_resources: {{clusters: [{{name: web, {fields}}}]}}");
    read(&text).map(|loaded| loaded.specs.clusters.into_iter().next().unwrap())
}

/// Paths of the report with that mark.
fn noted(text: &str, what: What) -> Vec<String> {
    let entries = read(text).unwrap().report.entries;
    entries.into_iter().filter(|entry| entry.what == what).map(|entry| entry.path).collect()
}
