//! The C++ interface, which is all header.

use std::process::Command;

use crate::support::{Place, assert_ends_well, build_single, crate_dir};

#[test]
fn objects_and_memory_come_back_through_the_cpp_interface() {
    let program = build_single("client-cpp", &crate_dir().join("tests/c/client.cpp"));
    for mode in ["sync", "async"] {
        let place = Place::new(&format!("mode = {mode}"));
        let mut command = Command::new(&program);
        command.arg(place.config());
        assert_ends_well(command);
    }
}
