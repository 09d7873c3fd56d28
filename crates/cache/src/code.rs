//! Rows of an erasure code: sums of columns, and columns won back from what is left of them.

use crate::gf256::{coefficient, inverse, multiply};
use crate::simd::add_product;

/// Bytes summed at a time: they stay in the fastest cache while all columns are added to them.
const BLOCK_BYTES: usize = 16 << 10;

/// `target = sum of constant source` over all sources; shorter ones count as padded with zeros.
pub(crate) fn combine(target: &mut [u8], sources: &[(u8, &[u8])]) {
    for (index, block) in target.chunks_mut(BLOCK_BYTES).enumerate() {
        block.fill(0);
        let start = index * BLOCK_BYTES;
        for (constant, source) in sources {
            let end = source.len().min(start + block.len());
            add_product(block, *constant, source.get(start..end).unwrap_or_default());
        }
    }
}

/// Parity row `row` of columns of at most the target's length.
pub fn encode_row(row: usize, columns: &[&[u8]], target: &mut [u8]) {
    let n = columns.len();
    let sources: Vec<(u8, &[u8])> =
        columns.iter().enumerate().map(|(column, bytes)| (coefficient(row, column, n), *bytes)).collect();
    combine(target, &sources);
}

/// One part of a stripe: a column of data or a row of parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StripePart {
    Column(usize),
    Row(usize),
}

/// The constants by which `parts`, as many as there are columns, are to be multiplied to sum up to
/// `column`.
pub(crate) fn constants(column: usize, parts: &[StripePart]) -> Option<Vec<u8>> {
    let data = parts.len();
    let known = |c: usize| parts.contains(&StripePart::Column(c));
    let missing: Vec<usize> = (0..data).filter(|&c| !known(c)).collect();
    let rows: Vec<usize> =
        parts.iter().filter_map(|p| if let StripePart::Row(r) = p { Some(*r) } else { None }).collect();
    let matrix = rows.iter().map(|&r| missing.iter().map(|&c| coefficient(r, c, data)).collect()).collect();
    let Some(at) = missing.iter().position(|&c| c == column) else {
        return Some(parts.iter().map(|part| u8::from(*part == StripePart::Column(column))).collect());
    };
    // x_missing = inverse (rows - sum over known columns), of which only the line of `column` is
    // needed.
    let line = &inverse(matrix)?[at];
    let constant = |part: &StripePart| match *part {
        StripePart::Row(row) => rows.iter().position(|&r| r == row).map_or(0, |i| line[i]),
        StripePart::Column(c) => {
            rows.iter().zip(line).fold(0, |sum, (&row, l)| sum ^ multiply(*l, coefficient(row, c, data)))
        }
    };
    Some(parts.iter().map(constant).collect())
}

/// Column `column` of a code from as many parts as it has columns: pairs of the part's number and
/// its bytes, where numbers below the count of columns are columns and those above parity rows.
/// `None` when the parts are too few.
#[must_use]
pub fn decode_column(column: usize, parts: &[(usize, &[u8])], target: &mut [u8]) -> Option<()> {
    let data = parts.len();
    let part = |&(number, _): &(usize, &[u8])| {
        if number < data { StripePart::Column(number) } else { StripePart::Row(number - data) }
    };
    let names: Vec<StripePart> = parts.iter().map(part).collect();
    let constants = constants(column, &names)?;
    let sources: Vec<(u8, &[u8])> = constants.into_iter().zip(parts.iter().map(|(_, bytes)| *bytes)).collect();
    combine(target, &sources);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every choice of columns out of all parts brings every column back.
    #[test]
    fn any_losses_no_more_than_the_parity_rows_are_won_back() {
        for (data, parity) in [(1, 1), (2, 1), (4, 1), (3, 2), (4, 2), (5, 3)] {
            let bytes = |c: usize| (0..40_000 + c).map(|i| (i * (c + 3) + i / 91) as u8).collect::<Vec<u8>>();
            let columns: Vec<Vec<u8>> = (0..data).map(bytes).collect();
            let views: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
            let len = columns.iter().map(Vec::len).max().unwrap();
            let mut all: Vec<(usize, Vec<u8>)> = columns.iter().cloned().enumerate().collect();
            for row in 0..parity {
                let mut target = vec![0; len];
                encode_row(row, &views, &mut target);
                all.push((data + row, target));
            }
            for mask in 0_u32..1 << (data + parity) {
                if mask.count_ones() as usize != data {
                    continue;
                }
                let kept = all.iter().filter(|(i, _)| mask >> i & 1 == 1);
                let kept: Vec<(usize, &[u8])> = kept.map(|(i, b)| (*i, b.as_slice())).collect();
                for (column, expected) in columns.iter().enumerate() {
                    let mut found = vec![0xff; len];
                    decode_column(column, &kept, &mut found).unwrap();
                    assert_eq!(&found[..expected.len()], expected, "{data}+{parity}, kept {mask:b}, column {column}");
                    assert!(found[expected.len()..].iter().all(|&b| b == 0));
                }
            }
        }
    }
}
