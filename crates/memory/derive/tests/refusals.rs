//! What the macro refuses, and in which words. `TRYBUILD=overwrite` replaces the expected words.

#[test]
fn structs_that_no_version_can_hold_are_refused_with_the_reason() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
