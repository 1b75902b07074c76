//! Typed reading of value trees: where a reader stands ([`At`]), which fields a message has ([`Fields`]), and
//! Envoy's scalar rules.

mod any;
mod at;
mod duration;
mod fields;
mod message;
mod nearest;
mod scalar;
mod value;

pub(crate) use at::{At, Doc, Reference, Seen, Sink};
pub(crate) use fields::{Fields, is_spelling};
pub(crate) use message::Msg;
pub(crate) use nearest::nearest;
pub(crate) use value::struct_of;
