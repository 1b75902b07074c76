//! Values made once, without a lock while Python runs: a `fork` would hand a child a lock that nobody gives back.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

/// What the cell holds; whoever comes first fills it, and of two at once one is dropped.
#[inline]
pub(crate) fn once<'a, T>(
    py: Python<'_>,
    cell: &'a PyOnceLock<T>,
    make: impl FnOnce() -> PyResult<T>,
) -> PyResult<&'a T> {
    if let Some(value) = cell.get(py) {
        return Ok(value);
    }
    let _ = cell.set(py, make()?);
    // Filled by us or by another thread meanwhile.
    cell.get(py).ok_or_else(|| pyo3::exceptions::PySystemError::new_err("a cell lost its value"))
}

/// Fills the cells that `pyo3` keeps for walks over iterables; called while the module is imported.
pub(crate) fn warm(py: Python<'_>) -> PyResult<()> {
    PyList::empty(py).try_iter()?.size_hint();
    Ok(())
}
