//! Holds the structs of this crate against C's view of the header: size and offset of every field.
