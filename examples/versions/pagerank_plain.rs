//! PageRank without versions, made of `pagerank.rs` by `build.rs`.
//!
//! `cargo run --release -p recoup-examples --example pagerank_plain`

include!(concat!(env!("OUT_DIR"), "/pagerank_plain.rs"));
