//! Protobuf durations: whole or decimal seconds and an `s`.

use super::At;
use crate::error::Result;
use std::time::Duration;

/// Envoy refuses durations from this many seconds on: their nanoseconds leave 64 bits.
const MAX_SECONDS: u64 = 9_223_372_035;

impl At<'_> {
    /// A duration that is not negative.
    pub(crate) fn duration(&self) -> Result<Duration> {
        let text = self.text().map_err(|_| self.expected(ALLOWED))?;
        match parse(&text) {
            Some(Ok(duration)) => Ok(duration),
            Some(Err(Range::Negative)) => Err(self.expected("a duration that is not negative")),
            Some(Err(Range::TooLong)) => {
                Err(self.expected(&format!("a duration of at most {MAX_SECONDS} seconds")))
            }
            None => Err(self.expected(ALLOWED)),
        }
    }

    /// A duration greater than zero.
    pub(crate) fn positive_duration(&self) -> Result<Duration> {
        match self.duration()? {
            Duration::ZERO => Err(self.expected("a duration greater than 0s")),
            duration => Ok(duration),
        }
    }

    /// A duration in whole milliseconds, cut off, as most of Envoy's timers take it.
    pub(crate) fn millis(&self) -> Result<Duration> {
        self.duration().map(whole_millis)
    }

    /// The same as people write it: `25ms` besides Envoy's `0.025s`.
    pub(crate) fn short_millis(&self) -> Result<Duration> {
        let millis = self.node.text().and_then(|text| text.strip_suffix("ms"));
        let digits = millis.filter(|digits| {
            !digits.is_empty() && digits.len() <= 15 && digits.bytes().all(|b| b.is_ascii_digit())
        });
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(number) if number <= MAX_SECONDS * 1000 => Ok(Duration::from_millis(number)),
            _ => self.millis(),
        }
    }

    /// A duration greater than zero in whole milliseconds, at least one: a timer of zero would never rest.
    pub(crate) fn positive_millis(&self) -> Result<Duration> {
        Ok(whole_millis(self.positive_duration()?).max(Duration::from_millis(1)))
    }
}

const ALLOWED: &str = "a duration such as \"0.25s\" (seconds, at most nine decimals, then `s`)";

fn whole_millis(duration: Duration) -> Duration {
    duration - Duration::from_nanos(u64::from(duration.subsec_nanos() % 1_000_000))
}

enum Range {
    Negative,
    TooLong,
}

fn parse(text: &str) -> Option<std::result::Result<Duration, Range>> {
    let number = text.strip_suffix('s')?;
    let (negative, number) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole, fraction),
        None => (number, ""),
    };
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let seconds = match whole.trim_start_matches('0') {
        "" => 0,
        digits if digits.len() > 12 => return Some(Err(Range::TooLong)),
        digits => digits.parse().ok()?,
    };
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    Some(match (negative, seconds, nanos) {
        (true, s, n) if s > 0 || n > 0 => Err(Range::Negative),
        (_, s, _) if s > MAX_SECONDS => Err(Range::TooLong),
        _ => Ok(Duration::new(seconds, nanos)),
    })
}
