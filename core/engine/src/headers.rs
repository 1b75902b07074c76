//! Header blocks: only wanted headers cross into the engine.
//!
//! A block is repeated `u16 index, u16 0, u32 length, bytes`, little-endian, without padding. The index points
//! into a numbered set of lower-case names; several values of one header are several entries in order.

/// A set of header names and a block over it.
#[derive(Clone, Copy)]
pub struct HeaderView<'a> {
    names: &'a [Box<str>],
    block: &'a [u8],
}

impl<'a> HeaderView<'a> {
    /// No headers at all.
    pub const EMPTY: HeaderView<'static> = HeaderView { names: &[], block: &[] };

    /// A block over these names; `None` when the block is malformed.
    pub fn new(names: &'a [Box<str>], block: &'a [u8]) -> Option<Self> {
        let view = Self { names, block };
        let mut rest = block;
        while !rest.is_empty() {
            let (index, _, after) = entry(rest)?;
            if usize::from(index) >= names.len() {
                return None;
            }
            rest = after;
        }
        Some(view)
    }

    /// All values of a header (lower-case name), in order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let index = self.names.iter().position(|n| &**n == name);
        let mut rest = self.block;
        std::iter::from_fn(move || {
            let index = index?;
            while let Some((at, value, after)) = entry(rest) {
                rest = after;
                if usize::from(at) == index {
                    return Some(value);
                }
            }
            None
        })
    }

    /// The first value of a header.
    pub fn first(&self, name: &str) -> Option<&'a [u8]> {
        self.values(name).next()
    }

    /// Whether the block is empty.
    pub fn is_empty(&self) -> bool {
        self.block.is_empty()
    }
}

fn entry(block: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (head, rest) = block.split_first_chunk::<8>()?;
    let index = u16::from_le_bytes([head[0], head[1]]);
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((index, value, rest))
}

/// Appends one entry to a block.
pub fn pack(block: &mut Vec<u8>, index: u16, value: &[u8]) {
    block.extend_from_slice(&index.to_le_bytes());
    block.extend_from_slice(&[0, 0]);
    block.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
    block.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_malformed() {
        let names: Vec<Box<str>> = vec!["a".into(), "b".into()];
        let mut block = Vec::new();
        pack(&mut block, 1, b"x");
        pack(&mut block, 0, b"");
        pack(&mut block, 1, b"yz");
        let view = HeaderView::new(&names, &block).unwrap();
        assert_eq!(view.values("b").collect::<Vec<_>>(), [&b"x"[..], b"yz"]);
        assert_eq!(view.first("a"), Some(&b""[..]));
        assert_eq!(view.first("c"), None);
        for cut in 1..block.len() {
            let whole = cut == 9 || cut == 17;
            assert_eq!(HeaderView::new(&names, &block[..cut]).is_some(), whole, "cut at {cut}");
        }
        assert!(HeaderView::new(&names[..1], &block).is_none());
    }
}
