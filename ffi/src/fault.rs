//! Errors on their way out, and the guard that no panic passes.

use crate::consts::nexthop_status;
use crate::consts::{NEXTHOP_EMPTY, NEXTHOP_INVALID, NEXTHOP_OK, NEXTHOP_PANIC, NEXTHOP_SHORT};
use crate::types::nexthop_verdict;
use nexthop::raw::{self, Asked, Misuse, Packed, Verdict};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call did nothing; the thread's sentence is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) nexthop_status);

impl Fault {
    /// Nothing to poll.
    #[cold]
    pub(crate) fn empty(sentence: &str) -> Self {
        raw::set_last_error(sentence);
        Self(NEXTHOP_EMPTY)
    }

    /// A bad argument.
    #[cold]
    pub(crate) fn invalid(sentence: &str) -> Self {
        raw::set_last_error(sentence);
        Self(NEXTHOP_INVALID)
    }

    /// A buffer that does not hold the result.
    #[cold]
    pub(crate) fn short(found: usize, needed: usize) -> Self {
        raw::set_last_error(&format!(
            "the buffer holds {found} bytes and the result has {needed}; call again with a buffer of that size"
        ));
        Self(NEXTHOP_SHORT)
    }
}

impl From<raw::Error> for Fault {
    #[cold]
    fn from(error: raw::Error) -> Self {
        raw::keep_error(&error);
        Self(error.status())
    }
}

impl From<Misuse> for Fault {
    #[cold]
    fn from(misuse: Misuse) -> Self {
        raw::set_last_error(raw::sentence(misuse));
        Self(misuse as nexthop_status)
    }
}

/// What a hot call answered, with what it was given.
#[cold]
pub(crate) fn misused(asked: &Asked, misuse: Misuse) -> Fault {
    raw::set_last_error(&raw::sentence_of(asked, misuse));
    Fault(misuse as nexthop_status)
}

/// Tells why a verdict says nothing.
#[cold]
pub(crate) fn explain(asked: &Asked, code: i8) {
    misused(asked, Misuse::from_code(code));
}

/// What a guarded call returns instead of a panic or a fault.
pub(crate) trait Answer: Sized {
    /// For a fault.
    fn fault(fault: Fault) -> Self;
}

impl Answer for nexthop_status {
    fn fault(fault: Fault) -> Self {
        fault.0
    }
}

impl Answer for Packed {
    fn fault(fault: Fault) -> Self {
        Verdict { code: i8::try_from(fault.0).unwrap_or(i8::MIN), ..Verdict::default() }.into()
    }
}

/// [`guard`] for functions that return a verdict.
#[inline(always)]
pub(crate) fn verdict(body: impl FnOnce() -> Result<Packed, Fault>) -> nexthop_verdict {
    let Packed(a, b) = guard(body);
    // SAFETY: same layout, asserted in `hot`.
    unsafe { std::mem::transmute::<[u64; 2], nexthop_verdict>([a, b]) }
}

/// Runs the body of a function of the header.
#[inline(always)]
pub(crate) fn guard<T: Answer>(body: impl FnOnce() -> Result<T, Fault>) -> T {
    // What a panic leaves behind is the engine's concern: it gives up the request concerned.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(fault)) => T::fault(fault),
        Err(payload) => T::fault(panicked(payload)),
    }
}

/// [`guard`] for functions that return a status.
#[inline(always)]
pub(crate) fn status(body: impl FnOnce() -> Result<(), Fault>) -> nexthop_status {
    guard(|| body().map(|()| NEXTHOP_OK))
}

/// [`guard`] for functions that cannot say that something was wrong.
#[inline(always)]
pub(crate) fn or<T>(instead: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(answer) => answer,
        Err(payload) => {
            panicked(payload);
            instead
        }
    }
}

#[cold]
fn panicked(payload: Box<dyn std::any::Any + Send>) -> Fault {
    // Dropping a payload may panic as well, and so may a thread-local that is already gone.
    std::mem::forget(payload);
    let _ = catch_unwind(|| raw::set_last_error("a bug in nexthop was contained; please report it"));
    Fault(NEXTHOP_PANIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_answers() {
        std::panic::set_hook(Box::new(|_| ()));
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("again");
            }
        }
        let fused = status(|| std::panic::panic_any(Bomb));
        let verdict = verdict(|| panic!("once"));
        let word = or(7_u64, || panic!("thrice"));
        let _ = std::panic::take_hook();
        assert_eq!(fused, NEXTHOP_PANIC);
        assert_eq!((verdict.code, verdict.action), (-11, 0));
        assert_eq!(word, 7);
        assert!(raw::last_error().contains("please report it"));
    }
}
