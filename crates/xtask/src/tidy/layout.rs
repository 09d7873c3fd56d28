//! Checks of the repository as a whole: every crate obeys the lints, and the map is true.

use std::path::Path;

use super::Source;

/// The page whose first code block is the map.
const MAP: &str = "ARCHITECTURE.md";

pub(super) fn complaints(root: &Path, sources: &[Source]) -> Vec<String> {
    let manifests = sources.iter().filter(|source| source.file_name() == "Cargo.toml" && source.path.contains('/'));
    let mut found: Vec<String> = manifests.clone().filter_map(without_lints).collect();
    let Some(map) = sources.iter().find(|source| source.path == MAP) else {
        found.push(format!("{MAP}: not there"));
        return found;
    };
    let paths = mapped_paths(&map.text);
    let missing = paths.iter().filter(|(_, path)| !root.join(path).exists());
    found.extend(missing.map(|(index, path)| map.complaint(*index, format!("{path} does not exist"))));
    let crates = manifests.filter_map(|source| source.path.strip_suffix("/Cargo.toml"));
    found.extend(wrong_dependencies(map, sources));
    let unmapped = crates.filter(|name| !paths.iter().any(|(_, path)| path == name));
    found.extend(unmapped.map(|name| format!("{MAP}: {name} is not on the map")));
    found
}

fn without_lints(manifest: &Source) -> Option<String> {
    let is_lazy = !manifest.text.contains("[lints]\nworkspace = true");
    is_lazy.then(|| manifest.complaint(0, "[lints] workspace = true is missing"))
}

/// Crates whose manifests differ from the second code block of the map. A line of it names a crate,
/// or several by commas, and all it uses.
fn wrong_dependencies(map: &Source, sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    let lines = map.text.lines().enumerate().filter(|(_, line)| line.contains("  "));
    let blocks = map.text.lines().scan(0, |fences, line| {
        *fences += usize::from(line.starts_with("```"));
        Some(*fences)
    });
    let inside: Vec<bool> = blocks.map(|fences| fences == 3).collect();
    for (index, line) in lines.filter(|(index, _)| inside[*index]) {
        let Some((crates, used)) = line.split_once("  ") else { continue };
        let mut told: Vec<&str> = used.split_whitespace().filter(|name| *name != "none").collect();
        told.sort_unstable();
        for name in crates.split(',').map(str::trim) {
            let names = ["", "recoup-"].map(|prefix| format!("[package]\nname = \"{prefix}{name}\"\n"));
            let is_it = |source: &&Source| {
                source.file_name() == "Cargo.toml" && names.iter().any(|name| source.text.starts_with(name))
            };
            let Some(manifest) = sources.iter().find(is_it) else {
                found.push(map.complaint(index, format!("{name} is no crate")));
                continue;
            };
            let uses = dependencies(&manifest.text);
            if uses != told {
                let uses = if uses.is_empty() { "none".to_owned() } else { uses.join(" ") };
                found.push(map.complaint(index, format!("{name} uses {uses}")));
            }
        }
    }
    found
}

/// The crates of ours that a manifest names below `[dependencies]`, in order.
fn dependencies(manifest: &str) -> Vec<&str> {
    let below = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = below.take_while(|line| !line.starts_with('['));
    let name = |line: &'_ str| line.split(['.', ' ', '=']).next().map(str::len);
    let names = lines.filter_map(|line| Some(&line[..name(line)?]));
    let mut found: Vec<&str> =
        names.filter_map(|name| if name == "recoup" { Some(name) } else { name.strip_prefix("recoup-") }).collect();
    found.sort_unstable();
    found
}

/// Line and path of each entry of the first code block: its first word, while that is a path.
fn mapped_paths(page: &str) -> Vec<(usize, String)> {
    let lines = page.lines().enumerate();
    let block = lines.skip_while(|(_, line)| !line.starts_with("```")).skip(1);
    let block = block.take_while(|(_, line)| !line.starts_with("```"));
    let entries = block.filter(|(_, line)| !line.starts_with(' '));
    entries.filter_map(|(index, line)| Some((index, line.split_whitespace().next()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn crate_without_workspace_lints_is_found() {
        let lazy = [source("io/Cargo.toml", "[package]\n"), source(MAP, "```text\nio  stores\n```\n")];
        assert!(complaints(&crate::root(), &lazy).iter().any(|what| what.starts_with("io/Cargo.toml:1")));
    }

    #[test]
    fn dependencies_that_the_map_does_not_tell_are_found() {
        let page = "```text\nio  stores\n```\nwords\n```text\nio, cache  core\ngone       none\n```\n";
        let manifest = |name: &str, uses: &str| {
            let path = format!("crates/family/{name}/Cargo.toml");
            let package = format!("[package]\nname = \"recoup-{name}\"\n[lints]\nworkspace = true\n");
            source(&path, &format!("{package}[dependencies]\n{uses}[features]\nrecoup-no = []\n"))
        };
        let sources = [
            manifest("io", "recoup-core.workspace = true\nlibc = \"1\"\n"),
            manifest("cache", "recoup-core.workspace = true\nrecoup-io = { path = \"x\" }\n"),
        ];
        let found = wrong_dependencies(&source(MAP, page), &sources);
        assert_eq!(found, ["ARCHITECTURE.md:6: cache uses core io", "ARCHITECTURE.md:7: gone is no crate"]);
    }

    #[test]
    fn map_with_a_lost_entry_or_a_lost_crate_is_found() {
        let page = "# Map\n```text\nio        stores\nnowhere   nothing\n          more words\n```\n";
        let sources = [source("tests/Cargo.toml", "[lints]\nworkspace = true\n"), source(MAP, page)];
        let found = complaints(&crate::root(), &sources);
        assert_eq!(found, ["ARCHITECTURE.md:4: nowhere does not exist", "ARCHITECTURE.md: tests is not on the map"]);
    }
}
