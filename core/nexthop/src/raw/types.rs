//! Arguments of cold calls.

/// How an engine is made; the default is what most want.
#[derive(Clone, Debug)]
pub struct Options {
    /// 0 = a worker per thread; N = N workers shared by all threads (1: same seed + same calls = same decisions).
    pub workers: u32,
    /// 0 = from the system's randomness.
    pub seed: u64,
    /// Nanoseconds; 0 = 300 s.
    pub lease: u64,
    /// Events kept; 0 = 1,024.
    pub events: u64,
    /// See [`clock`].
    pub clock: u8,
    /// Words in place of worker 1's, then zeros.
    pub draws: Option<Vec<u64>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { workers: 0, seed: 0, lease: 0, events: 0, clock: clock::COARSE, draws: None }
    }
}

/// Clocks of an engine.
pub mod clock {
    /// Monotonic, one scheduler tick (1 to 4 ms).
    pub const COARSE: u8 = 0;
    /// Monotonic, as exact as the machine can.
    pub const PRECISE: u8 = 1;
    /// Moves only by `advance`; begins at 1 s.
    pub const MANUAL: u8 = 2;
}

/// A document to read.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// See [`document_kind`].
    pub kind: u8,
    /// Empty = told by keys; else a name such as `envoy`, `nexthop`, `istio`, `nacos`.
    pub dialect: &'a str,
    /// For messages, and the cluster of an instance list; empty = the path, or `<text N>`.
    pub name: &'a str,
    /// Text (kind 0), path (kind 1) or runtime JSON (kind 2), as bytes.
    pub text: &'a [u8],
}

/// Kinds of a [`Document`].
pub mod document_kind {
    /// The text itself.
    pub const TEXT: u8 = 0;
    /// A path to it.
    pub const PATH: u8 = 1;
    /// JSON of runtime keys, replaced alone.
    pub const RUNTIME: u8 = 2;
}

/// One change of a cluster's hosts.
#[derive(Clone, Debug, Default)]
pub struct HostChange<'a> {
    /// See [`host_op`].
    pub op: u8,
    /// Which fields are given, see [`host_fields`]; only `CHANGE` reads it, for the others zero or empty = default.
    pub fields: u32,
    /// `ip:port`, `[v6]:port` or `name:port`.
    pub address: &'a str,
    /// 0 = 1.
    pub weight: u32,
    /// 0..=128.
    pub priority: u32,
    /// EDS number: 0 UNKNOWN ... 5 DEGRADED.
    pub health: u8,
    /// May be empty.
    pub hostname: &'a str,
    /// Locality.
    pub region: &'a str,
    /// Locality.
    pub zone: &'a str,
    /// Locality.
    pub sub_zone: &'a str,
    /// JSON object of `envoy.lb` values; for `ENDPOINTS` a whole `ClusterLoadAssignment` or an instance list (JSON or
    /// YAML), whose dialect may stand in `address` and whose options (`port_name=NAME`, `only_passing`, `ip_address`,
    /// apart by `&`) in `hostname`.
    pub metadata: &'a str,
}

/// Operations of a [`HostChange`].
pub mod host_op {
    /// All `SET` entries of one call together replace the cluster's hosts.
    pub const SET: u8 = 0;
    /// Add, or replace the host of that address.
    pub const ADD: u8 = 1;
    /// Remove.
    pub const REMOVE: u8 = 2;
    /// Change the given fields only.
    pub const CHANGE: u8 = 3;
    /// Endpoints as Envoy sends them or as a registry lists them; alone in its call.
    pub const ENDPOINTS: u8 = 4;
}

/// Fields of a [`HostChange`] for `CHANGE`.
pub mod host_fields {
    #![expect(missing_docs, reason = "the name says it")]
    pub const WEIGHT: u32 = 1;
    pub const PRIORITY: u32 = 2;
    pub const HEALTH: u32 = 4;
    pub const LOCALITY: u32 = 8;
    pub const METADATA: u32 = 16;
    pub const HOSTNAME: u32 = 32;
}

/// What an engine is right now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineInfo {
    /// Counts applied updates.
    pub epoch: u64,
    /// Requests that are not done.
    pub live_requests: u64,
    /// Seed in use.
    pub seed: u64,
    /// Bugs contained.
    pub panics: u64,
    /// The clock moves only by `advance`.
    pub manual: bool,
}
