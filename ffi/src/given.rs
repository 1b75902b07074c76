//! Numbers that callers pass in. Literals, as in `consts`; the test below holds them against the engine's.

// Bits of an outcome

/// A connection was there, whatever the failure says.
pub const NEXTHOP_OUTCOME_CONNECTED: u32 = 1;
/// Nothing was sent.
pub const NEXTHOP_OUTCOME_NOT_SENT: u32 = 2;
/// The body was cut short.
pub const NEXTHOP_OUTCOME_CUT: u32 = 4;
/// There is no body.
pub const NEXTHOP_OUTCOME_NO_BODY: u32 = 8;
/// The connection is not kept alive.
pub const NEXTHOP_OUTCOME_CLOSED: u32 = 16;

// Bits of a head

/// `x-envoy-*` request headers count.
pub const NEXTHOP_HEAD_INTERNAL: u32 = 1;
/// Keep the whole reason trail.
pub const NEXTHOP_HEAD_EXPLAIN: u32 = 2;
/// A streamed body can be sent again.
pub const NEXTHOP_HEAD_REPLAY: u32 = 4;
/// `hash` is set.
pub const NEXTHOP_HEAD_HASH: u32 = 8;

// Bodies of a request

/// There is none.
pub const NEXTHOP_BODY_NONE: u8 = 0;
/// Can be sent again.
pub const NEXTHOP_BODY_REPLAYABLE: u8 = 1;
/// Cannot be sent again.
pub const NEXTHOP_BODY_ONCE: u8 = 2;
/// The upload still runs; note NEXTHOP_NOTE_BODY_COMPLETE when it is over.
pub const NEXTHOP_BODY_STREAMING: u8 = 3;

// Facts for nexthop_note

/// The connection is there.
pub const NEXTHOP_NOTE_CONNECTED: u32 = 1;
/// The request headers are sent.
pub const NEXTHOP_NOTE_SENT: u32 = 2;
/// The request is sent whole.
pub const NEXTHOP_NOTE_BODY_COMPLETE: u32 = 3;
/// The upload outgrew the buffer: no retry any more.
pub const NEXTHOP_NOTE_RETRY_ABANDONED: u32 = 4;
/// An interim response arrived.
pub const NEXTHOP_NOTE_INTERIM: u32 = 5;

// Reasons for nexthop_finish

/// The client went away.
pub const NEXTHOP_FINISH_CLIENT_GONE: u32 = 1;
/// The global limit is over.
pub const NEXTHOP_FINISH_GLOBAL_TIMEOUT: u32 = 2;
/// The longest stream duration is over.
pub const NEXTHOP_FINISH_MAX_DURATION: u32 = 3;
/// The stream was idle too long.
pub const NEXTHOP_FINISH_IDLE: u32 = 4;
/// This side shuts down.
pub const NEXTHOP_FINISH_SHUTDOWN: u32 = 5;

// Clocks of an engine

/// Monotonic, one scheduler tick (1 to 4 ms).
pub const NEXTHOP_CLOCK_COARSE: u8 = 0;
/// Monotonic, as exact as the machine can.
pub const NEXTHOP_CLOCK_PRECISE: u8 = 1;
/// Moves by nexthop_advance only; begins at 1 s. For tests.
pub const NEXTHOP_CLOCK_MANUAL: u8 = 2;

// Kinds of a document

/// The text itself.
pub const NEXTHOP_DOCUMENT_TEXT: u8 = 0;
/// A path to it.
pub const NEXTHOP_DOCUMENT_PATH: u8 = 1;
/// JSON object of runtime keys, replaced alone.
pub const NEXTHOP_DOCUMENT_RUNTIME: u8 = 2;

// Dialects of a document

/// Told by its keys.
pub const NEXTHOP_DIALECT_AUTO: u8 = 0;
/// As Envoy reads it.
pub const NEXTHOP_DIALECT_ENVOY: u8 = 1;
/// Our own keys.
pub const NEXTHOP_DIALECT_NEXTHOP: u8 = 2;
/// Objects of Istio.
pub const NEXTHOP_DIALECT_ISTIO: u8 = 3;
/// EndpointSlices.
pub const NEXTHOP_DIALECT_KUBERNETES: u8 = 4;
/// An instance list of Nacos.
pub const NEXTHOP_DIALECT_NACOS: u8 = 5;
/// A health list of Consul.
pub const NEXTHOP_DIALECT_CONSUL: u8 = 6;
/// Applications of Eureka.
pub const NEXTHOP_DIALECT_EUREKA: u8 = 7;
/// Service instances of Spring.
pub const NEXTHOP_DIALECT_SPRING: u8 = 8;

// Changes of hosts

/// All SET entries of a call together replace the cluster's hosts.
pub const NEXTHOP_HOST_SET: u8 = 0;
/// Add, or replace the host of that address.
pub const NEXTHOP_HOST_ADD: u8 = 1;
/// Remove.
pub const NEXTHOP_HOST_REMOVE: u8 = 2;
/// Change the fields named in `bits` only.
pub const NEXTHOP_HOST_CHANGE: u8 = 3;
/// Endpoints as Envoy sends them or as a registry lists them, in `metadata`; alone in its call.
pub const NEXTHOP_HOST_ENDPOINTS: u8 = 4;

// Fields that NEXTHOP_HOST_CHANGE changes

/// Weight.
pub const NEXTHOP_FIELD_WEIGHT: u32 = 1;
/// Priority.
pub const NEXTHOP_FIELD_PRIORITY: u32 = 2;
/// Health.
pub const NEXTHOP_FIELD_HEALTH: u32 = 4;
/// Region, zone and sub-zone.
pub const NEXTHOP_FIELD_LOCALITY: u32 = 8;
/// Metadata.
pub const NEXTHOP_FIELD_METADATA: u32 = 16;
/// Hostname.
pub const NEXTHOP_FIELD_HOSTNAME: u32 = 32;

// Health of a host in a change, numbers of EDS

/// Unknown.
pub const NEXTHOP_HEALTH_UNKNOWN: u8 = 0;
/// Healthy.
pub const NEXTHOP_HEALTH_HEALTHY: u8 = 1;
/// Unhealthy.
pub const NEXTHOP_HEALTH_UNHEALTHY: u8 = 2;
/// Draining.
pub const NEXTHOP_HEALTH_DRAINING: u8 = 3;
/// Timeout.
pub const NEXTHOP_HEALTH_TIMEOUT: u8 = 4;
/// Degraded.
pub const NEXTHOP_HEALTH_DEGRADED: u8 = 5;

// Bits of nexthop_host_info

/// TLS towards the host.
pub const NEXTHOP_HOST_SECURE: u32 = 1;

// Texts of nexthop_text

/// Counters, JSON.
pub const NEXTHOP_TEXT_STATS: u32 = 1;
/// Counters, Prometheus text format.
pub const NEXTHOP_TEXT_PROMETHEUS: u32 = 2;
/// Every number in force for a cluster or route, and where it came from, JSON; `arg` is its name.
pub const NEXTHOP_TEXT_EFFECTIVE: u32 = 3;
/// What of the last documents does nothing, JSON; with `arg` `all` every field.
pub const NEXTHOP_TEXT_LOAD_REPORT: u32 = 4;
/// Lint, for people.
pub const NEXTHOP_TEXT_LINT: u32 = 5;
/// Lint, JSON.
pub const NEXTHOP_TEXT_LINT_JSON: u32 = 6;
/// Lint, SARIF.
pub const NEXTHOP_TEXT_LINT_SARIF: u32 = 7;
/// What would be decided; `arg` is a head as JSON object.
pub const NEXTHOP_TEXT_EXPLAIN: u32 = 8;
/// Why an attempt was chosen; `arg` is its id in decimal.
pub const NEXTHOP_TEXT_EXPLAIN_ATTEMPT: u32 = 9;
/// Hosts of the cluster `arg`, or all, JSON.
pub const NEXTHOP_TEXT_HOSTS: u32 = 10;
/// The host of address `arg`, JSON.
pub const NEXTHOP_TEXT_HOST: u32 = 11;
/// Counters with their kinds and attributes, a JSON array.
pub const NEXTHOP_TEXT_METRICS: u32 = 12;

// Results for nexthop_check_result

/// Judge what came back.
pub const NEXTHOP_CHECK_JUDGE: u32 = 0;
/// It passed.
pub const NEXTHOP_CHECK_SUCCESS: u32 = 1;
/// It passed, and the host says that it is degraded.
pub const NEXTHOP_CHECK_DEGRADED: u32 = 2;
/// The host answered badly, which fails it at once.
pub const NEXTHOP_CHECK_FAILED: u32 = 3;
/// No connection, reset, disconnect; counts towards the threshold.
pub const NEXTHOP_CHECK_NETWORK: u32 = 4;
/// No answer in time; counts towards the threshold.
pub const NEXTHOP_CHECK_TIMEOUT: u32 = 5;
/// The host answered badly in a way that counts towards the threshold.
pub const NEXTHOP_CHECK_RETRIABLE: u32 = 6;
/// Data traffic says that the host has failed; the check itself is still out.
pub const NEXTHOP_CHECK_PASSIVE: u32 = 7;

// Protocols of a check

/// One request over HTTP.
pub const NEXTHOP_CHECK_HTTP: u8 = 1;
/// A connection, and perhaps bytes.
pub const NEXTHOP_CHECK_TCP: u8 = 2;
/// One call of grpc.health.v1.Health/Check over HTTP/2.
pub const NEXTHOP_CHECK_GRPC: u8 = 3;
/// Something that only the caller knows; see `extension`.
pub const NEXTHOP_CHECK_CUSTOM: u8 = 4;

// Bits of a check

/// It is asked over HTTP/2.
pub const NEXTHOP_CHECK_BIT_HTTP2: u8 = 1;
/// One connection may carry many checks.
pub const NEXTHOP_CHECK_BIT_REUSE: u8 = 2;
/// TLS towards the host.
pub const NEXTHOP_CHECK_BIT_SECURE: u8 = 4;

// Tables of nexthop_name

/// Short name of a response flag; the value is its bit number.
pub const NEXTHOP_NAMES_FLAG: u32 = 1;
/// A failure.
pub const NEXTHOP_NAMES_FAILURE: u32 = 2;
/// A refusal.
pub const NEXTHOP_NAMES_REFUSAL: u32 = 3;
/// A refusal's response code details.
pub const NEXTHOP_NAMES_REFUSAL_DETAILS: u32 = 4;
/// A refusal's body.
pub const NEXTHOP_NAMES_REFUSAL_BODY: u32 = 5;
/// A verdict's reason.
pub const NEXTHOP_NAMES_REASON: u32 = 6;
/// A nexthop_status.
pub const NEXTHOP_NAMES_STATUS: u32 = 7;
/// A failure's response code details.
pub const NEXTHOP_NAMES_FAILURE_DETAILS: u32 = 8;
/// Why to wait.
pub const NEXTHOP_NAMES_WAIT: u32 = 9;
/// A limit.
pub const NEXTHOP_NAMES_RESOURCE: u32 = 10;
/// A note.
pub const NEXTHOP_NAMES_NOTE: u32 = 11;
/// A result of a check.
pub const NEXTHOP_NAMES_CHECK_RESULT: u32 = 12;
/// A protocol of a check.
pub const NEXTHOP_NAMES_CHECK_PROTOCOL: u32 = 13;

#[cfg(test)]
mod tests {
    use super::*;
    use nexthop::raw;

    #[test]
    fn numbers_are_the_engines() {
        assert_eq!(u64::from(NEXTHOP_OUTCOME_CONNECTED), u64::from(raw::outcome_bits::CONNECTED));
        assert_eq!(u64::from(NEXTHOP_OUTCOME_NOT_SENT), u64::from(raw::outcome_bits::NOT_SENT));
        assert_eq!(u64::from(NEXTHOP_OUTCOME_CUT), u64::from(raw::outcome_bits::CUT));
        assert_eq!(u64::from(NEXTHOP_OUTCOME_NO_BODY), u64::from(raw::outcome_bits::NO_BODY));
        assert_eq!(u64::from(NEXTHOP_OUTCOME_CLOSED), u64::from(raw::outcome_bits::CLOSED));
        assert_eq!(u64::from(NEXTHOP_HEAD_INTERNAL), u64::from(raw::head_bits::INTERNAL));
        assert_eq!(u64::from(NEXTHOP_HEAD_EXPLAIN), u64::from(raw::head_bits::EXPLAIN));
        assert_eq!(u64::from(NEXTHOP_HEAD_REPLAY), u64::from(raw::head_bits::REPLAY));
        assert_eq!(u64::from(NEXTHOP_HEAD_HASH), u64::from(raw::head_bits::HASH));
        assert_eq!(u64::from(NEXTHOP_NOTE_CONNECTED), u64::from(raw::note::CONNECTED));
        assert_eq!(u64::from(NEXTHOP_NOTE_SENT), u64::from(raw::note::SENT));
        assert_eq!(u64::from(NEXTHOP_NOTE_BODY_COMPLETE), u64::from(raw::note::BODY_COMPLETE));
        assert_eq!(u64::from(NEXTHOP_NOTE_RETRY_ABANDONED), u64::from(raw::note::RETRY_ABANDONED));
        assert_eq!(u64::from(NEXTHOP_NOTE_INTERIM), u64::from(raw::note::INTERIM));
        assert_eq!(u64::from(NEXTHOP_FINISH_CLIENT_GONE), u64::from(raw::finish::CLIENT_GONE));
        assert_eq!(u64::from(NEXTHOP_FINISH_GLOBAL_TIMEOUT), u64::from(raw::finish::GLOBAL_TIMEOUT));
        assert_eq!(u64::from(NEXTHOP_FINISH_MAX_DURATION), u64::from(raw::finish::MAX_DURATION));
        assert_eq!(u64::from(NEXTHOP_FINISH_IDLE), u64::from(raw::finish::IDLE));
        assert_eq!(u64::from(NEXTHOP_FINISH_SHUTDOWN), u64::from(raw::finish::SHUTDOWN));
        assert_eq!(u64::from(NEXTHOP_CLOCK_COARSE), u64::from(raw::clock::COARSE));
        assert_eq!(u64::from(NEXTHOP_CLOCK_PRECISE), u64::from(raw::clock::PRECISE));
        assert_eq!(u64::from(NEXTHOP_CLOCK_MANUAL), u64::from(raw::clock::MANUAL));
        assert_eq!(u64::from(NEXTHOP_DOCUMENT_TEXT), u64::from(raw::document_kind::TEXT));
        assert_eq!(u64::from(NEXTHOP_DOCUMENT_PATH), u64::from(raw::document_kind::PATH));
        assert_eq!(u64::from(NEXTHOP_DOCUMENT_RUNTIME), u64::from(raw::document_kind::RUNTIME));
        assert_eq!(u64::from(NEXTHOP_HOST_SET), u64::from(raw::host_op::SET));
        assert_eq!(u64::from(NEXTHOP_HOST_ADD), u64::from(raw::host_op::ADD));
        assert_eq!(u64::from(NEXTHOP_HOST_REMOVE), u64::from(raw::host_op::REMOVE));
        assert_eq!(u64::from(NEXTHOP_HOST_CHANGE), u64::from(raw::host_op::CHANGE));
        assert_eq!(u64::from(NEXTHOP_HOST_ENDPOINTS), u64::from(raw::host_op::ENDPOINTS));
        assert_eq!(u64::from(NEXTHOP_FIELD_WEIGHT), u64::from(raw::host_fields::WEIGHT));
        assert_eq!(u64::from(NEXTHOP_FIELD_PRIORITY), u64::from(raw::host_fields::PRIORITY));
        assert_eq!(u64::from(NEXTHOP_FIELD_HEALTH), u64::from(raw::host_fields::HEALTH));
        assert_eq!(u64::from(NEXTHOP_FIELD_LOCALITY), u64::from(raw::host_fields::LOCALITY));
        assert_eq!(u64::from(NEXTHOP_FIELD_METADATA), u64::from(raw::host_fields::METADATA));
        assert_eq!(u64::from(NEXTHOP_FIELD_HOSTNAME), u64::from(raw::host_fields::HOSTNAME));
        assert_eq!(NEXTHOP_CHECK_JUDGE, raw::check_results::JUDGE);
        assert_eq!(NEXTHOP_CHECK_SUCCESS, raw::check_results::SUCCESS);
        assert_eq!(NEXTHOP_CHECK_DEGRADED, raw::check_results::DEGRADED);
        assert_eq!(NEXTHOP_CHECK_FAILED, raw::check_results::FAILED);
        assert_eq!(NEXTHOP_CHECK_NETWORK, raw::check_results::NETWORK);
        assert_eq!(NEXTHOP_CHECK_TIMEOUT, raw::check_results::TIMEOUT);
        assert_eq!(NEXTHOP_CHECK_RETRIABLE, raw::check_results::RETRIABLE);
        assert_eq!(NEXTHOP_CHECK_PASSIVE, raw::check_results::PASSIVE);
        assert_eq!(NEXTHOP_CHECK_HTTP, raw::check_protocol::HTTP);
        assert_eq!(NEXTHOP_CHECK_TCP, raw::check_protocol::TCP);
        assert_eq!(NEXTHOP_CHECK_GRPC, raw::check_protocol::GRPC);
        assert_eq!(NEXTHOP_CHECK_CUSTOM, raw::check_protocol::CUSTOM);
        assert_eq!(NEXTHOP_CHECK_BIT_HTTP2, raw::check_bits::HTTP2);
        assert_eq!(NEXTHOP_CHECK_BIT_REUSE, raw::check_bits::REUSE);
        assert_eq!(NEXTHOP_CHECK_BIT_SECURE, raw::check_bits::SECURE);
    }
}
