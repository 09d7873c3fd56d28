//! The crack without versions, made of `crack.rs` by `build.rs`.
//!
//! `cargo run --release -p recoup-examples --example crack_plain`

include!(concat!(env!("OUT_DIR"), "/crack_plain.rs"));
