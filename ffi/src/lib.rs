//! The C interface: `include/nexthop.h` over [`nexthop::raw`].
//!
//! Nothing is decided here. What this crate adds is what C needs: pointers are checked, structs of other
//! versions are read and written by their size, no panic leaves, and `fork` is followed.
#![allow(
    clippy::missing_safety_doc,
    reason = "one rule for all, told at the head of the header: pointers are valid for what their sizes say"
)]

pub mod ask;
pub mod checks;
pub mod cold;
pub mod consts;
mod fault;
mod fork;
pub mod given;
pub mod hot;
#[cfg(test)]
mod layout;
pub mod memory;
mod names;
mod sized;
mod text;
pub mod types;
