//! Numbers with names. Unknown ones are legal: later versions may add some.

use crate::raw;
use std::fmt;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident($of:ty), $module:ident, $table:literal: $($word:ident)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub $of);

        #[expect(missing_docs, reason = "the name says it")]
        impl $name {
            $(pub const $word: Self = Self(raw::$module::$word);)*
        }

        impl $name {
            /// Its name in lower case; empty for none and for numbers that this version does not know.
            pub fn name(self) -> &'static str {
                raw::name($table, self.0.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match (self.0, self.name()) {
                    (0, _) => f.write_str("none"),
                    (number, "") => write!(f, "unknown({number})"),
                    (_, name) => f.write_str(name),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

words! {
    /// Why a verdict is what it is.
    Reason(u8), reason, 6:
    SUCCESS NOT_RETRIABLE NO_POLICY LIMIT_EXCEEDED RETRY_OVERFLOW RUNTIME_DISABLED RESPONSE_STARTED ALREADY_HEDGED
    ABANDONED BODY_NOT_REPLAYABLE BACKOFF BACKOFF_RATELIMITED IMMEDIATE OTHERS_IN_FLIGHT CLIENT_GONE STREAM_ENDED
    DEADLINE RETRY_AFTER_TOO_LONG NOT_IDEMPOTENT OUTER_LAYER_RETRIES
}

words! {
    /// Why there will be no attempt.
    RefusalKind(u8), refusal, 3:
    NO_HEALTHY_UPSTREAM OVERFLOW TIMEOUT NO_ROUTE NO_CLUSTER DROP_OVERLOAD UNCONDITIONAL_DROP_OVERLOAD MAINTENANCE
    INVALID_HEADERS DIRECT_RESPONSE ADMISSION CONCURRENCY BODY_TOO_LARGE DEADLINE COOLING
}

words! {
    /// What a request waits for.
    WaitReason(u8), wait, 9:
    QUEUE BACKOFF HEDGE ATTEMPTS
}

words! {
    /// Which limit refused, or why a composite found no host.
    Resource(u8), resource, 10:
    PENDING REQUESTS RETRIES POOLS CONNECTIONS NO_ATTEMPT_NUMBER PAST_LAST_SUB_CLUSTER SUB_CLUSTER_MISSING
    SUB_CLUSTER_EMPTY SUB_CLUSTER_REFUSED FILTERED
}

/// Envoy's response flags: bit i is its core flag i. They accumulate over a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ResponseFlags(pub u32);

#[expect(missing_docs, reason = "Envoy's words")]
impl ResponseFlags {
    pub const UH: Self = Self(raw::flags::UH);
    pub const UT: Self = Self(raw::flags::UT);
    pub const UF: Self = Self(raw::flags::UF);
    pub const UO: Self = Self(raw::flags::UO);
    pub const NR: Self = Self(raw::flags::NR);
    pub const URX: Self = Self(raw::flags::URX);
    pub const NC: Self = Self(raw::flags::NC);
}

impl ResponseFlags {
    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Short names, comma-joined in bit order; `-` for none.
impl fmt::Display for ResponseFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&raw::flags::text(self.0))
    }
}

impl fmt::Debug for ResponseFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(Reason::LIMIT_EXCEEDED.to_string(), "limit_exceeded");
        assert_eq!(RefusalKind(200).to_string(), "unknown(200)");
        assert_eq!(Resource::default().to_string(), "none");
        assert_eq!(WaitReason::QUEUE.name(), "queue");
        assert_eq!(ResponseFlags(raw::flags::UF | raw::flags::URX).to_string(), "UF,URX");
        assert!(ResponseFlags(raw::flags::UF | raw::flags::URX).contains(ResponseFlags::URX));
        assert_eq!(format!("{:?}", ResponseFlags::default()), "-");
    }
}
