//! The installed prefix as programs meet it that CMake builds.

use std::path::Path;

use crate::build::{has, library_folder, output, root};

/// The same program, with the shared library and with the static one.
const PROJECT: &str = r#"
cmake_minimum_required(VERSION 3.14)
project(program C)
find_package(recoup @VERSION@ REQUIRED)
add_executable(with_shared main.c)
target_link_libraries(with_shared PRIVATE recoup::recoup)
add_executable(with_static main.c)
target_link_libraries(with_static PRIVATE recoup::static)
"#;

const PROGRAM: &str = r#"
#include <recoup_annotate.h>
#include <recoup_mem.h>
#define FIELDS(ARRAY, POINTER, VALUE) VALUE(uint64_t, step)
RECOUP_VERSIONED(state, FIELDS)
int main(void) {
    struct state state = {0};
    if (state_lend(0, &state) != RECOUP_E_HANDLE) return 1;
    puts(recoup_version());
    return 0;
}
"#;

/// Writes a program that asks for a version, and configures it.
fn configure(folder: &Path, prefix: &Path, version: &str) -> std::process::Output {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("CMakeLists.txt"), PROJECT.replace("@VERSION@", version)).unwrap();
    std::fs::write(folder.join("main.c"), PROGRAM).unwrap();
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    let binary = folder.join("build");
    crate::build::run(&["cmake", "-S", folder.to_str().unwrap(), "-B", binary.to_str().unwrap(), &prefix])
}

#[test]
fn cmake_builds_a_program_with_an_installed_prefix() {
    if !has("cmake") || !has("make") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    let words = [format!("PREFIX={}", prefix.display()), format!("BUILT={}", library_folder().display())];
    output(&["make", "-C", root().to_str().unwrap(), "install-library", &words[0], &words[1]]);
    for name in ["dealii", "eigen", "solve"] {
        assert!(prefix.join(format!("include/recoup/{name}.hpp")).exists(), "{name}");
    }
    let version = env!("CARGO_PKG_VERSION");
    let program = folder.path().join("program");
    let configured = configure(&program, &prefix, version);
    assert!(configured.status.success(), "{}", String::from_utf8_lossy(&configured.stderr));
    let binary = program.join("build");
    output(&["cmake", "--build", binary.to_str().unwrap()]);
    for name in ["with_shared", "with_static"] {
        assert_eq!(output(&[binary.join(name).to_str().unwrap()]).trim(), version, "{name}");
    }
    // A newer version is not there, and says so before anything is built.
    let refused = configure(&folder.path().join("newer"), &prefix, "99.0");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("recoup"), "{said}");
}
