//! Attributes that say nothing, too much, or what no memory can do.

use recoup_memory_derive::Versioned;

#[derive(Versioned)]
#[versioned(block = "65000")]
struct OddBlock {
    x: f64,
}

#[derive(Versioned)]
#[versioned(block = "32MiB")]
struct LargeBlock {
    x: f64,
}

#[derive(Versioned)]
#[versioned(keep = 0)]
struct NoVersion {
    x: f64,
}

#[derive(Versioned)]
#[versioned(place = "dram")]
struct UnknownOfStruct {
    x: f64,
}

#[derive(Versioned)]
struct Fields {
    #[versioned(counter)]
    step: u64,
    #[versioned(counter)]
    other: u64,
    #[versioned(name = "step")]
    double: f64,
    #[versioned(name = "")]
    nameless: f64,
    #[versioned(hot)]
    unknown: f64,
    #[versioned(place = "file")]
    placed: f64,
    #[versioned(skip, hot = 0..9)]
    hot: f64,
    #[versioned(skip, constant)]
    both: f64,
    #[versioned(skip, name = "skipped")]
    named: f64,
}

#[derive(Versioned)]
struct Forgetful {
    #[versioned(skip)]
    x: f64,
}

fn main() {}
