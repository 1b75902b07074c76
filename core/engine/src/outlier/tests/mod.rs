//! The detector alone, then under updates of documents, endpoints and runtime values.

mod bench;
mod facts;
mod scripts;
mod updates;
