//! Reads the documents people have into nexthop's specs.
//!
//! [`load`] takes YAML or JSON texts (Envoy bootstraps, clusters, route configurations, nexthop's short form; one
//! document or a stream) and gives the engine's [`Specs`](nexthop_engine::spec::Specs) with a [`LoadReport`] of
//! fields that were accepted and do nothing. A fault refuses everything, with file, line, column and path.
//!
//! The crate touches no file and no environment; scalars, names and ranges are Envoy 1.40's.
//!
//! ```
//! use nexthop_config::{Dialect, Source, load};
//!
//! let text = b"clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80], policy: least_request}}";
//! let loaded = load(&[Source { name: "web.yaml", text, dialect: Dialect::Auto }]).unwrap();
//! assert_eq!(loaded.specs.clusters[0].endpoints.localities[0].endpoints.len(), 2);
//!
//! let error = load(&[Source { name: "bad.yaml", text: b"clusters: {web: {host: []}}", dialect: Dialect::Auto }]);
//! assert_eq!(
//!     error.unwrap_err().to_string(),
//!     "bad.yaml:1:18: clusters.web.host: unknown field `host`; did you mean `hosts`? (in a cluster of the short form)"
//! );
//! ```

#![forbid(unsafe_code)]

mod batch;
mod block;
mod dialect;
mod effective;
mod envoy;
mod error;
mod filters;
mod form;
mod front;
mod instances;
mod istio;
mod lint;
mod load;
mod metadata;
mod print;
mod read;
mod report;
mod short;

pub use dialect::Dialect;
pub use effective::{Origin, effective};
pub use envoy::parse_address;
pub use error::ConfigError;
pub use instances::ListOptions;
pub use lint::{Finding, Findings, Severity};
pub use load::{Loaded, Source, load, load_assignment, load_hosts, load_in_detail, translate};
pub use metadata::{parse_metadata_json, parse_runtime_json};
pub use report::{LoadReport, ReportEntry, What};
