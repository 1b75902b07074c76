//! Models: the crate's own code under every interleaving of a few threads (`make loom`), weak memory included.
//!
//! Each is about something that must never get stuck or be given twice. A model looks at all schedules with up to so many
//! preemptions, `LOOM_MAX_PREEMPTIONS` or 2.

mod ejections;
mod engine;
mod permits;
mod probes;
mod queue;
mod slots;

use loom::model::Builder;
use loom::thread::JoinHandle;
use std::sync::Arc;

/// Words of a thread's stack: a whole engine needs more than a model usually does.
const STACK: usize = 1 << 17;

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.max_branches = builder.max_branches.max(100_000);
    builder.check(model);
}

fn thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    loom::thread::Builder::new().stack_size(STACK).spawn(work).unwrap()
}

/// Both at once, then what they gave.
fn both<A: Send + 'static, B: Send + 'static>(
    one: impl FnOnce() -> A + Send + 'static,
    other: impl FnOnce() -> B + Send + 'static,
) -> (A, B) {
    let (one, other) = (thread(one), thread(other));
    (one.join().unwrap(), other.join().unwrap())
}

/// What all threads of a model had, when they are over.
fn whole<T>(shared: Arc<T>) -> T {
    Arc::into_inner(shared).expect("no thread has it any more")
}
