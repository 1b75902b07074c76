//! Limits, permits and the pending queue (`spec/breakers-and-health.md` part A).

pub(crate) mod pool;
