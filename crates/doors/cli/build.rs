//! Tells the program its target, and its commit where it is built from a repository.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=RECOUP_TARGET={}", std::env::var("TARGET").unwrap_or_default());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    // A repository further up is somebody else's.
    if !root.join(".git").exists() {
        return;
    }
    if let Some(commit) = git(&root, &["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo:rustc-env=RECOUP_COMMIT={commit}");
    }
    let branch = git(&root, &["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let file = git(&root, &["rev-parse", "--git-path", name]).map(|path| root.join(path));
        // A file that is not there would count as changed, every time.
        if let Some(file) = file.filter(|file| file.exists()) {
            println!("cargo:rerun-if-changed={}", file.display());
        }
    }
}

/// What git prints; `None` where there is no git, or it refuses.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
