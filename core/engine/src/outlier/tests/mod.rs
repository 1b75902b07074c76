//! The detector alone, then under real requests.

mod bench;
mod facts;
mod scripts;
