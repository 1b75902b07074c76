//! The structs of the header. Field order is the ABI; `layout` holds it against C's view.
#![allow(non_camel_case_types, reason = "the header's names")]

use std::ffi::c_char;

/// An engine. {0} is never valid.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_engine {
    /// Opaque.
    pub id: u64,
}

/// One downstream request. {0} is never valid.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_request {
    /// Opaque.
    pub id: u64,
}

/// One upstream attempt of a request. {0} is never valid.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_attempt {
    /// Opaque.
    pub id: u64,
}

/// Text or bytes, without NUL at the end. {NULL, 0} is absent.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_str {
    /// First byte.
    pub ptr: *const c_char,
    /// Bytes.
    pub len: usize,
}

/// How an engine is made. All zero is what most want.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_options {
    /// sizeof(nexthop_options)
    pub struct_size: u32,
    /// 0: a worker per thread. N: N workers shared by all threads; with 1, the same seed and the same calls give
    /// the same decisions.
    pub workers: u32,
    /// 0: from the system's randomness.
    pub seed: u64,
    /// Nanoseconds after a request's deadline until an unreported attempt counts as lost; 0: 300 s.
    pub lease: u64,
    /// Events kept; 0: 1,024.
    pub events: u64,
    /// NEXTHOP_CLOCK_...
    pub clock: u8,
    /// Zero.
    pub reserved: [u8; 7],
    /// Random words in place of worker 1's, followed by zeros; NULL: none. For tests.
    pub draws: *const u64,
    /// How many.
    pub n_draws: usize,
}

/// A document to read.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_document {
    /// sizeof(nexthop_document)
    pub struct_size: u32,
    /// NEXTHOP_DIALECT_...
    pub dialect: u8,
    /// NEXTHOP_DOCUMENT_...
    pub kind: u8,
    /// Zero.
    pub reserved: [u8; 2],
    /// For messages; absent: the path, or `<text N>`.
    pub name: nexthop_str,
    /// The text itself, or the path to it.
    pub text: nexthop_str,
}

/// What a request is made from.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_head {
    /// sizeof(nexthop_head)
    pub struct_size: u32,
    /// NEXTHOP_HEAD_...
    pub bits: u32,
    /// From nexthop_resolve; 0: match the route tables.
    pub target: u32,
    /// Attempt number of a stateless pick; 0: a full request.
    pub number: u32,
    /// Number of the wanted set over which `headers` is packed; 0 and 1: the empty set.
    pub want: u32,
    /// Routing priority: 0 default, 1 high, -1 the route's.
    pub priority: i8,
    /// NEXTHOP_BODY_...
    pub body: u8,
    /// Zero.
    pub reserved: [u8; 2],
    /// Absent: GET.
    pub method: nexthop_str,
    /// Absent: http.
    pub scheme: nexthop_str,
    /// `:authority`.
    pub authority: nexthop_str,
    /// With its query; absent: `/`.
    pub path: nexthop_str,
    /// Header block, see nexthop_pack.
    pub headers: nexthop_str,
    /// Client's `ip` or `ip:port`.
    pub source: nexthop_str,
    /// Local `ip:port`.
    pub local: nexthop_str,
    /// Bytes that replace every hash policy.
    pub key: nexthop_str,
    /// Stateless: addresses tried before, joined by commas.
    pub tried: nexthop_str,
    /// `ip:port` asked for; `!` before it: that one or none.
    pub override_host: nexthop_str,
    /// JSON object of `envoy.lb` criteria.
    pub metadata: nexthop_str,
    /// JSON object of other namespaces.
    pub filter_metadata: nexthop_str,
    /// The hash itself, with NEXTHOP_HEAD_HASH.
    pub hash: u64,
    /// The caller's own limit in nanoseconds; 0 or NEXTHOP_NEVER: none.
    pub timeout: u64,
    /// Comes back from nexthop_poll_ready.
    pub user_data: u64,
}

/// The answer of choosing: send it, wait, or there will be no attempt.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_decision {
    /// sizeof(nexthop_decision)
    pub struct_size: u32,
    /// NEXTHOP_GO, NEXTHOP_WAIT or NEXTHOP_REFUSED.
    pub kind: u16,
    /// NEXTHOP_WAKE, ..., NEXTHOP_BIT_...
    pub bits: u16,
    /// Always; when refused it is done already.
    pub request: nexthop_request,
    /// GO.
    pub attempt: nexthop_attempt,
    /// Slot of the host, for nexthop_host. GO, and REFUSED when one was picked before a limit refused.
    pub host: u32,
    /// Version of what nexthop_host tells of it.
    pub host_version: u32,
    /// GO: attempt number from 1. Else: attempts begun.
    pub number: u32,
    /// Wanted set for answers below 400.
    pub want_ok: u16,
    /// Wanted set for other answers and failures.
    pub want_err: u16,
    /// Nanoseconds to response headers, or NEXTHOP_NEVER.
    pub try_timeout: u64,
    /// Nanoseconds of the global limit, to the end of the body, or NEXTHOP_NEVER.
    pub remaining: u64,
    /// Nanoseconds until asking again makes sense, or NEXTHOP_NEVER. With GO: hedge then.
    pub wait: u64,
    /// REFUSED: status of the local reply.
    pub status: u16,
    /// REFUSED: NEXTHOP_REFUSED_... WAIT: NEXTHOP_WAIT_...
    pub refusal: u8,
    /// NEXTHOP_RESOURCE_...
    pub resource: u8,
    /// NEXTHOP_FLAG_...
    pub flags: u32,
}

/// Facts about an attempt.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_outcome {
    /// sizeof(nexthop_outcome)
    pub struct_size: u32,
    /// 0: none, else 100 to 999.
    pub status: u16,
    /// NEXTHOP_CONNECT_FAILURE, ...; 0: none.
    pub failure: u8,
    /// -1: none.
    pub grpc_status: i8,
    /// NEXTHOP_OUTCOME_...
    pub bits: u32,
    /// Zero.
    pub reserved: u32,
    /// Header block over the decision's `want_ok` or `want_err`; trailers in nexthop_end.
    pub headers: nexthop_str,
    /// Free text for explanations and events, up to 256 bytes.
    pub detail: nexthop_str,
    /// Nanoseconds from sent to headers; 0: the engine measures.
    pub latency: u64,
    /// Body bytes; 0: unknown.
    pub bytes: u64,
}

/// The answer to a report. This struct never changes its size.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_verdict {
    /// 0, or a negative nexthop_status.
    pub code: i8,
    /// NEXTHOP_FORWARD, NEXTHOP_RETRY or NEXTHOP_DISCARD; 0 with an error.
    pub action: u8,
    /// NEXTHOP_REASON_...
    pub reason: u8,
    /// NEXTHOP_WAKE, NEXTHOP_ABORT_OTHERS, NEXTHOP_EVENTS.
    pub bits: u8,
    /// NEXTHOP_FLAG_...; they accumulate over a request.
    pub flags: u32,
    /// The upstream's status, or that of the local reply.
    pub status: u16,
    /// Zero.
    pub reserved: u16,
    /// RETRY: milliseconds of back-off.
    pub after_ms: u32,
}

/// A request whose wait is over.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_ready {
    /// Call nexthop_choose with it.
    pub request: nexthop_request,
    /// As in its head.
    pub user_data: u64,
}

/// A host. The strings lie in the buffer given to nexthop_host.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_host_info {
    /// sizeof(nexthop_host_info)
    pub struct_size: u32,
    /// Moves when anything here changes.
    pub version: u32,
    /// Number of its cluster.
    pub cluster: u32,
    /// 1 and up.
    pub weight: u32,
    /// NEXTHOP_HOST_SECURE.
    pub bits: u32,
    /// 0 for pipes.
    pub port: u16,
    /// 0 to 128.
    pub priority: u16,
    /// Nanoseconds.
    pub connect_timeout: u64,
    /// `ip:port`, `[v6]:port`, `name:port` or a path.
    pub address: nexthop_str,
    /// May be absent.
    pub hostname: nexthop_str,
    /// Cluster that owns the host.
    pub cluster_name: nexthop_str,
    /// Locality.
    pub region: nexthop_str,
    /// Locality.
    pub zone: nexthop_str,
    /// Locality.
    pub sub_zone: nexthop_str,
    /// JSON object of `envoy.lb` values.
    pub metadata: nexthop_str,
}

/// One change of a cluster's hosts.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_host_op {
    /// sizeof(nexthop_host_op)
    pub struct_size: u32,
    /// 0: 1.
    pub weight: u32,
    /// NEXTHOP_FIELD_...: what NEXTHOP_HOST_CHANGE changes.
    pub bits: u32,
    /// Zero: the port is part of `address`.
    pub port: u16,
    /// 0 to 128.
    pub priority: u16,
    /// NEXTHOP_HEALTH_...
    pub health: u8,
    /// NEXTHOP_HOST_SET, ...
    pub op: u8,
    /// Zero.
    pub reserved: [u8; 6],
    /// `ip:port`, `[v6]:port` or `name:port`.
    pub address: nexthop_str,
    /// May be absent.
    pub hostname: nexthop_str,
    /// Locality.
    pub region: nexthop_str,
    /// Locality.
    pub zone: nexthop_str,
    /// Locality.
    pub sub_zone: nexthop_str,
    /// JSON object of `envoy.lb` values; NEXTHOP_HOST_ENDPOINTS: a whole ClusterLoadAssignment or instance list.
    pub metadata: nexthop_str,
}

/// What to answer to the client when no upstream did. The strings lie in the buffer given to nexthop_reply.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_local_reply {
    /// sizeof(nexthop_local_reply)
    pub struct_size: u32,
    /// NEXTHOP_FLAG_...
    pub flags: u32,
    /// HTTP status.
    pub status: u16,
    /// Zero.
    pub reserved: u16,
    /// How many headers.
    pub n_headers: u32,
    /// Response code details.
    pub details: nexthop_str,
    /// May be absent.
    pub body: nexthop_str,
    /// For each header: name, NUL, value, NUL.
    pub headers: nexthop_str,
}

/// What a request became. The strings lie in the buffer given to nexthop_request_info.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_request_facts {
    /// sizeof(nexthop_request_facts)
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Nanoseconds of the global limit, or NEXTHOP_NEVER.
    pub timeout: u64,
    /// Nanoseconds of the per-try idle limit, or NEXTHOP_NEVER.
    pub idle_timeout: u64,
    /// Cluster that the route or the caller named.
    pub cluster: nexthop_str,
    /// `NAME` or `VHOST/NAME`; absent when the cluster was named.
    pub route: nexthop_str,
}

/// What an engine is right now.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_engine_facts {
    /// sizeof(nexthop_engine_facts)
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Counts applied updates.
    pub epoch: u64,
    /// Requests that are not done.
    pub live_requests: u64,
    /// Seed in use.
    pub seed: u64,
}

/// The last error in its parts. The strings lie in the buffer given to nexthop_last_error_parts.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_error_parts {
    /// sizeof(nexthop_error_parts)
    pub struct_size: u32,
    /// From 1; 0: the error is not about a place in a document.
    pub line: u32,
    /// In characters, from 1; 0: as line.
    pub column: u32,
    /// Zero.
    pub reserved: u32,
    /// Name of the document, or the file that could not be read; absent for wrong use.
    pub file: nexthop_str,
    /// Place inside the document, such as `clusters[3].outlier_detection.interval`; absent: the document itself.
    pub path: nexthop_str,
    /// The complaint, without the place.
    pub message: nexthop_str,
    /// What stands there; absent when that is not the point.
    pub found: nexthop_str,
    /// What may stand there; absent when that is not the point.
    pub allowed: nexthop_str,
    /// The known name nearest to an unknown one; absent when none is near.
    pub nearest: nexthop_str,
}

/// A check to perform. The strings lie in the buffer given to nexthop_poll_check; absent where the protocol has none.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nexthop_check {
    /// sizeof(nexthop_check)
    pub struct_size: u32,
    /// NEXTHOP_CHECK_HTTP, ...
    pub protocol: u8,
    /// NEXTHOP_CHECK_BIT_HTTP2, ...
    pub bits: u8,
    /// Set of wanted headers of the answer, and trailers.
    pub want: u16,
    /// For nexthop_check_result.
    pub id: u64,
    /// Nanoseconds until the result has to be there.
    pub timeout: u64,
    /// For nexthop_host.
    pub host: u32,
    /// For nexthop_host.
    pub host_version: u32,
    /// Of the request.
    pub method: nexthop_str,
    /// With its query.
    pub path: nexthop_str,
    /// Host header or `:authority`.
    pub authority: nexthop_str,
    /// A body, a framed gRPC message, or plain bytes.
    pub send: nexthop_str,
    /// Where to connect, `ip:port`.
    pub address: nexthop_str,
    /// Other headers of the request, for each: name, NUL, value, NUL.
    pub headers: nexthop_str,
    /// Name of the host's cluster.
    pub cluster: nexthop_str,
    /// Name of the checker, when its cluster has several.
    pub name: nexthop_str,
    /// Name of a custom check's extension.
    pub extension: nexthop_str,
    /// Bytes of a response's body that are looked at.
    pub body_limit: u64,
}
