//! Numbers as Java reads and writes them.

/// A double as `Double.toString` writes it.
pub(super) fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let size = number.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{number:?}");
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}

/// A double as `Double.parseDouble` reads it, without hexadecimal forms.
pub(super) fn double(text: &str) -> Option<f64> {
    let text = text.trim();
    match text {
        "NaN" | "+NaN" | "-NaN" => return Some(f64::NAN),
        "Infinity" | "+Infinity" => return Some(f64::INFINITY),
        "-Infinity" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    let text = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let numeric = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    text.parse().ok().filter(|_| numeric && !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_as_text() {
        let cases = [
            (1.0, "1.0"),
            (0.5, "0.5"),
            (1e7, "1.0E7"),
            (12_345_678.0, "1.2345678E7"),
            (9_999_999.0, "9999999.0"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (0.0, "0.0"),
            (-2.5, "-2.5"),
            (f64::INFINITY, "Infinity"),
        ];
        for (number, text) in cases {
            assert_eq!(double_text(number), text);
            assert_eq!(double(text), Some(number), "{text}");
        }
        assert_eq!(double(" 5 "), Some(5.0));
        assert_eq!(double("2d"), Some(2.0));
        assert!(double("NaN").is_some_and(f64::is_nan));
        for text in ["", "x", "inf", "nan", "1,5", "infinity", "0x10"] {
            assert_eq!(double(text), None, "{text}");
        }
    }
}
