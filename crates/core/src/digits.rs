//! Numbers in messages.

/// Longest number written without an exponent, in characters.
const PLAIN_MAX: usize = 24;

/// Writes a number for a message: with an exponent where it would otherwise have hundreds of
/// digits, as 1e300 and the smallest doubles have.
#[must_use]
pub fn short_number(value: f64) -> String {
    let plain = value.to_string();
    if plain.len() <= PLAIN_MAX { plain } else { format!("{value:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A diagonal of 5e-324 was shown with 324 digits.
    #[test]
    fn no_number_takes_more_than_a_few_characters() {
        assert_eq!([0.0, 0.1, -2.5, 1e15].map(short_number), ["0", "0.1", "-2.5", "1000000000000000"]);
        assert_eq!(short_number(5e-324), "5e-324");
        assert_eq!(short_number(f64::MAX), "1.7976931348623157e308");
        assert_eq!(short_number(f64::NAN), "NaN");
    }
}
