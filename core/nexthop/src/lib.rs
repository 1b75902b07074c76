//! nexthop: Envoy's upstream decisions as a library.
//!
//! [`raw`] is the level that every other language's face is built on: numbers in, numbers out.

pub mod raw;

pub use nexthop_config as config;
pub use nexthop_engine as engine;
