//! Structs that carry their size: those of older headers are shorter, those of newer ones longer.

use crate::fault::Fault;
use crate::types::{
    nexthop_check, nexthop_decision, nexthop_document, nexthop_engine_facts, nexthop_error_parts,
    nexthop_head, nexthop_host_info, nexthop_host_op, nexthop_local_reply, nexthop_options, nexthop_outcome,
    nexthop_request_facts,
};
use std::mem::MaybeUninit;

/// Nothing grows beyond; what claims to is not initialised.
const LARGEST: usize = 4096;
/// `struct_size` and something behind it.
const SMALLEST: usize = 8;

/// A struct of the header that begins with `struct_size`.
///
/// # Safety
/// `repr(C)`, the first field is a `u32` that holds the size in bytes, and every bit pattern is a value.
pub(crate) unsafe trait Sized32: Copy {
    /// For messages.
    const NAME: &'static str;

    /// What missing fields are.
    fn absent() -> Self {
        // SAFETY: every bit pattern is a value.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }
}

macro_rules! sized {
    ($($name:ident),*) => {$(
        // SAFETY: see the type's definition: integers, pointers and structs of those.
        unsafe impl Sized32 for $name {
            const NAME: &'static str = stringify!($name);
        }
    )*};
}
sized!(
    nexthop_options,
    nexthop_document,
    nexthop_host_info,
    nexthop_host_op,
    nexthop_local_reply,
    nexthop_request_facts,
    nexthop_engine_facts,
    nexthop_error_parts,
    nexthop_check,
    nexthop_decision
);
// SAFETY: as above.
unsafe impl Sized32 for nexthop_head {
    const NAME: &'static str = "nexthop_head";

    fn absent() -> Self {
        // SAFETY: every bit pattern is a value.
        let zero: Self = unsafe { MaybeUninit::zeroed().assume_init() };
        Self { priority: -1, ..zero }
    }
}
// SAFETY: as above.
unsafe impl Sized32 for nexthop_outcome {
    const NAME: &'static str = "nexthop_outcome";

    fn absent() -> Self {
        // SAFETY: every bit pattern is a value.
        let zero: Self = unsafe { MaybeUninit::zeroed().assume_init() };
        Self { grpc_status: -1, ..zero }
    }
}

/// The size a struct claims, checked.
///
/// # Safety
/// A non-null pointer must point to at least the size field, which tells how much is readable.
#[inline]
unsafe fn size_of_claim<T: Sized32>(ptr: *const T) -> Result<usize, Fault> {
    if ptr.is_null() {
        return Err(missing(T::NAME));
    }
    if !ptr.is_aligned() {
        return Err(misaligned(T::NAME));
    }
    // SAFETY: aligned; the caller's promise.
    let size = unsafe { ptr.cast::<u32>().read() } as usize;
    if size == size_of::<T>() || (SMALLEST..=LARGEST).contains(&size) {
        return Ok(size);
    }
    Err(wrong_size(T::NAME, size, size_of::<T>()))
}

/// Reads a struct of any version: in place when all fields are there.
///
/// # Safety
/// A non-null pointer must point to as many readable bytes as its size field says, unchanged while the result lasts.
#[inline]
pub(crate) unsafe fn read<T: Sized32>(ptr: *const T, spare: &mut Option<T>) -> Result<&T, Fault> {
    // SAFETY: handed on.
    let size = unsafe { size_of_claim(ptr)? };
    if size == size_of::<T>() {
        // SAFETY: not null, aligned, whole.
        return Ok(unsafe { &*ptr });
    }
    // SAFETY: as much is readable.
    unsafe { read_other(ptr, size, spare) }
}

#[cold]
unsafe fn read_other<T: Sized32>(ptr: *const T, size: usize, spare: &mut Option<T>) -> Result<&T, Fault> {
    // SAFETY: the caller's promise: `size` bytes are readable.
    let given = unsafe { std::slice::from_raw_parts(ptr.cast::<u8>(), size) };
    if let Some(tail) = given.get(size_of::<T>()..)
        && tail.iter().any(|byte| *byte != 0)
    {
        return Err(Fault::invalid(&format!(
            "{} has {size} bytes and sets fields that this library ({} bytes) does not know; leave them zero or update the library",
            T::NAME,
            size_of::<T>()
        )));
    }
    let whole = spare.insert(T::absent());
    let known = size.min(size_of::<T>());
    // SAFETY: both hold `known` bytes; every bit pattern is a value.
    unsafe { std::ptr::copy_nonoverlapping(given.as_ptr(), std::ptr::from_mut(whole).cast(), known) };
    Ok(whole)
}

/// Reads an array; all its structs have the size that the first one says.
///
/// # Safety
/// As [`read`], for each of the `n` structs.
pub(crate) unsafe fn read_all<T: Sized32>(ptr: *const T, n: usize) -> Result<Vec<T>, Fault> {
    if n == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: handed on.
    let stride = unsafe { size_of_claim(ptr)? };
    if !stride.is_multiple_of(align_of::<T>()) {
        return Err(wrong_size(T::NAME, stride, size_of::<T>()));
    }
    if n.checked_mul(stride).is_none_or(|bytes| bytes > isize::MAX.cast_unsigned()) {
        return Err(Fault::invalid(&format!("{n} structs {} do not fit into memory", T::NAME)));
    }
    let mut all = Vec::with_capacity(n);
    for i in 0..n {
        // SAFETY: within the array.
        let at = unsafe { ptr.byte_add(i * stride) };
        // SAFETY: handed on.
        if unsafe { size_of_claim(at)? } != stride {
            return Err(Fault::invalid(&format!(
                "struct_size of {} number {i} differs from that of the first; they must be the same",
                T::NAME
            )));
        }
        let mut spare = None;
        // SAFETY: handed on.
        all.push(*unsafe { read(at, &mut spare)? });
    }
    Ok(all)
}

/// A result to fill: a struct of the caller of any version.
pub(crate) struct Out<T: Sized32> {
    ptr: *mut T,
    size: usize,
}

impl<T: Sized32> Out<T> {
    /// Checks the struct; before anything else happens.
    ///
    /// # Safety
    /// A non-null pointer must point to as many writable bytes as its size field says.
    #[inline]
    pub(crate) unsafe fn new(ptr: *mut T) -> Result<Self, Fault> {
        // SAFETY: handed on.
        let size = unsafe { size_of_claim(ptr)? };
        Ok(Self { ptr, size })
    }

    /// The struct itself, when it is at least as large as ours, for filling in place. Afterwards
    /// [`seal`](Self::seal) restores its size.
    #[inline]
    pub(crate) fn whole(&self) -> Option<*mut T> {
        (self.size >= size_of::<T>()).then_some(self.ptr)
    }

    /// Writes the caller's size back.
    ///
    /// # Safety
    /// The struct must still be there.
    #[inline]
    pub(crate) unsafe fn seal(&self) {
        // Fits: it was read from there.
        #[expect(clippy::cast_possible_truncation, reason = "was a u32")]
        // SAFETY: the caller's promise.
        unsafe {
            self.ptr.cast::<u32>().write(self.size as u32);
        }
    }

    /// Fills as much as the caller knows.
    ///
    /// # Safety
    /// The struct must still be there.
    pub(crate) unsafe fn put(&self, value: &T) {
        let known = self.size.min(size_of::<T>());
        // SAFETY: both hold `known` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(std::ptr::from_ref(value).cast::<u8>(), self.ptr.cast(), known);
            self.seal();
        }
    }
}

#[cold]
fn missing(name: &str) -> Fault {
    Fault::invalid(&format!("the pointer to {name} is NULL"))
}

#[cold]
fn misaligned(name: &str) -> Fault {
    Fault::invalid(&format!("the pointer to {name} is misaligned"))
}

#[cold]
fn wrong_size(name: &str, found: usize, ours: usize) -> Fault {
    Fault::invalid(&format!(
        "struct_size of {name} is {found}; set it to sizeof({name}) before the call ({ours} in this library)"
    ))
}
