//! Which of the known failures an error is.

use crate::raw::failure;
use std::error::Error;
use std::io;

/// An error of a client, as a [`failure`](mod@crate::failure).
pub trait AsFailure {
    /// `None`: not the upstream's fault. The attempt is cancelled and the request ends with this error.
    fn as_failure(&self) -> Option<u8>;
}

/// A failure by its number.
impl AsFailure for u8 {
    fn as_failure(&self) -> Option<u8> {
        Some(*self)
    }
}

impl AsFailure for io::Error {
    fn as_failure(&self) -> Option<u8> {
        Some(match self.kind() {
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable => failure::CONNECT_FAILURE,
            io::ErrorKind::TimedOut => failure::TIMEOUT,
            io::ErrorKind::UnexpectedEof => failure::CONNECTION_TERMINATION,
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => failure::LOCAL_CONNECT_FAILURE,
            io::ErrorKind::InvalidData => failure::PROTOCOL_ERROR,
            _ => failure::REMOTE_RESET,
        })
    }
}

/// The failure behind an error: that of the first [`io::Error`] among its sources, else a reset by the remote side.
pub fn failure_of(error: &(dyn Error + 'static)) -> u8 {
    let mut source = Some(error);
    while let Some(at) = source {
        if let Some(found) = at.downcast_ref::<io::Error>().and_then(AsFailure::as_failure) {
            return found;
        }
        source = at.source();
    }
    failure::REMOTE_RESET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    #[test]
    fn finds_the_cause() {
        let refused = Outer(io::ErrorKind::ConnectionRefused.into());
        assert_eq!(failure_of(&refused), failure::CONNECT_FAILURE);
        assert_eq!(failure_of(&std::fmt::Error), failure::REMOTE_RESET);
        assert_eq!(failure::OVERFLOW.as_failure(), Some(14));
    }
}
