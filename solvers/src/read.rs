//! Files with matrices and vectors.

mod matrix_market;

pub use matrix_market::{
    MatrixMarketError, parse_matrix, parse_vector, read_matrix, read_matrix_rows, read_vector, write_vector,
};
