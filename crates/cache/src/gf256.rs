//! Arithmetic of the field of 256 elements, modulo x^8 + x^4 + x^3 + x^2 + 1, and matrices over it.

/// The polynomial without its leading term.
const POLYNOMIAL: u8 = 0x1d;

/// `a b`.
pub(crate) const fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        let carry = a & 0x80 != 0;
        a <<= 1;
        if carry {
            a ^= POLYNOMIAL;
        }
        b >>= 1;
    }
    product
}

/// `1 / a`: `a^254`.
///
/// # Panics
/// For zero.
pub(crate) fn invert(a: u8) -> u8 {
    assert!(a != 0, "zero has no inverse");
    let square = |x| multiply(x, x);
    // 254 = 2 + 4 + ... + 128.
    let mut power = square(a);
    let mut inverse = 1;
    for _ in 0..7 {
        inverse = multiply(inverse, power);
        power = square(power);
    }
    inverse
}

/// The coefficients of parity row `row` for column `column` of a code of `data` columns: a Cauchy
/// matrix `1 / (x_row + y_column)`, each column divided by its first entry, so that the first row
/// sums plainly. Every square part of it can be inverted, so any rows may stand in for as many
/// columns (R. M. Roth, A. Lempel, IEEE Transactions on Information Theory 35(6), 1989).
///
/// # Panics
/// When rows and columns together are more than the field has elements.
pub(crate) fn coefficient(row: usize, column: usize, data: usize) -> u8 {
    assert!(data + row < 256 && column < data, "a code of at most 256 parts");
    let cauchy = |row: usize| invert((data + row) as u8 ^ column as u8);
    multiply(cauchy(row), invert(cauchy(0)))
}

/// The inverse of a square matrix, by Gauss-Jordan elimination; `None` when there is none.
pub(crate) fn inverse(mut matrix: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    let n = matrix.len();
    for (i, row) in matrix.iter_mut().enumerate() {
        row.extend((0..n).map(|j| u8::from(i == j)));
    }
    for column in 0..n {
        let pivot = (column..n).find(|&row| matrix[row][column] != 0)?;
        matrix.swap(column, pivot);
        let scale = invert(matrix[column][column]);
        matrix[column].iter_mut().for_each(|v| *v = multiply(*v, scale));
        let pivot_row = matrix[column].clone();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(row, _)| *row != column) {
            let factor = row[column];
            row.iter_mut().zip(&pivot_row).for_each(|(v, p)| *v ^= multiply(factor, *p));
        }
    }
    Some(matrix.into_iter().map(|row| row[n..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_but_zero_has_its_inverse() {
        for a in 1..=255 {
            assert_eq!(multiply(a, invert(a)), 1, "{a}");
        }
    }

    #[test]
    fn products_distribute_over_sums() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), multiply(b, a));
                assert_eq!(multiply(a, b ^ 0x53), multiply(a, b) ^ multiply(a, 0x53));
            }
        }
    }

    #[test]
    fn first_row_sums_plainly_and_every_square_part_of_two_rows_can_be_inverted() {
        for data in [1, 2, 4, 20] {
            for a in 0..data {
                assert_eq!(coefficient(0, a, data), 1);
                for b in 0..a {
                    let part = |row| vec![coefficient(row, a, data), coefficient(row, b, data)];
                    for rows in [[0, 1], [0, 2], [1, 2]] {
                        let matrix = rows.map(part).to_vec();
                        let inverse = inverse(matrix.clone()).unwrap();
                        let dot = |i: usize, j: usize| (0..2).fold(0, |s, k| s ^ multiply(matrix[i][k], inverse[k][j]));
                        assert_eq!([dot(0, 0), dot(0, 1), dot(1, 0), dot(1, 1)], [1, 0, 0, 1]);
                    }
                }
            }
        }
    }
}
