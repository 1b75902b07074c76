//! Limits, permits and the pending queue (`spec/breakers-and-health.md` part A).

pub(crate) mod ledger;
pub(crate) mod pool;
pub(crate) mod queue;

mod permit;

pub(crate) use ledger::Ledger;
pub(crate) use permit::{Ask, Permit, Promotions, acquire, close_idle, host_gone, leave, release};
pub(crate) use pool::is_pinned;
pub(crate) use queue::{Grant, Place, Queues};
