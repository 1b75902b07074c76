//! Envoy's messages to specs, one file per message family.

mod address;
mod bootstrap;
mod breakers;
mod cluster;
mod composite;
mod endpoints;
mod gates;
mod hash_policy;
mod health_check;
mod listener;
mod load_reports;
mod matcher;
mod outlier;
mod override_host;
mod policy;
mod policy_legacy;
mod protocol;
mod retry;
mod route;
mod route_action;
mod route_table;
mod session;
mod subset;

pub use address::parse_address;
pub(crate) use address::{HostKey, Names};
pub(crate) use bootstrap::{bootstrap, flatten};
pub(crate) use cluster::{SHORT_KEYS, cluster, is_cluster_field, like_cluster_field};
pub(crate) use composite::sub_cluster;
pub(crate) use endpoints::{Rules, assignment, check_sums};
pub(crate) use gates::{admission, concurrency};
pub(crate) use hash_policy::header_name;
pub(crate) use listener::listener;
pub(crate) use matcher::regex;
pub(crate) use policy::{PolicyMessage, panic_percent};
pub(crate) use route_action::{check_weights, named};
pub(crate) use route_table::route_configuration;
