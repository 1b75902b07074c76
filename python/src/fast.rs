//! The calls of every attempt, by CPython's vector convention with the arguments looked at in place.
//!
//! The macros of pyo3 parse arguments by name, and pack them into a tuple where keywords are open; both cost more
//! than a choice. So the usual shapes are taken here, and everything else goes to the method of the same name with
//! an underscore before it, which pyo3 makes. Python finds one method, with one signature.

use crate::attempt::Attempt;
use crate::engine::Engine;
use crate::picker::Picker;
use pyo3::PyClass;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyMethodDef, PyMethodDefPointer, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// A definition that CPython keeps a pointer to.
struct Definition(PyMethodDef);

// SAFETY: plain pointers to text and code that live as long as the process; nobody writes.
unsafe impl Sync for Definition {}

impl Definition {
    const fn new(
        name: &'static CStr,
        function: ffi::PyCFunctionFastWithKeywords,
        doc: &'static CStr,
    ) -> Self {
        Self(PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: doc.as_ptr(),
        })
    }
}

static CHOOSE_HOST: Definition = Definition::new(
    c"choose_host",
    choose_host,
    c"choose_host($self, cluster, *, attempt=1, tried=(), wait=None, **head)\n--\n\nA stateless attempt: its number \
      is yours, and it waits only where the cluster says that it queues.",
);
static ATTEMPT_COMPLETE: Definition = Definition::new(
    c"complete",
    attempt_complete,
    c"complete($self, status=None, headers=None, *, grpc_status=None, latency=None, detail=None)\n--\n\nThe whole report: answer \
      and end at once.",
);
static PICK: Definition = Definition::new(
    c"pick",
    pick,
    c"pick($self, attempt=1, key=None, /)\n--\n\nThe host's slot; -1 minus the refusal's number; -100 minus the wait \
      reason's number.",
);
static PICKER_COMPLETE: Definition = Definition::new(
    c"complete",
    picker_complete,
    c"complete($self, status=0, /)\n--\n\nReports the open attempt; the verdict's action: 1 forward, 2 retry, 3 \
      discard.",
);

/// Puts the methods into their classes.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    put(&py.get_type::<Engine>(), &CHOOSE_HOST)?;
    put(&py.get_type::<Attempt>(), &ATTEMPT_COMPLETE)?;
    put(&py.get_type::<Picker>(), &PICK)?;
    put(&py.get_type::<Picker>(), &PICKER_COMPLETE)
}

fn put(class: &Bound<'_, PyType>, definition: &'static Definition) -> PyResult<()> {
    let definition = (&raw const definition.0).cast_mut();
    // SAFETY: class and definition are live; CPython only reads the definition.
    let method = unsafe {
        let method = ffi::PyDescr_NewMethod(class.as_ptr().cast(), definition);
        Bound::from_owned_ptr_or_err(class.py(), method)?
    };
    // SAFETY: the name is text that lives as long as the process.
    let name = unsafe { CStr::from_ptr((*definition).ml_name) };
    class.setattr(PyString::from_bytes(class.py(), name.to_bytes())?, method)
}

/// What a call brings.
struct Call {
    slf: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    names: *mut PyObject,
}

impl Call {
    /// The object that the method was called on.
    ///
    /// # Safety
    /// It must be of that class: a method descriptor has checked it.
    unsafe fn receiver<'a, 'py, T: PyClass>(&'a self, py: Python<'py>) -> &'a Bound<'py, T> {
        // SAFETY: the caller of the method holds it for as long as the call lasts.
        unsafe { Bound::ref_from_ptr(py, &self.slf).cast_unchecked() }
    }

    /// Whether it has this many arguments, none of them by name.
    fn plain(&self, count: usize) -> bool {
        self.count == count && self.names.is_null()
    }

    /// The first argument, when it is there.
    fn first<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyAny> {
        debug_assert!(self.count > 0);
        // SAFETY: the caller holds the arguments for as long as the call lasts.
        unsafe { Bound::ref_from_ptr(py, &*self.args) }
    }

    /// The first argument as a status, when it is an integer in the range of statuses.
    fn status(&self, py: Python<'_>) -> Option<u16> {
        let value = self.first(py);
        if !value.is_exact_instance_of::<pyo3::types::PyInt>() {
            return None;
        }
        let mut overflow = 0;
        // SAFETY: it is an integer.
        let number = unsafe { ffi::PyLong_AsLongAndOverflow(value.as_ptr(), &raw mut overflow) };
        (overflow == 0 && (100..=999).contains(&number)).then_some(number as u16)
    }

    /// Any other shape: the method that pyo3 makes.
    #[cold]
    fn other(&self, py: Python<'_>, method: &str) -> PyResult<Py<PyAny>> {
        // SAFETY: all of these are held by the caller: the receiver, `count` arguments, then one for each name.
        let (slf, positional, names) = unsafe {
            let positional: Vec<_> =
                (0..self.count).map(|at| Bound::from_borrowed_ptr(py, *self.args.add(at))).collect();
            let names = Bound::from_borrowed_ptr_or_opt(py, self.names);
            (Bound::from_borrowed_ptr(py, self.slf), positional, names)
        };
        let keywords = PyDict::new(py);
        if let Some(names) = names {
            for (at, name) in names.cast::<PyTuple>()?.iter().enumerate() {
                // SAFETY: as above.
                let value = unsafe { Bound::from_borrowed_ptr(py, *self.args.add(self.count + at)) };
                keywords.set_item(name, value)?;
            }
        }
        let keywords = (!keywords.is_empty()).then_some(&keywords);
        slf.getattr(method)?.call(PyTuple::new(py, positional)?, keywords).map(Bound::unbind)
    }
}

/// Runs a call: `usual` takes the usual shape, or says that it is another one.
fn run(
    slf: *mut PyObject,
    args: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    names: *mut PyObject,
    method: &str,
    usual: impl FnOnce(Python<'_>, &Call) -> Option<PyResult<Py<PyAny>>>,
) -> *mut PyObject {
    let call = Call { slf, args, count: count.unsigned_abs(), names };
    let result = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: CPython calls methods with the interpreter held.
        let py = unsafe { Python::assume_attached() };
        // pyo3 counts who is attached, and drops references at once only for them: whatever may drop one attaches.
        usual(py, &call).unwrap_or_else(|| Python::attach(|py| call.other(py, method)))
    }));
    match result {
        Ok(Ok(value)) => value.into_ptr(),
        Ok(Err(error)) => raise(error),
        Err(_) => raise(PyRuntimeError::new_err("a bug in nexthop, contained")),
    }
}

#[cold]
fn raise(error: PyErr) -> *mut PyObject {
    Python::attach(|py| error.restore(py));
    null_mut()
}

/// A method: `$count` arguments and none by name is its usual shape, `$other` takes every other one.
macro_rules! method {
    ($name:ident, $count:literal, $other:literal, |$py:ident, $call:ident, $self:ident: $class:ty| $body:expr) => {
        unsafe extern "C" fn $name(
            slf: *mut PyObject,
            args: *const *mut PyObject,
            count: ffi::Py_ssize_t,
            names: *mut PyObject,
        ) -> *mut PyObject {
            run(slf, args, count, names, $other, |$py, $call| {
                if !$call.plain($count) {
                    return None;
                }
                // SAFETY: a method of this class.
                let $self = unsafe { $call.receiver::<$class>($py) };
                $body
            })
        }
    };
}

method!(choose_host, 1, "_choose_host", |py, call, engine: Engine| {
    let target = engine.get().last_target(call.first(py))?;
    Some(Engine::choose_one(engine, target).map(Py::into_any))
});
method!(attempt_complete, 1, "_complete", |py, call, attempt: Attempt| {
    let status = call.status(py)?;
    Some(attempt.get().complete_status(py, status).map(Py::into_any))
});
method!(pick, 0, "_pick", |py, call, picker: Picker| {
    Some(picker.get().choose(py, 1, None).map(|number| integer(py, number.into())))
});
method!(picker_complete, 1, "_complete", |py, call, picker: Picker| {
    let status = call.status(py)?;
    Some(picker.get().report(py, status).map(|action| integer(py, action.into())))
});

/// A Python integer; the small ones are shared.
fn integer(py: Python<'_>, number: i64) -> Py<PyAny> {
    // SAFETY: a new reference, or a shared one that is counted.
    unsafe { Bound::from_owned_ptr(py, ffi::PyLong_FromLongLong(number)).unbind() }
}
