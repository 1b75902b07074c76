//! Numbers that the library answers with, see also `given`. Literals, since the header generator evaluates nothing; the test below holds
//! them against the engine's.

// Version

/// Version of this header; compare with nexthop_abi_version().
pub const NEXTHOP_ABI: u32 = 1;
/// A target that no name has: begin and pick answer NEXTHOP_REFUSED with no_cluster.
pub const NEXTHOP_NO_SUCH_TARGET: u32 = 4_294_967_295;
/// Argument `now`: read the engine's clock.
pub const NEXTHOP_NOW: u64 = 0;

// Status

/// 0, or one of the negative numbers below.
#[allow(non_camel_case_types, reason = "the header's name")]
pub type nexthop_status = i32;

/// Done.
pub const NEXTHOP_OK: i32 = 0;
/// A bad argument: NULL with a length, wrong struct_size, zero handle, number out of range, text that is not UTF-8.
pub const NEXTHOP_INVALID: i32 = -1;
/// The attempt or request has ended, or never was.
pub const NEXTHOP_ENDED: i32 = -2;
/// Not legal in this state.
pub const NEXTHOP_STATE: i32 = -3;
/// The engine is closed.
pub const NEXTHOP_CLOSED: i32 = -4;
/// A document was refused whole.
pub const NEXTHOP_CONFIG: i32 = -5;
/// A file could not be read.
pub const NEXTHOP_IO: i32 = -6;
/// No such name or host.
pub const NEXTHOP_NOT_FOUND: i32 = -7;
/// A fixed limit: 1,023 engines, 4 million live requests, 60 KiB of head text.
pub const NEXTHOP_LIMIT: i32 = -8;
/// The buffer is too small; `*len` tells what is needed.
pub const NEXTHOP_SHORT: i32 = -9;
/// Nothing to poll.
pub const NEXTHOP_EMPTY: i32 = -10;
/// A bug in nexthop, contained.
pub const NEXTHOP_PANIC: i32 = -11;

// Kinds of a decision

/// Send it: there is an attempt.
pub const NEXTHOP_GO: u16 = 1;
/// Nothing now; ask again after `wait`, or when woken.
pub const NEXTHOP_WAIT: u16 = 2;
/// There will be no attempt.
pub const NEXTHOP_REFUSED: u16 = 3;

// Actions of a verdict

/// Final: pass on this response, or answer with the local reply.
pub const NEXTHOP_FORWARD: u8 = 1;
/// Drop this response and choose again; after_ms tells the back-off.
pub const NEXTHOP_RETRY: u8 = 2;
/// Drop this response; another attempt is in flight.
pub const NEXTHOP_DISCARD: u8 = 3;

// Bits of decisions; the low three of verdicts and of nexthop_maintain too

/// Somebody's wait may be over: ask nexthop_poll_ready.
pub const NEXTHOP_WAKE: u16 = 1;
/// Abort the request's other attempts.
pub const NEXTHOP_ABORT_OTHERS: u16 = 2;
/// There are events.
pub const NEXTHOP_EVENTS: u16 = 4;
/// The set of wanted request headers grew.
pub const NEXTHOP_WANT_CHANGED: u16 = 8;
/// There are headers to add to the attempt.
pub const NEXTHOP_BIT_HEADERS: u16 = 16;
/// This attempt is a retry.
pub const NEXTHOP_BIT_RETRY: u16 = 32;
/// This attempt is a hedge.
pub const NEXTHOP_BIT_HEDGE: u16 = 64;
/// The priority panicked: health was not looked at.
pub const NEXTHOP_BIT_PANIC: u16 = 128;
/// A fallback was taken: composite walk, subset, gray.
pub const NEXTHOP_BIT_FALLBACK: u16 = 256;
/// The host is the one the request asked for.
pub const NEXTHOP_BIT_OVERRIDE: u16 = 512;
/// The host is degraded.
pub const NEXTHOP_BIT_DEGRADED: u16 = 1024;
/// Measure latency with the precise clock.
pub const NEXTHOP_BIT_PRECISE: u16 = 2048;
/// The headers to add contain `:path` or `:authority`.
pub const NEXTHOP_BIT_REWRITE: u16 = 4096;
/// A probe of a half-open host.
pub const NEXTHOP_BIT_PROBE: u16 = 8192;
/// A mechanism in dry run would have decided otherwise.
pub const NEXTHOP_BIT_DRY_RUN: u16 = 16384;

// Why to wait

/// For a permit of a full limit.
pub const NEXTHOP_WAIT_QUEUE: u8 = 1;
/// For the back-off of a retry.
pub const NEXTHOP_WAIT_BACKOFF: u8 = 2;
/// For the back-off of a hedge.
pub const NEXTHOP_WAIT_HEDGE: u8 = 3;
/// For a report of an attempt in flight.
pub const NEXTHOP_WAIT_ATTEMPTS: u8 = 4;

// Refusals

/// No host can take it.
pub const NEXTHOP_REFUSED_NO_HEALTHY_UPSTREAM: u8 = 1;
/// A limit is full; `resource` tells which.
pub const NEXTHOP_REFUSED_OVERFLOW: u8 = 2;
/// The deadline passed in the queue or in back-off.
pub const NEXTHOP_REFUSED_TIMEOUT: u8 = 3;
/// No route matches.
pub const NEXTHOP_REFUSED_NO_ROUTE: u8 = 4;
/// No such cluster.
pub const NEXTHOP_REFUSED_NO_CLUSTER: u8 = 5;
/// Dropped by drop_overloads.
pub const NEXTHOP_REFUSED_DROP_OVERLOAD: u8 = 6;
/// All dropped by drop_overloads.
pub const NEXTHOP_REFUSED_UNCONDITIONAL_DROP_OVERLOAD: u8 = 7;
/// Maintenance mode.
pub const NEXTHOP_REFUSED_MAINTENANCE: u8 = 8;
/// Headers failed the strict check.
pub const NEXTHOP_REFUSED_INVALID_HEADERS: u8 = 9;
/// The route's own answer, redirects too: no error.
pub const NEXTHOP_REFUSED_DIRECT_RESPONSE: u8 = 10;
/// Denied by admission control.
pub const NEXTHOP_REFUSED_ADMISSION: u8 = 11;
/// Adaptive concurrency limit.
pub const NEXTHOP_REFUSED_CONCURRENCY: u8 = 12;
/// The body outgrew the retry buffer.
pub const NEXTHOP_REFUSED_BODY_TOO_LARGE: u8 = 13;
/// No attempt could end in time.
pub const NEXTHOP_REFUSED_DEADLINE: u8 = 14;
/// All hosts are cooling down.
pub const NEXTHOP_REFUSED_COOLING: u8 = 15;

// Limits that refused, and why a composite found no host

/// Pending.
pub const NEXTHOP_RESOURCE_PENDING: u8 = 1;
/// Requests.
pub const NEXTHOP_RESOURCE_REQUESTS: u8 = 2;
/// Retries.
pub const NEXTHOP_RESOURCE_RETRIES: u8 = 3;
/// Pools.
pub const NEXTHOP_RESOURCE_POOLS: u8 = 4;
/// Connections.
pub const NEXTHOP_RESOURCE_CONNECTIONS: u8 = 5;
/// No attempt number.
pub const NEXTHOP_RESOURCE_NO_ATTEMPT_NUMBER: u8 = 16;
/// Past last sub cluster.
pub const NEXTHOP_RESOURCE_PAST_LAST_SUB_CLUSTER: u8 = 17;
/// Sub cluster missing.
pub const NEXTHOP_RESOURCE_SUB_CLUSTER_MISSING: u8 = 18;
/// Sub cluster empty.
pub const NEXTHOP_RESOURCE_SUB_CLUSTER_EMPTY: u8 = 19;
/// Sub cluster refused.
pub const NEXTHOP_RESOURCE_SUB_CLUSTER_REFUSED: u8 = 20;
/// Filtered.
pub const NEXTHOP_RESOURCE_FILTERED: u8 = 21;

// Failures

/// The connection was not made.
pub const NEXTHOP_CONNECT_FAILURE: u8 = 1;
/// Connecting took too long.
pub const NEXTHOP_CONNECT_TIMEOUT: u8 = 2;
/// The peer closed the connection.
pub const NEXTHOP_CONNECTION_TERMINATION: u8 = 3;
/// The peer reset the stream.
pub const NEXTHOP_REMOTE_RESET: u8 = 4;
/// The peer refused the stream: not processed.
pub const NEXTHOP_REFUSED_STREAM: u8 = 5;
/// The answer broke the protocol.
pub const NEXTHOP_PROTOCOL_ERROR: u8 = 6;
/// This side could not connect: no descriptor or port.
pub const NEXTHOP_LOCAL_CONNECT_FAILURE: u8 = 7;
/// Timed out; the engine decides which limit it was.
pub const NEXTHOP_TIMEOUT: u8 = 8;
/// The per-try limit.
pub const NEXTHOP_PER_TRY_TIMEOUT: u8 = 9;
/// The per-try idle limit.
pub const NEXTHOP_PER_TRY_IDLE_TIMEOUT: u8 = 10;
/// The global limit.
pub const NEXTHOP_GLOBAL_TIMEOUT: u8 = 11;
/// The longest stream duration.
pub const NEXTHOP_MAX_STREAM_DURATION: u8 = 12;
/// This side reset the stream.
pub const NEXTHOP_LOCAL_RESET: u8 = 13;
/// The caller's own pool is full.
pub const NEXTHOP_OVERFLOW: u8 = 14;
/// CONNECT was answered with an error.
pub const NEXTHOP_CONNECT_ERROR: u8 = 15;
/// HTTP/1: the peer closed its half too early.
pub const NEXTHOP_PREMATURE_CLOSE: u8 = 16;
/// Overload protection of this side.
pub const NEXTHOP_OVERLOAD_MANAGER: u8 = 17;
/// The peer reset the stream without an error.
pub const NEXTHOP_NO_ERROR_RESET: u8 = 18;

// Reasons of a verdict

/// Success.
pub const NEXTHOP_REASON_SUCCESS: u8 = 1;
/// Not retriable.
pub const NEXTHOP_REASON_NOT_RETRIABLE: u8 = 2;
/// No policy.
pub const NEXTHOP_REASON_NO_POLICY: u8 = 3;
/// Limit exceeded.
pub const NEXTHOP_REASON_LIMIT_EXCEEDED: u8 = 4;
/// Retry overflow.
pub const NEXTHOP_REASON_RETRY_OVERFLOW: u8 = 5;
/// Runtime disabled.
pub const NEXTHOP_REASON_RUNTIME_DISABLED: u8 = 6;
/// Response started.
pub const NEXTHOP_REASON_RESPONSE_STARTED: u8 = 7;
/// Already hedged.
pub const NEXTHOP_REASON_ALREADY_HEDGED: u8 = 8;
/// Abandoned.
pub const NEXTHOP_REASON_ABANDONED: u8 = 9;
/// Body not replayable.
pub const NEXTHOP_REASON_BODY_NOT_REPLAYABLE: u8 = 10;
/// Backoff.
pub const NEXTHOP_REASON_BACKOFF: u8 = 11;
/// Backoff ratelimited.
pub const NEXTHOP_REASON_BACKOFF_RATELIMITED: u8 = 12;
/// Immediate.
pub const NEXTHOP_REASON_IMMEDIATE: u8 = 13;
/// Others in flight.
pub const NEXTHOP_REASON_OTHERS_IN_FLIGHT: u8 = 14;
/// Client gone.
pub const NEXTHOP_REASON_CLIENT_GONE: u8 = 15;
/// Stream ended.
pub const NEXTHOP_REASON_STREAM_ENDED: u8 = 16;
/// Deadline.
pub const NEXTHOP_REASON_DEADLINE: u8 = 17;
/// Retry after too long.
pub const NEXTHOP_REASON_RETRY_AFTER_TOO_LONG: u8 = 18;
/// Not idempotent.
pub const NEXTHOP_REASON_NOT_IDEMPOTENT: u8 = 19;
/// Outer layer retries.
pub const NEXTHOP_REASON_OUTER_LAYER_RETRIES: u8 = 20;

// Response flags, Envoy's bits

/// Envoy's UH.
pub const NEXTHOP_FLAG_UH: u32 = 2;
/// Envoy's UT.
pub const NEXTHOP_FLAG_UT: u32 = 4;
/// Envoy's LR.
pub const NEXTHOP_FLAG_LR: u32 = 8;
/// Envoy's UR.
pub const NEXTHOP_FLAG_UR: u32 = 16;
/// Envoy's UF.
pub const NEXTHOP_FLAG_UF: u32 = 32;
/// Envoy's UC.
pub const NEXTHOP_FLAG_UC: u32 = 64;
/// Envoy's UO.
pub const NEXTHOP_FLAG_UO: u32 = 128;
/// Envoy's NR.
pub const NEXTHOP_FLAG_NR: u32 = 256;
/// Envoy's DC.
pub const NEXTHOP_FLAG_DC: u32 = 16384;
/// Envoy's URX.
pub const NEXTHOP_FLAG_URX: u32 = 32768;
/// Envoy's IH.
pub const NEXTHOP_FLAG_IH: u32 = 131072;
/// Envoy's UMSDR.
pub const NEXTHOP_FLAG_UMSDR: u32 = 524288;
/// Envoy's UPE.
pub const NEXTHOP_FLAG_UPE: u32 = 8388608;
/// Envoy's NC.
pub const NEXTHOP_FLAG_NC: u32 = 16777216;
/// Envoy's DO.
pub const NEXTHOP_FLAG_DO: u32 = 134217728;
/// Envoy's UDO.
pub const NEXTHOP_FLAG_UDO: u32 = 536870912;

#[cfg(test)]
mod tests {
    use super::*;
    use nexthop::raw;

    #[test]
    fn numbers_are_the_engines() {
        assert_eq!(u64::from(NEXTHOP_ABI), u64::from(raw::ABI));
        assert_eq!(NEXTHOP_NO_SUCH_TARGET, raw::NO_SUCH_TARGET);
        assert_eq!(NEXTHOP_NOW, raw::NOW);
        assert_eq!(u64::from(NEXTHOP_GO), u64::from(raw::kind::GO));
        assert_eq!(u64::from(NEXTHOP_WAIT), u64::from(raw::kind::WAIT));
        assert_eq!(u64::from(NEXTHOP_REFUSED), u64::from(raw::kind::REFUSED));
        assert_eq!(u64::from(NEXTHOP_FORWARD), u64::from(raw::action::FORWARD));
        assert_eq!(u64::from(NEXTHOP_RETRY), u64::from(raw::action::RETRY));
        assert_eq!(u64::from(NEXTHOP_DISCARD), u64::from(raw::action::DISCARD));
        assert_eq!(u64::from(NEXTHOP_WAKE), u64::from(raw::bits::WAKE));
        assert_eq!(u64::from(NEXTHOP_ABORT_OTHERS), u64::from(raw::bits::ABORT_OTHERS));
        assert_eq!(u64::from(NEXTHOP_EVENTS), u64::from(raw::bits::EVENTS));
        assert_eq!(u64::from(NEXTHOP_WANT_CHANGED), u64::from(raw::bits::WANT_CHANGED));
        assert_eq!(u64::from(NEXTHOP_BIT_HEADERS), u64::from(raw::bits::HEADERS));
        assert_eq!(u64::from(NEXTHOP_BIT_RETRY), u64::from(raw::bits::RETRY));
        assert_eq!(u64::from(NEXTHOP_BIT_HEDGE), u64::from(raw::bits::HEDGE));
        assert_eq!(u64::from(NEXTHOP_BIT_PANIC), u64::from(raw::bits::PANIC));
        assert_eq!(u64::from(NEXTHOP_BIT_FALLBACK), u64::from(raw::bits::FALLBACK));
        assert_eq!(u64::from(NEXTHOP_BIT_OVERRIDE), u64::from(raw::bits::OVERRIDE));
        assert_eq!(u64::from(NEXTHOP_BIT_DEGRADED), u64::from(raw::bits::DEGRADED));
        assert_eq!(u64::from(NEXTHOP_BIT_PRECISE), u64::from(raw::bits::PRECISE));
        assert_eq!(u64::from(NEXTHOP_BIT_REWRITE), u64::from(raw::bits::REWRITE));
        assert_eq!(u64::from(NEXTHOP_BIT_PROBE), u64::from(raw::bits::PROBE));
        assert_eq!(u64::from(NEXTHOP_BIT_DRY_RUN), u64::from(raw::bits::DRY_RUN));
        assert_eq!(u64::from(NEXTHOP_WAIT_QUEUE), u64::from(raw::wait::QUEUE));
        assert_eq!(u64::from(NEXTHOP_WAIT_BACKOFF), u64::from(raw::wait::BACKOFF));
        assert_eq!(u64::from(NEXTHOP_WAIT_HEDGE), u64::from(raw::wait::HEDGE));
        assert_eq!(u64::from(NEXTHOP_WAIT_ATTEMPTS), u64::from(raw::wait::ATTEMPTS));
        assert_eq!(
            u64::from(NEXTHOP_REFUSED_NO_HEALTHY_UPSTREAM),
            u64::from(raw::refusal::NO_HEALTHY_UPSTREAM)
        );
        assert_eq!(u64::from(NEXTHOP_REFUSED_OVERFLOW), u64::from(raw::refusal::OVERFLOW));
        assert_eq!(u64::from(NEXTHOP_REFUSED_TIMEOUT), u64::from(raw::refusal::TIMEOUT));
        assert_eq!(u64::from(NEXTHOP_REFUSED_NO_ROUTE), u64::from(raw::refusal::NO_ROUTE));
        assert_eq!(u64::from(NEXTHOP_REFUSED_NO_CLUSTER), u64::from(raw::refusal::NO_CLUSTER));
        assert_eq!(u64::from(NEXTHOP_REFUSED_DROP_OVERLOAD), u64::from(raw::refusal::DROP_OVERLOAD));
        assert_eq!(
            u64::from(NEXTHOP_REFUSED_UNCONDITIONAL_DROP_OVERLOAD),
            u64::from(raw::refusal::UNCONDITIONAL_DROP_OVERLOAD)
        );
        assert_eq!(u64::from(NEXTHOP_REFUSED_MAINTENANCE), u64::from(raw::refusal::MAINTENANCE));
        assert_eq!(u64::from(NEXTHOP_REFUSED_INVALID_HEADERS), u64::from(raw::refusal::INVALID_HEADERS));
        assert_eq!(u64::from(NEXTHOP_REFUSED_DIRECT_RESPONSE), u64::from(raw::refusal::DIRECT_RESPONSE));
        assert_eq!(u64::from(NEXTHOP_REFUSED_ADMISSION), u64::from(raw::refusal::ADMISSION));
        assert_eq!(u64::from(NEXTHOP_REFUSED_CONCURRENCY), u64::from(raw::refusal::CONCURRENCY));
        assert_eq!(u64::from(NEXTHOP_REFUSED_BODY_TOO_LARGE), u64::from(raw::refusal::BODY_TOO_LARGE));
        assert_eq!(u64::from(NEXTHOP_REFUSED_DEADLINE), u64::from(raw::refusal::DEADLINE));
        assert_eq!(u64::from(NEXTHOP_REFUSED_COOLING), u64::from(raw::refusal::COOLING));
        assert_eq!(u64::from(NEXTHOP_RESOURCE_PENDING), u64::from(raw::resource::PENDING));
        assert_eq!(u64::from(NEXTHOP_RESOURCE_REQUESTS), u64::from(raw::resource::REQUESTS));
        assert_eq!(u64::from(NEXTHOP_RESOURCE_RETRIES), u64::from(raw::resource::RETRIES));
        assert_eq!(u64::from(NEXTHOP_RESOURCE_POOLS), u64::from(raw::resource::POOLS));
        assert_eq!(u64::from(NEXTHOP_RESOURCE_CONNECTIONS), u64::from(raw::resource::CONNECTIONS));
        assert_eq!(
            u64::from(NEXTHOP_RESOURCE_NO_ATTEMPT_NUMBER),
            u64::from(raw::resource::NO_ATTEMPT_NUMBER)
        );
        assert_eq!(
            u64::from(NEXTHOP_RESOURCE_PAST_LAST_SUB_CLUSTER),
            u64::from(raw::resource::PAST_LAST_SUB_CLUSTER)
        );
        assert_eq!(
            u64::from(NEXTHOP_RESOURCE_SUB_CLUSTER_MISSING),
            u64::from(raw::resource::SUB_CLUSTER_MISSING)
        );
        assert_eq!(
            u64::from(NEXTHOP_RESOURCE_SUB_CLUSTER_EMPTY),
            u64::from(raw::resource::SUB_CLUSTER_EMPTY)
        );
        assert_eq!(
            u64::from(NEXTHOP_RESOURCE_SUB_CLUSTER_REFUSED),
            u64::from(raw::resource::SUB_CLUSTER_REFUSED)
        );
        assert_eq!(u64::from(NEXTHOP_RESOURCE_FILTERED), u64::from(raw::resource::FILTERED));
        assert_eq!(u64::from(NEXTHOP_CONNECT_FAILURE), u64::from(raw::failure::CONNECT_FAILURE));
        assert_eq!(u64::from(NEXTHOP_CONNECT_TIMEOUT), u64::from(raw::failure::CONNECT_TIMEOUT));
        assert_eq!(
            u64::from(NEXTHOP_CONNECTION_TERMINATION),
            u64::from(raw::failure::CONNECTION_TERMINATION)
        );
        assert_eq!(u64::from(NEXTHOP_REMOTE_RESET), u64::from(raw::failure::REMOTE_RESET));
        assert_eq!(u64::from(NEXTHOP_REFUSED_STREAM), u64::from(raw::failure::REFUSED_STREAM));
        assert_eq!(u64::from(NEXTHOP_PROTOCOL_ERROR), u64::from(raw::failure::PROTOCOL_ERROR));
        assert_eq!(u64::from(NEXTHOP_LOCAL_CONNECT_FAILURE), u64::from(raw::failure::LOCAL_CONNECT_FAILURE));
        assert_eq!(u64::from(NEXTHOP_TIMEOUT), u64::from(raw::failure::TIMEOUT));
        assert_eq!(u64::from(NEXTHOP_PER_TRY_TIMEOUT), u64::from(raw::failure::PER_TRY_TIMEOUT));
        assert_eq!(u64::from(NEXTHOP_PER_TRY_IDLE_TIMEOUT), u64::from(raw::failure::PER_TRY_IDLE_TIMEOUT));
        assert_eq!(u64::from(NEXTHOP_GLOBAL_TIMEOUT), u64::from(raw::failure::GLOBAL_TIMEOUT));
        assert_eq!(u64::from(NEXTHOP_MAX_STREAM_DURATION), u64::from(raw::failure::MAX_STREAM_DURATION));
        assert_eq!(u64::from(NEXTHOP_LOCAL_RESET), u64::from(raw::failure::LOCAL_RESET));
        assert_eq!(u64::from(NEXTHOP_OVERFLOW), u64::from(raw::failure::OVERFLOW));
        assert_eq!(u64::from(NEXTHOP_CONNECT_ERROR), u64::from(raw::failure::CONNECT_ERROR));
        assert_eq!(u64::from(NEXTHOP_PREMATURE_CLOSE), u64::from(raw::failure::PREMATURE_CLOSE));
        assert_eq!(u64::from(NEXTHOP_OVERLOAD_MANAGER), u64::from(raw::failure::OVERLOAD_MANAGER));
        assert_eq!(u64::from(NEXTHOP_NO_ERROR_RESET), u64::from(raw::failure::NO_ERROR_RESET));
        assert_eq!(u64::from(NEXTHOP_REASON_SUCCESS), u64::from(raw::reason::SUCCESS));
        assert_eq!(u64::from(NEXTHOP_REASON_NOT_RETRIABLE), u64::from(raw::reason::NOT_RETRIABLE));
        assert_eq!(u64::from(NEXTHOP_REASON_NO_POLICY), u64::from(raw::reason::NO_POLICY));
        assert_eq!(u64::from(NEXTHOP_REASON_LIMIT_EXCEEDED), u64::from(raw::reason::LIMIT_EXCEEDED));
        assert_eq!(u64::from(NEXTHOP_REASON_RETRY_OVERFLOW), u64::from(raw::reason::RETRY_OVERFLOW));
        assert_eq!(u64::from(NEXTHOP_REASON_RUNTIME_DISABLED), u64::from(raw::reason::RUNTIME_DISABLED));
        assert_eq!(u64::from(NEXTHOP_REASON_RESPONSE_STARTED), u64::from(raw::reason::RESPONSE_STARTED));
        assert_eq!(u64::from(NEXTHOP_REASON_ALREADY_HEDGED), u64::from(raw::reason::ALREADY_HEDGED));
        assert_eq!(u64::from(NEXTHOP_REASON_ABANDONED), u64::from(raw::reason::ABANDONED));
        assert_eq!(
            u64::from(NEXTHOP_REASON_BODY_NOT_REPLAYABLE),
            u64::from(raw::reason::BODY_NOT_REPLAYABLE)
        );
        assert_eq!(u64::from(NEXTHOP_REASON_BACKOFF), u64::from(raw::reason::BACKOFF));
        assert_eq!(
            u64::from(NEXTHOP_REASON_BACKOFF_RATELIMITED),
            u64::from(raw::reason::BACKOFF_RATELIMITED)
        );
        assert_eq!(u64::from(NEXTHOP_REASON_IMMEDIATE), u64::from(raw::reason::IMMEDIATE));
        assert_eq!(u64::from(NEXTHOP_REASON_OTHERS_IN_FLIGHT), u64::from(raw::reason::OTHERS_IN_FLIGHT));
        assert_eq!(u64::from(NEXTHOP_REASON_CLIENT_GONE), u64::from(raw::reason::CLIENT_GONE));
        assert_eq!(u64::from(NEXTHOP_REASON_STREAM_ENDED), u64::from(raw::reason::STREAM_ENDED));
        assert_eq!(u64::from(NEXTHOP_REASON_DEADLINE), u64::from(raw::reason::DEADLINE));
        assert_eq!(
            u64::from(NEXTHOP_REASON_RETRY_AFTER_TOO_LONG),
            u64::from(raw::reason::RETRY_AFTER_TOO_LONG)
        );
        assert_eq!(u64::from(NEXTHOP_REASON_NOT_IDEMPOTENT), u64::from(raw::reason::NOT_IDEMPOTENT));
        assert_eq!(
            u64::from(NEXTHOP_REASON_OUTER_LAYER_RETRIES),
            u64::from(raw::reason::OUTER_LAYER_RETRIES)
        );
        assert_eq!(u64::from(NEXTHOP_FLAG_UH), u64::from(raw::flags::UH));
        assert_eq!(u64::from(NEXTHOP_FLAG_UT), u64::from(raw::flags::UT));
        assert_eq!(u64::from(NEXTHOP_FLAG_LR), u64::from(raw::flags::LR));
        assert_eq!(u64::from(NEXTHOP_FLAG_UR), u64::from(raw::flags::UR));
        assert_eq!(u64::from(NEXTHOP_FLAG_UF), u64::from(raw::flags::UF));
        assert_eq!(u64::from(NEXTHOP_FLAG_UC), u64::from(raw::flags::UC));
        assert_eq!(u64::from(NEXTHOP_FLAG_UO), u64::from(raw::flags::UO));
        assert_eq!(u64::from(NEXTHOP_FLAG_NR), u64::from(raw::flags::NR));
        assert_eq!(u64::from(NEXTHOP_FLAG_DC), u64::from(raw::flags::DC));
        assert_eq!(u64::from(NEXTHOP_FLAG_URX), u64::from(raw::flags::URX));
        assert_eq!(u64::from(NEXTHOP_FLAG_IH), u64::from(raw::flags::IH));
        assert_eq!(u64::from(NEXTHOP_FLAG_UMSDR), u64::from(raw::flags::UMSDR));
        assert_eq!(u64::from(NEXTHOP_FLAG_UPE), u64::from(raw::flags::UPE));
        assert_eq!(u64::from(NEXTHOP_FLAG_NC), u64::from(raw::flags::NC));
        assert_eq!(u64::from(NEXTHOP_FLAG_DO), u64::from(raw::flags::DO));
        assert_eq!(u64::from(NEXTHOP_FLAG_UDO), u64::from(raw::flags::UDO));
    }
}
