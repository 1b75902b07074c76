//! What an operator wants to know, as JSON lines in a ring: the oldest are overwritten, and their number told.

use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::sync::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fmt::Write;

/// The ring of events.
pub(crate) struct Events {
    ring: Mutex<Ring>,
    some: AtomicBool,
}

struct Ring {
    lines: VecDeque<String>,
    capacity: usize,
    lost: u64,
}

impl Events {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            ring: Mutex::new(Ring { lines: VecDeque::new(), capacity: capacity.max(1), lost: 0 }),
            some: AtomicBool::new(false),
        }
    }

    pub(crate) fn push(&self, line: String) {
        let mut ring = self.ring.lock();
        if ring.lines.len() == ring.capacity {
            ring.lines.pop_front();
            ring.lost += 1;
        }
        ring.lines.push_back(line);
        self.some.store(true, Relaxed);
    }

    /// The oldest event; how many were lost comes before what is left.
    pub(crate) fn pop(&self) -> Option<String> {
        let mut ring = self.ring.lock();
        if ring.lost > 0 {
            let lost = std::mem::take(&mut ring.lost);
            return Some(format!("{{\"type\":\"nexthop.events_lost\",\"count\":{lost}}}"));
        }
        let line = ring.lines.pop_front();
        if ring.lines.is_empty() {
            self.some.store(false, Relaxed);
        }
        line
    }

    /// Whether there are any.
    #[inline]
    pub(crate) fn pending(&self) -> bool {
        self.some.load(Relaxed)
    }

    pub(crate) fn clear(&self) {
        let mut ring = self.ring.lock();
        ring.lines.clear();
        ring.lost = 0;
        self.some.store(false, Relaxed);
    }

    /// Held over a fork, so that the child does not inherit a locked ring.
    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold { _ring: self.ring.lock() }
    }
}

/// The ring, held.
pub(crate) struct Hold<'a> {
    _ring: MutexGuard<'a, Ring>,
}

/// A JSON object, written key by key in the order given.
pub(crate) struct Json(String);

impl Json {
    pub(crate) fn new() -> Self {
        Self("{".into())
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        quote(&mut self.0, key);
        self.0.push(':');
    }

    pub(crate) fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        quote(&mut self.0, value);
        self
    }

    pub(crate) fn raw(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.key(key);
        let _ = write!(self.0, "{value}");
        self
    }

    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Appends a JSON string.
pub(crate) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// `2026-01-02T03:04:05.678Z` from nanoseconds since 1970; without a fraction when it is 0, as protobuf's JSON.
pub(crate) fn timestamp(unix_nanos: u64) -> String {
    let (seconds, millis) = (unix_nanos / 1_000_000_000, unix_nanos / 1_000_000 % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Civil date from days since 1970 (proleptic Gregorian, eras of 400 years).
    let z = days as i64 + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}{fraction}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwrites_the_oldest_and_tells() {
        let events = Events::new(2);
        for line in ["a", "b", "c"] {
            events.push(line.into());
        }
        assert!(events.pending());
        assert_eq!(events.pop().unwrap(), r#"{"type":"nexthop.events_lost","count":1}"#);
        assert_eq!([events.pop(), events.pop(), events.pop()], [Some("b".into()), Some("c".into()), None]);
        assert!(!events.pending());
    }

    #[test]
    fn json_and_dates() {
        assert_eq!(Json::new().text("a", "x\"\u{1}").raw("b", 1).end(), r#"{"a":"x\"\u0001","b":1}"#);
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(1_709_210_096_789_000_000), "2024-02-29T12:34:56.789Z");
    }
}
