/* nexthop: which host, may I, how long, and, when it ended, what now.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Generated from ffi/src by ffi/generate-header.sh; do not edit.
 *
 * Rules that hold for every function:
 *  - Thread-safe; handles may be used from any thread, by several threads at once. Two reports of one attempt:
 *    exactly one wins, the other gets NEXTHOP_ENDED. None calls back, none but nexthop_wait blocks.
 *  - Handles are numbers. A stale, doubly used or made-up one is an error code, never undefined behaviour.
 *  - A pointer must be valid for what its length or struct_size says, and NULL only where that is told.
 *  - Text is pointer and length, UTF-8, without NUL. {NULL, 0} is absent, {NULL, n} is NEXTHOP_INVALID.
 *  - Time is nanoseconds of a monotonic clock. `now` is of the caller's choice, or NEXTHOP_NOW for the engine's.
 *  - `struct_size` of every struct that has one must be set to sizeof before the call, for results too. A smaller
 *    one (an older header) leaves the missing fields at their defaults; a larger one (a newer header) is accepted
 *    while what lies beyond is zero. The NEXTHOP_..._INIT macros set it and the defaults that are not zero.
 *  - Buffers: at most `cap` bytes are written, no NUL after them; `*len` (may be NULL) gets the length, also with
 *    NEXTHOP_SHORT, when nothing else has happened: call again with that much.
 *  - On any error nothing has changed, and nexthop_last_error tells the calling thread why.
 *  - Enumerations may grow. Unknown kind: as NEXTHOP_REFUSED with 503. Unknown action: as NEXTHOP_FORWARD.
 */

#ifndef NEXTHOP_H
#define NEXTHOP_H

#include <stddef.h>
#include <stdint.h>

#define NEXTHOP_NEVER UINT64_MAX /**< No limit; as `wait`: only after a report. */
#define NEXTHOP_STR(literal) { (literal), sizeof(literal) - 1 } /**< A nexthop_str of a string literal. */


#define NEXTHOP_ABI 1 /**< Version of this header; compare with nexthop_abi_version(). */
#define NEXTHOP_NO_SUCH_TARGET 4294967295 /**< A target that no name has: begin and pick answer NEXTHOP_REFUSED with no_cluster. */
#define NEXTHOP_NOW 0 /**< Argument `now`: read the engine's clock. */
#define NEXTHOP_OK 0 /**< Done. */
#define NEXTHOP_INVALID (-1) /**< A bad argument: NULL with a length, wrong struct_size, zero handle, number out of range, text that is not UTF-8. */
#define NEXTHOP_ENDED (-2) /**< The attempt or request has ended, or never was. */
#define NEXTHOP_STATE (-3) /**< Not legal in this state. */
#define NEXTHOP_CLOSED (-4) /**< The engine is closed. */
#define NEXTHOP_CONFIG (-5) /**< A document was refused whole. */
#define NEXTHOP_IO (-6) /**< A file could not be read. */
#define NEXTHOP_NOT_FOUND (-7) /**< No such name or host. */
#define NEXTHOP_LIMIT (-8) /**< A fixed limit: 1,023 engines, 4 million live requests, 60 KiB of head text. */
#define NEXTHOP_SHORT (-9) /**< The buffer is too small; `*len` tells what is needed. */
#define NEXTHOP_EMPTY (-10) /**< Nothing to poll. */
#define NEXTHOP_PANIC (-11) /**< A bug in nexthop, contained. */
#define NEXTHOP_GO 1 /**< Send it: there is an attempt. */
#define NEXTHOP_WAIT 2 /**< Nothing now; ask again after `wait`, or when woken. */
#define NEXTHOP_REFUSED 3 /**< There will be no attempt. */
#define NEXTHOP_FORWARD 1 /**< Final: pass on this response, or answer with the local reply. */
#define NEXTHOP_RETRY 2 /**< Drop this response and choose again; after_ms tells the back-off. */
#define NEXTHOP_DISCARD 3 /**< Drop this response; another attempt is in flight. */
#define NEXTHOP_WAKE 1 /**< Somebody's wait may be over: ask nexthop_poll_ready. */
#define NEXTHOP_ABORT_OTHERS 2 /**< Abort the request's other attempts. */
#define NEXTHOP_EVENTS 4 /**< There are events. */
#define NEXTHOP_WANT_CHANGED 8 /**< The set of wanted request headers grew. */
#define NEXTHOP_BIT_HEADERS 16 /**< There are headers to add to the attempt. */
#define NEXTHOP_BIT_RETRY 32 /**< This attempt is a retry. */
#define NEXTHOP_BIT_HEDGE 64 /**< This attempt is a hedge. */
#define NEXTHOP_BIT_PANIC 128 /**< The priority panicked: health was not looked at. */
#define NEXTHOP_BIT_FALLBACK 256 /**< A fallback was taken: composite walk, subset, gray. */
#define NEXTHOP_BIT_OVERRIDE 512 /**< The host is the one the request asked for. */
#define NEXTHOP_BIT_DEGRADED 1024 /**< The host is degraded. */
#define NEXTHOP_BIT_PRECISE 2048 /**< Measure latency with the precise clock. */
#define NEXTHOP_BIT_REWRITE 4096 /**< The headers to add contain `:path` or `:authority`. */
#define NEXTHOP_BIT_PROBE 8192 /**< A probe of a half-open host. */
#define NEXTHOP_BIT_DRY_RUN 16384 /**< A mechanism in dry run would have decided otherwise. */
#define NEXTHOP_WAIT_QUEUE 1 /**< For a permit of a full limit. */
#define NEXTHOP_WAIT_BACKOFF 2 /**< For the back-off of a retry. */
#define NEXTHOP_WAIT_HEDGE 3 /**< For the back-off of a hedge. */
#define NEXTHOP_WAIT_ATTEMPTS 4 /**< For a report of an attempt in flight. */
#define NEXTHOP_REFUSED_NO_HEALTHY_UPSTREAM 1 /**< No host can take it. */
#define NEXTHOP_REFUSED_OVERFLOW 2 /**< A limit is full; `resource` tells which. */
#define NEXTHOP_REFUSED_TIMEOUT 3 /**< The deadline passed in the queue or in back-off. */
#define NEXTHOP_REFUSED_NO_ROUTE 4 /**< No route matches. */
#define NEXTHOP_REFUSED_NO_CLUSTER 5 /**< No such cluster. */
#define NEXTHOP_REFUSED_DROP_OVERLOAD 6 /**< Dropped by drop_overloads. */
#define NEXTHOP_REFUSED_UNCONDITIONAL_DROP_OVERLOAD 7 /**< All dropped by drop_overloads. */
#define NEXTHOP_REFUSED_MAINTENANCE 8 /**< Maintenance mode. */
#define NEXTHOP_REFUSED_INVALID_HEADERS 9 /**< Headers failed the strict check. */
#define NEXTHOP_REFUSED_DIRECT_RESPONSE 10 /**< The route's own answer, redirects too: no error. */
#define NEXTHOP_REFUSED_ADMISSION 11 /**< Denied by admission control. */
#define NEXTHOP_REFUSED_CONCURRENCY 12 /**< Adaptive concurrency limit. */
#define NEXTHOP_REFUSED_BODY_TOO_LARGE 13 /**< The body outgrew the retry buffer. */
#define NEXTHOP_REFUSED_DEADLINE 14 /**< No attempt could end in time. */
#define NEXTHOP_REFUSED_COOLING 15 /**< All hosts are cooling down. */
#define NEXTHOP_RESOURCE_PENDING 1 /**< Pending. */
#define NEXTHOP_RESOURCE_REQUESTS 2 /**< Requests. */
#define NEXTHOP_RESOURCE_RETRIES 3 /**< Retries. */
#define NEXTHOP_RESOURCE_POOLS 4 /**< Pools. */
#define NEXTHOP_RESOURCE_CONNECTIONS 5 /**< Connections. */
#define NEXTHOP_RESOURCE_NO_ATTEMPT_NUMBER 16 /**< No attempt number. */
#define NEXTHOP_RESOURCE_PAST_LAST_SUB_CLUSTER 17 /**< Past last sub cluster. */
#define NEXTHOP_RESOURCE_SUB_CLUSTER_MISSING 18 /**< Sub cluster missing. */
#define NEXTHOP_RESOURCE_SUB_CLUSTER_EMPTY 19 /**< Sub cluster empty. */
#define NEXTHOP_RESOURCE_SUB_CLUSTER_REFUSED 20 /**< Sub cluster refused. */
#define NEXTHOP_RESOURCE_FILTERED 21 /**< Filtered. */
#define NEXTHOP_CONNECT_FAILURE 1 /**< The connection was not made. */
#define NEXTHOP_CONNECT_TIMEOUT 2 /**< Connecting took too long. */
#define NEXTHOP_CONNECTION_TERMINATION 3 /**< The peer closed the connection. */
#define NEXTHOP_REMOTE_RESET 4 /**< The peer reset the stream. */
#define NEXTHOP_REFUSED_STREAM 5 /**< The peer refused the stream: not processed. */
#define NEXTHOP_PROTOCOL_ERROR 6 /**< The answer broke the protocol. */
#define NEXTHOP_LOCAL_CONNECT_FAILURE 7 /**< This side could not connect: no descriptor or port. */
#define NEXTHOP_TIMEOUT 8 /**< Timed out; the engine decides which limit it was. */
#define NEXTHOP_PER_TRY_TIMEOUT 9 /**< The per-try limit. */
#define NEXTHOP_PER_TRY_IDLE_TIMEOUT 10 /**< The per-try idle limit. */
#define NEXTHOP_GLOBAL_TIMEOUT 11 /**< The global limit. */
#define NEXTHOP_MAX_STREAM_DURATION 12 /**< The longest stream duration. */
#define NEXTHOP_LOCAL_RESET 13 /**< This side reset the stream. */
#define NEXTHOP_OVERFLOW 14 /**< The caller's own pool is full. */
#define NEXTHOP_CONNECT_ERROR 15 /**< CONNECT was answered with an error. */
#define NEXTHOP_PREMATURE_CLOSE 16 /**< HTTP/1: the peer closed its half too early. */
#define NEXTHOP_OVERLOAD_MANAGER 17 /**< Overload protection of this side. */
#define NEXTHOP_NO_ERROR_RESET 18 /**< The peer reset the stream without an error. */
#define NEXTHOP_REASON_SUCCESS 1 /**< Success. */
#define NEXTHOP_REASON_NOT_RETRIABLE 2 /**< Not retriable. */
#define NEXTHOP_REASON_NO_POLICY 3 /**< No policy. */
#define NEXTHOP_REASON_LIMIT_EXCEEDED 4 /**< Limit exceeded. */
#define NEXTHOP_REASON_RETRY_OVERFLOW 5 /**< Retry overflow. */
#define NEXTHOP_REASON_RUNTIME_DISABLED 6 /**< Runtime disabled. */
#define NEXTHOP_REASON_RESPONSE_STARTED 7 /**< Response started. */
#define NEXTHOP_REASON_ALREADY_HEDGED 8 /**< Already hedged. */
#define NEXTHOP_REASON_ABANDONED 9 /**< Abandoned. */
#define NEXTHOP_REASON_BODY_NOT_REPLAYABLE 10 /**< Body not replayable. */
#define NEXTHOP_REASON_BACKOFF 11 /**< Backoff. */
#define NEXTHOP_REASON_BACKOFF_RATELIMITED 12 /**< Backoff ratelimited. */
#define NEXTHOP_REASON_IMMEDIATE 13 /**< Immediate. */
#define NEXTHOP_REASON_OTHERS_IN_FLIGHT 14 /**< Others in flight. */
#define NEXTHOP_REASON_CLIENT_GONE 15 /**< Client gone. */
#define NEXTHOP_REASON_STREAM_ENDED 16 /**< Stream ended. */
#define NEXTHOP_REASON_DEADLINE 17 /**< Deadline. */
#define NEXTHOP_REASON_RETRY_AFTER_TOO_LONG 18 /**< Retry after too long. */
#define NEXTHOP_REASON_NOT_IDEMPOTENT 19 /**< Not idempotent. */
#define NEXTHOP_REASON_OUTER_LAYER_RETRIES 20 /**< Outer layer retries. */
#define NEXTHOP_FLAG_UH 2 /**< Envoy's UH. */
#define NEXTHOP_FLAG_UT 4 /**< Envoy's UT. */
#define NEXTHOP_FLAG_LR 8 /**< Envoy's LR. */
#define NEXTHOP_FLAG_UR 16 /**< Envoy's UR. */
#define NEXTHOP_FLAG_UF 32 /**< Envoy's UF. */
#define NEXTHOP_FLAG_UC 64 /**< Envoy's UC. */
#define NEXTHOP_FLAG_UO 128 /**< Envoy's UO. */
#define NEXTHOP_FLAG_NR 256 /**< Envoy's NR. */
#define NEXTHOP_FLAG_DC 16384 /**< Envoy's DC. */
#define NEXTHOP_FLAG_URX 32768 /**< Envoy's URX. */
#define NEXTHOP_FLAG_IH 131072 /**< Envoy's IH. */
#define NEXTHOP_FLAG_UMSDR 524288 /**< Envoy's UMSDR. */
#define NEXTHOP_FLAG_UPE 8388608 /**< Envoy's UPE. */
#define NEXTHOP_FLAG_NC 16777216 /**< Envoy's NC. */
#define NEXTHOP_FLAG_DO 134217728 /**< Envoy's DO. */
#define NEXTHOP_FLAG_UDO 536870912 /**< Envoy's UDO. */
#define NEXTHOP_OUTCOME_CONNECTED 1 /**< A connection was there, whatever the failure says. */
#define NEXTHOP_OUTCOME_NOT_SENT 2 /**< Nothing was sent. */
#define NEXTHOP_OUTCOME_CUT 4 /**< The body was cut short. */
#define NEXTHOP_OUTCOME_NO_BODY 8 /**< There is no body. */
#define NEXTHOP_OUTCOME_CLOSED 16 /**< The connection is not kept alive. */
#define NEXTHOP_HEAD_INTERNAL 1 /**< `x-envoy-*` request headers count. */
#define NEXTHOP_HEAD_EXPLAIN 2 /**< Keep the whole reason trail. */
#define NEXTHOP_HEAD_REPLAY 4 /**< A streamed body can be sent again. */
#define NEXTHOP_HEAD_HASH 8 /**< `hash` is set. */
#define NEXTHOP_BODY_NONE 0 /**< There is none. */
#define NEXTHOP_BODY_REPLAYABLE 1 /**< Can be sent again. */
#define NEXTHOP_BODY_ONCE 2 /**< Cannot be sent again. */
#define NEXTHOP_BODY_STREAMING 3 /**< The upload still runs; note NEXTHOP_NOTE_BODY_COMPLETE when it is over. */
#define NEXTHOP_NOTE_CONNECTED 1 /**< The connection is there. */
#define NEXTHOP_NOTE_SENT 2 /**< The request headers are sent. */
#define NEXTHOP_NOTE_BODY_COMPLETE 3 /**< The request is sent whole. */
#define NEXTHOP_NOTE_RETRY_ABANDONED 4 /**< The upload outgrew the buffer: no retry any more. */
#define NEXTHOP_NOTE_INTERIM 5 /**< An interim response arrived. */
#define NEXTHOP_FINISH_CLIENT_GONE 1 /**< The client went away. */
#define NEXTHOP_FINISH_GLOBAL_TIMEOUT 2 /**< The global limit is over. */
#define NEXTHOP_FINISH_MAX_DURATION 3 /**< The longest stream duration is over. */
#define NEXTHOP_FINISH_IDLE 4 /**< The stream was idle too long. */
#define NEXTHOP_FINISH_SHUTDOWN 5 /**< This side shuts down. */
#define NEXTHOP_CLOCK_COARSE 0 /**< Monotonic, one scheduler tick (1 to 4 ms). */
#define NEXTHOP_CLOCK_PRECISE 1 /**< Monotonic, as exact as the machine can. */
#define NEXTHOP_CLOCK_MANUAL 2 /**< Moves by nexthop_advance only; begins at 1 s. For tests. */
#define NEXTHOP_DOCUMENT_TEXT 0 /**< The text itself. */
#define NEXTHOP_DOCUMENT_PATH 1 /**< A path to it. */
#define NEXTHOP_DOCUMENT_RUNTIME 2 /**< JSON object of runtime keys, replaced alone. */
#define NEXTHOP_DIALECT_AUTO 0 /**< Told by its keys. */
#define NEXTHOP_DIALECT_ENVOY 1 /**< As Envoy reads it. */
#define NEXTHOP_DIALECT_NEXTHOP 2 /**< Our own keys. */
#define NEXTHOP_DIALECT_ISTIO 3 /**< Objects of Istio. */
#define NEXTHOP_DIALECT_KUBERNETES 4 /**< EndpointSlices. */
#define NEXTHOP_DIALECT_NACOS 5 /**< An instance list of Nacos. */
#define NEXTHOP_DIALECT_CONSUL 6 /**< A health list of Consul. */
#define NEXTHOP_DIALECT_EUREKA 7 /**< Applications of Eureka. */
#define NEXTHOP_DIALECT_SPRING 8 /**< Service instances of Spring. */
#define NEXTHOP_HOST_SET 0 /**< All SET entries of a call together replace the cluster's hosts. */
#define NEXTHOP_HOST_ADD 1 /**< Add, or replace the host of that address. */
#define NEXTHOP_HOST_REMOVE 2 /**< Remove. */
#define NEXTHOP_HOST_CHANGE 3 /**< Change the fields named in `bits` only. */
#define NEXTHOP_HOST_ENDPOINTS 4 /**< Endpoints as Envoy sends them or as a registry lists them, in `metadata`; alone in its call. */
#define NEXTHOP_FIELD_WEIGHT 1 /**< Weight. */
#define NEXTHOP_FIELD_PRIORITY 2 /**< Priority. */
#define NEXTHOP_FIELD_HEALTH 4 /**< Health. */
#define NEXTHOP_FIELD_LOCALITY 8 /**< Region, zone and sub-zone. */
#define NEXTHOP_FIELD_METADATA 16 /**< Metadata. */
#define NEXTHOP_FIELD_HOSTNAME 32 /**< Hostname. */
#define NEXTHOP_HEALTH_UNKNOWN 0 /**< Unknown. */
#define NEXTHOP_HEALTH_HEALTHY 1 /**< Healthy. */
#define NEXTHOP_HEALTH_UNHEALTHY 2 /**< Unhealthy. */
#define NEXTHOP_HEALTH_DRAINING 3 /**< Draining. */
#define NEXTHOP_HEALTH_TIMEOUT 4 /**< Timeout. */
#define NEXTHOP_HEALTH_DEGRADED 5 /**< Degraded. */
#define NEXTHOP_HOST_SECURE 1 /**< TLS towards the host. */
#define NEXTHOP_TEXT_STATS 1 /**< Counters, JSON. */
#define NEXTHOP_TEXT_PROMETHEUS 2 /**< Counters, Prometheus text format. */
#define NEXTHOP_TEXT_EFFECTIVE 3 /**< Every number in force for a cluster or route, and where it came from, JSON; `arg` is its name. */
#define NEXTHOP_TEXT_LOAD_REPORT 4 /**< What of the last documents does nothing, JSON; with `arg` `all` every field. */
#define NEXTHOP_TEXT_LINT 5 /**< Lint, for people. */
#define NEXTHOP_TEXT_LINT_JSON 6 /**< Lint, JSON. */
#define NEXTHOP_TEXT_LINT_SARIF 7 /**< Lint, SARIF. */
#define NEXTHOP_TEXT_EXPLAIN 8 /**< What would be decided; `arg` is a head as JSON object. */
#define NEXTHOP_TEXT_EXPLAIN_ATTEMPT 9 /**< Why an attempt was chosen; `arg` is its id in decimal. */
#define NEXTHOP_TEXT_HOSTS 10 /**< Hosts of the cluster `arg`, or all, JSON. */
#define NEXTHOP_TEXT_HOST 11 /**< The host of address `arg`, JSON. */
#define NEXTHOP_TEXT_METRICS 12 /**< Counters with their kinds and attributes, a JSON array. */
#define NEXTHOP_CHECK_JUDGE 0 /**< Judge what came back. */
#define NEXTHOP_CHECK_SUCCESS 1 /**< It passed. */
#define NEXTHOP_CHECK_DEGRADED 2 /**< It passed, and the host says that it is degraded. */
#define NEXTHOP_CHECK_FAILED 3 /**< The host answered badly, which fails it at once. */
#define NEXTHOP_CHECK_NETWORK 4 /**< No connection, reset, disconnect; counts towards the threshold. */
#define NEXTHOP_CHECK_TIMEOUT 5 /**< No answer in time; counts towards the threshold. */
#define NEXTHOP_CHECK_RETRIABLE 6 /**< The host answered badly in a way that counts towards the threshold. */
#define NEXTHOP_CHECK_PASSIVE 7 /**< Data traffic says that the host has failed; the check itself is still out. */
#define NEXTHOP_CHECK_HTTP 1 /**< One request over HTTP. */
#define NEXTHOP_CHECK_TCP 2 /**< A connection, and perhaps bytes. */
#define NEXTHOP_CHECK_GRPC 3 /**< One call of grpc.health.v1.Health/Check over HTTP/2. */
#define NEXTHOP_CHECK_CUSTOM 4 /**< Something that only the caller knows; see `extension`. */
#define NEXTHOP_CHECK_BIT_HTTP2 1 /**< It is asked over HTTP/2. */
#define NEXTHOP_CHECK_BIT_REUSE 2 /**< One connection may carry many checks. */
#define NEXTHOP_CHECK_BIT_SECURE 4 /**< TLS towards the host. */
#define NEXTHOP_NAMES_FLAG 1 /**< Short name of a response flag; the value is its bit number. */
#define NEXTHOP_NAMES_FAILURE 2 /**< A failure. */
#define NEXTHOP_NAMES_REFUSAL 3 /**< A refusal. */
#define NEXTHOP_NAMES_REFUSAL_DETAILS 4 /**< A refusal's response code details. */
#define NEXTHOP_NAMES_REFUSAL_BODY 5 /**< A refusal's body. */
#define NEXTHOP_NAMES_REASON 6 /**< A verdict's reason. */
#define NEXTHOP_NAMES_STATUS 7 /**< A nexthop_status. */
#define NEXTHOP_NAMES_FAILURE_DETAILS 8 /**< A failure's response code details. */
#define NEXTHOP_NAMES_WAIT 9 /**< Why to wait. */
#define NEXTHOP_NAMES_RESOURCE 10 /**< A limit. */
#define NEXTHOP_NAMES_NOTE 11 /**< A note. */
#define NEXTHOP_NAMES_CHECK_RESULT 12 /**< A result of a check. */
#define NEXTHOP_NAMES_CHECK_PROTOCOL 13 /**< A protocol of a check. */

/** 0, or one of the negative numbers below. */
typedef int32_t nexthop_status;

/** How an engine is made. All zero is what most want. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_options) */
  /**
   * 0: a worker per thread. N: N workers shared by all threads; with 1, the same seed and the same calls give
   * the same decisions.
   */
  uint32_t workers;
  uint64_t seed; /**< 0: from the system's randomness. */
  uint64_t lease; /**< Nanoseconds after a request's deadline until an unreported attempt counts as lost; 0: 300 s. */
  uint64_t events; /**< Events kept; 0: 1,024. */
  uint8_t clock; /**< NEXTHOP_CLOCK_... */
  uint8_t reserved[7]; /**< Zero. */
  const uint64_t *draws; /**< Random words in place of worker 1's, followed by zeros; NULL: none. For tests. */
  size_t n_draws; /**< How many. */
} nexthop_options;

/** Text or bytes, without NUL at the end. {NULL, 0} is absent. */
typedef struct {
  const char *ptr; /**< First byte. */
  size_t len; /**< Bytes. */
} nexthop_str;

/** A document to read. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_document) */
  uint8_t dialect; /**< NEXTHOP_DIALECT_... */
  uint8_t kind; /**< NEXTHOP_DOCUMENT_... */
  uint8_t reserved[2]; /**< Zero. */
  nexthop_str name; /**< For messages; absent: the path, or `<text N>`. */
  nexthop_str text; /**< The text itself, or the path to it. */
} nexthop_document;

/** An engine. {0} is never valid. */
typedef struct {
  uint64_t id; /**< Opaque. */
} nexthop_engine;

/** What an engine is right now. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_engine_facts) */
  uint32_t reserved; /**< Zero. */
  uint64_t epoch; /**< Counts applied updates. */
  uint64_t live_requests; /**< Requests that are not done. */
  uint64_t seed; /**< Seed in use. */
} nexthop_engine_facts;

/** One change of a cluster's hosts. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_host_op) */
  uint32_t weight; /**< 0: 1. */
  uint32_t bits; /**< NEXTHOP_FIELD_...: what NEXTHOP_HOST_CHANGE changes. */
  uint16_t port; /**< Zero: the port is part of `address`. */
  uint16_t priority; /**< 0 to 128. */
  uint8_t health; /**< NEXTHOP_HEALTH_... */
  uint8_t op; /**< NEXTHOP_HOST_SET, ... */
  uint8_t reserved[6]; /**< Zero. */
  nexthop_str address; /**< `ip:port`, `[v6]:port` or `name:port`. */
  nexthop_str hostname; /**< May be absent. */
  nexthop_str region; /**< Locality. */
  nexthop_str zone; /**< Locality. */
  nexthop_str sub_zone; /**< Locality. */
  nexthop_str metadata; /**< JSON object of `envoy.lb` values; NEXTHOP_HOST_ENDPOINTS: a whole ClusterLoadAssignment or instance list. */
} nexthop_host_op;

/** A host. The strings lie in the buffer given to nexthop_host. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_host_info) */
  uint32_t version; /**< Moves when anything here changes. */
  uint32_t cluster; /**< Number of its cluster. */
  uint32_t weight; /**< 1 and up. */
  uint32_t bits; /**< NEXTHOP_HOST_SECURE. */
  uint16_t port; /**< 0 for pipes. */
  uint16_t priority; /**< 0 to 128. */
  uint64_t connect_timeout; /**< Nanoseconds. */
  nexthop_str address; /**< `ip:port`, `[v6]:port`, `name:port` or a path. */
  nexthop_str hostname; /**< May be absent. */
  nexthop_str cluster_name; /**< Cluster that owns the host. */
  nexthop_str region; /**< Locality. */
  nexthop_str zone; /**< Locality. */
  nexthop_str sub_zone; /**< Locality. */
  nexthop_str metadata; /**< JSON object of `envoy.lb` values. */
} nexthop_host_info;

/** One downstream request. {0} is never valid. */
typedef struct {
  uint64_t id; /**< Opaque. */
} nexthop_request;

/** What a request became. The strings lie in the buffer given to nexthop_request_info. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_request_facts) */
  uint32_t reserved; /**< Zero. */
  uint64_t timeout; /**< Nanoseconds of the global limit, or NEXTHOP_NEVER. */
  uint64_t idle_timeout; /**< Nanoseconds of the per-try idle limit, or NEXTHOP_NEVER. */
  nexthop_str cluster; /**< Cluster that the route or the caller named. */
  nexthop_str route; /**< `NAME` or `VHOST/NAME`; absent when the cluster was named. */
} nexthop_request_facts;

/** What to answer to the client when no upstream did. The strings lie in the buffer given to nexthop_reply. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_local_reply) */
  uint32_t flags; /**< NEXTHOP_FLAG_... */
  uint16_t status; /**< HTTP status. */
  uint16_t reserved; /**< Zero. */
  uint32_t n_headers; /**< How many headers. */
  nexthop_str details; /**< Response code details. */
  nexthop_str body; /**< May be absent. */
  nexthop_str headers; /**< For each header: name, NUL, value, NUL. */
} nexthop_local_reply;

/** A check to perform. The strings lie in the buffer given to nexthop_poll_check; absent where the protocol has none. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_check) */
  uint8_t protocol; /**< NEXTHOP_CHECK_HTTP, ... */
  uint8_t bits; /**< NEXTHOP_CHECK_BIT_HTTP2, ... */
  uint16_t want; /**< Set of wanted headers of the answer, and trailers. */
  uint64_t id; /**< For nexthop_check_result. */
  uint64_t timeout; /**< Nanoseconds until the result has to be there. */
  uint32_t host; /**< For nexthop_host. */
  uint32_t host_version; /**< For nexthop_host. */
  nexthop_str method; /**< Of the request. */
  nexthop_str path; /**< With its query. */
  nexthop_str authority; /**< Host header or `:authority`. */
  nexthop_str send; /**< A body, a framed gRPC message, or plain bytes. */
  nexthop_str address; /**< Where to connect, `ip:port`. */
  nexthop_str headers; /**< Other headers of the request, for each: name, NUL, value, NUL. */
  nexthop_str cluster; /**< Name of the host's cluster. */
  nexthop_str name; /**< Name of the checker, when its cluster has several. */
  nexthop_str extension; /**< Name of a custom check's extension. */
  uint64_t body_limit; /**< Bytes of a response's body that are looked at. */
} nexthop_check;

/** Facts about an attempt. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_outcome) */
  uint16_t status; /**< 0: none, else 100 to 999. */
  uint8_t failure; /**< NEXTHOP_CONNECT_FAILURE, ...; 0: none. */
  int8_t grpc_status; /**< -1: none. */
  uint32_t bits; /**< NEXTHOP_OUTCOME_... */
  uint32_t reserved; /**< Zero. */
  nexthop_str headers; /**< Header block over the decision's `want_ok` or `want_err`; trailers in nexthop_end. */
  nexthop_str detail; /**< Free text for explanations and events, up to 256 bytes. */
  uint64_t latency; /**< Nanoseconds from sent to headers; 0: the engine measures. */
  uint64_t bytes; /**< Body bytes; 0: unknown. */
} nexthop_outcome;

/** One upstream attempt of a request. {0} is never valid. */
typedef struct {
  uint64_t id; /**< Opaque. */
} nexthop_attempt;

/** The answer of choosing: send it, wait, or there will be no attempt. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_decision) */
  uint16_t kind; /**< NEXTHOP_GO, NEXTHOP_WAIT or NEXTHOP_REFUSED. */
  uint16_t bits; /**< NEXTHOP_WAKE, ..., NEXTHOP_BIT_... */
  nexthop_request request; /**< Always; when refused it is done already. */
  nexthop_attempt attempt; /**< GO. */
  uint32_t host; /**< Slot of the host, for nexthop_host. GO, and REFUSED when one was picked before a limit refused. */
  uint32_t host_version; /**< Version of what nexthop_host tells of it. */
  uint32_t number; /**< GO: attempt number from 1. Else: attempts begun. */
  uint16_t want_ok; /**< Wanted set for answers below 400. */
  uint16_t want_err; /**< Wanted set for other answers and failures. */
  uint64_t try_timeout; /**< Nanoseconds to response headers, or NEXTHOP_NEVER. */
  uint64_t remaining; /**< Nanoseconds of the global limit, to the end of the body, or NEXTHOP_NEVER. */
  uint64_t wait; /**< Nanoseconds until asking again makes sense, or NEXTHOP_NEVER. With GO: hedge then. */
  uint16_t status; /**< REFUSED: status of the local reply. */
  uint8_t refusal; /**< REFUSED: NEXTHOP_REFUSED_... WAIT: NEXTHOP_WAIT_... */
  uint8_t resource; /**< NEXTHOP_RESOURCE_... */
  uint32_t flags; /**< NEXTHOP_FLAG_... */
} nexthop_decision;

/** What a request is made from. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_head) */
  uint32_t bits; /**< NEXTHOP_HEAD_... */
  uint32_t target; /**< From nexthop_resolve; 0: match the route tables. */
  uint32_t number; /**< Attempt number of a stateless pick; 0: a full request. */
  uint32_t want; /**< Number of the wanted set over which `headers` is packed; 0 and 1: the empty set. */
  int8_t priority; /**< Routing priority: 0 default, 1 high, -1 the route's. */
  uint8_t body; /**< NEXTHOP_BODY_... */
  uint8_t reserved[2]; /**< Zero. */
  nexthop_str method; /**< Absent: GET. */
  nexthop_str scheme; /**< Absent: http. */
  nexthop_str authority; /**< `:authority`. */
  nexthop_str path; /**< With its query; absent: `/`. */
  nexthop_str headers; /**< Header block, see nexthop_pack. */
  nexthop_str source; /**< Client's `ip` or `ip:port`. */
  nexthop_str local; /**< Local `ip:port`. */
  nexthop_str key; /**< Bytes that replace every hash policy. */
  nexthop_str tried; /**< Stateless: addresses tried before, joined by commas. */
  nexthop_str override_host; /**< `ip:port` asked for; `!` before it: that one or none. */
  nexthop_str metadata; /**< JSON object of `envoy.lb` criteria. */
  nexthop_str filter_metadata; /**< JSON object of other namespaces. */
  uint64_t hash; /**< The hash itself, with NEXTHOP_HEAD_HASH. */
  uint64_t timeout; /**< The caller's own limit in nanoseconds; 0 or NEXTHOP_NEVER: none. */
  uint64_t user_data; /**< Comes back from nexthop_poll_ready. */
} nexthop_head;

/** The answer to a report. This struct never changes its size. */
typedef struct {
  int8_t code; /**< 0, or a negative nexthop_status. */
  uint8_t action; /**< NEXTHOP_FORWARD, NEXTHOP_RETRY or NEXTHOP_DISCARD; 0 with an error. */
  uint8_t reason; /**< NEXTHOP_REASON_... */
  uint8_t bits; /**< NEXTHOP_WAKE, NEXTHOP_ABORT_OTHERS, NEXTHOP_EVENTS. */
  uint32_t flags; /**< NEXTHOP_FLAG_...; they accumulate over a request. */
  uint16_t status; /**< The upstream's status, or that of the local reply. */
  uint16_t reserved; /**< Zero. */
  uint32_t after_ms; /**< RETRY: milliseconds of back-off. */
} nexthop_verdict;

/** A request whose wait is over. */
typedef struct {
  nexthop_request request; /**< Call nexthop_choose with it. */
  uint64_t user_data; /**< As in its head. */
} nexthop_ready;

/** The last error in its parts. The strings lie in the buffer given to nexthop_last_error_parts. */
typedef struct {
  uint32_t struct_size; /**< sizeof(nexthop_error_parts) */
  uint32_t line; /**< From 1; 0: the error is not about a place in a document. */
  uint32_t column; /**< In characters, from 1; 0: as line. */
  uint32_t reserved; /**< Zero. */
  nexthop_str file; /**< Name of the document, or the file that could not be read; absent for wrong use. */
  nexthop_str path; /**< Place inside the document, such as `clusters[3].outlier_detection.interval`; absent: the document itself. */
  nexthop_str message; /**< The complaint, without the place. */
  nexthop_str found; /**< What stands there; absent when that is not the point. */
  nexthop_str allowed; /**< What may stand there; absent when that is not the point. */
  nexthop_str nearest; /**< The known name nearest to an unknown one; absent when none is near. */
} nexthop_error_parts;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes an engine from documents, at least one. `options` may be NULL. Give it back with nexthop_engine_free. Up to 1,023 engines
 * may be there at a time. Errors: NEXTHOP_CONFIG, NEXTHOP_IO, NEXTHOP_LIMIT, NEXTHOP_INVALID.
 */
nexthop_status nexthop_engine_new(const nexthop_options *options, const nexthop_document *documents, size_t n,
                                  nexthop_engine *out);

/**
 * Closes an engine: every handle of it is dead (NEXTHOP_CLOSED). Its memory lives on until calls that are running
 * in other threads have returned. A second call gets NEXTHOP_CLOSED.
 */
nexthop_status nexthop_engine_free(nexthop_engine engine);

/** What an engine is right now. */
nexthop_status nexthop_engine_info(nexthop_engine engine, nexthop_engine_facts *out);

/**
 * Replaces all documents, at least one, whole or not at all. `*epoch` (may be NULL) gets the new epoch. Attempts in
 * flight go on. Requests that queued under a limit that was raised, or for a host that is gone, are ready: ask
 * nexthop_poll_ready, after nexthop_reload and nexthop_apply too.
 * Errors: NEXTHOP_CONFIG, NEXTHOP_IO, NEXTHOP_CLOSED, NEXTHOP_INVALID (also for no documents).
 */
nexthop_status nexthop_update(nexthop_engine engine, const nexthop_document *documents, size_t n,
                              uint64_t *epoch);

/**
 * Reads those files again that changed. Bad content is no error: the old documents go on serving, and an event
 * tells. `*swapped` (may be NULL) gets 1 when anything was taken over, else 0; `*epoch` (may be NULL) the present epoch.
 */
nexthop_status nexthop_reload(nexthop_engine engine, uint32_t *swapped, uint64_t *epoch);

/**
 * Changes hosts of one cluster, whole or not at all. `*epoch` (may be NULL) gets the new epoch.
 * Errors: NEXTHOP_NOT_FOUND (cluster), NEXTHOP_CONFIG (endpoints), NEXTHOP_INVALID (also for hosts of a composite, for
 * a host to change that is not there, and for endpoints whose cluster_name is of another cluster).
 */
nexthop_status nexthop_apply(nexthop_engine engine, nexthop_str cluster, const nexthop_host_op *changes,
                             size_t n, uint64_t *epoch);

/**
 * The number of a cluster ("name") or route ("route:NAME", "route:VHOST/NAME"). It holds for the engine's life,
 * also across removal and return of the name. Errors: NEXTHOP_NOT_FOUND.
 */
nexthop_status nexthop_resolve(nexthop_engine engine, nexthop_str name, uint32_t *target);

/**
 * Nanoseconds from `now` until maintenance is due, NEXTHOP_NEVER when nothing is or the engine is closed. Only for
 * idle processes: any call at or past that time runs what is due.
 */
uint64_t nexthop_poll_deadline(nexthop_engine engine, uint64_t now);

/** Runs due maintenance: sweeps, un-ejection, overdue attempts. `*bits` (may be NULL) gets NEXTHOP_WAKE, NEXTHOP_EVENTS. */
nexthop_status nexthop_maintain(nexthop_engine engine, uint64_t now, uint32_t *bits);

/**
 * Moves a manual clock (NEXTHOP_CLOCK_MANUAL) by so many nanoseconds, up to 292 years in all. Errors: NEXTHOP_STATE
 * for other clocks, NEXTHOP_INVALID past that end.
 */
nexthop_status nexthop_advance(nexthop_engine engine, uint64_t ns);

/** The engine's clock in nanoseconds; 0 for a closed engine. */
uint64_t nexthop_now(nexthop_engine engine);

/**
 * A text, see NEXTHOP_TEXT_...; `arg` as told there, else absent. Errors: NEXTHOP_SHORT, NEXTHOP_NOT_FOUND (no such
 * text, name, host or attempt), NEXTHOP_INVALID.
 */
nexthop_status nexthop_text(nexthop_engine engine, uint32_t what, nexthop_str arg, char *buf, size_t cap,
                            size_t *len);

/** The next event, oldest first, as one line of JSON. Errors: NEXTHOP_EMPTY (none), NEXTHOP_SHORT (it is kept). */
nexthop_status nexthop_poll_event(nexthop_engine engine, char *buf, size_t cap, size_t *len);

/**
 * What is to be shown of a host: `host` and `host_version` as in a decision, whose open attempt keeps it there.
 * `version` 0 takes any. Equal version, equal content. Errors: NEXTHOP_NOT_FOUND, NEXTHOP_SHORT.
 */
nexthop_status nexthop_host(nexthop_engine engine, uint32_t host, uint32_t version, nexthop_host_info *out,
                            char *buf, size_t cap, size_t *len);

/**
 * The names of a numbered set of wanted headers, lower case, NUL between them; their places are the indexes of
 * nexthop_pack. `set` 0 asks for the present set of a request's headers. `*number` (may be NULL) gets the set's
 * number: a set never changes, so read each once. Errors: NEXTHOP_NOT_FOUND, NEXTHOP_SHORT.
 */
nexthop_status nexthop_want(nexthop_engine engine, uint32_t set, uint32_t *number, char *buf, size_t cap,
                            size_t *len);

/**
 * Headers to set on an attempt (its id), or on the answer for the client (the request's id): for each name, NUL,
 * value, NUL; the value "\1" says: remove it. `:path` and `:authority` among them rewrite the URL.
 */
nexthop_status nexthop_extra_headers(uint64_t request_or_attempt, char *buf, size_t cap, size_t *len);

/**
 * What a request became: cluster, route, limits. Answers for a done request too, until its slot is used again.
 * Errors: NEXTHOP_ENDED, NEXTHOP_SHORT.
 */
nexthop_status nexthop_request_info(nexthop_request request, nexthop_request_facts *out, char *buf,
                                    size_t cap, size_t *len);

/**
 * What to answer to the client after a refusal, or after a final verdict on an attempt without response. Ask right
 * after it: the answer is there until the request's slot is used again. Errors: NEXTHOP_EMPTY (the request has
 * none), NEXTHOP_ENDED, NEXTHOP_SHORT.
 */
nexthop_status nexthop_reply(nexthop_request request, nexthop_local_reply *out, char *buf, size_t cap,
                             size_t *len);

/**
 * The next active check that is due; ask until NEXTHOP_EMPTY. Each is handed out once: perform it within its
 * `timeout` and tell nexthop_check_result, or it counts as timed out. The first call begins active checking: before it,
 * hosts count as if no cluster had `health_checks`; those that serve at that moment go on until their first result.
 * Errors: NEXTHOP_EMPTY (nothing is due), NEXTHOP_SHORT (it is kept), NEXTHOP_CLOSED.
 */
nexthop_status nexthop_poll_check(nexthop_engine engine, uint64_t now, nexthop_check *out, char *buf,
                                  size_t cap, size_t *len);

/**
 * Nanoseconds from `now` until nexthop_poll_check has something to do, NEXTHOP_NEVER when nothing is checked, nobody has
 * asked yet, or the engine is closed. Updates of documents and hosts may bring checks that are due at once: look again
 * at least every second.
 */
uint64_t nexthop_checks_deadline(nexthop_engine engine, uint64_t now);

/**
 * What came of a check: NEXTHOP_CHECK_SUCCESS and so on, or NEXTHOP_CHECK_JUDGE with what came back, which is judged
 * here by the rules of the check's protocol. `outcome` (may be NULL) holds status, failure, gRPC status (or the header
 * or trailer of that name) and headers over the check's set `want`; `body` the body, or everything that a TCP
 * connection has brought so far: absent once it is up. As nexthop_apply does, it may leave requests ready.
 * Errors: NEXTHOP_EMPTY (still out: read on; always after NEXTHOP_CHECK_PASSIVE), NEXTHOP_ENDED (reported before, out of
 * time, or its host has left: nothing has changed), NEXTHOP_CLOSED, NEXTHOP_INVALID (no such check or result, or an
 * answer that cannot be judged).
 */
nexthop_status nexthop_check_result(nexthop_engine engine, uint64_t check, uint32_t result,
                                    const nexthop_outcome *outcome, nexthop_str body, uint64_t now);

/**
 * A stateless attempt: one request of exactly one attempt with this number (1 to 2147483647; retry predicates act from
 * 2 on, a composite takes sub-cluster number - 1). `key` (may be absent) replaces the hash policies. It never says
 * NEXTHOP_WAIT unless the cluster queues. Errors: NEXTHOP_CLOSED, NEXTHOP_INVALID, NEXTHOP_LIMIT, NEXTHOP_NOT_FOUND (a
 * target that no name has).
 */
nexthop_status nexthop_pick(nexthop_engine engine, uint32_t target, uint32_t number, nexthop_str key,
                            uint64_t now, nexthop_decision *out);

/**
 * A new request and its first choice. End it by reports, or nexthop_finish.
 * Errors: NEXTHOP_CLOSED, NEXTHOP_INVALID, NEXTHOP_LIMIT, NEXTHOP_NOT_FOUND (a target that no name has). An unknown
 * cluster, NEXTHOP_NO_SUCH_TARGET, is no error but NEXTHOP_REFUSED.
 */
nexthop_status nexthop_begin(nexthop_engine engine, const nexthop_head *head, uint64_t now,
                             nexthop_decision *out);

/**
 * The next attempt of a request, or: is it my turn? Asking too early or too often is harmless.
 * Errors: NEXTHOP_STATE (an attempt is open, or its response is being streamed), NEXTHOP_ENDED, NEXTHOP_CLOSED,
 * NEXTHOP_INVALID (zero, or an attempt's handle).
 */
nexthop_status nexthop_choose(nexthop_request request, uint64_t now, nexthop_decision *out);

/**
 * Response headers are there: retry or forward? After NEXTHOP_FORWARD the body is the caller's; nexthop_end or
 * nexthop_fail closes the attempt. Verdict codes: NEXTHOP_ENDED, NEXTHOP_STATE, NEXTHOP_CLOSED, NEXTHOP_INVALID.
 */
nexthop_verdict nexthop_headers(nexthop_attempt attempt, const nexthop_outcome *outcome, uint64_t now);

/** The whole report: headers and end at once, or a failure. Verdict codes: as nexthop_headers. */
nexthop_verdict nexthop_complete(nexthop_attempt attempt, const nexthop_outcome *outcome, uint64_t now);

/** nexthop_complete with nothing but a status: 0 (success without status) or 100 to 999. */
nexthop_verdict nexthop_complete_status(nexthop_attempt attempt, uint32_t status, uint64_t now);

/** nexthop_complete, and when a retry is due at once, the next choice in the same call. Else `next->kind` is 0. */
nexthop_verdict nexthop_complete_next(nexthop_attempt attempt, const nexthop_outcome *outcome, uint64_t now,
                                      nexthop_decision *next);

/**
 * The attempt failed: NEXTHOP_CONNECT_FAILURE, .... After nexthop_headers: the body broke.
 * Verdict codes: as nexthop_headers; NEXTHOP_INVALID for unknown failures.
 */
nexthop_verdict nexthop_fail(nexthop_attempt attempt, uint32_t failure, uint64_t now);

/**
 * The response of an attempt is over. `outcome` (trailers, gRPC status, bytes) may be NULL: a clean end. Nothing
 * happens when the attempt has ended. Verdict codes: NEXTHOP_STATE before nexthop_headers, NEXTHOP_CLOSED,
 * NEXTHOP_INVALID.
 */
nexthop_verdict nexthop_end(nexthop_attempt attempt, const nexthop_outcome *outcome, uint64_t now);

/**
 * Drops an attempt: no outlier report, no retry. Nothing happens when it has ended, or its engine is closed. Verdict
 * codes: NEXTHOP_INVALID (zero, or a request's handle).
 */
nexthop_verdict nexthop_cancel(nexthop_attempt attempt, uint64_t now);

/**
 * Ends a request from any state, see NEXTHOP_FINISH_...; its attempts are cancelled. Nothing happens when it is
 * done, or its engine is closed. Verdict codes: NEXTHOP_INVALID (zero, an attempt's handle, no such reason).
 */
nexthop_verdict nexthop_finish(nexthop_request request, uint32_t reason, uint64_t now);

/**
 * Whether the attempt can be handed over to whatever reads its response's body: NEXTHOP_OK when it was answered and has
 * not ended. Errors: NEXTHOP_STATE before nexthop_headers, NEXTHOP_ENDED, NEXTHOP_CLOSED, NEXTHOP_INVALID.
 */
nexthop_status nexthop_answered(nexthop_attempt attempt);

/**
 * A fact about a request or attempt (its id), see NEXTHOP_NOTE_.... `*bits` (may be NULL) gets NEXTHOP_WAKE,
 * NEXTHOP_EVENTS. Nothing happens when it has ended.
 */
nexthop_status nexthop_note(uint64_t request_or_attempt, uint32_t what, uint64_t now, uint32_t *bits);

/**
 * Requests whose wait is over, each handed out once: up to `cap`, `*n` gets how many. Fewer than `cap`: no more.
 * Call it whenever a call returned NEXTHOP_WAKE.
 */
nexthop_status nexthop_poll_ready(nexthop_engine engine, nexthop_ready *ready, size_t cap, size_t *n);

/**
 * Blocks this thread until asking nexthop_choose again makes sense: at most `max_ns` (a decision's `wait`), and at
 * most a second. A request that is waited for here is not listed by nexthop_poll_ready. Errors: NEXTHOP_ENDED (the
 * request is over), NEXTHOP_CLOSED, NEXTHOP_INVALID (zero, or an attempt's handle).
 */
nexthop_status nexthop_wait(nexthop_request request, uint64_t max_ns);

/**
 * Version of the interface that the library was built with. When it differs from NEXTHOP_ABI, this header is not
 * that of the loaded library: say both numbers and stop.
 */
uint32_t nexthop_abi_version(void);

/** Version of the library, static text such as "1.2.3". */
const char *nexthop_version(void);

/** Static name of `value` in one of the tables NEXTHOP_NAMES_..., NUL-terminated, never NULL; "" for unknown ones. */
const char *nexthop_name(uint32_t table, uint32_t value);

/**
 * The sentence of the calling thread's last failed call: what was wrong, what was found, what to do.
 * Returns NEXTHOP_OK, NEXTHOP_SHORT, or NEXTHOP_INVALID for a NULL buffer with a capacity.
 */
nexthop_status nexthop_last_error(char *buf, size_t cap, size_t *len);

/**
 * The same error in its parts: for NEXTHOP_CONFIG the place in the document, for NEXTHOP_IO the file, for all others
 * the message alone. Returns NEXTHOP_OK, NEXTHOP_SHORT, or NEXTHOP_INVALID for bad arguments.
 */
nexthop_status nexthop_last_error_parts(nexthop_error_parts *out, char *buf, size_t cap, size_t *len);

/**
 * Appends one entry to a header block: the value of the header with this index in a wanted set. `at` is the
 * block's length so far. Returns its new length, of which nothing is written beyond `cap`: when it is larger
 * than `cap`, nothing was written and so much is needed. Returns 0 for NULL with a capacity or a length, and for
 * values of 4 GiB and more. Several values of one header are several entries in order.
 */
size_t nexthop_pack(char *buf, size_t cap, size_t at, uint16_t index, nexthop_str value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NEXTHOP_H */

#ifndef __cplusplus
/* Initialisers; in C++ the classes of nexthop.hpp do this. */
#define NEXTHOP_OPTIONS_INIT { .struct_size = sizeof(nexthop_options) }
#define NEXTHOP_DOCUMENT_INIT { .struct_size = sizeof(nexthop_document) }
#define NEXTHOP_HEAD_INIT { .struct_size = sizeof(nexthop_head), .want = 1, .priority = -1 }
#define NEXTHOP_DECISION_INIT { .struct_size = sizeof(nexthop_decision) }
#define NEXTHOP_OUTCOME_INIT { .struct_size = sizeof(nexthop_outcome), .grpc_status = -1 }
#define NEXTHOP_HOST_OP_INIT { .struct_size = sizeof(nexthop_host_op) }
#define NEXTHOP_HOST_INFO_INIT { .struct_size = sizeof(nexthop_host_info) }
#define NEXTHOP_LOCAL_REPLY_INIT { .struct_size = sizeof(nexthop_local_reply) }
#define NEXTHOP_REQUEST_FACTS_INIT { .struct_size = sizeof(nexthop_request_facts) }
#define NEXTHOP_ENGINE_FACTS_INIT { .struct_size = sizeof(nexthop_engine_facts) }
#define NEXTHOP_ERROR_PARTS_INIT { .struct_size = sizeof(nexthop_error_parts) }
#define NEXTHOP_CHECK_INIT { .struct_size = sizeof(nexthop_check) }
#endif
