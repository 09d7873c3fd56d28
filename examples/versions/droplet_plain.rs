//! The droplet without versions, made of `droplet.rs` by `build.rs`.
//!
//! `cargo run --release -p recoup-examples --example droplet_plain`

include!(concat!(env!("OUT_DIR"), "/droplet_plain.rs"));
