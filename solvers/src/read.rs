//! Files with matrices and vectors.

mod error;
mod lines;
mod matrix_market;
mod number;
mod text_file;

pub use error::MatrixMarketError;
pub use matrix_market::{parse_matrix, parse_vector, read_matrix, read_matrix_rows, read_vector, write_vector};
