//! JavaScript values in and out.

use crate::Callback;
use napi_sys as sys;
use nexthop::raw;
use std::ffi::CStr;
use std::ptr::null_mut;

/// What a plain function returns.
pub(crate) type Answer = Result<sys::napi_value, Thrown>;

/// A callback with so many arguments.
macro_rules! plain {
    ($(#[$doc:meta])* $name:ident, |$env:ident, $arguments:pat_param| $body:expr) => {
        $(#[$doc])*
        unsafe extern "C" fn $name(env: napi_sys::napi_env, info: napi_sys::napi_callback_info) -> napi_sys::napi_value {
            $crate::guarded(env, || -> $crate::values::Answer {
                let $env = env;
                let $arguments = $crate::values::arguments($env, info)?;
                $body
            })
        }
    };
}
pub(crate) use plain;

/// What a cold function throws: a plain object that the package turns into its error classes.
pub(crate) struct Thrown {
    status: i32,
    message: String,
    config: Option<Box<raw::Error>>,
}

impl Thrown {
    pub(crate) fn new(status: i32, message: String) -> Self {
        Self { status, message, config: None }
    }

    pub(crate) fn invalid(message: &str) -> Self {
        Self::new(-1, message.into())
    }

    /// Makes the exception pending. With another one already pending that one stays.
    pub(crate) fn throw(self, env: sys::napi_env) {
        if let Ok(object) = self.object(env) {
            // SAFETY: `env` is live and `object` was made in it.
            unsafe { sys::napi_throw(env, object) };
        }
    }

    fn object(&self, env: sys::napi_env) -> Result<sys::napi_value, Self> {
        let object = object(env)?;
        set(env, object, c"status", number(env, f64::from(self.status))?)?;
        set(env, object, c"message", string(env, &self.message)?)?;
        match self.config.as_deref() {
            Some(raw::Error::Config(error)) => {
                set(env, object, c"file", string(env, &error.file)?)?;
                set(env, object, c"line", number(env, f64::from(error.line))?)?;
                set(env, object, c"column", number(env, f64::from(error.column))?)?;
                set(env, object, c"path", string(env, &error.path)?)?;
                set(env, object, c"found", string(env, &error.found)?)?;
                set(env, object, c"allowed", string(env, &error.allowed)?)?;
                if let Some(nearest) = &error.nearest {
                    set(env, object, c"nearest", string(env, nearest)?)?;
                }
            }
            Some(raw::Error::Io { file, .. }) => set(env, object, c"file", string(env, file)?)?,
            _ => {}
        }
        Ok(object)
    }
}

impl From<raw::Error> for Thrown {
    fn from(error: raw::Error) -> Self {
        Self { status: error.status(), message: error.to_string(), config: Some(Box::new(error)) }
    }
}

/// A Node-API status as a result.
pub(crate) fn check(status: sys::napi_status) -> Result<(), Thrown> {
    match status {
        sys::Status::napi_ok => Ok(()),
        status => Err(Thrown::new(-1, format!("Node-API status {status}"))),
    }
}

/// The first `N` arguments; missing ones are `undefined`.
pub(crate) fn arguments<const N: usize>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> Result<[sys::napi_value; N], Thrown> {
    let (mut count, mut values) = (N, [null_mut(); N]);
    // SAFETY: `count` is the length of `values`.
    check(unsafe {
        sys::napi_get_cb_info(env, info, &raw mut count, values.as_mut_ptr(), null_mut(), null_mut())
    })?;
    Ok(values)
}

/// A new object.
pub(crate) fn object(env: sys::napi_env) -> Result<sys::napi_value, Thrown> {
    let mut value = null_mut();
    // SAFETY: `env` is live, here and below.
    check(unsafe { sys::napi_create_object(env, &raw mut value) })?;
    Ok(value)
}

/// A new array.
pub(crate) fn array(env: sys::napi_env, items: &[sys::napi_value]) -> Result<sys::napi_value, Thrown> {
    let mut value = null_mut();
    // SAFETY: as above.
    check(unsafe { sys::napi_create_array_with_length(env, items.len(), &raw mut value) })?;
    for (index, item) in items.iter().enumerate() {
        // SAFETY: as above; both values belong to `env`.
        check(unsafe { sys::napi_set_element(env, value, index as u32, *item) })?;
    }
    Ok(value)
}

/// A named property.
pub(crate) fn set(
    env: sys::napi_env,
    object: sys::napi_value,
    name: &CStr,
    value: sys::napi_value,
) -> Result<(), Thrown> {
    // SAFETY: as above.
    check(unsafe { sys::napi_set_named_property(env, object, name.as_ptr(), value) })
}

/// A number.
pub(crate) fn number(env: sys::napi_env, number: f64) -> Result<sys::napi_value, Thrown> {
    let mut value = null_mut();
    // SAFETY: as above.
    check(unsafe { sys::napi_create_double(env, number, &raw mut value) })?;
    Ok(value)
}

/// A boolean.
pub(crate) fn boolean(env: sys::napi_env, flag: bool) -> Result<sys::napi_value, Thrown> {
    let mut value = null_mut();
    // SAFETY: as above.
    check(unsafe { sys::napi_get_boolean(env, flag, &raw mut value) })?;
    Ok(value)
}

/// `null`.
pub(crate) fn null(env: sys::napi_env) -> Result<sys::napi_value, Thrown> {
    let mut value = null_mut();
    // SAFETY: as above.
    check(unsafe { sys::napi_get_null(env, &raw mut value) })?;
    Ok(value)
}

/// A 64-bit number.
pub(crate) fn bigint(env: sys::napi_env, number: u64) -> Result<sys::napi_value, Thrown> {
    let mut value = null_mut();
    // SAFETY: as above.
    check(unsafe { sys::napi_create_bigint_uint64(env, number, &raw mut value) })?;
    Ok(value)
}

/// A string.
pub(crate) fn string(env: sys::napi_env, text: &str) -> Result<sys::napi_value, Thrown> {
    let mut value = null_mut();
    // SAFETY: pointer and length are those of `text`.
    let status = unsafe {
        sys::napi_create_string_utf8(env, text.as_ptr().cast(), text.len().cast_signed(), &raw mut value)
    };
    match status {
        sys::Status::napi_ok => Ok(value),
        _ => Err(Thrown::new(-8, format!("a text of {} bytes is more than a string can hold", text.len()))),
    }
}

/// A `Buffer` with a copy of these bytes.
pub(crate) fn buffer(env: sys::napi_env, bytes: &[u8]) -> Result<sys::napi_value, Thrown> {
    let mut value = null_mut();
    // SAFETY: pointer and length are those of `bytes`; where the copy lies is not asked.
    let status = unsafe {
        sys::napi_create_buffer_copy(env, bytes.len(), bytes.as_ptr().cast(), null_mut(), &raw mut value)
    };
    check(status)?;
    Ok(value)
}

/// Nanoseconds as milliseconds; no limit is `Infinity`.
pub(crate) fn milliseconds(env: sys::napi_env, ns: u64) -> Result<sys::napi_value, Thrown> {
    number(env, if ns == raw::NEVER { f64::INFINITY } else { ns as f64 / 1e6 })
}

/// An unsigned number that JavaScript has already checked.
pub(crate) fn get_u32(env: sys::napi_env, value: sys::napi_value) -> Result<u32, Thrown> {
    let mut number = 0;
    // SAFETY: as above.
    check(unsafe { sys::napi_get_value_uint32(env, value, &raw mut number) })
        .map_err(|_| Thrown::invalid("expected a number"))?;
    Ok(number)
}

/// A number.
pub(crate) fn get_f64(env: sys::napi_env, value: sys::napi_value) -> Result<f64, Thrown> {
    let mut number = 0.0;
    // SAFETY: as above.
    check(unsafe { sys::napi_get_value_double(env, value, &raw mut number) })
        .map_err(|_| Thrown::invalid("expected a number"))?;
    Ok(number)
}

/// A bigint that fits 64 unsigned bits.
pub(crate) fn get_u64(env: sys::napi_env, value: sys::napi_value) -> Result<u64, Thrown> {
    let (mut number, mut lossless) = (0, false);
    // SAFETY: as above.
    check(unsafe { sys::napi_get_value_bigint_uint64(env, value, &raw mut number, &raw mut lossless) })
        .map_err(|_| Thrown::invalid("expected a bigint"))?;
    if lossless { Ok(number) } else { Err(Thrown::invalid("expected a bigint from 0 to 2n ** 64n - 1n")) }
}

/// A string; lone surrogates arrive as U+FFFD.
pub(crate) fn get_string(env: sys::napi_env, value: sys::napi_value) -> Result<String, Thrown> {
    let mut length = 0;
    // SAFETY: a null buffer asks for the length only.
    check(unsafe { sys::napi_get_value_string_utf8(env, value, null_mut(), 0, &raw mut length) })
        .map_err(|_| Thrown::invalid("expected a string"))?;
    let mut bytes = vec![0_u8; length + 1];
    // SAFETY: the buffer has room for the text and the NUL that Node adds.
    check(unsafe {
        sys::napi_get_value_string_utf8(env, value, bytes.as_mut_ptr().cast(), bytes.len(), &raw mut length)
    })?;
    bytes.truncate(length);
    String::from_utf8(bytes).map_err(|_| Thrown::invalid("expected text"))
}

/// A `Uint8Array` or a string, copied: its memory may be shared with other threads.
pub(crate) fn get_bytes(env: sys::napi_env, value: sys::napi_value) -> Result<Vec<u8>, Thrown> {
    let mut typed = false;
    // SAFETY: as above.
    check(unsafe { sys::napi_is_typedarray(env, value, &raw mut typed) })?;
    if !typed {
        return get_string(env, value).map(String::into_bytes);
    }
    let (pointer, length, element) = typed_array(env, value)?;
    if element != 1 {
        return Err(Thrown::invalid("expected a Uint8Array"));
    }
    if length == 0 {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; length];
    // SAFETY: Node vouches for `length` bytes at `pointer` while the value lives, which is this call.
    unsafe { std::ptr::copy_nonoverlapping(pointer, bytes.as_mut_ptr(), length) };
    Ok(bytes)
}

/// Where the elements of a typed array lie, how many they are and how wide.
pub(crate) fn typed_array(
    env: sys::napi_env,
    value: sys::napi_value,
) -> Result<(*mut u8, usize, usize), Thrown> {
    let (mut kind, mut length, mut pointer) = (0, 0, null_mut());
    // SAFETY: as above; unwanted answers have null pointers.
    check(unsafe {
        sys::napi_get_typedarray_info(
            env,
            value,
            &raw mut kind,
            &raw mut length,
            &raw mut pointer,
            null_mut(),
            null_mut(),
        )
    })
    .map_err(|_| Thrown::invalid("expected a typed array"))?;
    let element = match kind {
        sys::TypedarrayType::int8_array
        | sys::TypedarrayType::uint8_array
        | sys::TypedarrayType::uint8_clamped_array => 1,
        sys::TypedarrayType::int16_array | sys::TypedarrayType::uint16_array => 2,
        sys::TypedarrayType::int32_array
        | sys::TypedarrayType::uint32_array
        | sys::TypedarrayType::float32_array => 4,
        _ => 8,
    };
    Ok((pointer.cast(), length, element))
}

/// Whether the value is `undefined` or `null`.
pub(crate) fn is_absent(env: sys::napi_env, value: sys::napi_value) -> Result<bool, Thrown> {
    let mut kind = 0;
    // SAFETY: as above.
    check(unsafe { sys::napi_typeof(env, value, &raw mut kind) })?;
    Ok(kind == sys::ValueType::napi_undefined || kind == sys::ValueType::napi_null)
}

/// The elements of an array.
pub(crate) fn get_array(env: sys::napi_env, value: sys::napi_value) -> Result<Vec<sys::napi_value>, Thrown> {
    let mut length = 0;
    // SAFETY: as above.
    check(unsafe { sys::napi_get_array_length(env, value, &raw mut length) })
        .map_err(|_| Thrown::invalid("expected an array"))?;
    (0..length)
        .map(|index| {
            let mut item = null_mut();
            // SAFETY: as above.
            check(unsafe { sys::napi_get_element(env, value, index, &raw mut item) })?;
            Ok(item)
        })
        .collect()
}

/// Adds a function without data to an object.
pub(crate) fn export(
    env: sys::napi_env,
    object: sys::napi_value,
    name: &CStr,
    callback: Callback,
) -> Result<(), Thrown> {
    let mut function = null_mut();
    // SAFETY: `name` is NUL-terminated, the callback has no data.
    check(unsafe {
        sys::napi_create_function(env, name.as_ptr(), -1, Some(callback), null_mut(), &raw mut function)
    })?;
    set(env, object, name, function)
}
