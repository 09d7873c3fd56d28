//! Compiles C and Fortran programs against the library cargo has just built, and runs them under a
//! timeout.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the crate is three folders down").to_owned()
}

/// The folder of `librecoup_c.so`, beside this test.
pub(crate) fn library_folder() -> PathBuf {
    let here = std::env::current_exe().expect("a test knows its program");
    let folder = here.ancestors().skip(1).find(|folder| folder.join("librecoup_c.so").exists());
    let folder = folder.expect("cargo builds the library with its tests");
    link(folder);
    folder.to_owned()
}

/// Gives the library the name that programs linked with it look for, as its installation does.
fn link(folder: &Path) {
    let soname = folder.join(concat!("librecoup.so.", env!("CARGO_PKG_VERSION_MAJOR")));
    match std::os::unix::fs::symlink("librecoup_c.so", soname) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => panic!("{error}"),
        _ => (),
    }
}

/// The double of the driver as a program finds its library, in a folder of its own.
#[cfg(all(feature = "cuda", target_os = "linux"))]
pub(crate) fn driver(folder: &Path) -> PathBuf {
    let driver = folder.join("driver");
    std::fs::create_dir(&driver).expect("the folder is new");
    let library = recoup_cuda_double::Double::path();
    std::os::unix::fs::symlink(library, driver.join("libcuda.so")).expect("the folder is empty");
    driver
}

/// Whether a program is installed; says so when it is not.
pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// Compiles `source`, a path below the repository, into `folder`.
pub(crate) fn compile(compiler: &str, source: &str, flags: &[String], folder: &Path) -> PathBuf {
    let root = root();
    let library = library_folder();
    let program = folder.join(Path::new(source).file_stem().expect("a source has a name"));
    let mut command = Command::new(compiler);
    command.current_dir(folder).arg("-g").arg("-O2").arg(root.join(source));
    command.arg("-I").arg(root.join("crates/doors/capi/include")).args(flags).arg("-L").arg(&library).arg("-lrecoup_c");
    command
        .args(["-lm", "-lpthread"])
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{}", library.display()))
        .arg("-o")
        .arg(&program);
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Flags that refuse every warning.
pub(crate) fn strict(standard: &str) -> Vec<String> {
    [standard, "-Wall", "-Wextra", "-Werror"].map(str::to_owned).to_vec()
}

/// Runs a command line under a timeout, as root too where it starts ranks.
pub(crate) fn run(words: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "200"]).args(words);
    // What Open MPI wants to be told in a container.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none").env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    command.output().expect("it starts")
}

/// Runs a command line to a good end and returns what it printed.
pub(crate) fn output(words: &[&str]) -> String {
    let output = run(words);
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {}\n{out}\n{err}", output.status);
    out.into_owned()
}

/// Returns whether any run has something in the memory directory `folder`.
pub(crate) fn holds_memory(folder: &Path) -> bool {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let found = std::fs::read_dir(folder).into_iter().flatten();
        found.map(|entry| entry.unwrap().path()).collect()
    };
    entries(folder).iter().any(|of_user| !entries(of_user).is_empty())
}
