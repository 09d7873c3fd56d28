//! Matrix Market files: matrices in coordinate format, right-hand sides in array format or as a
//! plain column of numbers.
//!
//! Promises: what does not fit is refused with file, line, what was expected and what was found;
//! duplicate entries are summed in the order of the file; memory grows with the entries read, not
//! with the counts a file claims. Read: real and integer, general, symmetric and skew-symmetric
//! (lower triangle stored). Refused by name: pattern, complex, hermitian. Must not know solvers.
//! Format: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market Exchange Formats: Initial
//! Design", NISTIR 5935 (1996), doi 10.6028/NIST.IR.5935.

use std::io::{self, BufRead, Write};
use std::ops::Range;
use std::path::Path;

use super::error::MatrixMarketError;
use super::lines::Lines;
use super::number::{ParsedInteger, integer, number};
use super::text_file::{PackedMember, open};
use crate::{Csr, LocalRows};

/// Beginning of a file.
const BANNER: &str = "%%MatrixMarket";

/// Reads a square matrix from `path`: `.mtx`, plain, by gzip or by zstd, or the matrix of a `.tar`
/// archive as SuiteSparse delivers it (told by the first bytes, not by the name).
///
/// # Errors
/// [`MatrixMarketError`] names file, line, what was expected and what was found.
pub fn read_matrix(path: &Path) -> Result<Csr, MatrixMarketError> {
    let name = path.display().to_string();
    parse_matrix(&name, open(path, &name, PackedMember::Matrix)?)
}

/// Reads a vector from `path`: in array format with one column, or one number a line. Packed as for
/// [`read_matrix`]; of an archive, the right-hand side next to the matrix.
///
/// # Errors
/// [`MatrixMarketError`] names file, line, what was expected and what was found.
pub fn read_vector(path: &Path) -> Result<Vec<f64>, MatrixMarketError> {
    let name = path.display().to_string();
    parse_vector(&name, open(path, &name, PackedMember::RightHandSide)?)
}

/// Writes a vector in array format, every value with the digits that bring it back bit for bit.
///
/// # Errors
/// What the writer refuses.
pub fn write_vector(out: &mut (impl Write + ?Sized), values: &[f64]) -> io::Result<()> {
    writeln!(out, "%%MatrixMarket matrix array real general\n{} 1", values.len())?;
    values.iter().try_for_each(|value| writeln!(out, "{value:e}"))
}

/// Reads some rows of a square matrix from `path`: those that `choose` names, given the number of
/// rows. All entries pass by, those of the rows chosen are kept: 28 bytes each while they are
/// sorted.
///
/// # Errors
/// As [`read_matrix`]; the file is checked as a whole, whichever rows are kept.
pub fn read_matrix_rows(
    path: &Path,
    choose: impl FnOnce(usize) -> Range<usize>,
) -> Result<LocalRows, MatrixMarketError> {
    let name = path.display().to_string();
    parse_rows(&name, open(path, &name, PackedMember::Matrix)?, choose)
}

/// The matrix in `text`, uncompressed; `name` stands for the file in errors.
///
/// # Errors
/// As [`read_matrix`].
pub fn parse_matrix(name: &str, text: impl BufRead) -> Result<Csr, MatrixMarketError> {
    let LocalRows { row_starts, columns, values } = parse_rows(name, text, |rows| 0..rows)?;
    let refused = |source| MatrixMarketError::Matrix { path: name.to_owned(), source };
    Csr::new(row_starts, columns, values).map_err(refused)
}

fn parse_rows(
    name: &str,
    text: impl BufRead,
    choose: impl FnOnce(usize) -> Range<usize>,
) -> Result<LocalRows, MatrixMarketError> {
    let mut lines = Lines::new(name, text);
    let header = Header::read(&mut lines)?;
    if header.is_array {
        return lines.unexpected("format", "coordinate", "array");
    }
    let [rows, columns, stored] = lines.counts("size line", "rows, columns and number of entries")?;
    if rows != columns {
        let found = format!("{rows} rows and {columns} columns");
        return lines.unexpected("size line", "a square matrix", &found);
    }
    if rows > u32::MAX as usize {
        return lines.unexpected("size line", "at most 4294967295 rows", &rows.to_string());
    }
    let chosen = choose(rows);
    let triplets = read_triplets(&mut lines, &header, rows, &chosen, stored)?;
    lines.finish("entries", stored)?;
    Ok(assemble(&chosen, &triplets))
}

/// The vector in `text`, uncompressed; `name` stands for the file in errors.
///
/// # Errors
/// As [`read_vector`].
pub fn parse_vector(name: &str, text: impl BufRead) -> Result<Vec<f64>, MatrixMarketError> {
    let mut lines = Lines::new(name, text);
    if !lines.starts_with(BANNER)? {
        return column(&mut lines);
    }
    let header = Header::read(&mut lines)?;
    if !header.is_array {
        return lines.unexpected("format", "array (one column, every value stored)", "coordinate");
    }
    if header.symmetry != Symmetry::General {
        return lines.unexpected("symmetry", "general", "another symmetry of a vector");
    }
    let [rows, columns] = lines.counts("size line", "rows and columns")?;
    if columns != 1 {
        return lines.unexpected("size line", "one column", &columns.to_string());
    }
    let mut values = Vec::new();
    while values.len() < rows {
        if !lines.advance()? {
            return lines.truncated("values", rows, values.len());
        }
        let [text] = lines.fields("one value")?;
        let value = header.value(&lines, text)?;
        values.push(value);
    }
    lines.finish("values", rows)?;
    Ok(values)
}

/// Reads a column of numbers, one a line, behind comments that begin with # or %.
fn column<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<Vec<f64>, MatrixMarketError> {
    const EXPECTED: &str = "%%MatrixMarket, or one finite number a line";
    let mut values = Vec::new();
    while lines.advance()? {
        let [text] = lines.fields(EXPECTED)?;
        match number(text) {
            Some(value) if value.is_finite() => values.push(value),
            _ => return lines.unexpected("value", EXPECTED, text),
        }
    }
    if values.is_empty() { lines.unexpected("vector", EXPECTED, "none") } else { Ok(values) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// Content of the first line.
#[derive(Debug)]
struct Header {
    is_array: bool,
    is_integer: bool,
    symmetry: Symmetry,
}

impl Header {
    fn read<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<Self, MatrixMarketError> {
        const FORM: &str = "%%MatrixMarket matrix coordinate|array real|integer general|symmetric|skew-symmetric";
        if !lines.read_line()? {
            return lines.unexpected("header", FORM, "an empty file");
        }
        let words: Vec<String> = lines.text()?.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
        let [banner, object, format, field, symmetry] = &words[..] else {
            return lines.unexpected("header", FORM, lines.text()?);
        };
        if banner != "%%matrixmarket" || object != "matrix" {
            return lines.unexpected("header", FORM, lines.text()?);
        }
        let is_array = match format.as_str() {
            "coordinate" => false,
            "array" => true,
            other => return lines.unexpected("format", "coordinate or array", other),
        };
        let is_integer = match field.as_str() {
            "real" | "double" => false,
            "integer" => true,
            other => return lines.unexpected("field", "real or integer", other),
        };
        let symmetry = match symmetry.as_str() {
            "general" => Symmetry::General,
            "symmetric" => Symmetry::Symmetric,
            "skew-symmetric" => Symmetry::Skew,
            other => return lines.unexpected("symmetry", "general, symmetric or skew-symmetric", other),
        };
        Ok(Self { is_array, is_integer, symmetry })
    }

    /// A finite number of the field the header names.
    fn value<R: BufRead>(&self, lines: &Lines<'_, R>, text: &str) -> Result<f64, MatrixMarketError> {
        if !self.is_integer {
            let value = number(text).filter(|value| value.is_finite());
            return value.map_or_else(|| lines.unexpected("value", "a finite number", text), Ok);
        }
        match integer(text) {
            ParsedInteger::Exact(value) => Ok(value),
            ParsedInteger::Inexact => {
                lines.unexpected("value", "an integer that a double holds, as all up to 2^53", text)
            }
            ParsedInteger::None => lines.unexpected("value", "an integer", text),
        }
    }
}

/// One entry of the full matrix, from 0.
type Triplet = (u32, u32, f64);

/// The entries of a coordinate file in the rows chosen, mirrored where the header says so.
fn read_triplets<R: BufRead>(
    lines: &mut Lines<'_, R>,
    header: &Header,
    rows: usize,
    chosen: &Range<usize>,
    stored: usize,
) -> Result<Vec<Triplet>, MatrixMarketError> {
    let mut triplets = Vec::new();
    let mut entries = 0_usize;
    let mut keep = |row: u32, column: u32, value: f64| {
        entries += 1;
        if chosen.contains(&(row as usize)) {
            triplets.push((row, column, value));
        }
    };
    for read in 0..stored {
        if !lines.advance()? {
            return lines.truncated("entries", stored, read);
        }
        let [row, column, value] = lines.fields("row, column and value")?;
        let row = lines.index("row", row, rows)?;
        let column = lines.index("column", column, rows)?;
        let value = header.value(lines, value)?;
        keep(row, column, value);
        match header.symmetry {
            Symmetry::General => {}
            Symmetry::Symmetric if row < column => {
                return lines.unexpected("entry", "the lower triangle of a symmetric matrix", "one above the diagonal");
            }
            // Some programs store the diagonal, which is zero.
            Symmetry::Skew if row == column && value == 0.0 => {}
            Symmetry::Skew if row <= column => {
                let found = "one on or above the diagonal";
                return lines.unexpected("entry", "the strict lower triangle of a skew-symmetric matrix", found);
            }
            Symmetry::Symmetric if row == column => {}
            Symmetry::Symmetric => keep(column, row, value),
            Symmetry::Skew => keep(column, row, -value),
        }
    }
    if entries < rows {
        let found = format!("{entries} entries in {rows} rows");
        return lines.unexpected("matrix", "an entry in each row", &found);
    }
    Ok(triplets)
}

/// The rows chosen, in ascending order of columns, duplicates summed in the order given.
fn assemble(chosen: &Range<usize>, triplets: &[Triplet]) -> LocalRows {
    let rows = chosen.len();
    let local = |row: u32| row as usize - chosen.start;
    let mut ends = vec![0_usize; rows + 1];
    for &(row, _, _) in triplets {
        ends[local(row) + 1] += 1;
    }
    for row in 0..rows {
        ends[row + 1] += ends[row];
    }
    let mut sorted = vec![(0_u32, 0.0); triplets.len()];
    let mut next = ends.clone();
    for &(row, column, value) in triplets {
        sorted[next[local(row)]] = (column, value);
        next[local(row)] += 1;
    }
    let mut row_starts = Vec::with_capacity(rows + 1);
    let mut columns: Vec<u32> = Vec::with_capacity(triplets.len());
    let mut values: Vec<f64> = Vec::with_capacity(triplets.len());
    row_starts.push(0);
    for row in 0..rows {
        let entries = &mut sorted[ends[row]..ends[row + 1]];
        entries.sort_by_key(|&(column, _)| column);
        for &(column, value) in entries.iter() {
            if columns.len() > row_starts[row] && columns.last() == Some(&column) {
                let last = values.len() - 1;
                values[last] += value;
            } else {
                columns.push(column);
                values.push(value);
            }
        }
        row_starts.push(columns.len());
    }
    LocalRows { row_starts, columns, values }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io::{BufReader, Read};

    use flate2::bufread::MultiGzDecoder;

    use super::*;

    const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n% a comment\n\n2 2 4\n1 1 4.0\n2 1 -1e0\n\
                           2 2 1.5\n2 2 2.5\n";

    fn parse(text: &str) -> Result<Csr, MatrixMarketError> {
        parse_matrix("m.mtx", text.as_bytes())
    }

    /// The message of the refusal of `text`.
    fn refusal(text: &str) -> String {
        parse(text).expect_err("the file must be refused").to_string()
    }

    #[test]
    fn duplicates_are_summed_and_rows_sorted() {
        let a = parse(GENERAL).unwrap();
        assert_eq!(a.n(), 2);
        assert_eq!(a.row(0), (&[0][..], &[4.0][..]));
        assert_eq!(a.row(1), (&[0, 1][..], &[-1.0, 4.0][..]));
    }

    #[test]
    fn symmetric_and_skew_files_are_mirrored() {
        let a = parse("%%MatrixMarket matrix coordinate integer symmetric\n2 2 3\n1 1 2\n2 1 -1\n2 2 2\n").unwrap();
        assert_eq!(a.row(0), (&[0, 1][..], &[2.0, -1.0][..]));
        let a = parse("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n").unwrap();
        assert_eq!(a.row(0), (&[1][..], &[-3.0][..]));
        assert_eq!(a.row(1), (&[0][..], &[3.0][..]));
    }

    #[test]
    fn agrees_with_a_plain_reading_of_the_lines() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/bcsstk14.mtx.gz");
        let ours = read_matrix(&path).unwrap();
        let mut text = String::new();
        MultiGzDecoder::new(BufReader::new(File::open(&path).unwrap())).read_to_string(&mut text).unwrap();
        assert!(text.starts_with("%%MatrixMarket matrix coordinate real symmetric\n"));
        let mut lines = text.lines().filter(|line| !line.starts_with('%')).map(|line| line.split_whitespace());
        assert!(lines.next().unwrap().eq(["1806", "1806", "32630"]));
        let mut rows = vec![BTreeMap::new(); 1806];
        for mut words in lines {
            let [i, j] = [(); 2].map(|()| words.next().unwrap().parse::<u32>().unwrap() - 1);
            let value: f64 = words.next().unwrap().parse().unwrap();
            rows[i as usize].insert(j, value);
            rows[j as usize].insert(i, value);
        }
        for (i, row) in rows.into_iter().enumerate() {
            let (columns, values): (Vec<_>, Vec<_>) = row.into_iter().unzip();
            assert_eq!(ours.row(i), (&columns[..], &values[..]), "row {i}");
        }
    }

    #[test]
    fn every_refusal_names_file_line_expected_and_found() {
        let header = "%%MatrixMarket matrix coordinate real general\n";
        let cases = [
            ("", "m.mtx, line 1: header:", "an empty file found"),
            ("hello\n", "m.mtx, line 1: header:", "hello found"),
            ("%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n", "field: real or integer", "pattern"),
            ("%%MatrixMarket matrix coordinate complex general\n", "field: real or integer", "complex"),
            ("%%MatrixMarket matrix coordinate real hermitian\n", "symmetry:", "hermitian"),
            ("%%MatrixMarket matrix array real general\n1 1\n1\n", "format: coordinate expected", "array"),
            (&format!("{header}2 3 1\n1 1 1\n"), "line 2: size line: a square matrix", "2 rows and 3 columns"),
            (&format!("{header}0 0 0\n"), "line 2: size line: at least one row", "0 found"),
            (&format!("{header}2 2\n"), "line 2: line: rows, columns and number of entries", "2 2 found"),
            (&format!("{header}1 1 1\n2 1 1.0\n"), "line 3: row: a number from 1 to 1", "2 found"),
            (&format!("{header}1 1 1\n1 0 1.0\n"), "line 3: column: a number from 1 to 1", "0 found"),
            (&format!("{header}1 1 1\n1 1 nan\n"), "line 3: value: a finite number", "nan found"),
            (&format!("{header}1 1 1\n1 1 1e999\n"), "line 3: value: a finite number", "1e999 found"),
            (&format!("{header}1 1 1\n1 1\n"), "line 3: line: row, column and value", "1 1 found"),
            (&format!("{header}1 1 1\n1 1 1\n1 1 1\n"), "line 4: end of file: nothing after 1 entries", "1 1 1"),
            (&format!("{header}1 1 2\n1 1 1\n"), "m.mtx: ends after line 3", "1 of 2 entries"),
            (&format!("{header}\n"), "m.mtx: ends after line 2", "0 of 1 size lines"),
            (&format!("{header}4000000000 4000000000 1\n1 1 1\n"), "an entry in each row", "1 entries in 4000000000"),
            ("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n", "line 3: entry", "above the diagonal"),
            ("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n", "value: an integer", "1.5 found"),
        ];
        for (text, expected, found) in cases {
            let message = refusal(text);
            assert!(message.contains(expected) && message.contains(found), "{text:?} gave: {message}");
        }
    }

    /// A byte order mark, exponents of Fortran, comments behind numbers and zero diagonals, as
    /// other programs write them, were refused: the first as "expected %%MatrixMarket, found
    /// %%MatrixMarket".
    #[test]
    fn files_of_other_programs_are_read() {
        let text = "\u{feff}%%MatrixMarket matrix coordinate real general\r\n%c\r\n2 2 3 % rows columns entries\r\n%c\r\n\
                    1 1 1.5D+03\r\n2 1 -2d-1 % a comment\r\n\r\n2 2 0.5-100\r\n%end\r\n";
        let a = parse(text).unwrap();
        assert_eq!((a.row(0).1, a.row(1).1), (&[1500.0][..], &[-0.2, 0.5e-100][..]));
        let skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 3\n1 1 0.0\n2 1 3\n2 2 0\n";
        assert_eq!(parse(skew).unwrap().row(1), (&[0, 1][..], &[3.0, 0.0][..]));
        assert!(refusal(&skew.replace("1 1 0.0", "1 1 1.0")).contains("on or above the diagonal"));
        let column = parse_vector("b.txt", "# as Fortran writes\n  1.0D+00\n\n -2.5E-01\n".as_bytes());
        assert_eq!(column.unwrap(), [1.0, -0.25]);
    }

    /// 2^53 + 1 was rounded without a word.
    #[test]
    fn integers_that_no_double_holds_are_refused_and_others_are_exact() {
        let of = |value: &str| format!("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 {value}\n");
        for value in ["9007199254740992", "-9007199254740992", "1152921504606846976", "18446744073709551616"] {
            assert_eq!(parse(&of(value)).unwrap().row(0).1, &[value.parse::<f64>().unwrap()], "{value}");
        }
        let refused = refusal(&of("9007199254740993"));
        assert!(refused.starts_with("m.mtx, line 3: value: an integer that a double holds"), "{refused}");
        assert!(refused.ends_with("9007199254740993 found"), "{refused}");
    }

    #[test]
    fn refusals_are_short_whatever_the_file_holds() {
        let header = "%%MatrixMarket matrix coordinate real general\n";
        let long = "9".repeat(324);
        for text in [&long, &format!("{header}{long} 1 1\n"), &format!("{header}1 1 1\n1 1 1x{long}\n")] {
            let message = refusal(text);
            assert!(message.len() <= 200, "{} characters: {message}", message.len());
        }
    }

    #[test]
    fn no_cut_of_a_file_passes_for_the_whole() {
        let whole = parse(GENERAL).unwrap();
        for end in 0..GENERAL.trim_end().len() {
            // A number cut to a shorter number is the one cut the format cannot show.
            if let Ok(cut) = parse(&GENERAL[..end]) {
                assert!(GENERAL[..end].ends_with("2 2 2") || GENERAL[..end].ends_with("2."), "{end}");
                assert_ne!(cut, whole);
            }
        }
    }

    #[test]
    fn vectors_come_in_array_format_only() {
        let text = "%%MatrixMarket matrix array real general\n3 1\n1.0\n-2\n3e-1\n";
        assert_eq!(parse_vector("b.mtx", text.as_bytes()).unwrap(), [1.0, -2.0, 0.3]);
        for (text, what) in [
            (GENERAL, "array (one column, every value stored) expected"),
            ("%%MatrixMarket matrix array real general\n2 2\n1\n1\n1\n1\n", "one column expected, 2 found"),
            ("%%MatrixMarket matrix array real general\n3 1\n1\n", "1 of 3 values"),
            ("%%MatrixMarket matrix array real general\n1 1\ninf\n", "a finite number expected, inf found"),
        ] {
            let message = parse_vector("b.mtx", text.as_bytes()).expect_err("refused").to_string();
            assert!(message.contains(what), "{message}");
        }
    }

    #[test]
    fn a_missing_file_and_a_cut_gzip_are_named() {
        let message = read_matrix(Path::new("/nowhere/a.mtx")).expect_err("refused").to_string();
        assert!(message.starts_with("/nowhere/a.mtx"), "{message}");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/nos7.mtx.gz");
        let bytes = std::fs::read(path).unwrap();
        let cut = BufReader::new(MultiGzDecoder::new(&bytes[..bytes.len() / 2]));
        assert!(matches!(parse_matrix("cut.mtx.gz", cut), Err(MatrixMarketError::Read { line, .. }) if line > 3));
    }
}
