//! The virtual pool of one host and routing priority, packed into one word: active streams (24 bits),
//! connections (20 bits), queued requests (20 bits). One compare-and-swap takes or gives back a stream.

const ACTIVE: u64 = 0xff_ffff;
const QUEUED_SHIFT: u32 = 44;

/// Whether an attempt or a queued request still needs the host's slot.
pub(crate) const fn is_pinned(word: u64) -> bool {
    word & ACTIVE != 0 || word >> QUEUED_SHIFT != 0
}
