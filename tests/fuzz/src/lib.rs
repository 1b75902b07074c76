//! The fuzz targets as plain functions over bytes. Each panics when a promise is broken; `cargo fuzz` looks for bytes
//! that make it (see `fuzz/README.md`), and the tests of this crate replay the corpora.

mod abi;
mod bytes;
mod documents;
mod headers;
mod lifecycle;
mod model;

pub use abi::abi;
pub use documents::documents;
pub use headers::headers;
pub use lifecycle::lifecycle;

/// What is fuzzed.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: [(&str, Target); 4] =
    [("documents", documents), ("headers", headers), ("lifecycle", lifecycle), ("abi", abi)];
