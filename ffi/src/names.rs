//! Static names as C strings: each made once, never freed, found without a lock.

use nexthop::raw;
use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

const TABLES: usize = 16;
const VALUES: usize = 256;

static NAMES: [[AtomicPtr<c_char>; VALUES]; TABLES] =
    [const { [const { AtomicPtr::new(null_mut()) }; VALUES] }; TABLES];

/// The name of a value; empty for unknown ones.
pub(crate) fn name(table: u32, value: u32) -> &'static CStr {
    let Some(place) = place(table, value) else { return c"" };
    let found = place.load(Ordering::Acquire);
    if !found.is_null() {
        // SAFETY: only strings that are never freed are stored.
        return unsafe { CStr::from_ptr(found) };
    }
    let text = raw::name(table, value);
    if text.is_empty() {
        return c"";
    }
    let Ok(made) = CString::new(text) else { return c"" };
    let made = made.into_raw();
    match place.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: made above, and now never freed.
        Ok(_) => unsafe { CStr::from_ptr(made) },
        Err(first) => {
            // SAFETY: nobody has seen `made`; `first` is never freed.
            unsafe {
                drop(CString::from_raw(made));
                CStr::from_ptr(first)
            }
        }
    }
}

/// Small numbers, positive or (status) negative.
fn place(table: u32, value: u32) -> Option<&'static AtomicPtr<c_char>> {
    let half = VALUES / 2;
    let value = match value.cast_signed() {
        small @ 0.. => usize::try_from(small).ok().filter(|small| *small < half)?,
        negative => usize::try_from(negative.unsigned_abs())
            .ok()
            .filter(|small| *small < half)
            .map(|small| half + small)?,
    };
    NAMES.get(usize::try_from(table).ok()?)?.get(value)
}
