//! Static names of numbers.

use super::{check_protocol, check_results};
use nexthop_engine::outcome::{failure, flags, note, reason, refusal, resource, wait};
use nexthop_engine::{refusal_body, refusal_details, retry};

/// Static names. Tables: 1 flag by bit, 2 failure, 3 refusal, 4 a refusal's details, 5 a refusal's body,
/// 6 reason, 7 status code, 8 details by failure, 9 wait reason, 10 resource, 11 note, 12 result of a check, 13 protocol
/// of a check. Empty for unknown values.
pub fn name(table: u32, value: u32) -> &'static str {
    let at = value as usize;
    let small = u8::try_from(value).unwrap_or(u8::MAX);
    match table {
        1 => flags::NAMES.get(at).copied().unwrap_or(""),
        2 => failure::NAMES.get(at).copied().unwrap_or(""),
        3 => refusal::NAMES.get(at).copied().unwrap_or(""),
        4 => refusal_details(small),
        5 => refusal_body(small),
        6 => reason::NAMES.get(at).copied().unwrap_or(""),
        7 => status(value.cast_signed()),
        8 if at < failure::NAMES.len() => retry::details(small),
        9 => wait::NAMES.get(at).copied().unwrap_or(""),
        10 => resource::name(small),
        11 => note::NAMES.get(at).copied().unwrap_or(""),
        12 => check_results::NAMES.get(at).copied().unwrap_or(""),
        13 => check_protocol::NAMES.get(at).copied().unwrap_or(""),
        _ => "",
    }
}

fn status(status: i32) -> &'static str {
    match status {
        0 => "ok",
        -1 => "invalid",
        -2 => "ended",
        -3 => "state",
        -4 => "closed",
        -5 => "config",
        -6 => "io",
        -7 => "not_found",
        -8 => "limit",
        -9 => "short",
        -10 => "empty",
        -11 => "panic",
        _ => "",
    }
}
