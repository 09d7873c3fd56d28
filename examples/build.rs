//! Makes the plain programs of `versions` from those with versions. Of a line with the mark, the
//! text behind it is taken; nothing, if there is none.

use std::path::Path;
use std::{env, fs, io};

const MARK: &str = " // plain:";
/// From the folder of either package that builds them.
const VERSIONS: &str = "../examples/versions";

fn plain(text: &str) -> String {
    // Documentation of a module cannot be included.
    let lines = text.lines().filter(|line| !line.starts_with("//!")).filter_map(|line| match line.split_once(MARK) {
        Some((_, "")) => None,
        Some((_, instead)) => Some(format!("{instead}\n")),
        None => Some(format!("{line}\n")),
    });
    // As it is written where nothing is left to do.
    lines.collect::<String>().replace("{\n    }", "{}")
}

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=../examples/versions");
    let target = env::var("OUT_DIR").map_err(io::Error::other)?;
    let write = |name: &str, text: &str| fs::write(Path::new(&target).join(name), text);
    for name in ["crack", "droplet", "lu", "pagerank"] {
        write(&format!("{name}_plain.rs"), &plain(&fs::read_to_string(format!("{VERSIONS}/{name}.rs"))?))?;
    }
    // What the plain programs bring along is looked for next to them.
    ["graph.rs", "tree.rs"]
        .into_iter()
        .try_for_each(|name| write(name, &fs::read_to_string(Path::new(VERSIONS).join(name))?))
}
