//! Versions hold structs with named fields that own their values.

use recoup_memory_derive::Versioned;

#[derive(Versioned)]
enum Phase {
    Solid(f64),
    Liquid { volume: f64 },
}

#[derive(Versioned)]
union Word {
    float: f64,
    bits: u64,
}

#[derive(Versioned)]
struct Pair(f64, f64);

#[derive(Versioned)]
struct Nothing;

#[derive(Versioned)]
struct Borrowed<'a> {
    values: &'a [f64],
}

#[derive(Versioned)]
struct Addresses {
    next: *const f64,
    field: &'static [f64],
    force: fn(f64) -> f64,
    all: [&'static str; 2],
    good: f64,
}

fn main() {}
