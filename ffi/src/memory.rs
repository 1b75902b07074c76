//! Functions that touch no engine.

use crate::consts::{NEXTHOP_ABI, nexthop_status};
use crate::fault::{or, status};
use crate::names;
use crate::sized::Out;
use crate::text::Buffer;
use crate::types::{nexthop_error_parts, nexthop_str};
use nexthop::raw::LastError;
use std::ffi::c_char;

/// Version of the interface that the library was built with. When it differs from NEXTHOP_ABI, this header is not
/// that of the loaded library: say both numbers and stop.
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_abi_version() -> u32 {
    NEXTHOP_ABI
}

/// Version of the library, static text such as "1.2.3".
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Static name of `value` in one of the tables NEXTHOP_NAMES_..., NUL-terminated, never NULL; "" for unknown ones.
#[unsafe(no_mangle)]
pub extern "C" fn nexthop_name(table: u32, value: u32) -> *const c_char {
    or(c"", || names::name(table, value)).as_ptr()
}

/// The sentence of the calling thread's last failed call: what was wrong, what was found, what to do.
/// Returns NEXTHOP_OK, NEXTHOP_SHORT, or NEXTHOP_INVALID for a NULL buffer with a capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_last_error(buf: *mut c_char, cap: usize, len: *mut usize) -> nexthop_status {
    status(|| {
        let buffer = Buffer::new(buf, cap, len)?;
        let last = LastError::of_thread();
        // SAFETY: the caller's promise about its buffer.
        let done = unsafe { buffer.put(last.sentence().as_bytes()) };
        if done.is_err() {
            // Asking for it must not replace it.
            last.put_back();
        }
        done
    })
}

/// The same error in its parts: for NEXTHOP_CONFIG the place in the document, for NEXTHOP_IO the file, for all others
/// the message alone. Returns NEXTHOP_OK, NEXTHOP_SHORT, or NEXTHOP_INVALID for bad arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_last_error_parts(
    out: *mut nexthop_error_parts,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
) -> nexthop_status {
    status(|| {
        let last = LastError::of_thread();
        let buffer = Buffer::new(buf, cap, len)?;
        // SAFETY: the caller's promise about its struct.
        let out = unsafe { Out::new(out)? };
        let parts = last.parts();
        let nearest = parts.nearest.as_deref().unwrap_or_default();
        let texts = [&parts.file, &parts.path, &parts.message, &parts.found, &parts.allowed, nearest];
        // SAFETY: the caller's promise about its buffer.
        let placed = unsafe { buffer.put_all(texts.map(str::as_bytes)) };
        let [file, path, message, found, allowed, nearest] = placed.inspect_err(|_| last.put_back())?;
        let facts = nexthop_error_parts {
            struct_size: 0,
            line: parts.line,
            column: parts.column,
            reserved: 0,
            file,
            path,
            message,
            found,
            allowed,
            nearest,
        };
        // SAFETY: checked above.
        unsafe { out.put(&facts) };
        Ok(())
    })
}

/// Appends one entry to a header block: the value of the header with this index in a wanted set. `at` is the
/// block's length so far. Returns its new length, of which nothing is written beyond `cap`: when it is larger
/// than `cap`, nothing was written and so much is needed. Returns 0 for NULL with a capacity or a length, and for
/// values of 4 GiB and more. Several values of one header are several entries in order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nexthop_pack(
    buf: *mut c_char,
    cap: usize,
    at: usize,
    index: u16,
    value: nexthop_str,
) -> usize {
    or(0, || {
        if buf.is_null() && cap > 0 {
            return 0;
        }
        // SAFETY: the caller's promise about the value.
        let Ok(value) = (unsafe { value.bytes("the header value") }) else { return 0 };
        let value = value.unwrap_or_default();
        let Ok(length) = u32::try_from(value.len()) else { return 0 };
        let Some(end) = at.checked_add(8).and_then(|body| body.checked_add(value.len())) else { return 0 };
        if end <= cap {
            let [i, j] = index.to_le_bytes();
            let [a, b, c, d] = length.to_le_bytes();
            // SAFETY: the buffer holds `cap` bytes, and `end` is within.
            unsafe {
                let entry = buf.cast::<u8>().add(at);
                entry.cast::<[u8; 8]>().write_unaligned([i, j, 0, 0, a, b, c, d]);
                std::ptr::copy_nonoverlapping(value.as_ptr(), entry.add(8), value.len());
            }
        }
        end
    })
}
