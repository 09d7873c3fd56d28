//! Numbers of bytes as people write them.

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
    let number = number.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.map(|number| number * base.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_units_are_read() {
        for (text, expected) in [
            ("100e6", 100e6),
            ("100M", 100e6),
            (" 100MB ", 100e6),
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
