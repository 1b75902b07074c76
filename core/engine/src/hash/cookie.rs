//! Cookies of hash policies (section 17): read from a request, made for an answer.

use super::xxh64;
use std::fmt::Write as _;
use std::time::Duration;

/// The value of the first cookie of this name over all `cookie` lines, without surrounding double quotes.
pub(crate) fn find<'a>(lines: impl Iterator<Item = &'a [u8]>, name: &str) -> Option<&'a [u8]> {
    for line in lines {
        for pair in line.split(|byte| *byte == b';') {
            let pair = pair.trim_prefix_spaces();
            let Some(equals) = pair.iter().position(|byte| *byte == b'=') else { continue };
            let (key, value) = (&pair[..equals], &pair[equals + 1..]);
            if key == name.as_bytes() {
                return Some(match value {
                    [b'"', inner @ .., b'"'] => inner,
                    _ => value,
                });
            }
        }
    }
    None
}

trait Spaces {
    fn trim_prefix_spaces(&self) -> &Self;
}

impl Spaces for [u8] {
    fn trim_prefix_spaces(&self) -> &Self {
        let spaces = self.iter().take_while(|byte| **byte == b' ').count();
        &self[spaces..]
    }
}

/// The value of a generated cookie: 16 hexadecimal digits from both ends of the downstream connection, so that
/// racing requests of one connection get the same.
pub(crate) fn value(source: &str, local: &str) -> [u8; 16] {
    let mut ends = Vec::with_capacity(source.len() + local.len());
    ends.extend_from_slice(source.as_bytes());
    ends.extend_from_slice(local.as_bytes());
    let hash = xxh64(&ends, 0);
    std::array::from_fn(|digit| b"0123456789abcdef"[(hash >> (60 - 4 * digit) & 15) as usize])
}

/// The `Set-Cookie` value. Whole seconds of `ttl` count; zero leaves `Max-Age` out, an empty path leaves `Path` out.
pub(crate) fn set_cookie(
    name: &str,
    value: &str,
    ttl: Duration,
    path: &str,
    attributes: &[(String, String)],
) -> String {
    let mut text = format!("{name}=\"{value}\"");
    if ttl.as_secs() > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "; Max-Age={}", ttl.as_secs());
    }
    if !path.is_empty() {
        text.extend(["; Path=", path]);
    }
    for (name, value) in attributes {
        text.extend(["; ", name]);
        if !value.is_empty() {
            text.extend(["=", value]);
        }
    }
    text.push_str("; HttpOnly");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(lines: &[&'static str], name: &str) -> Option<&'static [u8]> {
        find(lines.iter().map(|line| line.as_bytes()), name)
    }

    #[test]
    fn finds_the_first_of_its_name() {
        assert_eq!(first(&["a=1; b=2", "b=3"], "b"), Some(&b"2"[..]));
        assert_eq!(first(&["a=1", "  b=3=4"], "b"), Some(&b"3=4"[..]));
        assert_eq!(first(&["b; bb=1;b=\"q\""], "b"), Some(&b"q"[..]));
        assert_eq!(first(&["b=\""], "b"), Some(&b"\""[..]));
        assert_eq!(first(&["b="], "b"), Some(&b""[..]));
        assert_eq!(first(&["", ";;", "=x"], "b"), None);
    }

    #[test]
    fn attributes_come_before_http_only() {
        let attributes = [("SameSite".to_owned(), "Lax".to_owned()), ("Secure".to_owned(), String::new())];
        assert_eq!(
            set_cookie("s", "0123456789abcdef", Duration::from_millis(1900), "", &attributes),
            "s=\"0123456789abcdef\"; Max-Age=1; SameSite=Lax; Secure; HttpOnly"
        );
        assert_eq!(
            set_cookie("s", "0123456789abcdef", Duration::from_millis(900), "/", &[]),
            "s=\"0123456789abcdef\"; Path=/; HttpOnly"
        );
    }
}
