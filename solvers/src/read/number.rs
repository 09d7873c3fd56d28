//! Numbers as C, Fortran and Python write them.

/// A text read as an integer.
pub(super) enum ParsedInteger {
    /// A double holds it.
    Exact(f64),
    /// No double holds it.
    Inexact,
    /// The text is no integer.
    None,
}

/// Reads an integer, which a double may hold or not.
pub(super) fn integer(text: &str) -> ParsedInteger {
    match text.parse::<i128>() {
        Ok(value) if value as f64 as i128 == value => ParsedInteger::Exact(value as f64),
        Ok(_) => ParsedInteger::Inexact,
        Err(_) => ParsedInteger::None,
    }
}

/// Reads a number: `1.5`, `1.5e3`, and `1.5D+03` or `1.5+103` as Fortran writes them.
pub(super) fn number(text: &str) -> Option<f64> {
    let of_fortran = || {
        let (at, sign) = text.char_indices().skip(1).find(|(_, c)| matches!(c, 'd' | 'D' | '+' | '-'))?;
        let exponent = if matches!(sign, '+' | '-') { &text[at..] } else { &text[at + 1..] };
        format!("{}e{exponent}", &text[..at]).parse().ok()
    };
    text.parse().ok().or_else(of_fortran)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_fortran_are_read_and_others_are_not() {
        let cases =
            [("1.0D+03", 1e3), ("-1d3", -1e3), ("1.0-103", 1e-103), ("+.5D0", 0.5), ("1e5", 1e5), ("-2.5E-01", -0.25)];
        for (text, value) in cases {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in ["", "-", "d", "D5", "1D", "1D5D5", "1e5D5", "x", "1+", "--1", "1.0D+0x"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
