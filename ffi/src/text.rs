//! Text in, text out.

use crate::fault::Fault;
use crate::types::nexthop_str;
use std::ffi::c_char;

impl nexthop_str {
    /// Not there.
    pub(crate) const ABSENT: Self = Self { ptr: std::ptr::null(), len: 0 };

    /// The bytes; `None` when absent.
    ///
    /// # Safety
    /// A non-null pointer must point to `len` readable bytes that nobody writes while `'a` lasts.
    #[inline]
    pub(crate) unsafe fn bytes<'a>(self, what: &str) -> Result<Option<&'a [u8]>, Fault> {
        if self.ptr.is_null() {
            return if self.len == 0 { Ok(None) } else { Err(null(what, self.len)) };
        }
        if self.len > isize::MAX.cast_unsigned() {
            return Err(huge(what, self.len));
        }
        // SAFETY: the caller's promise; the length is one that a slice may have.
        Ok(Some(unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.len) }))
    }

    /// The text; empty when absent.
    ///
    /// # Safety
    /// As [`bytes`](Self::bytes).
    #[inline]
    pub(crate) unsafe fn text<'a>(self, what: &str) -> Result<&'a str, Fault> {
        if self.ptr.is_null() && self.len == 0 {
            return Ok("");
        }
        // SAFETY: handed on.
        let bytes = unsafe { self.bytes(what)? }.unwrap_or_default();
        std::str::from_utf8(bytes).map_err(|error| not_utf8(what, error.valid_up_to()))
    }
}

#[cold]
fn null(what: &str, len: usize) -> Fault {
    Fault::invalid(&format!("{what} is NULL with a length of {len}; absent is NULL with length 0"))
}

#[cold]
fn huge(what: &str, len: usize) -> Fault {
    Fault::invalid(&format!(
        "{what} has a length of {len}, more than memory holds; was a negative number cast?"
    ))
}

#[cold]
fn not_utf8(what: &str, at: usize) -> Fault {
    Fault::invalid(&format!(
        "{what} is not UTF-8 from byte {at} on; re-encode it, or pass raw bytes as a header value or key"
    ))
}

/// A caller's buffer.
pub(crate) struct Buffer {
    ptr: *mut c_char,
    cap: usize,
    len: *mut usize,
}

impl Buffer {
    /// Checks the pointers.
    pub(crate) fn new(ptr: *mut c_char, cap: usize, len: *mut usize) -> Result<Self, Fault> {
        if ptr.is_null() && cap > 0 {
            return Err(Fault::invalid(&format!(
                "the buffer is NULL with a capacity of {cap}; to ask for the length pass NULL and 0"
            )));
        }
        if !len.is_aligned() {
            return Err(Fault::invalid("the pointer to the length is misaligned"));
        }
        Ok(Self { ptr, cap, len })
    }

    /// Whether so much fits; tells the caller how much it is.
    ///
    /// # Safety
    /// The length pointer must be null or writable.
    pub(crate) unsafe fn reserve(&self, needed: usize) -> Result<(), Fault> {
        if !self.len.is_null() {
            // SAFETY: the caller's promise; aligned by construction.
            unsafe { self.len.write(needed) };
        }
        if needed > self.cap { Err(Fault::short(self.cap, needed)) } else { Ok(()) }
    }

    /// Writes everything or, when it does not fit, nothing.
    ///
    /// # Safety
    /// The buffer must be writable for its capacity, the length pointer null or writable.
    pub(crate) unsafe fn put(&self, bytes: &[u8]) -> Result<(), Fault> {
        // SAFETY: handed on; `reserve` has seen that it fits.
        unsafe {
            self.reserve(bytes.len())?;
            if !bytes.is_empty() {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr.cast(), bytes.len());
            }
        }
        Ok(())
    }

    /// Writes several texts one behind the other and says where each lies; empty ones are absent.
    ///
    /// # Safety
    /// As [`put`](Self::put).
    pub(crate) unsafe fn put_all<const N: usize>(
        &self,
        texts: [&[u8]; N],
    ) -> Result<[nexthop_str; N], Fault> {
        // SAFETY: handed on; `reserve` has seen that all of it fits.
        unsafe {
            self.reserve(texts.iter().map(|text| text.len()).sum())?;
            let mut at = self.ptr;
            Ok(texts.map(|text| {
                if text.is_empty() {
                    return nexthop_str::ABSENT;
                }
                std::ptr::copy_nonoverlapping(text.as_ptr(), at.cast(), text.len());
                let place = nexthop_str { ptr: at, len: text.len() };
                at = at.add(text.len());
                place
            }))
        }
    }
}
