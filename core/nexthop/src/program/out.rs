//! Standard output of the program.

use std::io::{ErrorKind, Write};

/// Writes a text. A reader that has seen enough (`| head`) is no mistake.
pub(super) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => eprintln!("nexthop: {error}"),
        _ => {}
    }
}

/// The same with the end of a line.
pub(super) fn line(text: impl std::fmt::Display) {
    print(&format!("{text}\n"));
}
