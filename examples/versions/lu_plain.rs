//! LU decomposition without versions, made of `lu.rs` by `build.rs`.
//!
//! `cargo run --release -p recoup-examples --example lu_plain`

include!(concat!(env!("OUT_DIR"), "/lu_plain.rs"));
