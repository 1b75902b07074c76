//! Base64 with `=` at the end, as headers carry it.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Text as bytes; the `=` at the end may be left out. `None` when it is no base64.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let stripped = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    if stripped.len() % 4 == 1 || (stripped.len() != text.len() && !text.len().is_multiple_of(4)) {
        return None;
    }
    let mut bytes = Vec::with_capacity(stripped.len() / 4 * 3 + 2);
    for group in stripped.chunks(4) {
        let mut word = 0_u32;
        for letter in group {
            word = word << 6 | LETTERS.iter().position(|known| known == letter)? as u32;
        }
        word <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&word.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_texts() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("127.0.0.2:18001", "MTI3LjAuMC4yOjE4MDAx"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text.as_bytes()), Some(bytes.as_bytes().to_vec()));
        }
        assert_eq!(decode(b"Zm8"), Some(b"fo".to_vec()));
        for bad in ["Z", "Zg=", "Zm9v=", "Zm9v====", "Zm!v", "=", "Zg==x"] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn there_and_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(decode(encode(&bytes).as_bytes()), Some(bytes));
        }
    }
}
