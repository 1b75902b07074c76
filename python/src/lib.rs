//! The module `nexthop._nexthop`: engine calls, and the objects that carry their answers.
//!
//! Waiting, loops and the reading of exceptions are Python (`nexthop/_*.py`), where they are short. No lock is
//! held while Python runs; the interpreter is let go of in cold calls only, since a whole choice costs less.

mod args;
mod attempt;
mod check;
mod engine;
mod error;
mod fast;
mod fork;
mod head;
mod headers;
mod host;
mod once;
mod picker;
mod request;
mod values;
mod waiters;

use nexthop::raw;
use pyo3::prelude::*;

/// Costs one call; what benches measure against.
#[pyfunction]
fn _empty() {}

/// The program `nexthop` with these arguments; its exit code.
#[pyfunction]
fn _program(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    fork::detached(py, || nexthop::program::run(arguments))
}

#[pymodule(gil_used = false)]
mod _nexthop {
    use super::*;

    #[pymodule_export]
    use crate::{
        attempt::Attempt,
        check::Check,
        engine::Engine,
        host::Host,
        picker::Picker,
        request::{Attempts, Request},
        values::{Done, LocalReply, Verdict, Wait},
    };

    #[pymodule_export]
    use crate::{_empty, _program, fork::_after_fork_in_child};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        fork::install();
        once::warm(module.py())?;
        fast::install(module.py())?;
        module.add("UNAVAILABLE", LocalReply::unavailable())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let failures: Vec<&str> = raw::failure::NAMES[1..].to_vec();
        module.add("FAILURES", failures)
    }
}
