//! The little of protobuf's wire format that headers carry.

/// Reads a message field by field.
pub(crate) struct Reader<'a>(&'a [u8]);

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next field with its number: `Some(None)` at the end, `None` when this is no message.
    #[expect(clippy::option_option, reason = "the end is not a fault")]
    pub(crate) fn next(&mut self) -> Option<Option<(u64, Field<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => {
                let (bytes, rest) = self.0.split_first_chunk()?;
                self.0 = rest;
                Field::Fixed64(u64::from_le_bytes(*bytes))
            }
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Field::Bytes(bytes)
            }
            5 => {
                let (bytes, rest) = self.0.split_first_chunk()?;
                self.0 = rest;
                Field::Fixed32(u32::from_le_bytes(*bytes))
            }
            _ => return None,
        };
        if key >> 3 == 0 {
            return None;
        }
        Some(Some((key >> 3, value)))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for (at, byte) in self.0.iter().enumerate().take(10) {
            let part = u64::from(byte & 0x7f);
            number |= part.checked_shl(7 * at as u32)?;
            if byte & 0x80 == 0 {
                self.0 = &self.0[at + 1..];
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields() {
        let bytes =
            [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x19, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x25, 1, 0, 0, 0];
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.next(), Some(Some((1, Field::Varint(150)))));
        assert_eq!(reader.next(), Some(Some((2, Field::Bytes(b"hi")))));
        assert_eq!(reader.next(), Some(Some((3, Field::Fixed64(1.0_f64.to_bits())))));
        assert_eq!(reader.next(), Some(Some((4, Field::Fixed32(1)))));
        assert_eq!(reader.next(), Some(None));
        for bad in [&[0x08][..], &[0x08, 0x80], &[0x0b], &[0x12, 5, 1], &[0x00, 1], &[0xff; 11]] {
            assert_eq!(Reader::new(bad).next(), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut reader = Reader::new(&bytes);
            let mut fields = 0;
            while let Some(Some(_)) = reader.next() {
                fields += 1;
                prop_assert!(fields <= bytes.len());
            }
        }
    }
}
