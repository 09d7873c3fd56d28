//! Frozen files: small versions of every published format, which every later build must read.
//!
//! `tests/golden/frozen.txt` lists them with length and CRC-32C. Tests only read them; a change to
//! a listed file is an error everywhere but under `cargo xtask golden --replace`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::files::{files_below, name_below};
use crate::{cargo, succeed};

const FOLDER: &str = "tests/golden";
const LIST: &str = "frozen.txt";

/// Length and CRC-32C of each frozen file, by its path below the folder.
type Frozen = BTreeMap<String, (u64, u32)>;

/// Writes the frozen files and their list.
pub(crate) fn run(root: &Path, replace: bool) -> Result<()> {
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder)?;
    let before = listed(&folder)?;
    let write = ["test", "--locked", "--package", "recoup-tests", "--", "--ignored", "write_golden"];
    succeed(cargo(root).args(write).env("RECOUP_GOLDEN", &folder))?;
    let after = found(&folder)?;
    let changes = changes(&before, &after);
    if !replace && !changes.is_empty() {
        bail!("frozen files changed, restore them or give --replace with a new format version: {}", changes.join(", "));
    }
    fs::write(folder.join(LIST), render(&after))?;
    println!("{} frozen files, {} new", after.len(), after.keys().filter(|name| !before.contains_key(*name)).count());
    Ok(())
}

/// Lists the faults of the frozen files; nothing when there are none yet.
pub(crate) fn complaints(root: &Path) -> Result<Vec<String>> {
    let folder = root.join(FOLDER);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let listed = listed(&folder)?;
    let found = found(&folder)?;
    let unlisted = found.keys().filter(|name| !listed.contains_key(*name));
    let unlisted = unlisted.map(|name| format!("{name}: not in {LIST}; only `cargo xtask golden` adds frozen files"));
    Ok(changes(&listed, &found).into_iter().chain(unlisted).map(|what| format!("{FOLDER}/{what}")).collect())
}

/// Files of `before` that are gone or differ.
fn changes(before: &Frozen, after: &Frozen) -> Vec<String> {
    let changed = before.iter().filter_map(|(name, old)| match after.get(name) {
        None => Some(format!("{name}: gone")),
        Some(new) if new != old => Some(format!("{name}: changed")),
        Some(_) => None,
    });
    changed.collect()
}

fn render(frozen: &Frozen) -> String {
    let mut text = String::from("# path, bytes, CRC-32C; written by `cargo xtask golden`\n");
    for (name, (bytes, crc)) in frozen {
        let _ = writeln!(text, "{name} {bytes} {crc:08x}");
    }
    text
}

fn parse(text: &str) -> Result<Frozen> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let mut fields = line.rsplitn(3, ' ');
            let crc = fields.next().and_then(|crc| u32::from_str_radix(crc, 16).ok());
            let bytes = fields.next().and_then(|bytes| bytes.parse().ok());
            let name = fields.next().map(str::to_owned);
            let (name, bytes, crc) = name.zip(bytes).zip(crc).map(|((n, b), c)| (n, b, c)).context(line.to_owned())?;
            Ok((name, (bytes, crc)))
        })
        .collect()
}

fn listed(folder: &Path) -> Result<Frozen> {
    let list = folder.join(LIST);
    if !list.exists() {
        return Ok(Frozen::new());
    }
    parse(&fs::read_to_string(&list)?).with_context(|| format!("{} is damaged", list.display()))
}

fn found(folder: &Path) -> Result<Frozen> {
    let mut frozen = Frozen::new();
    for path in files_below(folder)?.iter().filter(|path| **path != folder.join(LIST)) {
        let bytes = fs::read(path)?;
        frozen.insert(name_below(folder, path)?, (bytes.len() as u64, crc32c::crc32c(&bytes)));
    }
    Ok(frozen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Frozen {
        BTreeMap::from([("v1/raw/manifest.json".to_owned(), (120, 0xdead_beef)), ("v1/zstd.h5".to_owned(), (7, 1))])
    }

    #[test]
    fn list_survives_its_own_text() {
        assert_eq!(parse(&render(&sample())).unwrap(), sample());
        assert!(parse("one two three\n").is_err());
    }

    #[test]
    fn one_changed_bit_and_one_lost_file_are_named() {
        let mut after = sample();
        after.get_mut("v1/zstd.h5").unwrap().1 ^= 1;
        after.remove("v1/raw/manifest.json");
        assert_eq!(changes(&sample(), &after), ["v1/raw/manifest.json: gone", "v1/zstd.h5: changed"]);
        assert!(changes(&sample(), &sample()).is_empty());
    }
}
