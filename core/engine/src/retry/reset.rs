//! When an answer says that it may be asked again (`spec/retry-and-timeouts.md` section 10).

use crate::headers::HeaderView;
use crate::spec::{RateLimitedSpec, ResetFormat};

/// The headers that name the end of a limit, in the order in which they are looked at.
#[derive(Clone, Debug)]
pub struct ResetHeaders {
    headers: Box<[(Box<str>, ResetFormat)]>,
    max_ms: u64,
}

impl ResetHeaders {
    pub(super) fn compile(spec: &RateLimitedSpec) -> Self {
        let headers = spec.reset_headers.iter();
        let headers = headers.map(|(name, format)| (name.to_ascii_lowercase().into(), *format));
        Self { headers: headers.collect(), max_ms: spec.max_ms }
    }

    /// Lower-case names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().map(|(name, _)| &**name)
    }

    /// The first interval that is readable and not above the maximum, in milliseconds. Of a header that comes
    /// several times only the first value counts.
    pub fn interval_ms(&self, headers: HeaderView<'_>, unix_seconds: u64) -> Option<u64> {
        self.headers.iter().find_map(|(name, format)| {
            let value = std::str::from_utf8(headers.first(name)?).ok()?.trim_ascii();
            let number: u64 = value.parse().ok()?;
            let seconds = match format {
                ResetFormat::Seconds => number,
                ResetFormat::UnixTimestamp => number.checked_sub(unix_seconds)?,
            };
            seconds.checked_mul(1000).filter(|interval| *interval <= self.max_ms)
        })
    }
}
