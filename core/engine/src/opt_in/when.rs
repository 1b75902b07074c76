//! When an answer says that it may be asked again: `retry-after` and what servers use beside it.
//!
//! Read are seconds (`120`, `1.5`), milliseconds in headers whose name ends in `-ms`, seconds or milliseconds since
//! 1970 where the number is that large, spans (`6m0s`, `350ms`), dates of HTTP (all three forms of RFC 9110) and of
//! RFC 3339. A time that has passed is no wait.

use crate::clock::MILLI;

const SECOND: u64 = 1000 * MILLI;
/// Numbers from here on are instants: nobody is asked to wait 30 years.
const EPOCH_SECONDS: u64 = 1_000_000_000;
const EPOCH_MILLIS: u64 = 1_000_000_000_000;

/// Nanoseconds to wait by a header, `None` when it is not readable. `unix`: nanoseconds since 1970.
pub(crate) fn wait_of(name: &str, value: &[u8], unix: u64) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim_ascii();
    if name.ends_with("-ms") {
        return decimal(text, MILLI);
    }
    if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        let whole: u64 = text.split('.').next()?.parse().ok()?;
        return match whole {
            0..EPOCH_SECONDS => decimal(text, SECOND),
            EPOCH_SECONDS..EPOCH_MILLIS => Some(decimal(text, SECOND)?.saturating_sub(unix)),
            _ => Some(decimal(text, MILLI)?.saturating_sub(unix)),
        };
    }
    span(text).or_else(|| {
        let seconds = http_date(text).or_else(|| internet_date(text))?;
        Some(u64::try_from(seconds).unwrap_or(0).saturating_mul(SECOND).saturating_sub(unix))
    })
}

/// Digits, perhaps with a fraction, in `unit` nanoseconds. What is finer than a nanosecond is cut.
fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let mut nanos = whole.parse::<u64>().ok()?.saturating_mul(unit);
    let mut part = unit;
    for digit in fraction.bytes() {
        part /= 10;
        nanos = nanos.saturating_add(u64::from(digit - b'0') * part);
    }
    Some(nanos)
}

/// `1h2m3.5s`, `20ms`: units in falling order are not insisted on.
fn span(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 6] = [
        ("ms", MILLI),
        ("us", 1000),
        ("s", SECOND),
        ("m", 60 * SECOND),
        ("h", 3600 * SECOND),
        ("d", 86_400 * SECOND),
    ];
    let (mut rest, mut total) = (text, 0_u64);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let letters = after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.saturating_add(decimal(number, *nanos)?);
        rest = next;
    }
    (!text.is_empty()).then_some(total)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and
/// `Sun Nov  6 08:49:37 1994`.
fn http_date(text: &str) -> Option<i64> {
    let mut words = text.split([' ', '-']).filter(|word| !word.is_empty());
    let weekday = words.next()?;
    let (day, month, year, time);
    if weekday.ends_with(',') {
        (day, month, year) = (words.next()?, words.next()?, words.next()?);
        time = words.next()?;
        words.next().filter(|zone| *zone == "GMT")?;
    } else {
        (month, day, time, year) = (words.next()?, words.next()?, words.next()?, words.next()?);
    }
    if words.next().is_some() {
        return None;
    }
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let year = match (year.len(), year.parse::<i64>().ok()?) {
        // Two digits: RFC 9110 takes the century that is less than 50 years ahead; no server sends dates of before.
        (2, short @ 70..) => 1900 + short,
        (2, short) => 2000 + short,
        (_, year) => year,
    };
    instant(year, month, day.parse().ok()?, time)
}

/// Seconds since 1970 of `1994-11-06T08:49:37Z`, also with a fraction or an offset.
fn internet_date(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let (clock, rest) = time.split_at_checked(8)?;
    let zone =
        rest.strip_prefix('.').map_or(rest, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let sign = match zone.bytes().next()? {
                b'+' => 1,
                b'-' => -1,
                _ => return None,
            };
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60)
        }
    };
    Some(instant(year, month, day, clock)? - offset)
}

fn instant(year: i64, month: i64, day: i64, time: &str) -> Option<i64> {
    let mut parts = time.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    // 60: a leap second.
    let legal = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && parts.next().is_none();
    legal.then(|| days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days since 1970 of a date of the Gregorian calendar, years beginning in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wait(name: &str, value: &str, unix_seconds: u64) -> Option<u64> {
        wait_of(name, value.as_bytes(), unix_seconds * SECOND).map(|nanos| nanos / MILLI)
    }

    #[test]
    fn numbers_and_spans() {
        for (name, value, millis) in [
            ("retry-after", "120", 120_000),
            ("retry-after", " 0 ", 0),
            ("retry-after", "1.5", 1500),
            ("retry-after-ms", "350", 350),
            ("retry-after-ms", "0.5", 0),
            ("x-ratelimit-reset", "6m0s", 360_000),
            ("x-ratelimit-reset", "20ms", 20),
            ("x-ratelimit-reset", "1h0m1.25s", 3_601_250),
            ("x-ratelimit-reset", "1700000010", 10_000),
            ("x-ratelimit-reset", "1700000010.5", 10_500),
            ("x-ratelimit-reset", "1700000010500", 10_500),
            ("x-ratelimit-reset", "1600000000", 0),
            ("retry-after", "999999999", 999_999_999_000),
        ] {
            assert_eq!(wait(name, value, 1_700_000_000), Some(millis), "{name}: {value}");
        }
        for bad in ["", "soon", "-1", "1,5", "1.", ".5", "5 s", "5x", "s", "99999999999999999999999", "1s2"] {
            assert_eq!(wait("retry-after", bad, 0), None, "{bad}");
        }
        assert_eq!(wait("retry-after-ms", "5s", 0), None);
        assert_eq!(wait_of("retry-after", b"\xff", 0), None);
        assert_eq!(wait("retry-after-ms", "18446744073709551615", 0), Some(u64::MAX / MILLI), "saturates");
    }

    #[test]
    fn dates() {
        let then = 784_111_777;
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "1994-11-06T08:49:37Z",
            "1994-11-06T08:49:37.123Z",
            "1994-11-06T10:49:37+02:00",
            "1994-11-06t03:19:37-05:30",
        ] {
            assert_eq!(wait("retry-after", date, then - 90), Some(90_000), "{date}");
            assert_eq!(wait("retry-after", date, then + 1), Some(0), "{date} has passed");
        }
        for bad in [
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nxx 1994 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "1994-11-06",
            "1994-11-06T08:49:37",
            "1994-13-06T08:49:37Z",
        ] {
            assert_eq!(wait("retry-after", bad, 0), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_not(value in ".{0,40}", unix in any::<u64>()) {
            let _ = wait_of("retry-after", value.as_bytes(), unix);
        }

        #[test]
        fn days_count_one_by_one(day in 0_i64..800_000) {
            let stamp = crate::events::timestamp(u64::try_from(day).unwrap().saturating_mul(86_400 * SECOND));
            prop_assume!(day < 213_000);
            prop_assert_eq!(internet_date(&stamp), Some(day * 86_400));
        }
    }
}
