//! How answers are judged (`spec/breakers-and-health.md` B7): one set of rules for whoever performs the checks.

use super::CheckResult;
use crate::headers::HeaderView;
use crate::matching::TextMatcher;
use crate::spec::{HttpProbe, SpecError};

/// A host asks to be taken out at once.
pub(crate) const IMMEDIATE_FAIL: &str = "x-envoy-immediate-health-check-fail";

/// Response headers (and trailers) that checks read, sorted as every wanted set is.
pub const WANTED: [&str; 4] =
    ["grpc-status", "x-envoy-degraded", IMMEDIATE_FAIL, "x-envoy-upstream-healthchecked-cluster"];

/// A judged answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What it counts as.
    pub result: CheckResult,
    /// A failing answer asked for immediate failure.
    pub immediate: bool,
    /// The name of the service was looked at.
    pub verified: bool,
}

/// The rules of one HTTP check.
#[derive(Debug)]
pub struct HttpRules {
    service_name: Option<TextMatcher>,
}

impl HttpRules {
    /// Only a regular expression can fail to compile.
    pub fn compile(probe: &HttpProbe) -> Result<Self, SpecError> {
        Ok(Self { service_name: probe.service_name.as_ref().map(TextMatcher::compile).transpose()? })
    }

    /// Judges an answer. `verify`: runtime lets the service name count.
    pub fn judge(
        &self,
        probe: &HttpProbe,
        status: u16,
        headers: HeaderView<'_>,
        body: &[u8],
        verify: bool,
    ) -> Judged {
        let within =
            |ranges: &[(u16, u16)]| ranges.iter().any(|(start, end)| (*start..*end).contains(&status));
        let failed = |retriable, immediate, verified| Judged {
            result: CheckResult::Failed { retriable },
            immediate,
            verified,
        };
        let immediate = headers.first(IMMEDIATE_FAIL).is_some();
        let kept = match probe.response_buffer_size {
            0 => body,
            size => &body[..body.len().min(usize::try_from(size).unwrap_or(usize::MAX))],
        };
        if !in_order(&probe.receive, kept) {
            return failed(false, immediate, false);
        }
        let expected =
            if probe.expected_statuses.is_empty() { status == 200 } else { within(&probe.expected_statuses) };
        if !expected {
            return failed(within(&probe.retriable_statuses), immediate, false);
        }
        let matcher = self.service_name.as_ref().filter(|_| verify);
        if let Some(matcher) = matcher {
            let name = headers.first("x-envoy-upstream-healthchecked-cluster").unwrap_or(b"");
            if !matcher.matches(Some(name)) {
                return failed(false, false, true);
            }
        }
        let degraded = headers.first("x-envoy-degraded").is_some();
        Judged { result: CheckResult::Success { degraded }, immediate: false, verified: matcher.is_some() }
    }
}

/// Whether all blocks occur in this order, one after the other. A TCP check waits until they do.
pub fn in_order(blocks: &[Vec<u8>], mut data: &[u8]) -> bool {
    blocks.iter().all(|block| {
        let at = data.windows(block.len().max(1)).position(|part| part.starts_with(block));
        let at = if block.is_empty() { Some(0) } else { at };
        at.is_some_and(|at| {
            data = &data[at + block.len()..];
            true
        })
    })
}

/// Judges the answer of `grpc.health.v1.Health/Check`. `body`: the message with its five bytes of frame.
/// Whatever is not plainly SERVING fails the host at once.
pub fn grpc(status: u16, grpc_status: Option<u8>, body: &[u8]) -> CheckResult {
    let serving = status == 200 && grpc_status == Some(0) && single_message(body).is_some_and(is_serving);
    if serving { CheckResult::Success { degraded: false } } else { CheckResult::Failed { retriable: false } }
}

/// The frame of a question for one service.
pub fn grpc_question(service: &str) -> Vec<u8> {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            message.push(length as u8 | 0x80);
            length >>= 7;
        }
        message.push(length as u8);
        message.extend_from_slice(service.as_bytes());
    }
    let mut frame = vec![0];
    frame.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend_from_slice(&message);
    frame
}

fn single_message(body: &[u8]) -> Option<&[u8]> {
    let (head, message) = body.split_first_chunk::<5>()?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    (head[0] == 0 && u32::try_from(message.len()).is_ok_and(|n| n == length)).then_some(message)
}

/// `HealthCheckResponse.status == SERVING`; the last value of the field counts, unknown fields are skipped.
fn is_serving(mut message: &[u8]) -> bool {
    let mut status = 0;
    while !message.is_empty() {
        let Some(tag) = varint(&mut message) else { return false };
        let skip = match tag & 7 {
            0 => {
                let Some(value) = varint(&mut message) else { return false };
                if tag >> 3 == 1 {
                    status = value;
                }
                0
            }
            1 => 8,
            2 => match varint(&mut message) {
                Some(length) => length,
                None => return false,
            },
            5 => 4,
            _ => return false,
        };
        let Some(rest) = usize::try_from(skip).ok().and_then(|skip| message.get(skip..)) else {
            return false;
        };
        message = rest;
    }
    status == 1
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
