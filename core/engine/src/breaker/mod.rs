//! Limits, permits and the pending queue (`spec/breakers-and-health.md` part A).

pub(crate) mod ledger;
mod limits;
pub(crate) mod pool;
pub(crate) mod queue;
pub(crate) mod window;

mod permit;
mod raise;
mod room;

pub(crate) use ledger::{Ledger, Members};
pub(crate) use limits::Overrides;
pub(crate) use permit::{
    Ask, Permit, Promotions, acquire, acquire_free, close_idle, connected, host_gone, leave, pools, release,
    release_free,
};
pub(crate) use pool::is_pinned;
pub(crate) use queue::{Grant, Place, Queues};
pub(crate) use raise::serve_waiting;
pub(crate) use room::{Doors, Room};

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
