//! Functions bound to one engine in one environment, and the words they share with JavaScript.
//!
//! Words (32 bits each, little-endian as the machine): 0-7 arguments, 8-25 decision, 26-29 verdict, 30 result
//! code. Texts travel in the text array: 32 words of numbers, then the bytes. Both arrays lie in shared memory,
//! which cannot be detached under the addon.

use crate::values::{self, Thrown};
use crate::{Callback, engines, guarded, hot, state};
use napi_sys as sys;
use nexthop::raw::{Decision, Local, Packed, Verdict};
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};

/// First word of the decision.
const DECISION: usize = 8;
/// First word of the verdict.
const VERDICT: usize = 26;
/// Result code of calls without a verdict.
const CODE: usize = 30;
/// Words that JavaScript provides.
const WORDS: usize = 32;
/// Bytes of numbers before the texts.
pub(crate) const TEXT_AT: usize = 128;

/// What the data pointer of a bound function points to. Lives until the last of the functions is collected.
pub(crate) struct Bound {
    pub(crate) engine: u64,
    local: *mut Local,
    words: *mut u32,
    text: *mut u8,
    text_len: usize,
    /// Functions that are still alive.
    functions: Cell<usize>,
    /// Whether this counts as a user of the engine.
    user: Cell<bool>,
    /// Cleared at the end: tells the other threads that nobody waits here any more.
    alive: *const AtomicI32,
    /// What the requests of this thread carry in the upper half of their user data, when it is theirs alone.
    owner: Option<u32>,
    /// Keep the arrays.
    keep: Cell<[sys::napi_ref; 3]>,
}

impl Bound {
    /// The engine block of this thread.
    #[inline]
    #[expect(
        clippy::mut_from_ref,
        reason = "only this thread reaches it, and no bound function runs another"
    )]
    pub(crate) fn local(&self) -> &mut Local {
        // SAFETY: it lies in the environment's instance data, which outlives every callback; callbacks of one
        // environment never overlap and none of them calls back into JavaScript.
        unsafe { &mut *self.local }
    }

    /// Argument word `index`.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> u32 {
        debug_assert!(index < WORDS);
        // Volatile keeps two words from being read as one: JavaScript has just written them apart, and a load that
        // spans two stores waits for both to leave the core.
        // SAFETY: `bind` has checked that there are `WORDS` words; the pin in `keep` holds their memory.
        unsafe { self.words.add(index).read_volatile() }
    }

    /// Two argument words as a 64-bit number.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        u64::from(self.word(0)) | u64::from(self.word(1)) << 32
    }

    /// Where a decision is written.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "as for `local`")]
    pub(crate) fn decision(&self) -> &mut Decision {
        // SAFETY: 18 words from an 8-byte boundary (`bind` checks the alignment); every bit pattern is a
        // decision; only this thread touches them while the callback runs.
        unsafe { &mut *self.words.add(DECISION).cast::<Decision>() }
    }

    /// Writes a verdict, as two machine words: copied field by field, the copy would wait for the narrower stores.
    #[inline]
    pub(crate) fn answer(&self, verdict: Verdict) {
        let Packed(first, second) = verdict.into();
        // SAFETY: 4 words from an 8-byte boundary.
        unsafe { self.words.add(VERDICT).cast::<[u64; 2]>().write([first, second]) };
    }

    /// Writes a result code.
    #[inline]
    pub(crate) fn code(&self, code: i32) {
        // SAFETY: within `WORDS`.
        unsafe { self.words.add(CODE).write(code.cast_unsigned()) };
    }

    /// Number word `index` of the text array.
    pub(crate) fn text_word(&self, index: usize) -> u32 {
        debug_assert!(index < TEXT_AT / 4);
        // SAFETY: `bind` has checked length and alignment of the array.
        unsafe { self.text.cast::<u32>().add(index).read() }
    }

    /// Number words `index` and the next as one number.
    pub(crate) fn text_u64(&self, index: usize) -> u64 {
        u64::from(self.text_word(index)) | u64::from(self.text_word(index + 1)) << 32
    }

    /// `len` bytes of text from `at` (counted after the numbers), if they are there.
    pub(crate) fn text(&self, at: usize, len: usize) -> Option<&[u8]> {
        let end = TEXT_AT.checked_add(at)?.checked_add(len)?;
        if end > self.text_len {
            return None;
        }
        // SAFETY: inside the array; nobody writes while this thread is in here.
        Some(unsafe { std::slice::from_raw_parts(self.text.add(TEXT_AT + at), len) })
    }

    /// Room for answers: the whole text array as words.
    #[expect(clippy::mut_from_ref, reason = "as for `local`")]
    pub(crate) fn room<T: Copy>(&self) -> &mut [T] {
        // SAFETY: aligned to 8 bytes (checked by `bind`), plain numbers; as for `decision`.
        unsafe { std::slice::from_raw_parts_mut(self.text.cast(), self.text_len / size_of::<T>()) }
    }

    /// Gives the engine back, once.
    pub(crate) fn release(&self) {
        if self.user.replace(false) {
            if let Some(owner) = self.owner {
                // A block of its own: the environment's may be gone. What this thread waited for, was granted or
                // had in flight goes to the others; the engine may be closed, which ended it all.
                let _ = nexthop::raw::abandon_all(&mut Local::default(), self.engine, owner);
            }
            if !self.alive.is_null() {
                // SAFETY: the pin in `keep` holds the memory of that word.
                unsafe { (*self.alive).store(0, Ordering::SeqCst) };
            }
            engines::detach(self.engine);
        }
    }

    /// What a bound function was called on.
    ///
    /// # Safety
    /// Only for callbacks made by [`bind`].
    #[inline]
    pub(crate) unsafe fn of<'a>(env: sys::napi_env, info: sys::napi_callback_info) -> &'a Self {
        let (mut count, mut data) = (0, null_mut());
        // SAFETY: no room for arguments is given, so none are written; the data pointer of such callbacks is a
        // `Bound` that lives as long as the function.
        unsafe {
            sys::napi_get_cb_info(env, info, &raw mut count, null_mut(), null_mut(), &raw mut data);
            &*data.cast::<Self>()
        }
    }
}

/// `bind(engine: bigint, words: Int32Array, text: Uint8Array, created: boolean, owner: number, alive?: Int32Array)`:
/// the bound functions of one engine.
pub(crate) unsafe extern "C" fn bind(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    guarded(env, || {
        let [engine, words, text, created, owner, alive] = values::arguments(env, info)?;
        let (word_at, word_count, width) = values::typed_array(env, words)?;
        let (text_at, text_len, text_width) = values::typed_array(env, text)?;
        let aligned = word_at.addr() % 8 == 0 && text_at.addr() % 8 == 0;
        if !aligned || width != 4 || word_count < WORDS || text_width != 1 || text_len < TEXT_AT + 1024 {
            return Err(Thrown::invalid("unfit arrays"));
        }
        let mut keep = [pin(env, words)?, pin(env, text)?, null_mut()];
        let mut alive_at = std::ptr::null();
        if !values::is_absent(env, alive)? {
            let (pointer, length, width) = values::typed_array(env, alive)?;
            if length == 0 || width != 4 || pointer.addr() % 4 != 0 {
                return Err(Thrown::invalid("unfit array"));
            }
            alive_at = pointer.cast::<AtomicI32>().cast_const();
            keep[2] = pin(env, alive)?;
        }
        let engine = values::get_u64(env, engine)?;
        let owner = values::get_u32(env, owner)?;
        let mut fresh = false;
        // SAFETY: `env` is live.
        values::check(unsafe { sys::napi_get_value_bool(env, created, &raw mut fresh) })?;
        if fresh {
            engines::created(engine);
        } else if !engines::attach(engine) {
            return Err(Thrown::new(-4, "the engine is closed".into()));
        }
        let state = state::of(env)?;
        let bound = Box::into_raw(Box::new(Bound {
            engine,
            // SAFETY: `of` gives the environment's block, see `Bound::local`.
            local: unsafe { (*state).local.get() },
            words: word_at.cast(),
            text: text_at,
            text_len,
            functions: Cell::new(1),
            user: Cell::new(true),
            alive: alive_at,
            // The creator's number is also that of requests without an owner.
            owner: (owner != 0).then_some(owner),
            keep: Cell::new(keep),
        }));
        let object = values::object(env);
        let made = object.and_then(|object| {
            for (name, callback) in hot::FUNCTIONS {
                function(env, object, name, *callback, bound)?;
            }
            Ok(object)
        });
        // The count of 1 above was this function's own hold.
        // SAFETY: `bound` is alive while somebody counts.
        unsafe { let_go(env, bound) };
        made
    })
}

fn pin(env: sys::napi_env, value: sys::napi_value) -> Result<sys::napi_ref, Thrown> {
    let mut reference = null_mut();
    // SAFETY: `env` is live and `value` an object.
    values::check(unsafe { sys::napi_create_reference(env, value, 1, &raw mut reference) })?;
    Ok(reference)
}

fn function(
    env: sys::napi_env,
    object: sys::napi_value,
    name: &CStr,
    callback: Callback,
    bound: *mut Bound,
) -> Result<(), Thrown> {
    let mut function = null_mut();
    // SAFETY: `bound` is counted by each function and freed after the last one's finalizer.
    unsafe {
        values::check(sys::napi_create_function(
            env,
            name.as_ptr(),
            -1,
            Some(callback),
            bound.cast(),
            &raw mut function,
        ))?;
        values::check(sys::napi_add_finalizer(
            env,
            function,
            bound.cast(),
            Some(collected),
            null_mut(),
            null_mut(),
        ))?;
        let count = &(*bound).functions;
        count.set(count.get() + 1);
    }
    values::set(env, object, name, function)
}

unsafe extern "C" fn collected(env: sys::napi_env, data: *mut c_void, _: *mut c_void) {
    // SAFETY: Node calls this once per function, with what `function` gave it.
    unsafe { let_go(env, data.cast()) };
}

/// Counts one holder less, and frees after the last.
///
/// # Safety
/// `bound` must be counted for the caller.
unsafe fn let_go(env: sys::napi_env, bound: *mut Bound) {
    // SAFETY: by the caller's word it is alive.
    let count = unsafe { &(*bound).functions };
    count.set(count.get() - 1);
    if count.get() > 0 {
        return;
    }
    // SAFETY: nobody else counts any more.
    let bound = unsafe { Box::from_raw(bound) };
    // A panic must not unwind into the collector.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bound.release()));
    for reference in bound.keep.get() {
        if !reference.is_null() {
            // SAFETY: made by `pin` in this environment, deleted here only.
            unsafe { sys::napi_delete_reference(env, reference) };
        }
    }
}
