//! What a crossing costs through generated glue.

use napi_derive::napi;

/// Does nothing.
#[napi]
pub fn empty() {}
