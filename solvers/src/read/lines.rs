//! The lines of a text file, counted, and errors that name them.

use std::io::{BufRead, Read};

use super::error::MatrixMarketError;

/// Longest line read, in bytes; the format allows 1024.
const LINE_BYTES_MAX: u64 = 1 << 16;
/// Longest piece of a file repeated in an error, in characters.
const QUOTE_MAX: usize = 60;
/// The mark that some programs put before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of a file, counted.
pub(super) struct Lines<'a, R> {
    name: &'a str,
    text: R,
    line: usize,
    buffer: Vec<u8>,
}

impl<'a, R: BufRead> Lines<'a, R> {
    pub(super) fn new(name: &'a str, text: R) -> Self {
        Self { name, text, line: 0, buffer: Vec::new() }
    }

    /// Reads the next line, whatever it holds; false at the end of the file.
    pub(super) fn read_line(&mut self) -> Result<bool, MatrixMarketError> {
        self.buffer.clear();
        let mut limited = self.text.by_ref().take(LINE_BYTES_MAX);
        let bytes = limited.read_until(b'\n', &mut self.buffer).map_err(|source| MatrixMarketError::Read {
            path: self.name.to_owned(),
            line: self.line,
            source,
        })?;
        if bytes == 0 {
            return Ok(false);
        }
        self.line += 1;
        if self.line == 1 && self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.drain(..BYTE_ORDER_MARK.len());
        }
        if bytes as u64 == LINE_BYTES_MAX && self.buffer.last() != Some(&b'\n') {
            return self.unexpected("line", "at most 65536 bytes", "a longer one");
        }
        Ok(true)
    }

    /// Reads on to the next line that is neither blank nor a comment; false at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool, MatrixMarketError> {
        while self.read_line()? {
            let first = self.buffer.iter().find(|byte| !byte.is_ascii_whitespace());
            if first.is_some_and(|&byte| byte != b'%' && byte != b'#') {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn text(&self) -> Result<&str, MatrixMarketError> {
        match std::str::from_utf8(&self.buffer) {
            Ok(text) => Ok(text),
            Err(_) => self.unexpected("line", "text", "bytes that are none"),
        }
    }

    /// Returns whether the text begins with `banner`, in letters of either case.
    pub(super) fn starts_with(&mut self, banner: &str) -> Result<bool, MatrixMarketError> {
        let path = self.name.to_owned();
        let start = self.text.fill_buf().map_err(|source| MatrixMarketError::Read { path, line: 0, source })?;
        let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
        Ok(start.get(..banner.len()).is_some_and(|start| start.eq_ignore_ascii_case(banner.as_bytes())))
    }

    /// The line in exactly `N` pieces, up to a comment.
    pub(super) fn fields<const N: usize>(&self, expected: &str) -> Result<[&str; N], MatrixMarketError> {
        let text = self.text()?;
        let mut pieces = text.split('%').next().unwrap_or_default().split_ascii_whitespace();
        let mut fields = [""; N];
        for field in &mut fields {
            match pieces.next() {
                Some(piece) => *field = piece,
                None => return self.unexpected("line", expected, text),
            }
        }
        if pieces.next().is_some() { self.unexpected("line", expected, text) } else { Ok(fields) }
    }

    /// The size line: `N` counts.
    pub(super) fn counts<const N: usize>(
        &mut self,
        what: &'static str,
        expected: &str,
    ) -> Result<[usize; N], MatrixMarketError> {
        if !self.advance()? {
            return self.truncated("size lines", 1, 0);
        }
        let mut counts = [0; N];
        for (count, text) in counts.iter_mut().zip(self.fields::<N>(expected)?) {
            match text.parse() {
                Ok(number) => *count = number,
                Err(_) => return self.unexpected(what, expected, text),
            }
        }
        if counts[0] == 0 { self.unexpected(what, "at least one row", "0") } else { Ok(counts) }
    }

    /// An index from 1 to `rows`, given back from 0.
    pub(super) fn index(&self, what: &'static str, text: &str, rows: usize) -> Result<u32, MatrixMarketError> {
        match text.parse::<u32>() {
            Ok(index) if index >= 1 && index as usize <= rows => Ok(index - 1),
            _ => self.unexpected(what, &format!("a number from 1 to {rows}"), text),
        }
    }

    /// Nothing but blanks and comments may follow.
    pub(super) fn finish(&mut self, what: &'static str, expected: usize) -> Result<(), MatrixMarketError> {
        if self.advance()? {
            let text = self.text()?;
            return self.unexpected("end of file", &format!("nothing after {expected} {what}"), text);
        }
        Ok(())
    }

    pub(super) fn unexpected<T>(
        &self,
        what: &'static str,
        expected: &str,
        found: &str,
    ) -> Result<T, MatrixMarketError> {
        // A file of another kind is not to write to the reader's terminal.
        let printable = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
        let found = found.trim().chars().take(QUOTE_MAX).map(printable).collect();
        // An empty file has no line, and what is missing is its first.
        let path = self.name.to_owned();
        let line = self.line.max(1);
        Err(MatrixMarketError::Unexpected { path, line, what, expected: expected.to_owned(), found })
    }

    pub(super) fn truncated<T>(
        &self,
        what: &'static str,
        expected: usize,
        found: usize,
    ) -> Result<T, MatrixMarketError> {
        Err(MatrixMarketError::Truncated { path: self.name.to_owned(), line: self.line, what, expected, found })
    }
}
