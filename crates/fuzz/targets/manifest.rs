//! A manifest of any text: `cargo +nightly fuzz run --fuzz-dir crates/fuzz manifest`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use recoup_core::Manifest;

fuzz_target!(|text: &[u8]| {
    if let Ok(manifest) = serde_json::from_slice::<Manifest>(text) {
        // What was understood is written, and read again as the same.
        let written = serde_json::to_vec(&manifest).expect("a manifest is JSON");
        let again: Manifest = serde_json::from_slice(&written).expect("reads its own writing");
        assert_eq!(format!("{again:?}"), format!("{manifest:?}"));
    }
});
