//! Durations and numbers of bytes as people write them: the one notation of the program's flags,
//! the options strings of C, and the arguments of Python.

use crate::interval::parse_seconds;

/// The error of a text that is no quantity of the kind asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}")]
pub struct ParseQuantityError {
    /// The texts that are read.
    pub expected: &'static str,
}

/// Reads a duration above zero, in seconds: `90`, `1h`, `10min`, `250ms`.
///
/// # Errors
/// Says what was expected.
pub fn duration(text: &str) -> Result<f64, ParseQuantityError> {
    let expected = "a duration above 0: seconds, or with a unit as in 250ms, 90s, 10min, 1h, 2d";
    parse_seconds(text).filter(|seconds| *seconds > 0.0).ok_or(ParseQuantityError { expected })
}

/// Returns seconds with a unit: `340 us`, `12.0 s`, `42 min 59 s`, `1 h 05 min`.
#[must_use]
pub fn shown_seconds(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        return if value.is_nan() { "-".to_owned() } else { "never".to_owned() };
    }
    match magnitude {
        0.0 => "0 s".to_owned(),
        m if m < 1e-3 => format!("{:.3} us", value * 1e6),
        m if m < 1.0 => format!("{:.3} ms", value * 1e3),
        m if m < 120.0 => format!("{value:.2} s"),
        m if m < 3599.5 => {
            let whole = value.round();
            format!("{} min {:02} s", (whole / 60.0).trunc(), (whole % 60.0).abs())
        }
        _ => {
            let minutes = (value / 60.0).round();
            format!("{} h {:02} min", (minutes / 60.0).floor(), minutes % 60.0)
        }
    }
}

/// Reads a duration, zero allowed, in seconds.
///
/// # Errors
/// Says what was expected.
pub fn duration_or_zero(text: &str) -> Result<f64, ParseQuantityError> {
    let expected = "a duration: seconds, or with a unit as in 250ms, 90s, 10min, 1h, 2d";
    parse_seconds(text).ok_or(ParseQuantityError { expected })
}

/// Reads a number of bytes: `500000`, `500k`, `2GiB`.
///
/// # Errors
/// Says what was expected.
pub fn bytes(text: &str) -> Result<u64, ParseQuantityError> {
    let bytes = parse_bytes(text).filter(|bytes| (1.0..u64::MAX as f64).contains(bytes));
    let expected = "bytes, at least 1, such as 500000, 500k or 2GiB";
    bytes.map(|bytes| bytes as u64).ok_or(ParseQuantityError { expected })
}

/// Reads bytes per second: a number of bytes, with or without `/s`.
///
/// # Errors
/// Says what was expected.
pub fn bytes_per_second(text: &str) -> Result<f64, ParseQuantityError> {
    let expected = "bytes per second above 0, such as 100e6, 100M or 100MiB";
    parse_bytes(text.trim().trim_end_matches("/s")).ok_or(ParseQuantityError { expected })
}

/// Reads a count from 1 to 65535: of versions, ranks or threads.
///
/// # Errors
/// Says what was expected.
pub fn count(text: &str) -> Result<usize, ParseQuantityError> {
    let count = text.trim().parse().ok().filter(|count| (1..=65_535).contains(count));
    count.ok_or(ParseQuantityError { expected: "a count of at least 1, and at most 65535" })
}

/// Reads a number of bytes above 0: a plain number, or one with k, M, G, T (powers of 1000) or Ki,
/// Mi, Gi, Ti (powers of 1024), with or without a B: `500000`, `100e6`, `1.5G`, `2GiB`.
#[must_use]
pub fn parse_bytes(text: &str) -> Option<f64> {
    let trimmed = text.trim();
    let trimmed = trimmed.strip_suffix('B').unwrap_or(trimmed);
    let (trimmed, base) = match trimmed.strip_suffix('i') {
        Some(rest) => (rest, 1024_f64),
        None => (trimmed, 1000.0),
    };
    let power = match trimmed.chars().last() {
        Some('k' | 'K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        _ if base > 1000.0 => return None,
        _ => 0,
    };
    let number = if power > 0 { &trimmed[..trimmed.len() - 1] } else { trimmed };
    let number = number.trim_end().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.map(|number| number * base.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_take_both_kinds_of_units() {
        for (text, expected) in [("100e6", 100e6), ("100MB/s", 100e6), ("100MiB", 104_857_600.0), ("2k", 2000.0)] {
            assert_eq!(bytes_per_second(text), Ok(expected), "{text}");
        }
        for text in ["", "0", "-1M", "fast", "10i", "nan", "inf", "5X", "MiB"] {
            assert!(bytes_per_second(text).is_err() && bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn both_kinds_of_units_are_read() {
        for (text, expected) in [
            ("100e6", 100e6),
            ("100M", 100e6),
            (" 100MB ", 100e6),
            // As reports print them.
            ("64.00 MiB", 67_108_864.0),
            ("100MiB", 104_857_600.0),
            ("1.5Gi", 1.5 * 1_073_741_824.0),
            ("17476", 17476.0),
            ("2k", 2000.0),
        ] {
            assert_eq!(parse_bytes(text), Some(expected), "{text}");
        }
        for text in ["", "0", "-1M", "fast", "10i", "nan", "inf", "5X", "MiB"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
