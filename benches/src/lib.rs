//! Shared parts of the benchmarks: the limit, the clusters, and rounds that interleave all cases.

pub mod limit;
pub mod mesh;
pub mod rounds;
