//! The C interface with stale, foreign, null and invented handles, sizes that do not fit, and several threads.

use crate::bytes::Bytes;
use nexthop_abi::types::{
    nexthop_attempt, nexthop_check, nexthop_decision, nexthop_document, nexthop_engine, nexthop_engine_facts,
    nexthop_error_parts, nexthop_head, nexthop_host_info, nexthop_host_op, nexthop_local_reply,
    nexthop_options, nexthop_outcome, nexthop_ready, nexthop_request, nexthop_request_facts, nexthop_str,
};
use nexthop_abi::{ask, checks, cold, hot, memory};
use std::ffi::c_char;
use std::mem::{size_of, zeroed};
use std::ptr;

const DOCUMENT: &str = "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80], limits: {requests: 3, pending: 2, \
     connections: 2}, retry: {on: [5xx], times: 2, backoff: {base: 1ms}}, outlier: {consecutive_5xx: 2}}, \
     both: {composite: [web, web]}}\n---\nclusters: [{name: checked, load_assignment: {cluster_name: checked, endpoints: [{lb_endpoints: \
     [{endpoint: {address: {socket_address: {address: 10.0.1.1, port_value: 80}}}}]}]}, health_checks: [{name: a, timeout: 1s, \
     interval: 1s, unhealthy_threshold: 2, healthy_threshold: 2, http_health_check: {path: /, receive: [{text: '00'}]}}, {name: b, \
     timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {receive: [{text: '61'}]}}]}]";

/// Room that results are written to; its end is guarded.
const ROOM: usize = 4096;
const GUARD: u8 = 0xA5;

/// Calls in random order; the first byte says how many threads make them.
pub fn abi(data: &[u8]) {
    let mut bytes = Bytes(data);
    let threads = if bytes.byte() >= 240 { 2 } else { 1 };
    let rest = bytes.rest();
    let engines = [engine(), engine()];
    // A handle that was good once.
    let gone = engine();
    assert_eq!(cold::nexthop_engine_free(gone), 0);
    std::thread::scope(|scope| {
        let others: Vec<_> =
            (1..threads).map(|_| scope.spawn(|| calls(rest, [engines[1], engines[0], gone]))).collect();
        calls(rest, [engines[0], engines[1], gone]);
        // Joined by hand: the scope's end does not wait for what threads keep for themselves to be freed.
        for other in others {
            if let Err(panic) = other.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    for engine in engines {
        // SAFETY: the struct says its size.
        let facts = unsafe {
            let mut facts: nexthop_engine_facts = zeroed();
            facts.struct_size = size_of::<nexthop_engine_facts>() as u32;
            assert_eq!(cold::nexthop_engine_info(engine, &raw mut facts), 0);
            facts
        };
        assert!(facts.epoch >= 1);
        assert_eq!(cold::nexthop_engine_free(engine), 0);
        assert!(cold::nexthop_engine_free(engine) < 0, "freed twice");
    }
}

fn text(text: &str) -> nexthop_str {
    nexthop_str { ptr: text.as_ptr().cast(), len: text.len() }
}

fn engine() -> nexthop_engine {
    let mut engine = nexthop_engine { id: 0 };
    // SAFETY: zero is what most want in these structs, and they say their sizes.
    unsafe {
        let mut options: nexthop_options = zeroed();
        options.struct_size = size_of::<nexthop_options>() as u32;
        options.clock = 2;
        let mut document: nexthop_document = zeroed();
        document.struct_size = size_of::<nexthop_document>() as u32;
        document.text = text(DOCUMENT);
        assert_eq!(cold::nexthop_engine_new(&raw const options, &raw const document, 1, &raw mut engine), 0);
    }
    engine
}

/// A text argument: absent, a piece of the input, or nonsense that is refused by its length.
fn some(bytes: &mut Bytes<'_>) -> nexthop_str {
    match bytes.below(6) {
        0 => nexthop_str { ptr: ptr::null(), len: 0 },
        1 => nexthop_str { ptr: ptr::null(), len: 5 },
        2 => text("web"),
        3 => text("10.0.0.1:80"),
        _ => {
            let piece = bytes.piece();
            nexthop_str { ptr: piece.as_ptr().cast(), len: piece.len() }
        }
    }
}

/// A struct size: the right one, or another that the struct at hand still holds.
fn size(bytes: &mut Bytes<'_>, right: usize) -> u32 {
    if bytes.below(8) == 0 { (usize::from(bytes.byte()) % (right + 1)) as u32 } else { right as u32 }
}

fn calls(data: &[u8], engines: [nexthop_engine; 3]) {
    let mut bytes = Bytes(data);
    let mut ids: Vec<u64> = vec![0, u64::MAX, 1];
    let mut room = vec![GUARD; ROOM + 64];
    let mut steps = 0;
    while !bytes.is_empty() && steps < 200 {
        steps += 1;
        one(&mut bytes, engines, &mut ids, &mut room);
        assert!(room[ROOM..].iter().all(|byte| *byte == GUARD), "written past the end");
        if ids.len() > 40 {
            let old = ids.remove(3);
            hot::nexthop_finish(nexthop_request { id: old }, 1, 0);
        }
    }
    for id in ids {
        hot::nexthop_finish(nexthop_request { id }, 1, 0);
        hot::nexthop_cancel(nexthop_attempt { id }, 0);
    }
}

fn handle(bytes: &mut Bytes<'_>, ids: &[u64]) -> u64 {
    match bytes.below(8) {
        0 => bytes.number(),
        1 => ids[bytes.below(ids.len())] ^ 1 << bytes.below(64),
        _ => ids[bytes.below(ids.len())],
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each function of the header")]
fn one(bytes: &mut Bytes<'_>, engines: [nexthop_engine; 3], ids: &mut Vec<u64>, room: &mut [u8]) {
    let engine = match bytes.below(10) {
        0 => engines[2],
        1 => nexthop_engine { id: bytes.number() },
        2 => nexthop_engine { id: 0 },
        3 => engines[1],
        _ => engines[0],
    };
    let id = handle(bytes, ids);
    let (request, attempt) = (nexthop_request { id }, nexthop_attempt { id });
    let cap = bytes.pick(&[ROOM, 0, 1, 7, 64]);
    let buf: *mut c_char = if bytes.below(12) == 0 { ptr::null_mut() } else { room.as_mut_ptr().cast() };
    let mut length = 0usize;
    let len: *mut usize = if bytes.below(12) == 0 { ptr::null_mut() } else { &raw mut length };
    let now = bytes.pick(&[0, 0, 0, 1, u64::MAX, 5_000_000_000]);
    let op = bytes.below(33);
    // SAFETY: every struct is whole and says at most its size, every buffer holds `cap` bytes or is null: what the
    // header asks of a caller. All the rest is what it promises to bear.
    unsafe {
        let mut decision: nexthop_decision = zeroed();
        decision.struct_size = size(bytes, size_of::<nexthop_decision>());
        let out: *mut nexthop_decision =
            if bytes.below(20) == 0 { ptr::null_mut() } else { &raw mut decision };
        let mut outcome: nexthop_outcome = zeroed();
        outcome.struct_size = size(bytes, size_of::<nexthop_outcome>());
        outcome.status = bytes.pick(&[200, 503, 0, 99, 1000]);
        outcome.failure = bytes.pick(&[0, 0, 1, 4, 8, 99, 255]);
        outcome.grpc_status = bytes.byte() as i8;
        outcome.bits = u32::from(bytes.byte());
        outcome.headers = some(bytes);
        let given: *const nexthop_outcome =
            if bytes.below(10) == 0 { ptr::null() } else { &raw const outcome };
        match op {
            0..=3 => {
                let key = some(bytes);
                if hot::nexthop_pick(
                    engine,
                    u32::from(bytes.byte() % 5),
                    u32::from(bytes.byte() % 4),
                    key,
                    now,
                    out,
                ) == 0
                {
                    ids.extend([decision.request.id, decision.attempt.id]);
                }
            }
            4..=7 => {
                let mut head: nexthop_head = zeroed();
                head.struct_size = size(bytes, size_of::<nexthop_head>());
                head.target = u32::from(bytes.byte() % 4);
                head.bits = u32::from(bytes.byte());
                head.number = bytes.pick(&[0, 0, 0, 1, u32::MAX]);
                head.want = u32::from(bytes.byte() % 4);
                head.priority = bytes.byte() as i8;
                head.body = bytes.byte() % 6;
                for field in [
                    &mut head.method,
                    &mut head.authority,
                    &mut head.path,
                    &mut head.headers,
                    &mut head.source,
                    &mut head.key,
                    &mut head.tried,
                    &mut head.override_host,
                    &mut head.metadata,
                ] {
                    *field = some(bytes);
                }
                head.timeout = bytes.pick(&[0, 1, 1_000_000, u64::MAX]);
                let head = if bytes.below(20) == 0 { ptr::null() } else { &raw const head };
                if hot::nexthop_begin(engine, head, now, out) == 0 {
                    ids.extend([decision.request.id, decision.attempt.id]);
                }
            }
            8 | 9 => {
                if hot::nexthop_choose(request, now, out) == 0 {
                    ids.push(decision.attempt.id);
                }
            }
            10 => drop_verdict(hot::nexthop_headers(attempt, given, now)),
            11 | 12 => drop_verdict(hot::nexthop_complete(attempt, given, now)),
            13 => drop_verdict(hot::nexthop_complete_status(attempt, u32::from(bytes.byte()) * 4, now)),
            14 => {
                drop_verdict(hot::nexthop_complete_next(attempt, given, now, out));
                ids.push(decision.attempt.id);
            }
            15 => drop_verdict(hot::nexthop_fail(attempt, u32::from(bytes.byte()), now)),
            16 => drop_verdict(hot::nexthop_end(attempt, given, now)),
            17 => drop_verdict(hot::nexthop_cancel(attempt, now)),
            18 => drop_verdict(hot::nexthop_finish(request, u32::from(bytes.byte() % 8), now)),
            19 => {
                let mut bits = 0u32;
                hot::nexthop_note(id, u32::from(bytes.byte() % 8), now, &raw mut bits);
            }
            20 => {
                let mut ready: [nexthop_ready; 4] = zeroed();
                hot::nexthop_poll_ready(engine, ready.as_mut_ptr(), bytes.below(5), len);
            }
            21 => {
                cold::nexthop_advance(engine, u64::from(bytes.byte()) * 1_000_000);
                cold::nexthop_maintain(engine, now, ptr::null_mut());
                cold::nexthop_poll_deadline(engine, now);
                cold::nexthop_now(engine);
            }
            22 => {
                ask::nexthop_text(engine, u32::from(bytes.byte() % 16), some(bytes), buf, cap, len);
            }
            23 => {
                let mut info: nexthop_host_info = zeroed();
                info.struct_size = size(bytes, size_of::<nexthop_host_info>());
                ask::nexthop_host(
                    engine,
                    u32::from(bytes.byte()),
                    u32::from(bytes.byte() % 4),
                    &raw mut info,
                    buf,
                    cap,
                    len,
                );
            }
            24 => {
                let mut number = 0u32;
                ask::nexthop_want(engine, u32::from(bytes.byte()), &raw mut number, buf, cap, len);
            }
            25 => {
                ask::nexthop_extra_headers(id, buf, cap, len);
                ask::nexthop_poll_event(engine, buf, cap, len);
            }
            26 => {
                let mut facts: nexthop_request_facts = zeroed();
                facts.struct_size = size(bytes, size_of::<nexthop_request_facts>());
                ask::nexthop_request_info(request, &raw mut facts, buf, cap, len);
                let mut reply: nexthop_local_reply = zeroed();
                reply.struct_size = size(bytes, size_of::<nexthop_local_reply>());
                ask::nexthop_reply(request, &raw mut reply, buf, cap, len);
            }
            27 => {
                let mut parts: nexthop_error_parts = zeroed();
                parts.struct_size = size(bytes, size_of::<nexthop_error_parts>());
                memory::nexthop_last_error(buf, cap, len);
                memory::nexthop_last_error_parts(&raw mut parts, buf, cap, len);
                memory::nexthop_name(u32::from(bytes.byte() % 16), u32::from(bytes.byte()));
            }
            28 => {
                let at = bytes.below(ROOM);
                memory::nexthop_pack(buf, cap, at.min(cap), u16::from(bytes.byte()), some(bytes));
            }
            29 => {
                let mut change: nexthop_host_op = zeroed();
                change.struct_size = size(bytes, size_of::<nexthop_host_op>());
                change.weight = u32::from(bytes.byte());
                change.bits = u32::from(bytes.byte() & 63);
                change.priority = u16::from(bytes.byte());
                change.health = bytes.byte() % 8;
                change.op = bytes.byte() % 6;
                (change.address, change.zone, change.metadata) = (some(bytes), some(bytes), some(bytes));
                cold::nexthop_apply(engine, some(bytes), &raw const change, bytes.below(2), ptr::null_mut());
            }
            30 => {
                let mut document: nexthop_document = zeroed();
                document.struct_size = size(bytes, size_of::<nexthop_document>());
                document.dialect = bytes.byte() % 12;
                document.kind = bytes.pick(&[0, 2, 9]);
                document.text = if bytes.flag() { text(DOCUMENT) } else { some(bytes) };
                cold::nexthop_update(engine, &raw const document, bytes.below(2), ptr::null_mut());
            }
            31 => {
                let mut check: nexthop_check = zeroed();
                check.struct_size = size(bytes, size_of::<nexthop_check>());
                if checks::nexthop_poll_check(engine, now, &raw mut check, buf, cap, len) == 0 {
                    ids.push(check.id);
                }
                let which = if bytes.flag() { check.id } else { id };
                let result = u32::from(bytes.byte() % 10);
                checks::nexthop_check_result(engine, which, result, given, some(bytes), now);
                checks::nexthop_checks_deadline(engine, now);
            }
            _ => {
                let mut target = 0u32;
                cold::nexthop_resolve(engine, some(bytes), &raw mut target);
                let (mut swapped, mut epoch) = (0u32, 0u64);
                cold::nexthop_reload(engine, &raw mut swapped, &raw mut epoch);
            }
        }
    }
}

fn drop_verdict(verdict: nexthop_abi::types::nexthop_verdict) {
    assert!(verdict.code != -11, "a bug inside");
}
