//! Request hashes and the tables they lead into (`spec/load-balancing.md` sections 17 to 21).

pub(crate) mod bounded_load;
pub(crate) mod cookie;
pub(crate) mod maglev;
pub(crate) mod members;
mod murmur;
pub mod policy;
pub(crate) mod rendezvous;
pub(crate) mod ring;
mod twister;
#[cfg(test)]
mod vectors;

pub(crate) use cookie::find as find_cookie;
pub use policy::{GeneratedCookie, HashInput, HashPolicies};

/// XXH64 of some bytes.
#[inline]
pub fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    twox_hash::XxHash64::oneshot(seed, bytes)
}

/// What a hash leads into: the hosts of one priority, arranged.
pub(crate) trait Structure: Sized {
    /// What besides the members decides the arrangement.
    type Params: PartialEq + Clone;

    /// Arranges hosts; both slices have one entry per host, in the order of section 18.2.
    fn build(params: &Self::Params, keys: &[&str], weights: &[f64]) -> Self;

    /// The number of the host that `hash` leads to; `attempt` counts from 0 and leads elsewhere on retries.
    fn pick(&self, hash: u64, attempt: u32) -> Option<u32>;

    /// The first host that `accept` takes on the way on from where `hash` leads; `None` only when there is none.
    fn find(&self, hash: u64, accept: &mut dyn FnMut(u32) -> bool) -> Option<u32>;

    /// For gauges; `None` when there is no host.
    fn sizes(&self) -> Option<Sizes>;
}

/// Gauges of a ring (`ring_hash_lb.*`) or a table (`maglev_lb.*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Points of a ring, as planned (`size`); slots of a table.
    pub size: u64,
    /// `min_hashes_per_host`, `min_entries_per_host`.
    pub least_per_host: u64,
    /// `max_hashes_per_host`, `max_entries_per_host`.
    pub most_per_host: u64,
}
