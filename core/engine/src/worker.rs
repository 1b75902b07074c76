//! What one worker owns: random words, scheduler state, its counters.

/// One generator of random words and one set of scheduler cursors, as an Envoy worker has.
pub struct Worker {}
