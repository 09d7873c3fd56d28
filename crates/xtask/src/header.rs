//! The C header, generated from the sources of the C interface and kept with them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

const CRATE: &str = "crates/doors/capi";
const HEADER: &str = "crates/doors/capi/include/recoup.h";

/// Writes the header.
pub(crate) fn run(root: &Path) -> Result<()> {
    fs::write(root.join(HEADER), generate(root)?).with_context(|| format!("cannot write {HEADER}"))
}

/// Refuses a header that is not what the sources say.
pub(crate) fn check(root: &Path) -> Result<()> {
    let found = fs::read(root.join(HEADER)).with_context(|| format!("cannot read {HEADER}"))?;
    if found != generate(root)? {
        bail!("{HEADER} is not what the sources say: run `cargo xtask header`");
    }
    Ok(())
}

fn generate(root: &Path) -> Result<Vec<u8>> {
    let folder = root.join(CRATE);
    let config =
        cbindgen::Config::from_file(folder.join("cbindgen.toml")).map_err(|e| anyhow::anyhow!("{CRATE}: {e}"))?;
    // The sources alone, in a fixed order: nothing of what the crate depends on belongs to the
    // interface.
    let sources = [
        "status",
        "kinds",
        "protected",
        "callbacks",
        "operator",
        "handle",
        "how",
        "calls",
        "changes",
        "columns",
        "systems",
        "tape",
        "memory_array",
        "memory",
        "memory_view",
        "log",
    ];
    let builder = sources.iter().fold(cbindgen::Builder::new().with_config(config), |builder, name| {
        builder.with_src(folder.join("src").join(name).with_extension("rs"))
    });
    let mut header = Vec::new();
    builder.generate().with_context(|| format!("cannot read the interface of {CRATE}"))?.write(&mut header);
    // What Rust asks of unsafe functions is plain advice in C.
    Ok(String::from_utf8(header)?.replace("// # Safety\n", "").into_bytes())
}
