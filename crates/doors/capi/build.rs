//! Names the shared library as programs ask for it: `librecoup.so.` and the number that changes
//! when they must be built again.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,librecoup.so.{}", env!("CARGO_PKG_VERSION_MAJOR"));
    }
}
